"""What is written can be read, and what is damaged is Malformed and never anything else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.core.run.arbitrary import arbitrary
from tests.samples import DEVICE, config, finalist, records, started
from tests.thoroughness import examples
from tunesmith.backends.messages import REPLY_TYPES, REQUEST_TYPES
from tunesmith.base.codec import Malformed, decode_json, decode_tagged, encode_json, encode_tagged
from tunesmith.problem.device import Device
from tunesmith.problem.plan import ScalarPlan
from tunesmith.run.events import EVENT_TYPES, Measured, Recorded
from tunesmith.run.journal import decode_record, encode_record
from tunesmith.run.outcome import Outcome, Result, Timing, Trial
from tunesmith.space.configset import Config

few = examples(15, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("kind", EVENT_TYPES.values(), ids=EVENT_TYPES)
@given(data=st.data(), number=st.integers(0, 10**9), at=st.integers(0, 10**9))
@few
@pytest.mark.few(12)
def test_every_event_survives_the_journal(kind: Any, data: st.DataObject, number: int, at: int) -> None:
    record = Recorded(number, at / 1000, data.draw(arbitrary(kind)))
    line = encode_record(record)
    assert b"\n" not in line
    assert decode_record(line) == record


@pytest.mark.parametrize("kind", REQUEST_TYPES.values(), ids=REQUEST_TYPES)
@given(data=st.data())
@few
@pytest.mark.few(8)
def test_every_request_survives_the_pipe(kind: Any, data: st.DataObject) -> None:
    message = data.draw(arbitrary(kind))
    assert decode_tagged(encode_tagged(message), REQUEST_TYPES) == message


@pytest.mark.parametrize("kind", REPLY_TYPES.values(), ids=REPLY_TYPES)
@given(data=st.data())
@few
def test_every_reply_survives_the_pipe(kind: Any, data: st.DataObject) -> None:
    message = data.draw(arbitrary(kind))
    assert decode_tagged(encode_tagged(message), REPLY_TYPES) == message


def test_integers_and_floats_stay_what_they_are() -> None:
    for value in (3, 3.0, -0.5, 2**53 + 1):
        back = decode_json(encode_json(ScalarPlan("s", "int64", value)), ScalarPlan)
        assert back.value == value
        assert type(back.value) is type(value)


LINE = encode_record(records([Measured(finalist(3, config(64), {"small": 1.5, "wide": 2.0}))])[0])


@given(st.data())
@examples(150)
def test_a_line_with_any_bytes_changed_is_read_or_malformed(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(LINE) - 1))
    removed = data.draw(st.integers(0, 8))
    put = data.draw(st.binary(max_size=8) | st.sampled_from([b"null", b"[", b'"', b"-1", b"1e400", b"{}"]))
    damaged = LINE[:at] + put + LINE[at + removed :]
    try:
        decode_record(damaged)
    except Malformed:
        pass


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_malformed(data: bytes) -> None:
    for read in (decode_record, lambda d: decode_tagged(d, REPLY_TYPES), lambda d: decode_json(d, Device)):
        with pytest.raises(Malformed):
            read(data)


def test_a_line_cut_anywhere_is_malformed() -> None:
    for cut in range(len(LINE)):
        with pytest.raises(Malformed):
            decode_record(LINE[:cut])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"number":0,"at":0.0,"type":"Invented","event":{}}', "unknown event 'Invented'"),
        (b'{"number":0,"at":0.0,"type":"Stopped","event":{}}', "missing required field `reason`"),
        (b'{"number":0,"at":0.0,"type":"Stopped","event":{"reason":3}}', "Expected `str`"),
        (b"[" * 100_000, "not a line of a journal"),
        (b'{"number":0,"at":0.0,"type":"Stopped","event":' + b"[" * 100_000, "not a line of a journal"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, words: str) -> None:
    with pytest.raises(Malformed, match=words):
        decode_record(data)


def test_an_unknown_message() -> None:
    with pytest.raises(Malformed, match="unknown message 'Started'"):
        decode_tagged(encode_tagged(started()), REQUEST_TYPES)


def test_trials_of_older_journals_followed_nobody() -> None:
    old = b'{"id":3,"config":{"items":[["A",1]]},"workloads":["w"],"effort":"short"}'
    assert decode_json(old, Trial) == Trial(3, Config.of({"A": 1}), ("w",), "short", followed=False)


def test_no_time_is_read_where_the_result_is_not_ok() -> None:
    lie = b'{"workload":"w","status":"wrong","timing":{"samples":[1.0]}}'
    with pytest.raises(Malformed, match="a wrong result carries no time"):
        decode_json(lie, Result)
    with pytest.raises(Malformed, match="without samples"):
        decode_json(b'{"samples":[]}', Timing)
    with pytest.raises(Malformed, match="cannot be paired"):
        decode_json(b'{"samples":[1.0],"paired":[1.0,2.0]}', Timing)
    with pytest.raises(Malformed):
        decode_json(b'{"samples":[null]}', Timing)


def test_a_path_is_its_text() -> None:
    assert encode_json({"folder": Path("a") / "b"}) == b'{"folder":"a/b"}'


def test_what_has_no_json_form_is_our_bug() -> None:
    with pytest.raises(TypeError, match="object"):
        encode_json(object())


def test_fields_that_a_later_version_adds_are_ignored() -> None:
    table = json.loads(encode_json(DEVICE))
    table["added"] = 1
    assert decode_json(json.dumps(table).encode(), Device) == DEVICE
    outcome = finalist(1, config(32), {"small": 1.0})
    assert decode_json(encode_json(outcome), Outcome) == outcome


@pytest.mark.long
def test_what_was_made_ready_several_threads_may_read_at_once() -> None:
    """In a process of its own: what goes wrong there is a crash."""
    text = """
import sys, threading
from dataclasses import make_dataclass
from tunesmith.base.codec import decode_json, make_ready
sys.setswitchinterval(1e-7)
for number in range(300):
    inner = make_dataclass(f"Inner{number}", [(f"a{i}", int) for i in range(20)])
    kind = make_dataclass(f"Outer{number}", [("x", tuple[inner, ...]), ("y", dict[str, inner])])
    make_ready([kind])
    start = threading.Barrier(4)
    read = lambda: (start.wait(), decode_json(b'{"x": [], "y": {}}', kind))
    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""
    assert subprocess.run([sys.executable, "-c", text], check=False, timeout=60).returncode == 0
