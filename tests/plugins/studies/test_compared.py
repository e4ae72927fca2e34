"""What runs say together, against figures that are worked out by hand."""

from __future__ import annotations

import math

import pytest

from tests.comparisons import facts, plan, ran
from tunesmith.plugins.studies.result import ComparisonCell, ComparisonResult, summarize_runs
from tunesmith.run.outcome import mean_interval


def cell(found: ComparisonResult, arm: str, problem: str = "") -> ComparisonCell:
    every = found.overall if not problem else found.cells
    return next(c for c in every if c.arm == arm and c.problem == problem)


class TestFigures:
    def test_mean_worst_and_success_of_one_problem(self) -> None:
        planned = plan(repeats=2)
        found = summarize_runs(
            planned, ran(planned, {("p", "template"): [2.0, 8.0], ("p", "expert"): [1.0, 4.0]})
        )
        own = cell(found, "template", "p")
        assert (own.mean, own.least, own.most) == (4.0, 2.0, 8.0)
        assert (own.counted, own.planned, own.successes) == (2, 2, 2)
        assert cell(found, "expert", "p").successes == 1
        assert own.deviation is None
        assert own.interval is None

    def test_over_all_problems_each_weighs_the_same(self) -> None:
        planned = plan("expert", "p,q", repeats=2)
        found = summarize_runs(
            planned, ran(planned, {("p", "expert"): [2.0, 2.0], ("q", "expert"): [8.0, "failed"]})
        )
        # 2 at p; at q the mean of 8 and 1.
        assert cell(found, "expert").mean == pytest.approx(math.sqrt(2 * math.sqrt(8)), rel=1e-5)
        assert cell(found, "expert").least == 1.0
        assert cell(found, "expert").successes == 3

    def test_a_failed_run_is_the_original_and_an_unfinished_one_is_nothing(self) -> None:
        planned = plan("template,expert", repeats=3)
        runs = {
            ("p", "template"): [4.0, "failed", "waiting"],
            ("p", "expert"): ["no device", "not begun", "stopped"],
        }
        found = summarize_runs(planned, ran(planned, runs))
        own = cell(found, "template", "p")
        assert (own.counted, own.mean, own.least, own.successes) == (2, 2.0, 1.0, 1)
        assert own.costs.runs == 1, "of what failed before it began nothing is known"
        empty = cell(found, "expert", "p")
        assert (empty.counted, empty.mean, empty.costs) == (0, None, None)
        assert found.common == ()
        assert len(found.unfinished) == 4

    def test_over_all_only_where_every_arm_has_been(self) -> None:
        planned = plan("template,expert", "p,q", repeats=1)
        runs = {("p", "template"): [2.0], ("p", "expert"): [3.0], ("q", "template"): [9.0]}
        found = summarize_runs(planned, ran(planned, {**runs, ("q", "expert"): ["waiting"]}))
        assert found.common == ("p",)
        assert cell(found, "template").mean == 2.0

    def test_deviation_is_within_problems(self) -> None:
        planned = plan("expert", "p,q", repeats=3)
        near, far = [1.0, 2.0, 4.0], [100.0, 200.0, 400.0]
        found = summarize_runs(planned, ran(planned, {("p", "expert"): [*near], ("q", "expert"): [*far]}))
        assert cell(found, "expert").deviation == pytest.approx(2.0)  # by Bessel: sqrt(2 ln²2 / 2)
        assert cell(found, "expert", "p").deviation is None, "two degrees of freedom are too few"

    def test_an_interval_from_five_repeats_on(self) -> None:
        planned = plan("expert", repeats=5)
        values = [1.0, 1.5, 2.0, 2.5, 3.0]
        found = summarize_runs(planned, ran(planned, {("p", "expert"): [math.exp(v) for v in values]}))
        own = cell(found, "expert", "p")
        assert own.interval is not None
        half = 2.7764 * math.sqrt(0.625 / 5)
        assert [math.log(end) for end in own.interval] == pytest.approx([2 - half, 2 + half], rel=1e-3)

    def test_runs_that_do_not_differ_have_no_interval(self) -> None:
        planned = plan("expert", repeats=5)
        found = summarize_runs(planned, ran(planned, {("p", "expert"): ["failed"] * 5}))
        assert cell(found, "expert", "p").interval is None
        assert cell(found, "expert", "p").deviation == 1.0

    def test_costs_are_unknown_where_one_is(self) -> None:
        planned = plan("template", repeats=2, model="mailbox")
        known = facts(requests=4, tokens=1000, dollars=0.5, tokens_by_length=1000)
        unknown = facts(requests=2, tokens=None, dollars=None, tokens_by_length=600, kernel_seconds=None)
        costs = cell(
            summarize_runs(planned, ran(planned, {("p", "template"): [known, unknown]})), "template", "p"
        ).costs
        assert (costs.requests, costs.tokens, costs.dollars, costs.kernel_seconds) == (3.0, None, None, None)
        assert costs.tokens_by_length == 800
        assert costs.device_seconds == 3.0
        assert costs.searched_seconds == 2.0

    def test_gain_per_round_keeps_what_a_run_that_ended_had(self) -> None:
        planned = plan("template", repeats=2)
        runs = [facts(rounds=(2.0,)), facts(rounds=(1.0, 2.0, 8.0))]
        found = summarize_runs(planned, ran(planned, {("p", "template"): runs}))
        assert cell(found, "template", "p").rounds == pytest.approx((math.sqrt(2), 2.0, 4.0))

    def test_a_run_without_rounds_has_the_original(self) -> None:
        planned = plan("template", repeats=2)
        runs = [facts(1.0, rounds=()), facts(rounds=(4.0,))]
        found = summarize_runs(planned, ran(planned, {("p", "template"): runs}))
        assert cell(found, "template", "p").rounds == (2.0,)

    def test_attribution_is_of_the_runs_that_won(self) -> None:
        planned = plan("template", repeats=3)
        runs = [facts(refactoring=2.0, search=1.0), facts(refactoring=0.5, search=4.0), 1.0]
        own = cell(summarize_runs(planned, ran(planned, {("p", "template"): [*runs]})), "template", "p")
        assert (own.attributed, own.refactoring, own.search) == (2, 1.0, 2.0)


def test_intervals_of_means_are_students() -> None:
    """Against quantiles from tables: 12.706 is not met, from 4 degrees on all are."""
    for count, quantile in ((5, 2.776), (6, 2.571), (10, 2.262), (31, 2.042), (121, 1.980)):
        values = [float(i % 2) for i in range(count)]
        mean = sum(values) / count
        error = math.sqrt(sum((v - mean) ** 2 for v in values) / (count - 1) / count)
        found = mean_interval([values])
        assert (found.high - found.value) / error == pytest.approx(quantile, rel=1e-3)
    assert mean_interval([[1.0]]) is None
    assert mean_interval([]) is None
    assert mean_interval([[2.0, 2.0], [4.0, 4.0]]) is None, "runs that do not differ tell nothing of the next"
    one = mean_interval([[1.0, 2.0, 3.0]])
    two = mean_interval([[1.0, 2.0, 3.0], [11.0, 12.0, 13.0]])
    assert two.value == 7.0
    assert two.high - two.low < one.high - one.low, "twice the data, and what is between groups is no noise"
