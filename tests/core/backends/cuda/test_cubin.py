"""A cubin read without NVIDIA's tools: held against ptxas' own words, and digested by its code alone."""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.backends.cuda.builds import BOTH, HALF, built, unit
from tests.cuda_here import needs_nvcc, needs_nvrtc
from tunesmith.backends.cuda import compile as nvrtc
from tunesmith.backends.cuda.cubin import MAGIC, Cubin, pack, unpack
from tunesmith.backends.cuda.devices import ARCHITECTURES
from tunesmith.backends.cuda.flags import read_flags
from tunesmith.base.codec import Malformed

KERNELS = """
__device__ int counter;
__constant__ float table[4] = {1, 2, 3, 4};
extern "C" __global__ void plain(float* x) { *x = 1; }
extern "C" __global__ void __launch_bounds__(128, 2) fixed(float* x, int n) {
    __shared__ float s[256];
    s[threadIdx.x] = x[threadIdx.x] * table[n];
    __syncthreads();
    x[threadIdx.x] = s[threadIdx.x ^ 1];
    atomicAdd(&counter, 1);
}
extern "C" __global__ void dynamic(float* x, short a, double b, int n) {
    extern __shared__ __align__(128) float s[];
    __shared__ float t[4];
    s[threadIdx.x] = *x;
    t[n] = s[n];
    __syncthreads();
    x[threadIdx.x] = s[n ^ 1] + t[n ^ 1] + a + b;
}
extern "C" __global__ void local(float* x, int n) {
    float l[100];
    for (int i = 0; i < 100; i++) l[(i * n) % 100] = x[i];
    for (int i = 0; i < 100; i++) x[i] = l[(i + n) % 100];
}
"""
NAMES = ("plain", "fixed", "dynamic", "local")
# What ptxas -v says of one kernel.
WORDS = re.compile(
    r"Function properties for (?P<name>\w+)\s+(?:ptxas\s+\.\s+)?(?P<frame>\d+) bytes stack frame[^\n]*\n"
    r"ptxas info\s+: Used (?P<registers>\d+) registers(?:, used \d+ barriers)?"
    r"(?:, \d+ bytes cumulative stack size)?(?:, (?P<shared>\d+) bytes smem)?"
)


@needs_nvrtc
@pytest.mark.parametrize("capability", ARCHITECTURES)
@pytest.mark.few(1)
def test_a_kernel_uses_what_ptxas_says_it_does(capability: int) -> None:
    if capability not in nvrtc.nvrtc_architectures():
        pytest.skip(f"this NVRTC does not build for sm_{capability}")
    compiled = nvrtc.compile_by_nvrtc(unit(KERNELS, *NAMES), read_flags((), capability))
    kernels = Cubin(compiled.cubin).kernels
    said = {m["name"]: m for m in WORDS.finditer(compiled.log)}
    assert set(kernels) == set(said) == set(NAMES)
    for name, kernel in kernels.items():
        words = said[name]
        assert kernel.registers == int(words["registers"])
        assert kernel.shared == int(words["shared"] or 0)
        assert kernel.frame == int(words["frame"])
    assert kernels["fixed"].shared == 1024
    assert kernels["fixed"].max_block == (128, 1, 1)
    assert kernels["plain"].max_block is None
    assert kernels["dynamic"].parameters == (8, 2, 8, 4)
    assert kernels["local"].frame >= 400


@needs_nvrtc
def test_a_required_block_is_read() -> None:
    source = 'extern "C" __global__ void __block_size__((64, 2, 1)) k(float* x) { *x = 1; }'
    (kernel,) = Cubin(unpack(built(source, "k").data)[1]).kernels.values()
    assert kernel.required_block == (64, 2, 1)


def digest(source: str, *entries: str, **more: object) -> str:
    return built(source, *(entries or ("scale",)), **more).code_digest


@needs_nvrtc
def test_the_digest_is_blind_to_everything_but_code() -> None:
    plain = digest(HALF)
    assert digest(f"// a comment\n\n{HALF}") == plain
    assert digest(f'#line 70 "other.cu"\n{HALF}') == plain
    assert digest(HALF, path="folder/other.cu") == plain
    assert digest(f"#define UNUSED 7\n{HALF}") == plain
    assert digest(HALF.replace("i < n", "n > i")) == plain
    assert digest(HALF, flags=("-lineinfo",)) == plain
    assert digest(HALF, flags=("-O3",)) == plain


@needs_nvcc
@pytest.mark.long
def test_the_digest_of_what_nvcc_makes_is_as_blind() -> None:
    source = f'// a comment\n#define UNUSED 7\n#line 70 "other.cu"\n{HALF}'
    other = digest(source, compiler="nvcc", path="folder/other.cu", flags=("-lineinfo",))
    assert other == digest(HALF, compiler="nvcc")
    assert other != digest(HALF.replace("2.0f", "3.0f"), compiler="nvcc")


@needs_nvrtc
def test_the_digest_sees_code_and_what_a_launch_needs() -> None:
    bounded = HALF.replace("void scale", "void __launch_bounds__(256) scale")
    scaled = HALF.replace("2.0f", "table[n & 1]")
    texts = {
        "plain": HALF,
        "another factor": HALF.replace("2.0f", "3.0f"),
        "bounds": bounded,
        "other bounds": bounded.replace("256", "128"),
        "another parameter": HALF.replace("int n)", "int n, int unused)"),
        "a table": f"__constant__ float table[2] = {{1, 2}};\n{scaled}",
        "another table": f"__constant__ float table[2] = {{1, 3}};\n{scaled}",
        "a table in memory": f"__device__ const float table[2] = {{1, 2}};\n{scaled}",
        "another in memory": f"__device__ const float table[2] = {{1, 3}};\n{scaled}",
        "shared": HALF.replace("if (i", "__shared__ int s[64]; s[n] = n; __syncthreads(); if (s[i]"),
    }
    digests = {name: digest(text) for name, text in texts.items()}
    assert len(set(digests.values())) == len(digests), digests


@pytest.mark.parametrize("compiler", BOTH)
@pytest.mark.few(1)
def test_names_that_follow_the_files_do_not_show(compiler: str) -> None:
    hidden = """namespace { template <class T> __global__ void k(T* x) { *x = 5; } }
static __device__ int counter;
__global__ void other(int* x) { *x = atomicAdd(&counter, 1); }"""
    one = digest(hidden, "k<int>", "other", compiler=compiler, path="one.cu")
    assert digest(f"// more\n{hidden}", "k<int>", "other", compiler=compiler, path="another.cu") == one


@needs_nvrtc
def test_a_digest_belongs_to_its_entries() -> None:
    """Whoever loads the code looks kernels up by these names."""
    source = """template <int N> __global__ void k(int* x) { *x = 1; }
extern "C" __global__ void c(int* x) { *x = 1; }"""
    one, other = (digest(source, f"k<{n}>") for n in (1, 2))
    assert one != other
    assert digest(source, "c", "k<1>") != digest(source, "k<1>", "c")


@needs_nvrtc
@pytest.mark.long
def test_the_data_of_large_headers_changes_no_digest() -> None:
    """cooperative_groups.h brings hundreds of constants, under names made from the file's."""
    source = f"#include <cooperative_groups.h>\n{HALF}"
    assert digest(source) == digest(f"// a comment\n{source}", path="other.cu")


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02\x01", b"x" * 100])
def test_other_bytes_are_not_taken_for_a_cubin(data: bytes) -> None:
    with pytest.raises(Malformed):
        Cubin(data)


@needs_nvrtc
@given(st.data())
def test_damaged_bytes_are_malformed_or_read(data: st.DataObject) -> None:
    cubin = bytearray(_cubin())
    for _ in range(data.draw(st.integers(1, 4))):
        cubin[data.draw(st.integers(0, len(cubin) - 1))] = data.draw(st.integers(0, 255))
    try:
        Cubin(bytes(cubin[: data.draw(st.integers(64, len(cubin)))]))
    except Malformed:
        pass


@cache
def _cubin() -> bytes:
    return unpack(built(HALF, "scale").data)[1]


texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(texts, texts), st.binary())
def test_what_is_packed_comes_out(symbols: dict[str, str], cubin: bytes) -> None:
    assert unpack(pack(symbols, cubin)) == (symbols, cubin)


@given(st.data())
def test_no_byte_can_change_unnoticed(data: st.DataObject) -> None:
    packed = bytearray(pack({"k<float>": "_Z1kIfEvv"}, b"\x7fELF some code"))
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(Malformed):
        unpack(bytes(packed))


@given(st.integers(0, 79))
def test_no_byte_can_be_missing(length: int) -> None:
    whole = pack({"k": "k"}, b"\x7fELF" * 8)
    assert len(whole) == 85
    with pytest.raises(Malformed):
        unpack(whole[:length])


@pytest.mark.parametrize("data", [b"", MAGIC, b"\x7fELF" * 30])
def test_other_bytes_are_not_taken_for_one(data: bytes) -> None:
    with pytest.raises(Malformed, match="not a CUDA binary"):
        unpack(data)
