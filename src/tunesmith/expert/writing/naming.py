"""Names and words of a written kernel: what every part of the writer needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields

from tunesmith.csource.lex import without_comments
from tunesmith.csource.nodes import Number
from tunesmith.csource.walk import fresh_name, numbered
from tunesmith.expert.model.kernel import KernelModel, Schedule


class Unwritable(Exception):
    """Why a draft cannot be written as a template, in words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def wide(language: str) -> str:
    """A 64-bit integer."""
    return "long" if language == "opencl" else "long long"


# -- names for what the writer adds, none of which the source uses; and the macros that a schedule declares


_WORD = re.compile(r"[A-Za-z_]\w*")
Pairs = Iterable[tuple[str, str]]


class Names:
    """Fresh identifiers: the word asked for, or the same with a number."""

    def __init__(self, texts: Iterable[str], taken: Iterable[str] = ()) -> None:
        self._taken = {*taken, *words_of(texts)}

    def fresh(self, want: str) -> str:
        return fresh_name(want, self._taken)


def words_of(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word for text in texts for word in _WORD.findall(without_comments(text)))


def grouped(text: str) -> str:
    """As a term or a factor."""
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def distinct(have: Pairs, more: Pairs) -> tuple[tuple[str, str], ...]:
    """Conditions by name; a name that stands for something else already gets a number."""
    found = dict(have)
    for name, text in more:
        if text not in found.values():
            found[numbered(name, found)] = text
    return tuple(found.items())


# What is done where a schedule has no choice of a role; and what its macro is called in the code.
_CLOSED = {
    "lanes": ("LANES", 128),
    "tasks": ("TASKS", 1),
    "vector": ("VEC", 1),
    "items": ("ITEMS", 1),
    "split": ("SPLIT", 0),
    "keep": ("KEEP", 0),
    "persistent": ("PERSIST", 0),
    "blocking": ("BLOCKED", 1),
}


@dataclass(frozen=True)
class Knob:
    """A number of the schedule: a parameter of the template, or fixed."""

    name: str  # of its macro
    values: tuple[int, ...]
    default: int
    is_parameter: bool

    @property
    def size_text(self) -> str:
        """For the template's expressions, which know parameters only."""
        return self.name if self.is_parameter else str(self.default)

    @property
    def most(self) -> int:
        return max(self.values)

    @property
    def least(self) -> int:
        return min(self.values)


@dataclass(frozen=True)
class Knobs:
    lanes: Knob
    tasks: Knob
    vector: Knob
    items: Knob
    split: Knob
    keep: Knob
    persistent: Knob
    blocking: Knob

    @classmethod
    def of(cls, kernel: KernelModel, schedule: Schedule, names: Names) -> Knobs:
        found: dict[str, Knob] = {}
        for field in fields(cls):
            choice = schedule.get(field.name)
            if choice is not None:
                several = len(choice.values) > 1
                found[field.name] = Knob(choice.name, choice.values, choice.default, several)
                continue
            word, value = _CLOSED[field.name]
            if field.name == "lanes":
                value = _lanes_today(kernel)
            found[field.name] = Knob(names.fresh(word), (value,), value, False)
        return cls(**found)


def _lanes_today(kernel: KernelModel) -> int:
    if kernel.team == "thread":
        return 1
    if isinstance(kernel.lanes, Number) and isinstance(kernel.lanes.value, int):
        return kernel.lanes.value
    return 32 if kernel.team == "warp" else 128
