"""Outputs whose order is open, or whose indices may point elsewhere: brought into one order, and indices put
for the keys they point to, so that what is left to compare is values.

What is compared is always a rearrangement of what a kernel gave, whole: nothing that is missing, or there
twice, can be found right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.plan import BufferPlan, Plan
from tunesmith.problem.problem import ANY_ORDER, element_type

Array = NDArray[Any]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class OutputView:
    """What is compared of an output; `buffer` is how: with a name for people, type, rule and tolerance."""

    output: str
    buffer: BufferPlan
    array: Array


Views = dict[str, OutputView]  # by the buffer's name


def is_free(plan: Plan) -> bool:
    return bool(judged_whole(plan))


def judged_whole(plan: Plan) -> frozenset[str]:
    """Outputs of which no part can be judged without the rest, nor without each other."""
    compared = plan.compared()
    own = {b.name for b in compared if b.order or b.keys or b.compare == "function"}
    if any(b.compare == "function" for b in compared):  # it may ask for all of them
        own |= {b.name for b in compared}
    return frozenset(own | {b.order for b in compared if b.order not in ("", ANY_ORDER)})


def key_arrays(plan: Plan) -> tuple[str, ...]:
    """Inputs without which no index can be judged."""
    return tuple(dict.fromkeys(b.keys for b in plan.compared() if b.keys))


def views_of(
    plan: Plan, outputs: Mapping[str, Array], inputs: Mapping[str, Array], rows: Array | None = None
) -> Views:
    """`outputs` may be a kernel's, or what is expected of it; `inputs` are those of `key_arrays`, whole;
    `rows`: of the outputs these are there. What is not among the outputs has no view."""
    found: list[OutputView] = []
    compared = [b for b in plan.compared() if b.name in outputs]
    for b in compared:
        if b.order not in ("", ANY_ORDER):
            continue  # it goes with another
        mine = _parts(plan, b, outputs[b.name], inputs, rows)
        followers = [other for other in compared if other.order == b.name]
        theirs = [v for f in followers for v in _parts(plan, f, outputs[f.name], inputs, rows)]
        if b.order == ANY_ORDER:
            found += _sorted([*mine, *theirs], b.along, "sorted {}")
        elif theirs:
            together = f"{{}}, sorted with {' and '.join(f.name for f in followers)},"
            found += [*mine, *_sorted(mine, b.along, together, theirs)]
            found += _sorted(theirs, b.along, "sorted {}", mine)
        else:
            found += mine
        found += [_repeats(o, outputs[o.name], inputs[o.keys], rows) for o in (b, *followers) if o.keys]
    return {view.buffer.name: view for view in found}


def _parts(
    plan: Plan, b: BufferPlan, array: Array, inputs: Mapping[str, Array], rows: Array | None
) -> list[OutputView]:
    """The output itself; of indices the keys they point to, and those that point nowhere as they are."""
    if not b.keys:
        return [OutputView(b.name, b, array)]
    keys = plan.buffer(b.keys)
    index, inside, source = _pointed(b, array, inputs[b.keys], rows)
    taken = np.take_along_axis(source, np.where(inside, index, 0), axis=1) if source.shape[1] else index
    at = np.where(inside, taken, np.zeros((), dtype=taken.dtype)).reshape(array.shape)
    outside = np.where(inside, 0, index).reshape(array.shape)
    kind = keys.type if source.shape[1] else "int64"
    return [
        OutputView(b.name, _exact(b, f"{b.name} outside {keys.name}", "int64"), outside),
        OutputView(b.name, _exact(b, f"{keys.name} at {b.name}", kind), at),
    ]


def _exact(b: BufferPlan, name: str, type_name: str) -> BufferPlan:
    return replace(b, name=name, type=type_name, compare="exact", keys="", packed=1)


def _pointed(
    b: BufferPlan, array: Array, keys: Array, rows: Array | None
) -> tuple[Integers, NDArray[np.bool_], Array]:
    """By rows of the output: indices, whether there is a key at each, and the keys of the row."""
    length = array.shape[-1] if array.shape else 1
    index = _whole(array).reshape(-1, length) if array.size else np.zeros((0, length), dtype=np.int64)
    if b.keys_by_row:
        keys = keys[np.asarray(rows)] if rows is not None else keys
        source = keys.reshape(math.prod(keys.shape[:-1]), keys.shape[-1])
    else:
        source = np.broadcast_to(keys.reshape(1, -1), (index.shape[0], keys.size))
    return index, (index >= 0) & (index < source.shape[1]), source


def _repeats(b: BufferPlan, array: Array, keys: Array, rows: Array | None) -> OutputView:
    """How often each index has come before in its row, sorted: 0 throughout where none comes twice."""
    index, inside, _ = _pointed(b, array, keys, rows)
    length = index.shape[1]
    order = np.argsort(np.where(inside, index, -1), axis=1, kind="stable")
    listed = np.take_along_axis(np.where(inside, index, -1), order, axis=1)
    place = np.broadcast_to(np.arange(length), listed.shape)
    begins = np.ones(listed.shape, dtype=np.bool_)
    begins[:, 1:] = listed[:, 1:] != listed[:, :-1]
    first = np.maximum.accumulate(np.where(begins, place, 0), axis=1)
    before = np.sort(np.where(listed < 0, 0, place - first), axis=1).reshape(array.shape)
    return OutputView(b.name, _exact(b, f"repeats of {b.name}", "int64"), before)


def _sorted(
    views: Sequence[OutputView], along: int, name: str, others: Sequence[OutputView] = ()
) -> list[OutputView]:
    """All in one order, which is that of the values together: exact ones decide before those that may be a
    little off, whose order among near neighbours may be another."""
    members = sorted([*views, *others], key=lambda v: (v.buffer.compare != "exact", v.buffer.name))
    order = _order(members, along)
    found = []
    for view in views:
        flat = view.array.reshape(*order.shape, math.prod(view.array.shape[along + 1 :]))
        array = np.take_along_axis(flat, order[:, :, np.newaxis], axis=1).reshape(view.array.shape)
        called = replace(view.buffer, name=name.format(view.buffer.name))
        found.append(OutputView(view.output, called, array))
    return found


def _order(members: Sequence[OutputView], along: int) -> NDArray[np.intp]:
    shape = members[0].array.shape
    batch, length = math.prod(shape[:along]), shape[along]
    columns: list[Array] = []
    for view in members:
        flat = _sortable(view).reshape(batch, length, math.prod(view.array.shape[along + 1 :]))
        columns += [flat[:, :, number] for number in range(flat.shape[2])]
    if not columns:
        return np.broadcast_to(np.arange(length), (batch, length))
    return np.lexsort(tuple(reversed(columns)), axis=-1)


def _sortable(view: OutputView) -> Array:
    """Numbers that NumPy sorts, alike for what was given and what is expected."""
    element, array = element_type(view.buffer.type), view.array
    if array.dtype.kind in "iub":
        return array
    if view.buffer.compare == "exact" and element.kind == "float":
        array = array.astype(element.numpy)
    values = array.astype(np.float64)
    return np.rint(values) if view.buffer.compare == "exact" and element.kind != "float" else values


def _whole(array: Array) -> Integers:
    if array.dtype.kind in "iub":
        return array.astype(np.int64)
    values = array.astype(np.float64)
    fits = np.abs(values) < 2.0**62  # NaN does not
    return np.where(fits, np.rint(np.where(fits, values, 0.0)), -1.0).astype(np.int64)
