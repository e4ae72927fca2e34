"""C++ exports build with the compilers that users have, and dispatch as dispatch.json says."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cuda_here import needs_nvrtc
from tests.deliver.exports.silu import artefact, result, written
from tunesmith.backends.cuda import toolkit
from tunesmith.deliver.exports.artefact import Artefact, one_artefact
from tunesmith.deliver.exports.cuda_cpp import CPP, CUBIN
from tunesmith.errors import BadInput

GXX, NVCC = shutil.which("g++"), shutil.which("nvcc")
needs_gxx = pytest.mark.skipif(GXX is None or NVCC is None, reason="needs g++ and CUDA's headers")
pytestmark = [needs_nvrtc]

# A driver that launches nothing: it says how many blocks it was asked for, and for which kernel.
DRIVER = """
#include "silu_and_mul.h"
#include <cstdio>
#include <cstring>
static int capability = 90;
static char last[256];
extern "C" {
CUresult cuCtxGetDevice(CUdevice* device) { *device = 0; return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute what, CUdevice) {
    const bool is_major = what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    *value = is_major ? capability / 10 : capability % 10;
    return CUDA_SUCCESS;
}
CUresult cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice) { return CUDA_SUCCESS; }
CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
    *library = (CUlibrary)image;
    return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char*) {
    *kernel = (CUkernel)library;
    return CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode*) { return CUDA_SUCCESS; }
CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction kernel, void** args, void**) {
    std::snprintf(last, sizeof last, "%p %u %d", (void*)kernel, config->gridDimX, *(int*)args[2]);
    return CUDA_SUCCESS;
}
}
"""


def test_every_winner_is_in_both() -> None:
    own = artefact(result(90))
    for target in (CPP, CUBIN):
        made = target.export(own)
        assert made.left_out == ()
        assert b"Winners delivered: 2 of 2." in made.files["README.md"]


@needs_gxx
def test_embedded_code_builds_with_any_compiler_and_without_a_warning(tmp_path: Path) -> None:
    written(CUBIN.export(artefact(result(90))).files, tmp_path)
    for standard in ("c++14", "c++20"):
        compiled(tmp_path, standard, "-c", "silu_and_mul.cpp", "-o", "/dev/null")
    compiled(tmp_path, "c++14", "-c", "example.cpp", "-o", "/dev/null")


@needs_gxx
def test_it_dispatches_by_size_alignment_overlap_and_device(tmp_path: Path) -> None:
    written(CUBIN.export(artefact(result(90))).files, tmp_path)
    program = """
#define CALL(out, in, tokens, d) \\
    silu_and_mul_tuned::launch((__half*)(out), (const __half*)(in), tokens, d, nullptr); std::puts(last)
int main(int count, char**) {
    if (count > 1) capability = 80;
    CALL(0x10000000, 0x20000000, 16, 64);      // its own
    CALL(0x10000000, 0x20000000, 17, 64);      // the general one
    CALL(0x10000000, 0x20000000, 17, 63);      // the original: its condition does not hold
    CALL(0x10000002, 0x20000000, 17, 64);      // misaligned
    CALL(0x20000040, 0x20000000, 17, 64);      // overlapping
    CALL(0x10000000, 0x20000000, 65537, 8);    // outside the contract
    return 0;
}
"""
    (tmp_path / "main.cpp").write_text(DRIVER + program)
    compiled(tmp_path, "c++14", "main.cpp", "silu_and_mul.cpp", "-o", "program", "-ldl")
    lines = run(tmp_path).splitlines()
    kernels = [line.split()[0] for line in lines]
    own, general, original = kernels[0], kernels[1], kernels[2]
    assert len({own, general, original}) == 3
    assert kernels[3:5] == [original, original]
    assert [line.split()[1] for line in lines[:2]] == ["16", "17"]
    elsewhere = run(tmp_path, "another device").splitlines()
    assert len({line.split()[0] for line in elsewhere}) == 1  # the original, everywhere


@needs_gxx
@pytest.mark.long
def test_the_dispatch_takes_less_than_a_microsecond(tmp_path: Path) -> None:
    written(CUBIN.export(artefact(result(90))).files, tmp_path)
    program = DRIVER.replace(
        'std::snprintf(last, sizeof last, "%p %u %d", (void*)kernel, config->gridDimX,', ""
    )
    program = program.replace(
        " *(int*)args[2]);", "last[0] = (char)(config->gridDimX + *(int*)args[2] + !kernel);"
    )
    (tmp_path / "main.cpp").write_text(
        program
        + """
#include <chrono>
int main() {
    const int calls = 200000;
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; ++i)
            silu_and_mul_tuned::launch((__half*)0x10000000, (const __half*)0x20000000, 17 + i % 9, 64, 0);
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
        best = took.count() / calls < best ? took.count() / calls : best;
    }
    std::printf("%f\\n", best);
}
"""
    )
    compiled(tmp_path, "c++14", "-O2", "main.cpp", "silu_and_mul.cpp", "-o", "program", "-ldl")
    assert float(run(tmp_path)) < 1000  # nanoseconds, with everything but the driver


@pytest.mark.slow
@needs_gxx
def test_sources_build_each_with_its_own_flags(tmp_path: Path) -> None:
    own = result(90)
    entries = list(own.dispatch.entries)
    entries[0] = replace(entries[0], flags=("--maxrregcount=32", "-use_fast_math"))
    changed = replace(own, dispatch=replace(own.dispatch, entries=tuple(entries)))
    made = CPP.export(artefact(changed))
    written(made.files, tmp_path)
    cmake = made.files["CMakeLists.txt"].decode()
    assert 'kernels_v0.cu PROPERTIES COMPILE_OPTIONS "--maxrregcount=32;-use_fast_math"' in cmake
    assert "kernels_v1.cu PROPERTIES" not in cmake
    command = [str(NVCC), "-arch=sm_90", "-std=c++17", "-c", "kernels_v0.cu", "-o", "/dev/null"]
    got = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False)
    assert got.returncode == 0, got.stderr
    compiled(tmp_path, "c++17", "-c", "silu_and_mul.cpp", "-o", "/dev/null")


def test_a_flag_that_cmake_would_read_otherwise_is_left_out_with_the_reason() -> None:
    own = result(90)
    entries = list(own.dispatch.entries)
    entries[0] = replace(entries[0], flags=('-DX=";$(rm)"',))
    made = CPP.export(artefact(replace(own, dispatch=replace(own.dispatch, entries=tuple(entries)))))
    assert len(made.left_out) == 1
    assert "cannot be written for CMake" in made.left_out[0]
    assert b"$(rm)" not in made.files["CMakeLists.txt"]


def test_two_devices_are_one_artefact() -> None:
    both = one_artefact((result(90), result(80, device="another GPU")))
    source = CUBIN.export(both).files["silu_and_mul.cpp"]
    assert b"architecture(device) == 90" in source
    assert b"architecture(device) == 80" in source


def test_a_run_without_machine_code_has_sources_alone() -> None:
    with pytest.raises(BadInput, match="no machine code of a winner"):
        CUBIN.export(artefact(result(90, binaries=False)))
    assert CPP.export(artefact(result(90, binaries=False))).left_out == ()


def test_different_operators_or_one_device_twice_are_refused() -> None:
    own = result(90, binaries=False)
    other = replace(own, dispatch=replace(own.dispatch, problem="another"))
    with pytest.raises(BadInput, match="is not the same operator"):
        one_artefact((own, other))
    with pytest.raises(BadInput, match="two runs are for sm_90"):
        one_artefact((own, own))


def test_a_hostile_name_stays_in_its_place() -> None:
    own = result(90, binaries=False)
    evil = replace(own.dispatch, problem='a"; }\n#include "/etc/passwd"', device="x\n#error y")
    made = CPP.export(Artefact((replace(own, dispatch=evil),)))
    for name, data in made.files.items():
        assert "/" not in name or name.startswith("verified/")
        assert b'\n#include "/etc' not in data
        assert b"\n#error y" not in data


def compiled(folder: Path, standard: str, *arguments: str) -> None:
    include = [f"-I{path}" for path in toolkit.header_folders(None, (13, 0))]
    include += [f"-I{Path(str(NVCC)).resolve().parents[1] / 'include'}"]
    command = [str(GXX), f"-std={standard}", "-Wall", "-Wextra", "-Werror", *include, *arguments]
    own = {name: value for name, value in os.environ.items() if name != "LIBRARY_PATH"}
    got = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=110, check=False, env=own
    )
    assert got.returncode == 0, got.stderr[-3000:]


def run(folder: Path, *arguments: str) -> str:
    command = ["./program", *arguments]
    got = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30, check=True)
    return got.stdout
