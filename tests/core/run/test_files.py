"""A file is there whole or not at all, nothing else is left behind, and no link is followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.wording import says
from tunesmith.base.errors import BadInput
from tunesmith.base.files import (
    NotPlain,
    explain_disk_errors,
    private_folder,
    read_plain,
    remove_partial,
    remove_tree,
    write_new,
    write_whole,
)
from tunesmith.run.folder import JOURNAL, LOCK, OBJECTS, SCRATCH, CeilingsCache, RunFolder, SqliteCache


def test_what_is_written_replaces_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "file"
    for data in (b"first", b"second, longer"):
        write_whole(target, data)
        assert target.read_bytes() == data
    assert list(tmp_path.iterdir()) == [target]


def test_a_disk_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "file"
    write_whole(target, b"old")

    def fails(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="No space"):
        write_whole(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_the_name_until_it_is_whole_cannot_be_foreseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    replace = Path.replace

    def watched(self: Path, target: Path) -> Path:
        seen.append(self.name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    for _ in range(2):
        write_whole(tmp_path / "file", b"x")
    assert len(set(seen)) == 2
    assert all(name.startswith(".file.") and name.endswith(".part") for name in seen)


def test_what_a_killed_process_left_is_swept_by_whoever_holds_the_folder(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run").unlock()
    for name in (".report.md.0123.part", f"{OBJECTS}/.abc.4567.part"):
        (tmp_path / "run" / name).write_bytes(b"half")
    folder = RunFolder(tmp_path / "run")
    folder.lock()
    folder.unlock()
    assert not list((tmp_path / "run").rglob("*.part"))
    remove_partial(tmp_path / "nothing")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    (tmp_path / "victim").write_bytes(b"precious")
    return tmp_path / "victim"


def a_link(victim: Path, place: Path) -> None:
    place.symlink_to(victim)


def a_pipe(_victim: Path, place: Path) -> None:
    os.mkfifo(place)


def a_folder(_victim: Path, place: Path) -> None:
    place.mkdir()


def a_device(_victim: Path, place: Path) -> None:
    place.symlink_to("/dev/zero")


INSTEAD = pytest.mark.parametrize("instead", [a_link, a_pipe, a_folder, a_device])
Instead = Callable[[Path, Path], None]


@INSTEAD
def test_only_a_plain_file_is_read(tmp_path: Path, victim: Path, instead: Instead) -> None:
    instead(victim, tmp_path / "file")
    with pytest.raises(NotPlain):
        read_plain(tmp_path / "file")
    assert read_plain(victim, 4) == b"prec", "no more than was asked for"


def test_a_link_in_place_of_the_target_is_replaced_and_not_followed(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "file").symlink_to(victim)
    write_whole(tmp_path / "file", b"new")
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "file").is_symlink()


def test_nothing_new_is_written_through_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "file").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "file", b"x")
    assert not (tmp_path / "elsewhere").exists()


def test_of_a_tree_that_is_a_link_the_link_goes(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "kept").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "tree")
    remove_tree(tmp_path / "link")
    assert (tmp_path / "tree" / "kept").exists()
    assert not (tmp_path / "link").is_symlink()


class TestRunFolder:
    @INSTEAD
    def test_its_journal(self, tmp_path: Path, victim: Path, instead: Instead) -> None:
        folder = RunFolder.create(tmp_path / "run")
        instead(victim, tmp_path / "run" / JOURNAL)
        with pytest.raises(BadInput) as caught:
            list(folder.journal().read())
        says(f"{caught.value} {caught.value.hint}", "journal", "plain file")
        with pytest.raises(BadInput):
            folder.journal()._open_after_last_whole_line()
        folder.unlock()
        assert victim.read_bytes() == b"precious"

    def test_its_lock(self, tmp_path: Path, victim: Path) -> None:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / LOCK).symlink_to(victim)
        with pytest.raises(BadInput, match="link"):
            RunFolder(tmp_path / "run").lock()
        assert victim.read_bytes() == b"precious"

    @INSTEAD
    def test_its_texts(self, tmp_path: Path, victim: Path, instead: Instead) -> None:
        folder = RunFolder.create(tmp_path / "run")
        digest = folder.put(b"precious")
        (tmp_path / "run" / OBJECTS / digest).unlink()
        instead(victim, tmp_path / "run" / OBJECTS / digest)
        with pytest.raises(BadInput, match="lost its file"):
            folder.get(digest)
        assert not folder.holds(f"{OBJECTS}/{digest}", digest)
        folder.unlock()

    def test_its_results_and_its_scratch(self, tmp_path: Path) -> None:
        folder = RunFolder.create(tmp_path / "run")
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "precious").write_text("x")
        for name in ("tuned", "tuned.new", SCRATCH):
            (tmp_path / "run" / name).symlink_to(tmp_path / "home")
        folder.replace_folder("tuned", {"kernel.cl": b"k"})
        assert not folder.fresh_scratch().is_symlink()
        folder.remove_scratch()
        folder.unlock()
        assert [p.name for p in (tmp_path / "home").iterdir()] == ["precious"]
        assert not (tmp_path / "run" / "tuned").is_symlink()

    def test_a_folder_on_the_way_may_be_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "large-disk").mkdir()
        (tmp_path / "runs").symlink_to(tmp_path / "large-disk")
        folder = RunFolder.create(tmp_path / "runs" / "run")
        assert folder.get(folder.put(b"text")) == b"text"
        folder.unlock()
        assert (tmp_path / "large-disk" / "run" / LOCK).exists()


class TestCaches:
    def test_timings(self, tmp_path: Path, victim: Path) -> None:
        notes: list[str] = []
        (tmp_path / "results.sqlite").symlink_to(victim)
        SqliteCache(tmp_path / "results.sqlite", notes.append).close()
        assert victim.read_bytes() == b"precious"
        says(notes[0], "without the result cache", "link")

    def test_ceilings(self, tmp_path: Path, victim: Path) -> None:
        from tests.samples import DEVICE

        (tmp_path / "ceilings").mkdir()
        (tmp_path / "ceilings" / f"{DEVICE.key}.json").symlink_to(victim)
        assert CeilingsCache(tmp_path).get(DEVICE) is None


@pytest.mark.parametrize(
    ("number", "said"),
    [(28, "free some room"), (122, "free some room"), (27, "free some room"), (30, "make it writable")],
)
def test_what_a_disk_can_do_is_said_for_what_it_is(tmp_path: Path, number: int, said: str) -> None:
    with pytest.raises(BadInput) as caught, explain_disk_errors("write", tmp_path):
        raise OSError(number, os.strerror(number))
    says(f"{caught.value} {caught.value.hint}", os.strerror(number), said)


class TestPrivateFolder:
    @pytest.fixture(autouse=True)
    def temporary(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        return tmp_path

    def test_is_ours_alone_and_there_again(self, tmp_path: Path) -> None:
        found = private_folder()
        assert private_folder() == found == tmp_path / f"tunesmith-{os.getuid()}"
        assert stat.S_IMODE(found.stat().st_mode) == 0o700

    @pytest.mark.parametrize("prepared", ["link", "open to all", "file"])
    def test_one_that_somebody_else_prepared_is_not_used(self, tmp_path: Path, prepared: str) -> None:
        place = tmp_path / f"tunesmith-{os.getuid()}"
        if prepared == "link":
            (tmp_path / "theirs").mkdir(mode=0o700)
            place.symlink_to(tmp_path / "theirs")
        elif prepared == "file":
            place.write_text("")
        else:
            place.mkdir()
            place.chmod(0o777)
        found = private_folder()
        assert found != place
        assert stat.S_IMODE(found.stat().st_mode) == 0o700
