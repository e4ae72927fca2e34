"""Simulated scaling: a search of a recorded space on 1 to 64 devices, with a simulated clock.

    python -m benchmarks.search.scaling FOLDER --out RESULTS [--devices 1 8 64] [--evals 1024] [--seeds 1]
                                        [--cores 12] [--jobs 2]
    python -m benchmarks.search.scaling FOLDER --out RESULTS --show

RESULTS gets a file of JSON lines; what is there already is not simulated again. Without `--cores` each device
has its own host, which builds what the device is to measure: an evaluation takes what was recorded. With
`--cores` so many builder cores come with each device, builds are made ahead, and the device only measures.

The searcher is the real one and the processor time of each of its answers passes on the simulated clock, in
which the loop does nothing else. Everything else is simulated: builds on builder cores, trials on devices,
and what the transport and the journal add. `Costs` has what each of these takes and where that was measured.

Trials are asked for at the pace of a run (`tunesmith.run.budget.plan_batches`), of what is built, builds
as far ahead
as a run asks for them. Each device takes the next trial as soon as it is free, each builder the next build.

A recording's `cost_s` is compiling, verifying and timing together. Here the device has as many launches of
the kernel as the recording's costs grow by (32 and one to verify at most), and the rest is the build. Where
a recording has no costs, each configuration takes as long to build as in another one of the same kernel, and
as many launches as our laboratory makes of one so slow: few of one that is out of the race (`LOOKED_AT`).
"""

from __future__ import annotations

import argparse
import heapq
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.fold import a_problem, events
from benchmarks.search.compare import EVALS, here
from benchmarks.search.figures import BUDGETS
from benchmarks.search.recorded import Recorded, nearness, read_all
from tunesmith.lab.measure import OUT_OF_RACE
from tunesmith.run.budget import plan_batches
from tunesmith.run.events import Settings
from tunesmith.run.folder import FileJournal
from tunesmith.run.ports import Proposal, Searcher, SearchView, Tried
from tunesmith.run.scores import BUILDS, score_configs
from tunesmith.run.stages import CHOICE
from tunesmith.run.state import State, apply_record
from tunesmith.search.default import Default
from tunesmith.session.place import LEAST_AHEAD
from tunesmith.space.configset import Config

FILE = "scaling.jsonl"
LAUNCHES = 33  # of a kernel at most: 32 are timed, one is verified
LOOKED_AT = 4  # of one that is out of the race: one is verified, one loads it, one is probed, one timed
DEVICES = (1, 2, 4, 8, 16, 32, 64)
WIDTH = Settings().width


@dataclass(frozen=True)
class Costs:
    """Seconds that pass beside builds, trials and decisions."""

    request: float = 0.46e-3  # of a worker behind a command, and back (benchmarks.transport)
    replaced: float = 0.105  # a worker whose kernel failed is replaced (benchmarks.transport)
    event: float = (
        1.0e-3  # a line of the journal is encoded, written, synchronised and folded (`event_seconds`)
    )


@dataclass(frozen=True)
class Cluster:
    devices: int
    builders: int  # cores that build ahead; 0: the host of a device builds what it measures

    @property
    def ahead(self) -> int:
        """Configurations built or being built that nobody has asked to measure."""
        return max(LEAST_AHEAD, 2 * self.builders)


@dataclass(frozen=True)
class Times:
    """Seconds of each configuration on a builder, on a device, and there where it is out of the race. What
    fails is on the device for nothing."""

    build: NDArray[np.float64]
    trial: NDArray[np.float64]
    behind: NDArray[np.float64]


@dataclass
class Simulated:
    """What came of it: when each evaluation ended, on the simulated clock, and what was busy for how long."""

    asked: list[int] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    deciding: float = 0.0
    handling: float = 0.0
    building: float = 0.0
    measuring: float = 0.0
    decisions: int = 0


def launches(recorded: Recorded, costs: NDArray[np.float64]) -> float:
    """By how much the costs grow with the time of the kernel."""
    right = ~np.isnan(recorded.times)
    slope = np.polyfit(recorded.times[right] / 1e3, costs[right], 1)[0]
    return float(np.clip(slope, 1, LAUNCHES))


def times_of(recorded: Recorded, others: list[Recorded]) -> Times:
    """By its own costs, or with the builds of another recording of the kernel."""
    seconds = np.nan_to_num(recorded.times, nan=0.0) / 1e3
    if recorded.costs is not None:
        trial = np.minimum(launches(recorded, recorded.costs) * seconds, 0.95 * recorded.costs)
        return Times(recorded.costs - trial, trial, trial)
    like = next(o for o in others if o.kernel == recorded.kernel and o.costs is not None)
    assert np.array_equal(like.rows, recorded.rows), "recordings of one kernel have the same configurations"
    return Times(times_of(like, others).build, LAUNCHES * seconds, LOOKED_AT * seconds)


What = Literal["built", "measured"]


class Simulation:
    """The events that are on their way, by time; the loop takes those that have come, one after the other."""

    def __init__(
        self,
        searcher: Searcher,
        recorded: Recorded,
        times: Times,
        cluster: Cluster,
        costs: Costs,
        evals: int,
        seed: int,
        clock: Callable[[], float] = time.process_time,
        pace: Callable[[int, int, int], tuple[int, int]] = plan_batches,
    ) -> None:
        self._pace = pace
        self._searcher, self._recorded, self._times = searcher, recorded, times
        self._cluster, self._costs, self._evals, self._seed, self._clock = cluster, costs, evals, seed, clock
        self._now = 0.0
        self._coming: list[tuple[float, int, What, int]] = []
        self._number = 0
        self._free_builders = [0.0] * cluster.builders
        self._free_devices = [0.0] * cluster.devices
        self._building: dict[int, None] = {}
        self._pool: dict[int, None] = {}
        self._flying: dict[int, None] = {}
        self._tried: list[Tried] = []
        self._best = np.inf  # milliseconds of the kernel
        self.found = Simulated()

    def run(self) -> Simulated:
        while len(self._tried) < self._evals:
            if self._ask_trials(CHOICE) or self._ask_builds():
                continue
            if not self._building and self._ask_trials(1):
                continue
            if not self._coming:
                break  # everything has been tried
            self._now = max(self._now, self._coming[0][0])
            while self._coming and self._coming[0][0] <= self._now:
                self._take(*heapq.heappop(self._coming)[2:])
        return self.found

    # -- the loop -----------------------------------------------------------------------------------

    def _take(self, what: What, number: int) -> None:
        self._spend("handling", self._costs.event)
        if what == "built":
            del self._building[number]
            self._pool[number] = None
        else:
            del self._flying[number]
            self.found.ended.append(self._now)
            self.found.asked.append(number)
            self._tried.append(Tried(self._config(number), self._recorded.scores[number]))
            self._best = np.fmin(self._best, self._recorded.times[number])

    def _ask_trials(self, least: int) -> bool:
        """At the pace of a run, which has nothing to choose from as long as too little is built."""
        batch, enough = self._pace(len(self._tried), self._cluster.devices, WIDTH)
        left = self._evals - len(self._tried) - len(self._flying)
        count, pool = min(batch, left), None
        if self._cluster.builders:
            count = min(count, len(self._pool) if len(self._pool) >= least else 0)
            pool = tuple(self._config(number) for number in self._pool)
        if count <= 0 or len(self._flying) > enough:
            return False
        flying = tuple(self._config(number) for number in self._flying)
        numbers = self._ask(self._view(pool, flying), count)
        for number in numbers:
            self._pool.pop(number, None)
            self._flying[number] = None
            begun = max(self._now, heapq.heappop(self._free_devices))
            ended = begun + self._trial(number)
            heapq.heappush(self._free_devices, ended)
            self._send("measured", number, ended)
        return bool(numbers)

    def _ask_builds(self) -> bool:
        waiting = len(self._pool) + len(self._building)
        known = len(self._tried) + len(self._flying) + waiting
        ahead = self._cluster.ahead
        missing = min(ahead - waiting, BUILDS * self._evals - known)
        if not self._cluster.builders or missing < max(1, ahead // 2):
            return False
        flying = tuple(self._config(n) for n in (*self._flying, *self._building, *self._pool))
        numbers = self._ask(self._view(None, flying), missing)
        for number in numbers:
            self._building[number] = None
            begun = max(self._now, heapq.heappop(self._free_builders))
            seconds = float(self._times.build[number]) + self._costs.request
            self.found.building += seconds
            heapq.heappush(self._free_builders, begun + seconds)
            self._send("built", number, begun + seconds)
        return bool(numbers)

    def _ask(self, view: SearchView, count: int) -> list[int]:
        begun = self._clock()
        proposal: Proposal = self._searcher.ask(view, count)
        self._spend("deciding", self._clock() - begun)
        self.found.decisions += 1
        if proposal.configs:
            self._spend("handling", self._costs.event)
        numbers = [self._recorded.configs.index(config) for config in proposal.configs]
        return [number for number in numbers if number is not None]

    # -- small parts --------------------------------------------------------------------------------

    def _trial(self, number: int) -> float:
        """Seconds on a device; those behind a failure are what a new worker takes."""
        failed = self._recorded.scores[number] is None
        is_behind = self._recorded.times[number] > OUT_OF_RACE * self._best
        on_device = self._costs.request
        on_device += float((self._times.behind if is_behind else self._times.trial)[number])
        on_device += 0.0 if self._cluster.builders else float(self._times.build[number])
        on_device += self._costs.replaced if failed else 0.0
        self.found.measuring += on_device
        return on_device

    def _send(self, what: What, number: int, at: float) -> None:
        self._number += 1
        heapq.heappush(self._coming, (at, self._number, what, number))

    def _spend(self, on: Literal["deciding", "handling"], seconds: float) -> None:
        self._now += seconds
        setattr(self.found, on, getattr(self.found, on) + seconds)

    def _config(self, number: int) -> Config:
        return self._recorded.config(number)

    def _view(self, pool: tuple[Config, ...] | None, in_flight: tuple[Config, ...]) -> SearchView:
        asked = len(self._tried) + len(in_flight)
        return SearchView(
            self._recorded.space,
            self._recorded.configs,
            Config(()),  # a recording has no default: one that is not feasible is never asked for
            tuple(self._tried),
            in_flight,
            budget_left=None,
            seed=self._seed * 100_003 + 2 * asked + (pool is None),
            pool=pool,
        )


def event_seconds(count: int = 500) -> float:
    """The median over events of a made-up run, on the disk of the folder for temporary files."""
    problem, state, taken = a_problem(), State(), []
    with tempfile.TemporaryDirectory() as folder:
        journal = FileJournal(Path(folder) / "journal.jsonl", time.monotonic)
        for event in events(count):
            begun = time.perf_counter()
            state = apply_record(state, journal.append(event))
            if state.admitted is not None:
                score_configs(problem, state)
            taken.append(time.perf_counter() - begun)
        journal.close()
    return float(np.median(taken))


# -- many of them -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wanted:
    folder: Path
    space: str
    seed: int
    devices: int
    builders: int
    evals: int

    @property
    def key(self) -> tuple[str, int, int, int, int]:
        return self.space, self.seed, self.devices, self.builders, self.evals


@cache
def spaces(folder: Path) -> dict[str, Recorded]:
    return {recorded.name: recorded for recorded in read_all(folder)}


def simulate(wanted: Wanted) -> dict[str, object]:
    found = spaces(wanted.folder)
    recorded = found[wanted.space]
    times = times_of(recorded, list(found.values()))
    cluster = Cluster(wanted.devices, wanted.builders)
    made = Simulation(Default(), recorded, times, cluster, Costs(), wanted.evals, wanted.seed).run()
    return {
        **asdict(wanted),
        **asdict(made),
        "folder": "",
        "ended": made.ended[-1],
        "asked": made.asked[:EVALS],
    }


def key_of(line: dict[str, Any]) -> tuple[str, int, int, int, int]:
    return line["space"], line["seed"], line["devices"], line["builders"], line["evals"]


def read_lines(out: Path) -> list[dict[str, Any]]:
    path = out / FILE
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def rows(folder: Path, lines: list[dict[str, Any]]) -> Iterator[str]:
    """A table: efficiency over 1 device, what was busy for how much of the time, and how near to the optimum
    the first evaluations came."""
    names = ["devices", "builders", "efficiency", "least", "devices busy", "builders busy", "loop busy"]
    names += ["ms of it a trial", *map(str, BUDGETS)]
    yield "| " + " | ".join(names) + " |"
    yield "|" + "---:|" * len(names)
    alone = {
        (x["space"], x["seed"], x["evals"], x["builders"]): x["ended"] for x in lines if x["devices"] == 1
    }
    groups = sorted({(x["evals"], x["builders"] // x["devices"], x["devices"], x["builders"]) for x in lines})
    for evals, cores, devices, builders in groups:
        own = [x for x in lines if (x["evals"], x["devices"], x["builders"]) == (evals, devices, builders)]
        own = [x for x in own if (x["space"], x["seed"], evals, cores) in alone]
        if not own:
            continue
        shares = [alone[x["space"], x["seed"], evals, cores] / x["ended"] / devices for x in own]
        by_space = [
            np.mean([s for s, x in zip(shares, own, strict=True) if x["space"] == name])
            for name in sorted({x["space"] for x in own})
        ]
        loop = [(x["deciding"] + x["handling"]) for x in own]
        figures = [
            np.mean(by_space),
            np.min(by_space),
            np.mean([x["measuring"] / x["ended"] / devices for x in own]),
            np.mean([x["building"] / x["ended"] / max(1, builders) for x in own]),
            np.mean([seconds / x["ended"] for seconds, x in zip(loop, own, strict=True)]),
        ]
        near = np.array([nearness(spaces(folder)[x["space"]], x["asked"], EVALS) for x in own]).mean(axis=0)
        yield (
            f"| {devices} | {builders} |"
            + "".join(f" {figure:.0%} |" for figure in figures)
            + f" {1e3 * sum(loop) / evals / len(own):.1f} |"
            + "".join(f" {near[budget - 1]:.3f}".replace("0.", ".", 1) + " |" for budget in BUDGETS)
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="the recorded spaces, *.json.gz")
    parser.add_argument("--out", type=Path, required=True, help="where results go and earlier ones are found")
    parser.add_argument("--devices", type=int, nargs="+", default=DEVICES)
    parser.add_argument("--cores", type=int, default=0, help="builder cores that come with a device")
    parser.add_argument("--evals", type=int, default=1024)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print the tables of what is there")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    if given.show:
        print(f"an event takes {1e3 * event_seconds():.2f} ms here\n")
        print("\n".join(rows(given.folder, read_lines(given.out))))
        return 0
    done = {key_of(line) for line in read_lines(given.out)}
    wanted = [
        Wanted(given.folder, space, seed, devices, given.cores * devices, given.evals)
        for seed in range(given.seeds)
        for devices in sorted(given.devices, reverse=True)
        for space in spaces(given.folder)
    ]
    with ProcessPoolExecutor(given.jobs, initializer=threadpool_limits, initargs=(1,)) as pool:
        running = [pool.submit(simulate, each) for each in wanted if each.key not in done]
        for count, future in enumerate(as_completed(running), start=1):
            with (given.out / FILE).open("a") as file:
                file.write(json.dumps({**future.result(), "commit": here()}) + "\n")
            print(f"\r{count} of {len(running)} simulations", end="", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
