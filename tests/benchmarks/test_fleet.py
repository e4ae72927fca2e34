"""Whole fleets with nodes that die and a head that is killed, in simulated time."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.fleet import (
    CellBatch,
    Finished,
    VirtualCells,
    VirtualNodes,
    main,
    over_budget,
    planned,
    run,
    whole_hours,
)
from tunesmith.plugins.fleet.plan import FleetPlan, cells_of
from tunesmith.plugins.fleet.record import FleetJournal, fold_fleet_events

GPUS = {"A": 2, "B": 1}


def searches(plan: FleetPlan, batches: int = 6) -> dict[str, list[CellBatch]]:
    """Of each cell, as if somebody had searched."""
    found = {}
    for cell in cells_of(plan):
        gains = [1 + (cell.number * 7 + place * 5) % 4 / (10 * (place + 1)) for place in range(batches)]
        bests = [math.prod(gains[: place + 1]) for place in range(batches)]
        seconds = 20.0 + cell.number % 5
        found[cell.name] = [CellBatch(seconds, best, None, place) for place, best in enumerate(bests)]
    return found


def finished(folder: Path, share: float, life: float | None, kill: float = math.inf) -> Finished:
    plan = planned(GPUS, 8, 1.0, seed=3)
    batches = searches(plan)
    plan = replace(plan, hours=share * whole_hours(batches))
    runner = VirtualCells(plan, batches, VirtualNodes(life, 5), kill_at=kill)
    found = run(folder, plan, runner)
    assert over_budget(found, batches) <= sum(GPUS.values()), "one batch of each slot at most"
    return found


def test_nodes_die_and_the_head_is_killed_and_the_winners_are_the_same(tmp_path: Path) -> None:
    calm = finished(tmp_path / "calm", 1.1, None)
    wild = finished(tmp_path / "wild", 1.1, 600.0, kill=500.0)
    assert (wild.heads, wild.runner.lost > 2) == (2, True), "this is about deaths"
    assert len(calm.winners) == len(cells_of(planned(GPUS, 8, 1.0, 3)))
    assert wild.winners == calm.winners
    assert wild.result.used == pytest.approx(calm.result.used), "what was under way is lost, and nothing else"


def test_a_budget_that_is_too_small_is_spent_where_it_gives_most(tmp_path: Path) -> None:
    found = finished(tmp_path / "fleet", 0.4, 600.0)
    assert {row.status for row in found.result.rows} <= {"finished", "not begun"}
    rows = sorted(found.result.rows, key=lambda row: -row.weight)
    third = len(rows) // 3
    light, heavy = (sum(row.device_seconds for row in some) for some in (rows[-third:], rows[:third]))
    assert heavy > 1.5 * light


def test_the_state_is_that_of_the_journal(tmp_path: Path) -> None:
    found = finished(tmp_path / "fleet", 1.1, 600.0, kill=400.0)
    state = fold_fleet_events(FleetJournal(tmp_path / "fleet").read())
    assert state.heads == 2
    assert state.spent == pytest.approx(found.result.used * 3600)
    assert all(cell.began is None for cell in state.cells.values())


@pytest.mark.long
def test_on_recordings_with_the_real_searcher(tmp_path: Path) -> None:
    spaces = tmp_path / "spaces"
    spaces.mkdir()
    for gpu in ("A", "B"):
        configs = [[a, b] for a in range(16) for b in range(24)]
        times = [1 + abs(a - (5 if gpu == "A" else 11)) + (b - 9) ** 2 / 40 for a, b in configs]
        data = {"params": {"A": list(range(16)), "B": list(range(24))}, "configs": configs, "time_ms": times}
        with gzip.open(spaces / f"kernel-{gpu}.json.gz", "wt") as file:
            json.dump(data, file)
    out = tmp_path / "out.json"
    words = "--problems 8 --evals 24 --nodes 2 --life 400 --jobs 1"
    assert main([str(spaces), *words.split(), "--out", str(out)]) == 0
    rows = {row["run"]: row for row in json.loads(out.read_text())}
    wild = rows["1.1 of what all searches need, nodes die"]
    assert (wild["finished"], wild["heads"], wild["lost"] > 0) == (16, 2, True)
    assert rows["1.1: same winners"] == {"run": "1.1: same winners", "same": 16, "of": 16}
