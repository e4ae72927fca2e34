"""The export `cuda.core`: a package whose function takes a cuda.core stream and any arrays on the device."""

from __future__ import annotations

from tunesmith.deliver.exports.artefact import Artefact, Target
from tunesmith.deliver.exports.python_package import (
    CUDA_RUNTIME,
    call_text,
    function_name,
    package_files,
    package_name,
)

_MODULE = '''"""A tuned kernel for cuda.core. README.md beside this package says what serves a call."""

import os

from ._runtime.cuda_core_op import CudaCoreCalls
from ._runtime.operator import Operator, delivered_in

_DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
{name} = CudaCoreCalls(Operator([delivered_in(os.path.join(_DATA, str(n))) for n in range({count})]))
original = {name}.original
prepare = {name}.prepare  # load all that may serve, e.g. before a CUDA graph is captured

__all__ = ["{name}", "original", "prepare"]
'''
_USAGE = """```python
from cuda.core import Device
from {package} import {name}

device = Device()
device.set_current()
stream = device.create_stream()
{call}
stream.sync()
```

Call it with a `Stream` of cuda.core and every array in the kernel's order; arrays have DLPack or the CUDA
array interface, and lie on the stream's device. `original` is the kernel as it was; `prepare()` loads
everything beforehand. Of a type that an array library does not have (bfloat16, float8) pass the bits, as
uint16 or uint8."""


def _write(artefact: Artefact) -> dict[str, bytes]:
    known = {"name": function_name(artefact), "package": package_name(artefact)}
    module = _MODULE.format(count=len(artefact.results), **known)
    runtime = (*CUDA_RUNTIME, "cuda_core_op")
    usage = _USAGE.format(call=call_text(artefact, "stream", every=True), **known)
    return package_files(artefact, runtime, module, '"cuda-core>=0.5"', usage)


TARGET = Target("cuda.core", "a Python package for cuda.core's streams and any arrays", ("cuda",), _write)
