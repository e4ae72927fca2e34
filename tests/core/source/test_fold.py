from __future__ import annotations

import operator

from hypothesis import given
from hypothesis import strategies as st

from tunesmith.source.fold import fold_expr
from tunesmith.source.tree import Binary, Number
from tunesmith.source.types import integer_literal

_PLAIN = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<": operator.lt, ">=": operator.ge, "==": operator.eq,
}  # fmt: skip


@given(
    st.integers(-(2**31), 2**31 - 1),
    st.sampled_from([*_PLAIN, "/", "%"]),
    st.integers(-(2**31), 2**31 - 1),
)
def test_integers_agree_with_c(a: int, op: str, b: int):
    folded = fold_expr(Binary(op, integer_literal(a), integer_literal(b)))

    if isinstance(folded, Number):
        assert folded.value == _c(a, op, b)
        assert -(2**31) <= folded.value < 2**31
    else:
        expected = None if op in "/%" and b == 0 else _c(a, op, b)
        assert expected is None or not -(2**31) <= expected < 2**31


def _c(a: int, op: str, b: int) -> int:
    if op in "/%":
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if op == "/" else a - b * quotient
    return int(_PLAIN[op](a, b))
