from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.csource.reading import expression_of, statements_of
from tunesmith.csource.fold import fold, fold_statements, int_value
from tunesmith.csource.nodes import Binary, Number
from tunesmith.csource.printing import print_expr, print_statements
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import integer


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("2 + 3 * 4", "14"),
        ("-7 / 2", "-3"),
        ("-7 % 2", "-1"),
        ("7 / 0", "7 / 0"),
        ("1 << 4", "16"),
        ("~0", "-1"),
        ("!3", "0"),
        ("x * 1", "x"),
        ("1 * x", "x"),
        ("x + 0", "x"),
        ("0 + x", "x"),
        ("x - 0", "x"),
        ("x / 1", "x"),
        ("x << 0", "x"),
        ("0 * x", "0"),
        ("0 * f(x)", "0 * f(x)"),
        ("0 * p[i]", "0 * p[i]"),
        ("x % 1", "0"),
        ("x * 1.0f", "x * 1.0f"),
        ("x + 0.0f", "x + 0.0f"),
        ("1.0f / 3.0f", "1.0f / 3.0f"),
        ("x * 1u", "x * 1u"),
        ("n == 4 ? a : b", "a"),
        ("2 < 1 ? a : b", "b"),
        ("n * x", "4 * x"),
        ("min(3, 5)", "3"),
        ("std::max(n, 5)", "5"),
        ("sizeof(uint4) / sizeof(__half)", "8"),
        ("sizeof(float *)", "8"),
        ("sizeof(Unknown_t)", "sizeof(Unknown_t)"),
        ("(int)5", "5"),
        ("(long long)5 * x", "(long long)5 * x"),
        ("(unsigned char)300", "(unsigned char)44"),
        ("2147483647 + 1", "2147483647 + 1"),
        ("4294967295u + 1u", "0u"),
        ("3u - 5u", "4294967294u"),
        ("0 && f(x)", "0"),
        ("1 && f(x)", "f(x)"),
        ("1 || f(x)", "1"),
        ("f(x) && 0", "f(x) && 0"),
        ("0xff & 0x0f", "15"),
        ("5LL * 2", "10LL"),
    ],
)
def test_folding_computes_as_c_does(text: str, result: str):
    assert print_expr(fold(substitute(expression_of(text), {"n": integer(4)}))) == result


@given(
    st.integers(-(2**31), 2**31 - 1),
    st.sampled_from(["+", "-", "*", "/", "%", "&", "|", "^", "<", ">=", "=="]),
    st.integers(-(2**31), 2**31 - 1),
)
def test_integers_agree_with_c(a: int, op: str, b: int):
    folded = fold(Binary(op, integer(a), integer(b)))

    if isinstance(folded, Number):
        assert folded.value == _c(a, op, b)
        assert -(2**31) <= folded.value < 2**31
    else:
        expected = None if op in "/%" and b == 0 else _c(a, op, b)
        assert expected is None or not -(2**31) <= expected < 2**31


def _c(a: int, op: str, b: int) -> int:
    match op:
        case "/" | "%":
            quotient = abs(a) // abs(b)
            quotient = quotient if (a < 0) == (b < 0) else -quotient
            return quotient if op == "/" else a - quotient * b
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "&":
            return a & b
        case "|":
            return a | b
        case "^":
            return a ^ b
        case "<":
            return int(a < b)
        case ">=":
            return int(a >= b)
        case _:
            return int(a == b)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(n + 31) / 32 * 32", 128),
        ("(long long)n * 2", 200),
        ("(unsigned char)(n + 200)", 44),
        ("n > 3 ? n : 0", 100),
        ("max(n, 7) + sizeof(float)", 104),
        ("m + 1", None),
        ("f(n)", None),
        ("n / 0", None),
    ],
)
def test_the_integer_an_expression_comes_to(text: str, value: int | None):
    assert int_value(expression_of(text), {"n": 100}) == value


def test_branches_never_taken_are_left_out():
    stmts = statements_of("""
    if (n == 4) { int x = 1; f(x); } else g();
    if (n == 5) g();
    while (n == 5) g();
    for (int i = 0; n < 4; i++) g();
    for (int i = 0; i < n; i++) g();
    """)

    assert print_statements(fold_statements(substitute(stmts, {"n": integer(4)}))) == (
        "{\n    int x = 1;\n    f(x);\n}\nfor (int i = 0; i < 4; i++)\n    g();\n"
    )
