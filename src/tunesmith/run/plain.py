"""A kernel that a model has rewritten plainly, so that the expert reads it: what is made on it, and how it is
a problem of its own for the expert.

Nothing but the expert sees that problem: templates are compared with the original, and timed against it.
"""

from __future__ import annotations

from dataclasses import replace

from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.problem.template_source import without_block
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Decided
from tunesmith.run.state import Candidate, State


def made_on(state: State, candidate: str) -> Candidate | None:
    """The plain kernel that a candidate is, or goes back to; None: it goes back to the original."""
    known = {c.id: c for c in state.candidates if c.drafted is not None}
    own = known.get(candidate)
    while own is not None and not (own.status in ("admitted", "searched") and state.is_plain(own)):
        own = known.get(own.parent)
    return own


def moves_on(state: State, candidate: Candidate) -> Candidate | None:
    """The plain kernel on which the expert made it by moves; None: it did not."""
    if candidate.drafted is None or not state.decided[candidate.round].by_moves:
        return None
    return made_on(state, candidate.parent)


def plain_problem(problem: Problem, template: Template) -> Problem:
    """With the plain kernel in place of the original; lines keep their numbers."""
    text = without_block(template.source)
    return replace(
        problem, kernel=replace(problem.kernel, text=text, path=template.path), launches=template.launches
    )


def problem_of(problem: Problem, templates: Templates, kernel: Candidate | None) -> Problem:
    """What the expert works on."""
    return problem if kernel is None else plain_problem(problem, templates.of(kernel))


def on_plain(found: Decided, state: State) -> Decided:
    """What is made by moves goes on from the plain kernel, or from what was made on it."""
    kernel = state.plain_kernel
    if kernel is None or found.decision != "refactor" or found.is_stored:
        return found
    is_elsewhere = (found.by_moves or found.handed) and made_on(state, found.candidate) != kernel
    return replace(found, candidate=kernel.id) if is_elsewhere else found
