"""Shared memory of fixed sizes in a library for the host: where each array lies, and room between them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tunesmith.backends import elf

GAP = 64  # bytes behind each array, that belong to none
_THREAD_LOCAL = 6  # STT_TLS
_OURS = "__tunesmith"
_SECTION = re.compile(r"\s*\.(?:section\s+(\S+?)(?:,.*)?|(text|data|bss|tbss)\b.*)")
_ROOM = re.compile(r"\s*\.zero\s+\d+\s*")
_INSIDE = re.compile(r"E(\d+)(\w+)$")  # of a mangled name: what stands last, within a function


@dataclass(frozen=True)
class SharedArray:
    start: int  # in thread-local memory
    nbytes: int
    name: str  # as the compiler has it

    @property
    def title(self) -> str:
        """With the user's own name, as far as it can be read."""
        for found in (_INSIDE.search(self.name), re.search(r"^_ZL?(\d+)(\w+)$", self.name)):
            if found is not None and len(found[2]) >= int(found[1]):
                return f"the shared array {found[2][: int(found[1])]}"
        return "a shared array"


def apart(assembly: str) -> str:
    """An assembly with room behind everything that is thread local."""
    lines, inside = list[str](), False
    for line in assembly.split("\n"):
        if (found := _SECTION.fullmatch(line)) is not None:
            name = found[1] or f".{found[2]}"
            inside = name.strip('"').startswith(".tbss")
        lines.append(line)
        if inside and _ROOM.fullmatch(line):
            lines.append(f"\t.zero\t{GAP}")
    return "\n".join(lines)


def shared_arrays(library: bytes) -> tuple[SharedArray, ...]:
    """Of a library that is not stripped."""
    found = {
        SharedArray(symbol.value, symbol.size, symbol.name)
        for symbol in elf.read_symbols(elf.read_sections(library), elf.SYMTAB)
        if symbol.type == _THREAD_LOCAL and symbol.size and symbol.section and _OURS not in symbol.name
    }
    return tuple(sorted(found, key=lambda one: one.start))
