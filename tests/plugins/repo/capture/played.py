"""Programs that use a played GPU, run as a user runs them."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tunesmith.plugins.repo.capture.capture import build_watcher

HERE = Path(__file__).parent
COMPILER = shutil.which("cc") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(
    COMPILER is None or not sys.platform.startswith("linux"), reason="there is no C compiler here"
)

# What every program below begins with: the driver, and a few words for it.
PRELUDE = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
cuda.played_function.restype = ctypes.c_void_p
def function(name, *layout):
    offsets = (ctypes.c_size_t * 64)(*[o for o, _ in layout])
    sizes = (ctypes.c_size_t * 64)(*[s for _, s in layout])
    text = name if isinstance(name, bytes) else name.encode()
    return ctypes.c_void_p(cuda.played_function(text, len(layout), offsets, sizes))
def memory(size):
    at = ctypes.c_uint64()
    assert cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)) == 0
    return at.value
def launch(what, grid, block, *arguments, shared=0, stream=0):
    values = [*arguments]
    pointers = (ctypes.c_void_p * (len(values) + 1))(*[ctypes.addressof(v) for v in values])
    none = ctypes.c_void_p()
    return cuda.cuLaunchKernel(what, grid, 1, 1, block, 1, 1, shared, ctypes.c_void_p(stream), pointers, none)
def floats(at, n):
    return (ctypes.c_float * n).from_address(at)
P, I, F = ctypes.c_uint64, ctypes.c_int, ctypes.c_float
SCALE = "_Z5scalePfif", (0, 8), (8, 4), (12, 4)
"""


@functools.cache
def driver() -> Path:
    """The folder with it, for LD_LIBRARY_PATH."""
    folder = Path(tempfile.mkdtemp(prefix="played-", dir=os.environ["TESTS_SHARED_FOLDER"]))
    assert COMPILER is not None
    command = [COMPILER, "-O1", "-shared", "-fPIC", "-o", str(folder / "libcuda.so.1")]
    subprocess.run([*command, str(HERE / "played_driver.c"), "-ldl", "-lpthread"], check=True)
    return folder


@functools.cache
def library() -> Path:
    """The one that watches, built once: it takes a second."""
    return build_watcher(Path(tempfile.mkdtemp(prefix="watch-", dir=os.environ["TESTS_SHARED_FOLDER"])))


def with_played_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs started from here on find a driver, and its CUPTI first of all."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver()))
    path = str(driver() / "libcuda.so.1")
    monkeypatch.setattr("tunesmith.plugins.repo.capture.capture.cupti_paths", lambda _program: [path])
    built = library()
    monkeypatch.setattr(
        "tunesmith.plugins.repo.capture.capture.build_watcher",
        lambda folder: Path(shutil.copy(built, folder / built.name)),
    )
    monkeypatch.delenv("CUDA_INJECTION64_PATH", raising=False)


def program(text: str) -> list[str]:
    return [sys.executable, "-c", PRELUDE + text]
