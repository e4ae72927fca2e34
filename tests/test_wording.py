from __future__ import annotations

import pytest

from tests.wording import says


def test_parts_stand_in_one_line_in_their_order_as_whole_words() -> None:
    says("first\nuses 300000 bytes at n=8, (line 7)", "300000 bytes", "n=8", "(line 7)")
    says(["one", "two of 2.5×"], "two", "2.5×")


@pytest.mark.parametrize("parts", [("8",), ("5",), ("2",), ("b", "a"), ("a", "c"), ("",)])
def test_what_is_not_said_is_noticed(parts: tuple[str, ...]) -> None:
    with pytest.raises(AssertionError):
        says("a 18 b 2.5\nc", *parts)
