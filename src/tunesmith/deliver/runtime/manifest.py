"""A dispatch.json as it is read: the operator's arguments and sizes, and the kernels that may serve."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .element_types import BYTES, as_bytes, is_float
from .expressions import Expression, NotAnExpression, RealExpression

VERSION = 2
ROLES = ("input", "output", "inout", "workspace", "local", "scalar")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class BadDispatch(ValueError):
    """A dispatch.json that cannot be used."""


class ManifestSize:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self.name: str = given["name"]
        self.min, self.max = int(given["min"]), int(given["max"])
        self.multiple_of = int(given.get("multiple_of", 1))
        self.one_of = frozenset(given.get("one_of", ()))

    def allows(self, value: int) -> bool:
        if self.one_of:
            return value in self.one_of
        return self.min <= value <= self.max and value % self.multiple_of == 0


class ManifestArgument:
    def __init__(self, given: Mapping[str, Any], sizes: tuple[str, ...]) -> None:
        self.name: str = given["name"]
        self.type: str = given["type"]
        self.role: str = given["role"]
        if self.type not in BYTES or self.role not in ROLES:
            raise BadDispatch(f"argument {self.name!r} has the type {self.type!r} and the role {self.role!r}")
        self.shape = tuple(Expression(text, sizes) for text in given.get("shape", ()))
        self.strides = tuple(Expression(text, sizes) for text in given.get("strides", ()))
        self.align = int(given.get("align", 1))
        self.alias: str | None = given.get("alias")
        self.init: float | None = given.get("init")
        self.value = _value(given.get("value"), self.type, sizes)

    @property
    def is_array(self) -> bool:
        return self.role not in ("scalar", "local")

    @property
    def is_written(self) -> bool:
        return self.role in ("output", "inout", "workspace")

    @property
    def follows_sizes(self) -> bool:
        """Whether the sizes decide this scalar; others are the caller's."""
        return isinstance(self.value, (Expression, RealExpression))

    @property
    def fill(self) -> bytes | None:
        """The bytes of one element of what it is filled with before a call."""
        return None if self.init is None else as_bytes(self.type, self.init)


def _value(given: Any, kind: str, sizes: tuple[str, ...]) -> Any:
    """A text without names is a number that a caller may change."""
    if not isinstance(given, str):
        return given
    expression = (RealExpression if is_float(kind) else Expression)(given, sizes)
    return expression if expression.names else expression.evaluate({})


class ManifestLaunch:
    def __init__(self, given: Mapping[str, Any], sizes: tuple[str, ...]) -> None:
        def read(key: str) -> tuple[Expression, ...]:
            return tuple(Expression(text, sizes) for text in given.get(key) or ())

        self.entry: str = given["entry"]
        self.grid, self.block, self.cluster = read("grid"), read("block"), read("cluster")
        self.shared = Expression(given["shared"], sizes) if given.get("shared") is not None else None
        self.when = Expression(given["when"], sizes) if given.get("when") is not None else None
        self.args: tuple[str, ...] = tuple(given["args"])
        self.cooperative, self.pdl = bool(given.get("cooperative")), bool(given.get("pdl"))

    def entry_for(self, sizes: Mapping[str, int]) -> str:
        return _PLACEHOLDER.sub(lambda found: str(sizes[found[1]]), self.entry)


class Entry:
    """One kernel: the first whose condition holds serves the call."""

    def __init__(self, number: int, given: Mapping[str, Any], sizes: tuple[str, ...]) -> None:
        self.number = number
        self.when = Expression(given["when"], sizes)
        self.file: str = given["file"]
        self.is_original = given.get("config") is None
        self.config: dict[str, int] = dict(given.get("config") or {})
        self.flags: tuple[str, ...] = tuple(given.get("flags", ()))
        self.launches = tuple(ManifestLaunch(launch, sizes) for launch in given["launches"])
        self.workspace = tuple(ManifestArgument(argument, sizes) for argument in given.get("workspace", ()))
        headers = given.get("headers") or {}
        self.header_folder: str = headers.get("folder", "")
        self.header_files: tuple[str, ...] = tuple(headers.get("files", ()))
        binary = given.get("binary") or {}
        self.binary: str = binary.get("file", "")
        self.symbols: dict[str, str] = dict(binary.get("symbols", {}))


class Manifest:
    """What one run delivered, on one device."""

    def __init__(self, given: Mapping[str, Any], where: str = "dispatch.json") -> None:
        if given.get("version") != VERSION:
            raise BadDispatch(
                f"{where} has version {given.get('version')}, known is version {VERSION}: "
                "export again with the Tunesmith that wrote it, or tune again"
            )
        try:
            self.problem: str = given["problem"]
            self.language: str = given["language"]
            self.device: str = given["device"]
            self.architecture: str = given.get("architecture", "")
            self.sizes = tuple(ManifestSize(size) for size in given["sizes"])
            names = tuple(size.name for size in self.sizes)
            self.arguments = tuple(ManifestArgument(argument, names) for argument in given["arguments"])
            self.require = tuple(Expression(text, names) for text in given.get("require", ()))
            self.entries = tuple(Entry(n, entry, names) for n, entry in enumerate(given["entries"]))
            self.original = self.entries[-1]
        except (KeyError, TypeError, IndexError, AttributeError, NotAnExpression) as error:
            raise BadDispatch(f"{where} is not a dispatch: {type(error).__name__} {error}") from error

    def allows(self, sizes: Mapping[str, int]) -> bool:
        """Whether the contract speaks of these sizes: nothing was verified elsewhere."""
        own = all(size.allows(sizes[size.name]) for size in self.sizes)
        return own and all(requirement.holds(sizes) for requirement in self.require)

    def entry_for(self, sizes: Mapping[str, int]) -> Entry:
        return next((entry for entry in self.entries if entry.when.holds(sizes)), self.original)


def read_dispatch(text: str | bytes, where: str = "dispatch.json") -> Manifest:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadDispatch(f"{where} is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise BadDispatch(f"{where} is not a dispatch: it holds no object")
    return Manifest(given, where)
