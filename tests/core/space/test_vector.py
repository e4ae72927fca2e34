"""Evaluation over columns: every row the same as the scalar evaluation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.space.expressions import NAMES, numbers, outcome, trees
from tests.thoroughness import examples
from tunesmith.space import expr_arrays
from tunesmith.space.expr import LIMIT, Expr, Node, parse_expr, unparse

INT64 = st.one_of(numbers(), st.sampled_from([LIMIT + 1, -LIMIT - 1, 2**63 - 1, -(2**63)]))


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, dict[str, np.ndarray | int]]:
    rows = draw(st.integers(0, 6))
    column = st.lists(INT64, min_size=rows, max_size=rows).map(
        lambda values: np.array(values, dtype=np.int64)
    )
    some = draw(st.dictionaries(st.sampled_from(NAMES), st.one_of(column, column, INT64)))
    return rows, {"rows": np.zeros(rows, dtype=np.int64), **some}


@examples(400)
@given(trees(), tables())
def test_every_row_equals_the_scalar_evaluation(
    tree: Node, table: tuple[int, dict[str, np.ndarray | int]]
) -> None:
    rows, columns = table
    expr = Expr(unparse(tree), tree)
    values, undefined = expr_arrays.evaluate_columns(expr, columns)
    holds = expr_arrays.evaluate_truth(expr, columns)
    assert values.shape == undefined.shape == holds.shape == (rows,)
    for row in range(rows):
        scalars = {name: int(c if isinstance(c, int) else c[row]) for name, c in columns.items()}
        expected = outcome(expr, scalars)
        assert (None if undefined[row] else int(values[row])) == expected
        assert bool(holds[row]) == expr.holds(scalars)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BLOCK > 0 and d % BLOCK == 0", [False, True, False]),
        ("BLOCK == 0 or d % BLOCK == 0", [True, True, False]),
        ("d % BLOCK == 0", [False, True, False]),
        ("not d % BLOCK", [False, True, False]),
        ("(d // BLOCK if BLOCK else 1) > 0", [True, True, True]),
        ("d * d * d * d * d > 0", [True, True, True]),
    ],
)
def test_holds(text: str, expected: list[bool]) -> None:
    block = np.array([0, 4, 3], dtype=np.int64)
    assert expr_arrays.evaluate_truth(parse_expr(text), {"BLOCK": block, "d": 16}).tolist() == expected


def test_products_beyond_64_bits_are_undefined_not_wrapped() -> None:
    a = np.array([2**31, 2**32, 2**33, 3], dtype=np.int64)
    values, undefined = expr_arrays.evaluate_columns(parse_expr("a * a"), {"a": a})
    assert undefined.tolist() == [False, True, True, False]
    assert values.tolist() == [2**62, 0, 0, 9]


def test_columns_broadcast() -> None:
    a = np.arange(3, dtype=np.int64)[:, np.newaxis]
    b = np.arange(4, dtype=np.int64)[np.newaxis, :]
    values, undefined = expr_arrays.evaluate_columns(parse_expr("a * 10 + b"), {"a": a, "b": b})
    assert values.tolist() == [[0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23]]
    assert undefined.shape == (3, 4)
    assert expr_arrays.evaluate_truth(parse_expr("1"), {"a": a, "b": b}).shape == (3, 4)
