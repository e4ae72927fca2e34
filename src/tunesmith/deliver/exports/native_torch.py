"""The operators of the export `torch` in C++, for a package that builds them when it is installed.

The package works without: `pip install .` builds `_native` where PyTorch, a C++ compiler and CUDA's headers
are, and leaves it out elsewhere. What is registered has the schemas that the Python side registers otherwise.
"""

from __future__ import annotations

from tunesmith.deliver.exports.artefact import Artefact
from tunesmith.deliver.exports.python_package import function_name, package_name
from tunesmith.deliver.exports.tensor_call import TensorCall
from tunesmith.deliver.exports.torch_cpp import TorchBinding, TorchOp

_MODULE = """
namespace {

PyObject* prepare(PyObject*, PyObject* ordinal) {{
    try {{
        const {name}_tensors::CurrentDevice current(static_cast<int>(PyLong_AsLong(ordinal)));
        return PyBool_FromLong({name}_tuned::prepare());
    }} catch (const {name}_tensors::Refused& refused) {{
        PyErr_SetString(PyExc_RuntimeError, refused.what());
        return nullptr;
    }}
}}
PyMethodDef methods[] = {{
    {{"prepare", &prepare, METH_O, "Load what may serve on a device; False where some of it cannot be."}},
    {{nullptr, nullptr, 0, nullptr}},
}};
PyModuleDef module = {{
    PyModuleDef_HEAD_INIT, "_native", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr,
}};

}}  // namespace

PyMODINIT_FUNC PyInit__native() {{ return PyModule_Create(&module); }}
""".replace("namespace {\n", "namespace {{\n")

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
    module = _MODULE.format(name=own)
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
