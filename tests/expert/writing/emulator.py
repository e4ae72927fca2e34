"""Runs a CUDA kernel on the cpu device, in this process; and what a program of many kernels is made of."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sysconfig
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.cpu_here import needs_cpu
from tunesmith.backends.cpu import CpuBackend, building
from tunesmith.backends.cpu.compilers import named
from tunesmith.backends.cpu.session import CpuSession
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import Pointer
from tunesmith.lab.memory import bind_calls
from tunesmith.lab.runner import unit_of
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Plan
from tunesmith.problem.problem import element_type
from tunesmith.problem.template import Variant

Array = NDArray[Any]
HEADER = Path(__file__).with_name("emulator.h")
INCLUDE = Path(sysconfig.get_paths()["purelib"]) / "nvidia/cu13/include"
needs_emulator = needs_cpu
needs_headers = pytest.mark.skipif(
    shutil.which("g++") is None or not (INCLUDE / "cuda_fp16.h").exists(),
    reason="there is no g++, or no CUDA headers",
)
_GUARD = 256  # bytes before and behind every array
_MARGIN = b"\xab" * _GUARD
# Some distributions check every longjmp, and abort at one to another fibre's stack.
UNCHECKED_JUMPS = "-U_FORTIFY_SOURCE"


class Stray(AssertionError):
    """The kernel wrote outside its arrays."""


def run(
    made: Variant, plan: Plan, inputs: Mapping[str, Array], folder: Path, seed: int = 0
) -> dict[str, Array]:
    """What the kernel leaves on the cpu device in the arrays it writes; poisoned before, guarded on both
    sides. What `folder` has compiled already is not compiled again. `seed`: an order of threads; 0: one after
    the other."""
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
    return CpuBackend().devices()[0]


def prepare() -> None:
    """What every build needs, compiled once for all processes that are forked."""
    building.runtime(named(device().driver), device().limits.warp, False)


def _built(unit: Unit, folder: Path) -> bytes:
    library = folder / f"{sha256(repr(unit).encode()).hexdigest()[:16]}.so"
    if not library.exists():
        library.write_bytes(building.build(unit, device()).data)
    return library.read_bytes()


_COPY = re.compile(
    r'asm volatile\("cp\.async\.c[ag]\.shared\.global \[%0\], \[%1\], (\d+);"\s*::\s*'
    r'"r"\((\w+)\),\s*"l"\((\w+)\)\s*:\s*"memory"\);'
)
_COMMIT = re.compile(r'asm volatile\("cp\.async\.commit_group;"\s*:::\s*"memory"\);')
_WAIT = re.compile(r'asm volatile\("cp\.async\.wait_group (\d+);"\s*:::\s*"memory"\);')
_ASSEMBLY = re.compile(r'asm volatile\(((?:"[^"]*"|[^";])*)\);')
_OPERAND = re.compile(r'"=?[rl]"\((\w+)\)')
_BARRIERS = (  # an instruction -> what it is here, of its operands in turn
    ("griddepcontrol.", "(void)0"),  # launches are run one after the other
    ("mbarrier.init.", "emulated_make_arrival({0}, 1)"),
    ("fence.proxy.async.", "emulated_fence_copies()"),
    ("mbarrier.arrive.expect_tx.", "emulated_expect({0}, {1})"),
    ("cp.async.bulk.", "emulated_bulk_copy({0}, {1}, {2}, {3})"),
    ("{ .reg .pred p; mbarrier.try_wait.parity.", "{0} = emulated_arrived({1}, {2})"),
)


def _call(found: re.Match[str]) -> str:
    for word, call in _BARRIERS:
        if found[1].startswith(f'"{word}'):
            return f"{call.format(*_OPERAND.findall(found[0]))};"
    return found[0]


def host_text(source: str) -> str:
    """With dynamic shared memory where the emulator has it, and calls for what is assembly on a GPU."""
    text = re.sub(
        r"extern __shared__\s+(?:__align__\(\d+\)\s*)?([\w ]+?)\s+(\w+)\[\];",
        r"\1 *\2 = (\1 *)emulated_shared;",
        source,
    )
    text = _ASSEMBLY.sub(_call, text)
    text = _COPY.sub(r"emulated_copy(\2, \3, \1);", text)
    return _WAIT.sub(r"__pipeline_wait_prior(\1);", _COMMIT.sub("__pipeline_commit();", text))


def compiled_header(compiler: Callable[..., None], flags: str, folder: Path) -> Path:
    """The folder with the emulator's header, compiled beforehand: that takes longer than any of the kernels.
    All processes of one run of tests share it."""
    whole = Path(os.environ.get("TESTS_SHARED_FOLDER", folder))
    place = whole / f"headers-{sha256(flags.encode()).hexdigest()[:8]}"
    place.mkdir(parents=True, exist_ok=True)
    header = place / HEADER.name
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not header.exists():
            shutil.copy(HEADER, header)
            compiler("-x", "c++-header", header, "-o", f"{header}.gch")
    return place


def c_type(name: str) -> str:
    kind = element_type(name)
    if kind.kind == "float":
        return {4: "float", 8: "double"}[kind.bytes]
    word = {1: "char", 2: "short", 4: "int", 8: "long long"}[kind.bytes]
    return f"unsigned {word}" if kind.kind == "uint" else word
