"""Requests of a role begin alike: what stays the same in a run stands before what does not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from tests.core.agents.shown import FAST, PROBLEM, TEMPLATES, on
from tests.core.run.test_talking import a_run as a_template_run
from tests.core.run.test_talking import model_of
from tests.core.session.test_rewriting import BEST, SPEEDS, STORY
from tests.kernel_runs import a_run
from tests.wording import says
from tunesmith.agents import material
from tunesmith.profiles.facts import Diagnosis
from tunesmith.run.events import Profiled, Request

CHANGES = ("Round", "Kernel", "Kernels", "Template", "Templates", "Measured", "Diagnosis", "Your", "The plan")


def headings(request: Request) -> list[str]:
    return [line[3:] for line in request.messages[1].text.splitlines() if line.startswith("## ")]


def shared(one: Request, other: Request) -> str:
    first, second = one.messages[1].text, other.messages[1].text
    at = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), len(first))
    return second[:at]


def firsts(asked: Sequence[Request], role: str) -> list[Request]:
    """Of each turn: what is asked again has two messages more."""
    return [request for request in asked if request.role == role and len(request.messages) == 2]


@pytest.mark.parametrize("role", ["planner", "author"])
def test_of_kernels(role: str) -> None:
    run = a_run(STORY, SPEEDS, BEST)
    run.go()
    _begin_alike(firsts(run.model.asked, role))


@pytest.mark.parametrize("role", ["planner", "author"])
def test_of_templates(role: str) -> None:
    run = a_template_run(TEMPLATES)
    run.go()
    _begin_alike(firsts(model_of(run).asked, role))


def _begin_alike(requests: Sequence[Request]) -> None:
    assert len(requests) > 1
    for request in requests:
        names = headings(request)
        first = next(i for i, name in enumerate(names) if name.startswith(CHANGES))
        assert all(name.startswith((*CHANGES, "What an analyst")) for name in names[first:]), names
        assert "A reply of the right shape" in names[:first]
    for one, other in pairwise(requests):
        same = shared(one, other)
        assert "## A reply of the right shape" in same
        assert "## The device" in same


def test_older_rounds_are_part_of_what_is_shared() -> None:
    run = a_run(STORY, SPEEDS, BEST)
    run.go()
    third = firsts(run.model.asked, "planner")
    assert "## Round 1" in shared(third[-2], third[-1])


def test_a_floor_that_is_beaten_is_told_with_what_is_measured() -> None:
    found = Diagnosis("bandwidth", "near it", 0.9, (), 1.2, 5e-6, "memory bandwidth")
    before = on(FAST, Profiled(None, "small", found))
    closer = Diagnosis("bandwidth", "near it", 0.9, (), 1.2, 4e-6, "memory bandwidth")
    after = on(FAST, Profiled(None, "small", found), Profiled(None, "small", closer))
    assert material.problem_part(PROBLEM, before) == material.problem_part(PROBLEM, after)
    says(material.times_part(PROBLEM, after).text, "small", "its floor is now 4 µs", "memory bandwidth")
    assert "its floor is now" not in material.times_part(PROBLEM, before).text
