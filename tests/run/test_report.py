"""The report is folded from the state and claims nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.samples import (
    TEMPLATE,
    a_problem,
    a_template,
    baseline,
    config,
    finalist,
    outcome,
    records,
    started,
    state_of,
    verified,
)
from tunesmith.deliver.report_parts import config_text, general_text, interval_text
from tunesmith.problem.plan import Status
from tunesmith.run.events import Admitted, Decided, Protected, Pruned, Stopped
from tunesmith.run.figures import best_so_far
from tunesmith.run.protection import Protection, ProtectionLayer
from tunesmith.run.report import build_report, protections
from tunesmith.run.state import State, fold

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
    return state_of(*events, Decided("finish", "enough"), Stopped("enough"))  # type: ignore[arg-type]


@pytest.mark.parametrize(("block", "is_baked"), [(32, True), (64, False)])
def test_a_general_configuration_with_sizes_built_in_says_whom_it_serves(block: int, is_baked: bool) -> None:
    defines = f'// [defines]\n// D = "d if BLOCK == {block} else 0"\n// [launch]'
    text = TEMPLATE.replace("// [launch]", defines).replace("int k =", "int k = D +")
    template = a_template(PROBLEM, text)
    report = build_report(PROBLEM, finished(*SPAN), template_of=lambda _config: template)
    assert report.general == {"BLOCK": 32, "VEC": 1}
    elsewhere = ", built for the workloads' sizes alone; the original serves all others"
    assert general_text(report) == "BLOCK=32 VEC=1" + (elsewhere if is_baked else "")


def test_what_held_workers_back() -> None:
    bare, held = (Protection((ProtectionLayer("files", force, "Landlock"),)) for force in (False, True))
    events = [replace(started(), protection=bare), Protected(held), Protected(bare)]
    state = fold(records(events))
    assert protections(state) == (bare, held, bare)
    assert protections(fold(records([started()]))) == (), "nobody said so in older runs"
    notes = build_report(PROBLEM, state_of(*events[1:])).notes
    assert notes == (held.sentence, bare.sentence)
    pruning = [started(), Pruned(A, "same_code", "equal"), Protected(held)]
    assert fold(records(pruning)).pruning, "what was going on goes on"


def test_a_finished_run() -> None:
    report = build_report(PROBLEM, finished(*SPAN), ("tuned/dispatch.json",))
    assert (report.problem, report.device, report.driver) == ("scale", "a device", "1.0")
    assert (report.finished, report.reason) == (True, "enough")
    small, wide = report.workloads
    assert (small.name, small.sizes, small.weight) == ("small", {"rows": 16, "d": 256}, 1.0)
    assert small.baseline_us == pytest.approx(1e6)
    assert small.tuned_us == pytest.approx(1e6 / 1.8)
    assert small.speedup == pytest.approx(1.8)
    assert small.interval == pytest.approx((1.8, 1.8))
    assert small.config == wide.config == report.general == {"BLOCK": 32, "VEC": 1}
    assert wide.speedup == pytest.approx(2.2)
    assert report.geometric_mean == pytest.approx((1.8 * 2.2**3) ** (1 / 4))
    assert report.evaluations == {"ok": 1, "infeasible": 1, "wrong": 1}
    assert report.space == {"combinations": 12, "feasible": 12}
    assert report.verified_cases == 7
    assert report.versions == {"tunesmith": "0.1.0", "numpy": "2.0"}
    assert report.tuned == ("tuned/dispatch.json",)


@pytest.mark.parametrize("found", [1.0, Status.WRONG], ids=["gains nothing", "fell"])
def test_cases_of_what_is_not_delivered_prove_nothing(found: float | Status) -> None:
    report = build_report(PROBLEM, finished(*FOUND, verified(A, {"small": found, "wide": found})))
    assert report.general is None
    assert report.verified_cases == 0


def test_before_and_after_were_timed_in_alternation() -> None:
    """Not the baseline of long ago: the device may have been slower then."""
    events = [*SPAN, Stopped("enough")]
    small, _ = build_report(PROBLEM, state_of(*events, original={"small": 1.5, "wide": 1.5})).workloads
    assert small.baseline_us == pytest.approx(1e6)
    assert small.tuned_us == pytest.approx(1e6 / 1.8)


def test_digests_lead_from_the_problem_to_every_binary() -> None:
    assert build_report(PROBLEM, finished(*SPAN)).digests == {
        "problem": PROBLEM.digest,
        "original source": "source of None",
        "original binary": "code of None",
        "template": "t",
        f"source of {A}": f"source of {A}",
        f"binary of {A}": f"code of {A}",
    }


def test_failures_are_reported_and_what_cannot_run_by_its_own_rules_is_none() -> None:
    failures = build_report(PROBLEM, finished(*SPAN, verified(B, {"small": Status.CRASHED}))).failures
    assert [(f.config["BLOCK"], f.status) for f in failures] == [
        (64, "wrong"),
        (128, "build_failed"),
        (64, "crashed"),
    ]
    assert failures[0].detail == "it had to be"


def test_where_the_original_stays_nothing_is_gained() -> None:
    report = build_report(PROBLEM, finished(*FOUND, verified(A, {"small": 1.0, "wide": 2.0})))
    small, wide = report.workloads
    assert (small.speedup, small.config, small.interval) == (1.0, None, (1.0, 1.0))
    assert small.baseline_us == small.tuned_us == pytest.approx(1e6)
    assert interval_text(small) == "the original stays"
    assert config_text(small.config) == "original"
    assert interval_text(wide) == "2.00 to 2.00"
    assert config_text(wide.config) == "BLOCK=32 VEC=1"
    assert report.geometric_mean == pytest.approx(2 ** (3 / 4))


def test_a_run_without_gain() -> None:
    report = build_report(PROBLEM, finished(FOUND[1]))
    assert report.geometric_mean == pytest.approx(1.0)
    assert report.general is None
    assert [w.config for w in report.workloads] == [None, None]


def test_a_run_that_is_not_finished_claims_no_mean() -> None:
    report = build_report(PROBLEM, state_of(*SPAN))
    assert (report.finished, report.reason, report.geometric_mean) == (False, "not finished", None)


def test_a_run_that_has_only_begun() -> None:
    report = build_report(PROBLEM, fold(records([started()])))
    assert report.workloads == ()
    assert report.evaluations == {}
    assert report.judged_by == "not judged yet"
    assert report.digests == {"problem": PROBLEM.digest}


@pytest.mark.parametrize(("busy", "share"), [(0.0, None), (2.0, 0.5), (1e300, None)])
def test_nobody_was_in_kernels_longer_than_all_the_time(busy: float, share: float | None) -> None:
    """Times that are looked up may be anything."""
    assert build_report(PROBLEM, state_of(replace(FOUND[0], seconds=4.0, busy=busy))).busy == share


def test_what_judged_is_said() -> None:
    judged = build_report(PROBLEM, finished(*SPAN)).judged_by
    rules = "close within rtol 0.0001 and atol 1e-05, and twice the original's error"
    assert judged == f"right by the float64 reference: {rules}"
    loose = replace(PROBLEM, accuracy=replace(PROBLEM.accuracy, rtol=1e9))
    judged = build_report(loose, finished(*SPAN)).judged_by
    assert judged.startswith("right: close within rtol 1e+09 and atol 1e-05, which accepts anything")
    without = replace(baseline({"small": 1.0, "wide": 1.0}), judged_by="original")
    events = [started(), without, Admitted("t", 1, 1)]
    assert "matches the original" in build_report(PROBLEM, fold(records(events))).judged_by


def test_the_best_so_far() -> None:
    assert best_so_far(state_of()) is None
    assert best_so_far(state_of(FOUND[1])) is None
    assert best_so_far(state_of(*FOUND)).speedup == pytest.approx(2.0)  # type: ignore[union-attr]


def test_what_the_gate_tried_is_distinguished_from_the_search() -> None:
    tried = outcome(5, config(16), {"small": 0.5, "wide": 0.5}, "gate")
    report = build_report(PROBLEM, finished(*SPAN, tried))
    assert (sum(report.evaluations.values()), report.gated) == (4, 1)
    assert report.tried_by == "3 of the search, 1 of the gate"
    assert build_report(PROBLEM, finished(*SPAN)).tried_by == ""
