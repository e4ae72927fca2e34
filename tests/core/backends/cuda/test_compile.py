"""A source becomes a binary: by either compiler, with the author's names, lines and headers."""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.backends.cuda.builds import BOTH, HALF, built, refusal, unit
from tests.cuda_here import needs_nvcc, needs_nvrtc
from tests.samples import HOPPER
from tests.wording import says
from tunesmith.backends.cuda import CudaBackend
from tunesmith.backends.cuda import compile as cuda_compile
from tunesmith.backends.cuda import compile as nvcc
from tunesmith.backends.cuda.compile import cuda_predefined_macros
from tunesmith.backends.cuda.cubin import Cubin, parse_spills, resources_of, unpack, without_chatter
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.backends.cuda.flags import read_flags
from tunesmith.backends.port import Unsupported
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Kernel
from tunesmith.problem.template import HeaderFile, user_headers

SEVERAL = """#include <cuda_fp16.h>
template <typename T, int B> __global__ void __launch_bounds__(B) twice(T* x) { *x = *x + *x; }
namespace a {
template <typename T> __global__ void twice(T* x) { *x = T(1); }
__global__ void plain(float* x) { *x = 2; }
}
extern "C" __global__ void c_name(float* x) { *x = 3; }
static __global__ void of_this_file(float* x) { *x = 4; }
namespace { template <class T> __global__ void nameless(T* x) { *x = 5; } }
__global__ void over(float* x) { *x = 6; }
__global__ void over(int* x) { *x = 7; }
__device__ void no_kernel(int* x) { *x = 8; }
"""
ENTRIES = {
    "twice<__half, 128>": "_Z5twiceI6__halfLi128EEvPT_",
    "twice<float,64>": "_Z5twiceIfLi64EEvPT_",
    "a::twice<float>": "_ZN1a5twiceIfEEvPT_",
    "a::plain": "_ZN1a5plainEPf",
    "c_name": "c_name",
    "of_this_file": "_Z12of_this_filePf",
    "static_cast<void (*)(int*)>(over)": "_Z4overPi",
}


@pytest.mark.parametrize("compiler", BOTH)
def test_every_way_to_name_a_kernel_finds_its_symbol(compiler: str) -> None:
    binary = built(SEVERAL, *ENTRIES, "nameless<int>", compiler=compiler)
    symbols, cubin = unpack(binary.data)
    hidden = symbols.pop("nameless<int>")
    assert symbols == ENTRIES
    assert hidden.endswith("8namelessIiEEvPT_")
    assert set(Cubin(cubin).kernels) >= {*symbols.values(), hidden}
    assert [name for name, _ in binary.resources.by_entry] == [*ENTRIES, "nameless<int>"]


@pytest.mark.parametrize("compiler", BOTH)
def test_for_a_virtual_architecture_there_is_ptx_with_the_same_symbols(compiler: str) -> None:
    flags = replace(read_flags(("--maxrregcount=32",), 90), architecture="compute_75")
    made = cuda_compile.COMPILERS[compiler](unit(SEVERAL, *ENTRIES, compiler=compiler), flags)
    assert (made.symbols, made.cubin) == (ENTRIES, b"")
    assert b"\n.target sm_75\n" in made.ptx
    assert nvcc.TABLE.encode() not in made.ptx
    for symbol in ENTRIES.values():
        assert f".entry {symbol}(".encode() in made.ptx


@pytest.mark.parametrize("compiler", BOTH)
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("missing", 'identifier "missing" is undefined'),
        ("twice", "cannot determine which instance"),
        ("over", "cannot determine which instance"),
        ("twice<nothing, 1>", 'identifier "nothing" is undefined'),
        ("no_kernel", "__global__"),
    ],
)
@pytest.mark.few(3)
def test_an_entry_that_is_no_kernel_is_reported_with_those_there_are(
    compiler: str, entry: str, words: str
) -> None:
    text = refusal(SEVERAL, "c_name", entry, compiler=compiler)
    assert text.startswith(f"kernel.cu has no kernel called '{entry}'")
    assert words in text
    assert "it defines twice, plain, c_name, of_this_file, nameless, over" in text


@pytest.mark.parametrize("entry", ["k\n", "k; int x", 'k"', "k}", "#k", ""])
def test_an_entry_that_is_no_name_never_reaches_a_compiler(entry: str) -> None:
    says(refusal(SEVERAL, entry), "entry", "name of a kernel")


@pytest.mark.parametrize("compiler", BOTH)
def test_faults_have_the_authors_lines(compiler: str) -> None:
    source = (
        '// a header\n#define BLOCK 64\n#line 1 "mine.cu"\n\n__global__ void k(float* x) { *x = oops; }\n'
    )
    assert 'mine.cu(2): error: identifier "oops" is undefined' in refusal(source, "k", compiler=compiler)


@pytest.mark.parametrize("compiler", BOTH)
def test_the_users_headers_are_found_as_they_are_spelled(compiler: str) -> None:
    kernel = 'extern "C" __global__ void k(float* x) { *x = twice(*x) + MORE; }'
    source = f'#include "ops/twice.h"\n#include <more.h>\n{kernel}'
    headers = (
        ("ops/twice.h", '#include "base.h"\n__device__ float twice(float x) { return FACTOR * x; }'),
        ("base.h", "#define FACTOR 2"),
        ("more.h", "#define MORE 1"),
    )
    plain = 'extern "C" __global__ void k(float* x) { *x = 2 * *x + 1; }'
    binary = built(source, "k", compiler=compiler, headers=headers)
    assert binary.code_digest == built(plain, "k", compiler=compiler).code_digest
    broken = (*headers[:1], ("base.h", "#error no base"), *headers[2:])
    text = refusal(source, "k", compiler=compiler, headers=broken)
    assert re.search(r"^base\.h[(:]1.*error", text, re.MULTILINE)
    assert "headers/" not in text


@pytest.mark.parametrize("compiler", BOTH)
@pytest.mark.parametrize("below", ["d/y.h", "y.h"])
@pytest.mark.few(2)
def test_one_file_under_two_spellings_is_read_once(compiler: str, below: str) -> None:
    files = {"src/c.h": "#pragma once\nstruct C { float x; };\n", "src/d/y.h": '#include "../c.h"\n'}

    def find(spelling: str, includer: str | None, folders: Sequence[str]) -> HeaderFile | None:
        for folder in (posixpath.dirname(includer or ""), "src/d"):
            path = posixpath.normpath(posixpath.join(folder, spelling))
            if path in files:
                return HeaderFile(path, files[path])
        return None

    code = "__global__ void k(C* c) { c->x = 1; }\n"
    for one, other in (("c.h", below), (below, "c.h")):
        source = f'#include "{one}"\n#include "{other}"\n{code}'
        headers = user_headers(source, "src/k.cu", find, ["src/d"])
        assert "../c.h" in dict(headers)
        built(source, "k", compiler=compiler, headers=headers)


@needs_nvcc
@pytest.mark.parametrize("spelling", ["../" * 7 + "up.h", "/etc/up.h", "a/" + "../" * 8 + "1/up.h", "", ".."])
def test_no_header_leaves_nvccs_own_folder(spelling: str) -> None:
    text = refusal(HALF, "scale", compiler="nvcc", headers=((spelling, ""),))
    assert "folder of their own" in text


@needs_nvrtc
@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("#include <vector>", '"vector"'),
        ("#include <torch/extension.h>", '"torch/extension.h"'),
        ("int helper(int x) { return x; }", "host functions"),
        ("__host__ int helper(int x) { return x; }", "host functions"),
        ("__device__ uint32_t word;", "uint32_t needs <cstdint>"),
        ("__device__ int most(int a, int b) { return std::max(a, b); }", "std::max"),
    ],
)
def test_what_only_a_host_compiler_has_is_recognised(head: str, words: str) -> None:
    text = refusal(f"{head}\n{HALF}", "scale")
    assert cuda_compile.needs_host_headers(text)
    assert words in text
    assert 'compiler = "nvcc"' in text
    assert "kernel.cu(1)" in text


@needs_nvrtc
def test_other_faults_are_not_taken_for_missing_headers() -> None:
    assert not cuda_compile.needs_host_headers(refusal("__global__ void k() { oops; }", "k"))
    assert not cuda_compile.needs_host_headers(refusal(HALF, "missing"))


@needs_nvcc
def test_nvcc_takes_host_headers_and_host_code() -> None:
    host = (
        "#include <cstdint>\n#include <cstdio>\n"
        + HALF
        + "void launch(__half* x) { scale<<<1, 64>>>(x, x, 64); }"
    )
    assert (
        built(host, "scale", compiler="nvcc").code_digest == built(HALF, "scale", compiler="nvcc").code_digest
    )


@needs_nvcc
@pytest.mark.long
def test_nvcc_in_two_steps_makes_what_it_makes_in_one(tmp_path: Path) -> None:
    """The division calls a function, which a kernel with its address taken does in another way."""
    source = """template <typename T> __global__ void silu(T* out, const T* x, int n) {
        for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = x[i] / (1 + __expf(-x[i]));
    }
    template __global__ void silu<float>(float*, const float*, int);"""
    (tmp_path / "kernel.cu").write_text(source)
    command = [str(nvcc.find_nvcc()), "-cubin", "-arch=sm_90", "-std=c++17", "-o", "one.cubin", "kernel.cu"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    symbols, cubin = unpack(built(source, "silu<float>", compiler="nvcc").data)
    at_once = Cubin((tmp_path / "one.cubin").read_bytes())
    assert Cubin(cubin).code_digest([*symbols.values()]) == at_once.code_digest([*symbols.values()])


@needs_nvcc
def test_nvcc_without_a_host_compiler_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = nvcc.find_nvcc()
    (tmp_path / "sh").symlink_to(str(shutil.which("sh")))  # nvcc itself may be a script
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: found)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "nvcc needs a host compiler" in refusal(HALF, "scale", compiler="nvcc")


@needs_nvcc
def test_nvcc_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    built(HALF, "scale", compiler="nvcc")
    refusal("#error stop", "scale", compiler="nvcc")
    assert list(tmp_path.iterdir()) == []


@needs_nvcc
@pytest.mark.long
def test_flags_that_no_file_mentions_do_not_reach_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = built(HALF, "scale", compiler="nvcc")
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-maxrregcount=1 --not-a-flag")
    assert built(HALF, "scale", compiler="nvcc") == plain


@needs_nvrtc
@pytest.mark.parametrize(
    "header",
    ["cuda_bf16.h", "cuda_fp8.h", "mma.h", "cooperative_groups.h", "cuda/barrier", "cuda_pipeline.h"],
)
@pytest.mark.few(1)
def test_cudas_own_headers_are_found(header: str) -> None:
    built(f'#include <{header}>\nextern "C" __global__ void k(float* x) {{ *x = 1; }}', "k")


@needs_nvrtc
def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    built(HALF, "scale")
    refusal("__global__ void k() { oops; }", "k")
    assert capfd.readouterr() == ("", "")


@needs_nvrtc
def test_warnings_stay_and_the_account_of_every_function_does_not() -> None:
    binary = built('extern "C" __global__ void k(float* x) { int unused; *x = 1; }', "k")
    assert '"unused" was declared but never referenced' in binary.log
    assert "ptxas" not in binary.log


@needs_nvrtc
def test_what_is_said_of_cudas_own_headers_is_left_out() -> None:
    text = refusal('#include <cuda_fp8.h>\nextern "C" __global__ void k(double4* x) { *x = oops; }', "k")
    assert text.startswith("kernel.cu(2): ")
    assert "cuda_fp8" not in text
    assert 'kernel.cu(2): error: identifier "oops" is undefined' in text


@needs_nvrtc
def test_a_fault_in_cudas_own_headers_names_no_folder() -> None:
    text = refusal(f"#define __half oops oops\n{HALF}", "scale")
    assert re.search(r"^cuda_fp16\.h\w*\(\d+\): error", text, re.MULTILINE)


@pytest.mark.parametrize("compiler", BOTH)
def test_an_architecture_the_compiler_does_not_know_is_reported_with_those_it_does(
    compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 90 in cuda_compile.supported_architectures(compiler)
    monkeypatch.setattr(cuda_compile, "supported_architectures", lambda _: (75, 80))
    text = refusal(HALF, "scale", compiler=compiler)
    assert f"{compiler} " in text
    assert "builds for sm_75, sm_80; NVIDIA H200 is sm_90" in text


@pytest.mark.parametrize("compiler", BOTH)
def test_too_much_static_shared_memory_is_reported_with_the_way_out(compiler: str) -> None:
    source = """extern "C" __global__ void k(float* x, int i) {
        __shared__ float s[20000];
        s[i] = *x;
        __syncthreads();
        *x = s[5];
    }"""
    text = refusal(source, "k", compiler=compiler)
    assert "at most 49152 bytes together, got 80000" in text
    assert "extern __shared__" in text


@needs_nvrtc
def test_a_zero_byte_does_not_cut_a_source_short() -> None:
    assert "kernel.cu(2): a source is text" in refusal("// one\n// \0\n" + HALF, "scale")


@needs_nvrtc
def test_nvrtc_is_the_choice_where_none_is_made() -> None:
    assert built(HALF, "scale", compiler="") == built(HALF, "scale", compiler="nvrtc")
    assert CudaBackend().build(unit(HALF, "scale", compiler=""), absent_device(None)).data
    assert cuda_compile.cuda_compilers()[0][0] == "nvrtc"


def test_an_unknown_compiler_is_not_supported() -> None:
    with pytest.raises(Unsupported, match=r"'clang'.*nvrtc, nvcc"):
        built(HALF, "scale", compiler="clang")


def test_without_the_bindings_everything_imports_and_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "cuda.py").write_text("raise ImportError('there is no cuda')\n")
    program = """
import tunesmith.backends.cuda
from tunesmith.backends.cuda import compile, cubin, devices
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import (Unsupported)
assert "nvrtc" not in dict(compile.cuda_compilers())
try:
    compile.build_cubin(Unit("k.cu", "", "cuda", (), ("k",), compiler="nvrtc"), devices.absent_device(None))
except Unsupported as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(tmp_path), "PATH": "", "CUDA_HOME": ""},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "cuda-bindings cannot be loaded: there is no cuda\n", done.stderr


NAMES = ("__CUDACC_RTC__", "__CUDA_ARCH__", "__CUDA_ARCH_FEAT_SM90_ALL", "__cplusplus", "OWN")


def device(name: str) -> Device:
    found = absent_device(name)
    assert found is not None
    return found


def asked(compiler: str, on: str, *flags: str) -> dict[str, str]:
    kernel = Kernel("k.cu", "", "k", "cuda", flags=flags, compiler=compiler)
    (found,) = cuda_predefined_macros(kernel, device(on), NAMES)
    assert found.said_by.startswith(compiler)
    return dict(found.macros)


@needs_nvrtc
def test_nvrtc_tells_what_it_defines() -> None:
    found = asked("nvrtc", "sm_90", "-arch=sm_90a")
    assert found["__CUDA_ARCH__"] == "900"
    assert found["__cplusplus"] == "201703L"
    assert found["__CUDACC_RTC__"]
    assert "__CUDA_ARCH_FEAT_SM90_ALL" in found
    assert "OWN" not in found
    other = asked("nvrtc", "sm_80", "-std=c++14")
    assert other["__CUDA_ARCH__"] == "800"
    assert other["__cplusplus"] == "201402L"
    assert "__CUDA_ARCH_FEAT_SM90_ALL" not in other
    assert other["__CUDACC_VER_MAJOR__"].isdigit()


@needs_nvcc
def test_nvcc_tells_what_it_defines() -> None:
    found = asked("nvcc", "sm_80", "-std=c++14")
    assert found["__CUDA_ARCH__"] == "800"
    assert found["__cplusplus"] == "201402L"
    assert "__CUDACC_RTC__" not in found
    assert found["__CUDACC_VER_MAJOR__"].isdigit()


def test_what_cannot_be_asked_is_assumed_for_the_device() -> None:
    kernel = Kernel("k.cu", "", "k", "cuda", compiler="none")
    (found,) = cuda_predefined_macros(kernel, device("sm_80"), NAMES)
    assert found.said_by == "assumed, since there is no none here: NVRTC, C++17, sm_80"
    assert dict(found.macros)["__CUDA_ARCH__"] == "800"


@pytest.mark.parametrize("flags", [("--unknown",), ("-arch=sm_70",)])
def test_flags_that_are_not_understood_are_no_reason_to_fail(flags: tuple[str, ...]) -> None:
    (found,) = cuda_predefined_macros(Kernel("k.cu", "", "k", "cuda", flags=flags), device("sm_80"), NAMES)
    assert found.said_by.startswith("assumed, since the flags are not understood")


# Sixty values that live at once.
FAT = """extern "C" __global__ void fat(float* x, int n) {
    float v[60];
#pragma unroll
    for (int i = 0; i < 60; i++) v[i] = x[i * n];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 60; i++) x[i * n] = v[59 - i] * v[i];
}
extern "C" __global__ void __launch_bounds__(96) thin(float* x) {
    __shared__ float s[96];
    s[threadIdx.x] = *x;
    __syncthreads();
    x[threadIdx.x] = s[95 - threadIdx.x];
}
"""


@pytest.mark.parametrize("compiler", BOTH)
@pytest.mark.few(1)
def test_each_entry_and_the_worst_of_all(compiler: str) -> None:
    both = built(FAT, "fat", "thin", compiler=compiler).resources
    fat, thin = both.of("fat"), both.of("thin")
    assert fat.registers is not None
    assert thin.registers is not None
    assert fat.registers > 60 > thin.registers
    assert (fat.shared, thin.shared) == (0, 384)
    assert (fat.max_threads, thin.max_threads) == (65536 // (fat.registers + 7 & ~7) // 128 * 128, 96)
    assert (both.registers, both.shared, both.max_threads) == (fat.registers, 384, 96)
    assert (both.spills, both.private) == (0, 0)


@pytest.mark.parametrize("compiler", BOTH)
@pytest.mark.few(1)
def test_too_few_registers_spill(compiler: str) -> None:
    resources = built(FAT, "fat", "thin", compiler=compiler, flags=("-maxrregcount=24",)).resources
    assert resources.registers == 24
    assert resources.of("fat").spills
    assert resources.of("fat").private
    assert resources.of("thin").spills == 0
    assert resources.spills == resources.of("fat").spills
    assert resources.max_threads == 96


@needs_nvrtc
def test_only_the_entries_count() -> None:
    resources = built(FAT, "thin").resources
    assert resources.registers == resources.of("thin").registers
    assert [name for name, _ in resources.by_entry] == ["thin"]


@needs_nvrtc
@pytest.mark.parametrize(
    ("device", "shared"), [("sm_75", 384), ("sm_80", 384), ("sm_90", 384), ("sm_120", 384)]
)
def test_what_the_system_keeps_of_shared_memory_is_not_the_kernels(device: str, shared: int) -> None:
    assert built(FAT, "thin", device=device).resources.shared == shared


@needs_nvrtc
def test_a_log_that_says_nothing_leaves_spills_unknown() -> None:
    """NVRTC's cache, where there is a driver, gives the code of an earlier build without its log."""
    binary = built(FAT, "fat", flags=("-maxrregcount=24",))
    symbols, cubin = unpack(binary.data)
    silent = resources_of(Cubin(cubin), symbols, "", HOPPER)
    assert silent.spills is None
    assert silent.of("fat").spills is None
    assert (silent.registers, silent.private) == (binary.resources.registers, binary.resources.private)


def test_spills_are_read_from_both_compilers_words() -> None:
    nvrtc = """ptxas info    : Function properties for k
ptxas         .     112 bytes stack frame, 88 bytes spill stores, 76 bytes spill loads
ptxas info    : Used 24 registers
"""
    nvcc = """ptxas info    : Function properties for k
    112 bytes stack frame, 88 bytes spill stores, 76 bytes spill loads
ptxas info    : Used 24 registers"""
    assert parse_spills(nvrtc) == parse_spills(nvcc) == {"k": 164}
    assert without_chatter(f"a warning\n{nvrtc}ptxas error   : no") == "a warning\nptxas error   : no"
    assert without_chatter(nvcc) == ""
    loss = "ptxas info    : (C7508) Potential Performance Loss: wgmma.mma_async instructions are serialized"
    assert without_chatter(f"{nvrtc}{loss}") == loss
