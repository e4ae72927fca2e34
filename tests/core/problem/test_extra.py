"""Cases that a tester adds: inside the contract and a variant's own domain, or they are none."""

from __future__ import annotations

import pytest

from tests.samples import DEVICE, a_problem, a_template
from tunesmith.problem.cases import ExtraCase, case_misfit, extra_cases
from tunesmith.problem.template import original_variant
from tunesmith.space.configset import Config

PROBLEM = a_problem()


def case(rows: int, d: int) -> ExtraCase:
    return ExtraCase((("rows", rows), ("d", d)), "uniform", "a test")


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (case(0, 8), "rows = 0, the contract allows 1 to 4096"),
        (case(1, 12), "d = 12, the contract allows 8 to 4096 in steps of 8"),
        (ExtraCase((("rows", 1),), "normal"), "it must give every size, rows, d, and no other"),
        (ExtraCase((("rows", 1), ("d", 8), ("e", 1)), "normal"), "and no other"),
    ],
)
def test_what_is_no_case(wanted: ExtraCase, words: str) -> None:
    assert words in (case_misfit(PROBLEM, wanted) or "")


def test_what_is_one() -> None:
    assert case_misfit(PROBLEM, case(1, 24)) is None


def test_a_variant_is_tested_where_it_may_run() -> None:
    wanted = [case(3, 24), case(3, 64)]
    found = extra_cases(PROBLEM, original_variant(PROBLEM), DEVICE, 0, wanted)
    assert [(c.sizes, c.distribution, c.level) for c in found] == [
        (one.sizes, "uniform", "full") for one in wanted
    ]
    narrow = a_template(PROBLEM).render(PROBLEM, Config.of({"BLOCK": 64, "VEC": 4}))
    assert [c.sizes for c in extra_cases(PROBLEM, narrow, DEVICE, 0, wanted)] == [wanted[1].sizes]
    assert extra_cases(PROBLEM, narrow, DEVICE, 0, []) == ()


def test_verification_draws_other_values() -> None:
    (known,) = extra_cases(PROBLEM, original_variant(PROBLEM), DEVICE, 0, [case(30, 24)])
    (fresh,) = extra_cases(PROBLEM, original_variant(PROBLEM), DEVICE, 0, [case(30, 24)], "verify")
    assert (fresh.sizes, fresh.level) == (known.sizes, "verify")
    assert fresh.seed != known.seed
