"""Words for OpenCL's vectors: types, loads and stores, conversions, what is done to all lanes at once.

A word gets its macro where it is first asked for; `texts` defines those that were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tunesmith.csource import nodes as c
from tunesmith.csource.types import Types
from tunesmith.expert.writing.fast_math import FastMath
from tunesmith.expert.writing.naming import Names

# Integers whose values are those of an `int` -> OpenCL's word for vectors of them.
INTEGER_WORDS = {
    "int": "int", "unsigned char": "uchar", "uchar": "uchar", "char": "char", "signed char": "char",
    "unsigned short": "ushort", "ushort": "ushort", "short": "short",
}  # fmt: skip


class NoVector(Exception):
    """Why a body has no vector form."""


def has_vectors(base: str) -> bool:
    """Whether elements of the type are known as vectors."""
    return base == "float" or base in INTEGER_WORDS


@dataclass
class Lift:
    """`vec`, `ivec`: the vector types; `load`: the macro that loads floats; `functions`: the source's own, by
    name; `fast`: its macros take vectors as well; `types`: of what bodies name."""

    vec: str
    ivec: str
    load: str
    names: Names
    functions: Mapping[str, c.Function]
    fast: FastMath
    types: Types
    helpers: dict[str, str] = field(default_factory=dict)  # the source's function -> its vector form
    written: list[c.Function] = field(default_factory=list)
    store: str = ""
    conversions: dict[tuple[str, str], str] = field(default_factory=dict)  # word and ending -> macro
    lane_words: dict[str, str] = field(default_factory=dict)  # what is done to the lanes of a vector -> macro
    narrow: dict[str, tuple[str, str]] = field(default_factory=dict)  # word -> macros that load and store it

    def converted(self, word: str, value: c.Expr, ending: str = "") -> c.Expr:
        key = (f"convert_{word}", ending)
        if key not in self.conversions:
            self.conversions[key] = self.names.fresh(f"TO_{word}{ending}".upper())
        return c.Call(self.conversions[key], (value,))

    def moves(self, base: str) -> tuple[str, str]:
        """The macros that load and store vectors of these integers."""
        word = INTEGER_WORDS[base]
        if word not in self.narrow:
            if word != "int":  # the macros convert
                self.converted("int", c.Name(""))
                self.converted(word, c.Name(""))
            self.narrow[word] = (
                self.names.fresh(f"LOAD_{word}".upper()), self.names.fresh(f"STORE_{word}".upper()),
            )  # fmt: skip
        return self.narrow[word]

    def loaded(self, base: str, at: c.Expr) -> c.Expr:
        return c.Call(self.load if base == "float" else self.moves(base)[0], (at,))

    def stored(self, base: str, value: c.Expr, at: c.Expr) -> c.Expr:
        return c.Call(self.store if base == "float" else self.moves(base)[1], (value, at))

    def of_lanes(self, word: Literal["ALL", "ANY", "REVERSED"], value: c.Expr) -> c.Expr:
        if word not in self.lane_words:
            self.lane_words[word] = self.names.fresh(word)
        return c.Call(self.lane_words[word], (value,))

    def vector_of(self, base: str) -> str:
        return self.vec if base == "float" else self.ivec
