from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.core.space.test_region import focus_on
from tests.suites.searcher_suite import view_of
from tunesmith.run.ports import SearchView, Tried
from tunesmith.search.default import Choices, Default
from tunesmith.search.models import NEXT, OpenConfigs, exchange_sizes
from tunesmith.space.configset import Config, Param
from tunesmith.space.expr import parse_expr
from tunesmith.space.space import Constraint, Space

POWERS = tuple(2**i for i in range(9))
SPACE = Space(
    (
        Param("X", POWERS),
        Param("Y", (1, 2, 3, 4, 6, 12)),
        Param("K", (1, 2, 4), categorical=True),
        Param("F", (0, 1, 2)),
        Param("Z", (4, 8)),
        Param("ONE", (4,)),
    )
)
NAMES = [param.name for param in SPACE.params]


def differing(a: Config, b: Config) -> set[str]:
    return {name for name in NAMES if a[name] != b[name]}


@pytest.mark.parametrize("number", [0, 400, 801])
def test_two_sizes_change_and_their_product_stays(number: int) -> None:
    own = SPACE.configs()[number]
    found = list(exchange_sizes(SPACE, own))
    pairs = [{"X", "Y"}, {"X", "Z"}, {"Y", "Z"}]
    expected = {
        other
        for other in SPACE.configs()
        if differing(own, other) in pairs
        and np.prod([other[n] for n in "XYZ"]) == np.prod([own[n] for n in "XYZ"])
    }
    assert set(found) == expected
    assert len(found) == len(expected)


def test_of_a_great_many_values_those_near_are_looked_at() -> None:
    made = Space((Param("A", tuple(range(1, 70_001))), Param("B", tuple(range(1, 70_001)))))
    own = Config.of({"A": 30_240, "B": 100})
    assert all(abs(other["A"] - own["A"]) <= NEXT for other in exchange_sizes(made, own))


# Threads along two axes, 256 in all: neither can change alone.
FIXED = view_of(
    Space(
        (Param("X", POWERS), Param("Y", POWERS), *(Param(f"P{i}", tuple(range(8))) for i in range(5))),
        (Constraint("threads", parse_expr("X * Y == 256")),),
    )
)  # 294,912 configurations


@cache
def after(outcomes: int) -> SearchView:
    """The best so far has 256 × 1 threads; the others have 1 × 256."""
    found = (FIXED.configs[i] for i in range(1, len(FIXED.configs), 1000))
    others = [Tried(config, -1.0 - config["P0"]) for config in found if config["X"] == 1]
    best = Config.of({"X": 256, "Y": 1, **{f"P{i}": 0 for i in range(5)}})
    return replace(FIXED, tried=(Tried(best, 1.0), *others[: outcomes - 1]), default=best)


def threads_asked(view: SearchView, choices: Choices) -> set[int]:
    """Along X, of what is asked for that is in all else like the best, whose neighbours are closed."""
    near = OpenConfigs(view).around(view.default, set())
    view = replace(view, closed=frozenset(view.configs[int(number)] for number in near))
    asked = Default(replace(choices, local_every=1)).ask(view, 8).configs
    alike = [config for config in asked if not any(config[f"P{i}"] for i in range(5))]
    return {config["X"] for config in alike} - {1}  # the others have 1, and neighbours


def test_a_product_that_is_fixed_is_searched_after_a_while() -> None:
    assert threads_asked(after(25), Choices())
    assert not threads_asked(after(24), Choices())
    assert not threads_asked(after(25), Choices(exchanges_from=None))


def test_only_what_is_open_is_among_the_candidates() -> None:
    view = after(25)
    best = view.default
    assert len(OpenConfigs(view).among(exchange_sizes(view.space, best), set())) == 8
    built = best.replace("X", 64).replace("Y", 4)
    (number,) = OpenConfigs(replace(view, pool=(built,))).among(exchange_sizes(view.space, best), set())
    assert view.configs[int(number)] == built
    assert not len(OpenConfigs(view).among(iter([built]), {int(number)}))
    assert not len(OpenConfigs(view).among(iter([best.replace("X", 64)]), set())), "64 threads in all"
    inside = replace(view, focus=focus_on(view, "X >= 32")).on("inside")
    numbers = OpenConfigs(inside).among(exchange_sizes(view.space, best), set())
    assert sorted(view.configs[int(n)]["X"] for n in numbers) == [32, 64, 128]
