"""Dispatches by hand, and operators of them."""

from __future__ import annotations

from tunesmith.base.codec import encode_json
from tunesmith.deliver.runtime.binding import Array
from tunesmith.deliver.runtime.manifest import read_dispatch
from tunesmith.deliver.runtime.operator import Delivered, Operator
from tunesmith.problem.dispatch import Dispatch, DispatchArgument, DispatchEntry, DispatchLaunch
from tunesmith.problem.problem import SizeRule

SILU_ARGUMENTS = (
    DispatchArgument("out", "float16", "output", ("tokens", "d"), align=16),
    DispatchArgument("input", "float16", "input", ("tokens", "2 * d"), align=16),
    DispatchArgument("tokens", "int32", "scalar", value="tokens"),
    DispatchArgument("d", "int32", "scalar", value="d"),
    DispatchArgument("scale", "float32", "scalar", value=1.5),
)
SIZES = (SizeRule("tokens", 1, 1024), SizeRule("d", 8, 4096, 8))
ARGS = ("out", "input", "tokens", "d", "scale")


def launch(entry: str = "silu", grid: str = "tokens", args: tuple[str, ...] = ARGS, **more) -> DispatchLaunch:
    known = {"block": ("128",), "shared": None, "cluster": None, "cooperative": False, "pdl": False} | more
    return DispatchLaunch(entry=entry, grid=(grid,), args=args, **known)


def entry(when: str, file: str, config: dict[str, int] | None, **more) -> DispatchEntry:
    known = {"launches": (launch(),)} | more
    return DispatchEntry(when=when, file=file, digest="", config=config, flags=(), **known)


ENTRIES = (
    entry("tokens == 16 and d == 64", "fast.cu", {"V": 8}),
    entry("d % 16 == 0 and tokens * d <= 65536", "general.cu", {"V": 4}),
    entry("1", "original.cu", None),
)


def dispatch(**more) -> Dispatch:
    known = {
        "problem": "silu", "language": "cuda", "device": "NVIDIA H200", "architecture": "sm_90",
        "entries": ENTRIES, "arguments": SILU_ARGUMENTS, "sizes": SIZES,
    } | more  # fmt: skip
    return Dispatch(**known)


def delivered(made: Dispatch | None = None, files: dict[str, bytes] | None = None) -> Delivered:
    return Delivered(read_dispatch(encode_json(made or dispatch())), (files or {}).__getitem__)


def operator(*several: Dispatch) -> Operator:
    return Operator([delivered(each) for each in several or (dispatch(),)])


def arrays(tokens: int = 16, d: int = 64, **changed: Array) -> list[Array]:
    made = {
        "out": Array("float16", (tokens, d), (d, 1), "cuda:0"),
        "input": Array("float16", (tokens, 2 * d), (2 * d, 1), "cuda:0"),
    } | changed
    return [made["out"], made["input"]]
