"""The Python form of the export `opencl`: a package whose function takes PyOpenCL's or NumPy's arrays."""

from __future__ import annotations

from tunesmith.deliver.exports.artefact import Artefact
from tunesmith.deliver.exports.python_package import call_text, function_name, package_files, package_name

RUNTIME = ("arguments", "binding", "element_types", "expressions", "manifest", "opencl_op", "operator")
_MODULE = '''"""A tuned kernel for PyOpenCL. README.md beside this package says what serves a call."""

import os

from ._runtime.opencl_op import OpenclCalls
from ._runtime.operator import Operator, delivered_in

_DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
{name} = OpenclCalls(Operator([delivered_in(os.path.join(_DATA, str(n))) for n in range({count})]))
original = {name}.original
prepare = {name}.prepare  # build all that may serve

__all__ = ["{name}", "original", "prepare"]
'''
_USAGE = """```python
from {package} import {name}

{call}
```

Call it with every array in the kernel's order, or without the outputs, which are then allocated and returned.
Arrays are PyOpenCL's, or NumPy's, which are copied to the device and back; PyOpenCL's buffers need every size
by name, and {queue}. `original` is the kernel as it was."""


def python_files(artefact: Artefact) -> dict[str, bytes]:
    known = {"name": function_name(artefact), "package": package_name(artefact)}
    module = _MODULE.format(count=len(artefact.results), **known)
    own = artefact.first.dispatch
    queue = "queue"
    while queue in {a.name for a in own.arguments} | {size.name for size in own.sizes}:
        queue += "_"
    usage = _USAGE.format(call=call_text(artefact), queue=f"`{queue}=`, a `CommandQueue`", **known)
    return package_files(artefact, RUNTIME, module, '"pyopencl"', usage)
