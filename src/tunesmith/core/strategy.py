"""The strategies of a run, found by name, and what is asked of every one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tunesmith.core.dialogue import ROLES, SINGLE, Role
from tunesmith.core.events import Settings, Strategy
from tunesmith.core.state import Candidate, State



@dataclass(frozen=True)
class StrategyKind:
    name: Strategy
    is_concrete: bool = True  # whole kernels are written, without parameters: then nobody searches
    who: str = "kernels are written"
    roles: tuple[Role, ...] = ROLES
    needed: tuple[Role, ...] = ()  # that a model must play
    prompts: Mapping[Role, str] = field(default_factory=dict)  # files of words other than the role's own
    is_chain: bool | None = False  # each goes on from the last, better or not; None: with --linear


STRATEGIES: Mapping[str, StrategyKind] = {
    kind.name: kind
    for kind in (
        StrategyKind("template", is_concrete=False),
        StrategyKind(
            "rewrite",
            who="models plan and write kernels",
            needed=("planner", "author"),
            prompts={"planner": "planner_rewrite", "author": "author_rewrite"},
            is_chain=None,
        ),
        StrategyKind(
            "single", who="one conversation plans and writes kernels", roles=(SINGLE,), is_chain=True
        ),
    )
}


def strategy_words(strategy: str) -> str:
    """How kernels came about that are no templates, and to what their gain is due."""
    return (
        f"Strategy {strategy}: {STRATEGIES[strategy].who}. Each stands as it was written: "
        "refactoring gave all of the gain, nobody searched."
    )


def is_concrete(state: State) -> bool:
    """Whether whole kernels are written, without parameters: then nobody searches."""
    return state.started is not None and STRATEGIES[state.settings.strategy].is_concrete


def is_chain(state: State) -> bool:
    """Whether what was written last is what is looked at next, be it better or not."""
    chained = STRATEGIES[state.settings.strategy].is_chain
    return is_concrete(state) and (state.settings.linear if chained is None else chained)


def noun(settings: Settings) -> str:
    """What is written in the rounds of a run."""
    return "kernel" if STRATEGIES[settings.strategy].is_concrete else "template"


def last_written(state: State) -> Candidate | None:
    """The end of the chain, right or not; None: nothing has been written."""
    return next((c for c in reversed(state.candidates) if c.drafted is not None), None)


def last_right(state: State) -> Candidate | None:
    """The last of the chain that the gate let in."""
    return next((c for c in reversed(state.candidates) if c.admitted is not None and c.drafted), None)
