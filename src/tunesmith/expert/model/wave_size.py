"""`warpSize` as a number: 32 in CUDA. Of the devices that HIP kernels run on some have 64, some 32: it is the
width of the kernel's device, and 64 where none is known."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource.walk import declared_in, map_nodes
from tunesmith.problem.problem import Kernel

WORD = "warpSize"
ASSUMED = {"cuda": 32, "hip": 64}


def with_wave_size(function: c.Function, kernel: Kernel) -> c.Function:
    """Unless the kernel calls something of its own by that name."""
    assumed = ASSUMED.get(kernel.language)
    own = {*declared_in(function.body), *(parameter.name for parameter in function.parameters)}
    if assumed is None or WORD in own:
        return function
    lanes = kernel.wave or assumed
    number = c.Number(str(lanes), lanes)
    body = map_nodes(function.body, lambda e: number if isinstance(e, c.Name) and e.name == WORD else e)
    return replace(function, body=body)
