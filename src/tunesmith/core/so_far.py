"""What an unfinished run has to show: its best template, and what that reached by short measurements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from tunesmith.core.candidates import draft_name
from tunesmith.core.history import ratio
from tunesmith.core.named_values import named_values
from tunesmith.core.prior import best_config
from tunesmith.core.problem import Problem
from tunesmith.core.racing import sound_scores
from tunesmith.core.rounds import best_scores
from tunesmith.core.state import Candidate, State
from tunesmith.core.strategy import noun


@dataclass(frozen=True)
class SoFar:
    """Nothing of it is verified, and nothing is claimed."""

    template: str  # its number
    digest: str  # of its text, among the run's objects
    status: str  # drafted: it waits for the gate; admitted: it is right; searched
    by: str  # the model or the moves
    speedup: float | None = None  # in the geometric mean; None: nothing was measured
    config: dict[str, int] | None = None
    file: str = ""  # where it is, in the run's folder
    noun: str = "template"  # or kernel, where concrete ones are written


def so_far(problem: Problem, state: State) -> SoFar | None:
    """The best that has passed the gate, else the draft that waits there; None where there is neither, or the
    run has ended."""
    own = [c for c in state.candidates if c.drafted is not None]
    sound = [c for c in own if c.status in ("admitted", "searched")]
    scored = best_scores(sound_scores(problem, state))
    best = max(sound, key=lambda c: scored.get(c.id, float("-inf")), default=state.draft)
    if best is None or best.drafted is None or state.stopped is not None:
        return None
    config = best_config(problem, state)
    is_it = config is not None and config.candidate == best.id
    return SoFar(
        best.id,
        best.template,
        best.status,
        _by(best),
        ratio(scored[best.id]) if best.id in scored else None,
        config.as_dict() if config is not None and is_it else None,
        noun=noun(state.settings),
    )


def so_far_name(problem: Problem) -> str:
    """The file that an unfinished run keeps it in: the one that the finished run delivers."""
    return f"template{PurePosixPath(draft_name(problem, '')).suffix}"


def so_far_text(found: SoFar) -> str:
    if found.status == "drafted":
        return f"{found.noun} {found.template} by {found.by} is written; it is checked where the device is"
    reached = f"{found.speedup:.2f}×" if found.speedup is not None else "nothing measured"
    values = named_values(found.config or {})
    at = f" at {values}" if values else ""
    return f"{found.noun} {found.template} by {found.by}: {reached}{at}, by short measurements, not verified"


def _by(candidate: Candidate) -> str:
    drafted = candidate.drafted
    assert drafted is not None, "a template that was given is the user's"
    return drafted.author or ", ".join(drafted.moves) or "the expert"
