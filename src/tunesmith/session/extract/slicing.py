"""The slice: a kernel, the declarations it needs and no more, in their order, as a text that stands alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from tunesmith.csource.macros import Macro
from tunesmith.session.extract.items import FileItem, items_of
from tunesmith.session.extract.reading import Included, ReadSources
from tunesmith.session.extract.system import headers_for
from tunesmith.session.extract.tree import is_frameworks_own
from tunesmith.session.extract.uses import NameUse, uses_of

FRAMEWORK = "framework_types.cuh"
_DEVICE_WORDS = frozenset({"__device__", "__global__", "constexpr", "__constant__", "__shared__"})
_SYSTEM_NAMESPACES = frozenset(
    {"std", "nvcuda", "cub", "cooperative_groups", "thrust", "cuda", "cute", "cutlass"}
)
_MACRO_DEPTH = 4


@dataclass(frozen=True)
class KernelSlice:
    items: tuple[FileItem, ...]
    headers: tuple[str, ...]  # of the system, as they are spelled
    kernel: FileItem

    @property
    def uses_framework(self) -> bool:
        return any(item.path == FRAMEWORK for item in self.items)

    @property
    def qualified_name(self) -> str:
        return "::".join((*(part for part in self.kernel.scope if part), self.kernel.name))

    def text(self, note: str = "") -> str:
        """The kernel's file. `note`: comment lines at its top."""
        parts = [f"// {line}" for line in note.splitlines()]
        lines = [*parts, *([""] if parts else []), *self._head()]
        return "\n".join([*lines, *(text for text, _ in _laid_out(self._own()))]) + "\n"

    def at_lines(self, lines: Collection[int]) -> list[FileItem]:
        """Declarations that stand in these lines of the kernel's file without a note."""
        found, line = [], len(self._head()) + 1
        for text, item in _laid_out(self._own()):
            after = line + text.count("\n") + 1
            if item is not None and any(line <= one < after for one in lines):
                found.append(item)
            line = after
        return found

    def _own(self) -> list[FileItem]:
        return [item for item in self.items if item.path != FRAMEWORK]

    def _head(self) -> list[str]:
        lines = [f"#include {header}" for header in self.headers]
        return [*lines, *([f'#include "{FRAMEWORK}"'] if self.uses_framework else []), ""]

    def framework_text(self) -> str:
        own = [item for item in self.items if item.path == FRAMEWORK]
        head = [
            "// Types and macros that stand for a framework's: numbers of the same bits that round alike.",
            "#pragma once",
            *(f"#include {name}" for name in headers_for(own, ())),
            "",
        ]
        # As device code sees them, which is how they were read: a host's compiler need not understand them.
        lines = [
            line if line.lstrip().startswith("#") else line.replace("__host__ __device__", "__device__")
            for part, _ in _laid_out(own)
            for line in part.split("\n")
        ]
        return "\n".join([*head, *lines]) + "\n"


@dataclass(frozen=True)
class StandIns:
    """Our own types and macros for a framework's."""

    items: tuple[FileItem, ...]
    macros: Mapping[str, Macro]

    @cached_property
    def names(self) -> frozenset[tuple[tuple[str, ...], str]]:
        return frozenset((_spaces(item), name) for item in self.items for name in item.names)


def stand_ins(sources: ReadSources) -> StandIns:
    items: list[FileItem] = []
    for file in sources.files:
        items += items_of(file, sources.macros, len(items))
    return StandIns(tuple(items), sources.macros)


class Slicer:
    """All declarations that a kernel's file sees, by name. `framework`: what stands for a framework's."""

    def __init__(self, sources: ReadSources, framework: StandIns) -> None:
        self._macros: Mapping[str, Macro] = {**framework.macros, **sources.macros}
        self._outside: tuple[Included, ...] = sources.outside
        self.items: list[FileItem] = list(framework.items)
        order = len(self.items)
        for file in sources.files:
            found = items_of(file, self._macros, order)
            order = found[-1].order + 1 if found else order
            self.items += (item for item in found if not _is_stood_for(item, framework))
        self._index: dict[str, list[FileItem]] = {}
        for item in self.items:
            for name in item.names:
                self._index.setdefault(name, []).append(item)
        self._namespaces = {part for item in self.items for part in item.scope}
        self._namespaces |= {item.name for item in self.items if _is_namespace_alias(item)}

    def named(self, name: str) -> list[FileItem]:
        """Everything of that name that device code could use."""
        return [item for item in self._index.get(name, ()) if self._is_device_code(item)]

    def kernels(self, name: str) -> list[FileItem]:
        """Definitions; "a::name" too."""
        *scope, last = name.removeprefix("::").split("::")
        found = [item for item in self._index.get(last, ()) if item.is_kernel and item.is_definition]
        return [item for item in found if not scope or [p for p in item.scope if p][-len(scope) :] == scope]

    def slice(
        self,
        kernel: FileItem,
        words: Iterable[str] = (),
        more: Iterable[FileItem] = (),
        gone: Collection[int] = (),
    ) -> KernelSlice:
        """`words`: names that the instantiation has, such as types and functions among template arguments;
        `more`: what a compiler misses; `gone`: declarations, by their order, that it can do without."""
        named = tuple(words)
        taken: dict[int, FileItem] = {}
        same = [
            item for item in self._index.get(kernel.name, ()) if item.is_kernel and item.scope == kernel.scope
        ]
        waiting = [kernel, *more, *(item for item in same if item.is_definition and item is not kernel)]
        for word in named:
            *qualifiers, name = word.split("::")
            waiting += self._meant(NameUse(name, tuple(qualifiers), 0, False), kernel)
        while waiting:
            item = waiting.pop()
            if item.order in taken or item.order in gone:
                continue
            taken[item.order] = item
            for use in uses_of(item):
                waiting += [one for one in self._meant(use, item) if one.order not in taken]
            if not waiting:
                waiting += [one for one in self._operators(taken) if one.order not in gone]
        items = sorted((*taken.values(), *self._using(taken.values())), key=lambda item: item.order)
        return KernelSlice(
            tuple(items),
            headers_for(items, self._outside, [part for word in named for part in word.split("::")]),
            kernel,
        )

    def _meant(self, use: NameUse, user: FileItem) -> list[FileItem]:
        found = [item for item in self._index.get(use.name, ()) if item is not user]
        if use.qualifiers and use.qualifiers != ("",):
            if use.qualifiers[-1] not in self._namespaces:
                return []
            found = [item for item in found if item.kind != "macro" and self._ends(item, use.qualifiers)]
        elif user.kind != "macro":
            visible = [item for item in found if item.kind == "macro" or _sees(user, item)]
            found = visible if use.name in user.names else visible or found
        if use.declared_here:
            found = [item for item in found if item.kind not in ("function", "variable")]
        found = [item for item in found if self._is_device_code(item)]
        ours = [item for item in found if item.path == FRAMEWORK]
        if user.path == FRAMEWORK:
            return ours or found
        own = [item for item in found if item.path != FRAMEWORK and not is_frameworks_own(item.path)]
        return own or ours or found

    def _ends(self, item: FileItem, qualifiers: tuple[str, ...]) -> bool:
        scope = tuple(part for part in item.scope if part)
        aliases = {alias.name: alias for alias in self.items if _is_namespace_alias(alias)}
        wanted = tuple(
            part
            for name in qualifiers
            if name
            for part in (_alias_target(aliases[name]) if name in aliases else (name,))
        )
        return scope[-len(wanted) :] == wanted

    def _is_device_code(self, item: FileItem) -> bool:
        if item.kind != "function" or item.path == FRAMEWORK:
            return True
        words = {token.text for token in item.tokens[: _head_length(item)]}
        for _ in range(_MACRO_DEPTH):
            if words & _DEVICE_WORDS:
                return True
            bodies = (self._macros[word].body for word in words if word in self._macros)
            words = {token.text for body in bodies for token in body}
        return False

    def _operators(self, taken: Mapping[int, FileItem]) -> Iterator[FileItem]:
        """Those whose operands are all known: nobody calls them by name."""
        records = {name for item in taken.values() if item.kind in ("record", "alias") for name in item.names}
        for item in self.items:
            open_one = item.operands and item.order not in taken and item.is_definition
            if open_one and records.intersection(item.operands) and self._is_device_code(item):
                yield item

    def _using(self, taken: Collection[FileItem]) -> Iterator[FileItem]:
        """`using namespace`, where something is in that namespace."""
        scopes = {tuple(part for part in item.scope if part) for item in taken}
        words = {token.text for item in taken for token in item.tokens}
        paths = {item.path for item in taken}
        for item in self.items:
            if item.kind == "using" and item.path in paths:
                names = tuple(token.text for token in item.tokens if token.kind == "word")[2:]
                system = names[:1] and names[0] in _SYSTEM_NAMESPACES and names[-1] in words
                if system or any(_has_part(scope, names) for scope in scopes):
                    yield item


def _is_stood_for(item: FileItem, framework: StandIns) -> bool:
    """Whether it is a framework's own declaration, read in its repository, of what we have types for."""
    if not is_frameworks_own(item.path):
        return False
    words = item.operands or item.names
    return not framework.names.isdisjoint((_spaces(item), word) for word in words)


def _spaces(item: FileItem) -> tuple[str, ...]:
    return tuple(part for part in item.scope if part)


def _head_length(item: FileItem) -> int:
    return next((at for at, token in enumerate(item.tokens) if token.text == "{"), len(item.tokens))


def _is_namespace_alias(item: FileItem) -> bool:
    return item.kind == "alias" and item.tokens[0].text == "namespace"


def _has_part(scope: tuple[str, ...], names: tuple[str, ...]) -> bool:
    return any(scope[at : at + len(names)] == names for at in range(len(scope)))


def _alias_target(item: FileItem) -> tuple[str, ...]:
    return tuple(token.text for token in item.tokens[3:] if token.kind == "word")


def _sees(user: FileItem, item: FileItem) -> bool:
    return user.scope[: len(item.scope)] == item.scope


def _laid_out(items: Sequence[FileItem]) -> Iterator[tuple[str, FileItem | None]]:
    """Declarations within their namespaces and conditions, line by line or several lines at once."""
    for (scope, guards), group in groupby(items, key=lambda item: (item.scope, item.guards)):
        yield from ((f"#if {guard}", None) for guard in guards)
        if scope:
            yield " ".join(f"namespace {name} {{" if name else "namespace {" for name in scope), None
            yield "", None
        for item in group:
            yield _without_gaps(item.text), item
            if item.kind != "macro" or "\n" in item.text:
                yield "", None
        if scope:
            names = "::".join(name for name in scope if name)
            yield "}" * len(scope) + (f"  // namespace {names}" if names else "  // namespace"), None
            yield "", None
        yield from (("#endif", None) for _ in guards)


def _without_gaps(text: str) -> str:
    """Without the empty lines that undone conditions leave."""
    lines: list[str] = []
    for line in text.split("\n"):
        clean = line.rstrip()
        if clean or (lines and lines[-1]):
            lines.append(clean)
    return "\n".join(lines).strip("\n")
