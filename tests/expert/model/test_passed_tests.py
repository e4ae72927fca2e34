"""Loops that no thread goes round again are branches; those that a thread may go round again stay loops."""

from __future__ import annotations

import pytest

from tests.csource.reading import statements_of
from tests.expert.model.kernels import row_problem
from tunesmith.csource.nodes import For
from tunesmith.expert.model.passed_tests import turned_once
from tunesmith.expert.model.translate import launch_terms

_LOOP = (
    "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += gridDim.x * blockDim.x) "
    "out[i] = x[i] * 2.0f;"
)


def _is_loop(body: str) -> bool:
    launch = launch_terms(row_problem(body, grid=("ceildiv(d, 256)",)), ("x", "out", "rows", "d"))
    return any(isinstance(stmt, For) for stmt in turned_once(statements_of(body), launch))


def test_a_grid_as_large_as_the_bound_takes_one_turn():
    assert not _is_loop(_LOOP)
    assert not _is_loop(
        "const int by = gridDim.x * blockDim.x;\n" + _LOOP.replace("gridDim.x * blockDim.x", "by")
    )


@pytest.mark.parametrize(
    "body",
    [
        "d = d * rows;\n" + _LOOP,
        "d++;\n" + _LOOP,
        "if (rows > 2) d = d * 2;\n" + _LOOP,
        "int n = d;\nn = n * rows;\n" + _LOOP.replace("i < d", "i < n"),
        _LOOP.replace("int i", "unsigned char i"),
        _LOOP.replace("gridDim.x * blockDim.x", "gridDim.x"),
        _LOOP.replace("out[i] = x[i] * 2.0f;", "{ out[i] = x[i]; d = d + 64; }"),
        "int by = gridDim.x * blockDim.x;\nby = by / 2;\n" + _LOOP.replace("gridDim.x * blockDim.x", "by"),
    ],
)
def test_what_may_take_another_turn_stays_a_loop(body: str):
    assert _is_loop(body)
