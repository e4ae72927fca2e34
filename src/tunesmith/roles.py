"""Who plays which role in a run: the built-in expert, unless a template is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tunesmith.core.candidates import Templates
    from tunesmith.core.ports import Author, MoveAuthor, Planner
    from tunesmith.core.problem import Problem


def roles(problem: Problem, templates: Templates) -> tuple[Planner, Author]:
    """Who plans and who writes: the built-in expert, unless the template is given."""
    from tunesmith.expert.planner import ExpertPlanner, GivenTemplate, InOrder
    from tunesmith.expert.silent import Silent

    if templates.given is not None:
        return GivenTemplate(), Silent("the template is given")
    author = move_author(problem)
    if problem.kernel.language == "fake":
        from tunesmith.backends.fake_author import drafts_in

        return ExpertPlanner(problem, InOrder(tuple(drafts_in(problem.kernel.text)))), author
    from tunesmith.expert.chosen_moves import ByDiagnosis

    return ExpertPlanner(problem, ByDiagnosis(problem, templates, author.available)), author


def move_author(problem: Problem) -> MoveAuthor:
    """Who writes templates by moves for a kernel's language."""
    if problem.kernel.language == "fake":
        from tunesmith.backends.fake_author import FakeAuthor

        return FakeAuthor()
    from tunesmith.expert.author import ExpertAuthor

    return ExpertAuthor()


def reading_of(problem: Problem) -> tuple[str, ...]:
    """What the expert makes of a kernel, in words."""
    if problem.kernel.language == "fake":
        return ("a simulated kernel says itself what it does",)
    from tunesmith.expert.author import read
    from tunesmith.expert.model.words import explain_lines

    found = read(problem)
    if isinstance(found, str):
        return (f"{problem.kernel.path} is beyond the expert: {found}",)
    return tuple(explain_lines(found))
