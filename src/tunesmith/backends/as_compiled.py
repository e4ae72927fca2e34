"""A problem with what its kernel is compiled with: the macros of the compilers that may build it, since it is
read as they read it, and the width of the device's waves."""

from __future__ import annotations

import re
from dataclasses import replace

from tunesmith.backends import kind_for, kind_of
from tunesmith.csource.predefined import asked_names
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem

_WAVES = {"-mwavefrontsize64": 64, "-mno-wavefrontsize64": 32}


def as_compiled(problem: Problem, device: Device) -> Problem:
    """Nobody is asked where nothing in the source depends on it."""
    problem = _with_wave(problem, device)
    kernel = problem.kernel
    kind = kind_of(device, kernel.language) or kind_for(kernel.language)
    ask = kind.macros if kind is not None else None
    if ask is None or kernel.predefined:
        return problem
    names = asked_names((kernel.text, *(text for _, text in kernel.headers)))
    own = [name for name in names if name not in dict(kernel.defines)]
    return replace(problem, kernel=replace(kernel, predefined=ask(kernel, device, own))) if own else problem


def _with_wave(problem: Problem, device: Device) -> Problem:
    """HIP's waves are as wide as the device's, or as a flag says; CUDA's are 32 everywhere."""
    kernel = problem.kernel
    texts = (kernel.text, *(text for _, text in kernel.headers))
    if kernel.language != "hip" or not any(re.search(r"\bwarpSize\b", text) for text in texts):
        return problem
    said = [_WAVES[flag] for flag in kernel.flags if flag in _WAVES]
    wave = said[-1] if said else device.limits.warp
    return replace(problem, kernel=replace(kernel, wave=wave)) if wave in _WAVES.values() else problem
