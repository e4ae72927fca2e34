"""A kernel's parameters as the arguments of a drafted problem: what each is called, its type and its role."""

from __future__ import annotations

import keyword
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Literal

from tunesmith.csource.nodes import Language
from tunesmith.expert.reading.headers import KernelParameter, KernelSignature, elements_of
from tunesmith.expert.reading.launches import FILL
from tunesmith.problem.problem import TYPES
from tunesmith.space.expr import is_name

DraftRole = Literal["input", "output", "inout", "local", "FILL", "size", "scalar"]
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SIZE_LETTERS = frozenset("bcdhklmntwBCDHKLMNSTW") | {"nx", "ny", "nz", "hw", "nnz"}
_SIZE_WORDS = frozenset({
    "size", "sz", "len", "length", "seqlen", "count", "cnt", "num", "dim", "dims", "row", "rows", "col",
    "cols", "column", "columns", "width", "height", "depth", "batch", "batches", "head", "heads",
    "token", "tokens", "hidden", "channel", "channels", "element", "elements", "elem", "elems", "vocab",
    "features", "classes", "experts", "groups", "bins", "points", "items", "samples", "nodes", "edges",
    "total", "planes", "images", "frames", "sequences",
})  # fmt: skip
# An integer with one of these in its name is no size, whatever else is there: row_stride, batch_idx.
_OTHER_WORDS = frozenset({
    "stride", "strides", "offset", "start", "begin", "end", "idx", "index", "id", "seed", "flag",
    "mode", "axis", "is", "has", "use", "pad", "padding", "step", "shift", "pos", "position", "mask",
    "ld", "lda", "ldb", "ldc",
})  # fmt: skip
_RESERVED_SIZES = frozenset({"weight", "cache", "require"})  # words that stand beside sizes in problem files


@dataclass(frozen=True)
class DraftArgument:
    parameter: KernelParameter
    name: str  # as in the problem file, where a few names of C are not possible
    element: str | None
    vector: int
    role: DraftRole

    @property
    def may_be_output(self) -> bool:
        return self.role in ("output", "inout", FILL)

    @property
    def is_integer(self) -> bool:
        return self.element is not None and self.vector == 1 and TYPES[self.element].kind != "float"


def draft_arguments(
    kernel: KernelSignature, language: Language, bound: Mapping[str, str]
) -> tuple[DraftArgument, ...]:
    """`bound` gives the template parameters that the user has chosen already."""
    taken: set[str] = set()
    arguments = []
    for parameter in kernel.parameters:
        element, vector = parameter.element, parameter.vector
        if element is None and parameter.base in bound and parameter.type.count("*") <= 1:
            element, vector = elements_of(bound[parameter.base], language)
        name = possible_name(parameter.name, taken)
        taken.add(name)
        arguments.append(
            DraftArgument(parameter, name, element, vector, _role(parameter, name, element, vector))
        )
    return tuple(arguments)


def looks_like_a_size(name: str) -> bool:
    if name in _SIZE_LETTERS:
        return True
    parts = [part.lower() for part in _PART.findall(name)]
    if any(part in _OTHER_WORDS for part in parts):
        return False
    counted = len(parts) > 1 and parts[0] in ("n", "num", "nr")  # n_rows, nRows, num_warps
    return counted or any(part in _SIZE_WORDS for part in parts)


def _role(parameter: KernelParameter, name: str, element: str | None, vector: int) -> DraftRole:
    if not parameter.pointer:
        integer = element is not None and vector == 1 and TYPES[element].kind != "float"
        usable = is_name(name) and name not in _RESERVED_SIZES
        return "size" if integer and usable and looks_like_a_size(name) else "scalar"
    if parameter.space == "local":
        return "local"
    if parameter.written is None or (parameter.written and parameter.read is None):
        return "FILL"
    if parameter.written:
        return "inout" if parameter.read else "output"
    return "input"


def possible_name(name: str, taken: Container[str] = ()) -> str:
    """An ASCII name that also does as a keyword argument in Python: `in` is no such name."""
    possible = re.sub(r"[^A-Za-z0-9_]", "_", name)
    while keyword.iskeyword(possible) or possible in taken:
        possible += "_"
    return possible
