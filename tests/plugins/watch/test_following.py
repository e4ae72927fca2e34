"""A journal that is read as it grows."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.run.test_loop import Run
from tunesmith.plugins.watch.following import (
    LONGEST_LAG,
    MAX_OWED,
    MAX_SAVED,
    READING,
    FollowedRun,
    Pace,
    ProcessorShare,
)
from tunesmith.plugins.watch.pages import live_fields
from tunesmith.run.events import Instructed, Recorded, Settings
from tunesmith.run.folder import FolderInbox
from tunesmith.run.journal import encode_record
from tunesmith.run.state import fold_records


@pytest.fixture(scope="module")
def records() -> list[Recorded]:
    run = Run(Settings(evals=20))
    run.go()
    first = run.journal.records[0]
    begun = replace(first.event, template="")  # type: ignore[type-var]
    return [replace(first, event=begun), *run.journal.records[1:]]


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield tmp_path


def lines(records: list[Recorded]) -> bytes:
    return b"".join(encode_record(record) + b"\n" for record in records)


def test_what_is_seen_is_the_fold_of_what_is_there(held: Path, records: list[Recorded]) -> None:
    followed, journal = FollowedRun(held), held / "journal.jsonl"
    journal.write_bytes(b"")
    assert followed.look().now.phase == "starting"
    for count in (1, 5, 6, 20, len(records)):
        journal.write_bytes(lines(records[:count]))
        seen = followed.look()
        assert seen.fault == ""
        assert seen.state == fold_records(records[:count])
        assert seen.live
    assert seen.now.ended


def test_a_line_that_is_not_whole_waits_until_it_is(held: Path, records: list[Recorded]) -> None:
    followed, journal, data = FollowedRun(held), held / "journal.jsonl", lines(records[:6])
    journal.write_bytes(data[:-20])
    assert followed.look().state.events == 5
    journal.write_bytes(lines(records[:5]))  # as a run does that goes on
    assert followed.look().state.events == 5
    journal.write_bytes(lines(records[:7]))
    assert followed.look().state.events == 7


def test_a_journal_that_became_shorter_is_read_anew(held: Path, records: list[Recorded]) -> None:
    followed, journal = FollowedRun(held), held / "journal.jsonl"
    journal.write_bytes(lines(records[:9]))
    followed.look()
    journal.write_bytes(lines(records[:3]))
    assert followed.look().state == fold_records(records[:3])


@pytest.mark.parametrize("bad", [b"nonsense\n", b'{"number": 99}\n', b"[]\n"])
def test_what_cannot_be_meant_is_a_fault_and_no_error(
    held: Path, records: list[Recorded], bad: bytes
) -> None:
    (held / "journal.jsonl").write_bytes(lines(records[:5]) + bad)
    seen = FollowedRun(held).look()
    assert seen.state.events == 5
    assert "event 5 of the journal cannot be meant" in seen.fault
    assert "cannot be meant" in FollowedRun(held).look().fault


def test_no_link_is_followed(held: Path, records: list[Recorded]) -> None:
    (held / "other").write_bytes(lines(records[:5]))
    (held / "journal.jsonl").symlink_to(held / "other")
    assert "cannot be read" in FollowedRun(held).look().fault


def test_what_was_asked_and_is_not_taken_up(held: Path, records: list[Recorded]) -> None:
    (held / "journal.jsonl").write_bytes(lines(records[:5]))
    FolderInbox(held).put("hint", "BLOCK=64")
    stop = FolderInbox(held).put("stop")
    assert FollowedRun(held).look().waiting == ("hint BLOCK=64", "stop")
    taken = replace(records[5], event=Instructed(stop, "stop"))
    (held / "journal.jsonl").write_bytes(lines([*records[:5], taken]))
    seen = FollowedRun(held).look()
    assert (seen.fault, seen.state.events, seen.waiting) == ("", 6, ("hint BLOCK=64",))


def test_nobody_at_work(tmp_path: Path, records: list[Recorded]) -> None:
    (tmp_path / "journal.jsonl").write_bytes(lines(records[:5]))
    assert not FollowedRun(tmp_path).look().live


def test_what_comes_faster_than_it_may_be_read_is_read_in_parts_and_all_of_it_after_a_while(
    held: Path, records: list[Recorded]
) -> None:
    clock = [0.0]
    followed, journal = FollowedRun(held, clock=lambda: clock[0]), held / "journal.jsonl"
    journal.write_bytes(lines(records[:3]))
    assert followed.look(most=0.0).state.events == 3, "the first time all"
    journal.write_bytes(lines(records[:30]))
    seen = followed.look(most=0.0)
    assert (seen.state.events, seen.is_behind) == (11, True)
    assert live_fields(replace(seen, since=3.0)).doing.endswith(", 3 s ago")
    assert followed.look(most=-1.0).state.events == 19
    clock[0] += LONGEST_LAG
    seen = followed.look(most=0.0)
    assert (seen.state, seen.is_behind) == (fold_records(records[:30]), False)
    assert not live_fields(replace(seen, since=3.0)).doing.endswith("ago")
    journal.write_bytes(lines(records[:50]))
    assert followed.look(most=60.0).state == fold_records(records[:50])


def test_of_a_run_that_is_over_it_is_told_at_once_and_read_to_its_end_for_its_page(
    tmp_path: Path, records: list[Recorded]
) -> None:
    journal = tmp_path / "journal.jsonl"
    followed = FollowedRun(tmp_path)
    journal.write_bytes(lines(records[:3]))
    followed.look(most=0.0)
    journal.write_bytes(lines(records))
    seen = followed.look(most=0.0)
    assert (seen.live, seen.is_behind) == (False, True)
    assert live_fields(seen).status == "over"
    seen = followed.look()
    assert (seen.state, seen.is_behind) == (fold_records(records), False)
    assert live_fields(seen).status == "finished"


def test_how_long_ago_it_was_counts_from_what_was_read(held: Path, records: list[Recorded]) -> None:
    followed, journal = FollowedRun(held), held / "journal.jsonl"
    at = [replace(record, at=float(place)) for place, record in enumerate(records[:30])]
    journal.write_bytes(lines(at[:10]))
    os.utime(journal, (time.time() - 100, time.time() - 100))
    assert followed.look().since == pytest.approx(100, abs=5)
    journal.write_bytes(lines(at))
    assert followed.look(most=0.0).since == pytest.approx(100 - 8, abs=5)


def test_what_is_taken_is_paid_for_by_waiting() -> None:
    clock, processor = [0.0], [0.0]
    allowance = ProcessorShare(lambda: clock[0], lambda: processor[0])
    assert allowance.seconds() == 0
    clock[0] += 1
    assert allowance.seconds() == pytest.approx(READING)
    clock[0] += 3600
    assert allowance.seconds() == pytest.approx(MAX_SAVED * READING), "an hour is not saved up"
    processor[0] += MAX_SAVED * READING + 2 * READING
    assert allowance.seconds() == pytest.approx(-2 * READING)
    processor[0] += 60
    assert allowance.seconds() == pytest.approx(-MAX_OWED * READING)


def test_pages_are_paced_by_what_the_processor_gave() -> None:
    clock, processor = [0.0], [0.0]
    pace = Pace(lambda: clock[0], lambda: processor[0])
    assert pace.is_due
    for took, beside, pause in ((0.001, 0.0, 3.0), (0.1, 0.0, 20.0), (0.1, 0.02, 24.0), (0.1, 9.0, 100.0)):
        pace.begin()
        processor[0] += took
        pace.end(costs_a_run=True)
        processor[0] += beside
        clock[0] += pause - 0.01
        assert not pace.is_due
        clock[0] += 0.02
        assert pace.is_due
    pace.begin()
    processor[0] += 1.0
    pace.end(costs_a_run=False)
    assert pace.is_due
