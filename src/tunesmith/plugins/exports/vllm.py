"""The export `vllm`: a custom operator of vLLM, in C++, with its schema and Python's side of it."""

from __future__ import annotations

from tunesmith.deliver.artefact import Artefact, Export, Target
from tunesmith.plugins.exports.tensor_call import TensorCall, plain_name, read_export_text
from tunesmith.plugins.exports.torch_cpp import TorchBinding, TorchOp

NAMESPACE = "_C"


def _export_vllm(artefact: Artefact) -> Export:
    call = TensorCall(artefact)
    name = call.name
    ops = (
        TorchOp(f"{name}_tuned", "tuned", original=False, allocates=False),
        TorchOp(f"{name}_tuned_original", "original", original=True, allocates=False),
    )
    binding = TorchBinding(call, NAMESPACE, ops, by_keyword=False)
    about = f"{artefact.problem} as operators of vLLM, which pass every array in."
    files = {
        f"csrc/tuned/{name}.h": call.host.header,
        f"csrc/tuned/{name}.cpp": call.host.source,
        f"csrc/tuned/{name}_tensors.h": call.header,
        f"csrc/tuned/{name}_op.cpp": binding.source(about).encode(),
        f"{name}_tuned.py": _vllm_module(call).encode(),
        "README.md": _vllm_readme(call, binding).encode(),
    }
    return Export(files, call.host.left_out)


_MODULE = '''"""A tuned kernel for vLLM, written by Tunesmith. README.md says where the files go."""

import pathlib

import torch


def _tunesmith_registered() -> bool:
    return hasattr(torch.ops.{namespace}, "{name}_tuned")


def build() -> None:
    """Build the operators where vLLM was not built with them, from csrc/tuned beside this file."""
    from torch.utils.cpp_extension import load

    folder = pathlib.Path(__file__).resolve().parent / "csrc" / "tuned"
    sources = [str(folder / "{name}.cpp"), str(folder / "{name}_op.cpp")]
    load(name="{name}_tuned_ops", sources=sources, with_cuda=True, is_python_module=False)


if not _tunesmith_registered():
    build()


def {name}_tuned({taken}) -> None:
    """Arrays that are written are passed in: {written}."""
    torch.ops.{namespace}.{name}_tuned({passed})


def {name}_tuned_original({taken}) -> None:
    """The kernel as it was before it was tuned."""
    torch.ops.{namespace}.{name}_tuned_original({passed})


@torch.library.register_fake("{namespace}::{name}_tuned")
def _tunesmith_fake({taken}) -> None:
    return None


@torch.library.register_fake("{namespace}::{name}_tuned_original")
def _tunesmith_fake_original({taken}) -> None:
    return None
'''


def _vllm_module(call: TensorCall) -> str:
    return _MODULE.format(
        namespace=NAMESPACE,
        name=call.name,
        taken=call.python_taken,
        passed=call.python_passed,
        written=", ".join(plain_name(a.name) for a in call.written) or "none",
    )


def _vllm_readme(call: TensorCall, binding: TorchBinding) -> str:
    name = call.name
    declared = "\n".join(f"namespace {name}_tuned {{ {line} }}" for line in binding.declarations())
    lines = binding.definitions(f"{name}_tuned::", "").rstrip()
    known = {"name": name, "namespace": NAMESPACE, "declared": declared, "lines": lines}
    return read_export_text("vllm_readme.md").format(**known, **call.readme_words)


TARGET = Target("vllm", "a custom operator of vLLM", ("cuda",), _export_vllm)
