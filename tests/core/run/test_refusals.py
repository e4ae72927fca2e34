"""What refused finalists have in common is learned from, so that a race among neighbours ends soon."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import pytest

from tests.samples import a_problem, finalist, outcome, state_of, verified
from tunesmith.problem.plan import Status
from tunesmith.run.events import Verified
from tunesmith.run.outcome import Outcome
from tunesmith.run.race import (
    DESPAIRED,
    LEARNED,
    PATIENCE,
    choose_winners,
    doubted_configs,
    plan_heat,
    unverified_winners,
)
from tunesmith.space.configset import Config

PROBLEM = a_problem(workloads="only = { rows = 16, d = 256 }")
FIRST = {"LANES": 256, "VEC": 1, "ITEMS": 1, "FAST": 0, "LOAD": 0, "TASKS": 1}
VALUES = {
    "LANES": (256, 128, 512), "VEC": (1, 2, 4), "ITEMS": (1, 2), "FAST": (0, 1), "LOAD": (0, 1),
    "TASKS": (1, 2),
}  # fmt: skip
EVERY = [Config.of(dict(zip(VALUES, chosen, strict=True))) for chosen in product(*VALUES.values())]


def speed(config: Config) -> float:
    """The more is chosen otherwise, the faster, by little."""
    own = config.as_dict()
    changed = sum(1.0 for name, value in own.items() if value != FIRST[name])
    noise = random.Random(str(config)).random()
    return 2.0 + 0.004 * changed + 0.0001 * noise if changed else 1.5


def changed(config: Config, *names: str) -> bool:
    return any(config.as_dict()[name] != FIRST[name] for name in names)


def run(is_wrong: Callable[[Config], bool]) -> tuple[Config | None, int]:
    """A run's end: races and verifications until nothing is left to do; the winner, and how many fell."""
    ordered = sorted(EVERY, key=lambda config: config.as_dict() != FIRST)
    events: list[Outcome | Verified] = [
        outcome(n, config, {"only": 1 / speed(config)}) for n, config in enumerate(ordered)
    ]
    fallen = 0
    for number in range(1000, 1400):
        state = state_of(*events, original={"only": 1.0})
        if wanted := plan_heat(PROBLEM, state):
            events += [finalist(number * 10 + n, c, {"only": speed(c)}) for n, (c, _) in enumerate(wanted)]
            continue
        left = unverified_winners(PROBLEM, state)
        if not left:
            return choose_winners(PROBLEM, state).general, fallen
        config = left[0][0]
        fallen += is_wrong(config)
        events.append(verified(config, {"only": Status.WRONG if is_wrong(config) else speed(config)}))
    raise AssertionError("it does not end")


@pytest.mark.parametrize("culprit", ["FAST", "LANES", "VEC", "TASKS"])
def test_one_culprit_is_found_and_everything_else_stays_open(culprit: str) -> None:
    winner, fallen = run(lambda config: changed(config, culprit))
    assert winner is not None
    assert fallen <= LEARNED + len(FIRST)
    assert not changed(winner, culprit)
    assert all(changed(winner, name) for name in FIRST if name != culprit)


def test_where_every_other_order_is_refused_the_kernel_s_own_is_kept() -> None:
    winner, fallen = run(lambda config: changed(config, "LANES", "VEC", "ITEMS", "FAST"))
    assert winner is not None
    assert fallen <= DESPAIRED + 1 < PATIENCE
    assert not changed(winner, "LANES", "VEC", "ITEMS", "FAST")
    assert changed(winner, "LOAD")
    assert changed(winner, "TASKS")


def test_where_nothing_is_refused_nothing_is_learned() -> None:
    winner, fallen = run(lambda config: False)
    assert (winner is not None, fallen) == (True, 0)
    assert all(changed(winner or EVERY[0], name) for name in FIRST)


def test_a_few_refusals_say_nothing_and_verified_ones_are_never_doubted() -> None:
    tried = [outcome(n, config, {"only": 0.5}) for n, config in enumerate(EVERY)]
    others = [config for config in EVERY if changed(config, "FAST") and changed(config, "LOAD")]
    refused = [verified(config, {"only": Status.WRONG}) for config in others]
    few = state_of(*tried, *refused[: LEARNED - 1], original={"only": 1.0})
    assert not doubted_configs(few, ())
    good = next(config for config in EVERY if changed(config, "LOAD") and not changed(config, "FAST"))
    state = state_of(*tried, *refused[:LEARNED], verified(good, {"only": 2.0}), original={"only": 1.0})
    found = doubted_configs(state, ())
    assert good not in found
    assert found
    assert all(changed(config, "FAST") for config in found)


def test_a_crash_is_no_matter_of_rounding() -> None:
    tried = [outcome(n, config, {"only": 0.5}) for n, config in enumerate(EVERY)]
    crashed = [verified(config, {"only": Status.CRASHED}) for config in EVERY[-10:]]
    assert not doubted_configs(state_of(*tried, *crashed, original={"only": 1.0}), ())
