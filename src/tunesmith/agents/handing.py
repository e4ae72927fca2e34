"""The expert as a colleague: an author is handed the template that a program makes by moves, and changes one
thing in it."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.agents import task
from tunesmith.agents.prompting import PlanReply, PromptPart, Unusable, fenced
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.run.events import Decided
from tunesmith.run.ports import Author, Catalogue, Declined, Refactoring

EXPERT = "expert"  # as the base of a plan


def expert_words(moves: Catalogue, writes: bool) -> str:
    """What planners are told; empty where nobody could do it."""
    if not writes or not moves.available:
        return ""
    return (
        f'With `"base": "{EXPERT}"` both work on one template: a program makes it by `moves`, the author is '
        "handed its text and changes what `what` says."
    )


def handed(plan: PlanReply, moves: Catalogue, writes: bool) -> Decided | Unusable:
    """Of a plan that has the program's template changed by the author."""
    if not writes:
        return Unusable(f"`base` is {EXPERT!r}, and nobody here writes by words: leave `base` out")
    if unknown := [name for name in plan.moves if name not in moves.available]:
        known = ", ".join(moves.available) or "none"
        return Unusable(f"{unknown[0]!r} is no move that applies here; available are: {known}")
    if not plan.moves or not plan.what.strip():
        fault = f"with `base` {EXPERT!r} a plan has `moves`, for the program, and `what`, for the author"
        return Unusable(f"{fault}: one of them is empty")
    chosen = tuple(dict.fromkeys(plan.moves))
    return Decided("refactor", plan.why, chosen, what=plan.what, expected=plan.expected_gain, handed=True)


def handed_parts(
    decision: Decided, expert: Author | None, problem: Problem, device: Device
) -> list[PromptPart]:
    """The template of the moves, as the author's base; where there is none, why."""
    if not decision.handed:
        return []
    heading = "The template that a program made by these moves, which this goes on from"
    if expert is None:
        return [
            PromptPart(heading, "There is none: nobody applies moves here. Go on from the kernel as it is.")
        ]
    made = expert.write(Refactoring(decision.moves), problem, device)
    if isinstance(made, Declined):
        return [PromptPart(heading, f"There is none: {made.reason}. Go on from the kernel as it is.")]
    left_out = [f"{name} does not apply: {why}" for name, why in made.refused]
    words = "It is right as far as a program can prove. Change what the plan says, and keep the rest."
    return [PromptPart(heading, "\n".join([words, *left_out, "", fenced(made.text)]))]


def plan_lines(decision: Decided, moves: Catalogue) -> list[str]:
    """A plan, as its author is told of it."""
    lines = [f"Why: {decision.reason}"]
    if decision.what:
        lines.append(f"What to change: {decision.what}")
    if decision.handed:
        lines.append(f"Made by a program already: {', '.join(decision.moves)}.")
    elif decision.moves:
        lines.append("With these choices; names, values and places are a program's proposal:")
        lines += _offers(decision.moves, moves)
    return lines


def _offers(names: Sequence[str], moves: Catalogue) -> list[str]:
    return [task.offer_line(moves.offer(name)) for name in names]
