"""The report is folded from the state and claims nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.samples import (
    a_problem,
    config,
    finalist,
    outcome,
    records,
    started,
    state_of,
    verified,
)
from tunesmith.problem.plan import Status
from tunesmith.run.events import Decided, Protected, Pruned, Stopped
from tunesmith.run.figures import best_so_far
from tunesmith.run.protection import Protection, ProtectionLayer
from tunesmith.run.report import build_report
from tunesmith.run.state import State, fold_records, run_protections

PROBLEM = a_problem()  # small with weight 1, wide with weight 3
A, B = config(32), config(64)
FOUND = [
    outcome(0, A, {"small": 0.5, "wide": 0.5}),
    outcome(1, B, {"small": Status.WRONG, "wide": Status.WRONG}),
    outcome(2, None, {"small": 1.0, "wide": 1.0}, "sentinel"),
    outcome(3, config(128), {"small": Status.INFEASIBLE, "wide": Status.BUILD_FAILED}),
    finalist(4, A, {"small": 2.0, "wide": 2.0}),
]
SPAN = [*FOUND, verified(A, {"small": 1.8, "wide": 2.2})]


def finished(*events: object) -> State:
    return state_of(*events, Decided("finish", "enough"), Stopped("enough"))


def test_what_held_workers_back() -> None:
    bare, held = (Protection((ProtectionLayer("files", force, "Landlock"),)) for force in (False, True))
    events = [replace(started(), protection=bare), Protected(held), Protected(bare)]
    state = fold_records(records(events))
    assert run_protections(state) == (bare, held, bare)
    assert run_protections(fold_records(records([started()]))) == (), "nobody said so in older runs"
    notes = build_report(PROBLEM, state_of(*events[1:])).notes
    assert notes == (held.sentence, bare.sentence)
    pruning = [started(), Pruned(A, "same_code", "equal"), Protected(held)]
    assert fold_records(records(pruning)).pruning, "what was going on goes on"


@pytest.mark.parametrize(("busy", "share"), [(0.0, None), (2.0, 0.5), (1e300, None)])
def test_nobody_was_in_kernels_longer_than_all_the_time(busy: float, share: float | None) -> None:
    """Times that are looked up may be anything."""
    assert build_report(PROBLEM, state_of(replace(FOUND[0], seconds=4.0, busy=busy))).busy == share


def test_the_best_so_far() -> None:
    assert best_so_far(state_of()) is None
    assert best_so_far(state_of(FOUND[1])) is None
    assert best_so_far(state_of(*FOUND)).speedup == pytest.approx(2.0)
