"""The gate: what is tried before a template may be searched, and whom it blames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product

import pytest

from tests.drafts import a_draft
from tests.samples import DEVICE, a_problem, a_template, outcome
from tests.wording import says
from tunesmith.problem.plan import Status
from tunesmith.problem.template import Template, configs_of
from tunesmith.run.candidates import COVER, MOST_BLAMED, Checks, Faulty, Passed, examine, rule_text
from tunesmith.run.outcome import Outcome
from tunesmith.space.params import Config

PROBLEM = a_problem()
PARAMS = {"A": [1, 2, 4, 8], "B": [0, 1], "C": [3, 1, 2], "D": [0, 1, 2, 3, 4]}
Judge = Callable[[dict[str, int]], Status | None]


def template(params: dict[str, list[int]] | None = None, require: str = "") -> Template:
    return a_template(PROBLEM, a_draft(params or PARAMS, require))


def go(
    own: Template, judge: Judge = lambda _values: None, may_mend: bool = True
) -> tuple[Passed | Faulty, list[list[Config]]]:
    """What the gate decides where configurations turn out as the judge says, and the batches it tried."""
    configs, done, batches = configs_of(PROBLEM, own, DEVICE), list[Outcome](), list[list[Config]]()
    while True:
        step = examine(own.space.params, own.default, configs, done, may_mend)
        if not isinstance(step, Checks):
            return step, batches
        batches.append(list(step.configs))
        tried = {o.trial.config for o in done}
        assert step.configs, "or it would go on for ever"
        assert tried.isdisjoint(step.configs)
        assert all(config in configs for config in step.configs)
        for config in step.configs:
            status = judge(config.as_dict())
            found = status if status is not None else 1.0
            done.append(outcome(len(done), config, {"small": found, "wide": found}, "gate"))


def differing(config: Config, own: Template) -> list[str]:
    return [name for name, value in config.items if own.default[name] != value]


def test_the_default_then_extremes_alone_then_any_two_values_together() -> None:
    own = template()
    step, batches = go(own)
    assert step == Passed()
    assert batches[0] == [own.default]
    changed = {(name, config[name]) for config in batches[1][:5] for name in differing(config, own)}
    assert changed == {("A", 8), ("B", 1), ("C", 1), ("C", 2), ("D", 4)}
    tried = [config for batch in batches for config in batch]
    for (a, ones), (b, others) in combinations(PARAMS.items(), 2):
        met = {(config[a], config[b]) for config in tried}
        assert met == set(product(ones, others)), f"{a} with {b}"
    assert len(tried) <= 1 + 5 + COVER


def test_the_cover_has_an_end() -> None:
    wide = {f"P{n}": list(range(9)) for n in range(8)}
    step, batches = go(template(wide))
    assert step == Passed()
    assert len(batches[1]) == 8 + COVER


@pytest.mark.parametrize("params", [{"A": [1]}, {"A": [1, 2]}])
def test_little_to_choose_from(params: dict[str, list[int]]) -> None:
    step, batches = go(template(params))
    assert step == Passed()
    assert sum(map(len, batches)) == len(params["A"])


def test_extremes_that_a_constraint_forbids_alone_are_met_near_the_default() -> None:
    own = template({"A": [1, 2, 4, 8], "B": [1, 2]}, "A * B <= 8 and (A < 8 or B == 1) and A + B != 3")
    _, batches = go(own)
    tried = [config for batch in batches for config in batch]
    assert {config["A"] for config in tried} >= {1, 8}
    assert {config["B"] for config in tried} == {1, 2}


def test_a_default_that_the_device_forbids_gives_way_to_its_neighbour() -> None:
    own = a_template(PROBLEM, a_draft({"A": [2048, 64], "B": [0, 1]}, block="A"))
    step, batches = go(own)
    assert step == Passed()
    assert batches[0] == [Config((("A", 64), ("B", 0)))]


def test_what_stands_first_is_kept() -> None:
    params = {"LANES": [32, 64], "TASKS": [1, 2], "VEC": [1, 2]}
    own = a_template(PROBLEM, a_draft(params, block="64 if LANES * TASKS >= 64 else 2048"))
    _, batches = go(own)
    assert batches[0] == [Config((("LANES", 32), ("TASKS", 2), ("VEC", 1)))]


@pytest.mark.parametrize("status", [Status.WRONG, Status.BUILD_FAILED, Status.UNSTABLE, Status.SUSPECT])
def test_a_default_that_fails_ends_it(status: Status) -> None:
    step, batches = go(template(), lambda values: status)
    assert isinstance(step, Faulty)
    assert step.reason == f"at its default, A=1 B=0 C=3 D=0, it is {status} (workload small): it had to be"
    assert step.trials == (0,)
    assert len(batches) == 1


def wrong_where(**bad: int) -> Judge:
    return lambda values: Status.WRONG if bad.items() <= values.items() else None


def test_a_value_that_is_wrong_by_itself_is_named() -> None:
    step, _ = go(template(), wrong_where(A=8))
    assert isinstance(step, Faulty)
    assert step.without == (("A", 8),)
    says(step.reason, "A=8", "wrong", "workload small", "it had to be")


def test_a_value_in_the_middle_is_found_by_taking_values_back() -> None:
    step, _ = go(template(), wrong_where(D=2))
    assert isinstance(step, Faulty)
    assert step.without == (("D", 2),)


def test_without_another_try_it_is_forbidden() -> None:
    step, _ = go(template(), wrong_where(D=2), may_mend=False)
    assert step == Passed(((("D", 2),),))


@pytest.mark.parametrize("bad", [{"A": 8, "D": 4}, {"A": 2, "C": 1}, {"B": 1, "C": 2}])
def test_two_values_that_are_wrong_together_are_found_and_nothing_else(bad: dict[str, int]) -> None:
    step, batches = go(template(), wrong_where(**bad))
    assert step == Passed((tuple(bad.items()),))
    assert sum(map(len, batches)) < 60


def test_several_faults_at_once() -> None:
    faults = [wrong_where(A=8), wrong_where(B=1, D=4), wrong_where(C=1, D=2)]

    def judge(values: dict[str, int]) -> Status | None:
        return next((Status.CRASHED for fault in faults if fault(values)), None)

    step, _ = go(template(), judge)
    assert isinstance(step, Faulty)
    assert step.without == (("A", 8),)
    step, _ = go(template(), judge, may_mend=False)
    assert isinstance(step, Passed)
    assert set(step.rules) == {(("A", 8),), (("B", 1), ("D", 4)), (("C", 1), ("D", 2))}


def test_what_does_not_fit_is_nobodys_fault() -> None:
    step, _ = go(template(), lambda values: Status.OVER_LIMITS if values["A"] > 1 else None)
    assert step == Passed()
    step, _ = go(template(), lambda values: Status.OVER_LIMITS)
    assert isinstance(step, Faulty)
    assert step.reason.startswith("nothing of it runs: over_limits")


def test_a_template_that_is_wrong_all_over_is_given_up() -> None:
    many = {f"P{n}": [0, 1] for n in range(MOST_BLAMED + 2)}
    step, _ = go(template(many), lambda values: Status.WRONG if sum(values.values()) else None)
    assert isinstance(step, Faulty)
    assert step.reason.startswith(f"it is wrong in {MOST_BLAMED + 2} ways: P0=1 is wrong (workload small)")
    assert step.without == ()


def test_rules_in_words() -> None:
    assert rule_text((("A", 8), ("D", 4))) == "A=8 with D=4"


@pytest.mark.long
def test_large_spaces_are_looked_at_in_part() -> None:
    own = template({f"P{n}": list(range(8)) for n in range(9)})
    configs: Sequence[Config] = configs_of(PROBLEM, own, DEVICE)  # type: ignore[assignment]
    assert len(configs) == 8**9
    step, batches = go(own)
    again, same = go(own)
    assert step == again == Passed()
    assert batches == same
