"""What is asked of every strategy: whether kernels are concrete, and which of them counts as the last."""

from __future__ import annotations

from typing import get_args

from tunesmith.core.events import Settings, Strategy
from tunesmith.core.state import Candidate, State

# Unless the user says otherwise. Rounds: where each is one concrete kernel, and in comparisons.
KERNEL_ROUNDS = 5
SEVERAL_EVALS = 400  # where templates are written as the run goes on: of all of them together
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
_WHO = {"rewrite": "models plan and write kernels", "single": "one conversation plans and writes kernels"}


def strategy_words(strategy: str) -> str:
    """How kernels came about that are no templates, and to what their gain is due."""
    return (
        f"Strategy {strategy}: {_WHO.get(strategy, 'kernels are written')}. Each stands as it was written: "
        "refactoring gave all of the gain, nobody searched."
    )


def is_concrete(state: State) -> bool:
    """Whether whole kernels are written, without parameters: then nobody searches."""
    return state.started is not None and state.settings.strategy != "template"


def is_chain(state: State) -> bool:
    """Whether what was written last is what is looked at next, be it better or not."""
    return is_concrete(state) and (state.settings.linear or state.settings.strategy == "single")


def noun(settings: Settings) -> str:
    """What is written in the rounds of a run."""
    return "template" if settings.strategy == "template" else "kernel"


def last_written(state: State) -> Candidate | None:
    """The end of the chain, right or not; None: nothing has been written."""
    return next((c for c in reversed(state.candidates) if c.drafted is not None), None)


def last_right(state: State) -> Candidate | None:
    """The last of the chain that the gate let in."""
    return next((c for c in reversed(state.candidates) if c.admitted is not None and c.drafted), None)
