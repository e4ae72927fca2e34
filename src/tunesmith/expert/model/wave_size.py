"""`warpSize` as a number: 32 in CUDA. Of the devices that HIP serves some have 64, some 32, and a kernel is
read for 64; what it computes is held against the original on the device itself, as everything is."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource.walk import declared_in, map_nodes

WORD = "warpSize"
WIDEST = {"cuda": 32, "hip": 64}


def with_wave_size(function: c.Function, language: str) -> c.Function:
    """Unless the kernel calls something of its own by that name."""
    lanes = WIDEST.get(language)
    own = {*declared_in(function.body), *(parameter.name for parameter in function.parameters)}
    if lanes is None or WORD in own:
        return function
    number = c.Number(str(lanes), lanes)
    body = map_nodes(function.body, lambda e: number if isinstance(e, c.Name) and e.name == WORD else e)
    return replace(function, body=body)
