"""Entries by name: what a compiler made of them, and how a build carries their symbols to whoever loads it.

An entry is written as in C++, `silu_and_mul<__half>`; the driver knows it by its mangled symbol alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed
from tunesmith.backends.symbol_table import SymbolTable

# As C++ names a function: a::b<float, 4>, static_cast<void (*)(int*)>(f). Nothing that could end a line,
# a list or a literal, because it is put into a source.
_ALLOWED = re.compile(r"[\w:<>,*&() .+-]+", re.ASCII)
_DEFINED = re.compile(
    r"__global__(?:\s+(?:static|inline|void|__\w+__(?:\s*\((?:[^()]|\([^()]*\))*\))?))*\s+(\w+)\s*\("
)


@dataclass(frozen=True)
class Compiled:
    cubin: bytes
    symbols: dict[str, str]  # entry -> the kernel's symbol
    log: str
    ptx: bytes = b""  # instead of the cubin, where the architecture is a virtual one


class Refused(Exception):
    """A compiler's refusal. `names` is the file in which it finds fault with the entries: the number of one
    is its line, counted from `first`."""

    def __init__(self, log: str, names: str, first: int) -> None:
        super().__init__(log)
        self.log = log
        self.names = names
        self.first = first


def check_entries(unit: Unit) -> None:
    for entry in unit.entries:
        if not _ALLOWED.fullmatch(entry):
            raise BuildFailed(f"an entry is the name of a kernel as in C++, got {entry!r}")


def entry_fault(unit: Unit, refused: Refused) -> str | None:
    """What is wrong with an entry's name, where nothing else is."""
    found = re.findall(r"^(\S+)\((\d+)\): (?:catastrophic )?error: (.*)$", refused.log, re.MULTILINE)
    if not found or any(file != refused.names for file, _, _ in found):
        return None
    _, line, words = found[0]
    number = int(line) - refused.first
    entry = unit.entries[number] if 0 <= number < len(unit.entries) else ", ".join(unit.entries)
    if (quoted := re.search(r'name expression was: "([^"]*)"', refused.log)) is not None:
        # NVRTC spaces it out: " a :: k < 4 >". That tells more than a line whose number it does not promise.
        entry = {e.replace(" ", ""): e for e in unit.entries}.get(quoted[1].replace(" ", ""), entry)
    return no_such_kernel(unit, entry, words)


def no_such_kernel(unit: Unit, entry: str, words: str) -> str:
    names = dict.fromkeys(_DEFINED.findall(unit.source))
    defined = f"it defines {', '.join(names)}" if names else "it defines none that a look at its text finds"
    return f"{unit.path} has no kernel called {entry!r} ({words}); {defined}"


MAGIC = b"TSCUBIN1"
_PACKED = SymbolTable(MAGIC, "CUDA")
pack, unpack = _PACKED.pack, _PACKED.unpack
