"""The suite of all backends, over a simulated HIP runtime: what is called, and in what order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.core.backends.hip.simulated import SimulatedCompiler, SimulatedRuntime
from tests.suites.backend_suite import BackendSuite
from tunesmith.backends import port
from tunesmith.backends.hip import HipBackend, _check_amd_gpu
from tunesmith.backends.hip import devices as library
from tunesmith.backends.hip.code_object import ARCHITECTURES, GPUS, MAX, MIB
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed, DeviceLost, LaunchFailed, OutOfMemory, Scalar, Unsupported
from tunesmith.problem.device import Device


class TestSimulatedHip(BackendSuite):
    widest_fill = 4
    runtime: SimulatedRuntime

    @pytest.fixture(autouse=True)
    def library(self) -> Iterator[None]:
        self.runtime = SimulatedRuntime()
        with library.use_bindings(self.runtime, SimulatedCompiler()):
            yield

    def make_backend(self) -> HipBackend:
        return HipBackend()

    def unit(self, factor: int = 2, comment: str = "") -> Unit:
        text = f"""{f"// {comment}" if comment else ""}
        extern "C" __global__ void scale(float* out, const float* x, int rows, int d) {{
            size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
            if (i < (size_t)rows * d) out[i] = {factor}.0f * x[i];
        }}"""
        return Unit("kernel.hip", text, "hip", (), ("scale",))

    def broken_unit(self) -> Unit:
        text = 'extern "C" __global__ void scale(float* out) {\n  out[0] = nonsense;\n}'
        return Unit("broken.hip", text, "hip", (), ("scale",))

    def test_the_wave_is_the_devices_own_word(self, backend, device) -> None:
        assert (device.target, device.architecture, device.limits.warp) == ("gfx942", "gfx942", 64)
        assert device.limits.threads_per_sm == 8 * 4 * 64
        narrow = SimulatedRuntime("gfx1100", wave=32)
        with library.use_bindings(narrow, SimulatedCompiler()):
            (other,) = backend.devices()
        assert (other.target, other.limits.warp, other.limits.threads_per_sm) == ("gfx1100", 32, 16 * 2 * 32)

    def test_too_many_arguments_are_refused_too(self, session, backend, device) -> None:
        call, *_ = self.call(session, backend, device, rows=1, d=16)
        with pytest.raises(LaunchFailed, match="scale takes 4 arguments, 5 are given"):
            session.run([replace(call, args=(*call.args, Scalar("int32", 0)))])
        with pytest.raises(LaunchFailed, match="argument 4 of scale has 4 bytes, int64 has 8"):
            session.run([replace(call, args=(*call.args[:3], Scalar("int64", 0)))])

    def test_what_amd_has_not_is_refused(self, session, backend, device) -> None:
        call, *_ = self.call(session, backend, device, rows=1, d=16)
        with pytest.raises(LaunchFailed, match="neither clusters nor"):
            session.run([replace(call, cluster=(2, 1, 1))])

    def test_a_recording_is_captured_once_and_played_as_a_graph(self, session, backend, device) -> None:
        call, *_ = self.call(session, backend, device, rows=1, d=16)
        self.runtime.calls.clear()
        recording = session.record([call, call])
        recording.start()()
        recording.start()()
        asked = [name for name in self.runtime.calls if "Capture" in name or "Launch" in name]
        begun = ["hipStreamBeginCapture", "hipStreamCaptureMode"]
        assert sorted(asked[:2]) == begun
        assert asked[2:] == [
            *["hipModuleLaunchKernel"] * 2, "hipStreamEndCapture", *["hipGraphLaunch"] * 2
        ]  # fmt: skip

    def test_a_launch_that_fails_ends_the_capture(self, session, backend, device) -> None:
        call, *_ = self.call(session, backend, device, rows=1, d=16)
        with pytest.raises(LaunchFailed):
            session.record([replace(call, args=call.args[:2])])
        session.run([call])  # the stream is no longer captured

    @pytest.mark.parametrize(
        ("status", "kind", "words"),
        [
            (1, LaunchFailed, "hipErrorInvalidValue: invalid argument"),
            (2, OutOfMemory, "hipErrorOutOfMemory"),
            (100, DeviceLost, "HIP error 100"),
        ],
    )
    def test_a_bad_status_is_raised_as_what_it_means(
        self, status: int, kind: type[Exception], words: str
    ) -> None:
        with pytest.raises(kind, match=words):
            library.check_hip((status,))

    @pytest.mark.parametrize("flag", ["--offload-arch=gfx90a", "-ffast-math", "-mno-wavefrontsize64"])
    def test_flags_that_shape_kernels(self, backend, device, flag: str) -> None:
        backend.build(replace(self.unit(), flags=(flag,)), device)

    @pytest.mark.parametrize("flag", ["-fplugin=x.so", "-I/etc", "-Xclang", "-o", "@file"])
    def test_other_flags_are_refused(self, backend, device, flag: str) -> None:
        with pytest.raises(BuildFailed, match="is not one that shapes a HIP kernel"):
            backend.build(replace(self.unit(), flags=(flag,)), device)

    @pytest.mark.parametrize("entry", ["scael", "x;y", ""])
    def test_an_entry_that_does_not_exist(self, backend, device, entry: str) -> None:
        with pytest.raises(
            BuildFailed, match=r"no kernel called 'scael' .*it defines scale|name of a kernel"
        ):
            backend.build(replace(self.unit(), entries=(entry,)), device)


def test_an_unknown_gpu_is_named() -> None:
    with (
        library.use_bindings(SimulatedRuntime("gfx777"), SimulatedCompiler()),
        pytest.raises(Unsupported, match="the GPU is gfx777; known are gfx908, gfx90a"),
    ):
        HipBackend().devices()


def test_without_the_bindings_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(library.importlib, "import_module", absent)
    with library.use_bindings(None, None):
        with pytest.raises(Unsupported, match="hip-python cannot be loaded: No module named 'hip'"):
            HipBackend().devices()
        with pytest.raises(Unsupported, match="No module named 'hip'"):
            library.load_hiprtc()


def test_bindings_without_the_library_say_so() -> None:
    class Bindings:
        def hipGetDeviceCount(self) -> None:
            raise RuntimeError("failed to dlopen 'libamdhip64.so'")

    with (
        library.use_bindings(Bindings(), None),
        pytest.raises(Unsupported, match="libamdhip64 cannot be loaded"),
    ):
        HipBackend().devices()


def described(runtime: SimulatedRuntime) -> tuple[Device, ...]:
    with library.use_bindings(runtime, SimulatedCompiler()):
        return HipBackend().devices()


@pytest.mark.parametrize(
    ("runtime", "bandwidth", "llc"),
    [
        # By two transfers a cycle an MI300X would have 2.7 TB/s, an RX 7900 XTX 120 GB/s.
        (SimulatedRuntime("gfx942", clock_khz=1_300_000, bus=8192, l2=4 * MIB), 5.3e12, 256 * MIB),
        (SimulatedRuntime("gfx1100", 32, clock_khz=1_250_000, bus=384, l2=6 * MIB), 0.96e12, 96 * MIB),
        (SimulatedRuntime("gfx90a", clock_khz=1_600_000, bus=4096, l2=8 * MIB), 1.638e12, 8 * MIB),
        (SimulatedRuntime("gfx90a", clock_khz=0, bus=0, l2=0), 1.638e12, 8 * MIB),
    ],
)
def test_pins_and_cache_are_at_least_the_chips(runtime: SimulatedRuntime, bandwidth: float, llc: int) -> None:
    (device,) = described(runtime)
    assert device.limits.pin_bandwidth is not None
    assert bandwidth <= device.limits.pin_bandwidth < 1.2 * bandwidth
    assert device.limits.llc == llc


def test_a_runtime_that_says_more_is_believed() -> None:
    (device,) = described(SimulatedRuntime("gfx942", clock_khz=4_000_000, bus=8192, l2=512 * MIB))
    assert device.limits.pin_bandwidth == pytest.approx(2 * 4e9 * 8192 / 8)
    assert device.limits.llc == 512 * MIB


def test_no_gpu_of_the_table_has_more_than_its_architecture() -> None:
    assert set(MAX) == set(ARCHITECTURES)
    for gpu in GPUS.values():
        most = MAX[gpu.architecture]
        assert (gpu.bandwidth <= most.bandwidth, gpu.llc <= most.llc) == (True, True), gpu.name


def test_an_unknown_gpu_beside_a_known_one_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = SimulatedRuntime("gfx1036", wave=32, others=("gfx1100",))
    (device,) = described(runtime)
    assert (device.id, device.target) == ("1", "gfx1100")  # the runtime's own number
    monkeypatch.setattr(port, "has_module", lambda name: name == "hip")
    with library.use_bindings(runtime, SimulatedCompiler()):
        finding = _check_amd_gpu(HipBackend().devices)
    assert finding.usable
    assert (
        "waves of 32); left out, since Tunesmith does not know it: A simulated Instinct (gfx1036)"
        in finding.detail
    )


def test_where_no_gpu_is_known_all_are_named() -> None:
    with pytest.raises(Unsupported, match="the GPUs are gfx1036, gfx777; known are gfx908"):
        described(SimulatedRuntime("gfx1036", others=("gfx777",)))
