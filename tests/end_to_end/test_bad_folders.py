"""Run folders and disks that are taken, damaged, full or read-only: told plainly, and nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.end_to_end import tiny
from tests.end_to_end.asking import quickly, refused, tune
from tests.opencl_here import needs_opencl
from tests.running import Ended, environment, expect_success, tunesmith, wait_until_alone
from tests.wording import says


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    return tiny.fake(tmp_path / "problem")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder, to be copied before it is spoilt."""
    folder = tmp_path_factory.mktemp("finished")
    tiny.fake(folder / "problem")
    ended = tune(folder, "--evals", 2, "--out", "run")
    assert ended.code == 0, ended.err
    return folder / "run"


class TestRunFolder:
    @pytest.mark.long
    def test_holds_a_run_already(self, finished: Path, tmp_path: Path, fake: Path) -> None:
        shutil.copytree(finished, tmp_path / "run")
        before = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
        ended = tune(tmp_path, "--out", "run")
        refused(ended, 2, "run: this folder already holds a run", "tunesmith resume run; or choose another")
        assert {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()} == before

    @pytest.mark.long
    def test_holds_something_else(self, tmp_path: Path, fake: Path) -> None:
        ended = tune(tmp_path, "--out", "problem")
        refused(
            ended, 2, "problem: a run's folder must be new or empty, this one holds kernel.fake, problem.toml"
        )
        assert "hint: choose another folder: --out problem/run" in ended.err
        assert len(list(fake.iterdir())) == 4
        ended = tune(tmp_path, "--out", "problem/kernel.fake")
        refused(ended, 2, "problem/kernel.fake: cannot create the run folder: File exists", "--out")

    def test_is_damaged(self, finished: Path, tmp_path: Path) -> None:
        def damaged(damage: Callable[[Path], None], *said: str) -> None:
            shutil.rmtree(tmp_path / "run", ignore_errors=True)
            run = shutil.copytree(finished, tmp_path / "run")
            damage(run)
            refused(quickly(tmp_path, "resume", "run"), 2, *said)

        def line(number: int, text: bytes) -> Callable[[Path], None]:
            def damage(run: Path) -> None:
                lines = (run / "journal.jsonl").read_bytes().splitlines()
                lines[number - 1] = text
                (run / "journal.jsonl").write_bytes(b"\n".join(lines) + b"\n")

            return damage

        restore = "hint: restore the folder from a copy, or start a new run"
        damaged(line(3, b'{"numb'), "run/journal.jsonl:3: the journal is damaged: ", restore)
        future = b'{"number":2,"at":1.0,"type":"Dreamt","event":{}}'
        damaged(line(3, future), "run/journal.jsonl:3: ", "unknown event 'Dreamt'", restore)
        lost = next(p.name for p in (finished / "objects").iterdir() if b"/// fake" in p.read_bytes())
        damaged(lambda run: (run / "objects" / lost).unlink(), f"lost its file objects/{lost[:12]}", restore)
        damaged(lambda run: (run / "objects" / lost).write_text("x"), "has been changed", restore)
        damaged(lambda run: (run / "journal.jsonl").write_text("{"), "the run was killed before it began")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own; needs the right to mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if shutil.which("mount") is None:
        pytest.skip("there is no mount here")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root can mount a disk")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def remount(disk: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", disk], check=True)


class TestDisk:
    @pytest.mark.long
    def test_full_before_the_run_has_begun(self, tmp_path: Path, fake: Path, disk: Path) -> None:
        remount(disk, "size=8k")
        command = ("tune", fake, "--template", fake / "template.fake", "--evals", 1)
        for ended in (tunesmith(tmp_path, *command, "--out", "disk/run"), _in(disk, tmp_path, *command)):
            refused(ended, 2, "cannot write: No space left on device")
            says(ended.err, "hint:", "free some room", "same command")
        assert [p.name for p in disk.rglob("*")] == ["tunesmith-runs"], "no trace of a run that never began"

    @pytest.mark.long
    def test_full_in_the_middle(self, tmp_path: Path, fake: Path, disk: Path) -> None:
        remount(disk, "size=36k")
        ended = tune(tmp_path, "--no-cache", "--out", "disk/run", "--json")
        assert ended.code == ended.json["exit"] == 2
        assert "No space left on device" in ended.json["error"]
        assert ended.json["hint"] == "free some room on that disk, then: tunesmith resume disk/run"
        assert wait_until_alone(tmp_path) == []
        assert tunesmith(tmp_path, "report", "disk/run").code == 0
        remount(disk, "size=4m")
        ended = expect_success(tmp_path, "resume", "disk/run", "--json")
        assert ended.json["finished"] is True
        assert ended.json["evaluations"] == {"ok": 4}
        assert not [p for p in disk.rglob("*") if p.suffix in (".part", ".new")]

    @needs_opencl
    @pytest.mark.long
    @pytest.mark.parametrize("size", ["64k", "200k", "400k"])
    def test_full_while_kernels_are_built(self, tmp_path: Path, disk: Path, size: str) -> None:
        """The compiler has no room for its files: no kernel is blamed."""
        tiny.opencl(tmp_path / "problem")
        remount(disk, f"size={size}")
        own = ("--template", "problem/template.cl", "--evals", 3, "--no-cache", "--out", "disk/run")
        ended = tunesmith(tmp_path, "tune", "problem", *own)
        assert ended.code in (0, 2), ended.err
        if ended.code:
            says(ended.err, "No space left on device")
            says(ended.err, "hint:", "free some room")
        assert "crashed" not in ended.err
        remount(disk, "size=64m")
        begun = (disk / "run" / "journal.jsonl").exists()
        ended = expect_success(
            tmp_path, *(("resume", "disk/run") if begun else ("tune", "problem", *own)), "--json"
        )
        assert ended.json["evaluations"] == {"ok": 3}

    def test_read_only(self, finished: Path, tmp_path: Path, fake: Path, disk: Path) -> None:
        shutil.copytree(finished, disk / "run")
        remount(disk, "ro")
        try:
            expect_success(tmp_path, "report", "disk/run", "--json")
            ended = tunesmith(tmp_path, "resume", "disk/run")
            refused(
                ended, 2, "disk/run: cannot lock the run folder: Read-only file system", "make it writable"
            )
            ended = tune(tmp_path, "--out", "disk/new")
            message = "disk/new: cannot create the run folder: Read-only file system"
            refused(ended, 2, message, "make it writable, or choose another folder with --out")
            (tmp_path / "k.cl").write_text(tiny.KERNEL)
            ended = tunesmith(tmp_path, "init", "k.cl", "-o", "disk/k")
            refused(
                ended,
                2,
                "disk/k: cannot write the draft: Read-only file system",
                "another folder with -o DIR",
            )
        finally:
            remount(disk, "rw")

    def test_read_only_for_this_user(self, tmp_path: Path, fake: Path) -> None:
        if os.geteuid() == 0:
            pytest.skip("permissions mean nothing to root")
        (tmp_path / "runs").mkdir(mode=0o555)
        ended = tune(tmp_path, "--out", "runs/run")
        refused(ended, 2, "runs/run: cannot create the run folder: Permission denied", "make it writable")


def _in(folder: Path, home: Path, *arguments: object) -> Ended:
    """Run it in one folder while its temporary files and caches lie in another."""
    done = subprocess.run(
        [sys.executable, "-m", "tunesmith", *map(str, arguments)],
        cwd=folder,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    return Ended(done.returncode, done.stdout, done.stderr)
