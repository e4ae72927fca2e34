"""The little of PyTorch's C++ headers that exported operators use: enough to check them without PyTorch.

A stand-in declares what the real headers declare; whether the real ones do is seen where PyTorch is, by the
tests on a GPU.
"""

from __future__ import annotations

from pathlib import Path

from tests.core.deliver.programs import read_program

_CORE = read_program("torch-core.h")
_STREAM = read_program("torch-stream.h")
_VERSION = "#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 11\n"
_FILES = {
    "torch/types.h": '#include "torch/library.h"\n',
    "torch/library.h": _CORE,
    "torch/version.h": _VERSION,
    "ATen/ATen.h": '#include "torch/library.h"\n',
    "ATen/cuda/CUDAContext.h": _STREAM,
    "c10/cuda/CUDAGuard.h": '#include "torch/library.h"\n',
}


def written_to(folder: Path) -> Path:
    for name, text in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
