"""Loops side by side: which may be, that nothing is lost by it, and that loads are under way at once."""

from __future__ import annotations

import pytest

from tests.core.expert.write.models import BESIDE, each, let, rotary, total
from tests.core.expert.write.test_builds import instructions
from tests.cuda_here import needs_nvrtc
from tunesmith.expert.read.model import Each, Let, Step
from tunesmith.expert.write.sites import (
    Independence,
    find_loop_runs,
    gather_independent_loops,
    select_expression,
)
from tunesmith.source.printing import print_expr
from tunesmith.source.reader.parse import read_expression
from tunesmith.source.tree import Name, Ternary, Type

RULES = Independence({"out": "out", "other": "other", "x": "x", "view": "x"}, frozenset(("row",)))
FIRST = each("n", "out[i] = x[i];")
SECOND = each("m", "other[i] = x[i];")


@pytest.mark.parametrize(
    ("steps", "lengths"),
    [
        ((FIRST, SECOND), [2]),
        ((FIRST, each("m", "other[i] = out[i];")), []),  # reads what the first writes
        ((FIRST, each("m", "out[i + n] = x[i];")), []),  # writes it as well
        ((FIRST, each("m", "view[i] = 0.0f;")), []),  # writes what the first reads, by another name
        ((FIRST, each("m", "s += x[i];", total("s", "+", "0.0f"))), []),
        ((FIRST, each("m", "other[i] = row[i];")), []),  # what a loop has kept
        ((FIRST, each("m", "atomicAdd(&out[0], x[i]);")), []),
        ((FIRST, let("const float a = x[0];"), SECOND), [2]),  # may be known before
        ((FIRST, let("const float a = out[0];"), SECOND), []),
        ((FIRST, SECOND, each("k", "other[i] = 1.0f;")), [2]),
    ],
)
def test_loops_that_do_not_depend_on_each_other(steps: tuple[Step, ...], lengths: list[int]) -> None:
    assert [len(run) for run in find_loop_runs(gather_independent_loops(steps, RULES), RULES)] == lengths


def test_what_stands_between_comes_first() -> None:
    between = let("const float a = x[0];")
    gathered = gather_independent_loops((FIRST, between, SECOND), RULES)
    assert [type(step) for step in gathered] == [Let, Each, Each]


def test_what_two_addresses_share_is_computed_once() -> None:
    types = {name: Type("float", 1) for name in "qk"} | {name: Type("int") for name in "abi"}
    one, other = read_expression("q[i * a + i / 3]"), read_expression("k[i * b + i / 3]")
    found = select_expression(Name("first"), one, other, types)
    assert found is not None
    assert print_expr(found) == "(first ? q : k)[i * (first ? a : b) + i / 3]"


def test_a_choice_does_not_convert() -> None:
    types = {"q": Type("float", 1), "a": Type("int"), "b": Type("unsigned int")}
    one, other = read_expression("q[a - 8]"), read_expression("q[b - 8]")
    assert select_expression(Name("first"), one, other, types) is None
    same = select_expression(Name("first"), one, read_expression("q[a - 4]"), types)
    assert same is not None
    assert any(isinstance(node, Ternary) for node in (same.index.right,))  # type: ignore[union-attr]


@needs_nvrtc
@pytest.mark.long
def test_alike_loops_are_loaded_by_one_set_of_instructions() -> None:
    apart = instructions(rotary, BESIDE, VEC=8, SPLIT=1)
    beside = instructions(rotary, BESIDE, VEC=8, SPLIT=1, BESIDE=1)
    loads = [
        sum(a.count for a in found.accesses if (a.space, a.direction, a.width) == ("global", "load", 16))
        for found in (apart, beside)
    ]
    assert loads == [8, 4]
