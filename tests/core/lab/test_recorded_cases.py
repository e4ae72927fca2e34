"""Recorded launches judge kernels, by both oracles: on what a program really sent, against what it got."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.lab.kept_scenarios import TWICE, add
from tests.core.lab.oracles import SECONDS, Judges
from tests.core.lab.python_kernels import Argument, elementwise, then
from tests.core.problem.test_recorded import recorded_file, with_case
from tunesmith.lab.judge.cases import CaseOracle
from tunesmith.lab.memory import Examined, Verdict
from tunesmith.problem.cases import Case
from tunesmith.problem.plan import Status

PLACE = 11
REAL = np.linspace(1, 2, 24 * 32, dtype=np.float32).reshape(24, 32)
REAL[0, PLACE] = 12345.0  # which no tester draws


def spoils_real_data(out: Argument, _: Argument) -> None:
    values = out.of("float32")
    if values[PLACE] == 2 * 12345.0:
        values[PLACE] += 1.0


def judged(oracle: CaseOracle, judges: Judges, case: Case, kernel: str) -> Verdict:
    found: Verdict = oracle.examine(judges.code(kernel), [Examined(case, judges.plan(case), SECONDS)])  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("where", ["on_the_host", "on_the_device"])
def test_a_kernel_is_held_to_what_was_recorded(where: str) -> None:
    problem = with_case(recorded_file(x=REAL))
    kernels = {
        "original": TWICE,
        "same": TWICE,
        "close": then(TWICE, add(1e-7, 3)),  # an original without any error makes no rule of that
        "wrong": then(TWICE, spoils_real_data),
    }
    judges = Judges(problem, kernels)
    (one,) = problem.recorded
    case = Case(one.sizes, one.distribution, 0, "full", compares_errors=False)
    oracle = getattr(judges, where)()
    assert isinstance(oracle.establish(case), float)
    assert judged(oracle, judges, case, "same").ok
    assert judged(oracle, judges, case, "close").ok
    verdict = judged(oracle, judges, case, "wrong")
    assert verdict.status is Status.WRONG
    assert "inputs: recorded recorded_5" in verdict.detail


@pytest.mark.parametrize("where", ["on_the_host", "on_the_device"])
def test_an_original_that_gives_something_else_is_wrong(where: str) -> None:
    problem = with_case(recorded_file(x=REAL))
    judges = Judges(problem, {"original": elementwise(lambda x: 3 * x)})
    (one,) = problem.recorded
    case = Case(one.sizes, one.distribution, 0, "full", compares_errors=False)
    found = getattr(judges, where)().establish(case)
    assert found.status is Status.WRONG
