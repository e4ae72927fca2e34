"""The doctor names what is usable here and one command for each thing that is not."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.wording import says
from tunesmith.backends import cuda, hip, opencl
from tunesmith.backends.fake import FakeBackend
from tunesmith.backends.port import DoctorFinding, Unsupported
from tunesmith.base.errors import DeviceMissing
from tunesmith.plugins import cpu_device
from tunesmith.plugins.cpu_device.build import HostCompiler
from tunesmith.problem.device import Device
from tunesmith.run.protection import Protection, ProtectionLayer
from tunesmith.session import check as doctor


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


class Machine:
    """A Linux machine with everything, until a test takes something away."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.modules = {"tree_sitter", "mcp", "pyopencl", "ml_dtypes", "cuda.bindings", "hip"}
        self.programs = {"ld": "/usr/bin/ld", "apt-get": "/usr/bin/apt-get", "oclgrind": "/usr/bin/oclgrind"}
        self.devices: tuple[Device, ...] = tuple(
            replace(d, name="a CPU", platform="a platform") for d in FakeBackend().devices()[:1]
        )
        self.trouble: DeviceMissing | None = None
        self.driver = True
        self.driver_version = 13010
        self.nvrtc: tuple[int, int] | Unsupported = (13, 4)
        self.nvcc: str | None = "13.0.88"
        self.headers: tuple[Path, ...] = (Path("/cuda/include"),)
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setattr(opencl.platform, "machine", lambda: "x86_64")
        monkeypatch.setattr(shutil, "which", self.programs.get)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name in self.modules else None)
        monkeypatch.setattr(doctor.machine, "list_devices", self._list)
        self.layers = [ProtectionLayer(name, True, "in force") for name in ("network", "files")]
        monkeypatch.setattr(doctor.machine, "worker_protection", lambda *_: Protection(tuple(self.layers)))
        monkeypatch.setattr(cuda.ctypes, "CDLL", self._load)
        self.compilers: tuple[HostCompiler, ...] = (HostCompiler("g++", "12.2.0", ("g++",)),)
        monkeypatch.setattr(cpu_device, "find_compilers", lambda: self.compilers)
        monkeypatch.setattr(cuda.compile, "nvrtc_version", self._nvrtc)
        monkeypatch.setattr(cuda.compile, "nvcc_version", lambda: self.nvcc)
        monkeypatch.setattr(cuda.toolkit, "header_folders", lambda *_: self.headers)
        monkeypatch.setattr(cuda.toolkit, "find_nvcc", lambda: "/cuda/bin/nvcc")
        self.ncu: str | None = "/cuda/bin/ncu"
        self.may_count: tuple[bool | None, str] = (True, "counters are open to everyone")
        monkeypatch.setattr(cuda.tools, "find_ncu", lambda: self.ncu)
        monkeypatch.setattr(cuda.tools, "may_count", lambda: self.may_count)
        self.sanitizer: str | None = "/cuda/bin/compute-sanitizer"
        watching = replace(cuda.tools.SANITIZER, find=lambda: self.sanitizer)
        monkeypatch.setattr(cuda.tools, "SANITIZER", watching)
        self.capture = DoctorFinding("capturing programs", True, "a program was watched")
        monkeypatch.setattr("tunesmith.plugins.repo.capture.capture.examine_capture", lambda: self.capture)
        self.hiprtc = "7.2"
        self.clang: Any = hip.compile.ClangTools(
            "/rocm/clang++", "19.1.7", Path("/rocm/bitcode"), Path("/rocm/include")
        )
        monkeypatch.setattr(hip.compile, "hiprtc_version", lambda: self.hiprtc)
        monkeypatch.setattr(hip.compile, "tools", lambda: self.clang)

    def _load(self, name: str) -> Any:
        assert name == "libcuda.so.1"
        if not self.driver:
            raise OSError("libcuda.so.1: cannot open shared object file")
        return SimpleNamespace(
            cuDriverGetVersion=lambda place: setattr(place._obj, "value", self.driver_version)
        )

    def _nvrtc(self) -> tuple[int, int]:
        if isinstance(self.nvrtc, Unsupported):
            raise self.nvrtc
        return self.nvrtc

    def _list(self, *_: Any) -> tuple[Device, ...]:
        if self.trouble is not None:
            raise self.trouble
        return self.devices

    def finding(self, what: str) -> DoctorFinding:
        found = [f for f in doctor.doctor_findings() if f.what == what]
        assert len(found) == 1
        return found[0]


def test_everything_is_there(machine: Machine) -> None:
    findings = {f.what: f for f in doctor.doctor_findings()}
    assert [what for what, f in findings.items() if not f.usable] == []
    assert findings["OpenCL device"].detail == "a CPU (a platform)"
    assert findings["NVIDIA driver"].detail == "for CUDA 13.1"
    assert findings["CUDA device"].detail == "a CPU (sm_0)"
    assert findings["NVRTC"].detail == "13.4"
    assert findings["CUDA headers"].detail == "/cuda/include"
    assert findings["nvcc"].detail == "13.0.88, /cuda/bin/nvcc"
    assert findings["capturing programs"].detail == "a program was watched"
    assert not any(f.fix for f in findings.values())


Change = Callable[[Machine], object]


def given(**values: Any) -> Change:
    """Sets what the machine has."""
    return lambda machine: vars(machine).update(values)


def without(module: str) -> Change:
    return lambda machine: machine.modules.remove(module)


def no_program(name: str) -> Change:
    return lambda machine: machine.programs.pop(name)


CUDA, OPENCL, DOWNLOADS = "pip install 'tunesmith[cuda]'", "pip install 'tunesmith[opencl]'", "cuda-downloads"
NO_LANDLOCK = [
    ProtectionLayer("network", True, "in force"),
    ProtectionLayer("files", False, "no Landlock here"),
]
NO_LIBRARIES = "what is missing is ROCm's device libraries: apt-get install rocm-device-libs"
NO_DRIVER = DeviceMissing("the opencl driver did not answer within 60 s")
NO_BINDINGS = Unsupported("cuda-bindings cannot be loaded: No module named 'cuda'")


@pytest.mark.parametrize(
    ("change", "what", "detail", "fix"),
    [
        (without("hip"), "AMD GPU", "hip-python is not installed", "pip install 'tunesmith[hip]'"),
        (given(hiprtc=""), "hiprtc", "", ""),
        (given(clang=NO_LIBRARIES), "clang for AMD", "", "apt-get install rocm-device-libs"),
        (given(compilers=()), "C++ compiler (cpu device)", "", "pip install 'tunesmith[cpu]'"),
        (given(layers=NO_LANDLOCK), "sandbox: files", "no Landlock here", ""),
        (no_program("oclgrind"), "oclgrind", "nothing watches winners", "oclgrind"),
        (given(sanitizer=None), "compute-sanitizer", "nothing watches winners", " "),
        (without("pyopencl"), "pyopencl", "not installed: the OpenCL backend needs it", OPENCL),
        (no_program("ld"), "linker (ld)", "", "apt-get install binutils"),
        (given(devices=()), "OpenCL device", "", "pip install pocl-binary-distribution"),
        (given(trouble=NO_DRIVER), "OpenCL device", NO_DRIVER.message, ""),
        (given(driver=False), "NVIDIA driver", "libcuda.so.1 is not there", "nvidia.com"),
        (given(devices=()), "CUDA device", "the driver sees no device", "--gpus all"),
        (given(driver_version=12020), "NVIDIA driver", "CUDA 12.2, older than CUDA 13", "nvidia.com/drivers"),
        (given(trouble=NO_DRIVER), "CUDA device", NO_DRIVER.message, "nvidia-smi -L"),
        (given(nvrtc=NO_BINDINGS), "NVRTC", "cuda-bindings cannot be loaded", CUDA),
        (given(nvcc=None), "nvcc", "", DOWNLOADS),
        (given(headers=()), "CUDA headers", "", CUDA),
        (without("ml_dtypes"), "ml_dtypes", "not installed: comparing bfloat16 and float8 needs it", CUDA),
        (given(ncu=None), "Nsight Compute (ncu)", "do without hardware counters", DOWNLOADS),
    ],
)  # fmt: skip
def test_what_is_missing_is_named_with_a_command(
    machine: Machine, change: Change, what: str, detail: str, fix: str
) -> None:
    assert machine.finding(what).usable
    change(machine)
    finding = machine.finding(what)
    assert not finding.usable
    assert detail in finding.detail
    assert fix in finding.fix


@pytest.mark.parametrize(
    ("change", "unasked"),
    [
        (without("pyopencl"), {"OpenCL device"}),
        (given(driver=False), {"CUDA device", "Nsight Compute (ncu)", "hardware counters"}),
        (given(driver_version=12020), {"CUDA device"}),
        (given(nvrtc=NO_BINDINGS), {"CUDA headers"}),  # which would do is not known
    ],
)
def test_nobody_is_asked_for_what_could_not_be_used(
    machine: Machine, change: Change, unasked: set[str]
) -> None:
    change(machine)
    assert not unasked & {finding.what for finding in doctor.doctor_findings()}


def test_what_is_there_is_described(machine: Machine) -> None:
    assert machine.finding("clang for AMD").detail.startswith(
        "19.1.7, /rocm/clang++, libraries in /rocm/bitcode"
    )
    assert machine.finding("C++ compiler (cpu device)").detail.startswith("g++ 12.2.0: CUDA and HIP kernels")
    assert machine.finding("oclgrind").detail == "/usr/bin/oclgrind, watches winners (oclgrind)"
    assert machine.finding("Nsight Compute (ncu)").detail == "/cuda/bin/ncu"
    machine.driver = False
    assert machine.finding("NVRTC").usable, "it builds all the same"
    says(machine.finding("NVIDIA driver").detail, "can be built", "cannot run")
    machine.driver, machine.trouble = True, NO_DRIVER
    machine.modules.remove("cuda.bindings")
    assert machine.finding("CUDA device").fix == CUDA


def test_the_command_is_that_of_the_system(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    del machine.programs["ld"]
    machine.devices = ()
    monkeypatch.setattr(opencl.platform, "machine", lambda: "aarch64")
    finding = machine.finding("OpenCL device")
    assert "no wheel for linux aarch64" in finding.detail
    assert finding.fix == "apt-get install pocl-opencl-icd"
    del machine.programs["apt-get"]
    assert machine.finding("linker (ld)").fix == "install binutils with your system's package manager"
    machine.programs["dnf"] = "/usr/bin/dnf"
    assert machine.finding("OpenCL device").fix == "dnf install pocl"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert machine.finding("linker (ld)").usable


def test_an_unpacked_pocl_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OCL_ICD_VENDORS", raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert "unpacked" not in machine.finding("OpenCL device").detail
    (tmp_path / "pocl" / "vendors").mkdir(parents=True)
    (tmp_path / "pocl" / "vendors" / "pocl.icd").write_text("libpocl.so.2")
    assert str(tmp_path / "pocl") in machine.finding("OpenCL device").detail


@pytest.mark.parametrize(("allowed", "usable"), [(False, False), (None, True), (True, True)])
def test_permission_to_count(machine: Machine, allowed: bool | None, usable: bool) -> None:
    machine.may_count = (allowed, "so the driver says")
    found = machine.finding("hardware counters")
    assert (found.usable, found.detail) == (usable, "so the driver says")
    assert bool(found.fix) is not usable


def test_the_library_is_named_and_whether_it_can_be_used(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def library() -> DoctorFinding:
        return next(f for f in doctor.doctor_findings() if f.what == "library")

    monkeypatch.setenv("TUNESMITH_LIBRARY_DIR", str(tmp_path / "mine"))
    assert (library().usable, library().detail) == (True, f"{tmp_path / 'mine'}, 0 templates")
    (tmp_path / "mine").write_text("in the way")
    assert not library().usable
    assert "mine" in library().detail
    monkeypatch.setenv("TUNESMITH_LIBRARY", "off")
    assert library().detail == "switched off"
