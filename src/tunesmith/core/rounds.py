"""A run as a story of rounds: what was tried, what it gave, and whether it was worth keeping."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.core.events import Decided
from tunesmith.core.ports import Tried
from tunesmith.core.problem import Problem
from tunesmith.core.racing import sound_scores
from tunesmith.core.scores import noise
from tunesmith.core.state import Candidate, State


@dataclass(frozen=True)
class Round:
    """A refactoring and what came of it; scores are log speed-ups by the short measurements."""

    number: int  # from 1
    decision: Decided
    drafts: tuple[Candidate, ...]  # the first, and those that mend it
    declined: str = ""  # why there is no template
    before: float = 0.0  # the best before it; 0 is the original
    best: float | None = None  # of its own configurations; None: none is right
    tried: int = 0  # configurations measured
    noticed: float = 0.0  # a smaller gain may be chance

    @property
    def candidate(self) -> Candidate | None:
        """What is left of it to be searched."""
        last = self.drafts[-1] if self.drafts else None
        return last if last is not None and last.status in ("admitted", "searched") else None

    @property
    def is_over(self) -> bool:
        last = self.drafts[-1] if self.drafts else None
        if last is None:
            return bool(self.declined)
        mending = last.rejected is not None and last.rejected.again and not self.declined
        return last.status in ("rejected", "searched") and not mending

    @property
    def pays(self) -> bool:
        """Whether it is better than all before it, beyond chance."""
        return self.best is not None and self.best > self.before + self.noticed


def rounds(problem: Problem, state: State) -> tuple[Round, ...]:
    scored = best_scores(sound_scores(problem, state))
    declined = dict(state.declined)
    noticed, so_far = noise(state), max(0.0, scored.get("", 0.0))
    found: list[Round] = []
    for place, decision in enumerate(state.decided):
        if decision.decision != "refactor":
            continue
        drafts = tuple(c for c in state.candidates if c.drafted is not None and c.round == place)
        best = max((scored[c.id] for c in drafts if c.id in scored), default=None)
        found.append(
            Round(
                number=len(found) + 1,
                decision=decision,
                drafts=drafts,
                declined=declined[place].reason if place in declined else "",
                before=so_far,
                best=best,
                tried=sum(state.searched().count(("of", c.id)) for c in drafts),
                noticed=noticed,
            )
        )
        so_far = max(so_far, best or 0.0)
    return tuple(found)


def best_scores(tried: tuple[Tried, ...]) -> dict[str, float]:
    """The best log speed-up of each candidate that has one."""
    found: dict[str, float] = {}
    for one in tried:
        if one.score is not None:
            own = one.config.candidate
            found[own] = max(found.get(own, one.score), one.score)
    return found


def leader(problem: Problem, state: State) -> Candidate | None:
    """The candidate to go on from: the best correct one; None: the original is still ahead of all."""
    scored = best_scores(sound_scores(problem, state))
    ahead = [c for c in state.candidates if scored.get(c.id, 0.0) > noise(state)]
    return max(ahead, key=lambda c: scored[c.id], default=None)
