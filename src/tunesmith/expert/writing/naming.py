"""Names and words of a written kernel: what every part of the writer needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tunesmith.csource.lex import without_comments
from tunesmith.csource.nodes import Number
from tunesmith.csource.snippets import Wording
from tunesmith.csource.walk import fresh_name, numbered
from tunesmith.expert.model.kernel import KernelModel, Schedule
from tunesmith.problem.problem import Problem


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
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
Pairs = Iterable[tuple[str, str]]


class Names:
    """Fresh identifiers: the word asked for, or the same with a number."""

    def __init__(self, texts: Iterable[str], taken: Iterable[str] = ()) -> None:
        self._taken = {*taken, *words_of(texts)}

    def fresh(self, want: str) -> str:
        return fresh_name(want, self._taken)


def words_of(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word for text in texts for word in _WORD.findall(without_comments(text)))


def macro_names(problem: Problem) -> frozenset[str]:
    """Those that a build of the template still has: of the problem's defines, and of headers."""
    headers = "\n".join(text for _, text in problem.kernel.headers)
    return frozenset((*(name for name, _ in problem.kernel.defines), *_DEFINE.findall(headers)))


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


# What `gpu_packs.cuh` defines.
PACK_WORDS = (
    *("Pack", "word_of", "two_words", "four_words", "fetch_once", "fetch_shared", "put_once", "settle_word"),
    *("copy_word", "commit_copies", "wait_copies"),
    *("make_barriers", "expect_bytes", "send_run", "await_run", "last_of_team"),
)
VECTOR_WORDS = ("vec", "ivec", "AS_VEC", "AS_IVEC", "unaligned", "LOAD", "STORE")  # `cpu_vectors.cl`
# Words that snippets use all over the writer.
_WORDS = (
    *("lane", "PIECE", "PIECES", "TASK_BLOCK", "TASK_BLOCKS"),  # threads and blocks
    *("task", "tasks", "first", "inside", "kept_bytes"),  # tasks, and what their loops leave in shared memory
    *("base", "CHUNK", "k", "here", "COUNT", "v", "CHAINS", "values", "own"),  # a turn, its packs, an element
    *("TEAM", "WARPS", "WAYS", "turn", "step", "mates", "count", "away", "apart"),  # totals
    *("ring", "ahead", "s", "RING_BYTES", "RING_THREADS", "arrived", "come", "phases"),  # chunks under way
    *("DIVIDED", "REMAINDER", *PACK_WORDS, *VECTOR_WORDS),  # macros, types and functions
)  # fmt: skip


def wording(knobs: Knobs, names: Names) -> Wording:
    """The same words for the same things all over a kernel: none that the source uses."""
    return Wording({**{word: names.fresh(word) for word in _WORDS}, **knobs.words()})


@dataclass(frozen=True)
class Knob:
    """A number of the schedule: a parameter of the template, or fixed."""

    name: str  # of its macro
    values: tuple[int, ...] = (0,)
    default: int = 0
    is_parameter: bool = False

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


_OFF = Knob("")  # nothing is done without a choice, and nothing printed


@dataclass(frozen=True)
class Knobs:
    """By role of the schedule: its choice, or what is done without one."""

    lanes: Knob = field(default=Knob("LANES", (128,), 128))
    tasks: Knob = field(default=Knob("TASKS", (1,), 1))
    vector: Knob = field(default=Knob("VEC", (1,), 1))
    items: Knob = field(default=Knob("ITEMS", (1,), 1))
    split: Knob = field(default=Knob("SPLIT"))
    keep: Knob = field(default=Knob("KEEP"))
    persistent: Knob = field(default=Knob("PERSIST"))
    blocking: Knob = field(default=Knob("BLOCKED", (1,), 1))
    ring: Knob = field(default=Knob("STAGES"))
    bulk: Knob = field(default=Knob("BULK"))
    beside: Knob = field(default=Knob("BESIDE"))
    bake: Knob = _OFF
    bounds: Knob = _OFF
    convert: Knob = _OFF
    divide: Knob = _OFF
    fast: Knob = _OFF
    load_hint: Knob = _OFF
    reciprocal: Knob = _OFF
    store_hint: Knob = _OFF
    unroll: Knob = _OFF

    @classmethod
    def of(cls, kernel: KernelModel, schedule: Schedule, names: Names) -> Knobs:
        found: dict[str, Knob] = {}
        for role, closed in vars(cls()).items():
            choice, name = schedule.get(role), closed.name
            if choice is not None:
                found[role] = Knob(choice.name, choice.values, choice.default, len(choice.values) > 1)
            else:
                found[role] = replace(closed, name=names.fresh(name) if name else "")
        if "lanes" not in schedule:
            lanes = _lanes_today(kernel)
            found["lanes"] = replace(found["lanes"], values=(lanes,), default=lanes)
        return cls(**found)

    def words(self) -> dict[str, str]:
        """What macros are called in snippets -> in the code."""
        return {closed.name: vars(self)[role].name for role, closed in vars(Knobs()).items() if closed.name}


def _lanes_today(kernel: KernelModel) -> int:
    if kernel.team == "thread":
        return 1
    if isinstance(kernel.lanes, Number) and isinstance(kernel.lanes.value, int):
        return kernel.lanes.value
    return 32 if kernel.team == "warp" else 128
