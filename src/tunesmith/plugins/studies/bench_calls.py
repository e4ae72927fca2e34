"""Does it reach the operator? Original and tuned timed where they are called, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from tunesmith import backends
from tunesmith.backends import messages
from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.errors import BadInput, DeviceMissing, TunesmithError
from tunesmith.lab.references import draw_inputs
from tunesmith.lab.worker.main import enter_sandbox
from tunesmith.lab.worker.sandbox import NotProtected
from tunesmith.problem.device import Device
from tunesmith.problem.dispatch import Dispatch, DispatchWorkload
from tunesmith.problem.plan import CannotRun, Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import original_variant
from tunesmith.run.folder import RunFolder
from tunesmith.run.outcome import median_interval
from tunesmith.run.ports import Listener
from tunesmith.run.protection import AUTO, NEEDED
from tunesmith.session import problems, result
from tunesmith.session.place import isolated_command, worker_environment

DEADLINE = 600.0  # seconds
# Inductor's other processes would speak over memory that is shared, which the sandbox has not.
IN_THE_SANDBOX = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
_MAX_FAILURE = 2000  # of what a worker that failed has said


@dataclass(frozen=True)
class BenchedWay:
    """A way of calling. Times are microseconds a call; those of the host are until a call returns, with room
    in the launch queue."""

    way: str
    original_us: float
    tuned_us: float
    ratio: float  # original to tuned, the median of pairs taken in alternation
    interval: tuple[float, float]  # 95 %
    original_host_us: float
    tuned_host_us: float


@dataclass(frozen=True)
class FailedWay:
    """A way of calling that could not be timed; without a name, none of them could."""

    way: str
    why: str


@dataclass(frozen=True)
class BenchedWorkload:
    name: str
    sizes: dict[str, int]
    verified: float | None  # the kernel's own speed-up, by the run; None: the original serves
    ways: tuple[BenchedWay, ...]
    notes: tuple[str, ...] = ()
    failed: tuple[FailedWay, ...] = ()


@dataclass(frozen=True)
class BenchResult:
    problem: str
    device: str
    workloads: tuple[BenchedWorkload, ...]
    notes: tuple[str, ...] = ()
    version: int = 1


@dataclass(frozen=True)
class BenchMessage:
    """A line of the worker's: one of these. What is `missing`, what `failed` and `done` are the last."""

    progress: str = ""
    start: BenchResult | None = None  # without workloads, which follow
    workload: BenchedWorkload | None = None
    missing: str = ""
    failed: str = ""
    done: bool = False


def notes_of(name: str, verified: float | None, ways: tuple[BenchedWay, ...]) -> tuple[str, ...]:
    """Where a kernel's win does not reach whoever calls it. The last way has the least overhead."""
    if verified is None:
        return (f"{name}: the original serves, there is no win to reach anybody",)
    if not ways:
        return ()
    kernel, notes = ways[-1], list[str]()
    saved = kernel.original_us - kernel.tuned_us
    for way in ways:
        if way.interval[0] > 1:
            continue
        if way.tuned_host_us >= kernel.tuned_us and 0 < saved < way.tuned_host_us:
            notes.append(
                f"{name}: the kernel's win of {saved:.1f} µs is smaller than the {way.tuned_host_us:.1f} µs "
                f"that the host needs for a call ({way.way}): it is not seen there"
            )
        else:
            notes.append(f"{name}: no gain is seen with {way.way}, {way.ratio:.2f}×")
    return tuple(notes)


def bench_run(
    folder: Path, listener: Listener, deadline: float = DEADLINE, sandbox: str = AUTO
) -> BenchResult:
    """Of a run that has ended. DeviceMissing where its device, or what calls it, is not here. What was timed
    before the time was up, or before something broke, is the result, with a note."""
    dispatch = result.dispatch_in(folder, result.delivered_files(folder))
    spec = backends.backend_for(dispatch.language, None)
    with tempfile.TemporaryDirectory(prefix="tunesmith-bench-") as scratch:
        environment = {**worker_environment(spec, Path(scratch), sandbox), **IN_THE_SANDBOX}
        command = isolated_command("tunesmith.plugins.studies.bench_calls", spec, folder.resolve())
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, env=environment, cwd=scratch
            ) as worker,
        ):
            late = threading.Timer(deadline, worker.kill)
            late.start()
            try:
                assert worker.stdout is not None
                told = _follow_messages(worker.stdout, listener)
            finally:
                expired = not late.is_alive()
                late.cancel()
                worker.kill()
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()[-_MAX_FAILURE:]
    return _bench_result(told, f"took longer than {deadline:.0f} s and was ended" if expired else "", said)


def _follow_messages(lines: Iterable[bytes], listener: Listener) -> list[BenchMessage]:
    """All but the progress, until the last."""
    told: list[BenchMessage] = []
    for line in lines:
        try:
            message = decode_json(line, BenchMessage)
        except Malformed:  # a library that prints
            continue
        if message.progress:
            listener.note(message.progress)
            continue
        told.append(message)
        if message.missing or message.failed or message.done:
            break
    return told


def _bench_result(told: Sequence[BenchMessage], late: str, said: str) -> BenchResult:
    """`late`: that it was ended, where it was; `said`: the last words of a process that ended by itself."""
    last = told[-1] if told else BenchMessage()
    if last.missing:
        hint = "run the same command on the run's device; to tune for another: tunesmith retune RUN"
        raise DeviceMissing(last.missing, hint=hint)
    start = next((message.start for message in told if message.start is not None), None)
    timed = tuple(message.workload for message in told if message.workload is not None)
    has_ways = any(workload.ways for workload in timed)
    if start is not None and last.done and (has_ways or not any(w.failed for w in timed)):
        return replace(start, workloads=timed)
    if not late and last.done:
        failed = next(workload.failed[0] for workload in timed if workload.failed)
        last = replace(last, failed=f"{failed.way}: {failed.why}" if failed.way else failed.why)
    why = late or f"failed: {last.failed or said or 'the process that timed ended without a word'}"
    if start is not None and has_ways:
        note = f"this is not all: timing {why}"
        return replace(start, workloads=timed, notes=(*start.notes, note))
    if late:
        raise BadInput(f"timing {why}", hint="give it more time with --seconds")
    raise TunesmithError(f"timing {why}")


# -- The process that times calls: `bench_worker BACKEND RUN`. A message is a line.


ROUNDS = 30
QUEUED = 200  # calls that a launch queue takes without waiting
SECONDS = 0.02  # of a sample, at least
SEED = 20
_MAX_REASON = 300  # of what failed

Call = Callable[[], object]
DrawnArrays = tuple[Plan, Mapping[str, Any]]  # what is read, by the names of arguments
Pair = tuple[Call, Call]  # original and tuned
Ways = Sequence[tuple[str, Callable[[], Pair]]]  # each is made when its turn comes: one may fail


class Missing(Exception):
    """What is not here."""


class CallPlace(Protocol):
    """Where calls are made. `refused`: the tuned kernels that this machine does not take, and why."""

    name: str

    @property
    def refused(self) -> Mapping[str, str]: ...
    def finish(self) -> None: ...
    def ways(self, sizes: Mapping[str, int], drawn: DrawnArrays) -> Ways: ...


def run_bench_worker() -> None:
    try:
        folder = Path(sys.argv[2])
        held = enter_sandbox(sys.argv[1], [str(folder)])
        _bench_workloads(folder, () if not held.missing(NEEDED) else (held.sentence,))
        last = BenchMessage(done=True)
    except (Missing, NotProtected) as error:
        last = BenchMessage(missing=str(error))
    except Exception as error:
        last = BenchMessage(failed=_error_summary(error))
    _write_message(last)


def _write_message(message: BenchMessage) -> None:
    sys.stdout.buffer.write(encode_json(message) + b"\n")
    sys.stdout.buffer.flush()


def _error_summary(error: Exception) -> str:
    """The first line that says something: compilers of calls tell long stories."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line}"[:_MAX_REASON]


def _bench_workloads(folder: Path, notes: tuple[str, ...] = ()) -> None:
    dispatch = result.dispatch_in(folder, result.delivered_files(folder))
    place: CallPlace = _Torch(folder, dispatch) if dispatch.language == "cuda" else _OpenCL(folder, dispatch)
    notes = (*device_notes(dispatch, place.name), *notes)
    _write_message(BenchMessage(start=BenchResult(dispatch.problem, place.name, (), notes)))
    state, templates = problems.state_and_templates(RunFolder.open(folder))
    for workload in dispatch.workloads:

        def drawn(sizes: Mapping[str, int] = workload.sizes) -> DrawnArrays:
            return _draw_arrays(templates.problem, state.device, sizes)

        _write_message(BenchMessage(workload=bench_workload(place, dispatch, workload, drawn)))


def device_notes(dispatch: Dispatch, name: str) -> tuple[str, ...]:
    if name == dispatch.device:
        return ()
    return (
        f"these are times of {name}; what was verified is of {dispatch.device}, of the same architecture",
    )


def bench_workload(
    place: CallPlace, dispatch: Dispatch, workload: DispatchWorkload, drawn: Callable[[], DrawnArrays]
) -> BenchedWorkload:
    """Each way by itself: where one cannot be timed, the others are."""
    name, ways, failed = workload.name, list[BenchedWay](), list[FailedWay]()
    _write_message(BenchMessage(progress=f"timing {name}"))
    entry, notes = dispatch.entry_for(workload.sizes), list[str]()
    try:
        possible = place.ways(workload.sizes, drawn())
    except Exception as error:
        return BenchedWorkload(name, workload.sizes, None, (), failed=(FailedWay("", _error_summary(error)),))
    for way, make in possible:
        _write_message(BenchMessage(progress=f"timing {name}: {way}"))
        try:
            ways.append(_compare_calls(way, *make(), place.finish))
        except Exception as error:
            failed.append(FailedWay(way, _error_summary(error)))
    verified = workload.speedup if entry.config is not None else None
    if verified is not None and entry.file in place.refused:
        verified = None
        notes.append(f"{name}: {entry.file} cannot be used here: {place.refused[entry.file]}")
    notes += notes_of(name, verified, tuple(ways))
    return BenchedWorkload(name, workload.sizes, verified, tuple(ways), tuple(notes), tuple(failed))


def _draw_arrays(problem: Problem, device: Device, sizes: Mapping[str, int]) -> DrawnArrays:
    """What the kernel reads at these sizes, as flat memory, drawn as in a run."""
    plan = plan_launch(problem, original_variant(problem, sizes), sizes, device, None)
    if isinstance(plan, CannotRun):
        raise ValueError(f"the original cannot run on this device: {plan.reason}")
    return plan, draw_inputs(plan, messages.Draw("normal", SEED, problem.inputs))


def _compare_calls(way: str, before: Call, after: Call, finish: Call) -> BenchedWay:
    """In alternation, pair by pair, each sample as many calls as take long enough."""
    for call in (before, after):  # builds, loads, warms up
        for _ in range(3):
            call()
    finish()
    counts = {call: _calls_for(call, finish) for call in (before, after)}
    samples: dict[Call, list[float]] = {before: [], after: []}
    hosts: dict[Call, list[float]] = {before: [], after: []}
    for number in range(ROUNDS):
        for call in (before, after) if number % 2 == 0 else (after, before):
            samples[call].append(_time_calls(call, counts[call], finish)[1])
            hosts[call].append(_time_calls(call, min(counts[call], QUEUED), finish)[0])
    ratios = tuple(a / b for a, b in zip(samples[before], samples[after], strict=True))
    middle = median_interval(ratios, SEED)

    def typical(values: list[float]) -> float:
        return 1e6 * sorted(values)[len(values) // 2]

    times = (typical(samples[before]), typical(samples[after]), middle.value, (middle.low, middle.high))
    return BenchedWay(way, *times, typical(hosts[before]), typical(hosts[after]))


def _calls_for(call: Call, finish: Call) -> int:
    count = 10
    while count < 100_000 and _time_calls(call, count, finish)[1] * count < SECONDS:
        count *= 2
    return count


def _time_calls(call: Call, count: int, finish: Call) -> tuple[float, float]:
    """For a call: until the host has queued it, and until the device is done."""
    finish()
    start = time.perf_counter()
    for _ in range(count):
        call()
    queued = time.perf_counter()
    finish()
    return (queued - start) / count, (time.perf_counter() - start) / count


def chosen_device(dispatch: Dispatch, devices: Sequence[tuple[str, str]]) -> int:
    """Of architectures and names, the number of the run's device, or of one like it."""
    wanted = (dispatch.architecture, dispatch.device)
    if wanted in devices:
        return devices.index(wanted)
    architectures = [architecture for architecture, _ in devices]
    if dispatch.architecture in architectures:
        return architectures.index(dispatch.architecture)
    here = [f"{name} ({architecture})" for architecture, name in devices]
    raise Missing(_wrong_device_text(dispatch, here))


def _wrong_device_text(dispatch: Dispatch, here: Sequence[str]) -> str:
    suffix = f" ({dispatch.architecture})" if dispatch.architecture else ""
    return (
        f"the run was made on {dispatch.device}{suffix}, here is {', '.join(here)}: the original would serve "
        "every call, and there is nothing to compare"
    )


class _Torch:
    """Through PyTorch's dispatcher, as an export registers it."""

    def __init__(self, folder: Path, dispatch: Dispatch) -> None:
        try:
            import torch
        except (ImportError, OSError) as error:
            raise Missing(f"calls from PyTorch are timed, which is not here: {error}") from error
        if not torch.cuda.is_available():
            raise Missing("PyTorch sees no CUDA device here")
        from tunesmith.deliver.runtime import torch_op

        self._torch, self._types = torch, torch_op.DTYPES
        calls = result.calls_of(folder.resolve(), "torch")
        devices = [calls.calls.device_of(number) for number in range(torch.cuda.device_count())]
        number = chosen_device(dispatch, devices)
        torch.cuda.set_device(number)
        self._operators = torch_op.TorchOperators(calls, "tunesmith_bench", "operator")
        self._operators.prepare()
        self._signature = calls.signature
        self.name = devices[number][1]

    @property
    def refused(self) -> Mapping[str, str]:
        return self._operators.calls.operator.refused

    def finish(self) -> None:
        self._torch.cuda.synchronize()

    def ways(self, sizes: Mapping[str, int], drawn: DrawnArrays) -> Ways:
        torch, (plan, inputs) = self._torch, drawn
        tensors = []
        for argument in self._signature.arrays:
            buffer = plan.buffer(argument.name)
            shape, strides = self._signature.memory_layout(argument, sizes)
            memory = torch.zeros(max(buffer.nbytes, 1), dtype=torch.uint8, device="cuda")
            if argument.name in inputs:
                data = torch.from_numpy(inputs[argument.name].view("uint8").reshape(-1).copy())
                memory[: data.numel()].copy_(data)
            tensors.append(
                memory[: buffer.nbytes].view(self._types[argument.type]).as_strided(shape, strides)
            )
        named = {name: sizes[name] for name in self._signature.unshown_by_all}

        def pair(how: Callable[[Any, list[Any], dict[str, int]], Call]) -> Callable[[], Pair]:
            return lambda: (
                how(self._operators.out_original, tensors, named),
                how(self._operators.out, tensors, named),
            )

        return [
            ("eager PyTorch", pair(self._eager_call)),
            ("torch.compile", pair(self._compiled_call)),
            ("CUDA graph", pair(self._graph)),
        ]

    def _eager_call(self, operator: Any, tensors: list[Any], named: dict[str, int]) -> Call:
        return lambda: operator(*tensors, **named)

    def _compiled_call(self, operator: Any, tensors: list[Any], named: dict[str, int]) -> Call:
        @self._torch.compile(fullgraph=True)  # type: ignore[untyped-decorator,unused-ignore]
        def step(*arrays: Any) -> None:
            operator(*arrays, **named)

        return lambda: step(*tensors)

    def _graph(self, operator: Any, tensors: list[Any], named: dict[str, int]) -> Call:
        operator(*tensors, **named)
        self.finish()
        graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(graph):
            operator(*tensors, **named)
        return lambda: graph.replay()


class _OpenCL:
    def __init__(self, folder: Path, dispatch: Dispatch) -> None:
        try:
            import pyopencl.array

            self._calls = result.calls_of(folder.resolve(), "pyopencl")
            self._queue = self._calls.usual_queue()
        except (ImportError, RuntimeError) as error:
            raise Missing(f"there is no OpenCL here: {error}") from error
        self._arrays = pyopencl.array
        self.name = self._queue.device.name.strip()
        if self.name != dispatch.device:
            raise Missing(_wrong_device_text(dispatch, [self.name]))
        self._calls.prepare(self._queue)

    @property
    def refused(self) -> Mapping[str, str]:
        return dict(self._calls.operator.refused)

    def finish(self) -> None:
        self._queue.finish()

    def ways(self, sizes: Mapping[str, int], drawn: DrawnArrays) -> Ways:
        import numpy as np

        signature, (plan, inputs) = self._calls.signature, drawn
        buffers = []
        for argument in signature.arrays:
            memory = inputs.get(argument.name)
            if memory is None:
                memory = np.zeros(plan.buffer(argument.name).nbytes, np.uint8)
            buffers.append(self._arrays.to_device(self._queue, memory.view(np.uint8).reshape(-1)).base_data)
        named = {**sizes, self._calls.queue_name: self._queue}
        before, after = self._calls.original, self._calls
        return [("PyOpenCL", lambda: (lambda: before(*buffers, **named), lambda: after(*buffers, **named)))]


if __name__ == "__main__":
    run_bench_worker()
