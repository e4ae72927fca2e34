"""OpenCL: what it needs here, how its workers are set up, and how its ceilings are measured."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from tunesmith.backends import backend_kind as kinds
from tunesmith.backends.backend_kind import DoctorFinding, ListDevices
from tunesmith.backends.opencl.device import OpenCLBackend
from tunesmith.errors import TunesmithError
from tunesmith.problem.languages import OPENCL


def pocl_environment(prefix: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """What a process must be started with to see the PoCL that set-up unpacks under `prefix` where no wheel
    serves; empty where there is none, or where the user points the loader elsewhere. The loader of libraries
    reads its variable only at the start."""
    folder = prefix / "pocl"
    if not (folder / "vendors" / "pocl.icd").is_file() or inherited.get("OCL_ICD_VENDORS"):
        return {}
    libraries = filter(None, [str(folder / "lib"), inherited.get("LD_LIBRARY_PATH")])
    return {"OCL_ICD_VENDORS": str(folder / "vendors"), "LD_LIBRARY_PATH": os.pathsep.join(libraries)}


def _environment(scratch: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """PoCL links kernels with libraries that only a compiler's installation has, and uses none of them: empty
    archives of these names do, found last, so that real ones win where there are any."""
    stubs = scratch / "lib"
    stubs.mkdir(exist_ok=True)
    for name in ("gcc", "gcc_s", "c", "m"):
        (stubs / f"lib{name}.a").write_bytes(b"!<arch>\n")
    return {
        "POCL_CACHE_DIR": str(scratch / "pocl"),
        # NVIDIA's driver for OpenCL has the same cache as for CUDA.
        "CUDA_CACHE_PATH": str(scratch / "nv"),
        "CUDA_CACHE_DISABLE": "1",
        "LIBRARY_PATH": os.pathsep.join(filter(None, [inherited.get("LIBRARY_PATH"), str(stubs)])),
        "PYOPENCL_NO_CACHE": "1",
        **pocl_environment(Path(sys.prefix), inherited),
    }


def _check(devices: ListDevices) -> list[DoctorFinding]:
    has_pyopencl = kinds.module_finding("pyopencl", "the OpenCL backend", KIND.install)
    linker = shutil.which("ld")
    missing = linker is None and sys.platform == "linux"
    fix = kinds.system_package("binutils") if missing else ""
    needs = DoctorFinding("linker (ld)", not missing, linker or "PoCL needs it to finish kernels", fix)
    return [has_pyopencl, needs, *([_check_device(devices)] if has_pyopencl.usable else [])]


def _check_device(devices: ListDevices) -> DoctorFinding:
    try:
        found = devices()
    except TunesmithError as error:
        return DoctorFinding("OpenCL device", False, str(error), KIND.install)
    if found:
        names = "; ".join(f"{d.name} ({d.platform})" for d in found)
        unpacked = pocl_environment(Path(sys.prefix), os.environ)
        where = f"; PoCL is the one unpacked in {Path(sys.prefix, 'pocl')}" if unpacked else ""
        return DoctorFinding("OpenCL device", True, names + where)
    if sys.platform == "linux" and platform.machine() == "x86_64":
        fix = "pip install pocl-binary-distribution"
        return DoctorFinding("OpenCL device", False, "no platform found", fix)
    detail = f"no platform found, and PoCL has no wheel for {sys.platform} {platform.machine()}"
    return DoctorFinding("OpenCL device", False, detail, kinds.system_package("pocl", apt="pocl-opencl-icd"))


KIND = kinds.BackendKind(
    name="opencl",
    languages=(OPENCL,),
    make=lambda _argument: OpenCLBackend(),
    extra="opencl",
    check=_check,
    environment=_environment,
    no_counters="OpenCL has no counters that are the same on every device",
    ceilings=kinds.CeilingKernels("ceilings.cl", "ceilings_fp16.cl", {"fp32": 64, "fp16": 64}, (1, 4, 256)),
)
