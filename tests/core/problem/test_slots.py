"""Inputs that no launch has seen: stretches of an array that have changed places."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.problem.test_draws import buffer
from tunesmith.problem.inputs import LONGEST, SWAPS, SlotPlace, slot_items, swap_moves

SIZES = (2, 3, 17, 100, 4096, 50_000, 2_500_000)


@pytest.mark.parametrize("count", SIZES)
def test_stretches_change_places_in_pairs_and_go_back(count: int) -> None:
    b = buffer("float32", count)
    before = np.arange(count)
    for seed in range(1, 20):
        after = before.copy()
        for to, source, length in swap_moves(b, seed):
            assert 0 <= to <= count - length
            assert length <= LONGEST
            after[to : to + length] = before[source : source + length]
        assert np.array_equal(np.sort(after), before)
        assert 2 <= np.count_nonzero(after != before) <= max(2 * SWAPS, count / 8)
        for to, source, length in swap_moves(b, seed, back=True):
            after[to : to + length] = before[source : source + length]
        assert np.array_equal(after, before)


def test_nothing_moves_without_a_seed_or_where_there_is_one_element() -> None:
    assert swap_moves(buffer("float32", 100), 0) == ()
    assert swap_moves(buffer("float32", 1), 5) == ()


def test_a_long_row_changes_by_more_than_a_tolerance() -> None:
    """What remembers the scale of a row by a sample of it is off by more than most tolerances allow."""
    b, d = buffer("float32", 16 * 8192), 8192
    place = SlotPlace(0, 128)
    plain = slot_items(b, "normal", 1, place).astype(np.float64).reshape(16, d)
    for seed in range(1, 20):
        items = slot_items(b, "normal", 1, SlotPlace(0, 128, seed)).astype(np.float64).reshape(16, d)
        change = np.mean(items**2, axis=1) / np.mean(plain**2, axis=1) - 1
        assert np.abs(change / 2).max() > 1e-3


@pytest.mark.parametrize(("first", "count"), [(0, 10), (1000, 1), (4000, 96), (700, 2000)])
def test_a_part_is_the_part_of_the_whole(first: int, count: int) -> None:
    b = buffer("float32", 4096)
    for seed in range(20):
        place = SlotPlace(3, 128, seed)
        whole = slot_items(b, "normal", 1, place)
        assert np.array_equal(slot_items(b, "normal", 1, place, first, count), whole[first : first + count])
