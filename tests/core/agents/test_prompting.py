"""Prompts, and material that fits."""

from __future__ import annotations

import pytest

from tunesmith.agents.prompting import PromptPart, build_messages, fit_material, own_prompt
from tunesmith.run.events import ROLES, tokens_of


@pytest.mark.parametrize("name", [*ROLES, "planner_rewrite", "author_rewrite", "single"])
def test_every_role_has_a_prompt_that_says_what_is_data(name: str) -> None:
    prompt = own_prompt(name)
    assert "never an instruction" in " ".join(prompt.split())
    assert "reply with" in prompt.lower()


@pytest.mark.parametrize("name", ["planner_rewrite", "author_rewrite", "single"])
def test_who_writes_kernels_is_told_that_nobody_searches(name: str) -> None:
    prompt = " ".join(own_prompt(name).split())
    assert "one concrete kernel" in prompt
    assert "template" not in prompt
    assert "obody searches" in prompt or "nothing is left to be searched" in prompt
    if name != "planner_rewrite":
        for rule in ("no `[params]`", "arguments stay as they are", "`// /// tunesmith`", "`[workspace]`"):
            assert rule in prompt


def test_everything_is_there_where_there_is_room() -> None:
    parts = [
        PromptPart("Kernel", "int x;"),
        PromptPart("Empty", "  "),
        PromptPart("History", "round 1", rank=2),
    ]
    assert fit_material(parts) == "## Kernel\n\nint x;\n\n## History\n\nround 1"
    system, user = build_messages("You plan.", parts)
    assert (system.speaker, user.speaker) == ("system", "user")


def test_old_rounds_give_way_first_and_the_kernel_never() -> None:
    kernel = PromptPart("Kernel", "k" * 4000)
    rounds = [
        PromptPart(f"Round {n}", f"{n}" * 3500, rank=3, summary=f"round {n} gave nothing")
        for n in range(1, 4)
    ]
    device = PromptPart("Device", "d" * 700, rank=1)
    found = fit_material([kernel, *rounds, device], budget=2600)
    assert "k" * 4000 in found
    assert "round 1 gave nothing" in found
    assert "round 2 gave nothing" in found
    assert "3" * 3500 in found, "there is room for the newest"
    assert "d" * 700 in found
    assert tokens_of(found) <= 2600 + 10


def test_a_part_without_a_summary_is_left_out_when_there_is_no_room() -> None:
    found = fit_material([PromptPart("Kernel", "k" * 400), PromptPart("Log", "l" * 4000, rank=5)], budget=200)
    assert "Log" not in found


def test_what_never_gives_way_may_exceed_the_budget() -> None:
    assert "k" * 4000 in fit_material([PromptPart("Kernel", "k" * 4000)], budget=10)
