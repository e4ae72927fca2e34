"""What is usable on this machine, and the one command that enables what is not."""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tunesmith import machine, registry
from tunesmith.backends import opencl_pocl
from tunesmith.backends.cuda import counter_rights, ncu, nvcc, nvrtc, toolkit
from tunesmith.backends.cuda.devices import OLDEST_DRIVER
from tunesmith.core.backend import Unsupported
from tunesmith.core.errors import TunesmithError

CUDA_EXTRA = "pip install 'tunesmith[cuda]'"
DRIVERS = "from https://www.nvidia.com/drivers"
A_GPU = "a GPU that nvidia-smi -L lists; a container sees one if it is started with --gpus all"


@dataclass(frozen=True)
class Finding:
    what: str
    usable: bool
    detail: str
    fix: str = ""


def examine() -> list[Finding]:
    findings = [Finding("Python", True, platform.python_version())]
    findings.append(_module("tree_sitter", "reading kernel sources (init)", "pip install tree-sitter"))
    has_pyopencl = _module("pyopencl", "the OpenCL backend", "pip install 'tunesmith[opencl]'")
    findings.append(has_pyopencl)
    linker = shutil.which("ld")
    needs_linker = sys.platform == "linux"
    findings.append(
        Finding(
            "linker (ld)",
            bool(linker) or not needs_linker,
            linker or "PoCL needs it to finish kernels",
            "" if linker or not needs_linker else _install("binutils"),
        )
    )
    if has_pyopencl.usable:
        findings.append(_opencl())
    findings += _cuda()
    findings.append(_module("ml_dtypes", "comparing bfloat16 and float8", CUDA_EXTRA))
    findings.append(Finding("simulated device (fake, replay)", True, "always there"))
    return [*findings, Finding("HIP", False, "no backend in this version")]


def _cuda() -> list[Finding]:
    """Building needs a compiler and its headers; checking and timing need the driver and a device too."""
    driver = _nvidia_driver()
    here = [_cuda_device(), *_counters()] if driver.usable else []
    return [driver, *here, *_nvrtc(), _nvcc()]


def _counters() -> list[Finding]:
    """Where there is no driver there is nothing to count. Neither is run: that takes seconds."""
    program = ncu.find_ncu()
    found = Finding(
        "Nsight Compute (ncu)",
        program is not None,
        program or "not found: profiles do without hardware counters",
        "" if program else "NVIDIA's CUDA toolkit, from https://developer.nvidia.com/cuda-downloads",
    )
    allowed, why = counter_rights.may_count()
    fix = counter_rights.LET_IN if allowed is False else ""
    return [found, Finding("hardware counters", allowed is not False, why, fix)]


def _nvidia_driver() -> Finding:
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        detail = f"{name} is not there: CUDA kernels can be built, and cannot run"
        return Finding("NVIDIA driver", False, detail, f"NVIDIA's driver, {DRIVERS}")
    version = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    detail = f"for CUDA {version.value // 1000}.{version.value % 1000 // 10}"
    if version.value < OLDEST_DRIVER:
        oldest = f"CUDA {OLDEST_DRIVER // 1000}"
        detail += f", older than {oldest}: CUDA kernels can be built, and cannot run"
        return Finding("NVIDIA driver", False, detail, f"a driver for {oldest} or newer, {DRIVERS}")
    return Finding("NVIDIA driver", True, detail)


def _cuda_device() -> Finding:
    try:
        with machine.temporary_scratch() as scratch:
            devices = registry.list_devices("cuda", scratch)
    except TunesmithError as error:
        fix = A_GPU if _has("cuda.bindings") else CUDA_EXTRA
        return Finding("CUDA device", False, str(error), fix)
    names = "; ".join(f"{d.name} (sm_{d.limits.capability})" for d in devices)
    return Finding(
        "CUDA device", bool(devices), names or "the driver sees no device", "" if devices else A_GPU
    )


def _nvrtc() -> list[Finding]:
    """NVRTC and, where it is there, the headers that kernels include."""
    try:
        version = nvrtc.version()
    except Unsupported as error:
        return [Finding("NVRTC", False, str(error), CUDA_EXTRA)]
    folders = toolkit.header_folders(None, version)
    detail = ", ".join(map(str, folders)) or "none found: kernels cannot include cuda_fp16.h and the like"
    return [
        Finding("NVRTC", True, ".".join(map(str, version))),
        Finding("CUDA headers", bool(folders), detail, "" if folders else CUDA_EXTRA),
    ]


def _nvcc() -> Finding:
    version = nvcc.version()
    if version is not None:
        return Finding("nvcc", True, f"{version}, {toolkit.find_nvcc()}")
    detail = "not found: only sources that include the host's C++ headers need it"
    return Finding(
        "nvcc", False, detail, "NVIDIA's CUDA toolkit, from https://developer.nvidia.com/cuda-downloads"
    )


def _opencl() -> Finding:
    try:
        with machine.temporary_scratch() as scratch:
            devices = registry.list_devices("opencl", scratch)
    except TunesmithError as error:
        return Finding("OpenCL device", False, str(error), "pip install 'tunesmith[opencl]'")
    if not devices:
        has_wheel = sys.platform == "linux" and platform.machine() == "x86_64"
        detail = "" if has_wheel else f", and PoCL has no wheel for {sys.platform} {platform.machine()}"
        fix = "pip install pocl-binary-distribution" if has_wheel else _install("pocl", apt="pocl-opencl-icd")
        return Finding("OpenCL device", False, f"no platform found{detail}", fix)
    names = "; ".join(f"{d.name} ({d.platform})" for d in devices)
    prefix = Path(sys.prefix)
    unpacked = f"; PoCL is the one unpacked in {prefix / 'pocl'}" if opencl_pocl.environment(prefix) else ""
    return Finding("OpenCL device", True, names + unpacked)


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package it is in
        return False


def _module(name: str, purpose: str, fix: str) -> Finding:
    found = _has(name)
    return Finding(
        name, found, purpose if found else f"not installed: {purpose} needs it", "" if found else fix
    )


def _install(package: str, apt: str = "") -> str:
    for tool, command in (
        ("apt-get", "apt-get install"),
        ("dnf", "dnf install"),
        ("pacman", "pacman -S"),
        ("apk", "apk add"),
        ("zypper", "zypper install"),
        ("brew", "brew install"),
    ):
        if shutil.which(tool):
            return f"{command} {apt if apt and tool == 'apt-get' else package}"
    return f"install {package} with your system's package manager"
