"""A fleet on recorded spaces: plan, dealing, journal and head are real; nodes and time are simulated.

    python -m benchmarks.fleet SPACES [--problems 200] [--evals 40] [--seed 0] [--out FILE]

SPACES has recordings of one kernel on several GPUs (`kernel-GPU.json.gz`, see `search.recorded`). A problem
is a random third of the configurations; a cell searches them on one GPU's recording with the default
searcher, four at a time. Of a node that dies the batch under way is lost; as with Ray, the cell goes on when
there is a node again. The head is killed once, in the middle of a line of its journal.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing import Pool
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.search.recorded import Recorded, read_all
from tunesmith.base.codec import encode_json
from tunesmith.base.text import seed_of
from tunesmith.plugins.fleet.cell import CellOutcome
from tunesmith.plugins.fleet.head import CellRunner, FleetHead
from tunesmith.plugins.fleet.plan import (
    HOUR,
    FleetAuthor,
    FleetCell,
    FleetDevice,
    FleetPlan,
    FleetProblem,
    FleetSlot,
    cells_of,
    slots_of,
    stored_plan,
)
from tunesmith.plugins.fleet.record import (
    FLEET_JOURNAL,
    CellBegan,
    CellStanding,
    FleetJournal,
    FleetResult,
    How,
    VerifiedCell,
    fold_fleet_events,
)
from tunesmith.run.folder import FLEET, RunFolder
from tunesmith.run.ports import SearchView, Tried
from tunesmith.search import load_searcher
from tunesmith.space.configset import Config

BATCH = 4
EACH = 0.4  # device-seconds of an evaluation beside its launches
LAUNCHES = 100  # of an evaluation
START, VERIFY = 5.0, 20.0  # seconds that a session needs before its first batch, and a cell at its end
IDLE = 120.0  # seconds between two looks where nothing is at work
AWAY = (60.0, 600.0)  # seconds until a dead node is back: least and most


# -- what a cell does ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellBatch:
    seconds: float  # of the device
    best: float  # speed-up after it
    gain: float | None  # that the searcher expects of it
    number: int  # of the best configuration so far


def part_of(recorded: Recorded, seed: int) -> Recorded:
    """A third of its configurations, the same ones on every GPU of the kernel."""
    keep = np.array([seed_of(seed, *row) % 3 == 0 for row in recorded.rows.tolist()])
    return replace(recorded, rows=recorded.rows[keep], times=recorded.times[keep])


def batches_of(recorded: Recorded, seed: int, evals: int) -> list[CellBatch]:
    """The whole search of a cell: it depends on nothing else, as that of a run does not."""
    view = SearchView(recorded.space, recorded.configs, Config(()), (), (), budget_left=evals, seed=seed)
    own, found, best, number = load_searcher("default"), list[CellBatch](), 0.0, -1
    while len(view.tried) < evals:
        view = replace(view, seed=seed * 100_003 + len(view.tried), budget_left=evals - len(view.tried))
        proposal = own.ask(view, min(BATCH, evals - len(view.tried)))
        if not proposal.configs:
            break
        seconds, tried = 0.0, []
        for config in proposal.configs:
            place = recorded.configs.index(config)
            assert place is not None, "a searcher asks for what is feasible"
            score, took = recorded.scores[place], float(recorded.times[place])
            seconds += EACH + (0.0 if math.isnan(took) else LAUNCHES * took / 1000)
            tried.append(Tried(config, score))
            if score is not None and score > best:
                best, number = score, place
        view = replace(view, tried=(*view.tried, *tried))
        found.append(CellBatch(seconds, math.exp(best), proposal.gain, number))
    return found


# -- where it does it ---------------------------------------------------------------------------------------


@dataclass
class VirtualNodes:
    """Which nodes are there at which time; without a mean life they live for ever."""

    life: float | None
    seed: int
    _gone: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def gone(self, slot: str, until: float) -> list[tuple[float, float]]:
        """When it dies and is back, up to some time."""
        if self.life is None:
            return []
        known = self._gone.setdefault(slot, [])
        draw = random.Random(seed_of(self.seed, slot, len(known)))
        while not known or known[-1][0] <= until:
            since = known[-1][1] if known else 0.0
            dies = since + draw.expovariate(1 / self.life)
            known.append((dies, dies + draw.uniform(*AWAY)))
            draw = random.Random(seed_of(self.seed, slot, len(known)))
        return known


class HeadKilled(Exception):
    pass


@dataclass
class _Session:
    slot: FleetSlot
    began: CellBegan
    commits: list[float]  # when each further batch is on disk
    end: float
    how: How


@dataclass
class VirtualCells(CellRunner):
    """All nodes, and the disk that they share: it outlives heads."""

    plan: FleetPlan
    batches: Mapping[str, Sequence[CellBatch]]
    nodes: VirtualNodes
    now: float = 0.0
    kill_at: float = math.inf  # when the head is killed
    done: dict[str, int] = field(default_factory=dict)  # batches on disk
    verified: set[str] = field(default_factory=set)
    sessions: dict[str, _Session] = field(default_factory=dict)
    orphans: set[str] = field(default_factory=set)  # of these, begun by a head that is gone
    begun: int = 0
    lost: int = 0  # batches and verifications under way

    def slots(self) -> list[FleetSlot]:
        return list(slots_of(self.plan))

    def start(self, slot: FleetSlot, began: CellBegan) -> str:
        assert began.cell not in self.sessions, "no cell runs twice at once"
        assert began.cell not in self.verified, "no finished cell runs again"
        assert slot.name not in {own.slot.name for own in self.sessions.values()}, "a slot has one cell"
        self.begun += 1
        at, commits = self._after(slot, self.now, START), list[float]()
        how: How = "paused"
        every, done = self.batches[began.cell], self.done.get(began.cell, 0)
        used = sum(batch.seconds for batch in every[:done])
        while done < len(every) and used < began.until:
            at, used = self._after(slot, at, every[done].seconds), used + every[done].seconds
            done += 1
            commits.append(at)
        if done == len(every) or began.then == "finish":
            at, how = self._after(slot, at, VERIFY), "finished"
        self.sessions[began.cell] = _Session(slot, began, commits, at, how)
        return ""

    def _after(self, slot: FleetSlot, at: float, seconds: float) -> float:
        """When so many seconds of work have been done without the node's death."""
        for dies, back in self.nodes.gone(slot.name, at + 1e6):
            if at + seconds <= dies:
                break
            if back > at:
                self.lost += dies > at
                at = back + START
        return at + seconds

    def ended(self, seconds: float) -> list[tuple[str, CellOutcome]]:
        if not self.sessions:
            self.now += max(seconds, IDLE if seconds else 0.0)
            return []
        until = min(own.end for own in self.sessions.values())
        if self.kill_at <= until:
            self.now, self.kill_at = self.kill_at, math.inf
            self.orphans = set(self.sessions)
            self.stop()
            raise HeadKilled
        self.now = max(self.now, until)
        over = sorted(self.sessions.keys() - self.orphans)
        over = [cell for cell in over if self.sessions[cell].end <= self.now]
        return [(cell, self._end(cell)) for cell in over]

    def stop(self) -> None:
        """Cells whose head is gone end after the batch under way; who verifies, does so to the end."""
        for own in self.sessions.values():
            under_way = [commit for commit in own.commits if commit > self.now]
            if own.how == "paused" or (own.how == "finished" and under_way):
                own.commits = own.commits[: len(own.commits) - len(under_way) + 1]
                own.end, own.how = max([self.now, *own.commits[-1:]]), "paused"

    def _end(self, cell: str) -> CellOutcome:
        own = self.sessions.pop(cell)
        self.done[cell] = self.done.get(cell, 0) + len(own.commits)
        if own.how == "finished":
            self.verified.add(cell)
        return CellOutcome(own.how, self.standing(cell))

    def standing(self, cell: str) -> CellStanding:
        every = self.batches[cell][: self.done.get(cell, 0)]
        best, gain = (every[-1].best, every[-1].gain) if every else (1.0, None)
        seconds = sum(batch.seconds for batch in every)
        verified = None
        if cell in self.verified:
            winner = str(every[-1].number) if every else ""
            verified = VerifiedCell(best, (best, best), None, winner)
        return CellStanding(seconds, seconds, BATCH * len(every), best, gain, None, verified)

    def left(self, began: CellBegan) -> CellOutcome | None:
        own = self.sessions.get(began.cell)
        if own is None:
            return CellOutcome("lost", self.standing(began.cell), "whoever ran it is gone", 1)
        if own.end > self.now:
            self.now += 1.0
            return None
        self.orphans.discard(began.cell)
        return self._end(began.cell)


class Silent:
    def event(self, *_: object) -> None: ...

    def note(self, _text: str) -> None: ...

    def say(self, _text: str) -> None: ...


# -- the fleet ----------------------------------------------------------------------------------------------


def planned(gpus: Mapping[str, int], problems: int, hours: float, seed: int) -> FleetPlan:
    """`gpus`: how many nodes there are of each. Weights are as uneven as those of a library's operators."""
    draw = random.Random(seed)
    weights = [draw.lognormvariate(0.0, 1.0) for _ in range(problems)]
    own = tuple(FleetProblem(f"op{n:03d}", str(n), w, ()) for n, w in enumerate(weights))
    devices = tuple(FleetDevice(name, slots=count) for name, count in gpus.items())
    return FleetPlan(hours, own, devices, (FleetAuthor("expert"),))


@dataclass(frozen=True)
class Finished:
    result: FleetResult
    runner: VirtualCells
    heads: int
    seconds: float  # of this machine

    @property
    def winners(self) -> dict[str, str]:
        return {row.run: row.verified.winner for row in self.result.rows if row.verified is not None}


def run(folder: Path, plan: FleetPlan, runner: VirtualCells) -> Finished:
    """To its end, by as many heads as it takes."""
    begun, heads = perf_counter(), 0
    folder.mkdir()
    (folder / FLEET).write_bytes(encode_json(plan) + b"\n")
    own = RunFolder(folder)
    while True:
        heads += 1
        journal = FleetJournal(folder)
        stored, cells = stored_plan(folder)
        state = fold_fleet_events(journal.read())
        head = FleetHead(own, stored, cells, runner, journal, state, Silent())
        try:
            return Finished(head.run(), runner, heads, perf_counter() - begun)
        except HeadKilled:
            journal.close()
            with (folder / FLEET_JOURNAL).open("ab") as file:
                file.write(b'{"number": 17, "beg')  # it was writing


def dealt_alike(plan: FleetPlan, batches: Mapping[str, Sequence[CellBatch]]) -> float:
    """The weighted mean where every cell has the same share, the heaviest first, until the budget is used
    up: a batch that was begun is ended there as well."""
    cells = cells_of(plan)
    share, whole = plan.hours * HOUR / len(cells), sum(cell.weight for cell in cells)
    total, spent = 0.0, 0.0
    for cell in sorted(cells, key=lambda one: -one.weight):
        used, best = 0.0, 1.0
        for batch in batches[cell.name]:
            if used >= share or spent + used >= plan.hours * HOUR:
                break
            used, best = used + batch.seconds, batch.best
        total, spent = total + cell.weight * math.log(best), spent + used
    return math.exp(total / whole)


def _searched(task: tuple[Recorded, int, int]) -> list[CellBatch]:
    recorded, seed, evals = task
    return batches_of(part_of(recorded, seed), seed, evals)


def searches(
    plan: FleetPlan, spaces: Mapping[str, Recorded], evals: int, jobs: int
) -> dict[str, list[CellBatch]]:
    """Of all cells, each once: whoever interrupts them, they go on as they would have."""
    cells = cells_of(plan)
    tasks = [(spaces[cell.device.name], int(cell.problem.digest), evals) for cell in cells]
    with Pool(jobs) as pool:
        found = pool.map(_searched, tasks, chunksize=4)
    return dict(zip((cell.name for cell in cells), found, strict=True))


def whole_hours(batches: Mapping[str, Sequence[CellBatch]]) -> float:
    return sum(batch.seconds for own in batches.values() for batch in own) / HOUR


def over_budget(found: Finished, batches: Mapping[str, Sequence[CellBatch]]) -> float:
    """Device-seconds beyond the budget, in batches of the longest kind."""
    longest = max(batch.seconds for own in batches.values() for batch in own)
    return max(0.0, (found.result.used - found.result.hours) * HOUR / longest)


def mean_with_unfinished(found: Finished, cells: Sequence[FleetCell]) -> float:
    """The weighted mean over all cells; what has nothing verified counts as 1."""
    logs = {row.run.rpartition("/")[2]: row.verified.speedup for row in found.result.rows if row.verified}
    whole = sum(cell.weight for cell in cells)
    return math.exp(sum(cell.weight * math.log(logs.get(cell.name, 1.0)) for cell in cells) / whole)


def row_of(
    name: str, found: Finished, plan: FleetPlan, batches: Mapping[str, Sequence[CellBatch]]
) -> dict[str, object]:
    counts, runner = found.result.counts, found.runner
    return {
        "run": name,
        "hours": round(plan.hours, 3),
        "used": round(found.result.used, 3),
        "beyond the budget, in batches": round(over_budget(found, batches), 2),
        "finished": counts["finished"],
        "of": len(found.result.rows),
        "sessions": runner.begun,
        "lost": runner.lost,
        "heads": found.heads,
        "simulated hours": round(runner.now / HOUR, 2),
        "weighted mean": round(mean_with_unfinished(found, cells_of(plan)), 4),
        "all alike": round(dealt_alike(plan, batches), 4),
        "seconds here": round(found.seconds, 1),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet")
    parser.add_argument("spaces", type=Path)
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--evals", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=6, help="of each GPU")
    parser.add_argument("--life", type=float, default=900.0, help="mean seconds until a node dies")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes of this machine")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    spaces = {one.gpu.replace(" ", "_"): one for one in read_all(given.spaces)}
    nodes = dict.fromkeys(spaces, given.nodes)
    plan = planned(nodes, given.problems, 1.0, given.seed)
    begun = perf_counter()
    batches = searches(plan, spaces, given.evals, given.jobs)
    whole = whole_hours(batches)
    sys.stderr.write(
        f"{len(batches)} searches: {whole:.2f} device hours, {perf_counter() - begun:.0f} s here\n"
    )
    rows, ended = list[dict[str, object]](), dict[tuple[float, float | None], Finished]()
    with tempfile.TemporaryDirectory() as scratch:
        for share in (1.1, 0.5, 0.25):
            own = replace(plan, hours=whole * share)
            for life in (None, given.life):
                kill = math.inf if life is None else 0.4 * whole * share * HOUR / sum(nodes.values())
                runner = VirtualCells(own, batches, VirtualNodes(life, given.seed), kill_at=kill)
                name = f"{share:g} of what all searches need, " + ("nodes die" if life else "nobody dies")
                found = ended[share, life] = run(Path(scratch) / str(len(rows)), own, runner)
                rows.append(row_of(name, found, own, batches))
                sys.stderr.write(f"{rows[-1]}\n")
    for share in (1.1, 0.5, 0.25):
        still, dying = ended[share, None].winners, ended[share, given.life].winners
        same = sum(still.get(cell) == winner for cell, winner in dying.items())
        rows.append({"run": f"{share:g}: same winners", "same": same, "of": len(still)})
    text = json.dumps(rows, indent=1)
    if given.out:
        given.out.write_text(text + "\n")
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
