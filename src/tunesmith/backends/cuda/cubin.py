"""A cubin read as the ELF file it is: its kernels, what each uses, and a digest of the code alone.

NVIDIA documents neither sections nor attributes; what is read here is held against ptxas' own words by the
tests, for every architecture that NVRTC builds for.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.backends import elf
from tunesmith.backends.elf import ElfSection
from tunesmith.problem.codec import Malformed
from tunesmith.problem.device import Limits, Resources, registers_per_block
from tunesmith.text import digest_of

# Attributes in .nv.info sections.
PARAM_CBANK, EXTERNS, MAX_THREADS, REQUIRED_THREADS = 0x0A, 0x0F, 0x05, 0x10
FRAME_SIZE, PARAMETER, REGISTERS = 0x11, 0x17, 0x2F
# Their values count symbols, which differ where nothing but a name does.
_BY_SYMBOL = (PARAM_CBANK, EXTERNS)
_SIZED = 4  # the format of an attribute whose value has a length of its own

_FUNCTION, _KERNEL = 2, 0x10  # a symbol's type, and the bit in st_other that makes a function a kernel
_RELOCATIONS = {4: struct.Struct("<QQq"), 9: struct.Struct("<QQ")}  # SHT_RELA, SHT_REL
# From sm_90 on a block's shared memory begins with what the system keeps for itself.
_RESERVED_SECTION, _RESERVED = ".nv.shared.reserved.0", 1024
_RUNS = (".text.", ".nv.constant", ".nv.global", ".nv.shared.")  # sections that the running code consists of
_SOURCE_NAME = re.compile(rb"[\w./+@-]{1,200}\.(?:cuh?|py|cc|cpp|cxx|hpp|hxx|inl|h)(?=\0)")


@dataclass(frozen=True)
class CubinKernel:
    symbol: str
    registers: int
    shared: int  # static, bytes
    frame: int  # bytes of local memory, spilled registers included
    parameters: tuple[int, ...]  # bytes of each
    max_block: tuple[int, ...] | None  # of __launch_bounds__
    required_block: tuple[int, ...] | None


class Cubin:
    def __init__(self, data: bytes) -> None:
        if not data.startswith(elf.HEAD):
            raise Malformed(f"not a cubin: {len(data)} bytes beginning with {data[:6]!r}")
        try:
            self._sections = elf.read_sections(data)
            self._symbols = tuple(elf.read_symbols(self._sections, elf.SYMTAB))
            self.kernels = {k.symbol: k for k in self._read_kernels()}
        except (struct.error, IndexError, OverflowError, ValueError) as error:
            raise Malformed(f"a damaged cubin: {error}") from error

    def code_digest(self, symbols: Sequence[str]) -> str:
        """Equal for equal code, launched with these kernels in this order. Names, paths, line tables and
        notes are left out; a symbol that code refers to is known by what lies behind it."""
        entries = [self.kernel_digest(symbol) for symbol in symbols]
        others = sorted(self.kernel_digest(name) for name in self.kernels.keys() - set(symbols))
        of_kernels = {s.number for name in self.kernels for s in self._of_kernel(name)}
        rest = [s for s in self._sections if s.name.startswith(_RUNS) and s.number not in of_kernels]
        return digest_of(*entries, "others", *others, "rest", *sorted(map(self._section_digest, rest)))

    def source_names(self) -> tuple[str, ...]:
        """Files that its line tables name, in their order; none where it was built without any."""
        tables = (s.data for s in self._sections if s.name.startswith((".debug_line", ".debug_str")))
        found = (match.group().decode() for table in tables for match in _SOURCE_NAME.finditer(table))
        return tuple(dict.fromkeys(found))

    def kernel_digest(self, symbol: str) -> str:
        """Of one kernel's code and what it refers to, without the others of its module."""
        parts = [self._section_digest(s, s.name.removesuffix(symbol)) for s in self._of_kernel(symbol)]
        # The order of sections, and of attributes within one, follows names.
        attributes = sorted(repr(a) for a in self._attributes(symbol) if a[0] not in _BY_SYMBOL)
        kernel = self.kernels[symbol]
        return digest_of(*sorted(parts), repr((kernel.registers, kernel.frame, attributes)))

    def _section_digest(self, section: ElfSection, kind: str = "") -> str:
        moved = sorted(
            repr(relocation)
            for other in self._sections
            if other.type in _RELOCATIONS and other.target == section.number
            for relocation in self._relocations(other)
        )
        return digest_of(kind, self._content(section), repr(moved))

    def _relocations(self, section: ElfSection) -> Iterator[tuple[int, int, int, str]]:
        form = _RELOCATIONS[section.type]
        for offset, info, *addend in form.iter_unpack(section.data):
            yield offset, info & 0xFFFFFFFF, addend[0] if addend else 0, self._meaning(info >> 32)

    def _meaning(self, symbol: int) -> str:
        target = self._symbols[symbol]
        if not 0 < target.section < len(self._sections):
            return target.name  # defined elsewhere: by the driver, or not at all
        return digest_of(self._content(self._sections[target.section]), repr(target.value))

    @staticmethod
    def _content(section: ElfSection) -> str:
        return digest_of(repr((section.size, section.alignment)), section.data)

    def _of_kernel(self, symbol: str) -> Iterator[ElfSection]:
        ending = f".{symbol}"
        for section in self._sections:
            prefix = section.name.removesuffix(ending)
            is_own = prefix in (".text", ".nv.shared") or prefix.startswith(".nv.constant")
            if section.name.endswith(ending) and is_own:
                yield section

    def _read_kernels(self) -> Iterator[CubinKernel]:
        registers, frames = self._by_symbol(REGISTERS), self._by_symbol(FRAME_SIZE)
        reserved = _RESERVED if any(s.name == _RESERVED_SECTION for s in self._sections) else 0
        for number, symbol in enumerate(self._symbols):
            if symbol.type != _FUNCTION or not symbol.other & _KERNEL:
                continue
            attributes: dict[int, list[bytes]] = {}
            for kind, value in self._attributes(symbol.name):
                attributes.setdefault(kind, []).append(value)
            parameters = [struct.unpack("<IHHI", value) for value in attributes.get(PARAMETER, ())]
            shared = sum(s.size for s in self._sections if s.name == f".nv.shared.{symbol.name}")
            if number not in registers:  # older compilers put it into the header of the code's section
                registers[number] = self._sections[symbol.section].target >> 24
            yield CubinKernel(
                symbol=symbol.name,
                registers=registers[number],
                shared=max(0, shared - reserved),
                frame=frames.get(number, 0),
                parameters=tuple(size >> 18 for _, _, _, size in sorted(parameters, key=lambda p: p[1])),
                max_block=_block(attributes.get(MAX_THREADS)),
                required_block=_block(attributes.get(REQUIRED_THREADS)),
            )

    def _by_symbol(self, kind: int) -> dict[int, int]:
        """An attribute of the whole file that holds one number for each of some functions."""
        pairs = (struct.unpack("<II", value) for found, value in self._attributes("") if found == kind)
        return dict(pairs)

    def _attributes(self, symbol: str) -> Iterator[tuple[int, bytes]]:
        name = f".nv.info.{symbol}".rstrip(".")
        for section in self._sections:
            if section.name == name:
                yield from _read_attributes(section.data)


def _read_attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        form, kind, short = struct.unpack_from("<BBH", data, at)
        size = short if form == _SIZED else 0
        yield kind, data[at + 4 : at + 4 + size] if form == _SIZED else data[at + 2 : at + 4]
        at += 4 + size


def _block(values: list[bytes] | None) -> tuple[int, ...] | None:
    return struct.unpack("<III", values[0]) if values else None


_PROPERTIES = re.compile(
    r"Function properties for (\S+)\s+(?:ptxas\s+\.\s+)?"
    r"\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
# A remark with a number is not chatter: (C7508) Potential Performance Loss.
_CHATTER = re.compile(
    r"^ptxas info\s+: (?!\(C\d+\)).*\n?|^ptxas\s+\..*\n?|^ +\d+ bytes stack frame,.*\n?", re.MULTILINE
)


def resources_of(cubin: Cubin, symbols: Mapping[str, str], log: str, limits: Limits) -> Resources:
    """Spills of a kernel that the log does not mention are not known: a compiler that takes the code from its
    cache says nothing."""
    spilled = spills(log)
    # A function that is not inlined is some kernel's, nobody says whose.
    shared_out = sum(count for name, count in spilled.items() if name not in cubin.kernels)
    own = {symbol: count + shared_out for symbol, count in spilled.items()}
    by_entry = tuple(
        (entry, _of_kernel(cubin.kernels[symbol], own.get(symbol), limits))
        for entry, symbol in symbols.items()
    )
    every = [resources for _, resources in by_entry]
    return Resources(
        registers=_most(r.registers for r in every),
        shared=_most(r.shared for r in every),
        spills=_most(r.spills for r in every),
        private=_most(r.private for r in every),
        max_threads=min((r.max_threads for r in every if r.max_threads is not None), default=None),
        by_entry=by_entry,
    )


def spills(log: str) -> dict[str, int]:
    """Bytes stored and loaded again for want of registers, by symbol."""
    return {name: int(stores) + int(loads) for name, stores, loads in _PROPERTIES.findall(log)}


def without_chatter(log: str) -> str:
    """What is left when ptxas' account of every function is taken out: warnings and errors."""
    return _CHATTER.sub("", log).strip()


def _of_kernel(kernel: CubinKernel, spilled: int | None, limits: Limits) -> Resources:
    bounds = [math.prod(block) for block in (kernel.max_block, kernel.required_block) if block]
    threads = limits.max_threads
    if room := limits.registers_per_block:
        while threads > limits.warp and registers_per_block(limits, kernel.registers, threads) > room:
            threads -= limits.warp
    most = min([threads, *bounds])
    return Resources(kernel.registers, kernel.shared, spilled, kernel.frame, max_threads=most)


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
