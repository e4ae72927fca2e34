"""How arguments go into a body that is put in place: as they stand, or by a copy."""

from __future__ import annotations

import pytest

from tests.csource.reading import source_of
from tunesmith.csource import nodes as c
from tunesmith.csource.arguments import Handed, is_plain_place
from tunesmith.csource.changes import Changes
from tunesmith.csource.parse import read_expression
from tunesmith.csource.types import type_of

TYPES = {
    "a": c.Type("float"), "b": c.Type("float"), "n": c.Type("int"), "x": c.Type("float", 1),
    "k": c.Type("int"),
}  # fmt: skip


def _handed(
    head: str, body: str, args: str, updated: str = "", aliased: frozenset[str] = frozenset()
) -> Handed:
    source = source_of(f"__device__ float own({head}) {{ {body} }}\n")
    call = read_expression(f"own({args})")
    assert isinstance(call, c.Call)

    def known(expr: c.Expr) -> c.Type | None:
        return type_of(expr, TYPES, source.functions)

    return Handed(source.functions[0], call.args, Changes(source), TYPES, known, updated, aliased)


def _directly(handed: Handed) -> list[bool]:
    pairs = zip(handed.function.parameters, handed.args, strict=True)
    return [handed.goes_in_directly(parameter, arg) for parameter, arg in pairs]


@pytest.mark.parametrize(
    ("head", "body", "args", "directly"),
    [
        ("float v", "return v + 1;", "a", [True]),
        ("float v", "v += 1; return v;", "a", [False]),  # a copy that is changed
        ("float v", "return v;", "n", [False]),  # another type
        ("float v", "return v;", "a + b", [False]),
        ("float v", "return v;", "1.0f", [True]),
        ("float v", "return v;", "1", [False]),  # an int, where a float is meant
        ("int v", "return v;", "threadIdx.x", [True]),
        ("float &v", "v = 1; return v;", "a", [True]),
        ("const float &v", "return v;", "a", [True]),
        ("float &v, float w", "v = 1; return w;", "a, a", [True, False]),  # w is what a was
        ("float &v, const float &w", "v = 1; return w;", "a, a", [True, True]),  # w is a itself
        ("float *p, const float &w", "p[0] = 1; return w;", "x, x[n]", [True, True]),
        ("const float *p, const float &w", "return p[0] + w;", "x, x[n]", [True, False]),
    ],
)
def test_what_goes_in_as_it_stands(head: str, body: str, args: str, directly: list[bool]):
    assert _directly(_handed(head, body, args)) == directly


def test_a_copy_that_is_given_back_may_be_the_variable_itself():
    head, body = "float v", "v += 1; return v;"
    assert _directly(_handed(head, body, "a", updated="a")) == [True]
    assert _directly(_handed(head, body, "a", updated="b")) == [False]
    assert _directly(_handed("float v, const float &w", "v += w; return v;", "a, a", updated="a")) == [
        True,
        False,
    ]


def test_a_variable_with_other_names_is_copied_where_something_is_stored():
    stores = ("float v, float *p", "p[0] = 2; return v;", "a, x")
    assert _directly(_handed(*stores)) == [True, True]
    assert _directly(_handed(*stores, aliased=frozenset({"a"}))) == [False, True]


def test_a_place_that_is_computed_cannot_be_changed():
    with pytest.raises(c.Unreadable, match="changed through a place that is computed"):
        _directly(_handed("float &v", "v = 1; return v;", "n > 0 ? a : b"))


@pytest.mark.parametrize(
    ("body", "args", "moves"),
    [
        ("i = 3; v = 1; return v;", "x[n], n", True),  # the index changes meanwhile
        ("i = 3; v = 1; return v;", "x[k], n", False),
        ("i = 3; v = 1; return v;", "x[(int)x[k]], n", True),  # memory tells it, and is stored to
    ],
)
def test_a_place_whose_index_changes_moves(body: str, args: str, moves: bool):
    handed = _handed("float &v, int &i", body, args)

    assert handed.moves(handed.function.parameters[0], handed.args[0]) is moves


@pytest.mark.parametrize(
    ("text", "plain"),
    [("a", True), ("x[n + 1]", True), ("x[n++]", False), ("x[f(n)]", False), ("n ? a : b", False)],
)
def test_a_plain_place(text: str, plain: bool):
    assert is_plain_place(read_expression(text)) is plain
