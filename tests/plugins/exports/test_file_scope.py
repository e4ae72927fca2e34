"""Names that an OpenCL file declares: all that two files could both have, and none that is only used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.exports.opencl_results import GENERAL, KERNEL, TWO_STEPS
from tunesmith.plugins.exports.patch import names_declared

EXAMPLES = Path(__file__).parents[3] / "examples" / "opencl"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("float f(float a) { float b = a; return b; }\nfloat g(float);", "f g"),
        ("__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void k(__global float *o) {}", "k"),
        ("typedef struct __attribute__((packed)) { float4 v; } unaligned;", "unaligned"),
        ("struct S { int a; } __attribute__((aligned(8))) one, *two;", "S one two"),
        ("enum { A, B = 3, C };\nenum kind { D };\nenum kind of(int n) { return D; }", "A B C D kind of"),
        ("__constant float t[2] = {INFINITY, M_PI}, u = as_float(7), w = 1;", "t u w"),
        ("typedef float (*row)[16];\ntypedef float column[16];\ntypedef float4 vec;", "row column vec"),
        ("#if N == 1\n#define F(x) exp(x)\n#else\nfloat F(float x) { return x; }\n#endif", "F"),
        ("#define N 1\n#if N == 1\n#define F(x) exp(x)\n#else\nfloat F(float x);\n#endif", ""),
        ("#define MAKE(name) void name##_of(int n) { int m = n; }\nMAKE(one)\nMAKE(two)", "one_of two_of"),
        ("#ifdef cl_khr_fp16\ntypedef half h;\n#else\ntypedef float h_;\n#endif", "h h_"),
        ("#if A\nvoid f(int n) {\n#else\nvoid f() { int n = 1;\n#endif\n}\nvoid g() {}", "f g"),
        ("#if (\nvoid f() {}\n#endif\n#define G f\nvoid h() {}", "f h"),  # no compiler reads it
    ],
)
def test_what_is_declared(text: str, names: str) -> None:
    assert names_declared(text) == set(names.split())


def test_flags_decide_conditions() -> None:
    text = "#if VEC == 4\ntypedef float4 four;\n#else\ntypedef float one;\n#endif"
    assert names_declared(text, [("VEC", "4")]) == {"four"}
    assert names_declared(text) == {"one"}


def test_names_of_whole_files() -> None:
    assert names_declared(KERNEL) == {"item", "scale", "scale_12", "scale_20", "twice"}
    assert names_declared(TWO_STEPS) == {"part", "scale", "twice"}
    assert names_declared(GENERAL) == {"item", "scale"}
    own = {"EXP_OF", "gated", "ivec", "silu_and_mul", "unaligned", "vec"}
    template = (EXAMPLES / "silu_and_mul" / "template.cl").read_text()
    assert names_declared(template, [("EXP", "1")]) == own
    assert names_declared(template, [("EXP", "0")]) == own - {"EXP_OF"}
