"""Traces as they may come: whole, torn, damaged, of a later version."""

from __future__ import annotations

import random

import pytest

from tests.plugins.repo.capture.made_up import (
    class_record,
    function_record,
    order_record,
    process_record,
    record,
    trace_bytes,
)
from tunesmith.plugins.repo.capture.records import CapturedProgram
from tunesmith.plugins.repo.capture.trace import (
    INCOMPLETE,
    RawTrace,
    StoredFiles,
    assemble_capture,
    read_trace,
)

PROGRAM = CapturedProgram(("x",), "", 1.0, 0)
ARGUMENTS = (1 << 40).to_bytes(8, "little") + (5).to_bytes(4, "little") + bytes(4)
POINTER = (0, 1, 1 << 40, 4096, 0, 4096)
WHOLE = trace_bytes(
    process_record(),
    function_record(b"_Z1kPfi", (0, 8), (8, 4)),
    class_record(arguments=ARGUMENTS, pointers=(POINTER,), count=3),
    class_record(index=1, grid=9, flags=INCOMPLETE),
    order_record(0, 1, 0, 0),
)


def read(data: bytes, name: str = "7") -> RawTrace:
    found = read_trace(name, data)
    assert found is not None
    return found


def test_a_whole_one() -> None:
    found = read(WHOLE)
    assert (found.process.pid, found.process.command) == (7, b"python bench.py")
    assert found.order == [(0, 0), (1, 0), (0, 0), (0, 0)]
    capture = assemble_capture(
        PROGRAM, [found], StoredFiles(), lambda names: {n: f"plain {n}" for n in names}
    )
    (kernel,) = capture.kernels
    assert (kernel.demangled, kernel.count) == ("plain _Z1kPfi", 4)
    assert [(launch.count, launch.complete) for launch in kernel.launches] == [(3, True), (1, False)]
    memory = kernel.launches[0].arguments[0].memory
    assert memory.extent == 4096
    assert capture.order == (0, 1, 0, 0)
    assert capture.notes == ()
    assert capture.span == pytest.approx(4e-6)


def test_what_is_no_trace() -> None:
    assert read_trace("x", b"") is None
    assert read_trace("x", b"TSWATCH1") is None
    assert read_trace("x", b"\0" * 4096) is None


@pytest.mark.parametrize("kept", [140, 200, 600, 700, len(WHOLE) - 1])
def test_a_torn_one_gives_what_is_whole(kept: int) -> None:
    found = read(WHOLE[:kept])
    assert any("torn" in note for note in found.notes)
    assemble_capture(PROGRAM, [found], StoredFiles(), lambda names: {})


def test_a_record_that_lies_about_its_size_ends_the_reading() -> None:
    data = trace_bytes(process_record(), b"\x04\0\0\0\xff\xff\xff\x7f" + bytes(64), function_record(b"k"))
    found = read(data)
    assert found.process is not None
    assert not found.functions
    assert any("damaged" in note for note in found.notes)


def test_records_that_contradict_themselves_are_left_out() -> None:
    data = trace_bytes(
        function_record(b"k"),
        record(3, b"\1\0\0\0\xff\xff\xff\xff" + bytes(24)),  # 4 billion parameters
        class_record(function=99, index=5),  # of no function
        class_record(),
        order_record(0, 5, 77),
        record(6, (5).to_bytes(4, "little") + bytes(12)),  # kept of a class that is not there
        record(200, b"from the future"),
    )
    found = read(data)
    assert [klass.index for klass in found.classes] == [0]
    assert found.order == [(0, 0)]
    assert not found.kept
    assert any("kind 3" in note for note in found.notes)


def test_no_damage_raises() -> None:
    draw = random.Random(5)
    for _ in range(2000):
        data = bytearray(WHOLE)
        for _ in range(draw.randint(1, 6)):
            data[draw.randrange(8, len(data))] = draw.choice((0, 1, 127, 128, 255))
        found = read_trace("7", bytes(data))
        if found is not None:
            assemble_capture(PROGRAM, [found], StoredFiles(), lambda names: {})


def test_the_same_launch_of_two_processes_is_one() -> None:
    capture = assemble_capture(PROGRAM, [read(WHOLE), read(WHOLE, "8")], StoredFiles(), lambda names: {})
    (kernel,) = capture.kernels
    assert [launch.count for launch in kernel.launches] == [6, 2]
    assert any("2 processes" in note for note in capture.notes)
