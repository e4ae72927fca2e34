"""launch.cu: it compiles alone, whatever the sources have in common, and serves as dispatch.json says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.deliver.cuda_kernels import (
    ARGUMENTS,
    HEAD,
    HEADERS,
    KERNEL,
    LAUNCH,
    PROGRAM,
    SCALARS,
    SILU,
    SILU_TEMPLATE,
    SIZES,
    TEMPLATE,
    TWO,
    WITH_HEADERS,
    an_array,
)
from tests.samples import a_device
from tunesmith.deliver.c_code import C_TYPES
from tunesmith.deliver.tuned import tuned_files
from tunesmith.problem.device import Device
from tunesmith.problem.problem import TYPES, Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import Template
from tunesmith.problem.template_file import parse_template
from tunesmith.run.delivery import delivery
from tunesmith.run.outcome import Interval
from tunesmith.run.racing import Pick, Winners
from tunesmith.space.params import Config

NVCC = shutil.which("nvcc")
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="needs nvcc")
needs_gpu = pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="needs a GPU")


def a_problem(
    kernel: str, arguments: str, launch: str, entry: str = "scale", name: str = "scale", sizes: str = SIZES
) -> Problem:
    head = f'name = "{name}"\n[kernel]\nsource = "kernel.cu"\nentry = "{entry}"\n'
    return parse_problem(head + arguments + launch + sizes, path="problem.toml", read=lambda _: kernel)


def tuned(problem: Problem, template: Template, device: Device, choice: Winners) -> dict[str, bytes]:
    made = delivery(problem, lambda _config: template, device, choice)
    return tuned_files(problem, device, made, lambda digest: b"")


def launched(
    problem: Problem, text: str, general: Config | None, small: Config | None, **limits: Any
) -> tuple[str, dict[str, bytes]]:
    template = parse_template(text, path="template.cu", problem=problem)
    gain = Interval(2.0, 1.9, 2.1)
    picks = (Pick(problem.workloads[0].name, small, gain), Pick(problem.workloads[1].name, general, gain))
    device = a_device(**{"capability": 90, **limits})
    files = tuned(problem, template, device, Winners(general, picks))
    return files["launch.cu"].decode(), files


def compiled(folder: Path, text: str, *flags: str) -> Path:
    source, out = folder / "launch.cu", folder / "launch.o"
    source.write_text(text)
    command = [str(NVCC), "-arch=sm_90", *flags, "-c", str(source), "-o", str(out)]
    got = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert got.returncode == 0, got.stderr
    return out


def block(value: int, vec: int = 1) -> Config:
    return Config.of({"BLOCK": value, "VEC": vec})


# -- what the sources have in common ----------------------------------------------------------------------


def scales(name: str = "scale", general: Config | None = None, small: Config | None = None) -> str:
    problem = a_problem(KERNEL, ARGUMENTS, LAUNCH, name=name)
    return launched(problem, TEMPLATE, general or block(128, 4), small or block(64))[0]


@pytest.mark.slow
@needs_nvcc
@pytest.mark.long
def test_sources_with_the_same_names_and_macros_share_one_file(tmp_path: Path) -> None:
    compiled(tmp_path, scales(), "-Werror", "all-warnings", "-std=c++17")


@pytest.mark.gpu
@needs_gpu
@pytest.mark.slow
@needs_nvcc
def test_it_serves_as_the_dispatch_says(tmp_path: Path) -> None:
    (tmp_path / "program.cu").write_text(scales("2-scale") + PROGRAM)
    program = tmp_path / "program"
    environment = {name: value for name, value in os.environ.items() if name != "LIBRARY_PATH"}
    command = [str(NVCC), "-arch=native", str(tmp_path / "program.cu"), "-o", str(program)]
    subprocess.run(command, check=True, timeout=110, env=environment)
    got = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    if got.returncode == 77:
        pytest.skip("needs a GPU")
    assert (got.returncode, got.stdout) == (0, "")


# -- entries ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_nvcc
@pytest.mark.long
def test_entries_may_be_templates_over_types_macros_and_sizes(tmp_path: Path) -> None:
    arguments = an_array("out", "float16", "output") + an_array("x", "float16", "input") + SCALARS
    sizes = SIZES.replace("int = { min = 8, max = 4096, multiple_of = 8 }", "int = { one_of = [256, 2048] }")
    problem = a_problem(SILU, arguments, LAUNCH, "act::silu<__half, {int}>", sizes=sizes)
    text, _ = launched(problem, SILU_TEMPLATE, block(128, 4), None)
    assert "&act::silu<Pair<Half, 4>, THREADS>;" in text
    assert text.count("(const void*)&act::silu<__half, 256>;") == 1
    assert text.count("namespace original {") == 1  # one source, launched in two ways
    assert "// Left out: original.cu, act::silu<__half, {int}> is another kernel for each int\n" in text
    assert b"silu" in compiled(tmp_path, text).read_bytes()


# -- launches ---------------------------------------------------------------------------------------------


def two_launches(**limits: Any) -> str:
    arguments = an_array("new", "float32", "inout") + an_array("x", "float32", "input") + SCALARS
    alias = '[[argument]]\nname = "again"\ntype = "float32*"\nalias = "new"\n'
    kernel = "__global__ void scale(float* o, const float* x, int rows, long long d, float* again) {}\n"
    return launched(a_problem(kernel, arguments + alias, LAUNCH), TWO, block(128), block(64), **limits)[0]


@pytest.mark.slow
@needs_nvcc
@pytest.mark.long
def test_several_launches_with_workspace_shared_memory_and_attributes(tmp_path: Path) -> None:
    text = two_launches(sms=16)
    compiled(tmp_path, text)
    taken = "float* arg_new, const float* arg_x, long long size_rows, long long size_int, float* work_part"
    assert f'extern "C" cudaError_t scale_launch({taken}, cudaStream_t stream) {{' in text
    assert "(void*)&arg_new, (void*)&work_part, (void*)&value_d, (void*)&arg_x}" in text
    assert "dim3(within(smaller(size_rows, 16LL), 1LL, 2147483647LL, undefined))" in text
    assert (
        "const int value_rows = static_cast<int>(within(size_rows, -2147483648LL, 2147483647LL, undefined));"
        in text
    )
    assert "you fill it with 0.5 before each call for BLOCK=128" in text
    assert "const bool launched_1 = (" in text
    assert "    if (launched_1) {\n    const cudaError_t error_1 = start(*kernel_1, shape_1," in text
    assert "    }\n    return cudaSuccess;\n" in text


FIXED = "".join(
    f'[[argument]]\nname = "{name}"\ntype = "{kind}"\nvalue = {value}\n'
    for name, kind, value in [
        ("eps", "float32", "1e-6"),
        ("group", "int32", "-128"),
        ("most", "float8_e4m3", "448.0"),
        ("far", "float64", "-1e300"),
        ("twice", "uint8", '"2 * 64"'),
    ]
)
FIXED_KERNEL = """\
#include <cuda_fp8.h>
__global__ void scale(float* out, float eps, int group, __nv_fp8_e4m3 most, double far,
                      unsigned char twice) {}
"""
FIXED_TEMPLATE = f'{HEAD}// [launch]\n// grid = [1]\n// block = ["BLOCK"]\n// ///\n{FIXED_KERNEL}' + (
    "#ifndef BLOCK\n#define BLOCK 64\n#endif\n#ifndef VEC\n#define VEC 1\n#endif\nint use[] = {BLOCK, VEC};\n"
)


def fixed() -> str:
    problem = a_problem(FIXED_KERNEL, an_array("out", "float32", "output") + FIXED, LAUNCH)
    return launched(problem, FIXED_TEMPLATE, block(128), block(64))[0]


def test_the_tuned_serve_only_the_scalars_they_were_tuned_with() -> None:
    text = fixed()
    narrow = "static_cast<float>(static_cast<__nv_fp8_e4m3>"
    assert (
        "        return arg_eps == static_cast<float>(1e-06)\n"
        "        && arg_group == static_cast<int>((-128LL))\n"
        f"        && {narrow}(arg_most)) == {narrow}(static_cast<float>(448.0)))\n"
        "        && arg_far == static_cast<double>(-1e+300)\n"
        "        && arg_twice == static_cast<unsigned char>(128LL)\n"
        "        && is_aligned(arg_out, 4)\n"
    ) in text
    assert text.count("    if (as_tuned && architecture(device) == 90) {") == 1
    assert "\n    return run_2(" in text  # the original takes them all
    assert (
        "// A tuned line serves only where every scalar has the value said above, arrays are aligned" in text
    )
    assert "&& !overlap(arg_new, " in two_launches()  # which has no such scalar
    problem = a_problem(FIXED_KERNEL, an_array("out", "float32", "output") + FIXED, LAUNCH)
    assert "as_tuned" not in launched(problem, FIXED_TEMPLATE, None, None)[0]


@pytest.mark.slow
@needs_nvcc
@pytest.mark.long
def test_scalars_of_every_kind_compare_on_the_host(tmp_path: Path) -> None:
    compiled(tmp_path, fixed(), "-Werror", "all-warnings")


# -- the user's headers -----------------------------------------------------------------------------------


@pytest.mark.slow
@needs_nvcc
@pytest.mark.long
def test_the_users_headers_are_written_into_every_variant(tmp_path: Path) -> None:
    problem = a_problem(WITH_HEADERS, ARGUMENTS, LAUNCH)
    problem = replace(problem, kernel=replace(problem.kernel, headers=HEADERS))
    template = TEMPLATE.replace("#define SQUARE", '#define KIND BLOCK\n#include "math/all.h"\n#define SQUARE')
    template = template.replace("__device__ Part twice", "__device__ Part made").replace(
        "twice(x[i + k]).value", "made(x[i + k]).value + twice(1)"
    ).replace("twice(0)", "made(0)")  # fmt: skip
    text, files = launched(problem, template, block(128, 4), block(64))
    assert text.count("return TIMES * x;") == 4  # again where a condition might have kept it out
    assert '#include "math' not in text.split("// v0: ")[1]
    out = compiled(tmp_path, text)
    assert out.stat().st_size > 0
    (tmp_path / "launch.cu").write_text(text.replace("ITEM(n) * n", "ITEM(n) * wrong"))
    command = [str(NVCC), "-arch=sm_90", "-c", str(tmp_path / "launch.cu"), "-o", "/dev/null"]
    got = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert "list.inc(1): error" in got.stderr  # the compiler speaks in the user's files and lines
    assert '#line 14 "original.cu"' in text
    assert files["original.cu"] == WITH_HEADERS.encode()


@pytest.mark.slow
@needs_nvcc
def test_every_source_compiles_with_the_headers_beside_it(tmp_path: Path) -> None:
    problem = a_problem(WITH_HEADERS, ARGUMENTS, LAUNCH)
    problem = replace(problem, kernel=replace(problem.kernel, headers=HEADERS))
    files = launched(problem, TEMPLATE, None, None)[1]
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    command = [str(NVCC), "-arch=sm_90", "-I", "include", "-cubin", "original.cu", "-o", "original.cubin"]
    got = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False)
    assert got.returncode == 0, got.stderr


def test_headers_that_include_each_other_without_end_are_left_out() -> None:
    headers = tuple((f"{n}.h", f'#if A\n#include "{n + 1}.h"\n#endif\n#if B\n#include "{n + 1}.h"\n#endif\n')
                    for n in range(40))  # fmt: skip
    problem = a_problem('#include "0.h"\n' + KERNEL, ARGUMENTS, LAUNCH)
    problem = replace(problem, kernel=replace(problem.kernel, headers=headers))
    text, _ = launched(problem, TEMPLATE, block(128, 4), block(64))
    assert "// Left out: original.cu, its headers include each other too often\n" in text
    assert "    return cudaErrorInvalidValue;\n}" in text


def test_a_source_that_adds_to_a_namespace_of_the_toolkit_is_left_out() -> None:
    problem = a_problem("namespace std { struct Mine {}; }\n" + KERNEL, ARGUMENTS, LAUNCH)
    text, _ = launched(problem, TEMPLATE, block(128, 4), block(64))
    assert (
        "// Left out: original.cu, it adds to namespace std, which it could not from within another\n" in text
    )


def test_a_source_that_calls_its_own_names_global_is_left_out() -> None:
    kernel = KERNEL.replace("] = twice(", "] = ::twice(")
    text, _ = launched(a_problem(kernel, ARGUMENTS, LAUNCH), TEMPLATE, block(128, 4), block(64))
    why = "it names its own ::twice as global, which within a namespace it is not"
    assert f"// Left out: original.cu, {why}\n" in text
    assert "    return cudaErrorInvalidValue;\n}" in text


# -- what is left out, and hostile texts ------------------------------------------------------------------


def test_a_launch_that_only_a_build_tells_is_left_out() -> None:
    text = TEMPLATE.replace("BLOCK * VEC)", "BLOCK * VEC * max(1, resources.blocks_per_sm))")
    problem = a_problem(KERNEL, ARGUMENTS, LAUNCH)
    got, files = launched(problem, text, block(128, 4), block(64))
    left_out = json.loads(files["dispatch.json"])["left_out"]
    assert len(left_out) == 2
    assert "its launch asks for resources.blocks_per_sm, which nobody knows of this build" in left_out[0]
    assert "namespace v0" not in got
    assert "    return run_0(" in got  # the original, without a condition
    text = TWO.replace("min(rows, device.sms)", "resources.blocks_per_sm")
    got, _ = launched(problem, text.replace("again", "x"), block(128), block(64))
    assert "work_part" not in got  # which only what is left out would need


def test_other_flags_need_another_file() -> None:
    text = TEMPLATE.replace("// [launch]", '// [build]\n// flags = ["-DX={VEC} X"]\n// [launch]')
    got, _ = launched(a_problem(KERNEL, ARGUMENTS, LAUNCH), text, block(128, 4), block(64))
    assert (
        "// Left out: scale-small.cu, BLOCK=64, VEC=1, it is built with other flags, '-DX=1 X': compile"
        in got
    )


def test_the_command_is_nvccs_word_for_word() -> None:
    problem = a_problem(KERNEL, ARGUMENTS, LAUNCH)
    flags = (
        "-gencode arch=compute_90,code=sm_90",
        "-default-device",
        "--device-int128",
        "-Xptxas '-O2 x'",
        "-w'",
    )
    text, _ = launched(replace(problem, kernel=replace(problem.kernel, flags=flags)), TEMPLATE, None, None)
    words = "-gencode arch=compute_90,code=sm_90 --expt-relaxed-constexpr -Xptxas '-O2 x' "
    assert f"//   nvcc -O3 {words}" in text
    both = ("--expt-relaxed-constexpr", "--device-as-default-execution-space")
    text, _ = launched(replace(problem, kernel=replace(problem.kernel, flags=both)), TEMPLATE, None, None)
    assert "-arch=sm_90 --expt-relaxed-constexpr -c launch.cu" in text


def test_names_cannot_end_a_comment() -> None:
    problem = replace(a_problem(KERNEL, ARGUMENTS, LAUNCH), name="a\nint b; \\")
    template = parse_template(TEMPLATE, path="template.cu", problem=problem)
    device = replace(a_device(capability=90), name="GPU\r#error no \\ ")
    text = tuned(problem, template, device, Winners(None, ()))["launch.cu"].decode()
    assert "\nint b" not in text
    assert "\n#error" not in text
    assert not any(line.startswith("//") and line.endswith("\\") for line in text.splitlines())
    assert "nvcc -O3 -arch=sm_90 -c launch.cu" in text
    assert 'extern "C" cudaError_t a_int_b____launch(' in text


def test_only_cuda_gets_it_and_every_type_has_a_name() -> None:
    problem = a_problem(KERNEL, ARGUMENTS, LAUNCH)
    problem = replace(problem, kernel=replace(problem.kernel, language="hip"))
    template = parse_template(TEMPLATE, path="template.cu", problem=problem)
    assert set(tuned(problem, template, a_device(), Winners(None, ()))) == {
        "original.cu",
        "dispatch.json",
    }
    assert set(TYPES) <= set(C_TYPES)
