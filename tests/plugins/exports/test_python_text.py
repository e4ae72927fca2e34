"""Expressions as Python: whatever has a value here has the same there, and where it has none it has none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.space.expressions import NAMES, trees
from tunesmith.base.errors import BadInput
from tunesmith.deliver.expr_text import HELPERS, python_text
from tunesmith.space.expr import LIMIT, Expr, Node, Undefined, parse_expr, unparse

FUNCTIONS: dict[str, Any] = {}
exec(HELPERS, FUNCTIONS)


def there(text: str, values: dict[str, int]) -> int | None:
    try:
        return int(eval(text, dict(FUNCTIONS), {"v": values}))
    except (ArithmeticError, ValueError):
        return None


def here(expr: Expr, values: dict[str, int]) -> int | None:
    try:
        return expr.evaluate(values)
    except Undefined:
        return None


@given(trees(), st.fixed_dictionaries({name: st.integers(-20, 300) for name in NAMES}))
def test_every_expression_means_the_same(tree: Node, values: dict[str, int]) -> None:
    expr = Expr(unparse(tree), tree)
    try:
        text = python_text(expr, dict.fromkeys(NAMES, 300))
    except BadInput:
        return  # it may grow too large, which is tried below
    assert there(text, values) == here(expr, values)


@pytest.mark.parametrize(
    ("text", "values", "value"),
    [
        ("(a > 1 and b) * 3", {"a": 2, "b": 5}, 3),
        ("(a or b) + (not a)", {"a": 0, "b": 7}, 2),
        ("1 if a and b else 2", {"a": 3, "b": 0}, 2),
        ("a // b", {"a": 3, "b": 0}, None),
        ("b == 0 or a % b == 0", {"a": 3, "b": 0}, 1),
        ("next_pow2(a)", {"a": 0, "b": 0}, None),
        ("-a - -3 - (b - 1)", {"a": -2, "b": 4}, 2),
        ("1 < a < b != 4", {"a": 2, "b": 4}, 0),
        ("a in (-2,)", {"a": -2, "b": 0}, 1),
    ],
)
def test_some_of_them_by_hand(text: str, values: dict[str, int], value: int | None) -> None:
    assert here(parse_expr(text), values) == value
    assert there(python_text(parse_expr(text), {"a": 9, "b": 9}), values) == value


def test_what_may_grow_beyond_any_expression_is_refused() -> None:
    for text in ("a * a", "a + a", "next_pow2(a)", "round_up(a, a)", "(a * a) // a"):
        with pytest.raises(BadInput, match="may exceed"):
            python_text(parse_expr(text), {"a": LIMIT})
        assert python_text(parse_expr(text), {"a": 1 << 30})
