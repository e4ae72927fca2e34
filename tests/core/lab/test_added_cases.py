"""Cases that a tester adds: the original is tried on them first, then every finalist."""

from __future__ import annotations

import pytest

from tests.core.lab.labs import fake_kernel, fault_template, lab, scale_problem
from tunesmith.problem.cases import ExtraCase
from tunesmith.problem.plan import Status
from tunesmith.run.events import Extended

RIGHT = ExtraCase((("rows", 11), ("d", 40)), "uniform", "between everything")
FAILS = ExtraCase((("rows", 13), ("d", 40)), "normal", "an unlucky number")


def test_what_the_original_fails_is_left_out() -> None:
    problem = scale_problem(kernel=fake_kernel(fault="2 if rows == 13 and d == 40 else 0"))
    with lab(problem) as harness:
        found = harness.lab.extend(Extended((RIGHT, FAILS), ((FAILS, "was there before"),)))
    assert found.cases == (RIGHT,)
    before, after = found.aside
    assert before == (FAILS, "was there before")
    assert after[0] == FAILS
    assert after[1].startswith("the original itself is wrong there: ")


def test_a_finalist_has_to_pass_what_was_added() -> None:
    template = fault_template("2 if KIND == 1 and rows == 11 and d == 40 else 0")
    with lab(scale_problem(), template) as harness:
        assert harness.result("long", KIND=1).status is Status.OK
    with lab(scale_problem(), template) as harness:
        harness.lab.extend(Extended((RIGHT,)))
        assert harness.result("long", KIND=0).status is Status.OK
        result = harness.result("long", KIND=1)
    assert result.status is Status.WRONG
    assert "rows=11, d=40" in result.detail


@pytest.mark.long
def test_the_winner_has_to_pass_it_again_with_other_values() -> None:
    template = fault_template("2 if KIND == 1 and rows == 11 and d == 40 else 0")
    with lab(scale_problem(), template) as harness:
        plain = harness.lab.verify(harness.trial("long", KIND=1))
        assert plain.outcome.status is Status.OK
    with lab(scale_problem(), template) as harness:
        harness.lab.extend(Extended((RIGHT,)))
        right = harness.lab.verify(harness.trial("long", KIND=0))
        wrong = harness.lab.verify(harness.trial("long", KIND=1))
    assert right.outcome.status is Status.OK
    assert right.cases > plain.cases
    assert wrong.outcome.status is Status.WRONG
    assert "rows=11, d=40" in wrong.outcome.results[0].detail
