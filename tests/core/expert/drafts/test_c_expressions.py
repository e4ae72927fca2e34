"""C expressions of launches in our language: the same value, or none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.thoroughness import examples
from tunesmith.expert.drafts.launches import translate_expr
from tunesmith.space.expr import parse_expr

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
    ours = translate_expr(text, {"n": "n", "m": "m"}, {})
    python = text.replace("/", "//")
    try:
        expected = eval(python, {"n": n, "m": m, "min": min})
    except ZeroDivisionError:
        return
    assert ours is None or parse_expr(ours).evaluate({"n": n, "m": m}) == expected
