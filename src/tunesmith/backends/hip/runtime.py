"""The HIP runtime and hiprtc through `hip-python`, loaded on use and every answer checked.

What is used of them are functions that answer with a status and what they found, as CUDA's bindings do: tests
put a simulated library in their place with `use`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tunesmith.backends.port import DeviceLost, LaunchFailed, OutOfMemory, Unsupported

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
