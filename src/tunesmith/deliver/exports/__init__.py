"""Exports: a run's result in the form in which somebody's program takes it. One module for each target."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tunesmith.errors import BadInput

if TYPE_CHECKING:
    from tunesmith.deliver.exports.artefact import Target

_CUDA, _BOTH = ("cuda",), ("cuda", "opencl")
# Each target, where it is, and its languages: loaded when it is asked for.
_TARGETS = {
    "torch": ("for_torch:TARGET", _CUDA),
    "cpp": ("cuda_cpp:CPP", _CUDA),
    "cubin": ("cuda_cpp:CUBIN", _CUDA),
    "cupy": ("for_cupy:TARGET", _CUDA),
    "cuda.core": ("for_cuda_core:TARGET", _CUDA),
    "opencl": ("opencl:TARGET", ("opencl",)),
    "sglang": ("sglang:TARGET", _CUDA),
    "vllm": ("vllm:TARGET", _CUDA),
    "patch": ("patch:TARGET", _BOTH),
    "kernel-tuner": ("kernel_tuner:TARGET", _BOTH),
}
NAMES = tuple(_TARGETS)


def names_for(language: str) -> tuple[str, ...]:
    """The targets that a kernel in this language can have; of an unknown one all."""
    return tuple(name for name, (_, own) in _TARGETS.items() if language in own) or NAMES


def target_named(name: str, language: str = "") -> Target:
    """`language`: of the run that is to be exported, where that is known."""
    if name not in _TARGETS:
        fault = f"there is no export {name!r}" if name else "an export needs a target"
        raise BadInput(fault, hint=f"name one of these with --to: {', '.join(names_for(language))}")
    module, _, attribute = _TARGETS[name][0].partition(":")
    found: Target = getattr(import_module(f"tunesmith.deliver.exports.{module}"), attribute)
    return found
