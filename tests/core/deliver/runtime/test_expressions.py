"""The runtime's expressions are Tunesmith's: the same value, or none in both; nothing else is taken."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.core.space.expressions import trees, values
from tunesmith.deliver.runtime.expressions import Expression, NotAnExpression, NoValue, solved
from tunesmith.space.expr import Undefined, parse_expr, unparse

NAMES = ("a", "b", "c", "s")


def own_value(text: str, known: dict[str, int]) -> int | None:
    try:
        return parse_expr(text).evaluate(known)
    except Undefined:
        return None


def shipped_value(text: str, known: dict[str, int]) -> int | None:
    try:
        found = Expression(text, NAMES).evaluate(known)
        assert type(found) is int
        return found
    except NoValue:
        return None


@given(trees(), values())
def test_the_value_is_the_evaluators_or_both_have_none(tree, known):
    text = unparse(tree).replace("device.sms", "s")
    sizes = {name.replace("device.sms", "s"): value for name, value in known.items()}
    assert shipped_value(text, sizes) == own_value(text, sizes)
    assert Expression(text, NAMES).holds(sizes) == parse_expr(text).holds(sizes)


_WORDS = st.sampled_from(
    ["d", "n", "(", ")", "min", ",", "and", "not", "if", "else", "in", "2", "0b1", "//", "-", "<", " "]
)


@given(st.text(max_size=20) | st.lists(_WORDS, max_size=12).map(" ".join))
@example("d and d")
@example("2 ** d")
def test_a_text_is_taken_only_where_tunesmith_takes_it(text):
    try:
        Expression(text, ("d", "n"))
    except NotAnExpression:
        return
    parse_expr(text)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')", "d.__class__", "d[0]", "lambda: 0", "[d for d in (1,)]", "d if d", "'a'", "1.5",
        "d ** 2", "d << 1", "~d", "+d", "d / 2", "print(d)", "min(d)", "min(*d)", "max(d, key=d)", "d is d",
        "x", "(d, d)", "d in d", "True", "None", "", " ", "(d := 1)", "f'{d}'", "d @ d", "await d", "...",
        "ceildiv(d)", "1 < d in (1,)", "d in ()", "d in (1.0,)", "9" * 5000, "-" * 400 + "d", "d\0",
    ],
)  # fmt: skip
def test_what_is_not_in_the_language_is_refused(text):
    with pytest.raises(NotAnExpression):
        Expression(text, ("d",))


@pytest.mark.parametrize(
    "text", ["d // 0", "d % (d - d)", "ceildiv(1, 0)", "next_pow2(0)", "4611686018427387904 + d"]
)
def test_a_condition_without_a_value_does_not_hold(text):
    assert not Expression(text, ("d",)).holds({"d": 1})
    with pytest.raises(NoValue):
        Expression(text, ("d",)).evaluate({"d": 1})


def test_a_name_without_a_value_is_no_value():
    with pytest.raises(NoValue, match="'n' has no value"):
        Expression("n + 1", ("n",)).evaluate({})


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [
        ("2 * d", 8, 4), ("d * 2", 8, 4), ("d + 3", 8, 5), ("3 + d", 8, 5), ("d - 1", 8, 9), ("10 - d", 8, 2),
        ("-d", -8, 8), ("n * d", 12, 4), ("2 * (d + 1)", 8, 3), ("2 * n * d", 24, 4),
    ],
)  # fmt: skip
def test_an_expression_is_turned_round(text, length, expected):
    assert solved(Expression(text, ("d", "n")), {"n": 3}, length) == ("d", expected)


@pytest.mark.parametrize("text", ["d // 2", "ceildiv(d, 2)", "d % 4", "d * d", "min(d, 4)", "0 * d", "m + d"])
def test_what_has_no_single_answer_is_not(text):
    assert solved(Expression(text, ("d", "n", "m")), {"n": 3}, 8) is None
