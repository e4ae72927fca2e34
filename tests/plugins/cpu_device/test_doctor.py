"""The doctor names what is usable here and one command for each thing that is not."""

from __future__ import annotations

import importlib.util
import shutil
import sys
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


def test_amd_without_its_bindings_runtime_or_compilers(machine: Machine) -> None:
    assert machine.finding("AMD GPU").usable
    assert machine.finding("clang for AMD").detail.startswith(
        "19.1.7, /rocm/clang++, libraries in /rocm/bitcode"
    )
    machine.modules.remove("hip")
    machine.hiprtc = ""
    machine.clang = "what is missing is ROCm's device libraries: apt-get install rocm-device-libs"
    gpu, rtc, clang = (machine.finding(what) for what in ("AMD GPU", "hiprtc", "clang for AMD"))
    assert not gpu.usable
    assert "hip-python is not installed" in gpu.detail
    assert "pip install 'tunesmith[hip]'" in gpu.fix
    assert (rtc.usable, clang.usable) == (False, False)
    assert clang.fix == "apt-get install rocm-device-libs"


def test_no_compiler_for_the_cpu_device(machine: Machine) -> None:
    what = "C++ compiler (cpu device)"
    assert machine.finding(what).detail.startswith("g++ 12.2.0: CUDA and HIP kernels")
    machine.compilers = ()
    finding = machine.finding(what)
    assert (finding.usable, finding.fix) == (False, "pip install 'tunesmith[cpu]'")


def test_each_layer_of_the_sandbox(machine: Machine) -> None:
    machine.layers[1] = ProtectionLayer("files", False, "this kernel has no Landlock")
    assert machine.finding("sandbox: network").usable
    files = machine.finding("sandbox: files")
    assert (files.usable, files.detail) == (False, "this kernel has no Landlock")


def test_no_sanitizers(machine: Machine) -> None:
    assert machine.finding("oclgrind").detail == "/usr/bin/oclgrind, watches winners (oclgrind)"
    del machine.programs["oclgrind"]
    machine.sanitizer = None
    missing = [machine.finding(what) for what in ("oclgrind", "compute-sanitizer")]
    assert [(f.usable, f.detail.endswith("nothing watches winners")) for f in missing] == 2 * [(False, True)]
    assert all(f.fix for f in missing)


def test_no_pyopencl(machine: Machine) -> None:
    machine.modules.remove("pyopencl")
    finding = machine.finding("pyopencl")
    assert not finding.usable
    assert finding.detail == "not installed: the OpenCL backend needs it"
    assert finding.fix == "pip install 'tunesmith[opencl]'"
    assert "OpenCL device" not in [f.what for f in doctor.doctor_findings()], "nobody can ask for devices"


def test_no_linker(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    del machine.programs["ld"]
    assert machine.finding("linker (ld)").fix == "apt-get install binutils"
    del machine.programs["apt-get"]
    assert machine.finding("linker (ld)").fix == "install binutils with your system's package manager"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert machine.finding("linker (ld)").usable


def test_no_platform(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.devices = ()
    finding = machine.finding("OpenCL device")
    assert (finding.usable, finding.fix) == (False, "pip install pocl-binary-distribution")
    monkeypatch.setattr(opencl.platform, "machine", lambda: "aarch64")
    finding = machine.finding("OpenCL device")
    assert "no wheel for linux aarch64" in finding.detail
    assert finding.fix == "apt-get install pocl-opencl-icd"
    del machine.programs["apt-get"]
    machine.programs["dnf"] = "/usr/bin/dnf"
    assert machine.finding("OpenCL device").fix == "dnf install pocl"


def test_an_unpacked_pocl_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OCL_ICD_VENDORS", raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert "unpacked" not in machine.finding("OpenCL device").detail
    (tmp_path / "pocl" / "vendors").mkdir(parents=True)
    (tmp_path / "pocl" / "vendors" / "pocl.icd").write_text("libpocl.so.2")
    assert str(tmp_path / "pocl") in machine.finding("OpenCL device").detail


def test_a_driver_that_is_broken(machine: Machine) -> None:
    machine.trouble = DeviceMissing("the opencl driver did not answer within 60 s")
    finding = machine.finding("OpenCL device")
    assert not finding.usable
    assert finding.detail == machine.trouble.message


class TestCuda:
    EXTRA = "pip install 'tunesmith[cuda]'"

    def test_no_driver(self, machine: Machine) -> None:
        machine.driver = False
        finding = machine.finding("NVIDIA driver")
        assert not finding.usable
        says(finding.detail, "libcuda.so.1", "not there", "can be built", "cannot run")
        assert "nvidia.com" in finding.fix
        assert "CUDA device" not in [f.what for f in doctor.doctor_findings()], "nobody can ask for devices"
        assert machine.finding("NVRTC").usable, "it builds all the same"

    def test_no_device(self, machine: Machine) -> None:
        machine.devices = ()
        finding = machine.finding("CUDA device")
        assert (finding.usable, finding.detail) == (False, "the driver sees no device")
        assert "--gpus all" in finding.fix

    def test_a_driver_that_is_too_old(self, machine: Machine) -> None:
        machine.driver_version = 12020
        finding = machine.finding("NVIDIA driver")
        assert not finding.usable
        assert finding.detail.startswith("for CUDA 12.2, older than CUDA 13: ")
        assert finding.fix == "a driver for CUDA 13 or newer, from https://www.nvidia.com/drivers"
        assert "CUDA device" not in [f.what for f in doctor.doctor_findings()], "it could not run anything"

    def test_a_driver_that_does_not_start(self, machine: Machine) -> None:
        machine.trouble = DeviceMissing("the NVIDIA driver does not start")
        finding = machine.finding("CUDA device")
        assert (finding.usable, finding.detail) == (False, "the NVIDIA driver does not start")
        assert "nvidia-smi -L" in finding.fix
        machine.modules.remove("cuda.bindings")
        assert machine.finding("CUDA device").fix == self.EXTRA

    def test_no_compilers(self, machine: Machine) -> None:
        machine.nvrtc = Unsupported("cuda-bindings cannot be loaded: No module named 'cuda'")
        machine.nvcc = None
        assert machine.finding("NVRTC").fix == self.EXTRA
        assert machine.finding("NVRTC").detail.startswith("cuda-bindings cannot be loaded")
        assert "CUDA headers" not in [f.what for f in doctor.doctor_findings()], "which would do is not known"
        assert "cuda-downloads" in machine.finding("nvcc").fix

    def test_no_headers(self, machine: Machine) -> None:
        machine.headers = ()
        finding = machine.finding("CUDA headers")
        assert (finding.usable, finding.fix) == (False, self.EXTRA)

    def test_no_small_floats(self, machine: Machine) -> None:
        machine.modules.remove("ml_dtypes")
        finding = machine.finding("ml_dtypes")
        assert finding.detail == "not installed: comparing bfloat16 and float8 needs it"
        assert finding.fix == self.EXTRA


class TestCounters:
    NCU, RIGHTS = "Nsight Compute (ncu)", "hardware counters"

    def test_found_and_permitted(self, machine: Machine) -> None:
        assert machine.finding(self.NCU).detail == "/cuda/bin/ncu"
        assert machine.finding(self.RIGHTS).usable

    def test_not_found(self, machine: Machine) -> None:
        machine.ncu = None
        found = machine.finding(self.NCU)
        assert not found.usable
        assert "do without hardware counters" in found.detail
        assert "cuda-downloads" in found.fix

    @pytest.mark.parametrize(("allowed", "usable"), [(False, False), (None, True), (True, True)])
    def test_permission(self, machine: Machine, allowed: bool | None, usable: bool) -> None:
        machine.may_count = (allowed, "so the driver says")
        found = machine.finding(self.RIGHTS)
        assert (found.usable, found.detail) == (usable, "so the driver says")
        assert bool(found.fix) is not usable

    def test_without_a_driver_there_is_nothing_to_count(self, machine: Machine) -> None:
        machine.driver = False
        names = [finding.what for finding in doctor.doctor_findings()]
        assert self.NCU not in names
        assert self.RIGHTS not in names


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
