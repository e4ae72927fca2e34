"""Rows that one work-item takes in turn, as tasks; and those that must stay its own."""

from __future__ import annotations

import pytest

from tests.expert.model.kernels import lifted, refusal, summary
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem

_HEAD = (
    "__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step,"
    " int rows, int cols, int per)"
)
_PLACES = """int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
"""
_TURN = "*(__global float *)(dst + to) = 2.0f * *(__global const float *)(src + from);"
_IN_HEAD = "for (int y = y0, y1 = min(rows, y0 + per); y < y1; ++y, from += src_step, to += dst_step) {\n"


def _problem(body: str, *, step: str = "4 * cols + 64", rows_grid: str = "ceildiv(rows, 16)") -> Problem:
    arrays = "\n".join(
        f'[[argument]]\nname = "{name}"\ntype = "uint8*"\nshape = ["rows", "4 * cols + 64"]\n'
        f'role = "{role}"\n'
        f'[[argument]]\nname = "{name}_step"\ntype = "int32"\nvalue = "{by}"'
        for name, role, by in (("src", "input", "4 * cols + 64"), ("dst", "inout", step))
    )
    scalars = "\n".join(
        f'[[argument]]\nname = "{name}"\ntype = "int32"\nvalue = "{value}"'
        for name, value in (("rows", "rows"), ("cols", "cols"), ("per", "4"))
    )
    text = f"""
name = "image"
[kernel]
source = "kernel.cl"
entry = "k"
language = "opencl"
{arrays}
{scalars}
[launch]
grid = ["ceildiv(cols, 64)", "{rows_grid}"]
block = ["64", "4"]
[contract]
rows = {{ min = 1, max = 4096 }}
cols = {{ min = 1, max = 4096 }}
[workloads]
image = {{ rows = 270, cols = 481 }}
[accuracy]
rtol = 1e-3
atol = 1e-3
"""
    return parse_problem(text, path="problem.toml", read=lambda _: f"{_HEAD} {{\n{body}\n}}\n")


READ = {
    "until the smaller of two ends": _PLACES + _IN_HEAD + _TURN + "} }",
    "the same as a choice": (
        _PLACES + "for (int y = y0; y < (y0 + per < rows ? y0 + per : rows); ++y) {\n"
        "int at = y * dst_step + 4 * x; *(__global float *)(dst + at) = 1.0f; } }"),
    "as long as there are rows left": (
        _PLACES + "for (int i = 0; i < 4; ++i) if (y0 < rows) {" + _TURN + "++y0; from += src_step;\n"
        "to += dst_step; } }"),
    "tested by the sum": (
        _PLACES + "for (int i = 0; i < 4; ++i) if (y0 + i < rows)\n"
        "*(__global float *)(dst + (y0 + i) * dst_step + 4 * x) = i + y0; }"),
    "left once there are none": (
        _PLACES + "for (int i = 0; i < 4; ++i) { const int y = y0 + i; if (y >= rows) break;\n"
        "dst[y * dst_step + x] = src[y * src_step + x]; } }"),
    "passed over where there are none": (
        _PLACES + "for (int y = y0; y < y0 + 4; ++y) { if (y >= rows) continue;\n"
        "dst[y * dst_step + x] = src[y * src_step + x]; } }"),
    "in place": (
        _PLACES + _IN_HEAD + "__global float *p = (__global float *)(dst + to);\n"
        "p[0] += 1.0f; p[0] *= 3.0f; } }"),
    "several to a pixel": (
        _PLACES + _IN_HEAD + "__global uchar *p = dst + y * dst_step + 4 * x;\n"
        "for (int c = 0; c < 4; ++c) p[c] += 2; } }"),
    "mirrored in its row": (
        _PLACES + _IN_HEAD + "dst[y * dst_step + x] = 1; dst[y * dst_step + cols - 1 - x] = 2; } }"),
}  # fmt: skip


@pytest.mark.parametrize("style", READ)
def test_rows_are_tasks(style: str) -> None:
    kernel = lifted(_problem(READ[style]))
    name = "y0" if "for (int i = 0" in READ[style] else "y"
    assert summary(kernel) == f"{name}<rows | each 0..cols"
    fact = next(fact for fact in kernel.facts if "in turn" in fact.what)
    assert fact.ground == "proved"
    assert {access.stride for access in kernel.accesses} <= {1, 4, -1}


def test_neighbours_are_one_step_of_the_loop_apart() -> None:
    kernel = lifted(_problem(READ["until the smaller of two ends"]))
    assert [(access.array, access.stride) for access in kernel.accesses] == [("dst", 1), ("src", 1)]


STAY = {
    "rows that overlap": (_PLACES + _IN_HEAD + _TURN + "} }", {"step": "2"}, "may meet"),
    "rows that are one": (_PLACES + _IN_HEAD + _TURN + "} }", {"step": "0"}, "may meet"),
    "a pixel that reaches into the next row": (
        _PLACES + _IN_HEAD + "dst[y * dst_step + x] = 1; dst[y * dst_step + 9 * cols - x] = 2; } }",
        {}, "may meet"),
    "a place that is loaded": (
        _PLACES + _IN_HEAD + "int at = src[y * src_step + x]; dst[y * dst_step + at] = 1; } }",
        {}, "computed there"),
    "a value that is carried": (
        _PLACES + "float sum = 0;" + _IN_HEAD + "sum += src[y * src_step + x];\n"
        "dst[y * dst_step + x] = sum; } }", {}, "carried from row to row"),
    "a row that the others stop at": (
        _PLACES + _IN_HEAD + "if (src[y * src_step + x] == 0) break; dst[y * dst_step + x] = 1; } }",
        {}, "stops early"),
    "atomics": (
        _PLACES + _IN_HEAD + "atomic_add((__global int *)(dst + 4 * y), 1); } }",
        {}, "more than load, compute and store"),
    "fewer rows than the work-items are apart": (
        _PLACES + "for (int y = y0; y < min(rows, y0 + 3); ++y) dst[y * dst_step + x] = 1; }", {}, ""),
    "more rows than the work-items are apart": (
        _PLACES + "for (int y = y0; y < min(rows, y0 + 5); ++y) dst[y * dst_step + x] += 1; }", {}, ""),
    "a launch that leaves rows out": (
        _PLACES + _IN_HEAD + _TURN + "} }", {"rows_grid": "ceildiv(rows, 20)"}, ""),
    "rows that end where the data says": (
        _PLACES + "for (int y = y0; y < min((int)src[0], y0 + per); ++y)\n"
        "dst[y * dst_step + x] = 1; }", {}, ""),
}  # fmt: skip


@pytest.mark.parametrize("style", STAY)
def test_rows_that_stay_their_work_items_own(style: str) -> None:
    body, given, reason = STAY[style]
    kernel = lifted(_problem(body, **given))
    assert "y<rows" not in summary(kernel)
    assert not any("in turn" in fact.what for fact in kernel.facts)
    assert reason in "".join(kernel.notes)
    assert bool(reason) == any("rows in turn, which stay its own" in note for note in kernel.notes)


@pytest.mark.parametrize("other", ["dst[(y - 1) * dst_step + x]", "dst[y * dst_step + dst[x]]"])
def test_rows_that_read_what_others_store(other: str) -> None:
    body = _PLACES + _IN_HEAD + f"dst[y * dst_step + x] = {other}; }} }}"
    assert "threads depend on each other" in refusal(_problem(body))
