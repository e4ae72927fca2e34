"""What a run knows of a template, in the order it is worth trying elsewhere."""

from __future__ import annotations

import math
from dataclasses import replace

from tests.samples import a_problem, config, outcome, state_of
from tunesmith.problem.plan import Status
from tunesmith.run.events import Admitted
from tunesmith.run.library import FIRST, best_of, rows_of, thin_rows
from tunesmith.space.configset import Config

PROBLEM = a_problem()
SEARCHED = (
    outcome(0, config(32), {"small": 0.5, "wide": 0.5}),
    outcome(1, config(64), {"small": 0.25, "wide": 0.9}),  # the best at small
    outcome(2, config(128), {"small": 0.9, "wide": 0.3}),  # the best at wide, and by weight in general
    outcome(3, config(256), {"small": Status.WRONG, "wide": Status.WRONG}),
    outcome(4, config(32, 2), {"small": 0.6, "wide": 0.4}),
)


def test_only_configurations_of_the_candidate_count_and_lose_its_name() -> None:
    other = replace(config(64), candidate="2")
    state = state_of(Admitted("t", 12, 12, "2"), *SEARCHED, outcome(9, other, {"small": 0.1, "wide": 0.1}))
    assert best_of(PROBLEM, state, "2") == (config(64),)
    assert rows_of(PROBLEM, state, "2") == [(config(64), math.log(10.0))]
    assert config(256) in dict(rows_of(PROBLEM, state, ""))


def test_they_are_few() -> None:
    configs = [Config.of({"BLOCK": i, "VEC": 1}) for i in range(40)]
    many = [outcome(i, c, {"small": 1 / (i + 1), "wide": 1.0}) for i, c in enumerate(configs)]
    assert len(best_of(PROBLEM, state_of(*many), "")) <= FIRST


def test_of_many_rows_the_best_half_remains_and_some_of_the_rest() -> None:
    rows = [(config(i), float(i) if i % 7 else None) for i in range(100)]
    thinner = list(thin_rows(rows, 20))
    assert len(thinner) <= 21
    assert {score for _, score in thinner} >= {99.0, 97.0, 96.0, None}
    assert list(thin_rows(rows[:5], 20)) == rows[:5]
