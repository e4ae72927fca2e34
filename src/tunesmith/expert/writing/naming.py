"""Names, lines and words of a written kernel: what every part of the writer needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

from tunesmith.csource.lex import without_comments
from tunesmith.csource.nodes import Number
from tunesmith.expert.model.kernel import KernelModel, ParameterChoice, Schedule


class Unwritable(Exception):
    """Why a draft cannot be written as a template, in words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class CodeLines:
    """Lines of C under construction: indentation, blocks, and preprocessor lines at the margin."""

    def __init__(self, indent: int = 0) -> None:
        self.lines: list[str] = []
        self.indent = indent

    def add(self, *texts: str) -> None:
        for text in texts:
            for line in text.split("\n"):
                directive = line.startswith("#")
                self.lines.append(line if directive or not line else "    " * self.indent + line)

    def blank(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head {` ... `}`; several lines of preprocessor may be part of the head."""
        self.add(f"{head} {{" if head else "{")
        self.indent += 1
        yield
        self.indent -= 1
        self.add("}")

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


@dataclass(frozen=True)
class Dialect:
    """How the three languages spell what every kernel needs."""

    kernel: str  # before a kernel's bounds and name
    thread_x: str
    thread_y: str
    block_x: str
    block_y: str
    block_z: str
    grid_x: str
    grid_y: str
    grid_z: str
    wide: str  # a 64-bit integer
    truth: str  # a truth value


_CUDA = Dialect(
    kernel='extern "C" __global__ void',
    thread_x="threadIdx.x",
    thread_y="threadIdx.y",
    block_x="blockIdx.x",
    block_y="blockIdx.y",
    block_z="blockIdx.z",
    grid_x="gridDim.x",
    grid_y="gridDim.y",
    grid_z="gridDim.z",
    wide="long long",
    truth="bool",
)
_OPENCL = Dialect(
    kernel="__kernel",
    thread_x="get_local_id(0)",
    thread_y="get_local_id(1)",
    block_x="get_group_id(0)",
    block_y="get_group_id(1)",
    block_z="get_group_id(2)",
    grid_x="get_num_groups(0)",
    grid_y="get_num_groups(1)",
    grid_z="get_num_groups(2)",
    wide="long",
    truth="int",
)


def dialect(language: str) -> Dialect:
    return _OPENCL if language == "opencl" else _CUDA


# -- names for what the writer adds, none of which the source uses; and the macros that a schedule declares


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
    def of(cls, kernel: KernelModel, schedule: Schedule, names: Names) -> Knobs:
        found: dict[str, Knob] = {}
        for field in fields(cls):
            choice: ParameterChoice | None = getattr(schedule, field.name)
            if choice is not None:
                found[field.name] = Knob(choice.name, choice.values, choice.default, True)
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
