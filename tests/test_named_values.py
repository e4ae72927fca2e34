"""Names with their values."""

from __future__ import annotations

from tunesmith.base.text import named_values


def test_pairs_and_tables_read_alike() -> None:
    pairs = (("rows", 64), ("d", -1))
    assert named_values(pairs) == named_values(dict(pairs)) == "rows=64 d=-1"
    assert named_values(pairs, ", ") == "rows=64, d=-1"
    assert named_values({}) == ""
