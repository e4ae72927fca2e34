"""A CUDA file of a user that launches its kernel, and what a run delivered of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.core.deliver.programs import read_program
from tunesmith.deliver.artefact import Artefact, DeviceResult
from tunesmith.plugins.exports.patch import LaunchingFile, RepositoryPatch, patched_repository
from tunesmith.problem.dispatch import (
    Dispatch,
    DispatchArgument,
    DispatchBinary,
    DispatchEntry,
    DispatchLaunch,
)
from tunesmith.problem.problem import SizeRule

USERS = read_program("users.cu")


TUNED = read_program("tuned.cu")


def cuda_result(flags: tuple[str, ...] = (), path: str = "", text: str = "", **change: Any) -> DeviceResult:
    args = ("out", "x", "alpha", "rows", "twice")
    original = DispatchEntry(
        "1",
        "original.cu",
        "o",
        None,
        (),
        (DispatchLaunch("mine::scale<float, 3>", ("rows",), ("64",), None, args, None, False, False),),
    )
    tuned = DispatchEntry(
        "1 <= rows <= 4096 and d % 4 == 0", "scale-general.cu", "t", {"BLOCK": 128}, flags,
        (DispatchLaunch("scale", ("ceildiv(rows * d, 512)",), ("128",), None, args, None, False, False),),
    )  # fmt: skip
    arguments = (
        DispatchArgument("out", "float32", "output", ("rows", "d"), align=16),
        DispatchArgument("x", "float32", "input", ("rows", "d"), align=16),
        DispatchArgument("alpha", "float32", "scalar", value=2.0),
        DispatchArgument("rows", "int32", "scalar", value="rows"),
        DispatchArgument("twice", "int64", "scalar", value="2 * d"),
    )
    sizes = (SizeRule("rows", 1, 4096), SizeRule("d", 1, 4096))
    dispatch = Dispatch(
        "scale", "cuda", "a GPU", (tuned, original), "sm_90", arguments=arguments, sizes=sizes
    )
    files = {"original.cu": USERS.encode(), "scale-general.cu": TUNED.encode()}
    return DeviceResult("run", replace(dispatch, **change), files, path, text)


def in_parts() -> DeviceResult:
    """Two launches, each left out at some sizes, of the original and of what is tuned."""
    made = cuda_result()
    tuned, original = made.dispatch.entries
    entries = []
    for entry in (tuned, original):
        (launch,) = entry.launches
        parts = (replace(launch, when="rows > 64"), replace(launch, when="rows <= 64 or d == 8"))
        entries.append(replace(entry, launches=parts))
    return cuda_result(entries=tuple(entries))


BY_MACRO = """\
#include <cuda_fp16.h>
#define LAUNCH(width, ...)                                  \\
    do {                                                    \\
        mine::scale<float, width>                           \\
            <<<rows, 64 /* threads */>>>(out, x, 2.0f, rows, \\
                                         2 * d);            \\
    } while (0)
void run(float* out, float* x, int rows, int d) { LAUNCH(3); }
"""


def patched(*files: LaunchingFile, result: DeviceResult | None = None, same: bool = True) -> RepositoryPatch:
    artefact = Artefact((result or cuda_result(),))
    return patched_repository(artefact, files, "csrc", lambda one, other, capability: same)


def with_binary(flags: tuple[str, ...] = (), code: bytes = b"\x7fELF and more") -> DeviceResult:
    """The winner is there as machine code, too."""
    made = cuda_result(flags)
    tuned, original = made.dispatch.entries
    tuned = replace(tuned, binary=DispatchBinary("scale-general.cubin", "cubin", "", {"scale": "_Z5scale"}))
    dispatch = replace(made.dispatch, entries=(tuned, original))
    return replace(made, dispatch=dispatch, files={**made.files, "scale-general.cubin": code})
