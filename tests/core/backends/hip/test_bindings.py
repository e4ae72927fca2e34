"""The bindings of `hip-python` themselves, over a simulated library in C: what they are handed arrives."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.backends.hip import test_conformance as simulated_in_python
from tests.core.backends.hip.simulated import code_object
from tests.suites.backend_suite import BackendSuite
from tunesmith.backends.hip import HipBackend, devices

pytestmark = [pytest.mark.long, pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")]
PROPERTIES = {
    "warpSize": 64, "totalGlobalMem": 1 << 30, "memoryClockRate": 1_300_000, "memoryBusWidth": 8192,
    "maxThreadsPerBlock": 1024, "sharedMemPerBlock": 64 << 10, "multiProcessorCount": 304,
}  # fmt: skip


def properties(hip: Any) -> bytes:
    """A structure as the bindings lay it out; of its arrays they tell the place only by what they read."""
    made = hip.hipDeviceProp_t()
    size, start = int(made.c_sizeof()), int(made)
    whole = (ctypes.c_char * size).from_address(start)
    for name, value in PROPERTIES.items():
        setattr(made, name, value)
    for name, value in (("name", b"A simulated Instinct"), ("gcnArchName", b"gfx942:sramecc+")):
        for at in range(size - len(value)):
            kept = whole[at : at + len(value)]
            whole[at : at + len(value)] = value
            if getattr(made, name) in (value, value.decode()):
                break
            whole[at : at + len(value)] = kept
    for name in ("maxThreadsDim", "maxGridSize"):
        for at in range(0, size - 12, 4):
            kept, three = whole[at : at + 12], (ctypes.c_int * 3).from_address(start + at)
            three[:] = [1024, 512, 64]
            if list(getattr(made, name)) == [1024, 512, 64]:
                break
            whole[at : at + 12] = kept
    return bytes(whole)


@pytest.fixture(scope="module")
def bindings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    pytest.importorskip("hip", reason="hip-python is not installed")
    from hip import hip, hiprtc

    folder = tmp_path_factory.mktemp("hip")
    source = Path(__file__).with_name("simulated.c")
    for name in ("libamdhip64.so", "libhiprtc.so"):
        options = ("-shared", "-fPIC", "-w", f"-Wl,-soname,{name}", "-o", str(folder / name))
        subprocess.run(["gcc", *options, str(source)], check=True)
        ctypes.CDLL(str(folder / name))  # from now on found by its name
    (folder / "properties").write_bytes(properties(hip))
    (folder / "code").write_bytes(code_object("gfx942", 0, {"scale": (8, 8, 4, 4)}))
    os.environ["SIMULATED_PROPERTIES"] = str(folder / "properties")
    os.environ["SIMULATED_CODE"] = str(folder / "code")
    with devices.use_bindings(None, None):
        assert (devices.load_runtime(), devices.load_hiprtc()) == (hip, hiprtc), (
            "found by ourselves, in any release"
        )
    return hip, hiprtc


class TestBindings(BackendSuite):
    widest_fill = 4

    @pytest.fixture(autouse=True)
    def simulated(self, bindings: tuple[Any, Any]) -> Iterator[None]:
        with devices.use_bindings(*bindings):
            yield

    unit = simulated_in_python.TestSimulatedHip.unit
    broken_unit = simulated_in_python.TestSimulatedHip.broken_unit

    def make_backend(self) -> HipBackend:
        return HipBackend()

    def test_the_device_is_described_by_its_own_words(self, device: Any) -> None:
        assert (device.name, device.target, device.limits.warp) == ("A simulated Instinct", "gfx942", 64)
        assert device.limits.max_block == device.limits.max_grid == (1024, 512, 64)
        assert device.driver == "HIP 7.2"
