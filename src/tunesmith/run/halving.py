"""Templates of one round that share its part of the budget: successive halving.

All of them are searched with a small part each; the better half goes on with a larger one, and so on until
one is left. What was measured stays: a search goes on where it was cut. Each decision follows from the state.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.problem.problem import Problem
from tunesmith.run.budget import BudgetShare, is_concrete, share_of
from tunesmith.run.events import Decided
from tunesmith.run.racing import sound_scores
from tunesmith.run.rounds import best_scores
from tunesmith.run.state import Candidate, State

LEAST = 8  # evaluations of a template before it is compared with others, if the budget has them


def rungs(count: int, evals: int | None) -> tuple[int, ...]:
    """How many templates are searched at each rung. Where evaluations are few, rungs between the first and
    the last are left out: a part of almost nothing tells nothing."""
    found = [count]
    while found[-1] > 1:
        found.append((found[-1] + 1) // 2)
    while len(found) > 2 and evals is not None and evals // (len(found) * count) < LEAST:
        del found[1]
    return tuple(found)


@dataclass(frozen=True)
class RoundSearch:
    """What is searched of the last round, where it had several plans."""

    number: int  # of the round, from 1
    templates: tuple[Candidate, ...]  # that the gate let in
    searches: Counter[str]  # how often each was searched

    @property
    def waiting(self) -> list[Candidate]:
        return [c for c in self.templates if c.status == "admitted"]


def round_search(state: State) -> RoundSearch | None:
    """None: the last round had one plan, or there was none."""
    places = [place for place, d in enumerate(state.decided) if d.decision == "refactor"]
    if not places or not state.decided[places[-1]].plans or state.open_branches:
        return None
    own = [c for c in state.candidates if c.round == places[-1] and c.status in ("admitted", "searched")]
    later = state.decided[places[-1] + 1 :]
    searches = Counter(d.candidate for d in later if d.decision == "search")
    return RoundSearch(len(places), tuple(c for c in own if c.drafted), searches)


def next_search(problem: Problem, state: State) -> Decided | None:
    """Of a round with several templates; None: its searches are over, or there was one plan alone."""
    found = round_search(state)
    if found is None or not found.templates:
        return None
    if is_concrete(state):  # each is measured, and that is all
        if not found.waiting:
            return None
        return Decided("search", f"kernel {found.waiting[0].id} is right", (), found.waiting[0].id)
    share = share_of(state, found.templates)
    sizes = rungs(len(found.templates), share.evals)
    if share.is_endless:
        sizes = sizes[:1]  # each until its search ends
    scored = best_scores(sound_scores(problem, state))
    among: Sequence[Candidate] = found.templates
    for place, size in enumerate(sizes):
        entered = [c for c in among if found.searches[c.id] > place]
        others = [c for c in among if c not in entered]
        others.sort(key=lambda c: -scored.get(c.id, -math.inf))
        among = [*entered, *others[: max(0, size - len(entered))]]
        due = [c for c in among if found.searches[c.id] <= place and _goes_on(c)]
        if not due:
            continue
        chosen = due[0] if place else min(due, key=lambda c: c.branch)
        part = _part(state, found.templates, sizes, place, share)
        if part.is_nothing:
            return None
        which = f", rung {place + 1} of {len(sizes)}, {size} of {len(found.templates)} templates"
        reason = f"round {found.number}{which if sizes[0] > 1 else ''}: template {chosen.id}"
        return part.search(reason, chosen.moves, chosen.id)
    return None


def _goes_on(template: Candidate) -> bool:
    """Whether there is anything left to search in it."""
    return template.searched is None or template.searched.cut


def _part(
    state: State, templates: Sequence[Candidate], sizes: Sequence[int], place: int, share: BudgetShare
) -> BudgetShare:
    """What one search has at a rung: all rungs cost the same, and the last has what is left."""
    left = share.used(state, templates)
    if sizes[place] == 1:
        return left
    return share.parted(len(sizes) * sizes[place], LEAST).at_most(left)
