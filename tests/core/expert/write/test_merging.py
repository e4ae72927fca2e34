"""Conditions that begin alike are printed as one, which allows the same."""

from __future__ import annotations

import random

import pytest

from tunesmith.expert.write.given import merge_setting_conditions
from tunesmith.space.expr import parse_expr

WIDE = "VEC == 8 or not d % (2 * VEC) == 0"
NAMES = ("FAST", "LOAD", "BAKE", "BOUNDS", "REGS", "LEVEL", "UNROLL", "PERSIST")


def test_what_one_setting_needs_is_one_condition() -> None:
    given = [("sent", "FAST == 0 or LOAD > 1"), ("x", "LOAD < 2"), ("whole", f"FAST == 0 or {WIDE}")]
    assert merge_setting_conditions([*given, ("last", "FAST == 0 or LOAD > 1 and BAKE == 0")]) == (
        ("sent", f"FAST == 0 or LOAD > 1 and ({WIDE}) and BAKE == 0"),
        ("x", "LOAD < 2"),
    )


def test_others_stay_as_they_are() -> None:
    given = (
        ("a", "X < 2 or Y == 1"),
        ("b", "X > 3 or Y == 1"),
        ("c", "X == 1"),
        ("d", "X == 2 and Y == 1 or Z == 1"),
    )
    assert merge_setting_conditions(given) == given


@pytest.mark.parametrize("seed", range(40))
def test_the_same_is_allowed(seed: int) -> None:
    rng = random.Random(seed)
    given: dict[str, str] = {}
    for number in range(rng.randrange(2, 18)):
        one, other = (f"{name} == {rng.randrange(2)}" for name in rng.sample(NAMES, 2))
        ends = rng.choice(
            ([one, other], [one, WIDE], [one, other, WIDE], [one], [f"{one} and {other}", WIDE])
        )
        given[f"{rng.choice(NAMES).lower()}_{number}_if_wide"] = " or ".join(ends)
    short = merge_setting_conditions(given.items())
    assert len(short) <= len(given)
    before, after = (
        [parse_expr(text) for text in texts] for texts in (given.values(), (text for _, text in short))
    )
    for _ in range(200):
        at = {name: rng.randrange(3) for name in NAMES} | {
            "VEC": rng.choice((1, 4, 8)),
            "d": rng.choice((8, 12)),
        }
        assert all(rule.holds(at) for rule in before) == all(rule.holds(at) for rule in after), (at, short)


@pytest.mark.timeout(20)
def test_many_settings_take_no_time() -> None:
    wide = [(f"s{n}_if_wide", f"S{n} == 0 or {WIDE} or d == {n}") for n in range(400)]
    pairs = [(f"p{n}", f"S{n} == 0 or S{n + 1} == 0") for n in range(399)]
    short = dict(merge_setting_conditions((*wide, *pairs)))
    assert list(short) == [name for name, _ in wide]
    assert short["s7_if_wide"] == f"S7 == 0 or ({WIDE} or d == 7) and S8 == 0"
