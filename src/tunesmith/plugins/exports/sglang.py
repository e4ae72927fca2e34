"""The export `sglang`: a JIT kernel of SGLang, with the loader's call and the custom operator."""

from __future__ import annotations

from tunesmith.deliver.artefact import Artefact, Export, Target
from tunesmith.deliver.expr_text import c_text
from tunesmith.plugins.exports import export_texts
from tunesmith.plugins.exports.tensor_call import (
    STAND_INS,
    TensorCall,
    given_sizes,
    plain_name,
    read_export_text,
)
from tunesmith.problem.dispatch import DispatchArgument

# Codes and bits of DLPack; by number, because older headers have no names for the narrow floats.
_DLPACK = {
    "float16": (2, 16), "bfloat16": (4, 16), "float32": (2, 32), "float64": (2, 64),
    "float8_e4m3": (10, 8), "float8_e5m2": (12, 8), "int4": (1, 8), "uint4": (1, 8),
    **{f"int{bits}": (0, bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (1, bits) for bits in (8, 16, 32, 64)},
}  # fmt: skip


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
    tensors = [
        {"view": call.view(a), "name": c_text(a.name), "type": c_text(a.type), "kinds": _dlpack_kinds(a)}
        | {"rule": c_text(f"[{', '.join(a.shape)}]")}
        for a in call.arrays
    ]
    scratch = [{"view": s.variable, "name": c_text(s.uses[0][1].name)} for s in call.scratch]
    written = [call.view(a) for a in call.written]
    texts = export_texts("sglang_binding.j2")
    return str(texts.binding(call, tensors, given_sizes(call.unshown_by_all), written, scratch))


def _dlpack_kinds(argument: DispatchArgument) -> str:
    codes = dict.fromkeys(_DLPACK[kind] for kind in (argument.type, *STAND_INS.get(argument.type, ())))
    return ", ".join(f"{{{code}, {bits}}}" for code, bits in codes)


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
