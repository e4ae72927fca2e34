from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.comparisons import BUDGET, plan
from tests.wording import says
from tunesmith.base.errors import BadInput
from tunesmith.base.files import folder_names
from tunesmith.plugins.studies.plan import (
    Planned,
    divide_speedup,
    list_plan_differences,
    parse_arms,
    schedule_runs,
)


def test_every_run_once_and_every_arm_first_as_often() -> None:
    planned = plan("template,rewrite,expert", "p,q", repeats=6)
    order = schedule_runs(planned)
    assert len(set(order)) == len(order) == 36
    assert [item.repeat for item in order] == sorted(item.repeat for item in order)
    assert order[:3] == tuple(Planned("p", arm, 1) for arm in ("template", "rewrite", "expert"))
    assert order[6:9] == tuple(Planned("p", arm, 2) for arm in ("rewrite", "expert", "template"))
    assert Counter(item.arm for item in order[::3]) == {"template": 4, "rewrite": 4, "expert": 4}
    assert order[6].place == "p/rewrite-2"


def test_arms() -> None:
    assert parse_arms(" template, rewrite-linear,expert ") == ("template", "rewrite-linear", "expert")
    for text, said in (
        ("template,templte", "unknown strategy 'templte'; known are template, rewrite"),
        ("expert,expert", "the strategy expert is named twice"),
        (" , ", "--strategies names none"),
    ):
        with pytest.raises(BadInput, match=said) as caught:
            parse_arms(text)
        assert caught.value.hint


@given(st.lists(st.sampled_from(["a", "a-2", "a-3", "a-2-2", "b"]), max_size=8))
def test_folders_are_distinct_and_a_name_that_is_free_is_used(names: list[str]) -> None:
    found = folder_names(names)
    assert len(set(found)) == len(names)
    assert all(own.startswith(name) for own, name in zip(found, names, strict=True))
    assert all(found[names.index(name)] == name for name in names)


def test_what_a_plan_has_that_is_not_wanted() -> None:
    own = plan("template,expert", repeats=2)
    assert list_plan_differences(own, replace(own, versions=(("tunesmith", "9"),))) == ()
    arms, repeats = list_plan_differences(own, replace(own, arms=("expert",), repeats=5))
    says(arms, "template,expert", "you ask for", "expert")
    says(repeats, "2 repeats", "you ask for", "5 repeats")
    evals, seconds = list_plan_differences(own, replace(own, budget=replace(BUDGET, evals=9, seconds=3.0)))
    says(evals, "40 evaluations", "you ask for", "9 evaluations")
    says(seconds, "no limit on seconds", "you ask for", "3 seconds")
    model, prompts = list_plan_differences(own, replace(own, model="mailbox", prompts=(("planner.md", "x"),)))
    says(model, "model", "not given", "you ask for", "mailbox")
    says(prompts, "prompts")
    million = replace(own, budget=replace(BUDGET, tokens=10**6))
    (tokens,) = list_plan_differences(million, replace(own, budget=replace(BUDGET, tokens=10**6 + 1)))
    says(tokens, "1000000 tokens", "you ask for", "1000001 tokens")
    (steering,) = list_plan_differences(own, replace(own, steer=False))
    says(steering, "steering", "on", "you ask for", "off")
    (problems,) = list_plan_differences(own, plan(problems="q"))
    says(problems, "problems p", "you ask for", "q")


def test_a_verified_gain_is_divided_as_short_measurements_divide_theirs() -> None:
    assert divide_speedup(2.0, 4.0, 4.0) == pytest.approx((2.0, 2.0))
    assert divide_speedup(4.0, 16.0, 4.0) == pytest.approx((2.0, 2.0)), "half of it each, by logarithms"
    assert divide_speedup(5.7, 7.7, 2.5)[1] > 1, "a search that tried the default cannot have lost"
    assert divide_speedup(1.0, 1.0, 3.0) == pytest.approx((3.0, 1.0))


@given(st.floats(0.01, 100), st.floats(1, 100), st.floats(1.01, 100))
def test_the_parts_of_a_gain_are_all_of_it(default: float, more: float, verified: float) -> None:
    refactoring, search = divide_speedup(default, default * more, verified)
    assert refactoring * search == pytest.approx(verified)
    assert 1e-4 < refactoring < 1e4
