"""A sequence that grows without being copied: its versions share one list, and none of them ever changes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar, overload

T = TypeVar("T")
Keys = Callable[[T], Iterable[Hashable]]


class Selection(Sequence[T]):
    """Items of a list that others may have made longer since: those at the first of these places. It equals a
    tuple of the same items."""

    __slots__ = ("_items", "_length", "_places")

    def __init__(self, items: list[T], places: Sequence[int], length: int) -> None:
        self._items = items
        self._places = places
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return (self._items[place] for place in islice(self._places, self._length))

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self._length)))
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._items[self._places[index if index >= 0 else self._length + index]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selection | tuple):
            return NotImplemented
        return len(self) == len(other) and all(a is b or a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class Shared(Generic[T]):
    """What all versions share: the items, and an index of them that follows when it is asked for."""

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
                if key in self._places:
                    self._places[key].append(place)
                else:
                    self._places[key] = [place]
        self._indexed = len(self.items)
        return self._places


class Grown(Selection[T]):
    """One version. Adding to the newest takes constant time; adding to an older one copies it first."""

    __slots__ = ("shared",)

    def __init__(self, items: Iterable[T] = (), keys: Keys[T] = lambda item: ()) -> None:
        self._share(Shared(items, keys))

    def _share(self, shared: Shared[T]) -> None:
        self.shared = shared
        super().__init__(shared.items, range(len(shared.items)), len(shared.items))

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._length)

    def plus(self, *items: T) -> Grown[T]:
        shared = self.shared
        if len(shared.items) != self._length:
            shared = Shared(self, shared.keys)
        shared.items.extend(items)
        new: Grown[T] = Grown.__new__(Grown)
        new._share(shared)
        return new

    def where(self, holds: Callable[[T], bool]) -> Grown[T]:
        """Those of which it is true; the same where it is true of all."""
        found = [item for item in self if holds(item)]
        return self if len(found) == self._length else Grown(found, self.shared.keys)

    def of(self, key: Hashable) -> Selection[T]:
        """The items that have a key, in order."""
        places = self.shared.places.get(key, [])
        return Selection(self._items, places, self._end(places))

    def count(self, key: Hashable, since: int = 0) -> int:
        """How many have a key, from a place on."""
        places = self.shared.places.get(key, [])
        return max(0, self._end(places) - (bisect_left(places, since) if since else 0))

    def last(self, key: Hashable) -> int:
        """The place of the last that has a key; -1 where none has."""
        places = self.shared.places.get(key, [])
        end = self._end(places)
        return places[end - 1] if end else -1

    def _end(self, places: list[int]) -> int:
        """How many of these places this version has."""
        return len(places) if not places or places[-1] < self._length else bisect_left(places, self._length)
