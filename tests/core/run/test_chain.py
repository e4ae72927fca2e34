"""The chain of a journal: whatever is done to its lines, it no longer carries what follows."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.run.test_store import EVENTS, Clock, written
from tests.thoroughness import examples
from tests.wording import says
from tunesmith.base.codec import encode_json
from tunesmith.base.errors import BadInput
from tunesmith.base.text import sha256_hex
from tunesmith.run.events import Decided, Event, Recorded, Stopped
from tunesmith.run.folder import CERTIFICATE, FileJournal
from tunesmith.run.journal import (
    FIRST,
    UNCHAINED,
    ChainHead,
    chain_fault,
    decode_line,
    encode_record,
    head_of,
    is_broken,
)
from tunesmith.run.state import fold_records


def chained(events: list[Event]) -> list[bytes]:
    lines: list[bytes] = []
    for number, event in enumerate(events):
        before = sha256_hex(lines[-1]) if lines else FIRST
        lines.append(encode_record(Recorded(number, float(number), event), before))
    return lines


LINES = chained(EVENTS)


def faults(path: Path, lines: list[bytes]) -> list[str]:
    """Of each record, why it does not count."""
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return [record.fault for record in FileJournal(path, Clock()).read()]


def noticed(path: Path, lines: list[bytes]) -> bool:
    try:
        return any(map(is_broken, faults(path, lines)))
    except BadInput:  # not even a journal
        return True


def certified(folder: Path, head: ChainHead) -> Path:
    (folder / CERTIFICATE).write_bytes(encode_json({"journal": head, "claims": []}))
    return folder / "journal.jsonl"


def test_what_is_written_is_chained(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, EVENTS)
    data = path.read_bytes()
    assert not any(record.fault for record in FileJournal(path, Clock()).read())
    assert (
        head_of(data) == head_of(data + b"torn") == ChainHead(len(EVENTS), sha256_hex(data.splitlines()[-1]))
    )
    assert head_of(b"") == head_of(b"torn") == ChainHead(0, FIRST)


@given(line=st.integers(0, len(LINES) - 2), place=st.floats(0, 1), change=st.integers(1, 255))
@examples(200)
def test_no_byte_of_a_line_can_be_changed(
    tmp_path_factory: pytest.TempPathFactory, line: int, place: float, change: int
) -> None:
    at = int(place * (len(LINES[line]) - 1))
    byte = LINES[line][at] ^ change
    spoilt = LINES[line][:at] + bytes([byte]) + LINES[line][at + 1 :]
    lines = [*LINES[:line], *spoilt.split(b"\n"), *LINES[line + 1 :]]
    assert noticed(tmp_path_factory.getbasetemp() / "changed.jsonl", lines)


def test_the_line_that_was_changed_is_named_and_what_follows_it_does_not_count(tmp_path: Path) -> None:
    lines = [*LINES]
    lines[4] = lines[4].replace(b"an earlier run", b"another run")
    found = faults(tmp_path / "journal.jsonl", lines)
    assert found[:4] == [""] * 4
    for reason in found[4:]:
        says(reason, "changed", "line 5", "line 6", "digest")


def test_the_last_line_is_held_by_the_certificate(tmp_path: Path) -> None:
    path = certified(tmp_path, head_of(b"".join(line + b"\n" for line in LINES)))
    assert not any(faults(path, LINES))
    assert noticed(path, [*LINES[:-1], LINES[-1].replace(b"a reason", b"another")])


@pytest.mark.parametrize("strips", [False, True])
def test_a_journal_written_anew_is_not_the_one_that_was_certified(tmp_path: Path, strips: bool) -> None:
    events = [*EVENTS[:3], Decided("search", "another"), *EVENTS[4:]]
    anew = [encode_record(Recorded(n, 0.0, e)) for n, e in enumerate(events)] if strips else chained(events)
    assert not noticed(tmp_path / "journal.jsonl", anew)
    path = certified(tmp_path, head_of(b"".join(line + b"\n" for line in LINES)))
    for reason in faults(path, anew):
        says(reason, "changed", "certificate")
    shorter = chained([*EVENTS[:4], Stopped("early")])
    for reason in faults(path, shorter):
        says(reason, "changed", "certificate", str(len(LINES)))


def test_a_journal_that_is_cut_is_a_valid_one_that_has_not_ended(tmp_path: Path) -> None:
    path = certified(tmp_path, head_of(b"".join(line + b"\n" for line in LINES)))
    assert not any(faults(path, LINES[:-1]))


@pytest.mark.parametrize(
    "lines",
    [
        [*LINES[:3], LINES[4], LINES[3], *LINES[5:]],
        [*LINES[:3], LINES[3], *LINES[3:]],
        [*LINES[:3], *LINES[4:]],
        LINES[1:],
        [LINES[0].replace(FIRST.encode(), sha256_hex(b"other").encode()), *LINES[1:]],
        [*LINES[:3], encode_record(Recorded(3, 3.0, EVENTS[3])), *LINES[4:]],
    ],
    ids=["swapped", "twice", "left out", "without the first", "another first", "one unchained"],
)
def test_lines_cannot_be_moved_added_or_taken_away(tmp_path: Path, lines: list[bytes]) -> None:
    assert noticed(tmp_path / "journal.jsonl", lines)


def test_an_inserted_line_with_numbers_made_to_fit(tmp_path: Path) -> None:
    events = [*EVENTS[:4], Decided("search", "inserted"), *EVENTS[4:]]
    lines = chained(events)
    mixed = [
        *lines[:5],
        *(encode_record(Recorded(n, 0.0, events[n]), sha256_hex(LINES[n - 2])) for n in range(5, 12)),
    ]
    says(faults(tmp_path / "journal.jsonl", mixed)[-1], "changed", "line 5")


def test_a_journal_of_an_earlier_version_is_read_and_proves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    old = [
        encode_record(Recorded(n, 0.0, event)).replace(b'"before":"",', b"") for n, event in enumerate(EVENTS)
    ]
    assert b"before" not in b"".join(old)
    assert set(faults(path, old)) == {UNCHAINED}
    journal = FileJournal(path, Clock())
    assert fold_records(journal.read()).unproven == UNCHAINED
    journal.append(Stopped("again"))
    journal.close()
    assert {record.fault for record in FileJournal(path, Clock()).read()} == {UNCHAINED}


@given(cut=st.integers(0, sum(map(len, LINES)) + len(LINES)))
@examples(60)
def test_whatever_a_kill_leaves_goes_on_in_one_chain(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "killed.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in LINES)[:cut])
    journal = FileJournal(path, Clock())
    list(journal.read())
    journal.append(Decided("search", "on"))
    journal.append(Stopped("again"))
    journal.close()
    assert not any(record.fault for record in FileJournal(path, Clock()).read())


def test_checking_a_long_chain_is_a_small_part_of_reading_it(tmp_path: Path) -> None:
    lines = chained([EVENTS[0], *([EVENTS[8]] * 7999)])
    assert not any(faults(tmp_path / "journal.jsonl", lines))
    carried = [decode_line(line)[1] for line in lines]
    taken = []
    for _ in range(5):
        began = time.process_time()
        assert chain_fault(lines, carried) is None
        taken.append(time.process_time() - began)
    assert min(taken) < 0.1
