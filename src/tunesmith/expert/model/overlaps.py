"""Which launches of a call may start while the one ahead of them ends, and what they may not touch then."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tunesmith.expert.model.call import CallPart, memory_of
from tunesmith.expert.model.kernel import KernelModel
from tunesmith.problem.problem import Launch, Problem


@dataclass(frozen=True)
class Overlap:
    """A launch that may overlap with the one ahead of it."""

    place: int
    handed: frozenset[str]  # arrays that launches ahead of it may write, or read where it writes itself


def overlaps(
    problem: Problem, reading: Sequence[tuple[CallPart, KernelModel | str]]
) -> tuple[tuple[Overlap, ...], tuple[str, ...]]:
    """The launches that may, and why the others may not.

    The kernel waits for the launch ahead, and so for all that one has waited for: a launch that was made to
    overlap by the user may not have waited for anything.
    """
    parts = {place: (part, kernel) for part, kernel in reading for place in part.places}
    found, reasons = list[Overlap](), list[str]()
    for place in range(1, len(problem.launches)):
        part, kernel = parts[place]
        why = _why_not(part, kernel, problem.launches[place - 1], problem.launches[place])
        if why:
            reasons.append(f"{problem.launches[place].entry}: {why}")
            continue
        own = _touched(problem.launches[place], kernel, problem, ("store", "update", "atomic"))
        handed = set[str]()
        for launch, (_, before) in ((problem.launches[at], parts[at]) for at in range(place)):
            handed |= _touched(launch, before, problem, ("store", "update", "atomic"))
            handed |= _by_all_names(_touched(launch, before, problem, ("load",)), problem) & own
        found.append(Overlap(place, _by_all_names(handed, problem)))
    return tuple(found), tuple(dict.fromkeys(reasons))


def _by_all_names(arrays: Collection[str], problem: Problem) -> frozenset[str]:
    """These arrays and all others that may be the same memory."""
    own = {memory_of(problem.argument(name), problem) for name in arrays}
    return frozenset(a.name for a in problem.arguments if a.is_array and memory_of(a, problem) in own)


def _why_not(part: CallPart, kernel: KernelModel | str, ahead: Launch, own: Launch) -> str:
    if isinstance(kernel, str):
        return "it is not read"
    if len(part.places) > 1:
        return "its kernel is launched several times"
    if kernel.waits or own.pdl or ahead.pdl:
        return "it overlaps already, or the launch ahead of it does"
    texts = [None if launch.when is None else launch.when.text for launch in (ahead, own)]
    if texts[0] is not None and texts[0] != texts[1]:
        return f"{ahead.entry} is not launched at all sizes at which it is (when)"
    return ""


def _touched(
    launch: Launch, kernel: KernelModel | str, problem: Problem, kinds: Collection[str]
) -> frozenset[str]:
    """Arrays that a launch may touch in these ways: all that it is given where its kernel is not read."""
    if isinstance(kernel, str):
        return frozenset(name for name in launch.args if problem.argument(name).is_array)
    parameters = [parameter.name for parameter in kernel.function.parameters]
    names = dict(zip(parameters, launch.args, strict=False))
    return frozenset(names[a.array] for a in kernel.accesses if a.kind in kinds and a.array in names)
