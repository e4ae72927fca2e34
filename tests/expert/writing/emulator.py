"""Runs a CUDA kernel on the host, thread by thread: compiled with g++ and a header of our own."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tunesmith.problem.plan import BufferPlan, Plan
from tunesmith.problem.problem import element_type
from tunesmith.problem.template import Variant

Array = NDArray[Any]
HEADER = Path(__file__).with_name("emulator.h")
INCLUDE = Path(sysconfig.get_paths()["purelib"]) / "nvidia/cu13/include"
needs_emulator = pytest.mark.skipif(
    shutil.which("g++") is None or not (INCLUDE / "cuda_fp16.h").exists(),
    reason="there is no g++, or no CUDA headers",
)
_GUARD = 256  # bytes before and behind every array
# Some distributions check every longjmp, and abort at one to another fibre's stack.
UNCHECKED_JUMPS = "-U_FORTIFY_SOURCE"
_COMPILE = (
    *("g++", "-std=c++17", "-Og", "-w", "-fPIC", "-shared", "-fno-strict-aliasing"),
    *(UNCHECKED_JUMPS, f"-I{INCLUDE}"),
)


class Stray(AssertionError):
    """The kernel wrote outside its arrays."""


def _number(type_: str, place: int) -> str:
    value = f"*({type_} *)arguments[{place}]"
    return f"word{{{value}}}" if type_ == "unsigned long long" else value


def run(
    made: Variant, plan: Plan, inputs: Mapping[str, Array], folder: Path, seed: int = 0
) -> dict[str, Array]:
    """What the kernel leaves in the arrays it writes; poisoned before, guarded on both sides. What `folder`
    has compiled already is not compiled again. `seed`: an order of threads; 0: one after the other."""
    library = ctypes.CDLL(str(_compiled(made, plan, folder)))
    memory = {buffer.name: _laid_out(buffer, inputs.get(buffer.name)) for buffer in plan.buffers}
    scalars = {scalar.name: scalar for scalar in plan.scalars}
    for number, launch in enumerate(plan.launches):
        arguments: list[Any] = []
        for name in launch.args:
            name = dict(plan.aliases).get(name, name)
            if name in memory:
                arguments.append(ctypes.c_void_p(memory[name].ctypes.data + _GUARD))
            else:
                kind = element_type(scalars[name].type)
                value = np.array([scalars[name].value], kind.numpy)
                memory[f"scalar {name}"] = value
                arguments.append(ctypes.c_void_p(value.ctypes.data))
        pointers = (ctypes.c_void_p * len(arguments))(*arguments)
        three = ctypes.c_uint * 3
        library.run(number, three(*launch.grid), three(*launch.block), pointers, ctypes.c_ulonglong(seed))
    found: dict[str, Array] = {}
    for buffer in plan.buffers:
        whole = memory[buffer.name]
        if (whole[:_GUARD] != 0xAB).any() or (whole[_GUARD + buffer.nbytes :] != 0xAB).any():
            raise Stray(f"{buffer.name} was written outside")
        found[buffer.name] = whole[_GUARD : _GUARD + buffer.nbytes].copy()
    return found


def _laid_out(buffer: BufferPlan, values: Array | None) -> Array:
    room = np.full(buffer.nbytes + 2 * _GUARD + 256, 0xAB, np.uint8)
    start = -room.ctypes.data % 256
    whole = room[start : start + buffer.nbytes + 2 * _GUARD]
    inner = whole[_GUARD : _GUARD + buffer.nbytes]
    inner[...] = 0xFF if values is None else np.ascontiguousarray(values).view(np.uint8).reshape(-1)
    return whole


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


def _compiled(made: Variant, plan: Plan, folder: Path) -> Path:
    text = re.sub(r"^#include <cuda_.*$|^#line.*$", "", host_text(made.source), flags=re.MULTILINE)
    scalars = {scalar.name: scalar for scalar in plan.scalars}
    calls = []
    for number, launch in enumerate(plan.launches):
        given = [
            f"pass{{arguments[{place}]}}"
            if (kind := scalars.get(name)) is None
            else _number(c_type(kind.type), place)
            for place, name in enumerate(launch.args)
        ]
        calls.append(f"static void call_{number}() {{ {launch.entry}({', '.join(given)}); }}")
    listed = ", ".join(f"call_{number}" for number in range(len(calls)))
    wrapper = f"""
struct pass {{ void *p; template <typename T> operator T *() const {{ return (T *)p; }} }};
struct word {{  // a number, or a pointer that callers pass as one
    unsigned long long w;
    operator unsigned long long() const {{ return w; }}
    template <typename T> operator T *() const {{ return (T *)w; }}
}};
static void **arguments;
{chr(10).join(calls)}
extern "C" void run(
    int number, const unsigned *grid, const unsigned *block, void **given, unsigned long long seed)
{{
    void (*const calls[])() = {{ {listed} }};
    arguments = given;
    emulated::seed = seed;
    emulated::launch(grid, block, calls[number]);
}}
"""
    whole = f'#include "{HEADER.name}"\n{text}\n{wrapper}'
    source = folder / f"{sha256(whole.encode()).hexdigest()[:16]}.cpp"
    library = source.with_suffix(".so")
    if not library.exists():
        headers = compiled_header(_compile, " ".join(_COMPILE), folder)
        source.write_text(whole)
        _compile(f"-I{headers}", source, "-o", library)
    return library


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


def _compile(*words: object) -> None:
    done = subprocess.run([*_COMPILE, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr[:3000], file=sys.stderr)
        raise AssertionError(f"g++ refuses {' '.join(map(str, words))}")


def c_type(name: str) -> str:
    kind = element_type(name)
    if kind.kind == "float":
        return {4: "float", 8: "double"}[kind.bytes]
    word = {1: "char", 2: "short", 4: "int", 8: "long long"}[kind.bytes]
    return f"unsigned {word}" if kind.kind == "uint" else word
