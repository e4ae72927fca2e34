"""NVRTC through ctypes: a CUDA source to machine code, for a device that no binary was made for."""

from __future__ import annotations

import ctypes
import ctypes.util
import glob
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

STANDARD = "--std=c++17"
_A_HEADER = "cuda_fp16.h"


class CompileError(RuntimeError):
    """A source that NVRTC does not take, or no NVRTC."""

    is_about_code = True


def compile_source(
    source: str,
    name: str,
    entries: Sequence[str],
    architecture: str,
    options: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    newest: tuple[int, int] = (99, 0),
) -> tuple[bytes, dict[str, str]]:
    """A cubin, and the symbol of each entry. `newest`: the CUDA version whose code the driver takes."""
    library, path = _library(newest[0])
    given = dict(headers or {})
    texts = (ctypes.c_char_p * max(len(given), 1))(
        *(t.encode(errors="surrogatepass") for t in given.values())
    )
    names = (ctypes.c_char_p * max(len(given), 1))(*(n.encode(errors="surrogatepass") for n in given))
    program = ctypes.c_void_p()
    text = source.encode(errors="surrogatepass")
    made = (ctypes.byref(program), text, os.path.basename(name).encode(), len(given), texts, names)
    _checked(library, library.nvrtcCreateProgram(*made))
    try:
        for entry in entries:
            _checked(library, library.nvrtcAddNameExpression(program, entry.encode()))
        standard = () if any("std=" in option for option in options) else (STANDARD,)
        folders = [f"--include-path={folder}" for folder in _include_folders(path)]
        every = [f"--gpu-architecture={architecture}", *standard, *options, *folders]
        passed = (ctypes.c_char_p * len(every))(*(option.encode() for option in every))
        status = library.nvrtcCompileProgram(program, len(every), passed)
        if status:
            log = _got(library, program, "ProgramLog").rstrip(b"\0").decode(errors="replace").strip()
            raise CompileError(
                f"NVRTC ({path}) does not compile {name} for {architecture}: "
                f"{_word(library, status)}\n{log}\n"
                "Where a header is missing: pip install nvidia-cuda-runtime, or set CUDA_HOME to a toolkit"
            )
        symbols: dict[str, str] = {}
        for entry in entries:
            lowered = ctypes.c_char_p()
            _checked(library, library.nvrtcGetLoweredName(program, entry.encode(), ctypes.byref(lowered)))
            symbols[entry] = (lowered.value or b"").decode()
        return _got(library, program, "CUBIN"), symbols
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _got(library: Any, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _checked(library, getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    data = ctypes.create_string_buffer(max(size.value, 1))
    _checked(library, getattr(library, f"nvrtcGet{what}")(program, data))
    return data.raw[: size.value]


def _word(library: Any, status: int) -> str:
    return str((library.nvrtcGetErrorString(status) or b"").decode())


def _checked(library: Any, status: int) -> None:
    if status:
        raise CompileError(f"NVRTC: {_word(library, status)}")


@cache
def _library(newest: int) -> tuple[Any, str]:
    """The first that is here and not newer than the driver, by the number of its release."""
    tried: list[str] = []
    for path in _places():
        try:
            library = ctypes.CDLL(path)
            major, minor = ctypes.c_int(), ctypes.c_int()
            library.nvrtcGetErrorString.restype = ctypes.c_char_p
            _checked(library, library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        except (OSError, AttributeError):
            continue
        if major.value <= newest:
            return library, path
        tried.append(f"{path} is {major.value}.{minor.value}")
    newer = f"; newer than the driver's {newest}: {', '.join(tried)}" if tried else ""
    raise CompileError(
        f"no NVRTC to compile the original with{newer}: pip install nvidia-cuda-nvrtc "
        "(nvidia-cuda-nvrtc-cu12 for CUDA 12), or set CUDA_HOME to a toolkit"
    )


def _in_wheels() -> Iterator[str]:
    """Folders that NVIDIA's wheels share, which PyTorch's depend on."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield from sorted(glob.glob(os.path.join(place, "cu[0-9]*")), reverse=True)
        yield os.path.join(place, "cuda_nvrtc")
        yield os.path.join(place, "cuda_runtime")


def _toolkits() -> Iterator[str]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            yield os.environ[name]
    yield "/usr/local/cuda"


def _places() -> Iterator[str]:
    pattern = "nvrtc64_*_0.dll" if sys.platform == "win32" else "libnvrtc.so*"
    folders = [os.path.join(root, sub) for root in _in_wheels() for sub in ("lib", "bin")]
    spec = importlib.util.find_spec("torch")
    if spec is not None and spec.origin:
        folders.append(os.path.join(os.path.dirname(spec.origin), "lib"))
    folders += [os.path.join(root, sub) for root in _toolkits() for sub in ("lib64", "bin")]
    for folder in folders:
        yield from sorted(
            (p for p in glob.glob(os.path.join(folder, pattern)) if "builtins" not in p), key=len
        )
    named = ctypes.util.find_library("nvrtc")
    if named:
        yield named


def _include_folders(library: str) -> list[str]:
    """CUDA's headers: those beside the library, else the wheels', else a toolkit's."""
    root = os.path.dirname(os.path.dirname(os.path.realpath(library)))
    roots = [root, *_in_wheels(), *_toolkits()]
    for candidate in roots:
        folder = os.path.join(candidate, "include")
        if os.path.isfile(os.path.join(folder, _A_HEADER)):
            libraries = os.path.join(folder, "cccl")
            return [folder, libraries] if os.path.isdir(libraries) else [folder]
    return []
