"""Which kernels of a program are worth tuning: their share of its time, their distance from what the memory's
bandwidth allows, and what that would give from end to end.

What is counted of a kernel's bytes is an upper bound: allocations behind its pointers, from the pointer to
the end, each once. A kernel may touch less of them, and then its floor is lower than is said here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tunesmith.base.text import format_count
from tunesmith.plugins.repo.capture.records import Capture, CapturedDevice, CapturedKernel, CapturedLaunch

LEAST = 1.5e-6  # seconds of the device's clock that a launch takes, however little it does
NEAR = 1.2  # times its floor, which is by the data sheet and never reached: nothing to give
DISAGREES = 1.05  # times: a floor so much above what was measured cannot be one


class KernelKind(StrEnum):
    CUSTOM = "own or third-party"
    TORCH = "PyTorch"
    TRITON = "Triton"
    VENDOR = "vendor library"
    TEMPLATES = "CUB or Thrust"
    CUPY = "CuPy"
    NAMELESS = "no name"


# As demangled names begin, or what is in them.
_VENDOR = re.compile(
    r"cublas|cudnn|cufft|cusparse|cusolver|curand_|cutensor|nccl|nvjpeg|npp[is]?[A-Z_]|nvshmem"
    r"|^(?:void )?(?:sm\d+_|ampere_|volta_|turing_|maxwell_|hopper_|blackwell_|nvjet_|cask_|xmma_)"
    r"|^(?:void )?(?:gemmk1_kernel|gemvNSP_kernel|gemv2[NT]_kernel|splitKreduce_kernel|dot_kernel)"
    r"|^(?:void )?(?:cutlass_\d|internal::gemvx|implicit_convolve|vector_fft|regular_fft|bluestein)"
)
_TORCH = re.compile(r"\b(?:at::(?:native|cuda)|c10::|at_cuda_detail|torch::)")
_TEMPLATES = re.compile(r"^(?:void )?(?:cub|thrust)::|\b(?:cub|thrust)::(?:\w+::)*(?:detail|Device|cuda_cub)")
_INDUCTOR = re.compile(r"^triton_(?:poi|red|per|tem|for|unk|mm)_|^triton_\b")
_CUPY = re.compile(r"^cupy_|^cupyx_")


@dataclass(frozen=True)
class RankedKernel:
    name: str  # mangled
    demangled: str
    kind: KernelKind
    count: int
    shapes: int  # launches that differ
    seconds: float
    share: float  # of the device's time
    floor: float | None  # seconds that all its launches take at least; None: not known
    distance: float | None  # its time by its floor
    saving: float  # seconds at most, to the floor; where that is not known, to empty launches
    on_device: float | None  # how many times less the device would work, at most
    end_to_end: float | None  # how many times faster it went from the first kernel to the last, at most
    tunable: bool
    missing: tuple[str, ...]  # what stands in the way, or is not known

    @property
    def score(self) -> float:
        """Share of the device's time that could go."""
        return self.share * self.saving / self.seconds if self.seconds > 0 else 0.0


def rank_kernels(capture: Capture) -> list[RankedKernel]:
    """What can be tuned first, and of that what could give most."""
    found = [_rank_kernel(capture, kernel) for kernel in capture.kernels]
    return sorted(found, key=lambda r: (not r.tunable, -r.score, -r.seconds, r.name))


def kind_of(kernel: CapturedKernel) -> KernelKind:
    name = kernel.shown
    if not name:
        return KernelKind.NAMELESS
    if _INDUCTOR.search(name) or (_is_unmangled(kernel) and any(s.endswith(".py") for s in kernel.sources)):
        return KernelKind.TRITON
    for pattern, kind in (
        (_TEMPLATES, KernelKind.TEMPLATES),
        (_TORCH, KernelKind.TORCH),
        (_VENDOR, KernelKind.VENDOR),
        (_CUPY, KernelKind.CUPY),
    ):
        if pattern.search(name):
            return kind
    return KernelKind.CUSTOM


def bytes_of(launch: CapturedLaunch) -> int | None:
    """At most so many are behind its pointers; None where its arguments are not known."""
    if not launch.complete:
        return None
    largest: dict[int, int] = {}
    for argument in launch.arguments:
        for pointer in argument.pointers:
            extent = min(pointer.least or pointer.memory.extent, pointer.memory.extent)
            largest[pointer.memory.base] = max(largest.get(pointer.memory.base, 0), extent)
    return sum(largest.values())


def floor_of(launch: CapturedLaunch, device: CapturedDevice | None) -> float | None:
    """Seconds one such launch takes at least; None where nothing that could be true is known."""
    nbytes, mean = bytes_of(launch), launch.mean
    if nbytes is None or mean is None or device is None or not device.bandwidth:
        return None
    moved = nbytes / device.bandwidth
    return min(max(moved, LEAST), mean) if moved <= DISAGREES * mean else None


def _rank_kernel(capture: Capture, kernel: CapturedKernel) -> RankedKernel:
    devices = {device.ordinal: device for device in capture.devices}
    floors = [(launch, floor_of(launch, devices.get(launch.device))) for launch in kernel.launches]
    timed = [(launch, floor) for launch, floor in floors if launch.timed]
    known = bool(timed) and all(floor is not None for _, floor in timed)
    least = sum(launch.count * (LEAST if floor is None else floor) for launch, floor in timed)
    floor = least if known else None
    saving = max(0.0, kernel.seconds - least)
    kind = kind_of(kernel)
    distance = kernel.seconds / floor if floor else None
    missing = tuple(_missing_facts(kernel, kind, timed, known, distance))
    return RankedKernel(
        name=kernel.name,
        demangled=kernel.demangled,
        kind=kind,
        count=kernel.count,
        shapes=len(kernel.launches),
        seconds=kernel.seconds,
        share=capture.share(kernel),
        floor=floor,
        distance=distance,
        saving=saving,
        on_device=amdahl_speedup(capture.seconds, saving),
        end_to_end=amdahl_speedup(capture.span, saving),
        tunable=kind in (KernelKind.CUSTOM, KernelKind.TORCH, KernelKind.TEMPLATES, KernelKind.CUPY),
        missing=missing,
    )


def amdahl_speedup(span: float, saving: float) -> float | None:
    """How many times faster what took `span` is without `saving`, where nothing else runs meanwhile."""
    return span / (span - saving) if span > 0 and saving < span else None


def _missing_facts(
    kernel: CapturedKernel,
    kind: KernelKind,
    timed: Sequence[tuple[CapturedLaunch, float | None]],
    known: bool,
    distance: float | None,
) -> list[str]:
    said = list(_SOURCES[kind])
    if kind is KernelKind.CUSTOM and kernel.sources:
        said = [f"its module's line table names {', '.join(kernel.sources[:3])}"]
    if not kernel.image:
        said.append("the module's image was not to be had, so no source can be held against what ran")
    unread = sum(launch.count for launch in kernel.launches if not launch.complete)
    if unread:
        said.append(f"of {format_count(unread, 'launch', 'launches')} the arguments are not known")
    if not timed:
        said.append("none of its launches was timed")
    elif not known and not unread:
        said.append(
            "it touches less than its allocations hold, or they were in the cache: no floor (--exact tells "
            "the sizes of PyTorch's arrays)"
        )
    elif distance is not None and distance <= NEAR:
        said.append("it is as fast as the memory allows, by what its allocations hold")
    return said


_SOURCES = {
    KernelKind.CUSTOM: ("its source: built without a line table, so you name the repository",),
    KernelKind.TORCH: ("its source is PyTorch's own repository",),
    KernelKind.TRITON: ("it is Triton's, whose own tuner is the one to ask; left alone",),
    KernelKind.VENDOR: ("a vendor's library, without source: cannot be tuned",),
    KernelKind.TEMPLATES: ("a template of CUB or Thrust: its source is that library's headers",),
    KernelKind.CUPY: ("its source is text that the program makes as it runs",),
    KernelKind.NAMELESS: ("it has no name: neither the driver nor the profiler gives one",),
}


def _is_unmangled(kernel: CapturedKernel) -> bool:
    return not kernel.name.startswith("_Z")
