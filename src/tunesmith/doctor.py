"""What is usable on this machine, and the one command that enables what is not."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
from dataclasses import dataclass

from tunesmith import registry, runs
from tunesmith.core.errors import TunesmithError


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
    findings.append(Finding("simulated device (fake, replay)", True, "always there"))
    return findings + [Finding(name, False, "no backend in this version") for name in ("CUDA", "HIP")]


def _opencl() -> Finding:
    try:
        with runs.temporary_scratch() as scratch:
            devices = registry.list_devices("opencl", scratch)
    except TunesmithError as error:
        return Finding("OpenCL device", False, str(error), "pip install 'tunesmith[opencl]'")
    if not devices:
        on_linux = sys.platform == "linux" and platform.machine() == "x86_64"
        fix = "pip install pocl-binary-distribution" if on_linux else ""
        detail = (
            "no platform found" if on_linux else "no platform found, and PoCL has no package for this system"
        )
        return Finding("OpenCL device", False, detail, fix)
    return Finding("OpenCL device", True, "; ".join(f"{d.name} ({d.platform})" for d in devices))


def _module(name: str, purpose: str, fix: str) -> Finding:
    found = importlib.util.find_spec(name) is not None
    return Finding(
        name, found, purpose if found else f"not installed: {purpose} needs it", "" if found else fix
    )


def _install(package: str) -> str:
    for tool, command in (
        ("apt-get", "apt-get install"),
        ("dnf", "dnf install"),
        ("pacman", "pacman -S"),
        ("apk", "apk add"),
        ("zypper", "zypper install"),
    ):
        if shutil.which(tool):
            return f"{command} {package}"
    return f"install {package} with your system's package manager"
