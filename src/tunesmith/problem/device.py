"""A device and its limits, and what a compiler says a built kernel uses."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import Literal

from tunesmith.base.errors import BadInput
from tunesmith.base.text import digest_of


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
    untimed: bool = False  # kernels are checked there and never timed: it stands in for another device
    inspects: bool = False  # fills and compares its memory by itself, where no kernel reaches the judge
    target: str = ""  # the architecture, where it is more than a number: gfx942
    extensions: tuple[str, ...] = ()  # OpenCL's, which its compiler defines; empty where nobody said

    @property
    def key(self) -> str:
        """Identity for runs and caches: the same chip, as large as it was, behind the same driver."""
        limits = self.limits
        size = repr((limits.sms, limits.llc, limits.max_threads, limits.shared, limits.warp))
        return digest_of(self.backend, self.platform, self.name, self.driver, size)

    @property
    def architecture(self) -> str:
        """As compilers for it name it; empty where code is not built for one."""
        return self.target or (f"sm_{self.limits.capability}" if self.limits.capability else "")

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


@dataclass(frozen=True)
class Occupancy:
    blocks_per_sm: int
    percent: int  # of the threads a multiprocessor has room for, rounded down

    def names(self) -> dict[str, int]:
        return {"resources.blocks_per_sm": self.blocks_per_sm, "resources.occupancy": self.percent}


def compute_occupancy(limits: Limits, resources: Resources, threads: int, shared: int) -> Occupancy | None:
    """Of one kernel launched with so many threads in a block and so many bytes of dynamic shared memory. None
    where the device or the compiler does not say what it takes to know. `resources` are that kernel's own.
    Barriers, which may limit it further, no compiler tells."""
    known = (limits.registers_per_sm, limits.shared_per_sm, limits.threads_per_sm, limits.blocks_per_sm)
    if not all(known) or resources.registers is None or resources.shared is None or threads < 1:
        return None
    warps = -(-threads // limits.warp)
    blocks = min(
        limits.blocks_per_sm,
        limits.threads_per_sm // limits.warp // warps,
        _by_registers(limits, resources.registers, warps),
        limits.shared_per_sm // shared_per_block(limits, resources.shared + shared),
    )
    return Occupancy(blocks, 100 * blocks * warps * limits.warp // limits.threads_per_sm)


def registers_per_block(limits: Limits, registers: int, threads: int) -> int:
    """What the hardware counts when it decides whether a block can be launched at all: warps as if they
    came in whole rounds over the partitions."""
    warps = -(-threads // limits.warp)
    return _registers_per_warp(limits, registers) * _round_up(warps, _allocation_units(limits).partitions)


def shared_per_block(limits: Limits, shared: int) -> int:
    """Bytes a block takes from a multiprocessor's shared memory; at least one unit, so that it can divide."""
    unit = _allocation_units(limits).shared
    return max(unit, _round_up(shared + limits.shared_reserved, unit))


def _by_registers(limits: Limits, registers: int, warps: int) -> int:
    if not (each := _registers_per_warp(limits, registers)):
        return limits.blocks_per_sm
    partitions = _allocation_units(limits).partitions
    if limits.registers_per_block and limits.registers_per_block < each * _round_up(warps, partitions):
        return 0
    return limits.registers_per_sm // partitions // each * partitions // warps


def _registers_per_warp(limits: Limits, registers: int) -> int:
    return _round_up(registers * limits.warp, _allocation_units(limits).registers)


def _allocation_units(limits: Limits) -> AllocationUnits:
    """As the backend says; journals of earlier versions say nothing, and their devices are NVIDIA's."""
    return limits.units or AllocationUnits(shared=128 if limits.capability >= 80 else 256)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


Three = tuple[int, int, int]

LARGEST_CLUSTER = 8  # beyond it a kernel must opt in, and not every device agrees


def block_broken(block: Three, shared: int, local: int, limits: Limits, resources: Resources) -> str | None:
    """The first limit that one block breaks. `shared` are the bytes of shared memory the launch asks for,
    `local` those of its local arguments; the kernel's own come from `resources`."""
    threads = math.prod(block)
    if min(block) < 1:
        return f"the launch is empty: block {block}"
    if shared < 0:
        return f"{shared} bytes of shared memory"
    if threads > limits.max_threads:
        return f"{threads} threads per block, the device allows {limits.max_threads}"
    if resources.registers and limits.registers_per_block:
        taken = registers_per_block(limits, resources.registers, threads)
        if taken > limits.registers_per_block:
            product = f"{resources.registers} registers × {threads} threads"
            allowed = f"the device allows {limits.registers_per_block} per block"
            return f"{product}: {taken} as they are allocated, {allowed}"
    if resources.max_threads and threads > resources.max_threads:
        return f"{threads} threads per block, this build allows {resources.max_threads}"
    if any(side > most for side, most in zip(block, limits.max_block, strict=True)):
        return f"block {block}, the device allows {limits.max_block}"
    total = shared + local + (resources.shared or 0)
    if total > limits.shared:
        return f"{total} bytes of shared memory per block, the device allows {limits.shared}"
    return None


@dataclass(frozen=True)
class Clock:
    """How fast a part of a device ran at a moment, and how fast it may at most. None: nobody says."""

    part: str
    mhz: int
    limit_mhz: int | None = None


def grid_broken(
    grid: Three, cluster: Three | None, cooperative: bool, blocks_per_sm: int | None, limits: Limits
) -> str | None:
    """The first limit that the blocks break together; `blocks_per_sm` is None where nobody knows."""
    if min(grid) < 1:
        return f"the launch is empty: grid {grid}"
    if any(side > most for side, most in zip(grid, limits.max_grid, strict=True)):
        return f"grid {grid}, the device allows {limits.max_grid}"
    if cluster is not None:
        if min(cluster) < 1:
            return f"the launch is empty: cluster {cluster}"
        if math.prod(cluster) > LARGEST_CLUSTER:
            return f"{math.prod(cluster)} blocks in a cluster, devices allow {LARGEST_CLUSTER}"
        if any(side % part for side, part in zip(grid, cluster, strict=True)):
            return f"grid {grid} is no multiple of the cluster {cluster}"
        if 0 < limits.capability < 90 and math.prod(cluster) > 1:
            return f"clusters need compute capability 9.0, the device has {limits.capability / 10}"
    if cooperative and blocks_per_sm is not None and math.prod(grid) > blocks_per_sm * limits.sms:
        room = f"{limits.sms} multiprocessors hold {blocks_per_sm} blocks each"
        return f"a cooperative grid of {math.prod(grid)} blocks cannot run at once: {room}"
    return None


LAUNCH_WORDS = ("shared", "cluster", "cooperative", "pdl")  # of [launch], beside grid and block


@dataclass(frozen=True)
class SourceLanguage:
    """What a source, a launch and a build may have. One that no backend runs can still be read."""

    name: str
    title: str  # as people call it
    suffixes: tuple[str, ...]  # of its files
    about: str = ""  # what a writer should know of it
    compilers: tuple[str, ...] = ()  # that a problem may choose from
    reads_headers: bool = False  # the user's own are part of the problem
    self_contained: bool = False  # there are no include folders
    launch_words: tuple[str, ...] = LAUNCH_WORDS
    local_arguments: bool = False  # arguments of role local: shared memory by its size
    is_native: bool = False  # C, and its code may run in a process of the host
    flags: str = ""  # a pattern: the only build flags that a written template may have; empty: all
    allowed_flags: str = ""  # the same, in words
    example: str = ".cu"  # the ending of the examples that models are shown
    assumed: Device | None = None  # that its kernels are read and written for where no backend runs them
    open_for_nan: tuple[str, ...] = ()  # functions whose result for NaN is any implementation's own
    is_c_family: bool = True  # can be read as code; else only the backend's own author reads its kernels


CUDA = SourceLanguage(
    "cuda", "CUDA", (".cu", ".cuh"), "C++17 unless flags say otherwise", ("nvrtc", "nvcc"), reads_headers=True
)
_MI300X = Limits(
    max_threads=1024, max_block=(1024, 1024, 1024), max_grid=((1 << 31) - 1, 65535, 65535), shared=64 << 10,
    sms=304, warp=64, llc=256 << 20, memory=192 << 30, max_allocation=192 << 30, alignment=256,
)  # fmt: skip
_ASSUMED = Device("hip", "assumed", "AMD Instinct MI300X (assumed)", "HIP", "", "gpu", _MI300X, absent=True)
HIP = SourceLanguage("hip", "HIP", (".hip",), reads_headers=True, assumed=_ASSUMED)
OPENCL = SourceLanguage(
    "opencl", "OpenCL", (".cl",), "OpenCL C", self_contained=True, launch_words=(), local_arguments=True,
    is_native=True,
    flags=r"-cl-[\w-]+(?:=[\w.{}]+)?",
    allowed_flags="those that begin with -cl-",
    example=".cl",
    open_for_nan=("max", "min"),
)  # fmt: skip
# Of the simulated device, for tests and offline trials.
FAKE = SourceLanguage(
    "fake", "fake", (".fake",), self_contained=True, launch_words=(), local_arguments=True, is_c_family=False
)

_HIP_HEADER = re.compile(r"#\s*include\s*[<\"]hip/")
_C_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inl")
_MARKS = {HIP: _HIP_HEADER, CUDA: re.compile(r"\b__global__\b"), OPENCL: re.compile(r"\b__kernel\b")}
_STANDARD = {language.name: language for language in (CUDA, HIP, OPENCL, FAKE)}
_finders: list[Callable[[], Iterable[SourceLanguage]]] = []


def found_by(finder: Callable[[], Iterable[SourceLanguage]]) -> None:
    """Who knows of further languages; asked when all are wanted, or one that is not standard."""
    _finders.append(finder)


def known_languages() -> tuple[SourceLanguage, ...]:
    further = {language.name: language for finder in _finders for language in finder()}
    return tuple({**_STANDARD, **further}.values())


def _standard_first() -> Iterator[SourceLanguage]:
    yield from _STANDARD.values()
    yield from known_languages()


def has_language(name: str) -> bool:
    return any(language.name == name for language in _standard_first())


def find_language(name: str) -> SourceLanguage:
    """The language of that name; one that nobody knows has no rules of its own."""
    unknown = SourceLanguage(name, name, (), is_c_family=False)
    return next((language for language in _standard_first() if language.name == name), unknown)


def of_suffix(suffix: str) -> SourceLanguage | None:
    """The language whose files have that ending."""
    return next((language for language in _standard_first() if suffix in language.suffixes), None)


def all_suffixes(*, c_family: bool = False) -> list[str]:
    """Of all languages, or of those of the C family alone."""
    return [suffix for one in known_languages() if one.is_c_family or not c_family for suffix in one.suffixes]


def is_source_name(file_name: str) -> bool:
    """Whether the name promises a source of the C family."""
    language = of_suffix(PurePath(file_name).suffix.lower())
    return language is not None and language.is_c_family


def language_of(file_name: str, text: str = "") -> str:
    """The language of the C family that a file's name promises, or its text where the name leaves it open:
    programs for HIP are called `.cu` and `.cpp`, too."""
    suffix = PurePath(file_name).suffix.lower()
    language = of_suffix(suffix)
    if language is not None and language.is_c_family:
        return HIP.name if language is CUDA and _HIP_HEADER.search(text) else language.name
    if suffix in _C_SUFFIXES and (marked := [one for one, mark in _MARKS.items() if mark.search(text)]):
        return marked[0].name
    endings = ", ".join(sorted(all_suffixes(c_family=True)))
    fault = f"the name of a kernel source must end in {endings}; got {suffix or 'no ending'!r}"
    hint = "rename the file, or give the file that holds the kernel itself"
    raise BadInput(fault, hint=hint, where=file_name)
