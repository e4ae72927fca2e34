"""The expression language: what it reads, what it refuses, what it means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.space.expressions import NAMES, outcome, trees, values
from tests.thoroughness import examples
from tests.wording import says
from tunesmith.base.errors import BadInput
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (7, 7),
        (-7, -7),
        ("0x10 + 1_000", 1016),
        ("d", 10),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("7 % -3", -2),
        ("2 + 3 * 4 - 1", 13),
        ("(2 + 3) * 4", 20),
        ("10 - 3 - 2", 5),
        ("device.sms * 2", 264),
        ("1 < d <= 10", 1),
        ("1 < d < 10 < 1 // 0", 0),
        ("d in (10, 20)", 1),
        ("d not in [-1, 10]", 0),
        ("5 and d", 1),
        ("0 or d", 1),
        ("not d", 0),
        ("BLOCK > 0 and d % BLOCK == 0", 0),
        ("BLOCK == 0 or d % BLOCK == 0", 1),
        ("d // BLOCK if BLOCK else 3", 3),
        ("min(d, 3, 5) + max(d, 3)", 13),
        ("ceildiv(d, 4)", 3),
        ("ceildiv(-d, 4)", -2),
        ("round_up(d, 4)", 12),
        ("next_pow2(d) + next_pow2(16) + next_pow2(1)", 33),
        ("is_pow2(d) + is_pow2(8) + is_pow2(0) + is_pow2(-4)", 1),
        ("d %\n  4", 2),
        ("  d  ", 10),
    ],
)
def test_value(text: str | int, expected: int) -> None:
    assert parse_expr(text).evaluate({"d": 10, "BLOCK": 0, "device.sms": 132}) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("d // 0", "division by zero"),
        ("d % 0", "division by zero"),
        ("ceildiv(d, 0)", "division by zero"),
        ("round_up(d, 0)", "division by zero"),
        ("next_pow2(d - 10)", "positive"),
        ("VEC + 1", "'VEC' has no value"),
        ("0 * VEC", "'VEC' has no value"),
        ("huge", "2**62"),
        ("4611686018427387904 + 1", "2**62"),
        ("d if d // 0 else 1", "division by zero"),
    ],
)
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
        ("", "empty"),
        ("   ", "empty"),
        ("9**9**9", "'9**9**9' is not allowed"),
        ("a.__class__", "'a.__class__' is not allowed"),
        ("device.__class__", "not allowed"),
        ("device.sms.x", "not allowed"),
        ("device", "alone has no value"),
        ("().x", "not allowed"),
        ("a.b()", "not allowed"),
        ("__import__(a)", "no function '__import__'"),
        ("print(a)", "no function 'print'"),
        ("max(*a, b)", "not allowed"),
        ("max(a, key=b)", "not allowed"),
        ("max(a)", "takes at least 2 arguments, got 1"),
        ("ceildiv(a)", "takes 2 arguments, got 1"),
        ("min", "is a function"),
        ("'a'", "character"),
        ('a == "b"', "character"),
        ("lambda: 1", "character ':'"),
        ("(a := 1)", "character ':'"),
        ("a; b", "character ';'"),
        ("a # b", "character '#'"),
        ("a\x00b", "character '\\x00'"),
        ("dé", "character"),
        ("{1}", "character '{'"),
        ("a[0]", "'a[0]' is not allowed"),
        ("(a, b)", "not allowed"),
        ("[x for x in a]", "not allowed"),
        ("a if b", "near character"),
        ("a +", "at its end"),
        ("a b", "near character"),
        ("a) + (b", "near character"),
        ("1.5", "not an integer"),
        ("1e3", "not an integer"),
        ("1j", "not an integer"),
        ("1if a else 2", "not an integer"),
        ("007", "near character"),
        ("True", "not an integer"),
        ("None", "not an integer"),
        ("...", "not an integer"),
        ("+a", "not allowed"),
        ("a << 2", "not allowed"),
        ("a / 2", "not allowed"),
        ("a is 2", "'is'"),
        ("a in b", "list of integers"),
        ("a in ()", "list of integers"),
        ("a in (3)", "list of integers"),
        ("a in (3, b)", "holds 'b'"),
        ("a in (True, 2)", "not an integer"),
        ("1 < a in (2, 3)", "chain"),
        ("await a", "not allowed"),
        ("yield a", "near character"),
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


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a && b", "write 'and' for '&&'"),
        ("a || b", "write 'or' for '||'"),
        ("!a", "write 'not' for '!'"),
        ("a ? b : c", "write 'a if c else b' for 'c ? a : b'"),
        ("a = 2", "compare with '=='"),
        ("a ** 2", "there is no power; multiply, or use next_pow2"),
        ("a / 2", "divide with '//' (rounds down) or ceildiv(a, b) (rounds up)"),
        ("True", "write 1 for true and 0 for false"),
        ("cieldiv(a, 2)", "did you mean 'ceildiv'?"),
    ],
)
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a*(b+c)", "a * (b + c)"),
        ("(a*b)+c", "a * b + c"),
        ("a-(b-c)", "a - (b - c)"),
        ("(a-b)-c", "a - b - c"),
        ("-(a*b)", "-(a * b)"),
        ("--3", "--3"),
        ("(not a)+1", "(not a) + 1"),
        ("not (a and b)", "not (a and b)"),
        ("(a and b) and c", "(a and b) and c"),
        ("(a < b) < c", "(a < b) < c"),
        ("a in [1]", "a in (1,)"),
        ("(a if b else c) if d else e", "(a if b else c) if d else e"),
        ("a if b else (c if d else e)", "a if b else c if d else e"),
    ],
)
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d % VEC == 0", "8 % VEC == 0"),
        ("d % 4 == 0", "1"),
        ("-d + VEC", "-8 + VEC"),
        ("BLOCK * VEC * 2 < 2 * d", "BLOCK * VEC * 2 < 16"),
        ("d if BAKE else 0", "8 if BAKE else 0"),
        ("VEC if d > 4 else BLOCK", "VEC"),
        ("d > 4 and VEC", "VEC != 0"),
        ("d > 4 and VEC > 1", "VEC > 1"),
        ("d < 4 and VEC", "0"),
        ("d > 4 or VEC", "1"),
        ("VEC > 1 and d < 4 and BLOCK", "VEC > 1 and 0"),
        ("1 < d < VEC", "8 < VEC"),
        ("d // 0 + VEC", "8 // 0 + VEC"),
        ("d in (4, 8)", "1"),
    ],
)
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
