"""AMD's architectures: what a compute unit of each has, and how many waves of a kernel it holds.

Numbers are those of AMD's instruction set documents and of LLVM's AMDGPU target. CDNA's compute unit has four
SIMDs and waves of 64; RDNA's has two, and waves of 32 unless a kernel is built for 64.
"""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.problem.device import AllocationUnits, Limits

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
    most_vgprs: int  # that a wave may have
    sgprs: int  # of a SIMD; 0: every wave has its own, and they limit nothing
    sgpr_unit: int
    lds: int  # bytes of a compute unit, and of a work-group at most
    lds_unit: int
    groups: int  # work-groups of more than one wave that a compute unit holds
    example: str  # the GPU that stands for it where only the architecture is named


ARCHITECTURES = {
    found.name: found
    for found in (
        # CDNA: 800 SGPRs a SIMD in units of 16; from CDNA 2 on 512 VGPRs in units of 8, and 8 waves.
        AmdArchitecture("gfx908", 9008, 64, 4, 10, 256, 4, 256, 800, 16, 64 * KIB, 512, 16, "MI100"),
        AmdArchitecture("gfx90a", 9010, 64, 4, 8, 512, 8, 512, 800, 16, 64 * KIB, 512, 16, "MI250X"),
        AmdArchitecture("gfx942", 9402, 64, 4, 8, 512, 8, 512, 800, 16, 64 * KIB, 512, 16, "MI300X"),
        AmdArchitecture("gfx950", 9500, 64, 4, 8, 512, 8, 512, 800, 16, 160 * KIB, 1280, 16, "MI355X"),
        # RDNA: registers of waves of 32; gfx1100 has half as many again. From gfx10.3 on LDS is written down
        # in units of 512 bytes and given in units of 1024: Mesa's ac_gpu_info.c, lds_alloc_granularity.
        AmdArchitecture("gfx1030", 10300, 32, 2, 16, 1024, 16, 256, 0, 0, 64 * KIB, 1024, 16, "RX 6900 XT"),
        AmdArchitecture("gfx1100", 11000, 32, 2, 16, 1536, 24, 256, 0, 0, 64 * KIB, 1024, 16, "RX 7900 XTX"),
        AmdArchitecture("gfx1201", 12001, 32, 2, 16, 1536, 24, 256, 0, 0, 64 * KIB, 1024, 16, "RX 9070 XT"),
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
MOST = {
    "gfx908": AmdMemory(1229, 8),
    "gfx90a": AmdMemory(1638, 8),
    "gfx942": AmdMemory(6000, 256),  # MI325X; MI300X has 5300
    "gfx950": AmdMemory(8000, 256),
    "gfx1030": AmdMemory(576, 128),  # RX 6950 XT
    "gfx1100": AmdMemory(960, 96),
    "gfx1201": AmdMemory(645, 64),
}


def limits_of(own: AmdArchitecture, gpu: AmdGpu) -> Limits:
    """From the tables; a runtime that is asked says most of it itself."""
    memory = gpu.memory * GIB
    return Limits(
        max_threads=1024,
        max_block=(1024, 1024, 1024),
        max_grid=((1 << 31) - 1, 65535, 65535),
        shared=own.lds,
        sms=gpu.units,
        warp=own.wave,
        llc=gpu.llc * MIB,
        memory=memory,
        max_allocation=memory,
        alignment=256,
        pin_bandwidth=gpu.bandwidth * 1e9,
        registers_per_sm=own.vgprs * own.wave * own.simds,
        shared_per_sm=own.lds,
        threads_per_sm=own.waves * own.simds * own.wave,
        blocks_per_sm=own.groups,
        units=AllocationUnits(own.lds_unit, own.vgpr_unit * own.wave, own.simds),
    )


def waves_per_simd(own: AmdArchitecture, vgprs: int, sgprs: int = 0, wave: int = 0) -> int:
    """Waves with so many registers that a SIMD holds at once. `vgprs` are all that a wave was given, with
    accumulation registers where they share the file."""
    width = wave or own.wave
    # A SIMD's registers are as many bytes whatever the waves: of double width there are half as many.
    file, unit = own.vgprs * own.wave // width, max(own.vgpr_unit * own.wave // width, 1)
    held = min(own.waves, file // _rounded(max(vgprs, 1), unit))
    if own.sgprs and sgprs:
        held = min(held, own.sgprs // _rounded(sgprs, own.sgpr_unit))
    return held


def groups_per_unit(
    own: AmdArchitecture, threads: int, vgprs: int, sgprs: int = 0, lds: int = 0, wave: int = 0
) -> int:
    """Work-groups of so many threads that a compute unit holds at once. A group of one wave needs no barrier,
    and is not counted among those that do."""
    waves = -(-threads // (wave or own.wave))
    room = waves_per_simd(own, vgprs, sgprs, wave) * own.simds // waves
    if waves > 1:
        room = min(room, own.groups)
    return min(room, own.lds // _rounded(lds, own.lds_unit)) if lds else room


def occupancy_percent(own: AmdArchitecture, threads: int, groups: int, wave: int = 0) -> int:
    """Of the waves that a compute unit has room for, rounded down."""
    waves = -(-threads // (wave or own.wave))
    return 100 * groups * waves // (own.waves * own.simds)


def _rounded(value: int, unit: int) -> int:
    return -(-value // unit) * unit
