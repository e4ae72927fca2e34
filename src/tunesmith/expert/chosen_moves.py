"""Which moves the next template has: what a run has shown so far, told to `planning` in its own terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tunesmith.core.candidates import Templates
from tunesmith.core.choose import Pick, Winners
from tunesmith.core.device import Device
from tunesmith.core.explain import explanations
from tunesmith.core.history import score_at
from tunesmith.core.ports import Tried
from tunesmith.core.prior import diagnoses
from tunesmith.core.problem import Problem
from tunesmith.core.profile.findings import Diagnosis
from tunesmith.core.racing import sound_scores
from tunesmith.core.rounds import RoundOutcome, best_scores
from tunesmith.core.space import Config
from tunesmith.core.state import Candidate, State
from tunesmith.core.stats import Interval
from tunesmith.expert import planning
from tunesmith.expert.planner import Next

Available = Callable[[Problem, Device], tuple[tuple[str, ...], tuple[tuple[str, str], ...]]]


@dataclass
class ByDiagnosis:
    """What the best kernel so far suffers from decides, and what moves have been worth."""

    problem: Problem
    templates: Templates
    available: Available  # moves that apply, and those that do not with the reason
    _names: tuple[str, ...] | None = field(default=None, init=False)  # they are the same all along

    def __call__(self, done: Sequence[RoundOutcome], base: Candidate | None, state: State) -> Next | str:
        if self._names is None:
            self._names, _ = self.available(self.problem, state.device)
        found = diagnoses(self.problem, state)
        tried = sound_scores(self.problem, state)
        history = [self._told(one, tried, state) for one in done]
        moves = planning.next_round(history, list(found.values()), self._names)
        if isinstance(moves, planning.Stop):
            return moves.reason
        added = [move for move in moves if base is None or move not in base.moves]
        dropped = [move for move in (base.moves if base else ()) if move not in moves]
        return Next(moves, _reason(added, dropped, base, list(found.values())))

    def _told(self, one: RoundOutcome, tried: Sequence[Tried], state: State) -> planning.Round:
        """Moves that were asked for have had their turn, also where the author left them out."""
        moves, own = one.decision.moves, one.candidate
        last = one.drafts[-1].rejected if one.drafts else None
        if last is not None and last.same_as:  # nothing was gained, and nothing is wrong
            return planning.Round(moves, best_scores(tuple(tried)).get(last.same_as))
        if own is None or one.best is None:
            return planning.Round(moves, None)
        rows = [t for t in tried if t.config.candidate == own.id and t.score is not None]
        general = max(rows, key=lambda t: t.score or 0.0).config
        picks = tuple(
            Pick(w.name, _best_at(rows, place) or general, Interval(1.0, 1.0, 1.0))
            for place, w in enumerate(self.problem.workloads)
        )
        choice = Winners(general, picks)
        template_of = self.templates.lookup(state)
        default = template_of(general).default
        told = explanations(self.problem, template_of, state, choice)
        idle = planning.idle_moves(own.moves, default, choice.configs(), told)
        looked = [p.diagnosis for p in state.profiled if p.config == general and p.diagnosis is not None]
        distances = [d.distance for d in looked if d.distance is not None]
        known = len(distances) == len(self.problem.workloads)
        return planning.Round(moves, one.best, idle, max(distances) if known else None)


def _best_at(rows: Sequence[Tried], place: int) -> Config | None:
    scored = [(score, t.config) for t in rows if (score := score_at(t, place)) is not None]
    return max(scored, key=lambda pair: pair[0])[1] if scored else None


def _reason(
    added: Sequence[str],
    dropped: Sequence[str],
    base: Candidate | None,
    found: Sequence[Diagnosis],
) -> str:
    whose = f"template {base.id}" if base else "the original"
    shown = dict.fromkeys(f.kind.value for d in found for f in d.findings[:1])
    why = f"{whose} shows {', '.join(shown)}; " if shown else f"from {whose}; "
    without = f", without {', '.join(dropped)}, which made no difference" if dropped else ""
    return f"{why}tried next: {', '.join(added) or 'the same moves'}{without}"
