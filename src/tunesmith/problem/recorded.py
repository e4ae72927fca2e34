"""Recorded cases: what a program's own launch read and what it left, kept beside a problem as a small text.

A file is JSON: sizes, and arrays with their contents compressed, each with the digest of its bytes. To the
laboratory a recorded case is inputs that a function makes and results that a reference gives; both functions
are written here, around the same data.
"""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.problem.problem import TYPES, Argument, Contract, PythonFunction
from tunesmith.space.expr import Undefined
from tunesmith.text import sha256

FORMAT = 1
MOST_BYTES = 64 << 20  # of one case's arrays
MOST_TEXT = 24_000_000  # characters of one file
MOST_CASES = 8
DISTRIBUTION = "recorded "  # how such a case's values are called, before its name
When = Literal["before", "after"]


@dataclass(frozen=True)
class RecordedArray:
    """Dense, last axis fastest, whatever strides the kernel's own had."""

    name: str
    when: When
    type: str
    shape: tuple[int, ...]
    sha256: str  # of its bytes
    data: str = field(repr=False)  # these, by zlib, in base64

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * TYPES[self.type].bytes


@dataclass(frozen=True)
class RecordedFile:
    format: int
    about: str  # where it was recorded
    sizes: tuple[tuple[str, int], ...]
    arrays: tuple[RecordedArray, ...]


@dataclass(frozen=True)
class RecordedCase:
    """`name` is the file's, without its ending; `digest` that of its text."""

    name: str
    sizes: tuple[tuple[str, int], ...]  # in the contract's order
    digest: str
    arrays: tuple[RecordedArray, ...] = field(repr=False)

    @property
    def distribution(self) -> str:
        return DISTRIBUTION + self.name

    @cached_property
    def inputs(self) -> PythonFunction:
        return self._function("before", "recorded_inputs")

    @cached_property
    def results(self) -> PythonFunction:
        return self._function("after", "recorded_results")

    def _function(self, when: When, name: str) -> PythonFunction:
        own = [array for array in self.arrays if array.when == when]
        return PythonFunction(f"{self.name}.json", name, _module(own, name))


def recorded_array(name: str, when: When, type_: str, values: NDArray[Any]) -> RecordedArray:
    data = np.ascontiguousarray(values).tobytes()
    text = base64.b64encode(zlib.compress(data, 6)).decode()
    return RecordedArray(name, when, type_, values.shape, sha256(data), text)


def recorded_text(
    about: str, sizes: Sequence[tuple[str, int]], arrays: Sequence[RecordedArray]
) -> str | None:
    """The file; None where it would be larger than what is read."""
    if sum(array.nbytes for array in arrays) > MOST_BYTES:
        return None
    text = encode(RecordedFile(FORMAT, about, tuple(sizes), tuple(arrays))).decode() + "\n"
    return text if len(text) <= MOST_TEXT else None


def read_recorded(
    name: str, text: str, arguments: Sequence[Argument], contract: Contract
) -> RecordedCase | str:
    """The case, or what is wrong with the file."""
    if len(text) > MOST_TEXT:
        return f"it has {len(text):,} characters, at most {MOST_TEXT:,} are read"
    try:
        found = decode(text.encode(), RecordedFile, "recorded case")
    except Malformed as error:
        return str(error)
    if found.format != FORMAT:
        return f"it has format {found.format}, and this version reads format {FORMAT}"
    sizes = dict(found.sizes)
    names = [rule.name for rule in contract.sizes]
    if sorted(sizes) != sorted(names) or len(sizes) != len(found.sizes):
        return f"its sizes are {', '.join(sizes) or 'none'}, the contract's {', '.join(names)}"
    if outside := contract.violations(sizes):
        return f"it is outside the contract: {outside[0]}"
    if fault := _arrays_fault(found.arrays, arguments, sizes):
        return fault
    ordered = tuple((size, sizes[size]) for size in names)
    digest = sha256(text.encode())
    return RecordedCase(name.rpartition("/")[2].removesuffix(".json"), ordered, digest, found.arrays)


def _arrays_fault(
    arrays: Sequence[RecordedArray], arguments: Sequence[Argument], sizes: Mapping[str, int]
) -> str | None:
    own = [a for a in arguments if a.alias is None]
    wanted = {(a.name, "before"): a for a in own if a.role in ("input", "inout") and a.formula is None}
    wanted |= {(a.name, "after"): a for a in own if a.is_written}
    there = [(array.name, array.when) for array in arrays]
    missing = [key for key in wanted if key not in there]
    beyond = [key for key in there if key not in wanted]
    if missing or beyond or len(set(there)) != len(there):
        name, when = (missing or beyond or there)[0]
        return f"it holds what is read, before, and what is written, after, each once; not so {name} {when}"
    total = 0
    for array in arrays:
        argument = wanted[array.name, array.when]
        try:
            shape = tuple(axis.evaluate(sizes) for axis in argument.shape)
        except Undefined as error:
            return f"{array.name} has no shape there: {error}"
        if array.type != argument.type or array.shape != shape:
            got, meant = (f"{t} of shape {s}" for t, s in ((array.type, array.shape), (argument.type, shape)))
            return f"{array.name} is {got}, the problem has {meant}"
        if TYPES[array.type].packed > 1:
            return f"{array.name} is of a packed type, which cannot be recorded"
        total += array.nbytes
        if total > MOST_BYTES:
            return f"its arrays have more than {MOST_BYTES >> 20} MiB"
        if contents(array) is None:
            return f"the contents of {array.name} are not those that were recorded"
    return None


def contents(array: RecordedArray) -> bytes | None:
    """Its bytes; None where they are not what the digest says."""
    try:
        packed = base64.b64decode(array.data, validate=True)
        data = zlib.decompressobj().decompress(packed, array.nbytes + 1)
    except (binascii.Error, zlib.error, ValueError):
        return None
    whole = len(data) == array.nbytes and sha256(data) == array.sha256
    return data if whole else None


def _module(arrays: Sequence[RecordedArray], function: str) -> str:
    """Python that gives these arrays; it is run in a worker, as a user's own function is."""
    lines = ["import base64", "import zlib", "", "import numpy as np", ""]
    if any(TYPES[array.type].extension for array in arrays):
        lines[3:3] = ["import ml_dtypes"]
    lines += [
        "",
        "def array(type_, shape, data):",
        "    memory = zlib.decompress(base64.b64decode(data))",
        "    found = np.frombuffer(memory, type_).reshape(shape)",
        '    return found if found.dtype.kind in "iu" else found.astype(np.float64)',
        "",
        "",
        f"def {function}():",
        "    return {",
    ]
    for one in arrays:
        element = TYPES[one.type]
        type_ = f"ml_dtypes.{element.numpy.name}" if element.extension else f'"{element.numpy.name}"'
        lines.append(f'        "{one.name}": array({type_}, {one.shape!r}, "{one.data}"),')
    return "\n".join([*lines, "    }", ""])
