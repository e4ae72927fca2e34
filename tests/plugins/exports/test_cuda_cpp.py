"""C++ exports build with the compilers that users have, and dispatch as dispatch.json says."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.deliver.programs import read_program
from tests.cuda_here import needs_nvrtc
from tests.plugins.exports.programs import ran
from tests.plugins.exports.silu import artefact, result, without_compiler, written
from tunesmith.backends.cuda import toolkit
from tunesmith.backends.cuda.compile import COMPILERS
from tunesmith.backends.port import Unsupported
from tunesmith.base.errors import BadInput
from tunesmith.deliver.artefact import Artefact, DeviceResult, Target, one_artefact
from tunesmith.deliver.cuda.original_ptx import original_ptx
from tunesmith.plugins.exports.cuda_cpp import CPP, CUBIN

GXX, NVCC, CMAKE = shutil.which("g++"), shutil.which("nvcc"), shutil.which("cmake")
needs_gxx = pytest.mark.skipif(GXX is None or NVCC is None, reason="needs g++ and CUDA's headers")

# A driver that launches nothing: it says how many blocks it was asked for, and for which kernel.
DRIVER = read_program("dispatch-driver.cpp")


def made_up_by_gxx(function: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.usefixtures("made_up")(needs_gxx(function))


@pytest.fixture
def made_up() -> Iterator[None]:
    """Nothing of the kernels is run."""
    with without_compiler():
        yield


@made_up_by_gxx
def test_embedded_code_builds_with_any_compiler_and_without_a_warning(tmp_path: Path) -> None:
    written(CUBIN.export(artefact(result(90))).files, tmp_path)
    for standard in ("c++14", "c++20"):
        compiled(tmp_path, standard, "-c", "silu_and_mul.cpp", "-o", "/dev/null")
    compiled(tmp_path, "c++14", "-c", "example.cpp", "-o", "/dev/null")


@made_up_by_gxx
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("target", [CPP, CUBIN])
def test_a_program_in_c_calls_it_by_the_same_header(target: Target, tmp_path: Path) -> None:
    written(target.export(artefact(result(90))).files, tmp_path)
    stream = "cudaStream_t" if target is CPP else "CUstream"
    (tmp_path / "main.c").write_text(
        f"""
#include "silu_and_mul.h"
int run(void* out, const void* in, {stream} stream);
int run(void* out, const void* in, {stream} stream) {{
    return silu_and_mul_prepare() ? (int)silu_and_mul_launch(out, in, 16, 64, stream) : -1;
}}
"""
    )
    compiled(tmp_path, "c99", "-c", "main.c", "-o", "/dev/null", compiler="gcc")


@made_up_by_gxx
def test_it_dispatches_by_size_alignment_overlap_and_device(tmp_path: Path) -> None:
    written(CUBIN.export(artefact(result(90))).files, tmp_path)
    (tmp_path / "main.cpp").write_text(DRIVER + read_program("dispatch-calls.cpp"))
    compiled(tmp_path, "c++14", "main.cpp", "silu_and_mul.cpp", "-o", "program", "-ldl")
    lines = run(tmp_path).splitlines()
    kernels = [line.split()[0] for line in lines]
    own, general, original = kernels[0], kernels[1], kernels[2]
    assert len({own, general, original}) == 3
    assert kernels[3:5] == [original, original]
    assert [line.split()[1] for line in lines[:2]] == ["16", "17"]
    elsewhere = run(tmp_path, "another device").splitlines()
    assert len({line.split()[0] for line in elsewhere}) == 1  # the original, everywhere
    assert {line.split()[0] for line in elsewhere}.isdisjoint(kernels)


@made_up_by_gxx
@pytest.mark.long
def test_the_dispatch_takes_less_than_a_microsecond(tmp_path: Path) -> None:
    written(CUBIN.export(artefact(result(90))).files, tmp_path)
    program = DRIVER.replace(
        'std::snprintf(last, sizeof last, "%p %u %d", (void*)kernel, config->gridDimX,', ""
    )
    program = program.replace(
        " *(int*)args[2]);", "last[0] = (char)(config->gridDimX + *(int*)args[2] + !kernel);"
    )
    (tmp_path / "main.cpp").write_text(program + read_program("dispatch-timing.cpp"))
    compiled(tmp_path, "c++14", "-O2", "main.cpp", "silu_and_mul.cpp", "-o", "program", "-ldl")
    assert float(run(tmp_path)) < 1000  # nanoseconds, with everything but the driver


@needs_nvrtc
@pytest.mark.slow
@needs_gxx
@pytest.mark.long
def test_sources_build_each_with_its_own_flags(tmp_path: Path) -> None:
    own = result(90)
    entries = list(own.dispatch.entries)
    entries[0] = replace(entries[0], flags=("--maxrregcount=32", "-use_fast_math"))
    changed = replace(own, dispatch=replace(own.dispatch, entries=tuple(entries)))
    written(CPP.export(artefact(changed)).files, tmp_path)
    ran([NVCC, "-arch=sm_90", "-std=c++17", "-c", "kernels_v0.cu", "-o", "/dev/null"], tmp_path)
    compiled(tmp_path, "c++17", "-c", "silu_and_mul.cpp", "-o", "/dev/null")


def nvcc_cubin(text: bytes, folder: Path, *flags: str) -> bytes:
    """What nvcc makes of a source, all by itself."""
    instance = (
        b"\ntemplate __global__ void silu_and_mul<__half>(__half*, const __half*, int, int, long long, "
    )
    (folder / "own.cu").write_bytes(text + instance + b"long long);\n")
    ran([NVCC, "-cubin", "-arch=sm_90", *flags, "own.cu", "-o", "own.cubin"], folder)
    return (folder / "own.cubin").read_bytes()


@needs_nvrtc
@pytest.mark.long
@needs_gxx
@pytest.mark.skipif(CMAKE is None, reason="needs cmake")
@pytest.mark.timeout(400)
def test_cmake_builds_it_for_the_runs_device_and_says_which_code_differs(tmp_path: Path) -> None:
    own = result(90)
    first, *others = own.dispatch.entries
    first = replace(first, flags=("--maxrregcount=24", "-arch=sm_90"))
    asserting = b"#include <cassert>\n" + own.files[first.file].replace(
        b"T gate =", b"assert(d > 0); T gate ="
    )
    files = {
        **own.files,
        first.file: asserting,
        f"{first.file}.cubin": nvcc_cubin(asserting, tmp_path, "--maxrregcount=24"),
        "silu-100.cu.cubin": nvcc_cubin(own.files["silu-100.cu"], tmp_path, "-use_fast_math"),
        "original.cu.cubin": nvcc_cubin(own.files["original.cu"], tmp_path),
    }
    dispatch = replace(own.dispatch, entries=(first, *others))
    export = written(CPP.export(artefact(replace(own, dispatch=dispatch, files=files))).files, tmp_path / "x")

    def cmake(*words: str) -> str:
        return ran([CMAKE, *words], export, 300).stdout

    cmake("-B", "build", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    commands = (export / "build" / "compile_commands.json").read_text()
    assert commands.count("arch=compute_90,code=[compute_90,sm_90]") == 4  # three kernels and the example
    assert commands.count("-O3 -DNDEBUG") == 5  # and the host's part
    said = cmake("--build", "build", "-j2").splitlines()
    assert "the same machine code as was verified: kernels_v0.cu" in said
    assert "the same machine code as was verified: kernels_original.cu" in said
    assert [line[:62] for line in said if "OTHER" in line] == [
        "warning: OTHER machine code than was verified: kernels_v1.cu. "
    ]
    cmake("--build", "build", "--target", "example")
    assert (export / "build" / "example").exists()
    again = cmake("--build", "build", "--target", "example")
    assert "Building" not in again
    assert "Linking" not in again


@pytest.mark.usefixtures("made_up")
def test_a_flag_that_cmake_would_read_otherwise_is_left_out_with_the_reason() -> None:
    own = result(90)
    entries = list(own.dispatch.entries)
    entries[0] = replace(entries[0], flags=('-DX=";$(rm)"',))
    made = CPP.export(artefact(replace(own, dispatch=replace(own.dispatch, entries=tuple(entries)))))
    assert len(made.left_out) == 1
    assert "cannot be written for CMake" in made.left_out[0]
    assert b"$(rm)" not in made.files["CMakeLists.txt"]


@needs_nvrtc
@needs_gxx
@pytest.mark.long
def test_two_devices_are_one_artefact_and_others_get_the_ptx_for_them(tmp_path: Path) -> None:
    """Whatever the device: who serves it, and with whose original."""
    older = result(80, device="another GPU")
    asking = SOURCE_THAT_ASKS + older.files["original.cu"].decode()
    both = []
    for made in (older, result(90)):
        *tuned, original = made.dispatch.entries
        entries = (*tuned, replace(original, flags=("--maxrregcount=40",)))
        files = {**made.files, "original.cu": asking.encode()}
        both.append(replace(made, dispatch=replace(made.dispatch, entries=entries), files=files))
    written(CUBIN.export(one_artefact(tuple(both))).files, tmp_path)
    program = read_program("dispatch-anywhere.cpp")
    (tmp_path / "main.cpp").write_text(f"#define SHOW_LOADS\n{DRIVER}{program}")
    compiled(tmp_path, "c++14", "main.cpp", "silu_and_mul.cpp", "-o", "program", "-ldl")
    symbol = "_Z12silu_and_mulI6__halfEvPT_PKS1_iixx"
    cubins = [3 * [f"cubin {int.from_bytes(r.files['original.cu.cubin'][48:52], 'little')}"] for r in both]
    ptx = {75: "sm_75", 86: "sm_80", 89: "sm_80", 100: "sm_90"}
    for capability, own in (
        *((other, [f"PTX of {target} by 40 registers"]) for other, target in ptx.items()),
        (80, cubins[0]),
        (90, cubins[1]),
    ):
        got = ran(["./program", capability], tmp_path)
        assert got.stdout.splitlines() == [*(line for each in own for line in (each, symbol)), "ready"]
        assert got.stderr.count("its original serves") == (capability in ptx)


@needs_nvrtc
@needs_gxx
@pytest.mark.long
def test_only_what_may_serve_on_the_device_is_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without PTX the first run's original is all that other devices could get, and they alone try it."""
    program = read_program("dispatch-prepared.cpp")

    def nothing_here(*_: object) -> None:
        raise Unsupported("not here")

    def prepared(own: DeviceResult, capability: int) -> list[str]:
        both = one_artefact((result(80, device="another GPU"), own))
        written(CUBIN.export(both).files, tmp_path)
        compiled(tmp_path, "c++14", "main.cpp", "silu_and_mul.cpp", "-o", "program", "-ldl")
        got = ran(["./program", capability], tmp_path)
        return [line.partition(" ")[0] for line in got.stdout.splitlines() if not line.startswith("_Z")]

    (tmp_path / "main.cpp").write_text(f"#define SHOW_LOADS\n{DRIVER}{program}")
    whole = result(90)
    *tuned, original = whole.dispatch.entries
    entries = (*tuned, replace(original, binary=None))
    part = replace(whole, dispatch=replace(whole.dispatch, entries=entries))
    assert prepared(part, 90) == ["cubin", "cubin", "PTX", "ready"]
    monkeypatch.setitem(COMPILERS, "nvrtc", nothing_here)
    assert prepared(whole, 90) == ["cubin", "cubin", "cubin", "ready"]
    # The original of sm_80, which is refused.
    assert prepared(whole, 75) == ["cubin", "not"]


SOURCE_THAT_ASKS = read_program("asks-architecture.cu")


@needs_nvrtc
def test_ptx_is_what_a_driver_of_cuda_12_8_takes() -> None:
    own = result(90)
    found, why = original_ptx(own, [own.dispatch.original])
    assert ([ptx.capability for ptx in found], why) == ([75], "")  # the source asks for nothing
    assert b"\n.version 8.7\n.target sm_75\n" in found[0].text
    assert f".entry {found[0].symbols['silu_and_mul<__half>']}(".encode() in found[0].text
    broken = replace(own, files={**own.files, "original.cu": b"not a kernel"})
    capped = replace(own.dispatch.original, flags=("-maxrregcount", "40"))
    assert [ptx.registers for ptx in (*found, *original_ptx(own, [capped])[0])] == [0, 40]
    words = "original.cu(1): error: expected a declaration"
    assert original_ptx(broken, [own.dispatch.original]) == ((), words)


@pytest.mark.usefixtures("made_up")
def test_a_run_without_machine_code_has_sources_alone() -> None:
    with pytest.raises(BadInput, match="no machine code of a winner"):
        CUBIN.export(artefact(result(90, binaries=False)))
    assert CPP.export(artefact(result(90, binaries=False))).left_out == ()


@pytest.mark.usefixtures("made_up")
def test_different_operators_or_one_device_twice_are_refused() -> None:
    own = result(90, binaries=False)
    other = replace(own, dispatch=replace(own.dispatch, problem="another"))
    with pytest.raises(BadInput, match="is not the same operator"):
        one_artefact((own, other))
    with pytest.raises(BadInput, match="two runs are for sm_90"):
        one_artefact((own, own))


@pytest.mark.usefixtures("made_up")
def test_a_hostile_name_stays_in_its_place() -> None:
    own = result(90, binaries=False)
    evil = replace(own.dispatch, problem='a"; }\n#include "/etc/passwd"', device="x\n#error y")
    made = CPP.export(Artefact((replace(own, dispatch=evil),)))
    for name, data in made.files.items():
        assert "/" not in name or name.startswith("verified/")
        assert b'\n#include "/etc' not in data
        assert b"\n#error y" not in data


def compiled(folder: Path, standard: str, *arguments: str, compiler: str = "g++") -> None:
    include = [f"-I{path}" for path in toolkit.header_folders(None, (13, 0))]
    include += [f"-I{Path(str(NVCC)).resolve().parents[1] / 'include'}"]
    ran([compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", *include, *arguments], folder)


def run(folder: Path, *arguments: str) -> str:
    return ran(["./program", *arguments], folder).stdout
