"""Several templates of a round, in different directions: how planners and authors are told of them, and how
plans are read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import msgspec

from tunesmith.agents import prompting
from tunesmith.agents.prompting import Sentence, Unusable, Word, shortened
from tunesmith.run.budget import share_of
from tunesmith.run.events import Decided, Direction
from tunesmith.run.state import Candidate, State
from tunesmith.text import counted

OTHERS = 300  # characters of a plan that somebody else follows


class PlanOption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of several plans of a round, as the plan of a round that has one."""

    why: Sentence
    what: Annotated[str, msgspec.Meta(max_length=8000)] = ""
    base: Annotated[str, msgspec.Meta(max_length=20)] = ""
    moves: Annotated[tuple[Word, ...], msgspec.Meta(max_length=24)] = ()
    expected_gain: Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)] | None = None


class SeveralReply(prompting.PlanReply, frozen=True, forbid_unknown_fields=True):
    """Where a round has several templates: its plans stand in `plans`; what is said beside them is one."""

    plans: tuple[PlanOption, ...] = ()

    @property
    def options(self) -> tuple[PlanOption, ...]:
        alone = PlanOption(self.why, self.what, self.base, self.moves, self.expected_gain)
        return self.plans or (alone,)


class RewriteOption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    why: Sentence
    what: Annotated[str, msgspec.Meta(max_length=8000)] = ""
    expected_gain: Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)] | None = None


class SeveralRewrites(prompting.RewriteReply, frozen=True, forbid_unknown_fields=True):
    """The same of concrete kernels."""

    plans: tuple[RewriteOption, ...] = ()

    @property
    def options(self) -> tuple[RewriteOption, ...]:
        return self.plans or (RewriteOption(self.why, self.what, self.expected_gain),)


AnyPlan = prompting.PlanReply | PlanOption


def in_directions(why: str, found: Sequence[Direction], drafts: int) -> Decided:
    """The decision for a round: of one template, or of one for each direction."""
    whole = Decided("refactor", why, plans=tuple(found))
    return whole if drafts > 1 else replace(whole.branch(0), reason=why)


def several(example: str) -> str:
    """A reply with two plans, out of that with one."""
    one = json.loads(example)
    plan = {name: value for name, value in one.items() if name != "decision"}
    other = {"why": "...", **{name: "..." for name in ("what", "moves") if name in plan}}
    plans = {"decision": one["decision"], "why": "two causes that one template cannot both answer"}
    return json.dumps({**plans, "plans": [plan, other]})


def too_many_plans(count: int, drafts: int) -> Unusable | None:
    if count <= drafts:
        return None
    return Unusable(f"`plans` has {count} plans, and the round has room for {drafts}: leave out the rest")


def several_words(drafts: int, noun: str) -> str:
    """What planners are told where a round has several plans; empty where it has one."""
    if drafts == 1:
        return ""
    return (
        f"A round has up to {drafts} {noun}s, written side by side. Send the plans in `plans`, a list of up "
        f"to {drafts} objects with the fields of a plan, and at the top only `decision` and `why`. Let them "
        "be different directions, each with a good chance of its own, not one idea with other numbers: they "
        f"are compared by measuring, and the next round goes on from the best."
    )


def beside_words(state: State, branch: int) -> list[str]:
    """What others write at the same time, where a round has several plans."""
    plans = state.under_way.plans if state.under_way is not None else ()
    others = [plan for place, plan in enumerate(plans) if place != branch]
    if not others:
        return []
    own = plans[branch]
    differing = [_told(plan) for plan in others if plan != own]
    same = len(others) - len(differing)
    lines = [f"Draft {branch + 1} of {len(plans)} that are written side by side; keep to your own plan."]
    lines += [f"- another goes by: {shortened(' '.join(what.split()), OTHERS)}" for what in differing]
    lines += [f"- {counted(same, 'other')} by this plan: find a way of your own."] if same else []
    return lines


def _told(plan: Direction) -> str:
    return "the kernel, only rewritten plainly" if plan.plain else plan.what or ", ".join(plan.moves)


def search_words(state: State, evals: int | None) -> str:
    if evals is None:
        return ""
    plans = len(state.under_way.plans) if state.under_way is not None else 0
    if plans < 2:
        return f"The search of your template has {counted(evals, 'evaluation')}."
    share = f"The searches of the {plans} templates share {counted(evals, 'evaluation')}"
    return f"{share}: all begin, the better half goes on. So let the default be good."


def further_search(plan: prompting.PlanReply, base: Candidate | None, state: State) -> Decided | Unusable:
    if base is None or base.searched is None:
        return Unusable("there is no template to search further: refactor or stop")
    if not base.searched.cut:
        why = f"the search of template {base.id} has ended: {base.searched.reason}"
        return Unusable(f"{why}; refactor or stop")
    return share_of(state).search(plan.why, base.moves, base.id)
