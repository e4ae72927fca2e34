"""A code object of AMD's, read as the ELF file it is: its kernels, what each uses, a digest of its code.

What a kernel needs stands in a note as MessagePack (LLVM, "User Guide for AMDGPU Backend", code object V3 and
later).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tunesmith.backends import elf
from tunesmith.backends.hip.architectures import (
    ARCHITECTURES,
    AmdArchitecture,
    groups_per_unit,
    occupancy_percent,
)
from tunesmith.backends.symbol_table import SymbolTable
from tunesmith.problem.codec import Malformed
from tunesmith.problem.device import Resources
from tunesmith.text import digest_of

_MOVED = struct.Struct("<QQq")
_RELATIVE = 13  # R_AMDGPU_RELATIVE64
_METADATA = 32  # NT_AMDGPU_METADATA
_RUNS = (".text", ".rodata", ".data", ".bss")  # what the running code consists of
TABLE = "tunesmith_entries"  # addresses of the kernels that are wanted, in their order


@dataclass(frozen=True)
class AmdKernel:
    symbol: str
    vgprs: int  # with accumulation registers, where they share a file
    sgprs: int
    spilled: int  # registers of both kinds
    private: int  # bytes of a thread's own memory
    shared: int
    most_threads: int
    wave: int
    parameters: tuple[int, ...]  # bytes of each that a caller gives


class CodeObject:
    def __init__(self, data: bytes) -> None:
        if not data.startswith(elf.HEAD):
            raise Malformed(f"not a code object: {len(data)} bytes beginning with {data[:6]!r}")
        try:
            self._sections = elf.read_sections(data)
            found_symbols = elf.read_symbols(self._sections, elf.SYMTAB, elf.DYNSYM)
            self._symbols = {symbol.name: symbol.value for symbol in found_symbols if symbol.name}
            found = self._metadata()
            self.target = str(found.get("amdhsa.target", "")).rpartition("-")[2].partition(":")[0]
            self.kernels = {k.symbol: k for k in map(_kernel, found.get("amdhsa.kernels", ()))}
        except (struct.error, IndexError, KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
            raise Malformed(f"a damaged code object: {error}") from error

    def code_digest(self) -> str:
        """Equal for equal code: names, notes and line tables are left out."""
        parts = [(one.name, one.data) for one in self._sections if one.name in _RUNS]
        used = sorted(repr(kernel).replace(kernel.symbol, "") for kernel in self.kernels.values())
        return digest_of(*(f"{name} {hashlib.sha256(data).hexdigest()}" for name, data in parts), *used)

    def listed(self, count: int) -> list[str]:
        """The kernels whose addresses stand in the table, in its order; empty where there is none."""
        start = self._symbols.get(TABLE)
        moved = {
            at: addend
            for one in self._sections
            if one.name.startswith(".rela")
            for at, info, addend in _MOVED.iter_unpack(one.data)
            if info & 0xFFFFFFFF == _RELATIVE
        }
        by_address = {self._symbols[name]: name for name in self.kernels if name in self._symbols}
        if start is None or any(start + 8 * n not in moved for n in range(count)):
            return []
        return [by_address.get(moved[start + 8 * number], "") for number in range(count)]

    def _metadata(self) -> Mapping[str, Any]:
        for one in self._sections:
            if one.name == ".note":
                for kind, content in _notes(one.data):
                    if kind == _METADATA:
                        return msgspec.msgpack.decode(content, type=dict[str, Any])
        raise ValueError("it has no note on its kernels")


def _notes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 12 <= len(data):
        name, length, kind = struct.unpack_from("<III", data, at)
        begin = at + 12 + -(-name // 4) * 4
        yield kind, data[begin : begin + length]
        at = begin + -(-length // 4) * 4


def _kernel(found: Mapping[str, Any]) -> AmdKernel:
    given = [arg for arg in found.get(".args", ()) if not str(arg[".value_kind"]).startswith("hidden_")]
    vgprs = int(found[".vgpr_count"])  # with those for accumulation, where they are of the same file
    return AmdKernel(
        symbol=str(found[".name"]),
        vgprs=vgprs,
        sgprs=int(found[".sgpr_count"]),
        spilled=int(found.get(".vgpr_spill_count", 0)) + int(found.get(".sgpr_spill_count", 0)),
        private=int(found[".private_segment_fixed_size"]),
        shared=int(found[".group_segment_fixed_size"]),
        most_threads=int(found[".max_flat_workgroup_size"]),
        wave=int(found[".wavefront_size"]),
        parameters=tuple(int(arg[".size"]) for arg in given),
    )


def resources_of(code: CodeObject, symbols: Mapping[str, str]) -> Resources:
    """Of the kernels wanted; the worst of several stands for all."""
    own = ARCHITECTURES.get(code.target)
    every = [(entry, _resources(code.kernels[symbol], own)) for entry, symbol in symbols.items()]
    if len(every) == 1:
        return every[0][1]
    parts = [found for _, found in every]
    return Resources(
        registers=_worst(max, [r.registers for r in parts]),
        shared=_worst(max, [r.shared for r in parts]),
        spills=_worst(max, [r.spills for r in parts]),
        private=_worst(max, [r.private for r in parts]),
        max_threads=_worst(min, [r.max_threads for r in parts]),
        by_entry=tuple(every),
    )


def _resources(kernel: AmdKernel, own: AmdArchitecture | None) -> Resources:
    return Resources(
        registers=kernel.vgprs,
        shared=kernel.shared,
        spills=4 * kernel.spilled,
        private=kernel.private,
        max_threads=kernel.most_threads if own is not None else None,
    )


def told(code: CodeObject, symbol: str, threads: int) -> str:
    """Registers, spills and occupancy of a kernel in blocks of so many threads, in words."""
    kernel, own = code.kernels[symbol], ARCHITECTURES.get(code.target)
    words = f"{kernel.vgprs} VGPRs, {kernel.sgprs} SGPRs, {kernel.spilled} of them spilled, "
    words += f"{kernel.shared} bytes of LDS, waves of {kernel.wave}"
    if own is None:
        return f"{code.target}: {words}"
    groups = groups_per_unit(own, threads, kernel.vgprs, kernel.sgprs, kernel.shared, kernel.wave)
    percent = occupancy_percent(own, threads, groups, kernel.wave)
    return f"{code.target}: {words}; {groups} blocks of {threads} threads on a compute unit, {percent} %"


def _worst(choose: Any, values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return choose(known) if known else None


# As our workers take it.
_PACKED = SymbolTable(b"TSHSACO1", "HIP")
pack, unpack = _PACKED.pack, _PACKED.unpack
