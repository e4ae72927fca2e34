"""Which moves a round's template has: by the diagnosis, added in rounds, left out where they do not pay.

    round 1    how the work is shared (its moves hang together), and what answers the foremost findings
    later      the best template so far, less what made no difference, and a few moves more
    the end    the floor is near, nothing is left, or two rounds in a row brought nothing

A round whose template was rejected is repeated with half of what it added, until the culprit is alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.core.explain import Explanation, ValueEffect
from tunesmith.core.profile.findings import Diagnosis
from tunesmith.core.profile.remedies import Remedy
from tunesmith.core.space import Config
from tunesmith.expert.moves import PARAMETERS, REMEDIES

NEAR = 1.03  # times the floor, at every workload
GAINED = math.log(1.01)  # what two rounds must bring to be worth a third
FIRST = 3  # moves that join the first round by the diagnosis
AT_ONCE = 4  # moves that join a later round
BEHIND = 1.25  # times a winner's time: the best with a value that need not be tried again
ENOUGH = 4  # configurations with that value
MOST_ROUNDS = 12  # rejected ones included, which cost a check each

# Values of these hang together: searched one after the other they would mislead.
SHARING = ("redundant", "beside", "lanes", "tasks", "vector", "items", "split", "keep", "block")
ALWAYS = ("lanes", "block")  # stay open in every round
# With nothing else known: what seldom applies and pays where it does, then what may pay anywhere, last what
# costs a build for every size or only guides the compiler.
ORDER = (
    *SHARING,
    *("restrict", "convert", "rows", "reciprocal", "fast", "divide", "hints", "persistent"),
    *("bake", "unroll", "bounds", "registers", "flags"),
)


@dataclass(frozen=True)
class Round:
    """What one template came to."""

    moves: tuple[str, ...]  # in it
    score: float | None  # log speed-up of its best over the original; None: no template passed the gate
    idle: tuple[str, ...] = ()  # moves of which its winners make no use, and that made no difference
    distance: float | None = None  # its best's time over the floor, where that is largest; None: not known


@dataclass(frozen=True)
class Stop:
    reason: str


def next_round(
    history: Sequence[Round],
    diagnoses: Sequence[Diagnosis],
    available: Sequence[str],
) -> tuple[str, ...] | Stop:
    """The moves of the next template, in the order they are applied.

    `diagnoses` are of the best kernel so far, one for each workload, as far as they are known; `available`
    are the moves that were not refused.
    """
    if (end := _finished(history)) is not None:
        return end
    ranked = rank(diagnoses, available)
    best = _best(history)
    base = tuple(m for m in best.moves if m not in best.idle) if best is not None else ()
    if (half := _half_of_rejected(history, available)) is not None:
        return _in_order({*half, *base}, available)
    spent = _spent(history)
    fresh = [move for move in ranked if move not in spent]
    if not fresh:
        return Stop("every move that applies has been tried" if history else "no move applies to this kernel")
    if best is None and not any(m in spent for m in SHARING):
        # What hangs together enters at once, with what the diagnosis asks for or the fixed order brings.
        others = [m for m in fresh if m not in SHARING]
        added = [m for m in fresh if m in SHARING] + others[:FIRST]
    else:
        added = fresh[:AT_ONCE]
    return _in_order({*base, *added}, available)


def rank(diagnoses: Sequence[Diagnosis], available: Sequence[str]) -> tuple[str, ...]:
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
    return tuple(sorted(available, key=lambda move: (-at_stake[move], _place(move), move)))


def idle_moves(
    moves: Sequence[str],
    default: Config,
    winners: Sequence[Config],
    explanations: Sequence[Explanation],
) -> tuple[str, ...]:
    """Moves whose parameters stand at the default in every winner, and no other value is said to be faster.

    Without such a move its parameters stay at the default, so that nothing is lost. How many threads share a
    task stays open all the same: what is best there shifts with every other move.
    """
    found = []
    for move in moves:
        stems = PARAMETERS.get(move, ())
        own = [name for name in default.as_dict() if name.rstrip("_") in stems]
        unused = all(winner[name] == default[name] for winner in winners for name in own)
        if (
            own
            and winners
            and unused
            and move not in ALWAYS
            and not any(_may_be_faster(e, own) for e in explanations)
        ):
            found.append(move)
    return tuple(found)


def slow_values(default: Config, explanations: Sequence[Explanation]) -> tuple[tuple[str, int], ...]:
    """Values with which nothing tried came near a winner, whatever else it changed: for `without`.

    Those of the default stay: with them alone a template is sure to have a legal configuration to begin with.
    """
    found: list[tuple[str, int]] = []
    for param in explanations[0].params if explanations else ():
        for effect in param.others:
            if default.as_dict().get(param.name) == effect.value:
                continue
            told = [_told(explanation, param.name, effect.value) for explanation in explanations]
            if all(e is not None and e.tried >= ENOUGH and (e.best or 0.0) >= BEHIND for e in told):
                found.append((param.name, effect.value))
    return tuple(found)


def _told(explanation: Explanation, name: str, value: int) -> ValueEffect | None:
    """What an explanation says of a value; None also where it is the winner's own."""
    for param in explanation.params:
        if param.name == name:
            return next((effect for effect in param.others if effect.value == value), None)
    return None


def _may_be_faster(explanation: Explanation, names: Sequence[str]) -> bool:
    return any(
        value.slower is not None and value.slower < 1 / explanation.noticed
        for param in explanation.params
        if param.name in names
        for value in param.others
    )


def _finished(history: Sequence[Round]) -> Stop | None:
    best = _best(history)
    if best is not None and best.distance is not None and best.distance <= NEAR:
        away = round(100 * max(0.0, best.distance - 1))
        return Stop(f"the best is within {away} % of the floor at every workload")
    scores = [0.0, *_so_far(history)]
    if len(scores) > 3 and scores[-1] - scores[-3] < GAINED:
        return Stop("the last two rounds gained less than 1 % together")
    if len(history) >= MOST_ROUNDS:
        return Stop(f"{MOST_ROUNDS} rounds have been tried")
    return None


def _so_far(history: Sequence[Round]) -> list[float]:
    """The best score after each round that was searched; the original's own is 0."""
    best, found = 0.0, []
    for turn in history:
        if turn.score is not None:
            best = max(best, turn.score)
            found.append(best)
    return found


def _best(history: Sequence[Round]) -> Round | None:
    """The round to build on: the best of those whose template was sound; of equals the later."""
    sound = [(turn.score, place, turn) for place, turn in enumerate(history) if turn.score is not None]
    return max(sound, key=lambda item: item[:2])[2] if sound else None


def _added(history: Sequence[Round], place: int) -> tuple[str, ...]:
    best = _best(history[:place])
    before = best.moves if best is not None else ()
    return tuple(move for move in history[place].moves if move not in before)


def _half_of_rejected(history: Sequence[Round], available: Sequence[str]) -> tuple[str, ...] | None:
    """After a template that was rejected: the first half of what was new in it."""
    if not history or history[-1].score is not None:
        return None
    added = [move for move in _added(history, len(history) - 1) if move in available]
    return tuple(added[: len(added) // 2]) if len(added) > 1 else None


def _spent(history: Sequence[Round]) -> frozenset[str]:
    """Moves that had their turn: in a sound template, or alone to blame for a rejected one."""
    found: set[str] = set()
    for place, turn in enumerate(history):
        added = _added(history, place)
        if turn.score is not None:
            found.update(turn.moves)
        elif len(added) == 1:
            found.update(added)
    return frozenset(found)


def _in_order(moves: set[str], available: Sequence[str]) -> tuple[str, ...]:
    """As they are applied: later moves state conditions on what earlier ones chose."""
    applied = tuple(PARAMETERS)
    return tuple(sorted((m for m in moves if m in available), key=applied.index))


def _place(move: str) -> int:
    return ORDER.index(move) if move in ORDER else len(ORDER)
