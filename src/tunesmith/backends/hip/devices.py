"""The HIP runtime and hiprtc through `hip-python`, loaded on use, every answer checked; and AMD's GPUs, as
the runtime or their data sheets describe them: kernels can be built for one that is not here.

What is used of the bindings are functions that answer with a status and what they found, as CUDA's do: tests
put a simulated library in their place with `use_bindings`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tunesmith.backends.hip.code_object import ARCHITECTURES, GPUS, MAX, MIB, AmdArchitecture, limits_of
from tunesmith.backends.port import DeviceLost, LaunchFailed, OutOfMemory, Unsupported
from tunesmith.base.errors import BadInput
from tunesmith.problem.device import AllocationUnits, Device, Limits

NO_BINDINGS = "hip-python cannot be loaded"
OUT_OF_MEMORY = 2  # hipErrorOutOfMemory
_LOST = (100, 214)  # hipErrorNoDevice, hipErrorECCNotCorrectable: no kernel can cause these


@dataclass
class HipLibraries:
    """As they were found, or put here by a test."""

    runtime: Any = None
    compiler: Any = None
    is_started: bool = False


_LOADED = HipLibraries()


@contextmanager
def use_bindings(runtime: Any, compiler: Any) -> Iterator[None]:
    """These in place of what is installed."""
    before = (_LOADED.runtime, _LOADED.compiler, _LOADED.is_started)
    _LOADED.runtime, _LOADED.compiler, _LOADED.is_started = runtime, compiler, False
    try:
        yield
    finally:
        _LOADED.runtime, _LOADED.compiler, _LOADED.is_started = before


def load_runtime() -> Any:
    """The bindings of a runtime that sees a device, or Unsupported with the reason there is none."""
    if _LOADED.runtime is None:
        _LOADED.runtime = _import_hip_module("hip")
    hip = _LOADED.runtime
    if not _LOADED.is_started:
        try:
            status, *found = hip.hipGetDeviceCount()
        except (RuntimeError, OSError) as error:  # how the bindings say that libamdhip64 is not there
            raise Unsupported("there is no HIP runtime: libamdhip64 cannot be loaded") from error
        if int(status) != 0 or not int(found[0]):
            raise Unsupported("the HIP runtime sees no device")
        _LOADED.is_started = True
    return hip


def load_hiprtc() -> Any:
    """The bindings of hiprtc, which needs no device."""
    if _LOADED.compiler is None:
        found = _import_hip_module("hiprtc")
        try:
            found.hiprtcVersion()
        except (RuntimeError, OSError) as error:
            raise Unsupported("hiprtc cannot be loaded: libhiprtc is not there") from error
        _LOADED.compiler = found
    return _LOADED.compiler


def _import_hip_module(name: str) -> Any:
    """Up to release 7 a module of the package, from 10 on something that the package hands on."""
    try:
        package = importlib.import_module("hip")
        return getattr(package, name, None) or importlib.import_module(f"hip.{name}")
    except ImportError as error:
        raise Unsupported(f"{NO_BINDINGS}: {error}") from error


def check_hip(answer: tuple[Any, ...]) -> Any:
    """What a call of the runtime returned, without its status; a bad status is raised as what it means."""
    status = int(answer[0])
    if status != 0:
        text = _hip_error_text(answer[0])
        if status == OUT_OF_MEMORY:
            raise OutOfMemory(text)
        raise (DeviceLost if status in _LOST else LaunchFailed)(text)
    return answer[1] if len(answer) == 2 else answer[1:]


def _hip_error_text(status: Any) -> str:
    hip = _LOADED.runtime
    found = (hip.hipGetErrorName(status), hip.hipGetErrorString(status))
    said = [text.decode() if isinstance(text, bytes) else str(text) for text in found if text]
    return ": ".join(said) or f"HIP error {int(status)}"


def check_hiprtc(answer: tuple[Any, ...]) -> Any:
    """The same of hiprtc, where a bad status is a broken machine and no bad source."""
    if int(answer[0]) != 0:
        raise RuntimeError(f"hiprtc: status {int(answer[0])}")
    return answer[1] if len(answer) == 2 else answer[1:]


PLATFORM = "AMD HIP"
DEFAULT = "MI300X"


def describe_all() -> tuple[Device, ...]:
    """Those that are known. A processor's own small GPU beside them is left out: see `left_out`."""
    version, found = int(check_hip(load_runtime().hipRuntimeGetVersion())), _all_properties()
    known = tuple(_describe_hip_device(n, p, version) for n, p in found if _gpu_target(p) in ARCHITECTURES)
    if not known:
        targets = ", ".join(_gpu_target(properties) for _, properties in found)
        are = "the GPU is" if len(found) == 1 else "the GPUs are"
        raise Unsupported(f"{are} {targets}; known are {', '.join(ARCHITECTURES)}")
    return known


def left_out() -> tuple[str, ...]:
    """GPUs that the runtime sees and Tunesmith does not know, in words."""
    unknown = [p for _, p in _all_properties() if _gpu_target(p) not in ARCHITECTURES]
    return tuple(f"{_decode_property(p.name)} ({_gpu_target(p)})".strip() for p in unknown)


def _all_properties() -> tuple[tuple[int, Any], ...]:
    count = int(check_hip(load_runtime().hipGetDeviceCount()))
    return tuple((number, _device_properties(number)) for number in range(count))


def _gpu_target(properties: Any) -> str:
    return _decode_property(properties.gcnArchName).partition(":")[0]  # "gfx90a:sramecc+:xnack-"


def _describe_hip_device(number: int, properties: Any, version: int) -> Device:
    target = _gpu_target(properties)
    return Device(
        backend="hip",
        id=str(number),
        name=_decode_property(properties.name) or target,
        platform=PLATFORM,
        driver=f"HIP {version // 10_000_000}.{version // 100_000 % 100}",
        kind="gpu",
        limits=_hip_limits(ARCHITECTURES[target], properties),
        target=target,
    )


def _device_properties(number: int) -> Any:
    hip = load_runtime()
    try:
        return check_hip(hip.hipGetDeviceProperties(number))
    except TypeError:  # bindings before release 10 fill in what they are given
        found = hip.hipDeviceProp_t()
        check_hip(hip.hipGetDeviceProperties(found, number))
        return found


def _hip_limits(chip: AmdArchitecture, properties: Any) -> Limits:
    wave, memory = int(properties.warpSize), int(properties.totalGlobalMem)
    # The file of registers is as large whatever the waves: what a wave of another width gets follows.
    table = limits_of(chip, GPUS[chip.example])
    # Kilohertz and bits; at least two transfers a cycle. Too low a bound would call good timings impossible,
    # too small a cache would leave warm what is timed as cold: the larger of what is said and the table's.
    most, said = MAX[chip.name], 2e3 * int(properties.memoryClockRate) * int(properties.memoryBusWidth) / 8
    return replace(
        table,
        max_threads=int(properties.maxThreadsPerBlock),
        max_block=_to_three_ints(properties.maxThreadsDim),
        max_grid=_to_three_ints(properties.maxGridSize),
        shared=int(properties.sharedMemPerBlock),
        sms=int(properties.multiProcessorCount),
        warp=wave,
        llc=max(int(properties.l2CacheSize), most.llc * MIB),
        memory=memory,
        max_allocation=memory,
        pin_bandwidth=max(said, most.bandwidth * 1e9),
        threads_per_sm=chip.waves * chip.simds * wave,
        units=AllocationUnits(chip.lds_unit, chip.vgpr_unit * chip.wave, chip.simds),
    )


def _to_three_ints(values: Any) -> tuple[int, int, int]:
    first, second, third = (int(value) for value in values)
    return first, second, third


def _decode_property(value: Any) -> str:
    data = value if isinstance(value, str) else bytes(value).partition(b"\0")[0].decode(errors="replace")
    return data.strip()


def absent_device(wanted: str | None) -> Device:
    """A GPU by name ("MI300X") or by its architecture ("gfx942"); None: the usual one."""
    text = (DEFAULT if wanted is None else wanted).strip()
    chip = ARCHITECTURES.get(text.lower())
    short = (
        chip.example if chip else next((s for s in GPUS if _short_amd_name(s) == _short_amd_name(text)), None)
    )
    if short is None:
        raise BadInput(
            f"no AMD GPU is here, and none is known as {text!r}",
            hint=f"write one of {', '.join(GPUS)}, or {', '.join(ARCHITECTURES)}",
        )
    gpu = GPUS[short]
    limits = limits_of(ARCHITECTURES[gpu.architecture], gpu)
    key = chip.name if chip else short
    return Device(
        "hip", f"absent:{key}", gpu.name, PLATFORM, "", "gpu", limits, absent=True, target=gpu.architecture
    )


def is_architecture(device: Device, wanted: str) -> bool:
    return bool(device.target) and wanted.strip().lower() == device.target


def _short_amd_name(name: str) -> str:
    """Without what people leave out: the maker, the family, blanks and dashes."""
    return re.sub(r"amd|instinct|radeon|rx|[^a-z0-9]", "", name.lower())
