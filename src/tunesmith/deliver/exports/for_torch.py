"""The export `torch`: a package that registers the kernel as PyTorch operators."""

from __future__ import annotations

from tunesmith.deliver.exports.artefact import Artefact, Target
from tunesmith.deliver.exports.native_torch import native_files
from tunesmith.deliver.exports.python_package import (
    CUDA_RUNTIME,
    call_text,
    function_name,
    package_files,
    package_name,
)

_MODULE = '''"""A tuned kernel as PyTorch operators. README.md beside this package says what serves a call."""

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
_USAGE = """```python
from {package} import {name}

{call}
```

`{name}_out` takes every array in the kernel's order; `original` and `original_out` are the kernel as it was;
`prepare()` loads everything beforehand. In `torch.compile` and CUDA graphs it is used as it is. The operators
are also `torch.ops.{package}.{name}` and so on. They have no gradient."""


def _write(artefact: Artefact) -> dict[str, bytes]:
    name, package = function_name(artefact), package_name(artefact)
    module = _MODULE.format(package=package, name=name, count=len(artefact.results))
    usage = _USAGE.format(package=package, name=name, call=call_text(artefact))
    files = package_files(artefact, (*CUDA_RUNTIME, "torch_op"), module, '"torch>=2.4"', usage)
    return files | native_files(artefact)


TARGET = Target("torch", "a Python package with PyTorch operators", ("cuda",), _write)
