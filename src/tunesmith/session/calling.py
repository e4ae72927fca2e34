"""Calling what a run delivered: by the runtime that exports ship, over the run's own files."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from tunesmith.deliver.certificate import DISPATCH
from tunesmith.deliver.original_ptx import builds_of
from tunesmith.deliver.runtime.manifest import BadDispatch
from tunesmith.deliver.runtime.manifest import read_dispatch as read_manifest
from tunesmith.deliver.runtime.operator import Delivered, Operator
from tunesmith.errors import BadInput
from tunesmith.problem.dispatch import Dispatch, read_dispatch
from tunesmith.run.store import CERTIFICATE
from tunesmith.session.certified import NotCertified, certified_file, read_certificate

_FRAMEWORKS = ("torch", "cupy", "pyopencl", "numpy")


def delivered_files(folder: Path) -> dict[str, bytes]:
    """What lies below `tuned/`, by name; each to the byte what the certificate names."""
    start = "tuned/"
    try:
        return {
            name.removeprefix(start): certified_file(folder, name, digest)
            for name, digest in read_certificate(folder / CERTIFICATE).files.items()
            if name.startswith(start)
        }
    except NotCertified as error:
        hint = "put it back, or tune again; see: tunesmith verify RUN"
        fault = f"{error}: it is not what the run's certificate names"
        raise BadInput(fault, where=str(folder), hint=hint) from error


def dispatch_in(folder: Path, files: dict[str, bytes]) -> Dispatch:
    if "dispatch.json" not in files:
        raise BadInput("this run delivered no dispatch", where=str(folder), hint="tune again")
    return read_dispatch(files["dispatch.json"], where=str(folder / DISPATCH))


def operator_of(folder: Path) -> Operator:
    files = delivered_files(folder)
    dispatch = dispatch_in(folder, files)
    builds: Iterable[Any] = ()
    if dispatch.language == "cuda":
        builds = builds_of(dispatch.entries, files, dispatch.architecture)
    try:
        manifest = read_manifest(files["dispatch.json"], str(folder / DISPATCH))
        return Operator([Delivered(manifest, files.__getitem__, tuple(builds))])
    except BadDispatch as error:
        raise BadInput(str(error), where=str(folder), hint="tune again") from error


@lru_cache(maxsize=64)
def calls_of(folder: Path, framework: str) -> Any:
    """What is called with that framework's arrays. Kept: a second call loads nothing."""
    operator = operator_of(folder)
    language = operator.results[0].dispatch.language
    if language == "opencl":
        from tunesmith.deliver.runtime.opencl_op import OpenclCalls

        return OpenclCalls(operator)
    if framework == "torch":
        from tunesmith.deliver.runtime.torch_op import TorchCalls

        return TorchCalls(operator)
    if framework == "cupy":
        from tunesmith.deliver.runtime.cupy_op import CupyCalls

        return CupyCalls(operator)
    raise TypeError(
        f"{operator.name} is a {language} kernel: pass PyTorch tensors or CuPy arrays on the device, "
        f"got arrays of {framework}"
    )


def framework_of(values: Iterable[object]) -> str:
    """Whose arrays they are; the first that is one tells."""
    for value in values:
        for kind in type(value).__mro__:
            own = kind.__module__.partition(".")[0]
            if own in _FRAMEWORKS and not isinstance(value, int | float):
                return "pyopencl" if own == "numpy" else own
    raise TypeError(
        "no array is passed: pass PyTorch tensors, CuPy arrays, or for OpenCL pyopencl's or NumPy's"
    )
