"""Which moves a round's template has: by the diagnosis, added in rounds, left out where they do not pay.

    round 1    how the work is shared (its moves hang together), and what answers the foremost findings
    later      the best template so far, less what made no difference, and a few moves more
    then       the original's own text with its own numbers open, where the kernel has some
    the end    the floor is near, nothing is left, or two rounds in a row brought nothing

A round whose template was rejected is repeated with half of what it added, until the culprit is alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from tunesmith.expert.moves import (
    AFTERWARDS,
    ORDER,
    PARAMETERS,
    REMEDIES,
    SHARING,
    STAY_OPEN,
    exclusive_moves,
    in_words,
    is_of,
)
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Remedy
from tunesmith.profiles.facts import Diagnosis
from tunesmith.run.budget import share_of
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Decided, Declined, Question
from tunesmith.run.explain import Explanation, explain_winners
from tunesmith.run.library import LibraryTemplate
from tunesmith.run.outcome import Interval
from tunesmith.run.ports import Author, Planner, Refactoring, Tried, Written
from tunesmith.run.prior import diagnoses_in_view
from tunesmith.run.race import Pick, Winners, sound_scores
from tunesmith.run.rounds import (
    RoundOutcome,
    best_scores,
    leading_candidate,
    made_on,
    problem_of,
    round_outcomes,
    score_at,
)
from tunesmith.run.state import Candidate, State
from tunesmith.space.configset import Config

NEAR = 1.03  # times the floor, at every workload
GAINED = math.log(1.01)  # what two rounds must bring to be worth a third
FIRST = 3  # moves that join the first round by the diagnosis
AT_ONCE = 4  # moves that join a later round
MAX_ROUNDS = 12  # rejected ones included, which cost a check each


@dataclass(frozen=True)
class RoundResult:
    """What one template came to."""

    moves: tuple[str, ...]  # in it
    score: float | None  # log speed-up of its best over the original; None: no template passed the gate
    idle: tuple[str, ...] = ()  # moves of which its winners make no use, and that made no difference
    distance: float | None = None  # its best's time over the floor, where that is largest; None: not known


def next_round(
    history: Sequence[RoundResult], diagnoses: Sequence[Diagnosis], available: Sequence[str]
) -> tuple[str, ...] | str:
    """The moves of the next template, in the order they are applied; a sentence where there is none.

    `diagnoses` are of the best kernel so far, one for each workload, as far as they are known; `available`
    are the moves that were not refused."""
    if reason := _stop_reason(history):
        return reason
    alone = exclusive_moves(available)
    available = [move for move in available if move not in alone]
    best = _best_round(history)
    base = tuple(m for m in best.moves if m not in best.idle) if best is not None else ()
    if (half := _half_of_rejected(history, available)) is not None:
        return _in_order({*half, *base}, available)
    spent = _spent_moves(history)
    fresh = list(rank_moves(diagnoses, [move for move in available if move not in spent]))
    if not fresh and not spent.issuperset(alone):
        return alone
    if not fresh:
        return "every move that applies has been tried" if history else "no move applies to this kernel"
    if best is None and not any(m in spent for m in SHARING):
        # What hangs together enters at once, with what the diagnosis asks for or the fixed order brings.
        others = [m for m in fresh if m not in SHARING and m not in AFTERWARDS]
        added = [m for m in fresh if m in SHARING] + others[:FIRST]
    else:
        added = fresh[:AT_ONCE]
    return _in_order({*base, *added}, available)


def rank_moves(diagnoses: Sequence[Diagnosis], available: Sequence[str]) -> tuple[str, ...]:
    """The moves by how much of the time their remedies may win, then in the fixed order."""
    worth: dict[Remedy, float] = {}
    for diagnosis in diagnoses:
        for finding in diagnosis.findings:
            for place, remedy in enumerate(finding.remedies):
                worth[remedy] = worth.get(remedy, 0.0) + finding.score / (1 + place)
    at_stake = {
        move: max((worth.get(remedy, 0.0) for remedy in REMEDIES.get(move, ())), default=0.0)
        for move in available
    }
    order = {move: at for at, move in enumerate(ORDER)}
    return tuple(sorted(available, key=lambda move: (-at_stake[move], order.get(move, len(ORDER)), move)))


def idle_moves(
    moves: Sequence[str], default: Config, winners: Sequence[Config], explanations: Sequence[Explanation]
) -> tuple[str, ...]:
    """Moves whose parameters stand at the default in every winner, and no other value is said to be faster.

    Without such a move its parameters stay at the default, so that nothing is lost. How many threads share a
    task stays open all the same: what is best there shifts with every other move."""
    found = []
    for move in moves:
        parameters = [name for name in default.as_dict() if is_of(move, name)]
        unused = all(winner[name] == default[name] for winner in winners for name in parameters)
        open_still = move in STAY_OPEN or any(_may_be_faster(e, parameters) for e in explanations)
        if parameters and winners and unused and not open_still:
            found.append(move)
    return tuple(found)


def _may_be_faster(explanation: Explanation, names: Sequence[str]) -> bool:
    return any(
        value.slower is not None and value.slower < 1 / explanation.noticed
        for param in explanation.params
        if param.name in names
        for value in param.others
    )


def _stop_reason(history: Sequence[RoundResult]) -> str:
    """Why there is no further round; "" where there is one."""
    best = _best_round(history)
    if best is not None and best.distance is not None and best.distance <= NEAR:
        away = round(100 * max(0.0, best.distance - 1))
        return f"the best is within {away} % of the floor at every workload"
    # The best score after each round that was searched; the original's own is 0.
    scores = list(accumulate((turn.score for turn in history if turn.score is not None), max, initial=0.0))
    if len(scores) > 3 and scores[-1] - scores[-3] < GAINED:
        return "the last two rounds gained less than 1 % together"
    if len(history) >= MAX_ROUNDS:
        return f"{MAX_ROUNDS} rounds have been tried"
    return ""


def _best_round(history: Sequence[RoundResult]) -> RoundResult | None:
    """The round to build on: the best of those whose template was sound; of equals the later."""
    sound = [(turn.score, place, turn) for place, turn in enumerate(history) if turn.score is not None]
    return max(sound, key=lambda item: item[:2])[2] if sound else None


def _added_moves(history: Sequence[RoundResult], place: int) -> tuple[str, ...]:
    best = _best_round(history[:place])
    before = best.moves if best is not None else ()
    return tuple(move for move in history[place].moves if move not in before)


def _half_of_rejected(history: Sequence[RoundResult], available: Sequence[str]) -> tuple[str, ...] | None:
    """After a template that was rejected: the first half of what was new in it."""
    if not history or history[-1].score is not None:
        return None
    added = [move for move in _added_moves(history, len(history) - 1) if move in available]
    return tuple(added[: len(added) // 2]) if len(added) > 1 else None


def _spent_moves(history: Sequence[RoundResult]) -> frozenset[str]:
    """Moves that had their turn: in a sound template, or alone to blame for a rejected one."""
    found: set[str] = set()
    for place, turn in enumerate(history):
        added = _added_moves(history, place)
        if turn.score is not None:
            found.update(turn.moves)
        elif len(added) == 1:
            found.update(added)
    return frozenset(found)


def _in_order(moves: set[str], available: Sequence[str]) -> tuple[str, ...]:
    """As they are applied: later moves state conditions on what earlier ones chose."""
    applied = tuple(PARAMETERS)
    return tuple(sorted((m for m in moves if m in available), key=applied.index))


@dataclass(frozen=True)
class Next:
    """What the next round tries: all moves of the template, those of its base included."""

    moves: tuple[str, ...]
    reason: str


# Of the rounds that are over, the template to go on from and the state; a sentence where nothing is left.
Rounds = Callable[[Sequence[RoundOutcome], Candidate | None, State], Next | str]


@dataclass(frozen=True)
class InOrder:
    """One move after the other, each on top of those that paid."""

    moves: tuple[str, ...]

    def __call__(self, done: Sequence[RoundOutcome], base: Candidate | None, state: State) -> Next | str:
        if len(done) >= len(self.moves):
            return "every move has been tried"
        move = self.moves[len(done)]
        return Next((*(base.moves if base else ()), move), f"{in_words(move)} is next")


@dataclass(frozen=True)
class ExpertPlanner:
    """Every round goes on from the best correct template so far; what does not pay is left behind."""

    problem: Problem
    next_round: Rounds

    def decide(self, state: State) -> Decided:
        waiting = [c for c in state.candidates if c.status == "admitted"]
        done, base = round_outcomes(self.problem, state), leading_candidate(self.problem, state)
        if waiting:
            moves, name = waiting[-1].moves, waiting[-1].id
            reason = f"round {len(done)}: {', '.join(moves) or f'template {name}'}"
            return share_of(state).search(reason, moves, name)
        chosen = self.next_round(done, base, state)
        if isinstance(chosen, str):
            if base is not None and base.searched is not None and base.searched.cut:
                return Decided("search", f"{chosen}: the rest is for the best", base.moves, base.id)
            return Decided("finish", chosen)
        # The original's own text is no change of a template that has replaced it.
        goes_on = base is not None and not (
            exclusive_moves((*base.moves, *chosen.moves)) == chosen.moves != base.moves
        )
        return Decided("refactor", chosen.reason, chosen.moves, base.id if base and goes_on else "")


Available = Callable[[Problem, Device], tuple[tuple[str, ...], tuple[tuple[str, str], ...]]]


@dataclass
class ByDiagnosis:
    """What the best kernel so far suffers from decides, and what moves have been worth."""

    problem: Problem
    templates: Templates
    available: Available  # moves that apply, and those that do not with the reason
    # Those that apply to the original, and to a plain kernel in its place: the same all along.
    _names: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False)

    def __call__(self, done: Sequence[RoundOutcome], base: Candidate | None, state: State) -> Next | str:
        kernel = state.plain_kernel
        if kernel is not None:
            done = [one for one in done if one.on == kernel.id and one.decision.by_moves]
            base = base if base is not None and made_on(state, base.id) == kernel else kernel
        candidate = kernel.id if kernel is not None else ""
        if candidate not in self._names:
            self._names[candidate], _ = self.available(
                problem_of(self.problem, self.templates, kernel), state.device
            )
        found = diagnoses_in_view(self.problem, state)
        tried = sound_scores(self.problem, state)
        history = [self._round_result(one, tried, state) for one in done]
        moves = next_round(history, list(found.values()), self._names[candidate])
        if isinstance(moves, str):
            return moves
        added = [move for move in moves if base is None or move not in base.moves]
        dropped = [move for move in (base.moves if base else ()) if move not in moves]
        return Next(moves, _round_reason(added, dropped, base, list(found.values())))

    def _round_result(self, one: RoundOutcome, tried: Sequence[Tried], state: State) -> RoundResult:
        """Moves that were asked for have had their turn, also where the author left them out."""
        moves, candidate = one.decision.moves, one.candidate
        last = one.drafts[-1].rejected if one.drafts else None
        if last is not None and last.same_as:  # nothing was gained, and nothing is wrong
            return RoundResult(moves, best_scores(tuple(tried)).get(last.same_as))
        if candidate is None or one.best is None:
            return RoundResult(moves, None)
        rows = [t for t in tried if t.config.candidate == candidate.id and t.score is not None]
        general = max(rows, key=lambda t: t.score or 0.0).config
        picks = tuple(
            Pick(w.name, _best_at(rows, place) or general, Interval(1.0, 1.0, 1.0))
            for place, w in enumerate(self.problem.workloads)
        )
        choice = Winners(general, picks)
        template_of = self.templates.lookup(state)
        default = template_of(general).default
        found = explain_winners(self.problem, template_of, state, choice)
        idle = idle_moves(candidate.moves, default, choice.configs(), found)
        looked = [p.diagnosis for p in state.profiled if p.config == general and p.diagnosis is not None]
        distances = [d.distance for d in looked if d.distance is not None]
        known = len(distances) == len(self.problem.workloads)
        return RoundResult(moves, one.best, idle, max(distances) if known else None)


def _best_at(rows: Sequence[Tried], place: int) -> Config | None:
    scored = [(score, t.config) for t in rows if (score := score_at(t, place)) is not None]
    return max(scored, key=lambda pair: pair[0])[1] if scored else None


def _round_reason(
    added: Sequence[str], dropped: Sequence[str], base: Candidate | None, found: Sequence[Diagnosis]
) -> str:
    whose = f"template {base.id}" if base else "the original"
    shown = dict.fromkeys(f.kind.value for d in found for f in d.findings[:1])
    why = f"{whose} shows {', '.join(shown)}; " if shown else f"from {whose}; "
    without = f", without {', '.join(dropped)}, which made no difference" if dropped else ""
    tried = ", ".join(map(in_words, added)) or "the same moves"
    if added and exclusive_moves((*added, *dropped)):
        return f"{why}tried next by itself, on the original's own text: {tried}"
    return f"{why}tried next: {tried}{without}"


@dataclass(frozen=True)
class LibraryFirst:
    template: LibraryTemplate
    then: Planner

    def decide(self, state: State) -> Decided | Question:
        if any(d.decision == "refactor" for d in state.decided):
            return self.then.decide(state)
        reason = f"the library has a template of this kernel: {self.template.name}, {self.template.about}"
        return Decided("refactor", reason, (self.template.mark, *self.template.moves), by_moves=True)


@dataclass(frozen=True)
class LibraryAuthor:
    """Hands out the stored text; values that the gate finds wrong here are forbidden in it."""

    template: LibraryTemplate
    then: Author

    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined:
        if self.template.mark not in task.moves:
            return self.then.write(task, problem, device)
        notes = (f"{self.template.name} of the library, {self.template.about}",)
        template = self.template
        return Written(template.without(task.without), template.moves, notes=notes, author=template.author)
