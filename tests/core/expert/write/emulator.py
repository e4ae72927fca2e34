"""Runs a CUDA kernel on the cpu device, in this process: a plugin, which those who need it import."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.cpu_here import needs_cpu
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import Pointer
from tunesmith.lab.build import unit_of
from tunesmith.lab.memory import bind_calls
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Plan
from tunesmith.problem.problem import element_type
from tunesmith.problem.template import Variant

Array = NDArray[Any]
needs_emulator = needs_cpu
_GUARD = 256  # bytes before and behind every array
_MARGIN = b"\xab" * _GUARD


class Stray(AssertionError):
    """The kernel wrote outside its arrays."""


def run(
    made: Variant, plan: Plan, inputs: Mapping[str, Array], folder: Path, seed: int = 0
) -> dict[str, Array]:
    """What the kernel leaves on the cpu device in the arrays it writes; poisoned before, guarded on both
    sides. What `folder` has compiled already is not compiled again. `seed`: an order of threads; 0: one after
    the other."""
    from tunesmith.plugins.cpu_device.session import CpuSession

    session = CpuSession(device())
    session.seed = seed
    memory = {buffer.name: session.allocate(buffer.nbytes + 2 * _GUARD) for buffer in plan.buffers}
    for buffer in plan.buffers:
        values = inputs.get(buffer.name)
        held = b"\xff" * buffer.nbytes if values is None else np.ascontiguousarray(values).tobytes()
        session.write(memory[buffer.name], 0, _MARGIN + held + _MARGIN)
    pointers = {b.name: Pointer(memory[b.name], _GUARD, b.nbytes) for b in plan.buffers}
    unit = unit_of(made)
    session.run(bind_calls(plan, session.load(unit, _built(unit, folder)), pointers))
    found: dict[str, Array] = {}
    for buffer in plan.buffers:
        whole = np.frombuffer(session.read(memory[buffer.name], 0, buffer.nbytes + 2 * _GUARD), np.uint8)
        if (whole[:_GUARD] != 0xAB).any() or (whole[_GUARD + buffer.nbytes :] != 0xAB).any():
            raise Stray(f"{buffer.name} was written outside")
        found[buffer.name] = whole[_GUARD : _GUARD + buffer.nbytes].copy()
    return found


@cache
def device() -> Device:
    from tunesmith.plugins.cpu_device import CpuBackend

    return CpuBackend().devices()[0]


def prepare() -> None:
    """What every build needs, compiled once for all processes that are forked."""
    from tunesmith.plugins.cpu_device import build

    build.compile_runtime(build.compiler_by_title(device().driver), device().limits.warp, False)


def _built(unit: Unit, folder: Path) -> bytes:
    from tunesmith.plugins.cpu_device import build

    library = folder / f"{sha256(repr(unit).encode()).hexdigest()[:16]}.so"
    if not library.exists():
        library.write_bytes(build.build_host_library(unit, device()).data)
    return library.read_bytes()


def c_type(name: str) -> str:
    kind = element_type(name)
    if kind.kind == "float":
        return {4: "float", 8: "double"}[kind.bytes]
    word = {1: "char", 2: "short", 4: "int", 8: "long long"}[kind.bytes]
    return f"unsigned {word}" if kind.kind == "uint" else word
