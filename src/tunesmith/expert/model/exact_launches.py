"""Flat ranges that end where the grid does, since no argument says how many elements there are: as tasks, one
for each block of today's launch, with as many elements as that has threads.

    i = blockIdx.x * blockDim.x + threadIdx.x;        for each block below gridDim.x
    out[i] = f(x[i]);                           ->        for each i from 0 to 256: out[block * 256 + i] = ...

Another launch must have just as many blocks of tasks, and nothing else says how many there are.
"""

from __future__ import annotations

from dataclasses import replace

from tunesmith.csource.nodes import Binary, Name, Number
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import names_in, numbered
from tunesmith.expert.model.affine import BUILTINS, number, same_value
from tunesmith.expert.model.flat import Flat
from tunesmith.expert.model.geometry import LaunchedKernel
from tunesmith.expert.model.kernel import Task
from tunesmith.expert.model.translate import product


def with_blocks_as_tasks(flat: Flat, kernel: LaunchedKernel) -> Flat:
    each = flat.each
    if flat.tasks or each.start != number(0) or not names_in(each.stop) <= set(BUILTINS):
        return flat
    for axis in "xyz":
        blocks, threads = Name(f"gridDim.{axis}"), Name(f"blockDim.{axis}")
        size = kernel.launch.values.get(threads.name)
        if isinstance(size, Number) and same_value(each.stop, product(blocks, threads)):
            name = numbered("block", kernel.normal.names | names_in(each.body) | {each.index})
            task = Task(name, blocks, each.type, kernel.launch.size_text(blocks))
            place = Binary("+", Binary("*", Name(name), size), Name(each.index))
            body = substitute(each.body, {each.index: place})
            return replace(flat, tasks=(task,), each=replace(each, stop=size, body=body))
    return flat
