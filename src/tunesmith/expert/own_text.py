"""Templates that keep the original's text: local moves on each kernel of a call, and on the file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tunesmith.expert.model.call import CallPart
from tunesmith.expert.passes import Move
from tunesmith.expert.passes.local_draft import (
    EditSite,
    LocalDraft,
    edited,
    find_site,
    local_defaults,
    local_heading,
    start,
    whole_text,
)
from tunesmith.expert.passes.port import Context
from tunesmith.expert.writing.together import OwnText
from tunesmith.problem.problem import Problem
from tunesmith.problem.unused import without_kernels

Refusals = list[tuple[str, str]]


@dataclass(frozen=True)
class TextOfKernel:
    """Where a kernel stands in the text, or why that is not to be seen; and which launches run it."""

    site: EditSite | str
    launches: tuple[int, ...]  # among those of the draft
    context: Context
    entry: str


def texts_of(problem: Problem, parts: Sequence[CallPart], context: Context) -> tuple[TextOfKernel, ...]:
    """The kernels of a problem's launches by their entries; `parts` give them their numbers."""
    numbers = {_bare(part.entry): part.number for part in reversed(parts)}
    names = list(dict.fromkeys(_bare(launch.entry) for launch in problem.launches))
    found = []
    for name in names:
        own = [place for place, launch in enumerate(problem.launches) if _bare(launch.entry) == name]
        alone = replace(problem, launches=tuple(problem.launches[place] for place in own))
        number = numbers.get(name, "") if len(parts) > 1 else ""
        site = find_site(alone)
        found.append(TextOfKernel(site, tuple(own), Context(alone, context.device, number), name))
    return tuple(found)


def _bare(entry: str) -> str:
    return entry.split("<")[0].split("::")[-1].strip()


def opened(
    problem: Problem, kernels: Sequence[TextOfKernel], moves: Sequence[Move[LocalDraft]], context: Context
) -> tuple[LocalDraft, Refusals]:
    """The original's text with these moves where they apply; and those that apply nowhere."""
    alone = kernels[0].site if len(kernels) == 1 else ""
    whole = whole_text(problem) if isinstance(alone, str) else alone
    draft, refused = start(whole, problem), list[tuple[str, str]]()
    for move in moves:
        if move.of_file:
            result = move.apply(draft, context)
            if isinstance(result, str):
                refused.append((move.name, result))
            else:
                draft = result
            continue
        said: list[tuple[str, str]] = []
        for kernel in kernels:
            changed = _on_one(draft, kernel, move)
            if isinstance(changed, str):
                said.append((kernel.entry, changed))
            else:
                draft = changed
        if len(said) == len(kernels):
            refused.append((move.name, by_kernel(said)))
    return draft, refused


def _on_one(draft: LocalDraft, kernel: TextOfKernel, move: Move[LocalDraft]) -> LocalDraft | str:
    """The move on one kernel of the draft."""
    if isinstance(kernel.site, str):
        return kernel.site
    view = replace(draft, site=kernel.site, launches=tuple(draft.launches[at] for at in kernel.launches))
    result = move.apply(view, kernel.context)
    if isinstance(result, str):
        return result
    launches = list(draft.launches)
    for at, launch in zip(kernel.launches, result.launches, strict=True):
        launches[at] = launch
    return replace(result, site=draft.site, launches=tuple(launches))


def by_kernel(said: Sequence[tuple[str, str]]) -> str:
    """Reasons by kernel; one that they share once."""
    reasons = dict.fromkeys(reason for _, reason in said)
    if len(reasons) == 1:
        return next(iter(reasons))
    return "; ".join(f"{name}: {reason}" for name, reason in said)


def rewritten(every: Sequence[CallPart], kept: Sequence[CallPart]) -> frozenset[str]:
    """Kernels of the text that no launch runs any more: names of those that do not keep their text."""
    return frozenset(_bare(part.entry) for part in every) - {_bare(part.entry) for part in kept}


def own_text(draft: LocalDraft, places: Sequence[int], gone: Collection[str] = ()) -> OwnText:
    """For a file that has other kernels besides; `places` are those of the draft's launches in the call.

    Kernels that are `gone` have no launch."""
    text = without_kernels(edited(draft), gone) if draft.launches else ""
    return OwnText(local_heading(draft), tuple(places), text, tuple(local_defaults(draft)))
