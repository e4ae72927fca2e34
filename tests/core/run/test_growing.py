"""Sequences that grow: versions share their items, and none of them changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunesmith.run.state import IndexedLog


def by_rest(number: int) -> tuple[str, ...]:
    return ("even" if number % 2 == 0 else "odd", f"rest {number % 3}")


@given(st.lists(st.tuples(st.integers(0, 100), st.lists(st.integers(0, 20), max_size=4)), max_size=30))
def test_every_version_is_the_tuple_it_was(steps: list[tuple[int, list[int]]]) -> None:
    """Wherever they branch off, and whatever was looked up in between."""
    versions: list[tuple[IndexedLog[int], tuple[int, ...]]] = [(IndexedLog(keys=by_rest), ())]
    for place, items in steps:
        grown, plain = versions[place % len(versions)]
        assert grown.count("odd") == sum(n % 2 for n in plain)
        versions.append((grown.plus(*items), (*plain, *items)))
    for grown, plain in versions:
        assert grown == plain
        assert list(grown) == list(plain)
        assert hash(grown) == hash(plain)
        for key in ("even", "odd", "rest 0", "rest 2", "no such key"):
            places = [i for i, n in enumerate(plain) if key in by_rest(n)]
            assert grown.of(key) == tuple(plain[i] for i in places)
            assert grown.last(key) == (places[-1] if places else -1)
            for since in range(len(plain) + 2):
                assert grown.count(key, since) == sum(i >= since for i in places)
        assert grown.where(lambda n: n > 9) == tuple(n for n in plain if n > 9)
        assert grown[1:-1] == plain[1:-1]
