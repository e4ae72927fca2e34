"""The export `sglang`: a JIT kernel of SGLang, with the loader's call and the custom operator."""

from __future__ import annotations

from tunesmith.deliver.artefact import Artefact, Export, Target
from tunesmith.deliver.expr_text import c_text, format_comment
from tunesmith.plugins.exports.tensor_call import (
    STAND_INS,
    TensorCall,
    given_sizes,
    plain_name,
    read_export_text,
)

# Codes and bits of DLPack; by number, because older headers have no names for the narrow floats.
_DLPACK = {
    "float16": (2, 16), "bfloat16": (4, 16), "float32": (2, 32), "float64": (2, 64),
    "float8_e4m3": (10, 8), "float8_e5m2": (12, 8), "int4": (1, 8), "uint4": (1, 8),
    **{f"int{bits}": (0, bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (1, bits) for bits in (8, 16, 32, 64)},
}  # fmt: skip
_HEADERS = (
    "tvm/ffi/container/tensor.h",
    "tvm/ffi/error.h",
    "tvm/ffi/extra/c_env_api.h",
    "tvm/ffi/function.h",
)


def _export_sglang(artefact: Artefact) -> Export:
    call = TensorCall(artefact)
    name = call.name
    files = {
        f"csrc/tuned/{name}.h": call.host.header,
        f"csrc/tuned/{name}_launch.h": b"#pragma once\n" + call.host.source,
        f"csrc/tuned/{name}_tensors.h": call.header,
        f"csrc/tuned/{name}.cuh": _tvm_binding(call).encode(),
        f"{name}_tuned.py": _sglang_module(call).encode(),
        "README.md": _sglang_readme(call).encode(),
    }
    return Export(files, call.host.left_out)


def _tvm_binding(call: TensorCall) -> str:
    """The one file that the loader's source includes."""
    name = call.name
    text = format_comment(
        [f"{call.artefact.problem} as a function of TVM FFI, for SGLang's loader of kernels."]
    )
    text += "#pragma once\n" + "".join(f"#include <{header}>\n" for header in _HEADERS)
    text += f'#include "{name}_launch.h"\n#include "{name}_tensors.h"\n\n'
    text += f"namespace {name}_tensors {{\n\n{read_export_text('sglang_tensors.h')}\n"
    text += read_export_text("sglang_scratch.h") + _scratch_size_functions(call) if call.scratch else ""
    text += _tvm_function(call, "tuned", "false")
    text += _tvm_function(call, "original", "true")
    text += "// Loads what may serve on that device; false where some of it cannot be.\n"
    text += (
        "inline bool prepare(int64_t device) {\n    try {\n"
        "        const CurrentDevice current(static_cast<int>(device));\n"
        f"        return {name}_tuned::prepare();\n{_END}"
    )
    return text + f"}}  // namespace {name}_tensors\n"


def _function_prologue(call: TensorCall) -> str:
    """From tensors to views and sizes, with checks of what views do not tell."""
    tensors = [call.view(a) for a in call.arrays]
    checks, views = "", ""
    for argument, tensor in zip(call.arrays, tensors, strict=True):
        shown, rule = c_text(argument.name), c_text(f"[{', '.join(argument.shape)}]")
        types = (argument.type, *STAND_INS.get(argument.type, ()))
        codes = dict.fromkeys(_DLPACK[kind] for kind in types)
        kinds = ", ".join(f"{{{code}, {bits}}}" for code, bits in codes)
        checks += (
            f"        check_kind(tensor_{tensor}, {shown}, {c_text(argument.type)}, {{{kinds}}});\n"
            f"        check_device(tensor_{tensor}, {shown}, device);\n"
        )
        views += (
            f"        int64_t room_{tensor}[64] = {{}};\n"
            f"        const View {tensor} = view_of(tensor_{tensor}, {shown}, {rule}, room_{tensor});\n"
        )
    given = [*tensors, *given_sizes(call.unshown_by_all)]
    return (
        f"    try {{\n        const DLDevice device = tensor_{tensors[0]}.device();\n{checks}{views}"
        f"        const Sizes sizes = sizes_of_all({', '.join(given)});\n"
        f"        check_all({', '.join([*tensors, 'sizes'])});\n"
    )


def _tensor_parameters(call: TensorCall) -> list[str]:
    taken = [f"TensorView tensor_{call.view(a)}" for a in call.arrays]
    return taken + [f"int64_t {size}" for size in given_sizes(call.unshown_by_all)]


_END = "    } catch (const Refused& refused) {\n        raise_refused(refused);\n    }\n}\n\n"


def _tvm_function(call: TensorCall, name: str, original: str) -> str:
    taken = [*_tensor_parameters(call), *call.scalars_taken("int64_t")]
    taken += [f"TensorView scratch_{s.variable}" for s in call.scratch]
    scratch = ""
    for s in call.scratch:
        shown = c_text(s.uses[0][1].name)
        scratch += f"        check_device(scratch_{s.variable}, {shown}, device);\n"
        scratch += f"        check_scratch(scratch_{s.variable}, {shown}, bytes_{s.variable}(sizes));\n"
    passed = [original, *(call.view(a) for a in call.arrays), *call.scalar_variables, "sizes"]
    passed += [f"scratch_of(scratch_{s.variable})" for s in call.scratch]
    empty = ", ".join(call.view(a) for a in call.written)
    return (
        f"inline void {name}({', '.join(taken)}) {{\n{_function_prologue(call)}"
        f"        if (is_empty({empty})) return;\n"
        f"{scratch}"
        "        const CurrentDevice current(device.device_id);\n"
        "        const CUstream stream =\n"
        "            static_cast<CUstream>(TVMFFIEnvGetStream(device.device_type, device.device_id));\n"
        f"        run({', '.join([*passed, 'stream'])});\n{_END}"
    )


def _scratch_size_functions(call: TensorCall) -> str:
    """How many bytes each workspace has for a call."""
    return "".join(
        f"inline int64_t needed_{s.variable}({', '.join(_tensor_parameters(call))}) "
        f"{{\n{_function_prologue(call)}"
        f"        return bytes_{s.variable}(sizes);\n{_END}"
        for s in call.scratch
    )


_MODULE = '''"""A tuned kernel for SGLang, written by Tunesmith. README.md says where the files go."""

import pathlib

import torch

try:
    from sglang.kernels.jit.utils import cache_once, load_jit
except ImportError:  # as it was called before
    from sglang.jit_kernel.utils import cache_once, load_jit
from sglang.srt.utils.custom_op import register_custom_op

_tunesmith_here = pathlib.Path(__file__).resolve().parent / "csrc" / "tuned" / "{name}.cuh"
_tunesmith_source = str(_tunesmith_here) if _tunesmith_here.exists() else "tuned/{name}.cuh"


@cache_once
def _tunesmith_module():
    return load_jit(
        "{name}_tuned",
        cuda_files=[_tunesmith_source],
        cuda_wrappers=[
            ("tuned", "::{name}_tensors::tuned"),
            ("original", "::{name}_tensors::original"),
            ("prepare", "::{name}_tensors::prepare"),{scratch_wrappers}
        ],
    )


def prepare() -> bool:
    """Build and load everything, e.g. before a CUDA graph is captured."""
    return bool(_tunesmith_module().prepare(torch.cuda.current_device()))

{scratch_functions}
@register_custom_op(op_name="{name}_tuned", mutates_args=[{mutates}])
def {name}_tuned({taken}) -> None:
    """Arrays that are written are passed in: {written}."""
    _tunesmith_module().tuned({passed})


@register_custom_op(op_name="{name}_tuned_original", mutates_args=[{mutates}])
def {name}_tuned_original({taken}) -> None:
    """The kernel as it was before it was tuned."""
    _tunesmith_module().original({passed})
'''


def _sglang_module(call: TensorCall) -> str:
    passed = call.python_passed
    wrappers, functions = "", ""
    if call.scratch:
        wrappers = "\n            " + "\n            ".join(
            f'("bytes_{s.variable}", "::{call.name}_tensors::needed_{s.variable}"),' for s in call.scratch
        )
        functions = _SCRATCH_PYTHON
        tensors = ", ".join(map(plain_name, (*(a.name for a in call.arrays), *call.unshown_by_all)))
        passed += f", *_tunesmith_scratch({[s.variable for s in call.scratch]!r}, {tensors})"
    return _MODULE.format(
        name=call.name,
        scratch_wrappers=wrappers,
        scratch_functions=functions,
        mutates=", ".join(repr(plain_name(a.name)) for a in call.written),
        taken=call.python_taken,
        passed=passed,
        written=", ".join(plain_name(a.name) for a in call.written) or "none",
    )


_SCRATCH_PYTHON = '''
def _tunesmith_scratch(_tunesmith_names, *_tunesmith_given):
    """Memory that a kernel needs beside the caller's; the allocator keeps it for later calls."""
    _tunesmith_loaded = _tunesmith_module()
    return [
        torch.empty(
            getattr(_tunesmith_loaded, f"bytes_{name}")(*_tunesmith_given),
            dtype=torch.uint8,
            device=_tunesmith_given[0].device,
        )
        for name in _tunesmith_names
    ]

'''


def _sglang_readme(call: TensorCall) -> str:
    return read_export_text("sglang_readme.md").format(name=call.name, **call.readme_words)


TARGET = Target("sglang", "a JIT kernel of SGLang", ("cuda",), _export_sglang)
