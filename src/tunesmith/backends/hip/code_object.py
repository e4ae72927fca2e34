"""A code object of AMD's, read as the ELF file it is: its kernels, what each uses, a digest of its code.

What a kernel needs stands in a note as MessagePack (LLVM, "User Guide for AMDGPU Backend", code object V3 and
later).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from tunesmith.backends import binaries
from tunesmith.backends.binaries import SymbolTable
from tunesmith.base.codec import Malformed
from tunesmith.base.text import digest_of
from tunesmith.problem.device import AllocationUnits, Limits, Resources

# Numbers are those of AMD's instruction set documents and of LLVM's AMDGPU target. CDNA's compute unit has
# four SIMDs and waves of 64; RDNA's has two, and waves of 32 unless a kernel is built for 64.
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class AmdArchitecture:
    name: str  # as compilers call it
    isa: int  # as the device libraries count it: 9402 for gfx942
    wave: int  # lanes, unless a kernel is built otherwise
    simds: int  # of a compute unit
    waves: int  # that a SIMD holds at most
    vgprs: int  # of a SIMD's lane, for waves of that width; CDNA's accumulation registers are among them
    vgpr_unit: int  # of which a wave gets whole ones
    lds: int  # bytes of a compute unit, and of a work-group at most
    lds_unit: int
    groups: int  # work-groups of more than one wave that a compute unit holds
    example: str  # the GPU that stands for it where only the architecture is named


ARCHITECTURES = {
    found.name: found
    for found in (
        # CDNA: from CDNA 2 on 512 VGPRs in units of 8, and 8 waves.
        AmdArchitecture("gfx908", 9008, 64, 4, 10, 256, 4, 64 * KIB, 512, 16, "MI100"),
        AmdArchitecture("gfx90a", 9010, 64, 4, 8, 512, 8, 64 * KIB, 512, 16, "MI250X"),
        AmdArchitecture("gfx942", 9402, 64, 4, 8, 512, 8, 64 * KIB, 512, 16, "MI300X"),
        AmdArchitecture("gfx950", 9500, 64, 4, 8, 512, 8, 160 * KIB, 1280, 16, "MI355X"),
        # RDNA: registers of waves of 32; gfx1100 has half as many again. From gfx10.3 on LDS is written down
        # in units of 512 bytes and given in units of 1024: Mesa's ac_gpu_info.c, lds_alloc_granularity.
        AmdArchitecture("gfx1030", 10300, 32, 2, 16, 1024, 16, 64 * KIB, 1024, 16, "RX 6900 XT"),
        AmdArchitecture("gfx1100", 11000, 32, 2, 16, 1536, 24, 64 * KIB, 1024, 16, "RX 7900 XTX"),
        AmdArchitecture("gfx1201", 12001, 32, 2, 16, 1536, 24, 64 * KIB, 1024, 16, "RX 9070 XT"),
    )
}


@dataclass(frozen=True)
class AmdGpu:
    name: str  # as the runtime calls it
    architecture: str
    units: int  # compute units
    llc: int  # MiB of the last-level cache
    memory: int  # GiB
    bandwidth: int  # GB/s


GPUS = {
    "MI100": AmdGpu("AMD Instinct MI100", "gfx908", 120, 8, 32, 1229),
    "MI250X": AmdGpu("AMD Instinct MI250X", "gfx90a", 110, 8, 64, 1638),  # one of its two dies: a device
    "MI300X": AmdGpu("AMD Instinct MI300X", "gfx942", 304, 256, 192, 5300),
    "MI355X": AmdGpu("AMD Instinct MI355X", "gfx950", 256, 256, 288, 8000),
    "RX 6900 XT": AmdGpu("AMD Radeon RX 6900 XT", "gfx1030", 80, 128, 16, 512),
    "RX 7900 XTX": AmdGpu("AMD Radeon RX 7900 XTX", "gfx1100", 96, 96, 24, 960),
    "RX 9070 XT": AmdGpu("AMD Radeon RX 9070 XT", "gfx1201", 64, 64, 16, 645),
}


@dataclass(frozen=True)
class AmdMemory:
    """The most that a GPU of an architecture has, of whatever name."""

    bandwidth: int  # GB/s
    llc: int  # MiB: the Infinity Cache where there is one, else L2


# From AMD's data sheets. The runtime says neither how many transfers a cycle of its clock has (two of HBM2,
# four of HBM3, sixteen of GDDR6) nor how large the Infinity Cache is.
MAX = {
    "gfx908": AmdMemory(1229, 8),
    "gfx90a": AmdMemory(1638, 8),
    "gfx942": AmdMemory(6000, 256),  # MI325X; MI300X has 5300
    "gfx950": AmdMemory(8000, 256),
    "gfx1030": AmdMemory(576, 128),  # RX 6950 XT
    "gfx1100": AmdMemory(960, 96),
    "gfx1201": AmdMemory(645, 64),
}


def limits_of(chip: AmdArchitecture, gpu: AmdGpu) -> Limits:
    """From the tables; a runtime that is asked says most of it itself."""
    memory = gpu.memory * GIB
    return Limits(
        max_threads=1024,
        max_block=(1024, 1024, 1024),
        max_grid=((1 << 31) - 1, 65535, 65535),
        shared=chip.lds,
        sms=gpu.units,
        warp=chip.wave,
        llc=gpu.llc * MIB,
        memory=memory,
        max_allocation=memory,
        alignment=256,
        pin_bandwidth=gpu.bandwidth * 1e9,
        registers_per_sm=chip.vgprs * chip.wave * chip.simds,
        shared_per_sm=chip.lds,
        threads_per_sm=chip.waves * chip.simds * chip.wave,
        blocks_per_sm=chip.groups,
        units=AllocationUnits(chip.lds_unit, chip.vgpr_unit * chip.wave, chip.simds),
    )


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


class _NotedArgument(msgspec.Struct, rename=lambda name: f".{name}"):
    size: int
    value_kind: str


class _NotedKernel(msgspec.Struct, rename=lambda name: f".{name}"):
    """As compilers write it down."""

    name: str
    vgpr_count: int  # with those for accumulation, where they are of the same file
    sgpr_count: int
    private_segment_fixed_size: int
    group_segment_fixed_size: int
    max_flat_workgroup_size: int
    wavefront_size: int
    vgpr_spill_count: int = 0
    sgpr_spill_count: int = 0
    args: tuple[_NotedArgument, ...] = ()


class _Metadata(msgspec.Struct, rename=lambda name: f"amdhsa.{name}"):
    kernels: tuple[_NotedKernel, ...] = ()
    target: str = ""


class CodeObject:
    def __init__(self, data: bytes) -> None:
        if not data.startswith(binaries.HEAD):
            raise Malformed(f"not a code object: {len(data)} bytes beginning with {data[:6]!r}")
        try:
            self._sections = binaries.read_sections(data)
            found_symbols = binaries.read_symbols(self._sections, binaries.SYMTAB, binaries.DYNSYM)
            self._symbols = {symbol.name: symbol.value for symbol in found_symbols if symbol.name}
            found = self._parse_metadata()
            self.target = found.target.rpartition("-")[2].partition(":")[0]
            self.kernels = {noted.name: _describe_noted_kernel(noted) for noted in found.kernels}
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

    def _parse_metadata(self) -> _Metadata:
        for one in self._sections:
            if one.name == ".note":
                for kind, content in _parse_notes(one.data):
                    if kind == _METADATA:
                        return msgspec.msgpack.decode(content, type=_Metadata)
        raise ValueError("it has no note on its kernels")


def _parse_notes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 12 <= len(data):
        name, length, kind = struct.unpack_from("<III", data, at)
        begin = at + 12 + -(-name // 4) * 4
        yield kind, data[begin : begin + length]
        at = begin + -(-length // 4) * 4


def _describe_noted_kernel(noted: _NotedKernel) -> AmdKernel:
    given = [arg.size for arg in noted.args if not arg.value_kind.startswith("hidden_")]
    return AmdKernel(
        symbol=noted.name,
        vgprs=noted.vgpr_count,
        sgprs=noted.sgpr_count,
        spilled=noted.vgpr_spill_count + noted.sgpr_spill_count,
        private=noted.private_segment_fixed_size,
        shared=noted.group_segment_fixed_size,
        most_threads=noted.max_flat_workgroup_size,
        wave=noted.wavefront_size,
        parameters=tuple(given),
    )


def resources_of(code: CodeObject, symbols: Mapping[str, str]) -> Resources:
    """Of the kernels wanted; the worst of several stands for all."""
    chip = ARCHITECTURES.get(code.target)
    every = tuple((entry, _amd_resources(code.kernels[symbol], chip)) for entry, symbol in symbols.items())
    return every[0][1] if len(every) == 1 else binaries.merge_resources(every)


def _amd_resources(kernel: AmdKernel, chip: AmdArchitecture | None) -> Resources:
    return Resources(
        registers=kernel.vgprs,
        shared=kernel.shared,
        spills=4 * kernel.spilled,
        private=kernel.private,
        max_threads=kernel.most_threads if chip is not None else None,
    )


# As our workers take it.
_PACKED = SymbolTable(b"TSHSACO1", "HIP")
pack, unpack = _PACKED.pack, _PACKED.unpack
