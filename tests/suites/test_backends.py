"""Every backend against the suite."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.cpu_here import needs_cpu
from tests.opencl_here import needs_opencl, opencl_platforms, platform_of
from tests.suites.backend_suite import BackendSuite
from tunesmith.backends.cuda import CudaBackend
from tunesmith.backends.fake import FakeBackend
from tunesmith.backends.messages import Unit
from tunesmith.backends.opencl import OpenCLBackend
from tunesmith.backends.port import Backend, BuildFailed, KernelBinary, LaunchFailed, Scalar
from tunesmith.backends.replay import ReplayBackend
from tunesmith.plugins.cpu_device import CpuBackend
from tunesmith.problem.device import Device

NVIDIA = "NVIDIA"
FAKE = """{head}// /// fake
// args = ["out", "x", "rows", "d"]
// op = "{op}"
// time = "100 + rows * d"
// ///
"""


class TestFake(BackendSuite):
    plays_every_call = False

    def make_backend(self) -> FakeBackend:
        return FakeBackend()

    def unit(self, factor: int = 2, comment: str = "") -> Unit:
        text = FAKE.format(head=f"// {comment}\n" if comment else "", op={2: "scale", 1: "copy"}[factor])
        return Unit("kernel.fake", text, "fake", (), ("scale",))

    def broken_unit(self) -> Unit:
        return Unit("broken.fake", "nothing", "fake", (), ("scale",))


class TestReplay(TestFake):
    @pytest.fixture(autouse=True)
    def recording(self, tmp_path: Path) -> None:
        self.path = tmp_path / "recording.json"
        self.path.write_text(
            json.dumps({"params": {"A": [1, 2]}, "configs": [[1], [2]], "time_ms": [0.5, None]})
        )

    def make_backend(self) -> ReplayBackend:  # type: ignore[override]
        return ReplayBackend(str(self.path))

    def test_times_come_from_the_recording(self, session, backend, device) -> None:
        unit = Unit("k.fake", "#define A 1\n" + self.unit().source, "fake", (), ("scale",))
        call, *_ = self.call(session, backend, device, rows=1, d=16, unit=unit)
        assert session.record([call] * 4).start()() == pytest.approx(4 * 0.5e-3)

    @pytest.mark.parametrize(("value", "words"), [(2, "failed when it was recorded"), (3, "no recording")])
    def test_what_was_not_measured_does_not_build(self, backend, device, value: int, words: str) -> None:
        unit = Unit("k.fake", f"#define A {value}\n" + self.unit().source, "fake", (), ("scale",))
        with pytest.raises(BuildFailed, match=words):
            backend.build(unit, device)


def _of_platforms() -> list[ParameterSet]:
    """One for each platform that is here, and NVIDIA's at any rate: where it is not, that is said."""
    names = dict.fromkeys((*opencl_platforms(), *(() if _has(NVIDIA) else (NVIDIA,))))
    return [pytest.param(name, marks=[pytest.mark.gpu] * (NVIDIA in name), id=name) for name in names]


def _has(vendor: str) -> bool:
    return any(vendor in name for name in opencl_platforms())


@needs_opencl
class TestOpenCL(BackendSuite):
    @pytest.fixture(params=_of_platforms())
    def platform(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    def make_backend(self) -> OpenCLBackend:
        return OpenCLBackend()

    @pytest.fixture
    def device(self, backend: Backend, platform: str) -> Device:
        for device in backend.devices():
            if platform in platform_of(device):
                return device
        pytest.skip(f"no OpenCL device of {platform} here")

    def unit(self, factor: int = 2, comment: str = "") -> Unit:
        text = f"""{f"// {comment}" if comment else ""}
        __kernel void scale(__global float* out, __global const float* x, int rows, int d) {{
            size_t i = get_global_id(0);
            if (i < (size_t)rows * d) out[i] = {factor}.0f * x[i];
        }}"""
        return Unit("kernel.cl", text, "opencl", (), ("scale",))

    def broken_unit(self) -> Unit:
        return Unit(
            "broken.cl",
            "__kernel void scale(__global float* out) {\n  out[0] = nonsense;\n}",
            "opencl",
            (),
            ("scale",),
        )

    def test_the_compilers_words_name_file_and_line(self, backend, device) -> None:
        with pytest.raises(BuildFailed, match=r"broken\.cl:2:"):
            backend.build(self.broken_unit(), device)

    def test_an_entry_that_does_not_exist(self, backend, device) -> None:
        unit = Unit("kernel.cl", self.unit().source, "opencl", (), ("scael",))
        with pytest.raises(BuildFailed, match=r"no kernel called 'scael'; it defines scale"):
            backend.build(unit, device)


class CudaSuite(BackendSuite):
    language, suffix, header = "cuda", "cu", ""

    def unit(self, factor: int = 2, comment: str = "") -> Unit:
        text = f"""{self.header}{f"// {comment}" if comment else ""}
        extern "C" __global__ void scale(float* out, const float* x, int rows, int d) {{
            size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
            if (i < (size_t)rows * d) out[i] = {factor}.0f * x[i];
        }}"""
        return Unit(f"kernel.{self.suffix}", text, self.language, (), ("scale",))

    def broken_unit(self) -> Unit:
        text = 'extern "C" __global__ void scale(float* out) {\n  out[0] = nonsense;\n}'
        return Unit(f"broken.{self.suffix}", text, self.language, (), ("scale",))

    def test_too_many_arguments_are_refused_too(self, session, backend, device) -> None:
        call, *_ = self.call(session, backend, device, rows=1, d=16)
        with pytest.raises(LaunchFailed, match="scale takes 4 arguments, 5 are given"):
            session.run([replace(call, args=(*call.args, Scalar("int32", 0)))])


@pytest.mark.gpu
class TestCuda(CudaSuite):
    def make_backend(self) -> CudaBackend:
        return CudaBackend()


class InHip:
    """The same kernel as HIP has it."""

    language, suffix, header = "hip", "hip", "#include <hip/hip_runtime.h>\n"


@pytest.mark.gpu
class TestHipOnNvidia(InHip, TestCuda):
    """Through the header of ours."""


class _RememberingCpu(CpuBackend):
    """Builds each text once for all tests."""

    def build(self, unit: Unit, device: Device) -> KernelBinary:
        return _built_for_cpu(unit, device)


@cache
def _built_for_cpu(unit: Unit, device: Device) -> KernelBinary:
    return CpuBackend().build(unit, device)


@needs_cpu
class TestCpu(CudaSuite):
    def make_backend(self) -> CpuBackend:
        return _RememberingCpu()

    def test_the_compilers_words_name_file_and_line(self, backend, device) -> None:
        with pytest.raises(BuildFailed, match=rf"broken\.{self.suffix}:2:"):
            backend.build(self.broken_unit(), device)

    def test_an_entry_that_does_not_exist(self, backend, device) -> None:
        with pytest.raises(BuildFailed, match=r"no kernel called 'scael' .*; it defines scale"):
            backend.build(replace(self.unit(), entries=("scael",)), device)

    def test_an_argument_of_another_size_is_refused(self, session, backend, device) -> None:
        call, *_ = self.call(session, backend, device, rows=1, d=16)
        with pytest.raises(LaunchFailed, match="argument 4 of scale has 4 bytes, 8 are given"):
            session.run([replace(call, args=(*call.args[:3], Scalar("int64", 16)))])


@needs_cpu
class TestHipOnCpu(InHip, TestCpu):
    @pytest.fixture
    def device(self, backend: Backend) -> Device:
        return next(device for device in backend.devices() if device.limits.warp == 64)
