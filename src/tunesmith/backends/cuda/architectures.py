"""NVIDIA's GPUs from their data sheets: what a device that is not here can do, so that kernels can be built.

Where a driver can be asked, it is: these numbers only stand in for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tunesmith.errors import BadInput
from tunesmith.problem.device import AllocationUnits, Device, Limits

PLATFORM = "NVIDIA CUDA"
KIB, MIB, GB = 1 << 10, 1 << 20, 10**9
REGISTERS = 65536
DEFAULT = "H200"


@dataclass(frozen=True)
class Architecture:
    """What all GPUs of one compute capability have in common."""

    shared: int  # KiB of shared memory per block, when asked for
    shared_per_sm: int  # KiB
    shared_reserved: int  # KiB the system takes from every block
    threads_per_sm: int
    blocks_per_sm: int
    example: str  # the GPU that stands for it where only the capability is named


@dataclass(frozen=True)
class Gpu:
    name: str  # as the driver calls it
    capability: int
    sms: int
    llc: int  # MiB of L2 cache
    memory: int  # GB
    bandwidth: int  # GB/s


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
ARCHITECTURES = {
    75: Architecture(64, 64, 0, 1024, 16, "T4"),
    80: Architecture(163, 164, 1, 2048, 32, "A100"),
    86: Architecture(99, 100, 1, 1536, 16, "A10"),
    87: Architecture(163, 164, 1, 1536, 16, "Orin"),
    89: Architecture(99, 100, 1, 1536, 24, "L40S"),
    90: Architecture(227, 228, 1, 2048, 32, "H200"),
    100: Architecture(227, 228, 1, 2048, 32, "B200"),
    103: Architecture(227, 228, 1, 2048, 32, "B300"),
    120: Architecture(99, 100, 1, 1536, 24, "RTX 5090"),
    121: Architecture(99, 100, 1, 1536, 24, "GB10"),
}

GPUS = {
    "T4": Gpu("Tesla T4", 75, 40, 4, 16, 320),
    "A100": Gpu("NVIDIA A100-SXM4-80GB", 80, 108, 40, 80, 2039),
    "A10": Gpu("NVIDIA A10", 86, 72, 6, 24, 600),
    "Orin": Gpu("Orin", 87, 16, 4, 64, 204),
    "L4": Gpu("NVIDIA L4", 89, 58, 48, 24, 300),
    "L40S": Gpu("NVIDIA L40S", 89, 142, 96, 48, 864),
    "RTX 4090": Gpu("NVIDIA GeForce RTX 4090", 89, 128, 72, 24, 1008),
    "H100": Gpu("NVIDIA H100 80GB HBM3", 90, 132, 50, 80, 3350),
    "H200": Gpu("NVIDIA H200", 90, 132, 50, 141, 4800),
    "GH200": Gpu("NVIDIA GH200 480GB", 90, 132, 50, 96, 4000),
    "B200": Gpu("NVIDIA B200", 100, 148, 126, 180, 8000),
    "B300": Gpu("NVIDIA B300", 103, 148, 126, 270, 8000),
    "RTX 5090": Gpu("NVIDIA GeForce RTX 5090", 120, 170, 96, 32, 1792),
    "GB10": Gpu("NVIDIA GB10", 121, 48, 24, 128, 273),
}

_CAPABILITY = re.compile(r"(?:sm_?|compute_?)?(\d{2,3})[af]?|(\d{1,2})\.(\d)")


def absent_device(wanted: str | None) -> Device:
    """A GPU by name ("H200", "nvidia h200") or by its architecture ("sm_90", "90"); None: the usual one."""
    text = DEFAULT if wanted is None else wanted
    capability = _capability(text)
    if capability is not None:
        return _device(f"sm_{capability}", GPUS[ARCHITECTURES[capability].example])
    short = _by_name(text)
    if short is None:
        raise BadInput(
            f"no CUDA device is here, and none is known as {text!r}",
            hint=f"write one of {', '.join(GPUS)}, or {', '.join(f'sm_{n}' for n in ARCHITECTURES)}",
        )
    return _device(short, GPUS[short])


def _capability(text: str) -> int | None:
    number = capability_named(text)
    return number if number in ARCHITECTURES else None


def capability_named(text: str) -> int | None:
    """90 for "sm_90", "sm_90a", "90" and "9.0", whether such GPUs are known or not."""
    found = _CAPABILITY.fullmatch(text.strip().lower())
    return int(found[1] or found[2] + found[3]) if found else None


def allocation_units(capability: int) -> AllocationUnits:
    """By the rules of NVIDIA's occupancy calculator."""
    return AllocationUnits(shared=128 if capability >= 80 else 256)


def _by_name(text: str) -> str | None:
    wanted = _plain(text)
    return next((s for s, gpu in GPUS.items() if wanted and wanted in (_plain(s), _plain(gpu.name))), None)


def _plain(name: str) -> str:
    """Without what people leave out: the maker, the family, blanks and dashes."""
    return re.sub(r"nvidia|geforce|tesla|rtx|[^a-z0-9]", "", name.lower())


def _device(short: str, gpu: Gpu) -> Device:
    architecture = ARCHITECTURES[gpu.capability]
    return Device(
        backend="cuda",
        id=f"absent:{short}",
        name=gpu.name,
        platform=PLATFORM,
        driver="",
        kind="gpu",
        absent=True,
        inspects=True,
        limits=Limits(
            max_threads=1024,
            max_block=(1024, 1024, 64),
            max_grid=((1 << 31) - 1, 65535, 65535),
            shared=architecture.shared * KIB,
            sms=gpu.sms,
            warp=32,
            llc=gpu.llc * MIB,
            memory=gpu.memory * GB,
            max_allocation=gpu.memory * GB,
            alignment=1,
            pin_bandwidth=gpu.bandwidth * 1e9,
            capability=gpu.capability,
            registers_per_block=REGISTERS,
            registers_per_sm=REGISTERS,
            shared_per_sm=architecture.shared_per_sm * KIB,
            shared_reserved=architecture.shared_reserved * KIB,
            threads_per_sm=architecture.threads_per_sm,
            blocks_per_sm=architecture.blocks_per_sm,
            units=allocation_units(gpu.capability),
        ),
    )
