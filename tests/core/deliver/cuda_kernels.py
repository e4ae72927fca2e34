"""CUDA sources that are hard to put into one file: same names and macros, own headers, several kernels."""

from __future__ import annotations

from typing import Any

from tests.core.deliver.programs import read_program
from tests.samples import a_device
from tunesmith.deliver.tuned import tuned_files
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import Template
from tunesmith.problem.template_file import parse_template
from tunesmith.run.delivery import assemble_delivery
from tunesmith.run.outcome import Interval
from tunesmith.run.race import Pick, Winners
from tunesmith.space.configset import Config

SIZES = read_program("sizes.toml")
SCALARS = read_program("scalars.toml")


def an_array(name: str, kind: str, role: str, more: str = "") -> str:
    return (
        f'[[argument]]\nname = "{name}"\ntype = "{kind}*"\nrole = "{role}"\nshape = ["rows", "int"]\n{more}\n'
    )


ARGUMENTS = (
    an_array("out", "float32", "output")
    + an_array("x", "float32", "input", "align = 16")
    + '[[argument]]\nname = "class"\ntype = "float16"\nvalue = 0.5\n'
    + SCALARS
)
KERNEL = read_program("scale.cu")
LAUNCH = '[launch]\ngrid = ["rows"]\nblock = ["64"]\n'
HEAD = """\
// /// tunesmith
// [params]
// BLOCK = [64, 128, 256]
// VEC = [1, 2, 4]
// [default]
// BLOCK = 64
// VEC = 1
// [require]
// whole = "int % (8 * VEC) == 0"
"""
TEMPLATE = read_program("scale-template.cu")

PROGRAM = read_program("scale-program.cu")

SILU = read_program("silu.cu")
SILU_TEMPLATE = read_program("silu-template.cu")

TWO = read_program("two-template.cu")

HEADERS = (
    ("math/all.h", '#pragma once\n#include "math/twice.h"\n#include <math/twice.h>\n#include <cstdint>\n'),
    ("math/twice.h", "#ifndef T_H\n#define T_H\n#include <cuda_fp16.h>\n#include \"math/all.h\"\n"
     "#define TIMES (KIND)\nstatic __device__ float twice(float x) { return TIMES * x; }\n#endif\n"),
    ("list.inc", "ITEM(1) ITEM(2)\n"),
)  # fmt: skip
WITH_HEADERS = read_program("with-headers.cu")
# The template with the same headers, which define what it then need not.
WITH_OWN_HEADERS = (
    TEMPLATE.replace("#define SQUARE", '#define KIND BLOCK\n#include "math/all.h"\n#define SQUARE')
    .replace("__device__ Part twice", "__device__ Part made")
    .replace("twice(x[i + k]).value", "made(x[i + k]).value + twice(1)")
    .replace("twice(0)", "made(0)")
)


def a_problem(
    kernel: str, arguments: str, launch: str, entry: str = "scale", name: str = "scale", sizes: str = SIZES
) -> Problem:
    head = f'name = "{name}"\n[kernel]\nsource = "kernel.cu"\nentry = "{entry}"\n'
    return parse_problem(head + arguments + launch + sizes, path="problem.toml", read=lambda _: kernel)


def tuned(problem: Problem, template: Template, device: Device, choice: Winners) -> dict[str, bytes]:
    made = assemble_delivery(problem, lambda _config: template, device, choice)
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


def block(value: int, vec: int = 1) -> Config:
    return Config.of({"BLOCK": value, "VEC": vec})


def scales(name: str = "scale", general: Config | None = None, small: Config | None = None) -> str:
    problem = a_problem(KERNEL, ARGUMENTS, LAUNCH, name=name)
    return launched(problem, TEMPLATE, general or block(128, 4), small or block(64))[0]


def two_launches(**limits: Any) -> str:
    arguments = an_array("new", "float32", "inout") + an_array("x", "float32", "input") + SCALARS
    alias = '[[argument]]\nname = "again"\ntype = "float32*"\nalias = "new"\n'
    kernel = "__global__ void scale(float* o, const float* x, int rows, long long d, float* again) {}\n"
    return launched(a_problem(kernel, arguments + alias, LAUNCH), TWO, block(128), block(64), **limits)[0]


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
