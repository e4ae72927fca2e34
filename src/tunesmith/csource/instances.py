"""A record with its template arguments filled in: what its fields are, and where they lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tunesmith.csource import nodes as c
from tunesmith.csource.specialise import Meaning
from tunesmith.csource.types import byte_size


@dataclass(frozen=True)
class RecordField:
    name: str
    type: c.Type
    count: int = 0  # elements of an array; 0: it is none
    init: c.Expr | None = None  # as the source has it
    inner: Instance | None = None  # the record that it is one of

    @property
    def size(self) -> int | None:
        one = byte_size(self.type.base) if self.inner is None else self.inner.size
        one = 8 if self.type.is_pointer else one
        return None if one is None else one * (self.count or 1)

    @property
    def is_object(self) -> bool:
        """Whether it has fields of its own, and is not just the one that it holds."""
        return self.inner is not None and self.inner.only is None

    @property
    def element(self) -> tuple[str, int] | None:
        """The one type that it is made of, and how many of it."""
        if self.type.is_pointer:
            return None
        one = self.inner.element if self.inner is not None and self.is_object else (self.type.base, 1)
        return None if one is None else (one[0], one[1] * (self.count or 1))


@dataclass(frozen=True)
class Instance:
    """A record for certain template arguments."""

    name: str  # "vec_t<__half, 8>"
    record: c.Record
    fields: tuple[RecordField, ...]
    meaning: Meaning
    constants: Mapping[str, c.Expr]
    has_gaps: bool = False  # by its alignment it is longer than its fields, or may be

    @property
    def only(self) -> RecordField | None:
        """The field that is all of it, where that is a single value."""
        alone = self.fields[0] if len(self.fields) == 1 else None
        if alone is None or alone.count or alone.type.is_pointer or alone.is_object or self.has_gaps:
            return None
        return alone

    @property
    def storage(self) -> RecordField | None:
        """Of a union: the field whose bytes are all of it."""
        if not self.record.is_union:
            return None
        sizes = [field.size for field in self.fields]
        if not sizes or any(size is None for size in sizes):
            return None
        most = max(size or 0 for size in sizes)
        whole = [field for field in self.fields if field.size == most]
        return next((field for field in whole if not field.count), whole[0])

    @property
    def element(self) -> tuple[str, int] | None:
        """The one type that all fields have, and how many of it there are; None where they differ."""
        if self.has_gaps:
            return None
        if self.record.is_union:
            storage = self.storage
            return None if storage is None else (storage.type.base, storage.count or 1)
        parts = [field.element for field in self.fields]
        bases = {part[0] for part in parts if part is not None}
        if len(bases) != 1 or None in parts:
            return None
        return bases.pop(), sum(part[1] for part in parts if part is not None)

    def place(self, name: str) -> tuple[RecordField, int] | None:
        """A field, and how many elements stand before it where all are of one type."""
        before = 0
        for field in self.fields:
            if field.name == name:
                return field, 0 if self.record.is_union else before
            before += field.element[1] if field.element is not None else 1
        return None

    @property
    def size(self) -> int | None:
        storage = self.storage
        if storage is not None:
            return storage.size
        sizes = [field.size for field in self.fields]
        if self.element is None or None in sizes:
            return None  # there may be gaps
        return sum(size or 0 for size in sizes)
