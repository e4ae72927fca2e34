"""Exports of results that are made up: every file but those that are the runtime's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

from tests.plugins.exports import operators, silu
from tests.plugins.exports.cuda_users import BY_MACRO, USERS, cuda_result, in_parts, patched, with_binary
from tests.plugins.exports.opencl_results import DISPATCH, FILES, GENERAL, KERNEL, a_result
from tunesmith.backends.cuda.compile import COMPILERS
from tunesmith.backends.port import Unsupported
from tunesmith.deliver.artefact import Artefact, DeviceResult, Export, one_artefact
from tunesmith.plugins.exports import opencl, patch, python_package, sglang, vllm
from tunesmith.plugins.exports.cuda_cpp import CPP, CUBIN
from tunesmith.plugins.exports.patch import LaunchingFile, with_dispatch
from tunesmith.plugins.exports.tensor_call import TensorCall
from tunesmith.problem.problem import SizeRule

Pages = Iterator[tuple[str, bytes]]
PYTHON = {"torch": python_package.TORCH, "cupy": python_package.CUPY, "cuda.core": python_package.CUDA_CORE}
CUDA = {"cpp": CPP, "cubin": CUBIN, "sglang": sglang.TARGET, "vllm": vllm.TARGET, **PYTHON}


def pages() -> Pages:
    with silu.without_compiler():  # whoever reads on may stop anywhere: nothing is replaced by then
        cuda = list(_cuda_pages())
    yield from cuda
    for name, result in _of_opencl().items():
        yield from _files(f"opencl/{name}", opencl.TARGET.export(Artefact((result,))))
    for name, result in _of_patches().items():
        yield from _files(f"patch/{name}", patch.TARGET.export(Artefact((result,))))
    for name, made in _files_of_users().items():
        yield f"patched/{name}.txt", "".join(f"{note}\n" for note in (*made.notes, made.text)).encode()
    for name, (files, result, same) in _REPOSITORIES.items():
        found = patched(*files, result=result, same=same)
        yield f"repository/{name}.txt", "\n".join((*found.launches, *found.notes, found.diff)).encode()


def _cuda_pages() -> Pages:
    for name, artefact in _of_cuda().items():
        chosen, _, about = name.rpartition(": ")
        for target in chosen.split(" ") if chosen else CUDA:
            yield from _files(f"{target}/{about}", CUDA[target].export(artefact))
    for name, artefact in (("silu", silu.artefact(silu.result(90))), ("sum", operators.artefact())):
        yield from _files(f"native/{name}", Export(python_package.native_files(artefact)))
    with mock.patch.dict(COMPILERS, nvrtc=_not_here):
        yield "cubin/without ptx.h", TensorCall(operators.artefact()).host.header


def _files(name: str, export: Export) -> Pages:
    yield f"{name}/told.txt", "\n".join((*export.left_out, "--", *export.notes)).encode()
    for file, data in export.files.items():
        if "/_runtime/" not in file and not file.endswith("check_code.py"):
            yield f"{name}/{file}", data


def _not_here(*_: object) -> Any:
    raise Unsupported("NVRTC cannot be loaded: not here")


def with_entries(result: DeviceResult, *entries: Any, **more: Any) -> DeviceResult:
    return replace(result, dispatch=replace(result.dispatch, entries=entries, **more))


def _of_cuda() -> dict[str, Artefact]:
    """Behind the names of the targets, where these are not all."""
    whole, sources = silu.result(90), silu.result(90, binaries=False)
    first, second, original = whole.dispatch.entries
    any_size = replace(original.launches[0], entry="silu_and_mul<{d}>")
    each_size = (first, second, replace(original, when="d == 8"), replace(original, launches=(any_size,)))
    more = replace(sources.dispatch, sizes=(*sources.dispatch.sizes, SizeRule("splits", 1, 8)))
    older = silu.result(80, device="another GPU", binaries=False)
    changed = {name: data + b"\n// older\n" for name, data in older.files.items() if name != "original.cu"}
    another = replace(older, files={**older.files, **changed})
    flags = {
        "capped": ("--maxrregcount=32", "-use_fast_math"),
        "another architecture": ("-gencode arch=compute_90a,code=sm_90a", "-maxrregcount 32"),
        "hostile flags": ('-DX=";$(rm)"',),
    }
    return {
        "silu": silu.artefact(whole),
        "sum": operators.artefact(),
        "cpp cubin: an original for each size": silu.artefact(with_entries(whole, *each_size)),
        "cpp torch cupy cuda.core: sources": silu.artefact(sources),
        "torch cupy cuda.core: two devices": silu.artefact(
            sources, silu.result(100, binaries=False, device="b")
        ),
        "cupy: a size that no shape tells": silu.artefact(replace(sources, dispatch=more)),
        "cpp: two devices": one_artefact((another, sources)),
        "cubin: two devices": one_artefact((silu.result(80, device="another GPU"), whole)),
        **{
            f"cpp: {name}": silu.artefact(with_entries(whole, replace(first, flags=given), second, original))
            for name, given in flags.items()
        },
        **{
            f"torch: called {name}": silu.artefact(
                with_entries(sources, *sources.dispatch.entries, problem=name)
            )
            for name in ("class", "original", "prepare", "torch", "1st")
        },
    }


def without(kind: str) -> DeviceResult:
    """The original alone, of a kernel that takes no scalar, array or size."""
    kept = {
        "scalar": [a for a in DISPATCH.arguments if a.name != "alpha"],
        "array": [a for a in DISPATCH.arguments if not a.is_array],
        "size": [a for a in DISPATCH.arguments if not a.is_array and not a.follows_sizes],
    }[kind]
    extents = {"grid": ("4",), "block": ("8",)} if kind == "size" else {}
    launch = replace(DISPATCH.original.launches[0], args=tuple(a.name for a in kept), **extents)
    dispatch = replace(DISPATCH, workloads=(), arguments=tuple(kept))
    dispatch = replace(dispatch, entries=(replace(DISPATCH.original, launches=(launch,)),))
    return a_result(replace(dispatch, sizes=()) if kind == "size" else dispatch)


def rooted(device: str = DISPATCH.device) -> DeviceResult:
    """`alpha` is the root of the rows: nobody passes it."""
    arguments = (replace(a, value="sqrt(rows)") if a.name == "alpha" else a for a in DISPATCH.arguments)
    return a_result(replace(DISPATCH, device=device, arguments=tuple(arguments)))


def with_flags(*flags: str, **more: Any) -> DeviceResult:
    """The kernel for one size is built with these, too."""
    small, general, original = DISPATCH.entries
    small = replace(small, flags=(*small.flags, *flags))
    return a_result(replace(DISPATCH, entries=(small, general, original), **more))


def _of_opencl() -> dict[str, DeviceResult]:
    return {
        "scale": a_result(),
        "rooted": rooted(),
        **{f"without {kind}": without(kind) for kind in ("scalar", "array", "size")},
    }


KERNELS = USERS[: USERS.index("// each")] + "}\n"
ONCE = """scale<T, 3><<<rows++, BLOCK - 13,
                0, pool.next() /* stream */ >>>(out,  // result
                arena.take(rows), 2.0f, rows, 2 * d  // both
                );"""


def _of_patches() -> dict[str, DeviceResult]:
    left_out = with_flags("-cl-mad-enable", device="a `device`\n# x")
    return {
        "opencl": replace(a_result(), kernel_path="src/kernel.cl", kernel_text=KERNEL),
        "opencl, no end": replace(
            a_result(), kernel_path="/home/me/kernel.cl", kernel_text=KERNEL.rstrip("\n")
        ),
        "left out": replace(left_out, kernel_path="src/kernel.cl", kernel_text=KERNEL),
        "windows": replace(left_out, kernel_path="k.cl", kernel_text=KERNEL.replace("\n", "\r\n")),
        "cuda": cuda_result(path="k.cu", text=USERS),
        "cuda, no launches": cuda_result(path="k.cuh", text=KERNELS),
        "launches of conditions": replace(in_parts(), kernel_path="k.cuh", kernel_text=KERNELS),
        "machine code": replace(with_binary(), kernel_path="k.cu", kernel_text=USERS),
    }


def _files_of_users() -> dict[str, Any]:
    def opencl_file(general: str, text: str) -> Any:
        files = {**FILES, "scale-general.cl": general.encode()}
        return patch.patched_file(Artefact((replace(a_result(), files=files),)), text)

    low, taken = (
        "float lo(float x) { return x; }\n" + GENERAL,
        KERNEL + "float lo(float x) { return 2 * x; }\n",
    )
    sizes = (*cuda_result().dispatch.sizes, SizeRule("more", 1, 8))
    launch = "scale<T, 3><<<rows, BLOCK - 13, 0, stream>>>(out, x, 2.0f, rows, 2 * d);"
    capped = Artefact((cuda_result(("-maxrregcount=32",)),))
    fast = Artefact((cuda_result(("-use_fast_math",)),))
    return {
        "part of a vector": opencl_file(low, KERNEL),
        "part of a vector, taken": opencl_file(low, taken),
        "part of a vector, used": opencl_file(
            low.replace("TIMES(it.value)", "TIMES(it.value.lo.xyxy)"), KERNEL
        ),
        "part of a vector, both": opencl_file(
            low.replace("TIMES(it.value)", "TIMES(it.value.lo.xyxy)"), taken
        ),
        "a size that nothing tells": patch.patched_file(Artefact((cuda_result(sizes=sizes),)), USERS),
        "once": patch.patched_file(Artefact((cuda_result(),)), USERS.replace(launch, ONCE)),
        "capped": with_dispatch(capped, USERS, lambda *_: True),
        "capped otherwise": with_dispatch(capped, USERS, lambda *_: False),
        "flags": with_dispatch(fast, USERS, lambda *_: True),
    }


def _twice() -> DeviceResult:
    made = cuda_result()
    tuned, original = made.dispatch.entries
    return with_entries(made, replace(tuned, when="rows == 16"), tuned, original)


_OTHERS = USERS + USERS.replace("mine", "yours").replace("both", "second")
_ONE = LaunchingFile("csrc/a.cu", USERS)
_FAST = with_binary(("-use_fast_math",))
_REPOSITORIES: dict[str, tuple[tuple[LaunchingFile, ...], DeviceResult | None, bool]] = {
    "two files": ((_ONE, LaunchingFile("src/deep/b.cu", USERS)), None, True),
    "macros of users": (
        (LaunchingFile("csrc/a.cu", USERS, frozenset({"Part", "OTHER"})),), None, True,
    ),
    "launches in macros": ((LaunchingFile("csrc/a.cu", BY_MACRO),), None, True),
    "as machine code": ((_ONE,), _FAST, False),
    "the same without the flag": ((_ONE,), _FAST, True),
    "one source twice": ((_ONE,), _twice(), True),
    "another kernel of the name": ((LaunchingFile("csrc/a.cu", _OTHERS),), None, True),
    "a kernel of its own": ((_ONE, LaunchingFile("csrc/b.cu", USERS, other="csrc/b.cu")), None, True),
}  # fmt: skip
