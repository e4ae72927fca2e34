"""Searchers, found by name. They ask and tell: which configuration next, given what came of the last ones."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from tunesmith.base.errors import BadInput

if TYPE_CHECKING:
    from tunesmith.run.ports import Searcher

SEARCHERS = {
    "default": "tunesmith.search.default:Default",
    "exhaustive": "tunesmith.search.simple:Exhaustive",
    "random": "tunesmith.search.simple:Random",
    "evolution": "tunesmith.search.simple:Evolution",
    "tpe": "tunesmith.search.simple:Tpe",
}


def check_name(name: str) -> None:
    if name not in SEARCHERS:
        hint = "choose one of these, or leave --search out"
        raise BadInput(f"unknown search {name!r}; known are {', '.join(SEARCHERS)}", hint=hint)


def load_searcher(name: str) -> Searcher:
    """The one of that name, which can be shown one side of a focus."""
    from tunesmith.search.simple import Focused

    check_name(name)
    module, _, name_there = SEARCHERS[name].partition(":")
    made: Searcher = getattr(importlib.import_module(module), name_there)()
    return Focused(made)
