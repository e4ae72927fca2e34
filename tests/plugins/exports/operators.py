"""Operators by hand whose shapes, types and workspaces are harder than those of silu.py."""

from __future__ import annotations

from tests.core.deliver.programs import read_program
from tests.plugins.exports import silu
from tunesmith.backends.messages import Unit
from tunesmith.base.codec import encode_json
from tunesmith.deliver.artefact import Artefact, DeviceResult
from tunesmith.problem.dispatch import (
    Dispatch,
    DispatchArgument,
    DispatchBinary,
    DispatchEntry,
    DispatchLaunch,
    DispatchWorkload,
)
from tunesmith.problem.problem import SizeRule

# Sums rows of 4-bit numbers through scratch memory that begins at 7, times a number; `extra` is in no shape.
# The tuned one adds 10, and has scratch memory of its own, which begins at a quarter.
KERNEL = read_program("sum.cu")
ARGUMENTS = (
    DispatchArgument("class", "float32", "output", ("rows",), align=4, init=0.5),
    DispatchArgument("x", "uint4", "input", ("rows", "2 * d + 2"), align=1),
    DispatchArgument("seen", "int32", "inout", ("1",), align=4),
    DispatchArgument("work", "int64", "workspace", ("rows",), align=8, init=7),
    DispatchArgument("by", "float32", "scalar", value=2.0),
    DispatchArgument("rows", "int32", "scalar", value="rows"),
    DispatchArgument("length", "int32", "scalar", value="2 * d + 2"),
    DispatchArgument("extra", "int32", "scalar", value="extra"),
    DispatchArgument("unused", "int32", "scalar", value="0"),
)
MORE = DispatchArgument("more", "float32", "workspace", ("rows", "2"), align=4, init=0.25)
SIZES = (SizeRule("rows", 1, 4096), SizeRule("d", 1, 4096), SizeRule("extra", 0, 100))


def result(capability: int = 90, name: str = "sum", arguments: tuple[DispatchArgument, ...] = ARGUMENTS):
    files: dict[str, bytes] = {}
    entries = []
    for file, add, when in (("sum-10.cu", 10, "rows <= 64"), ("original.cu", 0, "1")):
        names = [a.name for a in arguments] + (["more"] if add else [])
        launch = DispatchLaunch("sum", ("rows",), ("1",), None, tuple(names), None, False, False)
        source = KERNEL.replace("ADD", str(add)).replace("MORE", ", float* more" if add else "")
        made = silu.machine_code(Unit(file, source, "cuda", (), ("sum",)), capability)
        files |= {file: source.encode(), f"{file}.cubin": made.cubin}
        binary = DispatchBinary(f"{file}.cubin", "cubin", "", made.symbols)
        config = {"ADD": add} if add else None
        scratch = (MORE,) if add else ()
        entries.append(DispatchEntry(when, file, "", config, (), (launch,), scratch, binary=binary))
    dispatch = Dispatch(
        name, "cuda", "a GPU", tuple(entries), f"sm_{capability}", "NVRTC", arguments, SIZES,
        workloads=(DispatchWorkload("small", {"rows": 4, "d": 4, "extra": 0}, 1.5),),
    )  # fmt: skip
    files["dispatch.json"] = encode_json(dispatch) + b"\n"
    return DeviceResult("run", dispatch, files)


def artefact(capability: int = 90, **how) -> Artefact:
    return Artefact((result(capability, **how),))
