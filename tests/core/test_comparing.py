from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.comparisons import BUDGET, plan
from tunesmith.core.comparing import Planned, differences, folder_names, parse_arms, schedule
from tunesmith.core.errors import BadInput


def test_every_run_once_and_every_arm_first_as_often() -> None:
    planned = plan("template,rewrite,expert", "p,q", repeats=6)
    order = schedule(planned)
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
def test_folders_are_distinct_and_a_name_that_is_free_is_kept(names: list[str]) -> None:
    found = folder_names(names)
    assert len(set(found)) == len(names)
    assert all(own.startswith(name) for own, name in zip(found, names, strict=True))
    assert all(found[names.index(name)] == name for name in names)


def test_what_a_plan_has_that_is_not_wanted() -> None:
    own = plan("template,expert", repeats=2)
    assert differences(own, replace(own, versions=(("tunesmith", "9"),))) == ()
    assert differences(own, replace(own, arms=("expert",), repeats=5)) == (
        "arms template,expert",
        "repeats 2",
    )
    assert differences(own, replace(own, budget=replace(BUDGET, evals=9, seconds=3.0))) == (
        "evals 40",
        "seconds without limit",
    )
    assert differences(own, replace(own, model="mailbox", prompts=(("planner.md", "x"),))) == (
        "model not given",
        "other prompts",
    )
    assert differences(own, plan(problems="q")) == ("problems p as they were then",)
