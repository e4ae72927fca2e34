"""A small installable Python package: the runtime as it is, results as data, and a module that joins them."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources

from tunesmith import __version__
from tunesmith.deliver.exports.artefact import Artefact, DeviceResult
from tunesmith.deliver.original_ptx import builds_of
from tunesmith.deliver.runtime.binding import Signature
from tunesmith.deliver.runtime.manifest import read_dispatch
from tunesmith.errors import BadInput
from tunesmith.problem.codec import encode
from tunesmith.problem.dispatch import DispatchArgument
from tunesmith.text import plain

_SHARED = ("__init__", "arguments", "binding", "element_types", "expressions", "manifest", "operator")
CUDA_RUNTIME = (*_SHARED, "cuda_calls", "cuda_driver", "nvrtc")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TAKEN = ("original", "prepare")  # names of the package's own
_FALLBACK = """\
The original serves where nothing was verified: on another device (with one warning), at sizes outside those
above, with other scalars than it was tuned with, where an array begins at an address that is not a multiple
of its `align`, and where an array that is written overlaps another. An array of the wrong type, shape, layout
or device raises an error that says what to do.
"""
_SERVES = {
    "cuda": f"""\
The tuned kernels are machine code, to the byte what was verified, or sources that are built on first use.
{_FALLBACK}
No compiler is needed on a device named above that has machine code here. Elsewhere NVRTC compiles the
original at the first call: it comes with PyTorch, with `pip install nvidia-cuda-nvrtc`, or with a toolkit.
""",
    "opencl": f"""\
The kernels are sources. The device's OpenCL driver builds each at the first call that it serves, with the
options that it was verified with; `prepare` builds all of them beforehand.
{_FALLBACK}""",
}


def package_name(artefact: Artefact) -> str:
    """Never that of a library that it needs."""
    return f"tuned_{artefact.name}"


def function_name(artefact: Artefact) -> str:
    own = artefact.name
    return f"{own}_" if keyword.iskeyword(own) or own in _TAKEN or own.endswith("_out") else own


def call_text(artefact: Artefact, *first: str, every: bool = False) -> str:
    """A call as a README shows it: inputs in, outputs back, or `every` array in the kernel's order. Sizes
    that no shape tells are named."""
    own = Signature(read_dispatch(encode(artefact.first.dispatch)))
    arrays, unshown = (own.arrays, own.unshown_by_all) if every else (own.given, own.unshown)
    named = [f"{name}={name}" for name in unshown]
    call = f"{function_name(artefact)}({', '.join([*first, *(a.name for a in arrays), *named])})"
    outputs = [] if every else [a.name for a in own.outputs]
    return f"{', '.join(outputs)} = {call}" if outputs else call


def package_files(
    artefact: Artefact, runtime: Sequence[str], module: str, requires: str, usage: str
) -> dict[str, bytes]:
    """`module` is the text of its __init__.py, `usage` what its README shows."""
    _check_names(artefact)
    package = package_name(artefact)
    files = {
        "pyproject.toml": _pyproject(package, requires),
        "README.md": _readme(artefact, package, usage),
        f"{package}/__init__.py": module,
    }
    written = {name: text.encode() for name, text in files.items()}
    for name in runtime:
        written[f"{package}/_runtime/{name}.py"] = runtime_text(name).encode()
    for number, result in enumerate(artefact.results):
        for name, data in result_files(result).items():
            written[f"{package}/data/{number}/{name}"] = data
    return written


@cache
def runtime_text(name: str) -> str:
    folder = resources.files("tunesmith.deliver").joinpath("runtime")
    return folder.joinpath(f"{name}.py").read_text(encoding="utf-8")


def result_files(result: DeviceResult) -> dict[str, bytes]:
    """What the runtime reads of a result: the dispatch, what it names, and how sources are built."""
    files = {"dispatch.json": result.files.get("dispatch.json") or encode(result.dispatch) + b"\n"}
    for entry in result.dispatch.entries:
        names = [entry.file, *(entry.headers.files if entry.headers else ())]
        names += [entry.binary.file] if entry.binary else []
        files.update({name: result.files[name] for name in names})
    if result.dispatch.language == "cuda":
        builds = builds_of(result.dispatch.entries, result.files, result.dispatch.architecture)
        files["builds.json"] = (json.dumps(builds, indent=1, sort_keys=True) + "\n").encode()
    return files


def _check_names(artefact: Artefact) -> None:
    for dispatch in (result.dispatch for result in artefact.results):
        entries = [a for entry in dispatch.entries for a in entry.workspace]
        names = [a.name for a in (*dispatch.arguments, *entries)] + [size.name for size in dispatch.sizes]
        if wrong := next((name for name in names if not _NAME.fullmatch(name)), None):
            fault = f"an argument or size is called {wrong!r}, which is no name in Python"
            raise BadInput(fault, hint="rename it in the problem file, and tune again")


def _pyproject(package: str, requires: str) -> str:
    return f"""[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "{package.replace("_", "-")}"
version = "0.1.0"
description = "A tuned kernel, exported by Tunesmith {__version__}."
requires-python = ">=3.9"
dependencies = [{requires}]

[tool.setuptools]
packages = ["{package}", "{package}._runtime"]

[tool.setuptools.package-data]
"{package}" = ["data/**/*"]
"""


def _readme(artefact: Artefact, package: str, usage: str) -> str:
    first = artefact.first.dispatch
    arrays = "\n".join(_argument_line(a) for a in first.arguments if a.is_array and a.role != "workspace")
    sizes = "\n".join(f"- {_code(size.name)}: {_words(size.describe())}" for size in first.sizes)
    numbers = "".join(
        f"- {_code(a.name)}: {a.type}, tuned with {_code(str(a.value))}\n" for a in first.literals
    )
    tuned = "\n".join(_result_line(result) for result in artefact.results)
    return f"""# {package}

The kernel {_code(first.problem)}, tuned by Tunesmith {__version__}. Install it with: `pip install .`

{usage}

## Arguments

{arrays}
{numbers}
Sizes, which follow from the shapes where those tell them and are passed by name where not:

{sizes}

## What serves a call

{tuned}

{_SERVES[first.language]}"""


def _argument_line(argument: DispatchArgument) -> str:
    shape = ", ".join(argument.shape)
    strides = f", strides [{', '.join(argument.strides)}] in elements" if argument.strides else ""
    shared = f", the same array as {_code(argument.alias)}" if argument.alias else ""
    align = f", `align` {argument.align}" if argument.align > 1 else ""
    kind = f"{argument.role}, {argument.type} {_code(f'[{shape}]')}"
    return f"- {_code(argument.name)}: {kind}{strides}{align}{shared}"


def _result_line(result: DeviceResult) -> str:
    own = result.dispatch
    faster = [w for w in own.workloads if w.speedup is not None]
    gains = "; ".join(f"{_words(w.name)} {w.speedup:.2f}×" for w in faster)
    place = f"{_words(own.device)} ({_code(own.architecture) if own.architecture else 'by name'})"
    return f"- {place}: {f'verified speed-ups: {gains}' if gains else 'no gains are recorded'}"


def _code(text: str | None) -> str:
    return f"`{plain(text or '').replace('`', '')}`"


def _words(text: str) -> str:
    """Text of others as text, whatever Markdown would make of it."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", plain(text)).replace("\n", " ")
