"""Conditions of one shape are printed as one, which allows the same."""

from __future__ import annotations

import random
import re

import pytest

from tunesmith.expert.writing.merging import merged
from tunesmith.space.expr import parse

WIDE = "VEC == 8 or not d % (2 * VEC) == 0"
NAMES = ("FAST", "LOAD", "BAKE", "BOUNDS", "REGS", "LEVEL", "UNROLL", "PERSIST")


def test_what_waits_for_the_same_is_one_condition() -> None:
    given = [(f"{name.lower()}_if_wide", f"{name} == 0 or {WIDE}") for name in ("FAST", "LOAD", "BAKE")]
    assert merged([("first", "FAST < 2"), *given, ("last", "LOAD < 2")]) == (
        ("first", "FAST < 2"),
        ("touches_if_wide", f"FAST == 0 and LOAD == 0 and BAKE == 0 or {WIDE}"),
        ("last", "LOAD < 2"),
    )


def test_settings_that_exclude_each_other_are_counted() -> None:
    given = [
        ("regs_or_bounds", "REGS == 255 or BOUNDS == 1"),
        ("level_or_bounds", "LEVEL == 5 or BOUNDS == 1"),
        ("level_or_regs", "LEVEL == 5 or REGS == 255"),
    ]
    total = "(BOUNDS != 1) + (REGS != 255) + (LEVEL != 5) <= 1"
    assert merged(given) == (("one_of_bounds_regs_level", total),)
    assert merged(given[:1]) == tuple(given[:1])


def test_others_stay_as_they_are() -> None:
    given = (
        ("a", "X < 2 or Y == 1"),
        ("b", "X > 3 or Y == 1"),
        ("c", "X == 1"),
        ("d", "X == 2 and Y == 1 or Z == 1"),
    )
    assert merged(given) == given


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
    short = merged(given.items())
    assert len(short) <= len(given)
    before, after = (
        [parse(text) for text in texts] for texts in (given.values(), (text for _, text in short))
    )
    for _ in range(200):
        at = {name: rng.randrange(3) for name in NAMES} | {
            "VEC": rng.choice((1, 4, 8)),
            "d": rng.choice((8, 12)),
        }
        assert all(rule.holds(at) for rule in before) == all(rule.holds(at) for rule in after), (at, short)


@pytest.mark.timeout(20)
def test_many_settings_take_no_time() -> None:
    """Subsets of 40 settings are 10^12; those of which every two exclude each other are few."""
    wide = [(f"s{n}_if_wide", f"S{n} == 0 or {WIDE} or d == {n}") for n in range(40)]
    pairs = [(f"p{n}", f"S{n} == 0 or S{n + 1} == 0") for n in range(39)]
    three = ("t", "S4 == 0 or S6 == 0")
    short = dict(merged((*wide, *pairs, three)))
    (together,) = (text for name, text in short.items() if name.startswith("one_of_"))
    assert sorted(re.findall(r"S\d+", together)) == ["S4", "S5", "S6"]
    assert len(short) == 40 + 39 + 1 - 2
