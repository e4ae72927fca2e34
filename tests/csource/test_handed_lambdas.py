"""Lambdas that function templates are handed: put in place, or left where that is not clear."""

from __future__ import annotations

import pytest

from tunesmith.csource.binding import BoundKernel, bind
from tunesmith.csource.inline import Inlined, inline
from tunesmith.csource.parse import read_source_tree
from tunesmith.csource.printing import print_statements

_EACH = "template <typename T, typename F> __device__ void each(const T *x, int n, F &&f)"
_LOOP = " { for (int i = 0; i < n; i++) f(x[i]); } "
_PASS = (
    "template <typename T, typename F> __device__ void rows(const T *x, int n, F &&f)"
    " { each(x, n, std::forward<F>(f)); } "
)


def inlined(before: str, body: str) -> Inlined:
    source = read_source_tree(
        f"{before} __global__ void k(const float *x, float *y, int n) {{ {body} }}", "cuda"
    )
    found = bind(source, "k")
    assert isinstance(found, BoundKernel), found
    return inline(found.function, found.source)


@pytest.mark.parametrize(
    ("before", "call"),
    [(_EACH + _LOOP, "each(x, n, f)"), (_EACH + _LOOP + _PASS, "rows(x, n, f)")],
)
def test_a_lambda_is_called_where_it_was_handed_to(before: str, call: str) -> None:
    done = inlined(before, f"float s = 0; auto f = [&s](const float &v) {{ s += v; }}; {call}; y[0] = s;")
    text = " ".join(print_statements(done.function.body).split())
    assert done.notes == ()
    turn = "{ const float v = x[i]; s += v; }"
    assert text == f"float s = 0; for (int i = 0; i < n; i++) {turn} y[0] = s;"


@pytest.mark.parametrize(
    ("before", "body"),
    [
        (_EACH + " { F g = f; for (int i = 0; i < n; i++) g(x[i]); } ", "each(x, n, f);"),  # copied
        (_EACH + " { for (int i = 0; i < sizeof(F); i++) f(x[i]); } ", "each(x, n, f);"),
        (_EACH + _LOOP + _EACH.replace("const T *x", "T x") + " { } ", "each(x, n, f);"),  # which one
        (_EACH + _LOOP, "each<float, void (*)(float)>(x, n, f);"),
    ],
)
def test_a_lambda_that_does_more_than_being_called_stays(before: str, body: str) -> None:
    done = inlined(before, f"float s = 0; auto f = [&s](const float &v) {{ s += v; }}; {body} y[0] = s;")
    assert "lambda_f" in print_statements(done.function.body)


def test_what_a_lambda_captures_by_value_must_stay() -> None:
    source = read_source_tree(
        "__global__ void k(float *y)"
        " { float s = 0; auto f = [s](float v) { return s + v; }; s = 2; y[0] = f(1); }",
        "cuda",
    )
    assert source.functions == ()
    assert "earlier value of s" in source.unread[0]


def test_a_lambda_that_moves_a_pointer_is_not_taken() -> None:
    body = "auto f = [&](float v) { y += 1; y[0] = v; }; f(x[0]); y[1] = 2;"
    assert "y[0] = x[0]" not in print_statements(inlined("", body).function.body)
