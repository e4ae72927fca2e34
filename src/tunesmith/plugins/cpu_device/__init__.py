"""CUDA and HIP kernels on the host's processor: built by the compiler here, checked, and never timed."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from tunesmith.backends import messages, port
from tunesmith.plugins.cpu_device import build as building
from tunesmith.plugins.cpu_device import watch as sanitizer
from tunesmith.plugins.cpu_device.build import INSTALL, HostCompiler, find_compilers
from tunesmith.plugins.cpu_device.session import CpuSession
from tunesmith.plugins.cpu_device.watch import WatchingSession
from tunesmith.problem.device import CUDA, HIP, Device, Limits

NAME = "cpu"
WAVE64 = 64
NO_COMPILER = "there is no C++ compiler here: neither g++, nor clang++, nor ziglang"
NOT_LINUX = "the cpu device needs Linux"


class CpuBackend:
    name = NAME

    def __init__(self, watch: str = "") -> None:
        """`watch`: the file for what is found in launches; empty: nobody watches."""
        self._watch = watch

    def devices(self) -> tuple[Device, ...]:
        """One for each compiler and width of a warp; the first is `cpu`."""
        if sys.platform != "linux":
            raise port.Unsupported(NOT_LINUX)
        if not find_compilers():
            raise port.Unsupported(f"{NO_COMPILER}: {INSTALL}")
        return tuple(_describe_device(one, warp) for warp in (32, WAVE64) for one in find_compilers())

    def build(self, unit: messages.Unit, device: Device) -> port.KernelBinary:
        return building.build_host_library(unit, device, watched=bool(self._watch))

    def open(self, device: Device) -> port.Session:
        return WatchingSession(device, Path(self._watch)) if self._watch else CpuSession(device)


def _describe_device(compiler: HostCompiler, warp: int) -> Device:
    """With the limits of a large GPU, so that what runs there runs here: NVIDIA's with warps of 32 threads,
    AMD's with waves of 64."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    other = "" if compiler == find_compilers()[0] else f"-{compiler.name}"
    nvidia = warp == 32
    limits = Limits(
        max_threads=1024,
        max_block=(1024, 1024, 64) if nvidia else (1024, 1024, 1024),
        max_grid=((1 << 31) - 1, 65535, 65535),
        shared=227 << 10 if nvidia else 64 << 10,
        sms=132 if nvidia else 304,
        warp=warp,
        llc=0,
        memory=memory,
        max_allocation=memory // 2,
        alignment=256,
        capability=90 if nvidia else 0,
    )
    waves = "" if nvidia else ", waves of 64"
    name = f"{NAME} ({platform.machine()}, {compiler.title}{waves})"
    id = f"{NAME}{'' if nvidia else '-wave64'}{other}"
    return Device(NAME, id, name, "host", compiler.title, "cpu", limits, untimed=True)


def _check_compilers(_devices: port.ListDevices) -> list[port.DoctorFinding]:
    what = "C++ compiler (cpu device)"
    if sys.platform != "linux":
        return [port.DoctorFinding(what, False, NOT_LINUX)]
    if not find_compilers():
        return [port.DoctorFinding(what, False, f"{NO_COMPILER}: no CUDA kernel runs without a GPU", INSTALL)]
    names = ", ".join(one.title for one in find_compilers())
    return [port.DoctorFinding(what, True, f"{names}: CUDA and HIP kernels are checked without a GPU")]


KIND = port.BackendKind(
    name=NAME,
    languages=(CUDA, HIP),
    make=lambda _argument: CpuBackend(os.environ.get(sanitizer.VARIABLE, "")),
    extra=NAME,
    packages=("ziglang",),
    untimed=True,
    check=_check_compilers,
    sanitizer=sanitizer.SANITIZER,
    no_profiles="the cpu device checks kernels and times none",
)
