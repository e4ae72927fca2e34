"""Names, lines and words of a written kernel: what every part of the writer needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields

from tunesmith.csource.lex import without_comments
from tunesmith.csource.nodes import Comment, Number, Stmt
from tunesmith.csource.printing import print_statements
from tunesmith.csource.walk import fresh_name, numbered
from tunesmith.expert.model.kernel import KernelModel, ParameterChoice, Schedule
from tunesmith.expert.writing.comments import SourceComments


class Unwritable(Exception):
    """Why a draft cannot be written as a template, in words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class CodeLines:
    """Lines of C under construction: indentation, blocks, and preprocessor lines at the margin."""

    def __init__(self, comments: SourceComments) -> None:
        self.lines: list[str] = []
        self.indent = 0
        self.comments = comments

    def add(self, *texts: str) -> None:
        for text in texts:
            for line in text.split("\n"):
                directive = line.startswith("#")
                self.lines.append(line if directive or not line else "    " * self.indent + line)

    def blank(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def say(self, comments: Iterable[Comment]) -> None:
        self.add(*(f"// {line}" for said in comments for line in said.lines))

    def open(self, head: str = "") -> None:
        self.add(f"{head} {{" if head else "{")
        self.indent += 1

    def close(self) -> None:
        self.indent -= 1
        self.add("}")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head {` ... `}`; several lines of preprocessor may be part of the head."""
        self.open(head)
        yield
        self.close()

    @contextmanager
    def only_if(self, condition: str) -> Iterator[None]:
        """Inside `#if` and `#endif`, where there is a condition."""
        self.add(*([f"#if {condition}"] if condition else []))
        yield
        self.add(*(["#endif"] if condition else []))

    def repeated(self, variable: str, count: str) -> AbstractContextManager[None]:
        """A block that is run `count` times, unrolled."""
        self.add("#pragma unroll")
        return self.block(f"for (int {variable} = 0; {variable} < {count}; {variable}++)")

    def statements(self, stmts: Iterable[Stmt], language: str) -> None:
        for line in print_statements(self.comments.statements(stmts), 0, language).splitlines():
            self.add(line.strip() if line.lstrip().startswith("#") else line)

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


@dataclass(frozen=True)
class Dialect:
    """How the three languages spell what every kernel needs."""

    kernel: str  # before a kernel's bounds and name
    thread: tuple[str, ...]  # its place in the block, by axis
    block: tuple[str, ...]  # its place in the grid
    grid: tuple[str, ...]  # how many blocks there are
    wide: str  # a 64-bit integer
    truth: str  # a truth value


_CUDA = Dialect(
    'extern "C" __global__ void',
    thread=("threadIdx.x", "threadIdx.y"),
    block=("blockIdx.x", "blockIdx.y", "blockIdx.z"),
    grid=("gridDim.x", "gridDim.y", "gridDim.z"),
    wide="long long",
    truth="bool",
)
_OPENCL = Dialect(
    "__kernel",
    thread=("get_local_id(0)", "get_local_id(1)"),
    block=("get_group_id(0)", "get_group_id(1)", "get_group_id(2)"),
    grid=("get_num_groups(0)", "get_num_groups(1)", "get_num_groups(2)"),
    wide="long",
    truth="int",
)


def dialect(language: str) -> Dialect:
    return _OPENCL if language == "opencl" else _CUDA


# -- names for what the writer adds, none of which the source uses; and the macros that a schedule declares


_WORD = re.compile(r"[A-Za-z_]\w*")
Pairs = Iterable[tuple[str, str]]


class Names:
    """Fresh identifiers: the word asked for, or the same with a number."""

    def __init__(self, texts: Iterable[str], taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        for text in texts:
            self._taken.update(_WORD.findall(without_comments(text)))

    def fresh(self, want: str) -> str:
        return fresh_name(want, self._taken)


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
