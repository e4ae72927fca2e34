"""Index arithmetic: coefficients, strides, multiples."""

from __future__ import annotations

import pytest

from tunesmith.csource.parse import read_expression
from tunesmith.csource.printing import print_expr
from tunesmith.expert.model.affine import (
    affine,
    coefficient_of,
    conditions_for_multiple,
    same_value,
    simplified,
    stride,
)


@pytest.mark.parametrize(
    ("text", "coefficient", "rest"),
    [
        ("token * d + i", "1", "d * token"),
        ("(token * d + i) * 4 + 3", "4", "4 * d * token + 3"),
        ("(long long)i * d - i", "d - 1", "0"),
        ("base + (i << 3)", "8", "base"),
        ("7", "0", "7"),
    ],
)
def test_affine(text: str, coefficient: str, rest: str) -> None:
    found = affine(read_expression(text), "i")
    assert found is not None
    assert (print_expr(found[0]), print_expr(found[1])) == (coefficient, rest)


@pytest.mark.parametrize("text", ["i * i", "i / 2", "table[i]", "i % d + i"])
def test_not_affine(text: str) -> None:
    assert affine(read_expression(text), "i") is None


def test_coefficient_may_be_negative() -> None:
    assert coefficient_of(read_expression("d - 2 * i"), "i") == -2


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("(a + b) * c", "b * c + a * c"),
        ("i / h * h + i % h", "i"),
        ("(i / p / h * h + i / p % h) * 8", "i / p * 8"),
        ("(4 * i + 8) / 4", "i + 2"),
        ("x & 31", "x % 32"),
    ],
)
def test_same_value(left: str, right: str) -> None:
    assert same_value(read_expression(left), read_expression(right))


def test_simplified_keeps_what_it_cannot_add() -> None:
    assert print_expr(simplified(read_expression("a / b * 2 + a / b"))) == "3 * (a / b)"


@pytest.mark.parametrize(
    ("text", "step", "within"),
    [
        ("row * d + i", 1, ()),
        ("4 * i + k", 4, ()),
        ("i / d * 2 * d + i % d", 1, ("d",)),
        ("i / (d / 8) % heads", 0, ("d / 8",)),
        ("i >> 5", 0, ("32",)),
        ("(i + row) % 16", 1, ("16", "row")),
        ("(i % 8 - row) & 15", 1, ("8", "16", "-row")),
        ("(i / d % 5 + (i & 7)) & 15", 1, ("d", "8", "16", "1")),  # a stretch begins anywhere
        ("(i / d * 2 * d + i % d) % m", 1, ("d", "m", "2 * d")),
        ("row * d", 0, ()),
        ("i / c / d * d + i % d", 1, ("c * d", "d")),
        ("(i >> 3) / 4", 0, ("32",)),
    ],
)
def test_stride(text: str, step: int, within: tuple[str, ...]) -> None:
    found = stride(read_expression(text), "i")
    assert found is not None
    assert (found.step, tuple(map(print_expr, found.within))) == (step, within)


@pytest.mark.parametrize("text", ["i * d", "i * i", "i % d * e", "table[i]"])
def test_no_stride(text: str) -> None:
    assert stride(read_expression(text), "i") is None


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("token * d + d", ("d",)),
        ("token * 2 * d", ("2 * d",)),
        ("8 * token + 16", ("8", "16")),
        ("(token * heads + head) * dim", ("heads * dim", "dim")),
    ],
)
def test_conditions_for_multiple(text: str, conditions: tuple[str, ...]) -> None:
    found = conditions_for_multiple(read_expression(text), {"d", "dim", "heads"})
    assert found is not None
    assert {print_expr(expr) for expr in found} == {
        print_expr(simplified(read_expression(c))) for c in conditions
    }


def test_no_conditions_where_a_term_may_be_anything() -> None:
    assert conditions_for_multiple(read_expression("token * d + token"), {"d"}) is None
