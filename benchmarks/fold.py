"""What it takes to fold a journal, and to score what was tried: processor time by the number of trials.

    python -m benchmarks.fold [1000 2000 4000 8000]

The trials are made up: two workloads, each configuration built ahead, batches of four, a sentinel with every
fourth. `scores()` is timed as the loop asks for it: after every event.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from tunesmith.problem.device import Device, Limits
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.run.events import (
    Admitted,
    Asked,
    Baseline,
    Decided,
    Event,
    Measured,
    Recorded,
    Settings,
    Started,
    Surveyed,
    SurveyedBuild,
)
from tunesmith.run.outcome import Outcome, Purpose, Result, Timing, Trial
from tunesmith.run.scores import score_configs
from tunesmith.run.state import State, apply_record, fold_records
from tunesmith.space.configset import Config

SIZES = (1000, 2000, 4000, 8000)
WORKLOADS = ("small", "large")
BATCH, SENTINEL_EVERY = 4, 16
CALLS = 200  # of scores(), each after another event
LIMITS = Limits(1024, (1024, 1024, 64), (65535, 65535, 65535), 49152, 16, 32, 1 << 20, 1 << 34, 1 << 32, 256)
DEVICE = Device("fake", "0", "a device", "a platform", "1", "simulated", LIMITS)
PROBLEM = """\
name = "scale"
[kernel]
source = "kernel.cl"
entry = "scale"
[[argument]]
name = "x"
type = "float32*"
role = "inout"
shape = ["n"]
[[argument]]
name = "n"
type = "int32"
value = "n"
[launch]
grid = ["n"]
block = ["64"]
[contract]
n = { min = 1, max = 65536 }
[workloads]
small = { n = 1024 }
large = { n = 65536 }
"""


def a_problem() -> Problem:
    text = "__kernel void scale(__global float* x, int n) {}\n"
    return parse_problem(PROBLEM, path="problem.toml", read=lambda name: text)


def outcome(trial: Trial) -> Outcome:
    seconds = 1e-3 * (1 + (trial.id * 7919 % 1009) / 1009)
    timings = [Timing(tuple(seconds * (1 + i / 100) for i in range(12))) for _ in trial.workloads]
    results = (Result(n, Status.OK, t) for n, t in zip(trial.workloads, timings, strict=True))
    return Outcome(trial, tuple(results))


def events(trials: int) -> Iterator[Event]:
    yield Started("scale", (), "", "fake", DEVICE, Settings(ahead=BATCH), ())
    yield Baseline(outcome(Trial(-1, None, WORKLOADS, "long", "sentinel")), "reference")
    yield Admitted("t", trials, trials)
    yield Decided("search", "to see what it costs")
    number = 0
    for batch in range(0, trials, BATCH):
        configs = [Config((("BLOCK", i), ("VEC", i % 8))) for i in range(batch, min(trials, batch + BATCH))]
        builds = [Trial(number + i, c, WORKLOADS, "build") for i, c in enumerate(configs)]
        yield Asked(tuple(builds), 0.1)
        yield from (Surveyed(c, (SurveyedBuild(WORKLOADS, f"s{c}", f"c{c}"),)) for c in configs)
        wanted: list[tuple[Config | None, Purpose]] = [(config, "search") for config in configs]
        wanted += [(None, "sentinel")] if batch % SENTINEL_EVERY == 0 else []
        number += len(builds)
        asked = [Trial(number + i, c, WORKLOADS, "short", purpose) for i, (c, purpose) in enumerate(wanted)]
        number += len(asked)
        yield Asked(tuple(asked), 0.1)
        yield from (Measured(outcome(trial)) for trial in asked)


def records(trials: int) -> list[Recorded]:
    return [Recorded(number, float(number), event) for number, event in enumerate(events(trials))]


def measure(trials: int, problem: Problem) -> tuple[float, float]:
    """Seconds to fold them all, and of one call of scores()."""
    recorded = records(trials)
    begun = time.process_time()
    fold_records(recorded)
    folded = time.process_time() - begun
    state: State = fold_records(recorded[:-CALLS])
    score_configs(problem, state)
    spent = 0.0
    for record in recorded[-CALLS:]:
        state = apply_record(state, record)
        begun = time.process_time()
        score_configs(problem, state)
        spent += time.process_time() - begun
    return folded, spent / CALLS


def main(arguments: list[str]) -> int:
    problem = a_problem()
    print(f"{'trials':>8} {'fold, s':>10} {'scores(), µs':>14}")
    for trials in map(int, arguments) if arguments else SIZES:
        folded, scored = measure(trials, problem)
        print(f"{trials:>8} {folded:>10.3f} {1e6 * scored:>14.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
