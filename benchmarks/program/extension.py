"""The CUDA extension, compiled in place by nvcc when it is loaded; a build is known by its sources."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import torch

HERE = Path(__file__).parent
UNITS = ("norm.cu", "activation.cu", "quant.cu")


def _digest(architecture: str) -> str:
    found = hashlib.sha256(architecture.encode())
    for path in sorted((HERE / "csrc").iterdir()):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def build() -> Path:
    major, minor = torch.cuda.get_device_capability()
    architecture = f"sm_{major}{minor}"
    library = HERE / "build" / f"program-{_digest(architecture)}.so"
    if library.is_file():
        return library
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    library.parent.mkdir(exist_ok=True)
    flags = [nvcc, "-O3", "-std=c++17", f"-arch={architecture}", "-Xcompiler", "-fPIC"]
    # The linker would take other libraries from there.
    own = {name: value for name, value in os.environ.items() if name != "LIBRARY_PATH"}

    def compiled(unit: str) -> str:
        target = f"{library.with_suffix('')}-{unit}-{os.getpid()}.o"
        subprocess.run([*flags, "-c", str(HERE / "csrc" / unit), "-o", target], check=True, env=own)
        return target

    with ThreadPoolExecutor() as pool:
        objects = list(pool.map(compiled, UNITS))
    partial = library.with_suffix(f".{os.getpid()}.part")
    subprocess.run([*flags, "-shared", *objects, "-o", str(partial)], check=True, env=own)
    partial.replace(library)
    for path in objects:
        Path(path).unlink()
    return library


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(str(build()))


def _call(name: str, *arguments: object) -> None:
    own = []
    for value in arguments:
        if isinstance(value, torch.Tensor):
            own.append(ctypes.c_void_p(value.data_ptr()))
        else:
            own.append(ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int(value))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    error = getattr(_library(), name)(*own, stream)
    if error:
        raise RuntimeError(f"{name}: CUDA error {error}")


def _is_half(tensor: torch.Tensor) -> int:
    if tensor.dtype not in (torch.float16, torch.bfloat16) or not tensor.is_contiguous():
        raise TypeError(f"contiguous float16 or bfloat16 is taken, not {tensor.dtype}")
    return int(tensor.dtype == torch.float16)


def fused_add_rms_norm(input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
    """In place: residual becomes the sum, input the norm."""
    rows, hidden = input.shape
    _call("program_fused_add_rms_norm", input, residual, weight, eps, rows, hidden, _is_half(input))


def silu_and_mul(input: torch.Tensor) -> torch.Tensor:
    rows, both = input.shape
    out = torch.empty((rows, both // 2), dtype=input.dtype, device=input.device)
    _call("program_silu_and_mul", out, input, rows, both // 2, _is_half(input))
    return out


def quant_per_token(input: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows, hidden = input.shape
    out = torch.empty((rows, hidden), dtype=torch.int8, device=input.device)
    scales = torch.empty(rows, dtype=torch.float32, device=input.device)
    _call("program_quant_per_token", out, scales, input, rows, hidden, _is_half(input))
    return out, scales
