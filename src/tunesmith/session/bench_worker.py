"""The process that times calls: `python -m tunesmith.session.bench_worker RUN`. A message is a line."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tunesmith.backends.messages import Draw
from tunesmith.lab.references import draw_inputs
from tunesmith.problem.codec import encode
from tunesmith.problem.device import Device
from tunesmith.problem.dispatch import Dispatch
from tunesmith.problem.plan import CannotRun, Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import original
from tunesmith.run.outcome import median_interval
from tunesmith.run.store import RunFolder
from tunesmith.session import calling, problems
from tunesmith.session.benching import (
    BenchedWay,
    BenchedWorkload,
    BenchMessage,
    BenchResult,
    notes_of,
)

ROUNDS = 30
QUEUED = 200  # calls that a launch queue takes without waiting
SECONDS = 0.02  # of a sample, at least
SEED = 20

Call = Callable[[], object]


class Missing(Exception):
    """What is not here."""


def main() -> None:
    folder = Path(sys.argv[1])
    try:
        message = BenchMessage(result=_bench(folder))
    except Missing as error:
        message = BenchMessage(missing=str(error))
    _say(message)


def _say(message: BenchMessage) -> None:
    sys.stdout.buffer.write(encode(message) + b"\n")
    sys.stdout.buffer.flush()


def _bench(folder: Path) -> BenchResult:
    dispatch = calling.dispatch_in(folder, calling.delivered_files(folder))
    place: _Torch | _OpenCL = _Torch(folder) if dispatch.language == "cuda" else _OpenCL(folder)
    state, templates = problems.state_and_templates(RunFolder.open(folder))
    workloads = []
    for workload in dispatch.workloads:
        _say(BenchMessage(progress=f"timing {workload.name}"))
        arrays = _arrays(templates.problem, state.device, workload.sizes)
        ways = []
        for name, before, after in place.ways(dispatch, workload.sizes, arrays):
            _say(BenchMessage(progress=f"timing {workload.name}: {name}"))
            ways.append(_compared(name, before, after, place.finish))
        verified = workload.speedup if dispatch.entry_for(workload.sizes).config is not None else None
        notes = notes_of(workload.name, verified, tuple(ways))
        workloads.append(BenchedWorkload(workload.name, workload.sizes, verified, tuple(ways), notes))
    return BenchResult(dispatch.problem, place.name, tuple(workloads))


def _arrays(problem: Problem, device: Device, sizes: Mapping[str, int]) -> tuple[Plan, dict[str, Any]]:
    """What the kernel reads at these sizes, as flat memory, drawn as in a run."""
    plan = plan_launch(problem, original(problem, sizes), sizes, device, None)
    if isinstance(plan, CannotRun):
        raise Missing(f"the original cannot run on this device: {plan.reason}")
    return plan, draw_inputs(plan, Draw("normal", SEED, problem.inputs))


def _compared(way: str, before: Call, after: Call, finish: Call) -> BenchedWay:
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
            samples[call].append(_seconds(call, counts[call], finish)[1])
            hosts[call].append(_seconds(call, min(counts[call], QUEUED), finish)[0])
    ratios = tuple(a / b for a, b in zip(samples[before], samples[after], strict=True))
    middle = median_interval(ratios, SEED)

    def typical(values: list[float]) -> float:
        return 1e6 * sorted(values)[len(values) // 2]

    times = (typical(samples[before]), typical(samples[after]), middle.value, (middle.low, middle.high))
    return BenchedWay(way, *times, typical(hosts[before]), typical(hosts[after]))


def _calls_for(call: Call, finish: Call) -> int:
    count = 10
    while count < 100_000 and _seconds(call, count, finish)[1] * count < SECONDS:
        count *= 2
    return count


def _seconds(call: Call, count: int, finish: Call) -> tuple[float, float]:
    """For a call: until the host has queued it, and until the device is done."""
    finish()
    start = time.perf_counter()
    for _ in range(count):
        call()
    queued = time.perf_counter()
    finish()
    return (queued - start) / count, (time.perf_counter() - start) / count


class _Torch:
    """Through PyTorch's dispatcher, as an export registers it."""

    def __init__(self, folder: Path) -> None:
        try:
            import torch
        except ImportError as error:
            raise Missing(f"calls from PyTorch are timed, which is not here: {error}") from error
        if not torch.cuda.is_available():
            raise Missing("PyTorch sees no CUDA device here")
        from tunesmith.deliver.runtime import torch_op

        self._torch, self._types = torch, torch_op.DTYPES
        calls = calling.calls_of(folder.resolve(), "torch")
        self._operators = torch_op.TorchOperators(calls, "tunesmith_bench", "operator")
        self._operators.prepare()
        self._signature = calls.signature
        self.name = str(torch.cuda.get_device_name())

    def finish(self) -> None:
        self._torch.cuda.synchronize()

    def ways(
        self, dispatch: Dispatch, sizes: Mapping[str, int], drawn: tuple[Plan, dict[str, Any]]
    ) -> list[tuple[str, Call, Call]]:
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
        own = (self._operators.out_original, self._operators.out)
        eager = [self._eager(op, tensors, named) for op in own]
        compiled = [self._compiled(op, tensors, named) for op in own]
        graphs = [self._graph(op, tensors, named) for op in own]
        pairs = {"eager PyTorch": eager, "torch.compile": compiled, "CUDA graph": graphs}
        return [(name, before, after) for name, (before, after) in pairs.items()]

    def _eager(self, operator: Any, tensors: list[Any], named: dict[str, int]) -> Call:
        return lambda: operator(*tensors, **named)

    def _compiled(self, operator: Any, tensors: list[Any], named: dict[str, int]) -> Call:
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
    def __init__(self, folder: Path) -> None:
        try:
            import pyopencl.array

            self._calls = calling.calls_of(folder.resolve(), "pyopencl")
            self._queue = self._calls.usual_queue()
        except (ImportError, RuntimeError) as error:
            raise Missing(f"there is no OpenCL here: {error}") from error
        self._arrays = pyopencl.array
        self.name = self._queue.device.name.strip()
        if self.name != self._calls.operator.results[0].dispatch.device:
            raise Missing(f"the run's device is not here; {self.name} is")
        self._calls.prepare(self._queue)

    def finish(self) -> None:
        self._queue.finish()

    def ways(
        self, dispatch: Dispatch, sizes: Mapping[str, int], drawn: tuple[Plan, dict[str, Any]]
    ) -> list[tuple[str, Call, Call]]:
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
        return [("PyOpenCL", lambda: before(*buffers, **named), lambda: after(*buffers, **named))]


if __name__ == "__main__":
    main()
