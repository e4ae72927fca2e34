"""What follows from a contract for expressions over its sizes."""

import random

import pytest

from tunesmith.problem.domain import always_holds, size_fact
from tunesmith.problem.problem import Contract, SizeRule
from tunesmith.space.expr import parse_expr

CONTRACT = Contract((
    SizeRule("n", 1, 1 << 20),
    SizeRule("d", 8, 4096, 8),
    SizeRule("h", 64, 256, one_of=(64, 128, 256)),
    SizeRule("huge", 1, 1 << 61),
))  # fmt: skip


@pytest.mark.parametrize("text", [
    "n % 1 == 0", "n // 2048 % 1 == 0", "ceildiv(n, 4) % 1 == 0", "d % 4 == 0", "d // 2 % 4 == 0",
    "n * d % 8 == 0", "(d + h) % 8 == 0", "min(d, 16) % 8 == 0", "h % 64 == 0", "ceildiv(n, 16) <= 65536",
    "n * d <= 4294967296", "max(n, 7) <= 1048576",
])  # fmt: skip
def test_what_holds_at_every_size_is_known(text: str) -> None:
    assert always_holds(parse_expr(text).tree, CONTRACT)


@pytest.mark.parametrize("text", [
    "n % 2 == 0", "n // 2048 % 2 == 0", "d // 3 % 4 == 0", "ceildiv(d, 16) % 2 == 0", "d % n == 0",
    "n // d % 1 == 0", "(n - d) % 1 == 0", "huge * huge % 1 == 0",
    "n <= 1048575", "other % 1 == 0", "n % 1 == 1",
    "h % 128 == 0",
])  # fmt: skip
def test_what_may_not_hold_or_have_no_value_is_not(text: str) -> None:
    assert not always_holds(parse_expr(text).tree, CONTRACT)


def test_facts_are_true_of_sizes_drawn_at_random() -> None:
    draw = random.Random(1)
    texts = ["n // 3", "d * h // 16", "ceildiv(d, 16) + n", "min(d, h) * 4", "max(n, d) // 8 * 2", "d + 24"]
    for text in texts:
        expr = parse_expr(text)
        fact = size_fact(expr.tree, CONTRACT)
        assert fact is not None
        for _ in range(200):
            h = draw.choice((64, 128, 256))
            sizes = {"n": draw.randint(1, 1 << 20), "d": 8 * draw.randint(1, 512), "h": h}
            value = expr.evaluate(sizes)
            assert 0 <= value <= fact.most
            assert value % (fact.divisor or 1) == 0
