"""Who plays which role in a run: the built-in expert, unless a template is given."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tunesmith.core.errors import bug_text

if TYPE_CHECKING:
    from tunesmith.core.candidates import Templates
    from tunesmith.core.device import Device
    from tunesmith.core.ports import Author, Catalogue, MoveAuthor, Planner
    from tunesmith.core.problem import Problem
    from tunesmith.core.template import Template

SIMULATED = ("a simulated kernel says itself what it does",)


def roles(problem: Problem, templates: Templates) -> tuple[Planner, Author]:
    """Who plans and who writes: the built-in expert, unless the template is given."""
    from tunesmith.expert.planner import ExpertPlanner, GivenTemplate, InOrder, Silent

    if templates.given is not None:
        return GivenTemplate(), Silent("the template is given")
    author = move_author(problem)
    if problem.kernel.language == "fake":
        from tunesmith.backends.fake_author import drafts_in

        return ExpertPlanner(problem, InOrder(tuple(drafts_in(problem.kernel.text)))), author
    from tunesmith.expert.planning import ByDiagnosis

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
        return SIMULATED
    from tunesmith.expert.author import read
    from tunesmith.expert.offers import reading_lines

    return reading_lines(problem, read(problem))


def launch_notes(problem: Problem, device: Device) -> tuple[str, ...]:
    """What users should know of their launch before they trust a speed-up."""
    from tunesmith.expert.excess_blocks import excess_block_notes

    try:
        return excess_block_notes(problem, device)
    except Exception as error:  # whatever a kernel does to the expert, it can be checked and run without
        return (f"the expert failed, which is a bug in Tunesmith: {bug_text(error)}",)


def catalogue_of(problem: Problem, device: Device) -> Catalogue:
    """The moves as a model is offered them."""
    if problem.kernel.language == "fake":
        from tunesmith.core.ports import Catalogue, Offer

        available, refused = move_author(problem).available(problem, device)
        return Catalogue(SIMULATED, tuple(map(Offer, available)), refused)
    from tunesmith.expert.offers import catalogue

    return catalogue(problem, device)


def signature_fault(problem: Problem, template: Template) -> str | None:
    """Why callers could not call a template as they call the original. A workspace may come after their
    arguments."""
    from tunesmith.expert.reading.source import missing_entry, signature_faults

    extra = {argument.name for argument in template.workspace}
    if len(problem.launches) == len(template.launches) == 1:
        wanted, got = problem.launches[0].args, template.launches[0].args
        if got[: len(wanted)] != wanted or not set(got[len(wanted) :]) <= extra:
            return (
                f"the kernel's arguments must stay ({', '.join(wanted)}), with a workspace behind them at "
                f"most; [launch] passes ({', '.join(got)})"
            )
    as_problem = replace(
        problem,
        kernel=replace(problem.kernel, text=template.source, path=template.path),
        launches=template.launches,
        arguments=(*problem.arguments, *template.workspace),
    )
    if (no_entry := missing_entry(as_problem)) is not None:
        return no_entry
    found = signature_faults(as_problem)
    return f"callers could not call it any more: {found[0]}" if found else None
