"""A result in OpenCL as a run delivers it: an original, a kernel for one size that takes two launches, local
memory and a workspace, and one for many sizes."""

from __future__ import annotations

from tests.core.deliver.programs import read_program
from tunesmith.deliver.artefact import DeviceResult
from tunesmith.problem.dispatch import (
    Dispatch,
    DispatchArgument,
    DispatchEntry,
    DispatchLaunch,
    DispatchWorkload,
)
from tunesmith.problem.problem import SizeRule

ALPHA = 2.0
SMALL = {"rows": 16, "d": 256}
KERNEL = read_program("scale.cl")
TWO_STEPS = read_program("two-steps.cl")
GENERAL = read_program("general.cl")
FILES = {
    "original.cl": KERNEL.encode(),
    "scale-small.cl": TWO_STEPS.encode(),
    "scale-general.cl": GENERAL.encode(),
}
CONTRACT = (SizeRule("rows", 1, 4096), SizeRule("d", 1, 4096))
ARGUMENTS = (
    DispatchArgument("out", "float32", "output", ("rows", "d"), align=16),
    DispatchArgument("x", "float32", "input", ("rows", "d"), align=16),
    DispatchArgument("alpha", "float32", "scalar", value=ALPHA),
    DispatchArgument("rows", "int32", "scalar", value="rows"),
    DispatchArgument("d", "int32", "scalar", value="d"),
)


def a_launch(entry: str, grid: str, block: str, *args: str) -> DispatchLaunch:
    return DispatchLaunch(entry, (grid,), (block,), None, args, None, False, False)


ALL = ("out", "x", "alpha", "rows", "d")
ENTRIES = (
    DispatchEntry(
        when="rows == 16 and d == 256",
        file="scale-small.cl",
        digest="a",
        config={"STEP": 64},
        flags=("-cl-std=CL1.2", "-DSHIFT=0.0f"),
        launches=(
            a_launch("part", "rows * d // 64", "64", "sum", "x", "alpha"),
            a_launch("scale", "rows * d // 64", "64", "out", "sum", "tile"),
        ),
        workspace=(
            DispatchArgument("sum", "float32", "workspace", ("rows", "d"), align=4, init=1.0),
            DispatchArgument("tile", "float32", "local", ("64",)),
        ),
    ),
    DispatchEntry(
        when="1 <= rows <= 4096 and 8 <= d <= 4096 and d % 8 == 0 and (rows * d) <= 65536",
        file="scale-general.cl",
        digest="b",
        config={"STEP": 128},
        flags=("-cl-std=CL1.2",),
        launches=(a_launch("scale", "ceildiv(rows * d // 4, 128)", "128", *ALL),),
    ),
    DispatchEntry(
        when="1",
        file="original.cl",
        digest="c",
        config=None,
        flags=("-cl-std=CL1.2",),
        launches=(a_launch("scale", "ceildiv(rows * d, 64)", "64", *ALL),),
    ),
)
DISPATCH = Dispatch(
    problem="scale",
    language="opencl",
    device="a device",
    entries=ENTRIES,
    arguments=ARGUMENTS,
    sizes=CONTRACT,
    workloads=(DispatchWorkload("small", SMALL, 2.0), DispatchWorkload("wide", {"rows": 4, "d": 2048}, 1.5)),
)


def a_result(dispatch: Dispatch = DISPATCH) -> DeviceResult:
    return DeviceResult("scale-run", dispatch, FILES)
