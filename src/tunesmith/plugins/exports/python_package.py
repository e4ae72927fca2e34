"""A small installable Python package: the runtime as it is, results as data, and a module that joins them."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Sequence

from tunesmith import __version__
from tunesmith.base.codec import encode_json
from tunesmith.base.errors import BadInput
from tunesmith.base.text import strip_controls
from tunesmith.deliver.artefact import Artefact, DeviceResult, Target
from tunesmith.deliver.cuda.original_ptx import builds_of
from tunesmith.deliver.runtime.binding import Signature
from tunesmith.deliver.runtime.manifest import read_dispatch
from tunesmith.plugins.exports import export_texts, runtime_text
from tunesmith.plugins.exports.tensor_call import TensorCall
from tunesmith.plugins.exports.torch_cpp import TorchBinding, TorchOp
from tunesmith.problem.dispatch import DispatchArgument

_SHARED = ("__init__", "arguments", "binding", "element_types", "expressions", "manifest", "operator")
CUDA_RUNTIME = (*_SHARED, "cuda_calls", "cuda_driver", "nvrtc")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TAKEN = ("original", "prepare")  # names of the package's own


def package_name(artefact: Artefact) -> str:
    """Never that of a library that it needs."""
    return f"tuned_{artefact.name}"


def function_name(artefact: Artefact) -> str:
    own = artefact.name
    return f"{own}_" if keyword.iskeyword(own) or own in _TAKEN or own.endswith("_out") else own


def call_text(artefact: Artefact, *first: str, every: bool = False) -> str:
    """A call as a README shows it: inputs in, outputs back, or `every` array in the kernel's order. Sizes
    that no shape tells are named."""
    own = Signature(read_dispatch(encode_json(artefact.first.dispatch)))
    arrays, unshown = (own.arrays, own.unshown_by_all) if every else (own.given, own.unshown)
    named = [f"{name}={name}" for name in unshown]
    call = f"{function_name(artefact)}({', '.join([*first, *(a.name for a in arrays), *named])})"
    outputs = [] if every else [a.name for a in own.outputs]
    return f"{', '.join(outputs)} = {call}" if outputs else call


def usage_text(framework: str, artefact: Artefact, call: str, **more: str) -> str:
    """How a README shows that the package is used."""
    made = getattr(export_texts("python_package.j2"), framework)(
        function_name(artefact), package_name(artefact), call, **more
    )
    return str(made).removesuffix("\n")


def package_files(
    artefact: Artefact, runtime: Sequence[str], module: str, requires: str, usage: str
) -> dict[str, bytes]:
    """`module` is the text of its __init__.py, `usage` what its README shows."""
    _check_names(artefact)
    package = package_name(artefact)
    files = {
        "pyproject.toml": str(export_texts("python_package.j2").pyproject(package, requires, __version__)),
        "README.md": _package_readme(artefact, package, usage),
        f"{package}/__init__.py": module,
    }
    written = {name: text.encode() for name, text in files.items()}
    for name in runtime:
        written[f"{package}/_runtime/{name}.py"] = runtime_text(name).encode()
    for number, result in enumerate(artefact.results):
        for name, data in result_files(result).items():
            written[f"{package}/data/{number}/{name}"] = data
    return written


def result_files(result: DeviceResult) -> dict[str, bytes]:
    """What the runtime reads of a result: the dispatch, what it names, and how sources are built."""
    files = {"dispatch.json": result.files.get("dispatch.json") or encode_json(result.dispatch) + b"\n"}
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


def _package_readme(artefact: Artefact, package: str, usage: str) -> str:
    first = artefact.first.dispatch
    arrays = "\n".join(_argument_line(a) for a in first.arguments if a.is_array and a.role != "workspace")
    sizes = "\n".join(f"- {_inline_code(s.name)}: {_escape_markdown(s.describe())}" for s in first.sizes)
    values = ((a, _inline_code(str(a.value))) for a in first.literals)
    numbers = "".join(f"- {_inline_code(a.name)}: {a.type}, tuned with {value}\n" for a, value in values)
    tuned = "\n".join(_result_line(result) for result in artefact.results)
    about = _inline_code(first.problem), __version__, usage, arrays, numbers, sizes, tuned, first.language
    return str(export_texts("python_package.j2").readme(package, *about))


def _argument_line(argument: DispatchArgument) -> str:
    shape = ", ".join(argument.shape)
    strides = f", strides [{', '.join(argument.strides)}] in elements" if argument.strides else ""
    shared = f", the same array as {_inline_code(argument.alias)}" if argument.alias else ""
    align = f", `align` {argument.align}" if argument.align > 1 else ""
    kind = f"{argument.role}, {argument.type} {_inline_code(f'[{shape}]')}"
    return f"- {_inline_code(argument.name)}: {kind}{strides}{align}{shared}"


def _result_line(result: DeviceResult) -> str:
    own = result.dispatch
    faster = [w for w in own.workloads if w.speedup is not None]
    gains = "; ".join(f"{_escape_markdown(w.name)} {w.speedup:.2f}×" for w in faster)
    known_by = _inline_code(own.architecture) if own.architecture else "by name"
    verified = f"verified speed-ups: {gains}" if gains else "no gains are recorded"
    return f"- {_escape_markdown(own.device)} ({known_by}): {verified}"


def _inline_code(text: str | None) -> str:
    return f"`{strip_controls(text or '').replace('`', '')}`"


def _escape_markdown(text: str) -> str:
    """Text of others as text, whatever Markdown would make of it."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", strip_controls(text)).replace("\n", " ")


_MODULE = '''\
"""A tuned kernel for {framework}. README.md beside this package says what serves a call."""

import os

from ._runtime.{module} import {calls}
from ._runtime.operator import Operator, delivered_in

_DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
{name} = {calls}(Operator([delivered_in(os.path.join(_DATA, str(n))) for n in range({count})]))
original = {name}.original
prepare = {name}.prepare  # {prepares}

__all__ = ["{name}", "original", "prepare"]
'''
_LOADS = "load all that may serve, e.g. before a CUDA graph is captured"


def module_text(artefact: Artefact, framework: str, module: str, calls: str, prepares: str = _LOADS) -> str:
    """The __init__.py of a package whose function is an object of this class of the runtime."""
    known = {"framework": framework, "module": module, "calls": calls, "prepares": prepares}
    return _MODULE.format(name=function_name(artefact), count=len(artefact.results), **known)


# The export `cuda.core`: a package whose function takes a cuda.core stream and any arrays on the device.


def _write_cuda_core(artefact: Artefact) -> dict[str, bytes]:
    module = module_text(artefact, "cuda.core", "cuda_core_op", "CudaCoreCalls")
    usage = usage_text("cuda_core", artefact, call_text(artefact, "stream", every=True))
    return package_files(artefact, (*CUDA_RUNTIME, "cuda_core_op"), module, '"cuda-core>=0.5"', usage)


CUDA_CORE = Target(
    "cuda.core", "a Python package for cuda.core's streams and any arrays", ("cuda",), _write_cuda_core
)


# The export `cupy`: a package whose function takes CuPy's arrays.


def _write_cupy(artefact: Artefact) -> dict[str, bytes]:
    module = module_text(artefact, "CuPy", "cupy_op", "CupyCalls")
    usage = usage_text("cupy", artefact, call_text(artefact))
    return package_files(artefact, (*CUDA_RUNTIME, "cupy_op"), module, "", usage)


CUPY = Target("cupy", "a Python package for CuPy's arrays", ("cuda",), _write_cupy)


# The operators of the export `torch` in C++, for a package that builds them when it is installed.
#
# The package works without: `pip install .` builds `_native` where PyTorch, a C++ compiler and CUDA's headers
# are, and leaves it out elsewhere. What is registered has the schemas that the Python side registers
# otherwise.

_SETUP = '''"""Builds `_native`, the operators in C++, where that is possible; the package works without it.

pip builds in an environment without PyTorch: `pip install --no-build-isolation .` builds with the one that is
installed. Set TUNESMITH_NATIVE=0 to leave it out, or =1 to have a failure end the installation.
"""

import os
import sys

from setuptools import setup

_WANTED = os.environ.get("TUNESMITH_NATIVE", "")
_KNOWN = {known}  # compute capabilities that machine code is there for


def _options():
    if _WANTED == "0":
        return {{}}
    try:
        from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CUDAExtension
    except ImportError:
        if _WANTED == "1":
            raise
        return {{}}
    if CUDA_HOME is None or not os.path.exists(os.path.join(CUDA_HOME, "include", "cuda.h")):
        if _WANTED == "1":
            raise RuntimeError("CUDA's headers are not found: set CUDA_HOME to the folder of a toolkit")
        return {{}}

    import torch

    here = [torch.cuda.get_device_capability(number) for number in range(torch.cuda.device_count())]
    if any(one not in _KNOWN for one in here) and _WANTED != "1":
        return {{}}  # there NVRTC compiles the original for the very device; _native has its PTX

    class Build(BuildExtension):
        def run(self):
            try:
                super().run()
            except Exception as error:
                if _WANTED == "1":
                    raise
                sys.stderr.write(f"{package} is installed without _native: {{error}}\\n")
                self.extensions = []
                self.distribution.ext_modules = []

    sources = ["csrc/{name}.cpp", "csrc/torch_op.cpp"]
    native = CUDAExtension("{package}._native", sources, extra_compile_args=["-O2"])
    return {{"ext_modules": [native], "cmdclass": {{"build_ext": Build}}}}


setup(**_options())
'''


def native_files(artefact: Artefact) -> dict[str, bytes]:
    """The files beside the package's own: sources below csrc/ and setup.py. Names as the package has them.
    None where a run has no machine code of its winners: the package then builds their sources."""
    if not all(any(r.binary(e) for e in r.dispatch.tuned) for r in artefact.results):
        return {}
    call = TensorCall(artefact)
    own = call.name
    package = package_name(artefact)
    binding = TorchBinding(call, package, native_ops(function_name(artefact)), by_keyword=True)
    about = f"{artefact.problem} as operators of PyTorch."
    module = str(export_texts("python_package.j2").native_module(own))
    known = sorted(divmod(result.dispatch.capability, 10) for result in artefact.results)
    source = binding.source(about, module, "#define PY_SSIZE_T_CLEAN\n#include <Python.h>\n")
    return {
        f"csrc/{own}.h": call.host.header,
        f"csrc/{own}.cpp": call.host.source,
        f"csrc/{own}_tensors.h": call.header,
        "csrc/torch_op.cpp": source.encode(),
        "setup.py": _SETUP.format(package=package, name=own, known=known).encode(),
        "MANIFEST.in": b"graft csrc\n",
    }


def native_ops(function: str) -> tuple[TorchOp, ...]:
    """The four operators of the package."""
    return (
        TorchOp(function, "functional", original=False, allocates=True),
        TorchOp(f"{function}_out", "out", original=False, allocates=False),
        TorchOp(f"{function}_original", "functional_original", original=True, allocates=True),
        TorchOp(f"{function}_original_out", "out_original", original=True, allocates=False),
    )


# The export `torch`: a package that registers the kernel as PyTorch operators.
_TORCH_MODULE = '''\
"""A tuned kernel as PyTorch operators. README.md beside this package says what serves a call."""

import os

import torch

from ._runtime.operator import Operator, delivered_in
from ._runtime.torch_op import TorchCalls, TorchOperators

try:  # built ahead of time: registers the same operators in C++
    from . import _native
except ImportError:
    _native = None

_DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
_CALLS = TorchCalls(Operator([delivered_in(os.path.join(_DATA, str(n))) for n in range({count})]))
_OPERATORS = TorchOperators(_CALLS, "{package}", "{name}", native=_native is not None)

{name} = _OPERATORS.functional  # inputs in, outputs back
{name}_out = _OPERATORS.out  # every array, in the kernel's order
original = _OPERATORS.functional_original
original_out = _OPERATORS.out_original


def prepare():
    """Load all that may serve, e.g. before a CUDA graph is captured."""
    if _native is not None:
        _native.prepare(torch.cuda.current_device())
    else:
        _OPERATORS.prepare()


__all__ = ["{name}", "{name}_out", "original", "original_out", "prepare"]
'''


def _write_torch(artefact: Artefact) -> dict[str, bytes]:
    name, package = function_name(artefact), package_name(artefact)
    module = _TORCH_MODULE.format(package=package, name=name, count=len(artefact.results))
    usage = usage_text("torch", artefact, call_text(artefact))
    files = package_files(artefact, (*CUDA_RUNTIME, "torch_op"), module, '"torch>=2.4"', usage)
    return files | native_files(artefact)


TORCH = Target("torch", "a Python package with PyTorch operators", ("cuda",), _write_torch)
