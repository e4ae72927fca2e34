"""The proof of an extraction: its kernel, run on captured memory, leaves the memory that was captured, and
the problem says of each of these launches what it was.

Bit for bit, or within the spread of two captures of one launch where atomics make the original itself vary.
"""

from __future__ import annotations

import math
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tunesmith import backends
from tunesmith.backends import messages, port
from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.lab.worker.main import enter_sandbox
from tunesmith.plugins.repo.capture.records import (
    Capture,
    CapturedLaunch,
    KeptLaunch,
    KeptRange,
    read_array,
    read_capture,
)
from tunesmith.plugins.repo.extract.flatten import Parts, in_parts
from tunesmith.plugins.repo.extract.seen import (
    FORMATS,
    NotCompared,
    ReadArray,
    SeenSizes,
    Sizes,
    launch_difference,
)
from tunesmith.problem.problem import Argument, Problem
from tunesmith.problem.template import original_variant
from tunesmith.run.config import resolve_config
from tunesmith.session.place import isolated_command, worker_environment
from tunesmith.session.problems import load_problem

Proven = Literal["same", "within", "differs", "unknown"]


@dataclass(frozen=True)
class ProvenLaunch:
    """One launch that was made again. `words`: what was compared, or why nothing could be."""

    launch: int
    verdict: Proven
    words: str


def prove_kept_launches(
    session: port.Session,
    executable: port.Executable,
    problem: Problem,
    capture: Capture,
    kernel: str,
    array: ReadArray,
    sizes: Mapping[int, Sizes],
) -> tuple[ProvenLaunch, ...]:
    """Every launch of `kernel`, by its mangled name, whose memory was kept. `sizes`: of launches."""
    launches = {launch.number: launch for one in capture.kernels for launch in one.launches}
    found = []
    for kept in capture.kept:
        if kept.kernel == kernel and (launch := launches.get(kept.launch)) is not None:
            made = prove_launch(session, executable, problem, kept, launch, array)
            found.append(with_problem(made, problem, kept, launch, sizes.get(kept.launch, {}), array))
    return tuple(found)


def with_problem(
    made: ProvenLaunch,
    problem: Problem,
    kept: KeptLaunch,
    launch: CapturedLaunch,
    sizes: Sizes,
    array: ReadArray,
) -> ProvenLaunch:
    """The verdict on the kernel with that on the problem, which must say of the launch what it was."""
    if made.verdict == "differs" or len(kept.arguments) != len(problem.arguments):
        return made
    try:
        other = launch_difference(problem, kept, launch, sizes, array)
    except NotCompared as why:
        words = f"{made.words}; what the problem says of it could not be compared: {why}"
        return replace(made, verdict="unknown", words=words)
    return replace(made, verdict="differs", words=other) if other else made


def prove_launch(
    session: port.Session,
    executable: port.Executable,
    problem: Problem,
    kept: KeptLaunch,
    launch: CapturedLaunch,
    array: ReadArray,
) -> ProvenLaunch:
    """The kernel alone, with the geometry and the values that were captured."""
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
        args = tuple(_bind_arguments(kept, problem.arguments, memories))
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
    return _judge_memory(kept, problem.arguments, left, array)


class _NotBound(Exception):
    """An argument that cannot be given as it was, in words."""


def _bind_arguments(
    kept: KeptLaunch, arguments: Sequence[Argument], memories: dict[tuple[int, int], port.Memory]
) -> Iterator[port.Pointer | port.Scalar]:
    for captured, argument in zip(kept.arguments, arguments, strict=True):
        if argument.role == "scalar":
            form = FORMATS.get(argument.type)
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


def _judge_memory(
    kept: KeptLaunch, arguments: Sequence[Argument], left: Sequence[tuple[KeptRange, bytes]], array: ReadArray
) -> ProvenLaunch:
    total, varied = 0, False
    for one, got in left:
        total += one.size
        expected = array(one.after)
        if got == expected:
            continue
        again = array(one.again) if one.again else expected
        for dtype, start, end, name in _arrays_in_range(kept, arguments, one):
            parts = got[start:end], expected[start:end], again[start:end]
            if parts[0] == parts[1]:
                continue
            off, spread = _difference_and_spread(dtype, *parts)
            if parts[1] == parts[2] or off > spread:
                words = f"{name} differs from what was captured, by up to {off:g}"
                words += f"; two captures differ by {spread:g}" if parts[1] != parts[2] else ""
                return ProvenLaunch(kept.launch, "differs", words)
            varied = True
    if varied:
        words = f"{total} bytes, within the spread of two captures"
        return ProvenLaunch(kept.launch, "within", words)
    return ProvenLaunch(kept.launch, "same", f"{total} bytes, bit for bit")


def _arrays_in_range(
    kept: KeptLaunch, arguments: Sequence[Argument], one: KeptRange
) -> Iterator[tuple[np.dtype[np.generic], int, int, str]]:
    """Arrays that begin in a range, with where, each up to the next; as bytes what no array begins in."""
    starts: dict[int, Argument] = {}
    for captured, argument in zip(kept.arguments, arguments, strict=True):
        memory = captured.memory
        if argument.role == "scalar" or memory is None or kept.range_of(memory) is not one:
            continue
        start = memory.offset - one.start
        if start not in starts or argument.is_written:
            starts[start] = argument
    places = sorted(starts)
    if not places or places[0] > 0:
        yield np.dtype(np.uint8), 0, places[0] if places else one.size, "memory"
    for start, end in zip(places, [*places[1:], one.size], strict=True):
        yield starts[start].element.memory, start, end, starts[start].name


def _difference_and_spread(
    dtype: np.dtype[np.generic], got: bytes, expected: bytes, again: bytes
) -> tuple[float, float]:
    """The largest difference from the nearer of two captures, and the largest between these."""
    count = len(got) // dtype.itemsize  # what is left over is shorter than an element, and counts as bytes
    if got[count * dtype.itemsize :] != expected[count * dtype.itemsize :]:
        return math.inf, 0.0
    one, two, three = (
        np.frombuffer(data[: count * dtype.itemsize], dtype).astype(np.float64)
        for data in (got, expected, again)
    )
    off = np.minimum(_absolute_difference(one, two), _absolute_difference(one, three))
    spread = _absolute_difference(two, three)
    finite = spread[np.isfinite(spread)]
    return float(np.max(off, initial=0.0)), float(np.max(finite, initial=0.0))


def _absolute_difference(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Element by element; a number and none, or one that is not finite, are apart without bounds."""
    with np.errstate(all="ignore"):
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        apart = np.where(same, 0.0, np.abs(one - other))
    return np.where(np.isnan(apart), np.inf, apart)


# -- A process that makes captured launches again: what a kernel does to it ends nobody else.


SECONDS = 300.0


@dataclass(frozen=True)
class ProofReply:
    """`trouble`: why nothing was run; then there are no launches. `fault`: how what was run ended, where that
    was before a result."""

    launches: tuple[ProvenLaunch, ...] = ()
    trouble: str = ""
    fault: str = ""

    @property
    def holds(self) -> bool:
        """Whether kernel and problem are what was captured, at one launch at least and at none otherwise."""
        verdicts = {one.verdict for one in self.launches}
        return not self.fault and "differs" not in verdicts and bool(verdicts & {"same", "within"})


@dataclass(frozen=True)
class ProofParts:
    """`parts`: of structs, their fields; `sizes`: of launches."""

    parts: Parts
    sizes: SeenSizes


def proof_of(
    folder: Path,
    capture: Path,
    kernel: str,
    parts: Parts = (),
    sizes: SeenSizes = (),
    seconds: float = SECONDS,
) -> ProofReply:
    """By another process; `kernel` is the mangled name that was captured."""
    module, spec = "tunesmith.plugins.repo.extract.prove", "cuda"
    command = isolated_command(module, spec, folder.resolve(), capture.resolve(), kernel)
    told = encode_json(ProofParts(parts, sizes))
    with tempfile.TemporaryDirectory(prefix="tunesmith-proof-") as scratch:
        variables = worker_environment(spec, Path(scratch), resolve_config({}).sandbox)
        try:
            done = subprocess.run(
                command, input=told, capture_output=True, timeout=seconds, env=variables, cwd=scratch
            )
        except subprocess.TimeoutExpired:
            return ProofReply(fault=f"its launches did not end within {seconds:.0f} s")
    try:
        return decode_json(done.stdout, ProofReply, "proof")
    except Malformed:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        return ProofReply(fault=f"the process that makes captured launches again ended: {last[0]}")


def proved_here(
    folder: Path, capture_folder: Path, kernel: str, spec: str, parts: Parts = (), sizes: SeenSizes = ()
) -> ProofReply:
    """In this process, on the first device of a backend."""
    capture = in_parts(read_capture(capture_folder), kernel, parts)
    if not any(one.kernel == kernel for one in capture.kept):
        words = "the capture kept no memory of it: capture again with --keep and its name"
        return ProofReply(trouble=words)
    problem = load_problem(folder).definition
    backend = backends.make_backend(spec)
    try:
        devices = backend.devices()
        if not devices:
            return ProofReply(trouble="there is no device here")
        variant = original_variant(problem, dict(problem.workloads[0].sizes))
        compiler = problem.kernel.compiler or ""
        given = (variant.path, variant.source, variant.language, variant.flags, variant.entries)
        unit = messages.Unit(*given, variant.headers, compiler)
        binary = backend.build(unit, devices[0])
        session = backend.open(devices[0])
    except (port.BuildFailed, port.Unsupported, port.DeviceLost) as error:
        return ProofReply(trouble=str(error))
    executable = session.load(unit, binary.data)
    seen = {number: dict(known) for number, known in sizes}
    stored = (capture, kernel, lambda digest: read_array(capture_folder, digest))
    return ProofReply(prove_kept_launches(session, executable, problem, *stored, seen))


def run_proof_worker() -> None:
    spec, folder, capture, kernel = sys.argv[1:5]
    told = decode_json(sys.stdin.buffer.read(), ProofParts, "parts")
    enter_sandbox(spec, (folder, capture))
    reply = proved_here(Path(folder), Path(capture), kernel, spec, told.parts, told.sizes)
    sys.stdout.buffer.write(encode_json(reply))


if __name__ == "__main__":
    run_proof_worker()
