"""Write a problem file from Python values: the tables of docs/problem-file.md as typed dictionaries."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from tunesmith.core.errors import BadInput
from tunesmith.core.problem import Compare, Distribution, Role

Expression = str | int  # over the sizes, as in a problem file: "ceildiv(n, 256)"


class ArgumentTable(TypedDict, total=False):
    """One argument, in the kernel's own order; `name` and `type` are always needed."""

    name: str
    type: str  # "float32*" is an array, "int32" a scalar
    role: Role
    shape: Sequence[Expression]
    strides: Sequence[Expression]
    value: Expression | float
    values: Distribution
    range: tuple[float, float]
    init: float
    align: int
    alias: str
    rtol: float
    atol: float
    compare: Compare
    traffic: Expression


class LaunchTable(TypedDict, total=False):
    """One launch; `grid` counts blocks, `block` threads."""

    grid: Sequence[Expression]
    block: Sequence[Expression]
    entry: str
    args: Sequence[str]
    shared: Expression
    cluster: Sequence[Expression]
    cooperative: bool
    pdl: bool


class SizeTable(TypedDict, total=False):
    """What callers promise about one size: `min` and `max`, or `one_of`."""

    min: int
    max: int
    multiple_of: int
    one_of: Sequence[int]


class AccuracyTable(TypedDict, total=False):
    """How near a result must be; the reference is a function, so it is an argument of its own."""

    rtol: float
    atol: float
    independent: str
    deterministic: bool
    baseline_may_fail: bool


class KernelTable(TypedDict, total=False):
    """How the kernel is built, where its source and its entry do not say all."""

    language: Literal["cuda", "hip", "opencl", "fake"]
    flags: Sequence[str]
    defines: Mapping[str, str | int | float]
    include: Sequence[str]
    compiler: Literal["nvrtc", "nvcc"]


WorkloadTable = Mapping[str, int | float | str]  # a value for every size, and weight and cache


def toml_text(root: Mapping[str, object]) -> str:
    """A problem file with these keys. Lists of tables become [[key]], tables [key]; None is left out."""
    lines = [f"{_key(k)} = {_value(v, k)}" for k, v in root.items() if v is not None and not _is_table(v)]
    for key, value in root.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{_key(key)}]", *_pairs(value, key)]
        elif _is_table(value) and isinstance(value, Sequence):
            for item in value:
                lines += ["", f"[[{_key(key)}]]", *_pairs(item, key)]
    return "\n".join(lines) + "\n"


def toml_string(text: str) -> str:
    """A TOML basic string. JSON's are the same but for DEL, and for surrogates, which TOML cannot hold."""
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")


def _is_table(value: object) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    return isinstance(value, Mapping) or (is_list and all(isinstance(item, Mapping) for item in value))  # type: ignore[attr-defined]


def _pairs(table: Mapping[str, object], place: str) -> list[str]:
    return [f"{_key(k)} = {_value(v, f'{place}.{k}')}" for k, v in table.items() if v is not None]


def _key(name: object) -> str:
    if not isinstance(name, str):
        raise BadInput(f"the name of a key is a text, got {name!r}", hint="write it in quotes")
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else toml_string(name)


def _value(value: object, place: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_pairs(value, place)) + " }" if value else "{}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(item, place) for item in value) + "]"
    try:
        return str(operator.index(value))  # type: ignore[arg-type]  # NumPy's integers too
    except TypeError:
        pass
    try:
        return repr(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        kind = type(value).__name__
        allowed = "a text, a number, true or false, a list or a dictionary of these"
        hint = "pass what a problem file could hold; a function belongs in `reference` or `inputs`"
        raise BadInput(f"{place} must be {allowed}, got {value!r} of type {kind}", hint=hint) from None
