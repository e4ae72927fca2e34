"""The numbers that stand for a framework's: bit for bit what NumPy and ml_dtypes say."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from importlib.resources import files

import ml_dtypes
import numpy as np
import pytest

CXX = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
needs_cxx = pytest.mark.skipif(CXX is None, reason="there is no C++ compiler here")
TYPES = {
    "Half": np.dtype(np.float16),
    "BFloat16": np.dtype(ml_dtypes.bfloat16),
    "Float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "Float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "Float8_e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "Float8_e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
}
FUNCTION = """
extern "C" void run_NAME(
    const float* in, long count, c10::NAME* number, float* back, c10::NAME* sum, c10::NAME* product) {
  for (long i = 0; i < count; ++i) {
    number[i] = c10::NAME(in[i]);
    back[i] = number[i];
    sum[i] = number[i] + c10::NAME(1.0f);
    product[i] = number[i] * number[i];
  }
}
"""


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("numbers")
    text = files("tunesmith.plugins.repo.extract").joinpath("headers", "framework_types.cuh").read_text()
    own = text[: text.index("}  // namespace c10\n")] + "}\n"
    (folder / "numbers.h").write_text("#define __host__\n#define __device__\n" + own)
    functions = "".join(FUNCTION.replace("NAME", name) for name in TYPES)
    (folder / "numbers.cpp").write_text('#include "numbers.h"\n' + functions)
    command = [
        str(CXX),
        "-std=c++17",
        "-O1",
        "-Wall",
        "-Werror",
        "-shared",
        "-fPIC",
        "-o",
        "numbers.so",
        "numbers.cpp",
    ]
    subprocess.run(command, cwd=folder, check=True, timeout=100)
    return ctypes.CDLL(str(folder / "numbers.so"))


def values() -> np.ndarray:
    """Every number of 16 bits, what lies around ties, and what is far out."""
    rng = np.random.default_rng(1)
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    codes = np.arange(256, dtype=np.uint8)
    bytes_ = [dtype for dtype in TYPES.values() if dtype.itemsize == 1]
    small = np.concatenate([codes.view(dtype).astype(np.float32) for dtype in bytes_])
    finite = np.sort(np.unique(small[np.isfinite(small)]))
    ties = (finite[1:] + finite[:-1]) / 2
    near = [ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf))]
    random = rng.integers(0, 1 << 32, 40_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    ends = [448, 464, 465, 479.9, 480, 240, 248, 256, 57344, 61440, 65504, 65519.9, 65520, 65536]
    edges = np.array(ends, np.float32)
    return np.concatenate([halves, small, *near, random, edges, -edges]).astype(np.float32)


@needs_cxx
@pytest.mark.parametrize("name", list(TYPES))
def test_numbers_round_as_the_frameworks_do(numbers: ctypes.CDLL, name: str) -> None:
    dtype, given = TYPES[name], values()
    bits = np.dtype(f"u{dtype.itemsize}")
    row = {"number": bits, "back": np.dtype(np.float32), "sum": bits, "product": bits}
    got = {field: np.zeros(len(given), kind) for field, kind in row.items()}
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in got.values()]
    numbers[f"run_{name}"](ctypes.c_void_p(given.ctypes.data), ctypes.c_long(len(given)), *pointers)
    with np.errstate(all="ignore"):
        expected = given.astype(dtype)
        back = expected.astype(np.float32)
        one = np.float32(1).astype(dtype).astype(np.float32)
        added, multiplied = (back + one).astype(dtype), (back * back).astype(dtype)
    for field, wanted in (("number", expected), ("sum", added), ("product", multiplied)):
        nan = np.isnan(wanted.astype(np.float32))
        found = got[field].view(dtype)
        assert np.array_equal(np.isnan(found.astype(np.float32)), nan)
        assert np.array_equal(got[field][~nan], wanted.view(bits)[~nan])
    assert np.array_equal(got["back"][~np.isnan(back)], back[~np.isnan(back)])
