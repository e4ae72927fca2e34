"""Who plays which role in a run: the built-in expert, unless a template is given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tunesmith import backends
from tunesmith.core import languages
from tunesmith.core.budget import part_of
from tunesmith.core.errors import bug_text
from tunesmith.core.events import Decided
from tunesmith.core.ports import Declined
from tunesmith.core.state import State

if TYPE_CHECKING:
    from tunesmith.core.candidates import Templates
    from tunesmith.core.device import Device
    from tunesmith.core.ports import Author, Catalogue, MoveAuthor, OwnAuthor, Planner, Refactoring, Written
    from tunesmith.core.problem import Problem
    from tunesmith.core.template import Template


class GivenTemplate:
    """Search it once, then stop; where there are several, each with its part of the budget."""

    def decide(self, state: State) -> Decided:
        waiting = [c for c in state.candidates if c.status == "admitted"]
        if len(waiting) > 1:
            evals, seconds = part_of(state, len(waiting))
            reason = f"{len(waiting)} templates are given and not searched"
            return Decided("search", reason, candidate=waiting[0].id, evals=evals, seconds=seconds)
        ended = [c.searched for c in state.candidates if c.searched is not None]
        if waiting or not ended:
            return Decided("search", "the template is given", candidate=waiting[0].id if waiting else "")
        return Decided("finish", ended[-1].reason)


@dataclass(frozen=True)
class Silent:
    """An author for runs that need none."""

    reason: str

    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined:
        del task, problem, device
        return Declined(self.reason)


def roles(problem: Problem, templates: Templates) -> tuple[Planner, Author]:
    """Who plans and who writes: the built-in expert, unless the template is given."""
    if templates.given is not None:
        return GivenTemplate(), Silent("the template is given")
    from tunesmith.expert.planner import ExpertPlanner, InOrder

    if (own := _own_author(problem)) is not None:
        return ExpertPlanner(problem, InOrder(own.moves_in(problem))), own
    from tunesmith.expert.planning import ByDiagnosis

    author = move_author(problem)
    return ExpertPlanner(problem, ByDiagnosis(problem, templates, author.available)), author


def _own_author(problem: Problem) -> OwnAuthor | None:
    """That of the backend which runs the kernel's language, where it has one."""
    kind = backends.kind_for(problem.kernel.language)
    return kind.author() if kind is not None and kind.author is not None else None


def move_author(problem: Problem) -> MoveAuthor:
    """Who writes templates by moves for a kernel's language."""
    from tunesmith.expert.author import ExpertAuthor

    return _own_author(problem) or ExpertAuthor()


def reading_of(problem: Problem) -> tuple[str, ...]:
    """What the expert makes of a kernel, in words."""
    if (own := _own_author(problem)) is not None:
        return own.reading
    from tunesmith.expert.author import read
    from tunesmith.expert.offers import reading_lines

    return reading_lines(problem, read(problem))


def launch_notes(problem: Problem, device: Device) -> tuple[str, ...]:
    """What users should know of their launch before they trust a speed-up."""
    if not languages.named(problem.kernel.language).is_c_family:
        return ()
    from tunesmith.expert.excess_blocks import excess_block_notes

    try:
        return excess_block_notes(problem, device)
    except Exception as error:  # whatever a kernel does to the expert, it can be checked and run without
        return (f"the expert failed, which is a bug in Tunesmith: {bug_text(error)}",)


def catalogue_of(problem: Problem, device: Device) -> Catalogue:
    """The moves as a model is offered them."""
    if (own := _own_author(problem)) is not None:
        from tunesmith.core.ports import Catalogue, Offer

        available, refused = own.available(problem, device)
        return Catalogue(own.reading, tuple(map(Offer, available)), refused)
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
