"""A sequence that grows without being copied, with an index: what a state is made of."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar, overload

T = TypeVar("T")
Keys = Callable[[T], Iterable[Hashable]]


class Shared(Generic[T]):
    """What all versions of a sequence share: the items, and an index of them that follows when asked for."""

    def __init__(self, items: Iterable[T], keys: Keys[T]) -> None:
        self.items = list(items)
        self.keys = keys
        self._places: dict[Hashable, list[int]] = {}
        self._indexed = 0

    @property
    def places(self) -> dict[Hashable, list[int]]:
        """By key, where the items are that have it."""
        for place in range(self._indexed, len(self.items)):
            for key in self.keys(self.items[place]):
                self._places.setdefault(key, []).append(place)
        self._indexed = len(self.items)
        return self._places


class Grown(Sequence[T]):
    """One version of a sequence that grows without being copied. It never changes, and equals a tuple of its
    items. Adding to the newest takes constant time; adding to an older one copies it first."""

    __slots__ = ("_length", "shared")

    def __init__(self, items: Iterable[T] | Shared[T] = (), keys: Keys[T] = lambda item: ()) -> None:
        self.shared = items if isinstance(items, Shared) else Shared(items, keys)
        self._length = len(self.shared.items)  # others may make the list longer

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return islice(self.shared.items, self._length)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        places = range(self._length)[index]
        if isinstance(places, range):
            return tuple(self.shared.items[place] for place in places)
        return self.shared.items[places]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grown | tuple):
            return NotImplemented
        return len(self) == len(other) and all(a is b or a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def plus(self, *items: T) -> Grown[T]:
        shared = self.shared
        if len(shared.items) != self._length:
            shared = Shared(self, shared.keys)
        shared.items.extend(items)
        return Grown(shared)

    def where(self, holds: Callable[[T], bool]) -> Grown[T]:
        """Those of which it is true; the same where it is true of all."""
        found = [item for item in self if holds(item)]
        return self if len(found) == self._length else Grown(found, self.shared.keys)

    def of(self, key: Hashable) -> tuple[T, ...]:
        """The items that have a key, in order."""
        return tuple(self.shared.items[place] for place in self._places(key))

    def count(self, key: Hashable, since: int = 0) -> int:
        """How many have a key, from a place on."""
        places = self._places(key)
        return len(places) - bisect_left(places, since)

    def last(self, key: Hashable) -> int:
        """The place of the last that has a key; -1 where none has."""
        places = self._places(key)
        return places[-1] if places else -1

    def _places(self, key: Hashable) -> list[int]:
        """Where the items with a key are, as far as this version has them."""
        places = self.shared.places.get(key, [])
        is_newest = not places or places[-1] < self._length
        return places if is_newest else places[: bisect_left(places, self._length)]


def keyed(keys: Keys[T]) -> Callable[[], Grown[T]]:
    """Empty, with an index by these keys."""
    return lambda: Grown(keys=keys)
