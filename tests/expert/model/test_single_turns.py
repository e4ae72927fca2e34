"""Loops that turn once, and those that only look like it."""

from __future__ import annotations

import pytest

from tests.csource.reading import statements_of
from tests.expert.model.kernels import lifted, row_problem
from tunesmith.csource import nodes as c
from tunesmith.csource.printing import print_statements
from tunesmith.expert.model.single_turns import without_single_turns
from tunesmith.expert.model.tidy import tidy

_FIXED = {"steps": 1, "channels": 3}


def _turned(body: str) -> tuple[str, tuple[str, ...]]:
    function = c.Function("k", (), statements_of(body), c.Type("void"))
    done, said = without_single_turns(function, _FIXED)
    return print_statements(tuple(s for one in done.body for s in _open(one))), said


def _open(stmt: c.Stmt) -> tuple[c.Stmt, ...]:
    return stmt.body if isinstance(stmt, c.Scope) else (stmt,)


@pytest.mark.parametrize(
    ("body", "left", "said"),
    [
        ("for (int i = 0; i < 1; ++i) y[i] = x[i + 1];", "y[0] = x[0 + 1];\n", ()),
        ("for (int i = 0; i < 16; i += 16) y[i] = 2;", "y[0] = 2;\n", ()),
        ("for (int t = 1; t <= steps; t++) y[n] = t;", "y[n] = 1;\n", ("steps",)),
        ("for (size_t i = 0; i < 1; ++i) y[i * n] = 2;", "y[(size_t)0 * n] = 2;\n", ()),
        ("for (int i = 0; i < 1; ++i) if (x[i] > 2) { y[i] = 0; break; }",
         "if (x[0] > 2)\n    y[0] = 0;\n", ()),
        ("for (int i = 0; i < 1; ++i, at += 2) y[at] = 2;", "y[at] = 2;\nat += 2;\n", ()),
        ("int at = n; for (int i = 0; i < 1; ++i, at += 2) y[at] = 2;", "int at = n;\ny[at] = 2;\n", ()),
        ("int at = n; int *p = &at; for (int i = 0; i < 1; ++i, at += 2) y[at] = 2; y[p[0]] = 0;",
         "int at = n;\nint *p = &at;\ny[at] = 2;\nat += 2;\ny[p[0]] = 0;\n", ()),
    ],
)  # fmt: skip
def test_the_only_turn(body: str, left: str, said: tuple[str, ...]) -> None:
    assert _turned(body) == (left, said)


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = 0; i < 2; ++i) y[i] = 2;",
        "for (int i = 0; i < n; ++i) y[i] = 2;",  # a size
        "for (int c = 0; c < channels; ++c) y[c] = 2;",
        "for (int i = 1; i < 1; ++i) y[i] = 2;",  # it never turns
        "for (int i = 0; i < 1; i += 0) y[i] = 2;",  # it turns for ever
        "for (unsigned char i = 0; i < 1; i += 256) y[i] = 2;",  # so does this one
        "for (int i = 0; i < 1; ++i) i = x[0];",
        "for (int i = 0; i < 1; ++i) { if (x[i] > 2) break; y[i] = 0; }",
        "for (int i = 0; i < 1; ++i, ++n) if (x[i] > 2) break;",  # only a turn that goes on counts
        "for (int i = 0; i < 1; ++i) { int i = 3; y[i] = 0; }",
        "{ int steps = n; for (int t = 1; t <= steps; t++) y[t] = t; }",  # another one of that name
    ],
)
def test_others_stay(body: str) -> None:
    left = print_statements(tuple(s for one in statements_of(body) for s in _open(one)))
    assert _turned(body) == (left, ())


def test_what_is_left_has_names_of_its_own() -> None:
    body = "int v = 1; for (int i = 0; i < 1; ++i) { int v = 2; y[i] = v; } y[1] = v;"
    function = c.Function("k", (), statements_of(body), c.Type("void"))
    done, _ = without_single_turns(function, {})
    said = print_statements(tidy(done.body, c.Source("cuda", (), ()), ()))
    assert "y[0] = v_2;" in said
    assert "y[1] = v;" in said


def test_vectors_no_longer_stand_in_a_loop() -> None:
    body = """
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d; i += gridDim.x * blockDim.x)
        for (int t = 0; t < 1; t++) out[i] = x[i] * t;"""
    kernel = lifted(row_problem(body, grid=("ceildiv(rows * d, 256)",)))
    assert {(access.array, access.stride) for access in kernel.accesses} == {("x", 1), ("out", 1)}
