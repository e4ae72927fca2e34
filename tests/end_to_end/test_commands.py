"""Every command as a user types it: the result on stdout, all else on stderr, the exit code."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end import tiny
from tests.opencl_here import needs_opencl
from tests.running import (
    FIXTURES,
    environment,
    events_in,
    expect_success,
    journal,
    processes_in,
    report_in,
    start,
    tunesmith,
    wait_for_events,
    wait_until_alone,
)
from tests.wording import says


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a problem and two runs of it, the second the newer."""
    folder = tmp_path_factory.mktemp("finished")
    problem = tiny.fake(folder / "problem")
    for seed in (1, 2):
        ended = expect_success(
            folder, "tune", problem, "--template", problem / "template.fake", "--seed", seed, "--evals", 2
        )
        assert ended.out.startswith("tiny on simulated device\n")
        assert f"tunesmith-runs/tiny-{seed}/report.md" in ended.out
        for line in ended.err.splitlines():
            assert line[2] == ":", f"not a progress line: {line}"
    return folder


def unfinished(folder: Path, copy_of: Path, after: bytes = b'"Asked"') -> Path:
    """A run that was killed when its search began, or after the first of another kind of event."""
    run = folder / "run"
    shutil.copytree(copy_of, run)
    for name in ("tuned", "plots", "report.md", "report.json", "template.fake"):
        path = run / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if after in line)
    (run / "journal.jsonl").write_bytes(b"".join(lines[: first + 1]))
    return run


class TestCheck:
    def test_says_what_was_judged_and_by_what(self, tmp_path: Path) -> None:
        problem = tiny.fake(tmp_path / "problem")
        ended = expect_success(
            tmp_path, "check", problem / "problem.toml", "--template", problem / "template.fake"
        )
        judged, template = ended.out.splitlines()
        says(judged, "tiny is right", "10 cases", "simulated device", "by the reference")
        says(template, "template", "4 configurations")
        says(ended.err, "original", "case 1 of 10")
        assert sorted(p.name for p in tmp_path.iterdir()) == ["problem", "tmp"]
        assert list((tmp_path / "tmp").iterdir()) == []

    def test_json_without_a_reference(self, tmp_path: Path) -> None:
        problem = tiny.fake(tmp_path / "problem")
        tiny.spoil(problem / "problem.toml", 'reference = "reference.py:scale"', "")
        ended = expect_success(tmp_path, "check", problem, "--json", "--device", "0")
        assert ended.err == ""
        device = {"problem": "tiny", "device": "simulated device"}
        assert ended.json == {
            **device,
            "cases": ended.json["cases"],
            "right": True,
            "feasible": None,
            "notes": [],
        }
        assert "no reference given" in tunesmith(tmp_path, "check", problem).out


@pytest.mark.slow
@needs_opencl
@pytest.mark.long
def test_a_launch_with_far_more_than_the_kernel_uses_is_reported_everywhere(tmp_path: Path) -> None:
    problem = tiny.opencl(tmp_path / "problem")
    tiny.spoil(problem / "problem.toml", 'grid = ["ceildiv(n, 64)"]', 'grid = ["n"]')
    tiny.spoil(problem / "problem.toml", "one_of = [8, 64]", "one_of = [8, 4096]")
    tiny.spoil(problem / "problem.toml", "n = 64", "n = 4096")
    note = "times the work-items that the kernel uses"
    ended = expect_success(tmp_path, "explain", problem)
    (line,) = [line for line in ended.out.splitlines() if line.startswith("note: ")]
    assert note in line
    assert line in tunesmith(tmp_path, "check", problem).out.splitlines()
    template = ("--template", problem / "template.cl", "--evals", 2, "--out", "run")
    ended = expect_success(tmp_path, "tune", problem, *template)
    assert " note: at " in ended.err.splitlines()[0]
    assert note in ended.err.splitlines()[0]
    assert note in ended.out
    assert note in (tmp_path / "run" / "report.md").read_text()
    launch, workers = report_in(tmp_path / "run")["notes"]
    assert launch == line.removeprefix("note: ")
    assert workers.startswith("workers are sandboxed (")
    assert note in tunesmith(tmp_path, "report", "run").out


class TestTune:
    @pytest.mark.long
    def test_json_is_the_report_whatever_the_budget(self, finished: Path, tmp_path: Path) -> None:
        problem = finished / "problem"
        huge = "9" * 30
        budgets = ("--evals", huge, "--time", "inf", "--seed", huge)
        arguments = ("--template", problem / "template.fake", "--out", "run", "--no-cache", "--json")
        ended = expect_success(tmp_path, "tune", problem, *arguments, *budgets)
        assert ended.err == ""
        assert ended.json == report_in(tmp_path / "run")
        assert ended.json["general"] == {"BLOCK": 32}
        assert ended.json["seed"] == int(huge)
        assert ended.json["evaluations"] == {"ok": 4}

    def test_no_gain_is_a_result(self, tmp_path: Path) -> None:
        problem = tiny.fake(tmp_path / "problem")
        tiny.spoil(problem / "template.fake", '"100 * BLOCK"', '"90000 + BLOCK"')
        ended = expect_success(
            tmp_path, "tune", problem, "--template", problem / "template.fake", "--evals", 1
        )
        assert "the original stays" in ended.out

    def test_when_nothing_builds_nothing_is_measured_and_the_reason_is_shown(self, tmp_path: Path) -> None:
        problem = tiny.fake(tmp_path / "problem")
        tiny.spoil(problem / "template.fake", '"100 * BLOCK"', '"100 * BLOCK"\n// fault = "1"')
        ended = expect_success(
            tmp_path, "tune", problem, "--template", problem / "template.fake", "--out", "run"
        )
        assert "nothing worked   BLOCK=64: build_failed, " in ended.out
        assert "the original stays" in ended.out
        assert not events_in(tmp_path / "run", "Measured")

    @pytest.mark.parametrize(("flag", "pruned"), [("--prune", 1), ("--no-prune", 0)])
    @pytest.mark.few(1)
    def test_what_its_build_condemns_is_measured_only_where_it_is_asked_for(
        self, tmp_path: Path, flag: str, pruned: int
    ) -> None:
        problem = tiny.fake(tmp_path / "problem")
        fault = '"100 * BLOCK"\n// fault = "1 if BLOCK == 32 else 0"'
        tiny.spoil(problem / "template.fake", '"100 * BLOCK"', fault)
        named = ("--template", problem / "template.fake", "--search", "exhaustive", "--out", "run")
        ended = expect_success(tmp_path, "tune", problem, *named, flag, "--json")
        assert len(events_in(tmp_path / "run", "Pruned")) == pruned
        assert ended.json["evaluations"] == ({"ok": 3} if pruned else {"ok": 3, "build_failed": 1})
        assert [p["rule"] for p in ended.json["pruned"]] == ["cannot_run"] * pruned
        assert [f["status"] for f in ended.json["failures"]] == ["build_failed"]

    @pytest.mark.long
    def test_runs_begun_at_once_get_a_folder_each(self, tmp_path: Path) -> None:
        problem = tiny.fake(tmp_path / "problem")
        command = ("tune", problem, "--template", problem / "template.fake", "--evals", 1)
        both = [start(tmp_path, *command) for _ in range(2)]
        assert [p.communicate()[1] and p.returncode for p in both] == [0, 0]
        assert {p.name for p in (tmp_path / "tunesmith-runs").iterdir()} == {"tiny-1", "tiny-2"}


class TestReport:
    def test_the_newest_run_unless_named(self, finished: Path) -> None:
        ended = expect_success(finished, "report")
        assert ended.err == ""
        assert "tunesmith-runs/tiny-2/report.md" in ended.out
        ended = tunesmith(finished, "report", "tunesmith-runs/tiny-1")
        assert "tunesmith-runs/tiny-1/report.md" in ended.out

    def test_formats(self, finished: Path) -> None:
        run = finished / "tunesmith-runs" / "tiny-2"
        markdown = expect_success(finished, "report", "--format", "md")
        assert markdown.out == (run / "report.md").read_text()
        for arguments in (["--html"], ["--format", "html"]):
            page = expect_success(finished, "report", *arguments)
            assert page.out == (run / "report.html").read_text()
        assert "kernel.fake" in page.out, "the kernel before and after"
        for arguments in (["--format", "json"], ["--format", "md", "--json"]):
            ended = expect_success(finished, "report", *arguments)
            assert ended.json == report_in(run)
            assert ended.out.count("\n") == 1

    def test_of_a_run_that_is_not_finished(self, finished: Path, tmp_path: Path) -> None:
        run = unfinished(tmp_path, finished / "tunesmith-runs" / "tiny-1")
        before = {p: p.stat().st_mtime_ns for p in run.rglob("*")}
        ended = expect_success(tmp_path, "report", "run")
        says(ended.out, "stopped", "not finished, after")
        assert ended.out.endswith("resume it with   tunesmith resume run\n")
        for form in ("md", "json"):
            assert tunesmith(tmp_path, "report", "run", "--format", form).code == 0
        assert {p: p.stat().st_mtime_ns for p in run.rglob("*")} == before, "a report changes nothing"

    def test_of_a_run_that_another_process_is_at_work_on(self, finished: Path, tmp_path: Path) -> None:
        run = unfinished(tmp_path, finished / "tunesmith-runs" / "tiny-1", b'"Measured"')
        (run / "certificate.json").unlink()
        with (run / "lock").open("w") as held:  # as the process at work does
            fcntl.flock(held, fcntl.LOCK_EX)
            ended = expect_success(tmp_path, "report", "run")
            says(ended.out, "live", "running", "s so far", "best so far", "by the search, not verified")
            for word in ("not finished", "stopped", "interrupted", "resume"):
                assert word not in ended.out
            shown = tunesmith(tmp_path, "report", "run", "--json").json
            assert (shown["live"], shown["finished"], shown["reason"]) == (True, False, "running")
            says(tunesmith(tmp_path, "report", "run", "--format", "md").out, "live: running", "s so far")
        killed = tunesmith(tmp_path, "report", "run")
        says(killed.out, "stopped", "not finished", "best so far", "by the search, not verified")
        assert killed.out.endswith("resume it with   tunesmith resume run\n")
        assert tunesmith(tmp_path, "report", "run", "--json").json["live"] is False

    def test_all_the_rest(self, finished: Path) -> None:
        short, full = (tunesmith(finished, "report", *words).out for words in ((), ("--full",)))
        assert "--full" in short
        assert "evaluations" not in short
        says(full, "2 evaluations", "2 ok")
        says(full, "== Effect of each parameter, by the search, not verified")

    def test_of_a_run_with_nothing_but_its_start(self, finished: Path, tmp_path: Path) -> None:
        run = unfinished(tmp_path, finished / "tunesmith-runs" / "tiny-1")
        (run / "journal.jsonl").write_bytes((run / "journal.jsonl").read_bytes().splitlines(keepends=True)[0])
        ended = expect_success(tmp_path, "report", "run")
        assert ended.out.startswith("tiny on simulated device\n")


class TestResume:
    def test_goes_on_and_delivers(self, finished: Path, tmp_path: Path) -> None:
        whole = finished / "tunesmith-runs" / "tiny-1"
        run = unfinished(tmp_path, whole)
        ended = expect_success(tmp_path, "resume", "run", "--json")
        assert ended.err == ""
        assert ended.json["finished"] is True
        assert {p.name for p in run.iterdir()} == {p.name for p in whole.iterdir()}

    def test_of_a_finished_run_shows_it_again(self, finished: Path) -> None:
        newest = finished / "tunesmith-runs" / "tiny-2"
        events = len(journal(newest))
        ended = expect_success(finished, "resume")
        assert "tiny-2/report.md" in ended.out
        assert len(journal(newest)) == events

    def test_of_one_that_was_killed_after_its_last_event_tidies_up(
        self, finished: Path, tmp_path: Path
    ) -> None:
        run = shutil.copytree(finished / "tunesmith-runs" / "tiny-1", tmp_path / "run")
        (run / "scratch").mkdir()
        (run / "scratch" / "left").write_text("behind")
        expect_success(tmp_path, "resume", "run")
        assert not (run / "scratch").exists()

    @pytest.mark.timeout(200)
    @pytest.mark.long
    def test_after_an_interrupt(self, tmp_path: Path) -> None:
        process = self.half_done(tmp_path)
        process.send_signal(signal.SIGSTOP)  # however slow the next command is, the run is still there
        ended = tunesmith(tmp_path, "resume", "my run", "--json")
        process.send_signal(signal.SIGCONT)
        assert ended.code == 2
        says(ended.err, "my run:", f"process {process.pid} is working", "run folder")
        says(ended.json["hint"], "wait", "--out")
        self.interrupt(tmp_path, process, signal.SIGINT)
        assert not (tmp_path / "my run" / "scratch").exists()
        ended = expect_success(tmp_path, "resume", "my run", "--json")
        assert ended.json["finished"] is True
        assert sum(ended.json["evaluations"].values()) == 40
        assert processes_in(tmp_path) == []

    @pytest.mark.long
    def test_asked_politely_several_times(self, tmp_path: Path) -> None:
        process = self.half_done(tmp_path)
        self.interrupt(tmp_path, process, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

    def half_done(self, folder: Path) -> subprocess.Popen[str]:
        scale = FIXTURES / "scale"
        arguments = ("--template", scale / "template.fake", "--no-cache", "--evals", 40, "--out", "my run")
        process = start(folder, "tune", scale, *arguments)
        wait_for_events(folder / "my run", 8, process)
        return process

    def interrupt(self, folder: Path, process: subprocess.Popen[str], *signals: signal.Signals) -> None:
        for number in signals:
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert out == ""
        assert err.splitlines()[-2:] == [
            "error: my run: interrupted; nothing is lost",
            "hint: go on with: tunesmith resume 'my run'",
        ]
        assert "Traceback" not in err
        assert wait_until_alone(folder) == []
        assert list((folder / "tmp").iterdir()) == []


class TestDevicesAndDoctor:
    def test_devices(self, tmp_path: Path) -> None:
        ended = expect_success(tmp_path, "devices", "--backend", "fake")
        assert ended.err == ""
        assert "simulated device" in ended.out
        ended = expect_success(tmp_path, "devices", "--json")
        assert "fake" in [device["backend"] for device in ended.json]

    def test_doctor(self, tmp_path: Path) -> None:
        ended = expect_success(tmp_path, "doctor")
        assert ended.err == ""
        assert all(line.startswith(("ok ", "missing ", " ")) for line in ended.out.splitlines())
        ended = tunesmith(tmp_path, "doctor", "--json")
        assert {k: ended.json[0][k] for k in ("what", "usable")} == {"what": "Python", "usable": True}

    @pytest.mark.long
    def test_where_a_driver_cannot_be_loaded(self, tmp_path: Path) -> None:
        broken = tmp_path / "broken" / "pyopencl"
        broken.mkdir(parents=True)
        (broken / "__init__.py").write_text(
            'raise ImportError("libOpenCL.so.1: cannot open shared object file")'
        )
        problem = tiny.opencl(tmp_path / "problem")

        def run(*arguments: object) -> subprocess.CompletedProcess[str]:
            paths = os.pathsep.join([str(broken.parent), os.environ.get("PYTHONPATH", "")])
            return subprocess.run(
                [sys.executable, "-m", "tunesmith", *map(str, arguments)],
                env={**environment(tmp_path), "PYTHONPATH": paths},
                cwd=tmp_path,
                capture_output=True,
                text=True,
            )

        why = "pyopencl cannot be loaded: libOpenCL.so.1: cannot open shared object file"
        ended = run("check", problem)
        assert (ended.returncode, ended.stdout) == (5, "")
        error, hint = ended.stderr.splitlines()
        assert error == f"error: {why}"
        says(hint, "hint:", "tunesmith doctor")
        ended = run("devices", "--json")
        assert ended.returncode == 0
        assert {device["backend"] for device in json.loads(ended.stdout)} - {"cuda", "cpu"} == {"fake"}
        assert why in ended.stderr.splitlines()
        ended = run("doctor")
        assert ended.returncode == 0
        assert f"missing  OpenCL device: {why}\n" in ended.stdout
        assert "pip install 'tunesmith[opencl]'" in ended.stdout
