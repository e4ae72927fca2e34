"""The doctor names what is usable here and one command for each thing that is not."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from dataclasses import replace
from typing import Any

import pytest

from tunesmith import doctor, registry
from tunesmith.backends.fake import FakeBackend
from tunesmith.core.device import Device
from tunesmith.core.errors import DeviceMissing


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


class Machine:
    """A Linux machine with everything, until a test takes something away."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.modules = {"tree_sitter", "pyopencl"}
        self.programs = {"ld": "/usr/bin/ld", "apt-get": "/usr/bin/apt-get"}
        self.devices: tuple[Device, ...] = tuple(
            replace(d, name="a CPU", platform="a platform") for d in FakeBackend().devices()
        )
        self.trouble: DeviceMissing | None = None
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setattr(doctor.platform, "machine", lambda: "x86_64")
        monkeypatch.setattr(shutil, "which", self.programs.get)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name in self.modules else None)
        monkeypatch.setattr(registry, "list_devices", self._list)

    def _list(self, *_: Any) -> tuple[Device, ...]:
        if self.trouble is not None:
            raise self.trouble
        return self.devices

    def finding(self, what: str) -> doctor.Finding:
        found = [f for f in doctor.examine() if f.what == what]
        assert len(found) == 1
        return found[0]


def test_everything_is_there(machine: Machine) -> None:
    findings = {f.what: f for f in doctor.examine()}
    assert [what for what, f in findings.items() if not f.usable] == ["CUDA", "HIP"]
    assert findings["OpenCL device"].detail == "a CPU (a platform)"
    assert not any(f.fix for f in findings.values())


def test_no_pyopencl(machine: Machine) -> None:
    machine.modules.remove("pyopencl")
    finding = machine.finding("pyopencl")
    assert not finding.usable
    assert finding.detail == "not installed: the OpenCL backend needs it"
    assert finding.fix == "pip install 'tunesmith[opencl]'"
    assert "OpenCL device" not in [f.what for f in doctor.examine()], "nobody can ask for devices"


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
    monkeypatch.setattr(doctor.platform, "machine", lambda: "aarch64")
    finding = machine.finding("OpenCL device")
    assert finding.detail == "no platform found, and PoCL has no package for this system"
    assert finding.fix == ""


def test_a_driver_that_is_broken(machine: Machine) -> None:
    machine.trouble = DeviceMissing("the opencl driver did not answer within 60 s")
    finding = machine.finding("OpenCL device")
    assert not finding.usable
    assert finding.detail == "the opencl driver did not answer within 60 s"
