"""The export `cupy`: a package whose function takes CuPy's arrays."""

from __future__ import annotations

from tunesmith.deliver.exports.artefact import Artefact, Target
from tunesmith.deliver.exports.python_package import (
    CUDA_RUNTIME,
    call_text,
    function_name,
    package_files,
    package_name,
)

_MODULE = '''"""A tuned kernel for CuPy. README.md beside this package says what serves a call."""

import os

from ._runtime.cupy_op import CupyCalls
from ._runtime.operator import Operator, delivered_in

_DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
{name} = CupyCalls(Operator([delivered_in(os.path.join(_DATA, str(n))) for n in range({count})]))
original = {name}.original
prepare = {name}.prepare  # load all that may serve, e.g. before a CUDA graph is captured

__all__ = ["{name}", "original", "prepare"]
'''
_USAGE = """```python
import cupy
from {package} import {name}

{call}
with cupy.cuda.Stream() as stream:  # on a stream of your own
    {call}
```

Call it with every array in the kernel's order, or without the outputs, which are then allocated and returned.
It is queued on CuPy's current stream. `original` is the kernel as it was; `prepare()` loads everything
beforehand. Of a type that CuPy does not have (bfloat16, float8) pass the bits, as uint16 or uint8."""


def _write(artefact: Artefact) -> dict[str, bytes]:
    known = {"name": function_name(artefact), "package": package_name(artefact)}
    module = _MODULE.format(count=len(artefact.results), **known)
    usage = _USAGE.format(call=call_text(artefact), **known)
    return package_files(artefact, (*CUDA_RUNTIME, "cupy_op"), module, "", usage)


TARGET = Target("cupy", "a Python package for CuPy's arrays", ("cuda",), _write)
