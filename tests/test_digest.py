"""Digests and seeds: equal for equal parts, different otherwise, the same in every process."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from tunesmith.base.text import digest_of, seed_of

parts = st.lists(st.binary(max_size=4), max_size=4)


@given(parts, parts)
def test_equal_only_for_equal_parts(one: list[bytes], other: list[bytes]) -> None:
    assert (digest_of(*one) == digest_of(*other)) == (one == other)


def test_where_a_part_ends_matters() -> None:
    assert len({digest_of("ab", "c"), digest_of("a", "bc"), digest_of("abc"), digest_of("abc", "")}) == 4


@given(st.text())
def test_text_is_its_utf8(text: str) -> None:
    assert digest_of(text) == digest_of(text.encode())


def test_the_same_in_every_version() -> None:
    # Run folders name their files by it, and a run that is resumed draws what it would have drawn.
    assert digest_of("abc") == hashlib.sha256(b"\3\0\0\0\0\0\0\0abc").hexdigest()
    assert seed_of(0, "ask") == int(digest_of("0", "'ask'")[:15], 16)


@given(st.lists(st.integers() | st.text(max_size=3), max_size=3))
def test_seeds_fit_a_signed_64_bit_integer(parts: list[int | str]) -> None:
    assert 0 <= seed_of(*parts) < 2**60
    assert seed_of(*parts) == seed_of(*parts)


def test_a_number_is_not_its_text() -> None:
    assert seed_of(1) != seed_of("1")
