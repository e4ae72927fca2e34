"""Names and words of a written kernel: what every part of the writer needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields

from tunesmith.csource.lex import without_comments
from tunesmith.csource.nodes import Number
from tunesmith.csource.snippets import Wording
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


# What `gpu_packs.cuh` defines.
PACK_WORDS = (
    *("Pack", "word_of", "two_words", "four_words", "fetch_once", "fetch_shared", "put_once", "settle_word"),
    *("copy_word", "commit_copies", "wait_copies"),
)
VECTOR_WORDS = ("vec", "ivec", "AS_VEC", "AS_IVEC", "unaligned", "LOAD", "STORE")  # `cpu_vectors.cl`
# Words that snippets use all over the writer.
_WORDS = (
    *("lane", "PIECE", "PIECES", "TASK_BLOCK", "TASK_BLOCKS"),  # threads and blocks
    *("task", "tasks", "first", "inside", "kept_bytes"),  # tasks, and what their loops leave in shared memory
    *("base", "CHUNK", "k", "here", "COUNT", "v", "CHAINS", "values", "own"),  # a turn, its packs, an element
    *("TEAM", "WARPS", "WAYS", "turn", "step", "mates", "count", "away", "apart"),  # totals
    *("ring", "ahead", "s", "RING_BYTES", "RING_THREADS"),  # chunks under way
    *("DIVIDED", "REMAINDER", *PACK_WORDS, *VECTOR_WORDS),  # macros, types and functions
)  # fmt: skip


def wording(knobs: Knobs, names: Names) -> Wording:
    """The same words for the same things all over a kernel: none that the source uses."""
    macros = {word: getattr(knobs, role).name for role, (word, _) in _CLOSED.items()}
    return Wording({**{word: names.fresh(word) for word in _WORDS}, **macros})


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
    "ring": ("STAGES", 0),
    "beside": ("BESIDE", 0),
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
    ring: Knob
    beside: Knob
    # Settings: nothing is done without them, and nothing is printed.
    bake: Knob
    bounds: Knob
    convert: Knob
    divide: Knob
    fast: Knob
    load_hint: Knob
    reciprocal: Knob
    store_hint: Knob
    unroll: Knob

    @classmethod
    def of(cls, kernel: KernelModel, schedule: Schedule, names: Names) -> Knobs:
        found: dict[str, Knob] = {}
        for field in fields(cls):
            choice = schedule.get(field.name)
            if choice is not None:
                found[field.name] = Knob(choice.name, choice.values, choice.default, True)
                continue
            word, value = _CLOSED.get(field.name, ("", 0))
            if field.name == "lanes":
                value = _lanes_today(kernel)
            found[field.name] = Knob(names.fresh(word) if word else "", (value,), value, False)
        return cls(**found)


def _lanes_today(kernel: KernelModel) -> int:
    if kernel.team == "thread":
        return 1
    if isinstance(kernel.lanes, Number) and isinstance(kernel.lanes.value, int):
        return kernel.lanes.value
    return 32 if kernel.team == "warp" else 128
