"""A problem with the macros of the compilers that may build its kernel, which is read as they read it."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.backends import kind_for, kind_of
from tunesmith.csource.predefined import asked_names
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem


def as_compiled(problem: Problem, device: Device) -> Problem:
    """Nobody is asked where nothing in the source depends on it."""
    kernel = problem.kernel
    kind = kind_of(device, kernel.language) or kind_for(kernel.language)
    ask = kind.macros if kind is not None else None
    if ask is None or kernel.predefined:
        return problem
    names = asked_names((kernel.text, *(text for _, text in kernel.headers)))
    own = [name for name in names if name not in dict(kernel.defines)]
    return replace(problem, kernel=replace(kernel, predefined=ask(kernel, device, own))) if own else problem
