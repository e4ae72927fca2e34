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

from tunesmith.backends.hip.architectures import (
    ARCHITECTURES,
    AmdArchitecture,
    groups_per_unit,
    occupancy_percent,
)
from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.problem.device import Resources
from tunesmith.text import digest_of

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_MOVED = struct.Struct("<QQq")
_RELATIVE = 13  # R_AMDGPU_RELATIVE64
_METADATA = 32  # NT_AMDGPU_METADATA
_SYMBOLS, _NO_DATA = (2, 11), 8  # SHT_SYMTAB and SHT_DYNSYM, SHT_NOBITS
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
        if data[:6] != b"\x7fELF\x02\x01":
            raise Malformed(f"not a code object: {len(data)} bytes beginning with {data[:6]!r}")
        try:
            self._sections = tuple(_sections(data))
            self._symbols = {name: place for name, place in self._read_symbols() if name}
            found = self._metadata()
            self.target = str(found.get("amdhsa.target", "")).rpartition("-")[2].partition(":")[0]
            self.kernels = {k.symbol: k for k in map(_kernel, found.get("amdhsa.kernels", ()))}
        except (struct.error, IndexError, KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
            raise Malformed(f"a damaged code object: {error}") from error

    def code_digest(self) -> str:
        """Equal for equal code: names, notes and line tables are left out."""
        parts = [(name, data) for name, _, _, data, _ in self._sections if name in _RUNS]
        used = sorted(repr(kernel).replace(kernel.symbol, "") for kernel in self.kernels.values())
        return digest_of(*(f"{name} {hashlib.sha256(data).hexdigest()}" for name, data in parts), *used)

    def listed(self, count: int) -> list[str]:
        """The kernels whose addresses stand in the table, in its order; empty where there is none."""
        start = self._symbols.get(TABLE)
        moved = {
            at: addend
            for name, _, _, data, _ in self._sections
            if name.startswith(".rela")
            for at, info, addend in _MOVED.iter_unpack(data)
            if info & 0xFFFFFFFF == _RELATIVE
        }
        by_address = {self._symbols[name]: name for name in self.kernels if name in self._symbols}
        if start is None or any(start + 8 * n not in moved for n in range(count)):
            return []
        return [by_address.get(moved[start + 8 * number], "") for number in range(count)]

    def _read_symbols(self) -> Iterator[tuple[str, int]]:
        for _, kind, link, data, _ in self._sections:
            if kind in _SYMBOLS:
                names = self._sections[link][3]
                for name, _, _, _, value, _ in _SYMBOL.iter_unpack(data):
                    yield _string(names, name), value

    def _metadata(self) -> Mapping[str, Any]:
        for name, _, _, data, _ in self._sections:
            if name == ".note":
                for kind, content in _notes(data):
                    if kind == _METADATA:
                        return msgspec.msgpack.decode(content, type=dict[str, Any])
        raise ValueError("it has no note on its kernels")


def _sections(data: bytes) -> Iterator[tuple[str, int, int, bytes, int]]:
    """Name, type, link, content and address of each."""
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", data, 0x3A)
    heads = [_SECTION.unpack_from(data, start + number * size) for number in range(count)]
    names = data[heads[names_at][4] :][: heads[names_at][5]]
    for name, kind, _, address, offset, length, link, _, _, _ in heads:
        content = bytes(0) if kind == _NO_DATA else data[offset : offset + length]
        yield _string(names, name), kind, link, content, address


def _string(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode(errors="replace")


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


# -- as our workers take it ---------------------------------------------------------------------------

MAGIC = b"TSHSACO1"
_DIGEST_END = len(MAGIC) + 32
_TABLE_START = _DIGEST_END + 4


def pack(symbols: Mapping[str, str], code: bytes) -> bytes:
    table = encode(dict(symbols))
    rest = struct.pack("<I", len(table)) + table + code
    return MAGIC + hashlib.sha256(rest).digest() + rest


def unpack(data: bytes) -> tuple[dict[str, str], bytes]:
    """The symbol of each entry, and the code object; Malformed where a byte is not what was packed."""
    if not data.startswith(MAGIC) or len(data) < _TABLE_START:
        raise Malformed(f"not a HIP binary of Tunesmith's: {len(data)} bytes beginning with {data[:8]!r}")
    if hashlib.sha256(data[_DIGEST_END:]).digest() != data[len(MAGIC) : _DIGEST_END]:
        raise Malformed(f"a damaged HIP binary: {len(data)} bytes that do not have their own digest")
    end = _TABLE_START + int.from_bytes(data[_DIGEST_END:_TABLE_START], "little")
    return decode(data[_TABLE_START:end], dict[str, str]), data[end:]
