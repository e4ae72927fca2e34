"""One of a thing is not said as several are."""

from __future__ import annotations

import pytest

from tunesmith.base.text import format_count


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 rounds"), (1, "1 round"), (1.0, "1 round"), (0.5, "0.5 rounds"), (10**7 + 1, "10000001 rounds")],
)
def test_a_number_and_its_noun(number: float, text: str) -> None:
    assert format_count(number, "round") == text


def test_a_plural_of_its_own() -> None:
    assert [format_count(n, "reply", "replies") for n in (1, 2)] == ["1 reply", "2 replies"]
