"""What is known of a kernel besides its text: from the host's code, or from a program that ran."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tunesmith.space.expr import is_name


@dataclass(frozen=True)
class KnownWorkload:
    name: str
    sizes: tuple[tuple[str, int], ...]
    weight: float = 1.0
    about: str = ""


@dataclass(frozen=True)
class KnownFacts:
    """By the problem's names for arguments and sizes; expressions are those of problem files."""

    head: str = ""  # the first line of the file, a comment
    notes: tuple[str, ...] = ()  # further ones
    values: Mapping[str, str] = field(default_factory=dict)  # of scalars
    shapes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shapes_from: Mapping[str, str] = field(default_factory=dict)  # who says so
    strides: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    aligned: Mapping[str, int] = field(default_factory=dict)
    nulls: frozenset[str] = frozenset()  # pointers that callers pass as null
    passed: Mapping[str, str] = field(default_factory=dict)  # in the caller's words
    multiples: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # of sizes
    limits_from: Mapping[str, str] = field(default_factory=dict)  # who says so
    requires: tuple[str, ...] = ()
    workloads: tuple[KnownWorkload, ...] = ()
    flags: tuple[str, ...] = ()
    compiler: str = ""
    reference: str | None = ""  # "file.py:function"; "": drafted; None: results are those of the original
    deterministic: bool = True

    def beside(self, name: str) -> str:
        """What callers pass, for the comment beside a FILL."""
        text = self.passed.get(name, "")
        return f"the host passes {text}" if text else ""

    def renamed(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Expressions with what scalars stand for in their place."""
        replaced = {name: value for name, value in self.values.items() if value != name}

        def meaning(match: re.Match[str]) -> str:
            value = replaced.get(match[0])
            if value is None:
                return match[0]
            return value if is_name(value) or value.isdecimal() else f"({value})"

        return tuple(re.sub(r"(?<![.\w])[A-Za-z_]\w*", meaning, text) for text in texts)


NOTHING_KNOWN = KnownFacts()
