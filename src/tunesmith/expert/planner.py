"""The planner for a template that is given: search it once, then stop."""

from __future__ import annotations

from tunesmith.core.events import Decided
from tunesmith.core.state import State


class GivenTemplate:
    def decide(self, state: State) -> Decided:
        if not state.decided:
            return Decided("search", "the template is given")
        return Decided("finish", "the template has been searched")
