"""Small values that many tests start from: a device, a problem with its template, outcomes and states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tunesmith.problem.device import Device, Limits, Resources
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import Template
from tunesmith.problem.template_file import parse_template
from tunesmith.run.events import (
    Admitted,
    Asked,
    Baseline,
    Event,
    Measured,
    Recorded,
    Settings,
    Started,
    Surveyed,
    SurveyedBuild,
    Verified,
)
from tunesmith.run.outcome import Outcome, Purpose, Result, Timing, Trial
from tunesmith.run.ports import Journal, Listener, RunLog
from tunesmith.run.state import State, fold_records
from tunesmith.space.configset import Config

LIMITS = Limits(
    max_threads=1024,
    max_block=(1024, 1024, 64),
    max_grid=(2**31 - 1, 65535, 65535),
    shared=49152,
    sms=16,
    warp=32,
    llc=1 << 20,
    memory=1 << 34,
    max_allocation=1 << 32,
    alignment=256,
)
HOPPER = replace(  # what occupancy is computed from, as an H100 or H200 has it
    LIMITS,
    shared=232448,
    sms=132,
    capability=90,
    registers_per_block=65536,
    registers_per_sm=65536,
    shared_per_sm=233472,
    shared_reserved=1024,
    threads_per_sm=2048,
    blocks_per_sm=32,
)
DEVICE = Device("fake", "0", "a device", "a platform", "1.0", "simulated", LIMITS)
KERNEL = "__kernel void scale(__global float* out, __global const float* x, int rows, int d) {}\n"

PROBLEM = """\
name = "scale"
[kernel]
source = "kernel.cl"
entry = "scale"
{kernel}
[[argument]]
name = "out"
type = "float32*"
role = "output"
shape = ["rows", "d"]
[[argument]]
name = "x"
type = "float32*"
role = "input"
shape = ["rows", "d"]
[[argument]]
name = "rows"
type = "int32"
value = "rows"
[[argument]]
name = "d"
type = "int32"
value = "d"
[launch]
grid = ["rows"]
block = ["64"]
[contract]
rows = {{ min = 1, max = 4096 }}
d = {{ min = 8, max = 4096, multiple_of = 8 }}
[workloads]
{workloads}
"""
WORKLOADS = """\
small = { rows = 16, d = 256 }
wide = { rows = 4, d = 2048, weight = 3.0 }
"""

TEMPLATE = """\
// /// tunesmith
// [params]
// BLOCK = [32, 64, 128, 256]
// VEC = [1, 2, 4]
// [default]
// BLOCK = 64
// VEC = 1
// [require]
// whole = "d % (8 * VEC) == 0"
// [launch]
// grid = ["ceildiv(rows * d, BLOCK * VEC)"]
// block = ["BLOCK"]
// ///
#ifndef BLOCK
#define BLOCK 64
#endif
#ifndef VEC
#define VEC 1
#endif
__kernel void scale(__global float* out, __global const float* x, int rows, int d) { int k = BLOCK * VEC; }
"""


def a_problem(kernel: str = "", workloads: str = WORKLOADS) -> Problem:
    text = PROBLEM.format(kernel=kernel, workloads=workloads)
    return parse_problem(text, path="problem.toml", read=lambda name: KERNEL)


def a_template(problem: Problem, text: str = TEMPLATE) -> Template:
    return parse_template(text, path="template.cl", problem=problem)


def a_device(**limits: Any) -> Device:
    return replace(DEVICE, limits=replace(LIMITS, **limits))


def config(block: int, vec: int = 1) -> Config:
    return Config.of({"BLOCK": block, "VEC": vec})


def timing(seconds: float, original: float | None = None, rounds: int = 12, noise: float = 0.0) -> Timing:
    """Samples around `seconds`, all above it or below it in turn; paired with `original` where given."""
    samples = tuple(seconds * (1 + noise * (-1) ** i) for i in range(rounds))
    return Timing(samples, (original,) * rounds if original is not None else ())


def outcome(
    number: int,
    chosen: Config | None,
    results: Mapping[str, float | Status],
    purpose: Purpose = "search",
    original: Mapping[str, float] | None = None,
    noise: float = 0.0,
) -> Outcome:
    """Seconds, or why there are none, for each workload; paired with the original's where given."""
    effort = "long" if purpose == "finalist" else "short"
    trial = Trial(number, chosen, tuple(results), effort, purpose, "t" if chosen is not None else "")
    made = []
    for name, value in results.items():
        if isinstance(value, Status):
            made.append(Result(name, value, detail="it had to be"))
        else:
            time = timing(value, original[name] if original else None, noise=noise)
            made.append(Result(name, Status.OK, time, key=f"{chosen} at {name}"))
    return Outcome(trial, tuple(made), f"source of {chosen}", f"code of {chosen}", seconds=0.5)


def finalist(
    number: int, chosen: Config, speedups: Mapping[str, float | Status], noise: float = 0.0
) -> Outcome:
    """A long measurement in alternation with an original that takes one second."""
    seconds = {n: v if isinstance(v, Status) else 1.0 / v for n, v in speedups.items()}
    return outcome(number, chosen, seconds, "finalist", dict.fromkeys(speedups, 1.0), noise)


def verified(chosen: Config, speedups: Mapping[str, float | Status], noise: float = 0.0) -> Verified:
    return Verified(finalist(99, chosen, speedups, noise), cases=7)


def started(settings: Settings | None = None) -> Started:
    return Started(
        problem="scale",
        files=(("problem.toml", "0" * 64),),
        template="template:template.cl",
        backend="fake",
        device=DEVICE,
        settings=settings or Settings(),
        versions=(("tunesmith", "0.1.0"), ("numpy", "2.0")),
    )


def baseline(seconds: Mapping[str, float]) -> Baseline:
    found = outcome(-1, None, seconds, "sentinel")
    return Baseline(replace(found, trial=replace(found.trial, effort="long")), "reference")


def built(
    chosen: Config | None,
    code: str | None = None,
    *,
    launches: str = "as always",
    refused: Mapping[str, Status] | None = None,
    spills: int = 0,
    occupancy: int | None = None,
    workloads: tuple[str, ...] = ("small", "wide"),
) -> Surveyed:
    """One build for all workloads, with code of its own where none is given."""
    resources = Resources(registers=32, shared=0, spills=spills, private=0)
    digests = (f"source of {chosen}", code or f"code of {chosen}")
    build = SurveyedBuild(workloads, *digests, resources, occupancy, launches)
    results = tuple(Result(name, status, detail="too much") for name, status in (refused or {}).items())
    return Surveyed(chosen, (build,), results)


def records(events: Sequence[Event]) -> list[Recorded]:
    return [Recorded(number, float(number), event) for number, event in enumerate(events)]


def state_of(
    *outcomes: Outcome | Verified | Event,
    original: Mapping[str, float] | None = None,
    settings: Settings | None = None,
) -> State:
    """The state after these, on top of a start, a baseline and an admitted template."""
    first: list[Event] = [
        started(settings),
        baseline(original or {"small": 1.0, "wide": 1.0}),
        Admitted("t", 12, 12),
    ]
    rest: list[Event] = []
    for item in outcomes:
        rest += [Asked((item.trial,)), Measured(item)] if isinstance(item, Outcome) else [item]
    return fold_records(records([*first, *rest]))


def log_of(journal: Journal, listener: Listener) -> RunLog:
    """As a run goes on from what a journal holds."""
    return RunLog(journal, fold_records(journal.read()), listener)
