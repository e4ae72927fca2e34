"""Results of examples/cuda/silu_and_mul by hand. Which kernel served is seen in what it adds: 200 the one for
16 x 64, 100 the general one, nothing the original."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from unittest import mock

from tunesmith.backends.cuda import compile as nvrtc
from tunesmith.backends.cuda.compile import COMPILERS
from tunesmith.backends.cuda.cubin import Compiled
from tunesmith.backends.cuda.flags import Flags, read_flags
from tunesmith.backends.messages import Unit
from tunesmith.base.codec import encode_json
from tunesmith.deliver.artefact import Artefact, DeviceResult
from tunesmith.deliver.expr_text import c_identifier
from tunesmith.problem.dispatch import (
    Dispatch,
    DispatchArgument,
    DispatchBinary,
    DispatchEntry,
    DispatchLaunch,
    DispatchWorkload,
)
from tunesmith.problem.problem import SizeRule

FOLDER = Path(__file__).parents[3] / "examples" / "cuda" / "silu_and_mul"
ENTRY = "silu_and_mul<__half>"
ARGUMENTS = (
    DispatchArgument("out", "float16", "output", ("tokens", "d"), align=16),
    DispatchArgument("input", "float16", "input", ("tokens", "2 * d"), align=16),
    DispatchArgument("tokens", "int32", "scalar", value="tokens"),
    DispatchArgument("d", "int32", "scalar", value="d"),
    DispatchArgument("out_stride", "int64", "scalar", value="d"),
    DispatchArgument("input_stride", "int64", "scalar", value="2 * d"),
)
LAUNCH = DispatchLaunch(
    ENTRY, ("min(tokens, 256)",), ("128",), None, tuple(a.name for a in ARGUMENTS), None, False, False
)
WHEN = (("tokens == 16 and d == 64", 200), ("d % 8 == 0 and tokens * d <= 1048576", 100), ("1", 0))


@cache
def machine_code(unit: Unit, capability: int) -> Compiled:
    return nvrtc.compile_by_nvrtc(unit, read_flags((), capability))


def made_up(unit: Unit, capability: int) -> Compiled:
    """What exports can hold and no device runs: an ELF file's head that names the device, and the symbols."""
    head = b"\x7fELF" + bytes(44) + capability.to_bytes(4, "little") + sha256(unit.source.encode()).digest()
    symbols = {entry: entry if entry.isidentifier() else f"_Z{c_identifier(entry)}" for entry in unit.entries}
    return Compiled(head, symbols, "")


def _made_up_ptx(unit: Unit, flags: Flags) -> Compiled:
    made = made_up(unit, 0)
    text = f"//\n.version 8.8\n.target {flags.architecture.replace('compute', 'sm')}\n// {unit.path}\n"
    return replace(made, cubin=b"", ptx=text.encode())


@contextmanager
def without_compiler() -> Iterator[None]:
    """Machine code and PTX are made up: the host part of an export can be looked at without NVRTC."""
    code = mock.patch(f"{__name__}.machine_code", made_up)
    with code, mock.patch.dict(COMPILERS, nvrtc=_made_up_ptx):
        yield


def source(bonus: int) -> str:
    text = (FOLDER / "kernel.cu").read_text()
    changed = text.replace("(float)gate)", f"(float)gate + {bonus}.0f)")
    assert changed != text
    return changed


def result(capability: int, *, binaries: bool = True, device: str = "a GPU") -> DeviceResult:
    files: dict[str, bytes] = {}
    entries = []
    for when, bonus in WHEN:
        name = f"silu-{bonus}.cu" if bonus else "original.cu"
        files[name] = source(bonus).encode()
        binary = None
        if binaries:
            unit = Unit(name, source(bonus), "cuda", (), (ENTRY,))
            made = machine_code(unit, capability)
            files[f"{name}.cubin"] = made.cubin
            binary = DispatchBinary(f"{name}.cubin", "cubin", "", made.symbols)
        config = {"BONUS": bonus} if bonus else None
        entries.append(DispatchEntry(when, name, "", config, (), (LAUNCH,), binary=binary))
    dispatch = Dispatch(
        "silu_and_mul", "cuda", device, tuple(entries), f"sm_{capability}", "NVRTC", ARGUMENTS,
        (SizeRule("tokens", 1, 65536), SizeRule("d", 1, 65536)),
        workloads=(DispatchWorkload("small", {"tokens": 16, "d": 64}, 1.5),),
    )  # fmt: skip
    files["dispatch.json"] = encode_json(dispatch) + b"\n"
    return DeviceResult("run", dispatch, files)


def artefact(*results: DeviceResult) -> Artefact:
    return Artefact(results)


def written(files: dict[str, bytes], folder: Path) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder
