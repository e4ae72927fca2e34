"""Exports: a run's result in the form in which somebody's program takes it. One module for each target."""

from __future__ import annotations

from importlib import import_module

from tunesmith.deliver.exports.artefact import Target
from tunesmith.errors import BadInput

# Each target, and where it is: loaded when it is asked for.
_TARGETS = {
    "torch": "for_torch:TARGET",
    "cpp": "cuda_cpp:CPP",
    "cubin": "cuda_cpp:CUBIN",
    "cupy": "for_cupy:TARGET",
    "cuda.core": "for_cuda_core:TARGET",
    "opencl": "opencl:TARGET",
    "sglang": "sglang:TARGET",
    "vllm": "vllm:TARGET",
    "patch": "patch:TARGET",
    "kernel-tuner": "kernel_tuner:TARGET",
}
NAMES = tuple(_TARGETS)


def target_named(name: str) -> Target:
    if name not in _TARGETS:
        raise BadInput(f"there is no export {name!r}", hint=f"name one of: {', '.join(NAMES)}")
    module, _, attribute = _TARGETS[name].partition(":")
    found: Target = getattr(import_module(f"tunesmith.deliver.exports.{module}"), attribute)
    return found
