"""The expression language: what it reads, what it refuses, what it means, row by row and alone."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.space.expressions import NAMES, numbers, outcome, trees, values
from tests.thoroughness import examples
from tests.wording import says
from tunesmith.base.errors import BadInput
from tunesmith.space import expr_arrays
from tunesmith.space.expr import (
    LIMIT,
    MAX_LENGTH,
    MAX_WORDS,
    Expr,
    ExprError,
    Neg,
    Node,
    Num,
    Undefined,
    Variable,
    is_name,
    parse_expr,
    unparse,
)

TABLES = tomllib.loads(Path(__file__).with_name("expressions.toml").read_text("utf-8"))


@pytest.mark.parametrize(("text", "expected"), TABLES["value"])
def test_value(text: str | int, expected: int) -> None:
    assert parse_expr(text).evaluate({"d": 10, "BLOCK": 0, "device.sms": 132}) == expected


@pytest.mark.parametrize(("text", "reason"), TABLES["undefined"])
def test_undefined(text: str, reason: str) -> None:
    expr = parse_expr(text)
    with pytest.raises(Undefined) as caught:
        expr.evaluate({"d": 10, "huge": LIMIT + 1})
    assert reason in str(caught.value)
    assert not expr.holds({"d": 10, "huge": LIMIT + 1})


def test_products_do_not_blow_up() -> None:
    with pytest.raises(Undefined):
        parse_expr(" * ".join(["d"] * 90)).evaluate({"d": LIMIT})


@pytest.mark.parametrize(
    ("text", "part"),
    [
        *TABLES["refused"],
        ("9" * 30, "2**62"),
        ("9" * 5000, "2**62"),
        ("a" * (MAX_LENGTH + 1), "at most"),
        ("+".join(["a"] * (MAX_WORDS + 1)), "names and numbers"),
        ("+".join(["a"] * 200), "deep"),
        ("(" * 5000 + "a" + ")" * 5000, "deep"),
        ("-" * 5000 + "a", "deep"),
        ("not " * 400 + "a", "deep"),
        ("**".join(["a"] * 400), "not allowed"),
        ("min(1, " * 150 + "a" + ")" * 150, "deep"),
        ("a" + "[a]" * 400, "not allowed"),
        ("a" + ".a" * 400, "not allowed"),
        ("a if a else " * 120 + "a", "deep"),
    ],
)
def test_refused(text: str, part: str) -> None:
    with pytest.raises(ExprError) as caught:
        parse_expr(text)
    assert part in caught.value.message
    assert caught.value.hint
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", [True, 1.5, None, [1], LIMIT + 1])
def test_refused_values(value: object) -> None:
    with pytest.raises(ExprError):
        parse_expr(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "hint"), TABLES["hint_for_habits_from_elsewhere"])
def test_hint_for_habits_from_elsewhere(text: str, hint: str) -> None:
    with pytest.raises(ExprError) as caught:
        parse_expr(text)
    assert caught.value.hint == hint


def test_unknown_name() -> None:
    with pytest.raises(BadInput) as caught:
        parse_expr("dd % VEC", names=["d", "VEC", "device.sms"])
    says(caught.value.message, "unknown name 'dd'", '"dd % VEC"', "VEC, d, device.sms")
    assert caught.value.hint == "did you mean 'd'?"
    with pytest.raises(BadInput) as caught:
        parse_expr("vec % 2", names=["VEC", "VECTOR"])
    assert caught.value.hint == "did you mean 'VEC'?"
    with pytest.raises(BadInput) as caught:
        parse_expr("device.smss", names=["device.sms"])
    assert caught.value.hint == "did you mean 'device.sms'?"
    with pytest.raises(BadInput) as caught:
        parse_expr("true", names=["true_size"])
    says(caught.value.hint, "1 for true", "0 for false")
    assert parse_expr("device.sms % VEC", names=["device.sms", "VEC"]).names == {"device.sms", "VEC"}


@pytest.mark.parametrize("name", ["d", "BLOCK_M", "_x", "elements", "device_x"])
def test_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a.b", "and", "min", "device", "é", "a b", "a\n"])
def test_no_names(name: str) -> None:
    assert not is_name(name)


@pytest.mark.parametrize(("text", "expected"), TABLES["unparse"])
def test_unparse(text: str, expected: str) -> None:
    assert unparse(parse_expr(text).tree) == expected


@examples()
@given(trees())
def test_unparse_reads_back(tree: Node) -> None:
    assert parse_expr(unparse(tree)).tree == tree


@examples()
@given(trees(), values(), st.sets(st.sampled_from(NAMES)))
def test_bind_changes_no_value(tree: Node, given_values: dict[str, int], later: set[str]) -> None:
    expr = Expr(unparse(tree), tree)
    first = {name: value for name, value in given_values.items() if name not in later}
    rest = {name: value for name, value in given_values.items() if name in later}
    bound = expr.bind(first)
    assert outcome(bound, rest) == outcome(expr, given_values)
    assert bound.names <= expr.names
    assert parse_expr(bound.text) == bound


@pytest.mark.parametrize(("text", "expected"), TABLES["bind"])
def test_bind(text: str, expected: str) -> None:
    assert parse_expr(text).bind({"d": 8}).text == expected


def test_bind_without_effect_keeps_the_text() -> None:
    expr = parse_expr("a+1")
    assert expr.bind({"b": 1}) is expr


def test_bound_text_of_the_longest_expression_reads_back() -> None:
    text = "max(" + ",".join(f"n{i}" for i in range(MAX_WORDS - 2)) + ",-z)"
    bound = parse_expr(text).bind({f"n{i}": -LIMIT + i for i in range(MAX_WORDS - 2)})
    assert parse_expr(bound.text) == bound


def test_trees_compare_by_value() -> None:
    assert parse_expr("-3").tree == Num(-3)
    assert parse_expr("- a").tree == Neg(Variable("a"))
    assert hash(parse_expr("a + 1")) == hash(parse_expr("a + 1"))


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
