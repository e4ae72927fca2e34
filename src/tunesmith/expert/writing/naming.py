"""Names for what the writer adds, none of which the source uses; and the macros that a schedule declares."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields

from tunesmith.csource.lex import without_comments
from tunesmith.csource.nodes import Number
from tunesmith.expert.model.kernel import Choice, Kernel, Schedule

_WORD = re.compile(r"[A-Za-z_]\w*")


class Names:
    """Fresh identifiers: the word asked for, or the same with a number."""

    def __init__(self, texts: Iterable[str], taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        for text in texts:
            self._taken.update(_WORD.findall(without_comments(text)))

    def fresh(self, want: str) -> str:
        name, number = want, 2
        while name in self._taken:
            name, number = f"{want}_{number}", number + 1
        self._taken.add(name)
        return name


# What a schedule that leaves a field open does; and what its macro is called in the code.
_CLOSED = {
    "lanes": ("LANES", 128),
    "tasks": ("TASKS", 1),
    "vector": ("VEC", 1),
    "items": ("ITEMS", 1),
    "split": ("SPLIT", 0),
    "keep": ("KEEP", 0),
    "persistent": ("PERSIST", 0),
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

    @classmethod
    def of(cls, kernel: Kernel, schedule: Schedule, names: Names) -> Knobs:
        found: dict[str, Knob] = {}
        for field in fields(cls):
            choice: Choice | None = getattr(schedule, field.name)
            if choice is not None:
                found[field.name] = Knob(choice.name, choice.values, choice.default, True)
                continue
            word, value = _CLOSED[field.name]
            if field.name == "lanes":
                value = _lanes_today(kernel)
            found[field.name] = Knob(names.fresh(word), (value,), value, False)
        return cls(**found)


def _lanes_today(kernel: Kernel) -> int:
    if kernel.team == "thread":
        return 1
    if isinstance(kernel.lanes, Number) and isinstance(kernel.lanes.value, int):
        return kernel.lanes.value
    return 32 if kernel.team == "warp" else 128
