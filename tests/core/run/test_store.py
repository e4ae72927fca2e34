"""Runs on disk, and what a kill, a full disk, a second process or a meddling hand can do to them."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import baseline, built, config, finalist, started, verified
from tests.thoroughness import examples
from tunesmith.base.errors import BadInput
from tunesmith.base.text import digest_of, sha256_hex
from tunesmith.problem.plan import Status
from tunesmith.run import events as ev
from tunesmith.run.config import RunConfig
from tunesmith.run.folder import PLAN, FileJournal, RunFolder, newest_run, resume_command
from tunesmith.run.journal import FIRST, encode_record

LONG = finalist(0, config(64), {"small": 2.0, "wide": 1.5})
EVENTS: list[ev.Event] = [
    started(),
    baseline({"small": 1.0, "wide": 2.0}),
    ev.Admitted("t", 3, 9),
    ev.Decided("search", "µs are not ASCII"),
    ev.Primed("an earlier run", ((config(32), 0.25), (config(128), None))),
    ev.Asked((LONG.trial, replace(LONG.trial, id=1, effort="build")), 0.125),
    built(config(32), spills=8, occupancy=50, refused={"wide": Status.OVER_LIMITS}),
    ev.Pruned(config(32), "same_code", "builds and launches the same as another"),
    ev.Measured(LONG),
    verified(config(64), {"small": 2.0}),
    ev.Stopped("a reason\nwith two lines"),
]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def written(path: Path, events: list[ev.Event]) -> list[ev.Recorded]:
    journal = FileJournal(path, Clock())
    records = [journal.append(event) for event in events]
    journal.close()
    return records


def read(path: Path) -> list[ev.Recorded]:
    return list(FileJournal(path, Clock()).read())


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    records = written(path, EVENTS)
    assert [r.event for r in records] == EVENTS
    assert [r.number for r in records] == list(range(len(EVENTS)))
    assert read(path) == records
    assert path.read_bytes().count(b"\n") == len(EVENTS)


def test_every_event_is_on_the_disk_before_append_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.jsonl"
    seen: list[bytes] = []
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        sync(descriptor)
        seen.append(path.read_bytes())

    monkeypatch.setattr(os, "fsync", fsync)
    records = written(path, EVENTS[:3])
    assert [content.count(b"\n") for content in seen] == [1, 2, 3]
    lines = seen[-1].splitlines()
    carried = [FIRST, *map(sha256_hex, lines)]
    assert lines == [encode_record(record, before) for record, before in zip(records, carried, strict=False)]


def test_a_run_goes_on_with_what_its_journal_says(tmp_path: Path) -> None:
    """A whole number is read back as a float, where that is the field's type: reports have their digits."""
    [record] = written(tmp_path / "journal.jsonl", [ev.Replied(1, ev.Reply("text", seconds=2))])
    assert isinstance(record.event, ev.Replied)
    assert repr(record.event.reply.seconds) == "2.0"


def test_the_clock_counts_the_time_at_work(tmp_path: Path) -> None:
    path, clock = tmp_path / "journal.jsonl", Clock()
    journal = FileJournal(path, clock)
    clock.now += 1.5
    journal.append(EVENTS[0])
    clock.now += 2.0
    journal.append(EVENTS[1])
    journal.close()
    clock.now += 1e6  # nobody worked
    again = FileJournal(path, clock)
    assert [r.at for r in again.read()] == [1.5, 3.5]
    clock.now += 0.25
    assert again.append(EVENTS[2]) == ev.Recorded(2, 3.75, EVENTS[2])


WHOLE = b"".join(encode_record(ev.Recorded(i, float(i), event)) + b"\n" for i, event in enumerate(EVENTS))


@given(cut=st.integers(0, len(WHOLE)))
@examples(150)
def test_a_journal_cut_anywhere_goes_on_after_its_last_whole_line(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    path.write_bytes(WHOLE[:cut])
    whole = WHOLE[:cut].count(b"\n")
    journal = FileJournal(path, Clock())
    assert [r.event for r in journal.read()] == EVENTS[:whole]
    journal.append(ev.Stopped("again"))
    journal.close()
    assert [r.event for r in read(path)] == [*EVENTS[:whole], ev.Stopped("again")]
    whole_lines = WHOLE[: WHOLE[:cut].rfind(b"\n") + 1]
    assert path.read_bytes().startswith(whole_lines)
    assert path.read_bytes().count(b"\n") == whole + 1


@pytest.mark.parametrize("tail", [b"\0" * 50, b"garbage", b'{"number":8', b"\xff\xfe"])
def test_whatever_follows_the_last_newline_is_dropped(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(WHOLE + tail)
    assert [r.event for r in read(path)] == EVENTS


@pytest.mark.parametrize("line", range(len(EVENTS)))
@pytest.mark.parametrize(
    "damage", [b"", b"garbage", b"{}", b"\0\0", b'{"number":0,"at":0,"type":"X","event":1}']
)
def test_a_damaged_line_is_named(tmp_path: Path, line: int, damage: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    lines = WHOLE.split(b"\n")
    lines[line] = damage
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(BadInput, match="the journal is damaged") as caught:
        read(path)
    assert caught.value.where == f"{path}:{line + 1}"
    assert "_Line" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("order", [[0, 2, 1, 3], [0, 1, 1, 2], [1, 2, 3], [0, 2, 3]])
def test_lines_out_of_order_are_damage(tmp_path: Path, order: list[int]) -> None:
    path = tmp_path / "journal.jsonl"
    lines = WHOLE.split(b"\n")
    path.write_bytes(b"".join(lines[i] + b"\n" for i in order))
    wrong = next(place for place, number in enumerate(order) if place != number)
    with pytest.raises(BadInput, match=f"event {order[wrong]} stands in place {wrong}") as caught:
        read(path)
    assert caught.value.where == f"{path}:{wrong + 1}"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("part", [0, 1, 40])
def test_a_disk_that_is_full_in_the_middle_of_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, part: int
) -> None:
    path = tmp_path / "journal.jsonl"
    journal = FileJournal(path, Clock())
    journal.append(EVENTS[0])
    write, room = os.write, [part]

    def full(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(code, os.strerror(code))
        size, room[0] = write(descriptor, data[: room[0]]), 0
        return size

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(BadInput, match="cannot write the journal") as caught:
        journal.append(EVENTS[1])
    assert "free some room" in (caught.value.hint or "")
    assert caught.value.where == str(path)
    journal.close()
    monkeypatch.undo()
    resumed = FileJournal(path, Clock())
    assert [r.event for r in resumed.read()] == EVENTS[:1]
    resumed.append(EVENTS[1])
    assert [r.event for r in read(path)] == EVENTS[:2]


def test_writes_that_come_in_pieces_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    records = written(tmp_path / "journal.jsonl", EVENTS)
    assert read(tmp_path / "journal.jsonl") == records


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    if shutil.which("mount") is None:
        pytest.skip("there is no mount here")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small disk can be mounted by root alone")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_disk_that_is_really_full(disk: Path) -> None:
    folder = RunFolder.create(disk / "run")
    journal = folder.journal()
    records: list[ev.Recorded] = []

    def fill() -> None:
        while True:
            records.append(journal.append(EVENTS[5]))

    with pytest.raises(BadInput, match="cannot write the journal: No space left"):
        fill()
    assert len(records) > 10
    journal.close()
    for action in (
        lambda: folder.put(b"x" * 100_000),
        lambda: folder.write("report.md", b"x" * 100_000),
        lambda: folder.replace_folder("tuned", {"a": b"x" * 100_000}),
    ):
        with pytest.raises(BadInput, match="No space left") as caught:
            action()
        assert "free some room" in (caught.value.hint or "")
    assert list(folder.journal().read()) == records
    assert not (folder.path / "tuned").exists()
    folder.unlock()


def test_a_disk_that_cannot_be_written(disk: Path) -> None:
    folder = RunFolder.create(disk / "run")
    written(disk / "run" / "journal.jsonl", EVENTS)
    digest = folder.put(b"content")
    folder.unlock()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    actions = (
        lambda: RunFolder.create(disk / "other"),
        lambda: RunFolder.create_next(disk / "runs", "scale"),
        RunFolder(disk / "run").fresh_scratch,
        lambda: RunFolder(disk / "run").put(b"other"),
        lambda: RunFolder(disk / "run").journal().append(EVENTS[0]),
    )
    for action in actions:
        with pytest.raises(BadInput, match="Read-only file system") as caught:
            action()
        assert "writable" in (caught.value.hint or "")
    here = RunFolder.open(disk / "run")
    assert [r.event for r in here.journal().read()] == EVENTS
    assert here.get(digest) == b"content"


@pytest.mark.parametrize(("wait", "more"), [(True, ""), (False, " --no-wait")])
def test_a_folder_that_holds_a_run_is_not_begun_again(tmp_path: Path, wait: bool, more: str) -> None:
    written(tmp_path / "journal.jsonl", EVENTS[:1])
    with pytest.raises(BadInput, match="already holds a run") as caught:
        RunFolder.create(tmp_path, wait)
    assert f"tunesmith resume {tmp_path}{more}; or" in caught.value.hint


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(BadInput, match=r"must be new or empty, this one holds thesis\.tex"):
        RunFolder.create(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_cannot_be_a_run_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for create in (RunFolder.create, lambda path: RunFolder.create_next(path, "scale")):
        with pytest.raises(BadInput, match="cannot create the run folder"):
            create(tmp_path / "file")


def test_what_is_no_run_cannot_be_opened(tmp_path: Path) -> None:
    for path, words in ((tmp_path, "not a run folder"), (tmp_path / "nowhere", "no such run folder")):
        with pytest.raises(BadInput, match=words):
            RunFolder.open(path)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tunesmith.run.folder import RunFolder\n"
        "RunFolder(Path(sys.argv[1])).lock(); print('held', flush=True); sys.stdin.read()"
    )
    RunFolder.create(tmp_path / "run").unlock()
    other = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path / "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdin is not None
    try:
        assert other.stdout.readline() == b"held\n"
        folder = RunFolder(tmp_path / "run")
        with pytest.raises(BadInput, match=f"process {other.pid} is working in this run folder") as caught:
            folder.lock()
        assert caught.value.where == str(tmp_path / "run")
        (tmp_path / "run" / "journal.jsonl").write_text("")
        os.utime(tmp_path / "run" / "journal.jsonl", (0, 0))
        held = folder.held_for()
        assert held is not None
        assert 0 <= held < 600, "since it has taken the folder, not since somebody else wrote there"
    finally:
        other.kill()
        other.communicate()
    assert folder.held_for() is None, "a process that dies holds nothing"
    folder.lock()  # a process that dies holds nothing
    with pytest.raises(BadInput, match="is working in this run folder"):
        RunFolder(tmp_path / "run").lock()
    folder.unlock()
    folder.unlock()
    RunFolder(tmp_path / "run").lock()


def test_who_only_looks_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To look is to hold the lock for a moment, together with others who look."""
    folder = RunFolder.create(tmp_path / "run")
    folder.unlock()
    assert folder.held_for() is None
    looking = os.open(tmp_path / "run" / "lock", os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    assert folder.held_for() is None, "somebody else looks"
    monkeypatch.setattr("time.sleep", lambda _seconds: os.close(looking))
    folder.lock()
    assert RunFolder(tmp_path / "run").held_for() is not None
    folder.unlock()
    assert RunFolder(tmp_path / "nowhere").held_for() is None


def test_a_file_system_without_locks_is_not_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(BadInput, match="cannot lock the run folder: No locks available"):
        RunFolder.create(tmp_path / "run")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    made = RunFolder.create(tmp_path / "run")
    yield made
    made.unlock()


def test_files_by_digest(folder: RunFolder) -> None:
    digest = folder.put(b"content")
    assert digest == folder.put(b"content") == digest_of(b"content")
    assert folder.get(digest) == b"content"
    stored = folder.path / "objects" / digest
    assert [p.name for p in stored.parent.iterdir()] == [digest]
    stored.write_bytes(b"Content")
    with pytest.raises(BadInput, match="has been changed"):
        folder.get(digest)
    stored.unlink()
    with pytest.raises(BadInput, match=r"has lost .*No such file"):
        folder.get(digest)


def test_a_folder_of_results_is_replaced_whole(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned = folder.path / "tuned"
    folder.replace_folder("tuned", {"a": b"1", "include/math/b.h": b"2"})
    assert (tuned / "include" / "math" / "b.h").read_bytes() == b"2"
    folder.replace_folder("tuned", {"c": b"3"})
    assert {p.name: p.read_bytes() for p in tuned.iterdir()} == {"c": b"3"}

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput, match="No space left"):
        folder.replace_folder("tuned", {"d": b"4"})
    monkeypatch.undo()
    assert [p.name for p in tuned.iterdir()] == ["c"]
    folder.replace_folder("tuned", {"e": b"5"})  # what the failed one left behind is no obstacle
    assert sorted(p.name for p in folder.path.iterdir()) == ["lock", "objects", "tuned"]


def test_scratch_is_empty_and_goes(folder: RunFolder) -> None:
    scratch = folder.fresh_scratch()
    assert scratch.is_absolute()
    (scratch / "deep").mkdir()
    (scratch / "deep" / "leftover").write_text("")
    assert list(folder.fresh_scratch().iterdir()) == []
    folder.remove_scratch()
    assert not scratch.exists()


def test_a_run_that_has_not_begun_leaves_nothing(folder: RunFolder) -> None:
    folder.put(b"content")
    folder.unlock()
    folder.discard()
    assert list(folder.path.parent.iterdir()) == []


def test_a_copied_folder_is_the_same_run(folder: RunFolder, tmp_path: Path) -> None:
    digest = folder.put(b"content")
    records = written(folder.path / "journal.jsonl", EVENTS)
    moved = RunFolder.open(Path(shutil.copytree(folder.path, tmp_path / "elsewhere" / "deep")))
    moved.lock()
    assert list(moved.journal().read()) == records
    assert moved.get(digest) == b"content"
    moved.unlock()


def test_runs_are_numbered(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    made = [RunFolder.create_next(root, "scale") for _ in range(3)]
    assert [folder.path.name for folder in made] == ["scale-1", "scale-2", "scale-3"]
    for name in ("scale-7", "scale-x", "scale-x-9", "other-12", "scale-"):
        (root / name).mkdir()
    (root / "scale-11").write_text("a file takes a name too")
    assert RunFolder.create_next(root, "scale").path.name == "scale-12"
    assert RunFolder.create_next(root, "scale-x").path.name == "scale-x-10"


def test_the_newest_run_is_the_one_written_last(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no run in .* yet"):
        newest_run(tmp_path / "nowhere")
    with pytest.raises(BadInput, match=r"no run in .* yet"):
        newest_run(tmp_path)
    for age, name in enumerate(["scale-3", "other-1", "scale-1"]):
        (tmp_path / name).mkdir()
        written(tmp_path / name / "journal.jsonl", EVENTS[:1])
        os.utime(tmp_path / name / "journal.jsonl", (0, 1000 - age))
    (tmp_path / "scale-9").mkdir()  # no journal: not a run
    assert newest_run(tmp_path) == tmp_path / "scale-3"
    os.utime(tmp_path / "other-1" / "journal.jsonl", (0, 2000))
    assert newest_run(tmp_path) == tmp_path / "other-1"


MUCH = "x" * 5000
TALK: list[ev.Event] = [
    EVENTS[0],
    ev.Requested(ev.Request(1, "planner", (ev.Message("system", "short"), ev.Message("user", MUCH)), "json")),
    ev.Replied(1, ev.Reply(MUCH + "y", ev.Usage(5, None), 1.5)),
    ev.Requested(ev.Request(2, "planner", (ev.Message("user", MUCH), ev.Message("user", "again ½")), "json")),
    ev.Replied(2, ev.Reply("brief")),
]


def test_long_texts_stand_beside_the_journal_once(folder: RunFolder) -> None:
    journal, path = folder.journal(), folder.path / "journal.jsonl"
    appended = [journal.append(event) for event in TALK]
    journal.close()
    assert [r.event for r in appended] == TALK, "who appends sees the texts"
    assert [r.event for r in folder.journal().read()] == TALK
    lines = path.read_bytes().splitlines()
    assert max(map(len, lines[1:])) < 1000
    earlier = [line.replace(b'"digest":', b'"kept":') for line in lines]  # as earlier versions called it
    path.write_bytes(b"\n".join([*earlier, b""]))
    assert earlier != lines
    assert [r.event for r in folder.journal().read()] == TALK
    assert b"brief" in lines[4]
    assert len(list((folder.path / "objects").iterdir())) == 2, "the same text is stored once"


def test_a_text_is_on_the_disk_before_the_line_that_names_it(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = folder.journal()
    journal.append(TALK[0])

    def dies(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.write", dies)
    with pytest.raises(KeyboardInterrupt):
        journal.append(TALK[1])
    monkeypatch.undo()
    assert [p.read_text() for p in (folder.path / "objects").iterdir()] == [MUCH]
    assert [r.event for r in folder.journal().read()] == TALK[:1]


def test_journals_that_hold_long_texts_themselves_are_read(folder: RunFolder) -> None:
    written(folder.path / "journal.jsonl", TALK)
    assert [r.event for r in folder.journal().read()] == TALK


def test_a_text_that_is_lost_or_changed_is_named(folder: RunFolder) -> None:
    journal = folder.journal()
    for event in TALK[:2]:
        journal.append(event)
    journal.close()
    (file,) = (folder.path / "objects").iterdir()
    file.write_text("other")
    with pytest.raises(BadInput, match="has been changed"):
        list(folder.journal().read())
    file.unlink()
    with pytest.raises(BadInput, match="has lost its file"):
        list(folder.journal().read())


def test_the_folder_of_a_comparison_is_no_run_and_says_how_it_goes_on(tmp_path: Path) -> None:
    assert resume_command(tmp_path) == f"tunesmith resume {tmp_path}"
    (tmp_path / PLAN).write_text("{}")
    go_on = f"tunesmith compare --resume {tmp_path}"
    assert resume_command(tmp_path) == go_on
    for wait, command in ((True, go_on), (False, f"{go_on} --no-wait")):
        with pytest.raises(BadInput, match="the folder of a comparison, not of a run") as caught:
            RunFolder.open(tmp_path, wait)
        assert f"{command};" in caught.value.hint


def test_who_does_not_wait_goes_on_without_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when a disk is full, wherever that is noticed."""
    folder = RunFolder.create(tmp_path / "run", wait=False)
    journal = folder.journal()
    journal.append(EVENTS[0])

    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    for action in (
        lambda: journal.append(EVENTS[0]),
        lambda: folder.write("report.md", b"x"),
        lambda: folder.replace_folder("tuned", {"a": b"x"}),
    ):
        with pytest.raises(BadInput, match="No space left") as caught:
            action()
        assert caught.value.hint == f"free some room on that disk, then: {folder.go_on}"
    assert folder.go_on == f"tunesmith resume {tmp_path / 'run'} --no-wait"
    folder.elsewhere = RunConfig(workers="our hosts.toml").elsewhere
    assert folder.go_on == f"tunesmith resume {tmp_path / 'run'} --no-wait --workers 'our hosts.toml'"
    assert (RunConfig(ray="auto").elsewhere, RunConfig().elsewhere) == (" --ray auto", "")
    journal.close()
    folder.unlock()
