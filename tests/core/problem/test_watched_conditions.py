"""Conditions on data are found, and nothing else; the copy that marks them is the same kernel."""

from __future__ import annotations

import pytest

from tests.core.backends.cuda.builds import unit
from tests.cuda_here import needs_nvrtc
from tunesmith.backends.cuda.compile import build_cubin
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.problem.watched_conditions import MARKS, WatchedText, watch_conditions
from tunesmith.source.tree import Language

KERNEL = """__kernel void k(__global float *out, __global const float *x, __global const int *at, int n)
{
    int i = get_global_id(0);
    __local float sums[16];
    const int table[2] = {3, 4};
    %s
}
"""
HELPED = """%s int twice(%s int at, float v) { return v > 2.0f ? at : 0; }
%s int deep(float v) { return twice(1, v); }
%s void k(%s float *out, %s const float *x, int n) { if (n > 2) out[n] = deep(x[n]); }
"""

# Statements in the kernel -> the conditions on data in them.
FOUND = {
    "if (i >= n) return;": [],
    "for (int j = 0; j < n; j++) out[j] = x[j];": [],
    "if (x + 4 < out) out[0] = 1;": [],
    "if (table[n & 1] == 3) out[0] = 1;": [],
    "if (sizeof(x[0]) == 4) out[0] = 1;": [],
    "if (x[i] > 3) out[i] = 1;": ["x[i] > 3"],
    "if (*(x + i) > 3) out[i] = 1;": ["*(x + i) > 3"],
    "float4 v = vload4(0, x); if (v.x > 1) out[i] = 1;": ["v.x > 1"],
    "sums[i] = x[i]; float t = sums[0]; while (t > 9) t -= 1;": ["t > 9"],
    "out[i] *= (x[i] == 3);": ["x[i] == 3"],
    "out[i] = at[i] ? 1 : 2;": ["at[i]"],
    "if (!at[i]) out[i] = 1;": ["at[i]"],
    "out[i] = isnan(x[i]) ? 1 : 2;": ["isnan(x[i])"],
    "int f = 0; if (x[i] > 1) f = 1; if (f == 1) out[i] = 0;": ["x[i] > 1", "f == 1"],
    "int f = 0; (x[i] > 1) && (f = 1); if (f) out[i] = 0;": [
        "(x[i] > 1) && (f = 1)",
        "x[i] > 1",
        "f = 1",
        "f",
    ],
    "int j; for (j = 0; j < n; j++) if (x[j] > 1) break; if (j == 3) out[0] = 1;": [
        "j < n",
        "x[j] > 1",
        "j == 3",
    ],
    "int e; frexp(x[i], &e); if (e > 2) out[i] = 1;": ["e > 2"],
}


def watched(text: str, language: Language = "opencl") -> WatchedText:
    found = watch_conditions(text, language)
    assert isinstance(found, WatchedText), found
    return found


@pytest.mark.parametrize("statement", FOUND)
def test_conditions_on_data_are_found(statement: str) -> None:
    found = watched(KERNEL % statement)
    assert [condition.text for condition in found.conditions] == FOUND[statement]
    assert {condition.line for condition in found.conditions} <= {6}
    assert (MARKS in found.source.partition("__kernel")[2]) is bool(FOUND[statement])


def test_macros_are_expanded_and_lines_counted_as_the_text_says() -> None:
    found = watched('#define IS(v) ((v) == 77.5f)\n#line 40 "t.cl"\n' + KERNEL % "if (IS(x[i])) out[i] = 0;")
    (condition,) = found.conditions
    assert (condition.text, condition.line, condition.numbers) == ("(x[i]) == 77.5f", 45, (77.5,))


@needs_nvrtc
def test_marks_are_handed_to_whoever_needs_them() -> None:
    opencl = watched(HELPED % ("", "", "", "__kernel", "__global", "__global"))
    assert opencl.functions == {"k", "deep", "twice"}
    cuda = watched(HELPED % ("__device__", "", "__device__", 'extern "C" __global__', "", ""), "cuda")
    assert f"deep({MARKS}, x[n])" in cuda.source
    assert build_cubin(unit(cuda.source, "k"), absent_device("H200")).data


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("__kernel void k(__global float *tm_mark) {}", "are taken"),
        ("__kernel void k(__global float *x) { if (x[0] ==== 1) {} }", "could not be read"),
        ("#if 1\n__kernel void k() {}", "no #endif"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, why: str) -> None:
    found = watch_conditions(text, "opencl")
    assert isinstance(found, str)
    assert why in found
