"""Strategies for any of our frozen values, made from their fields."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from tunesmith.problem.device import Resources
from tunesmith.problem.plan import Status
from tunesmith.run.outcome import Result, Timing

SECONDS = st.floats(min_value=1e-9, max_value=1e3)


def timings() -> st.SearchStrategy[Timing]:
    alone = st.builds(Timing, st.lists(SECONDS, min_size=1, max_size=4).map(tuple), cached=st.booleans())
    pairs = st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=4)
    return alone | pairs.map(lambda taken: Timing(*zip(*taken, strict=True)))


def results() -> st.SearchStrategy[Result]:
    right = st.builds(Result, st.text(), st.just(Status.OK), timings(), st.text(), st.text())
    status = st.sampled_from([status for status in Status if status is not Status.OK])
    return right | st.builds(Result, st.text(), status, st.none(), st.text(), st.text())


def resources(depth: int = 1) -> st.SearchStrategy[Resources]:
    """Kernels within a build, and nothing within these."""
    counts = {f.name: st.none() | _LEAVES[int]() for f in fields(Resources) if f.name != "by_entry"}
    if not depth:
        return st.builds(Resources, **counts)
    inner = st.lists(st.tuples(st.text(max_size=20), resources(depth - 1)), max_size=2).map(tuple)
    return st.builds(Resources, **counts, by_entry=inner)


@cache  # making one takes longer than drawing from it
def arbitrary(kind: Any) -> st.SearchStrategy[Any]:
    """Values of the type: whatever its fields allow, except numbers that JSON has no word for."""
    if kind in _LEAVES:
        return _LEAVES[kind]()
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return st.builds(kind, **{f.name: arbitrary(hints[f.name]) for f in fields(kind)})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (Union, UnionType):
        return st.one_of([arbitrary(each) for each in inner])
    if origin is tuple and inner[-1] is Ellipsis:
        return st.lists(arbitrary(inner[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(arbitrary, inner))
    raise TypeError(kind)


_LEAVES: dict[Any, Any] = {
    type(None): st.none,
    bool: st.booleans,
    int: lambda: st.integers(-(2**63), 2**63 - 1),
    float: lambda: st.floats(allow_nan=False, allow_infinity=False),
    str: lambda: st.text(max_size=20),
    Resources: resources,
    Result: results,
    Timing: timings,
}
