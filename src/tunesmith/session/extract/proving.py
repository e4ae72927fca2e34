"""The proof of an extraction: its kernel, run on captured memory, leaves the memory that was captured.

Bit for bit, or within the spread of two captures of one launch where atomics make the original itself vary.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tunesmith.backends import port
from tunesmith.capture.records import Capture, CapturedLaunch, KeptLaunch, KeptRange
from tunesmith.problem.problem import Argument, Problem

ReadArray = Callable[[str], bytes]
Proven = Literal["same", "within", "differs", "unknown"]
_FORMATS = {
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q",
    "uint64": "Q", "float32": "f", "float64": "d", "float16": "e",
}  # fmt: skip
_SPREADS = 2.0  # how many times the difference of two captures a third run may be off


@dataclass(frozen=True)
class ProvenLaunch:
    """One launch that was made again. `words`: what was compared, or why nothing could be."""

    launch: int
    verdict: Proven
    words: str


def prove(
    session: port.Session,
    executable: port.Executable,
    problem: Problem,
    capture: Capture,
    kernel: str,
    array: ReadArray,
) -> tuple[ProvenLaunch, ...]:
    """Every launch of `kernel`, by its mangled name, whose memory was kept."""
    launches = {launch.number: launch for one in capture.kernels for launch in one.launches}
    kept = [one for one in capture.kept if one.kernel == kernel and one.launch in launches]
    return tuple(prove_launch(session, executable, problem, one, launches[one.launch], array) for one in kept)


def prove_launch(
    session: port.Session,
    executable: port.Executable,
    problem: Problem,
    kept: KeptLaunch,
    launch: CapturedLaunch,
    array: ReadArray,
) -> ProvenLaunch:
    if len(kept.arguments) != len(problem.arguments):
        words = f"{len(kept.arguments)} arguments were captured, the problem has {len(problem.arguments)}"
        return ProvenLaunch(kept.launch, "unknown", words)
    missing = [one for one in kept.ranges if not one.before or not one.after]
    if missing:
        words = f"{sum(one.size for one in missing)} bytes of its memory were not kept"
        return ProvenLaunch(kept.launch, "unknown", words)
    memories: dict[tuple[int, int], port.Memory] = {}
    try:
        for one in kept.ranges:
            memory = memories[one.base, one.start] = session.allocate(one.size)
            session.write(memory, 0, array(one.before))
        args = tuple(_bound(kept, problem.arguments, memories))
        cluster = launch.cluster if any(launch.cluster) else None
        entry = problem.launches[0].entry
        shape = (launch.grid, launch.block, launch.shared)
        call = port.LaunchCall(executable, entry, *shape, args, cluster, launch.cooperative)
        session.run([call])
        left = [(one, session.read(memories[one.base, one.start], 0, one.size)) for one in kept.ranges]
    except (port.LaunchFailed, port.OutOfMemory, _NotBound) as error:
        verdict: Proven = "differs" if isinstance(error, port.LaunchFailed) else "unknown"
        return ProvenLaunch(kept.launch, verdict, f"it could not be launched again: {error}")
    finally:
        for memory in memories.values():
            session.release(memory)
    return _judged(kept, problem.arguments, left, array)


class _NotBound(Exception):
    """An argument that cannot be given as it was, in words."""


def _bound(
    kept: KeptLaunch, arguments: Sequence[Argument], memories: dict[tuple[int, int], port.Memory]
) -> Iterator[port.Pointer | port.Scalar]:
    for captured, argument in zip(kept.arguments, arguments, strict=True):
        if argument.role == "scalar":
            form = _FORMATS.get(argument.type)
            if form is None or len(captured.value) < struct.calcsize(form):
                raise _NotBound(f"{argument.name} is of type {argument.type}")
            yield port.Scalar(argument.type, struct.unpack_from(f"<{form}", captured.value)[0])
            continue
        memory = captured.memory
        found = kept.range_of(memory) if memory is not None else None
        if memory is None or found is None:
            raise _NotBound(f"the memory behind {argument.name} was not kept")
        start = memory.offset - found.start
        yield port.Pointer(memories[found.base, found.start], start, found.size - start)


def _judged(
    kept: KeptLaunch,
    arguments: Sequence[Argument],
    left: Sequence[tuple[KeptRange, bytes]],
    array: ReadArray,
) -> ProvenLaunch:
    total, varied = 0, 0
    for one, got in left:
        total += one.size
        expected = array(one.after)
        if got == expected:
            continue
        again = array(one.again) if one.again else expected
        for dtype, start, name in _arrays(kept, arguments, one):
            off, spread = _off(dtype, got[start:], expected[start:], again[start:])
            if off > _SPREADS * spread:
                words = f"{name} differs from what was captured, by up to {off:g}"
                if spread:
                    words += f"; two captures differ by {spread:g}"
                return ProvenLaunch(kept.launch, "differs", words)
            varied += off > 0
    if varied:
        words = f"{total} bytes, within the spread of two captures"
        return ProvenLaunch(kept.launch, "within", words)
    return ProvenLaunch(kept.launch, "same", f"{total} bytes, bit for bit")


def _arrays(
    kept: KeptLaunch, arguments: Sequence[Argument], one: KeptRange
) -> Iterator[tuple[np.dtype[np.generic], int, str]]:
    """Arrays that begin in a range, with where; the whole range as bytes where no array does."""
    found = False
    for captured, argument in zip(kept.arguments, arguments, strict=True):
        memory = captured.memory
        if argument.role == "scalar" or memory is None or kept.range_of(memory) is not one:
            continue
        found = True
        yield argument.element.numpy, memory.offset - one.start, argument.name
    if not found:
        yield np.dtype(np.uint8), 0, "memory"


def _off(dtype: np.dtype[np.generic], got: bytes, expected: bytes, again: bytes) -> tuple[float, float]:
    """The largest difference from what was captured, and of two captures."""
    count = len(got) // dtype.itemsize
    one, two, three = (
        np.frombuffer(data[: count * dtype.itemsize], dtype).astype(np.float64)
        for data in (got, expected, again)
    )
    with np.errstate(all="ignore"):
        same = (one == two) | (np.isnan(one) & np.isnan(two))
        off = np.where(same, 0.0, np.abs(one - two))
        spread = np.where((two == three) | (np.isnan(two) & np.isnan(three)), 0.0, np.abs(two - three))
    worst = float(np.max(np.where(np.isnan(off), np.inf, off), initial=0.0))
    return worst, float(np.max(np.where(np.isnan(spread), 0.0, spread), initial=0.0))
