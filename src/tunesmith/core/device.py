"""A device and its limits, and what a compiler says a built kernel uses."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from tunesmith.core.digest import digest_of


@dataclass(frozen=True)
class AllocationUnits:
    """In what units a multiprocessor hands out registers and shared memory; its backend knows."""

    shared: int  # bytes, of which a block takes whole ones
    registers: int = 256  # what a warp's registers are rounded up to
    partitions: int = 4  # of a multiprocessor, each with its part of the registers; a warp lives in one


@dataclass(frozen=True)
class Limits:
    """Hardware limits. Expressions see the integers among them as `device.<name>`."""

    max_threads: int  # per block
    max_block: tuple[int, int, int]
    max_grid: tuple[int, int, int]
    shared: int  # bytes of shared / local memory per block
    sms: int  # multiprocessors / compute units
    warp: int
    llc: int  # bytes of last-level cache; 0 when unknown
    memory: int
    max_allocation: int
    alignment: int  # bytes; every buffer a caller can hand over starts at a multiple of it
    pin_bandwidth: float | None = None  # bytes per second that no kernel can exceed
    # What occupancy is computed from; 0 where the device does not say.
    capability: int = 0  # 90 for sm_90
    registers_per_block: int = 0
    registers_per_sm: int = 0
    shared_per_sm: int = 0
    shared_reserved: int = 0  # bytes of shared memory the system takes from every block
    threads_per_sm: int = 0
    blocks_per_sm: int = 0
    units: AllocationUnits | None = None  # None: an NVIDIA device in a journal of an earlier version

    def names(self) -> dict[str, int]:
        return {f"device.{f.name}": v for f in fields(self) if type(v := getattr(self, f.name)) is int}


# What expressions may mention before any device is chosen.
DEVICE_NAMES = tuple(f"device.{f.name}" for f in fields(Limits) if f.type == "int")


@dataclass(frozen=True)
class Device:
    backend: str
    id: str
    name: str
    platform: str
    driver: str
    kind: Literal["cpu", "gpu", "simulated"]
    limits: Limits
    finishes_compiling_at_launch: bool = False
    absent: bool = False  # described from a table; nothing here can run on it
    inspects: bool = False  # fills and compares its memory by itself, where no kernel reaches the judge

    @property
    def key(self) -> str:
        """Identity for runs and caches: the same chip, as large as it was, behind the same driver."""
        limits = self.limits
        size = repr((limits.sms, limits.llc, limits.max_threads, limits.shared, limits.warp))
        return digest_of(self.backend, self.platform, self.name, self.driver, size)

    @property
    def is_host(self) -> bool:
        """Kernels run on the cores that builds would use, so the two must take turns."""
        return self.kind == "cpu"


@dataclass(frozen=True)
class Resources:
    """What one built kernel uses; None means the compiler did not say."""

    registers: int | None = None
    shared: int | None = None
    spills: int | None = None
    private: int | None = None
    occupancy: int | None = None  # per cent
    blocks_per_sm: int | None = None
    max_threads: int | None = None  # largest block this kernel can be launched with
    by_entry: tuple[tuple[str, Resources], ...] = ()  # each kernel of several; the fields above are the worst

    def names(self) -> dict[str, int]:
        return {f"resources.{name}": v for name in _COUNTS if (v := getattr(self, name)) is not None}

    def of(self, entry: str) -> Resources:
        """What that kernel alone uses."""
        return dict(self.by_entry).get(entry, self)


_COUNTS = tuple(f.name for f in fields(Resources) if f.name != "by_entry")
RESOURCE_NAMES = tuple(f"resources.{name}" for name in _COUNTS)
