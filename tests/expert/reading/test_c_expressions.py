"""C expressions of launches in our language: the same value, or none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thoroughness import examples
from tunesmith.expert.reading.launches import translate
from tunesmith.space.expr import parse

SIZES = {"n": "n", "x.size(0)": "rows", "args.d": "d"}
CONSTANTS = {"BLOCK": "256", "WARPS": "(BLOCK / 32)", "blocks": "(n + BLOCK - 1) / BLOCK", "loop": "loop + 1"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("256", "256"),
        ("256u", "256"),
        ("0x100UL", "256"),
        ("1'024", "1024"),
        ("010", "8"),
        ("BLOCK", "256"),
        ("WARPS * 2", "16"),
        ("1 << 10", "1024"),
        ("n", "n"),
        ("x.size( 0 )", "rows"),
        ("x.size(0) * args.d", "rows * d"),
        ("(n + 255) / 256", "ceildiv(n, 256)"),
        ("(n + BLOCK - 1) / BLOCK", "ceildiv(n, 256)"),
        ("(n - 1 + BLOCK) / BLOCK", "ceildiv(n, 256)"),
        ("((n * 2) + args.d - 1) / args.d", "ceildiv(n * 2, d)"),
        ("blocks", "ceildiv(n, 256)"),
        ("(n + 256) / 256", "(n + 256) // 256"),
        ("(n - 1) / 256 + 1", "(n - 1) // 256 + 1"),
        ("n / 4", "n // 4"),
        ("n >> 2", "n // 4"),
        ("(unsigned)n % 7", "n % 7"),
        ("static_cast<int>(n) + int(args.d)", "n + d"),
        ("std::min(n, 65535)", "min(n, 65535)"),
        ("MAX(1, n)", "max(1, n)"),
        ("at::ceil_div(n, 128)", "ceildiv(n, 128)"),
        ("n > 1024 ? 1024 : n", "1024 if n > 1024 else n"),
        ("n == 1 || !(args.d > 3)", "n == 1 or not d > 3"),
        ("BLOCK * sizeof(float4)", "4096"),
        ("2 * prop.multiProcessorCount", "2 * device.sms"),
        ("-n", "-n"),
        ("m", None),
        ("n & 3", None),
        ("n << n", None),
        ("(float)n / 4", None),
        ("ceil(n / 256.0)", None),
        ("next_pow2(n)", None),
        ("sizeof(T)", None),
        ("1 / 0", None),
        ("loop", None),
        ("n, 2", None),
        ("n); evil(", None),
        ("", None),
        ("(" * 500 + "n" + ")" * 500, None),
        ("99999999999999999999", None),
    ],
)
def test_translate(text: str, expected: str | None) -> None:
    assert translate(text, SIZES, CONSTANTS) == expected


NUMBERS = st.integers(1, 600)
TREES = st.recursive(
    st.one_of(st.just("n"), st.just("m"), NUMBERS.map(str)),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "*", "-", "/"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(inner, inner).map(lambda t: f"min({t[0]}, {t[1]})"),
        inner.flatmap(lambda i: NUMBERS.map(lambda c: f"(({i} + {c} - 1) / {c})")),
    ),
    max_leaves=8,
)


@examples()
@given(text=TREES, n=NUMBERS, m=NUMBERS)
def test_the_value_stays_the_same(text: str, n: int, m: int) -> None:
    ours = translate(text, {"n": "n", "m": "m"}, {})
    python = text.replace("/", "//")
    try:
        expected = eval(python, {"n": n, "m": m, "min": min})
    except ZeroDivisionError:
        return
    assert ours is None or parse(ours).evaluate({"n": n, "m": m}) == expected
