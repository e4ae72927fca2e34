"""What the runtime says of AMD's GPUs, and what it does not say."""

from __future__ import annotations

import pytest

from tests.core.backends.hip.simulated import SimulatedCompiler, SimulatedRuntime
from tunesmith.backends import port
from tunesmith.backends.hip import HipBackend, _check_amd_gpu
from tunesmith.backends.hip import runtime as library
from tunesmith.backends.hip.code_object import ARCHITECTURES, GPUS, MIB, MOST
from tunesmith.backends.port import Unsupported
from tunesmith.problem.device import Device


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
    assert set(MOST) == set(ARCHITECTURES)
    for gpu in GPUS.values():
        most = MOST[gpu.architecture]
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
