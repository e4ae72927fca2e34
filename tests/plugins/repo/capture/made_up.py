"""Traces and captures made by hand."""

from __future__ import annotations

import struct
from dataclasses import replace

from tunesmith.plugins.repo.capture import trace as form
from tunesmith.plugins.repo.capture.records import (
    FORMAT,
    ArgumentPointer,
    Capture,
    CapturedArgument,
    CapturedCopies,
    CapturedDevice,
    CapturedKernel,
    CapturedLaunch,
    CapturedProgram,
    PointedMemory,
)

DEVICE = CapturedDevice(0, "Made up", 90, 100, 80 << 30, 50 << 20, 1e12)


def record(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 8)
    return struct.pack("<II", kind, 8 + len(body)) + body


def trace_bytes(*records: bytes, launches: int = 1, ended: int = 1, forks: int = 0) -> bytes:
    rest = b"".join(records)
    counters = [launches, 0, 0, 0, forks, 0, 0, 0, 0, 1000, 5000, ended, 0, 0]
    return struct.pack("<8s15Q", form.MAGIC, 128 + len(rest), *counters) + rest


def function_record(name: bytes, *params: tuple[int, int], index: int = 0) -> bytes:
    head = struct.pack("<II5iI", index, len(params), 16, 0, 0, 90, 90, len(name))
    return record(form.FUNCTION, head + b"".join(struct.pack("<II", *p) for p in params) + name)


def class_record(
    function: int = 0,
    index: int = 0,
    arguments: bytes = b"",
    pointers: tuple[tuple[int, int, int, int, int, int], ...] = (),
    count: int = 1,
    grid: int = 1,
    flags: int = 0,
) -> bytes:
    numbers = (index, function, grid, 1, 1, 32, 1, 1, 0, 0, 0, 0, 0, flags)
    counted = (count, count, 1000 * count, 900, 1)
    head = struct.pack("<14I5QII", *numbers, *counted, len(arguments), len(pointers))
    return record(form.CLASS, head + b"".join(struct.pack("<IIQQQQ", *p) for p in pointers) + arguments)


def process_record(pid: int = 7) -> bytes:
    return record(form.PROCESS, struct.pack("<iiii400s", pid, 1, 13000, 0, b"python bench.py"))


def order_record(*classes: int) -> bytes:
    entries = b"".join(struct.pack("<II", klass, 0) for klass in classes)
    return record(form.ORDER, struct.pack("<II", len(classes) + 5, len(classes)) + entries + bytes(40))


def pointer(size: int, base: int = 1 << 40, offset: int = 0, least: int = 0) -> CapturedArgument:
    memory = PointedMemory(base, size, offset)
    data = (base + offset).to_bytes(8, "little").hex()
    return CapturedArgument(0, 8, data, (ArgumentPointer(0, memory, least or memory.extent),))


def launch(
    *arguments: CapturedArgument, seconds: float = 1e-3, count: int = 1, number: int = 0
) -> CapturedLaunch:
    shape = ((1, 1, 1), (32, 1, 1), 0, (0, 0, 0), 0, (0,))
    return CapturedLaunch(number, *shape, count, count, seconds, seconds / count, arguments)


def kernel(name: str, *launches: CapturedLaunch, demangled: str = "", image: str = "ab") -> CapturedKernel:
    count, timed = sum(one.count for one in launches), sum(one.timed for one in launches)
    seconds = sum(one.seconds for one in launches)
    return CapturedKernel(name, demangled or name, image, "", count, timed, seconds, launches)


def capture(*kernels: CapturedKernel, span: float = 1.0, copies: float = 0.0) -> Capture:
    program = CapturedProgram(("python", "bench.py"), "2026-01-01T00:00:00+00:00", 2.0, 0)
    return Capture(
        FORMAT, program, 13000, (DEVICE,), kernels, (), (), (), (), CapturedCopies(1, 1, copies), span
    )


def without_device(made: Capture) -> Capture:
    return replace(made, devices=())
