"""What passes from turn to turn, task to task or pointer to pointer: found, and refused with the line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.expert.model.kernels import lifted, refusal, row_problem, summary
from tunesmith.csource.printing import print_statements
from tunesmith.expert.model.kernel import Each
from tunesmith.problem.problem import Problem

_FLAT = "const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;\n"
_GRID = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d; i += gridDim.x * blockDim.x)\n"
_TASKS = "for (int row = blockIdx.x; row < rows; row += gridDim.x)\n"
_SUM = (
    "float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[row * d + i];\n"
    "for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);\n"
)
_ROW = "const int row = blockIdx.x;\n" + _SUM
_EACH = "for (int i = threadIdx.x; i < d; i += 32) "
_ALONE = (
    "const int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;\n"
    "for (int i = 0; i < d; i++) "
)
_OWN = (
    "__shared__ float b[1]; const int i = threadIdx.x, r = blockIdx.x * 32;\n"
    "float s = {first}; {store}\nfor (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);\n"
)
_STORED = (
    "for (int o = 16; o > 0; o /= 2) n += __shfl_xor_sync(~0u, n, o);\nif (threadIdx.x == 0) out[row] = n;"
)

# A kernel of 32 threads to a block -> what must be said of it.
REFUSED = {
    "a thread that returns from a loop over the grid": (
        _GRID + "{ if (x[i] < 0) return; out[i] = x[i]; }", "returns from inside a loop"),
    "a thread that returns from a loop over elements": (
        _ROW + _EACH + "{ if (x[row * d + i] < 0) return; out[row * d + i] = s; }",
        "returns from inside a loop"),
    "a block that returns from a loop over tasks": (
        _TASKS + "{" + _SUM + "if (s < 0) return; if (threadIdx.x == 0) out[row] = s; }",
        "returns from inside a loop"),
    "a body that moves its index": (
        _ROW + _EACH + "{ out[row * d + i] = s; if (s > 4) i += 32; }", "line 11"),
    "a body that moves its end": (
        _ROW + "int n = d; for (int i = threadIdx.x; i < n; i += 32) { out[row * d + i] = s; n--; }", "line"),
    "a loop that writes where it ends": (
        _ROW + "for (int i = threadIdx.x; i < (int)out[row * d]; i += 32) out[row * d + i] = s;",
        "says how far it goes"),
    "the same over the grid": (
        _GRID.replace("rows * d", "(int)out[0]") + "out[i] = x[i];", "says how far it goes"),
    "a sum over tasks": (
        "float all = 0;\n" + _TASKS + "{" + _SUM + "all += s; if (threadIdx.x == 0) out[row] = all; }",
        "carried from one task to the next"),
    "a count of tasks": (
        "int n = 0;\n" + _TASKS + "{ n++; " + _EACH + "out[row * d + i] = n; }",
        "carried from one task to the next"),
    "shared memory from task to task": (
        "__shared__ float c; if (threadIdx.x == 0) c = 0; __syncthreads();\n" + _TASKS
        + "{ float v = c; " + _EACH + "out[row * d + i] = v; __syncthreads(); if (threadIdx.x == 0) c = 5;\n"
        "__syncthreads(); }", "carried from one task to the next"),
    "a local array over the grid": (
        "float t[1] = {0};\n" + _GRID + "{ t[0] += x[i]; out[i] = t[0]; }", "carried from one element"),
    "an element read, stored and used again": (
        _OWN.format(first="out[r + i]", store="out[r + i] = x[r + i];") + "if (i == 0) out[blockIdx.x] = s;",
        "as it was before it is stored to"),
    "an element read, stored and stored elsewhere": (
        _OWN.format(first="x[r + i]", store="")
        + "float v = out[r + i]; out[r + i] = s; ((float *)x)[r + i] = v;",
        "as it was before it is stored to"),
    "an integer that adds up floats": (
        _ROW + "int n = 0; " + _EACH + "n += x[row * d + i];\n" + _STORED,
        "adds up what are no integers"),
    "an integer that adds up a helper's floats": (
        _ROW + "int n = 0; " + _EACH + "n += twice(x[row * d + i]);\n" + _STORED,
        "adds up what are no integers"),
    "a mask of half a warp": (
        _OWN.format(first="x[r + i]", store="")
        + "int n = __reduce_add_sync(i < 16 ? 0xffffu : 0xffff0000u, (int)x[r + i]); if (i == 0) out[r] = n;",
        "a mask that is not just the threads"),
    "an atomic by pointer beside a store": (
        _FLAT + "atomicAdd(out + 8, x[i]); out[i] = 1;", "both plainly and by atomics"),
    "a place that is the same by its text alone": (
        _FLAT + "int k = i; out[k] = 1; k = (i + 7) % 64; float v = out[k]; out[i] = v;",
        "depend on each other"),
    "places apart by what each turn has its own of": (
        _FLAT + "const int k = (int)x[i]; out[2 * i + k] = out[2 * i + k + 1];", "depend on each other"),
    "places apart in another type": (
        _FLAT + "((char *)out)[4 * i] = ((char *)(out + 1))[4 * i];", "depend on each other"),
    "a pointer of no written type": (_FLAT + "auto q = out; out[i] = q[i + 1];", "'out' is used in a way"),
    "an array of pointers": (
        _FLAT + "const float *q[2] = {x, out}; out[i] = q[1][i + 1];",
        "is used in a way that is not followed"),
    "a pointer as a number": (
        _FLAT + "unsigned long long a = (unsigned long long)out; out[i] = ((float *)a)[i + 1];",
        "made of a number"),
    "a pointer of the file": (_FLAT + "out[i] = elsewhere[i + 1];", "may point anywhere"),
    "threadIdx as a whole": (
        _FLAT + "const dim3 t = threadIdx; out[i] = x[i] * t.x;",
        "other than by its .x"),
    "threadIdx by another name": (
        _FLAT + "const auto &t = threadIdx; out[i] = x[i] * t.x;",
        "other than by its .x"),
    "a jump": (_FLAT + "if (x[i] < 0) goto end; out[i] = 1; end: ;", "'goto end;' is not understood"),
    "a helper that counts": (
        _FLAT + "out[i] = counted(x[i]);",
        "'seen', a variable of the file, is written to"),
}  # fmt: skip
_BEFORE = """
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }
"""


def _problem(body: str) -> Problem:
    grid = (
        ("ceildiv(rows * d, 32)",) if body.startswith(_FLAT) else ("64",) if "gridDim" in body else ("rows",)
    )
    return row_problem(body, grid=grid, block=("32",), before=_BEFORE)


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    body, reason = REFUSED[case]
    assert reason in refusal(_problem(body))


# What one thread does in turn, and may not be shared: its loop stays as it is, a thread to a row.
IN_TURN = {
    "a store to the next turn's element": "{ out[row * d + i] = x[row * d + i]; out[row * d + i + 1] = 0; }",
    "a stride that may be nothing": "out[row * d + i * (rows - 5)] = x[row * d + i];",
    "an index that is cut off": "out[row * d + (unsigned char)i] = x[row * d + i];",
    "an index that is one bit": "out[row * d + (bool)i] = x[row * d + i];",
    "a return": "{ if (x[row * d + i] < 0) return; out[row * d + i] = x[row * d + i]; }",
}


@pytest.mark.parametrize("case", IN_TURN)
def test_turns_that_depend_on_each_other_stay_with_their_thread(case: str) -> None:
    problem = row_problem(_ALONE + IN_TURN[case], grid=("ceildiv(rows, 64)",), block=("64",))
    found = refusal(problem) if case == "a return" else summary(lifted(problem))
    assert found == "| each 0..rows" or "returns from inside a loop" in found


# As before: nothing of this is handed on.
READ = {
    "a variable that every task sets first": (
        "float v;\n" + _TASKS + "{ v = x[row]; " + _EACH + "out[row * d + i] = v; }",
        "row<rows | let v; each 0..d"),
    "a task that goes on early": (
        _TASKS + "{" + _SUM + "if (s < 0) continue; if (threadIdx.x == 0) out[row] = s; }",
        "row<rows | each 0..d +s; when !(s < 0) {once 1}"),
    "an integer that counts": (
        _ROW + "int n = 0; " + _EACH + "n += x[row * d + i] > 0;\n" + _STORED,
        "row<rows | each 0..d +s; each 0..d +n; once 1"),
    "a pointer that is tested": (_FLAT + "out[i] = x != nullptr && x ? x[i] : 0;", "| each 0..rows * d"),
    "how a pointer is aligned": (
        _FLAT + "out[i] = ((unsigned long long)x & 15) == 0 ? x[i] : 0;", "| each 0..rows * d"),
    "an atomic by pointer": (_FLAT + "atomicAdd(out + i % 8, x[i]);", "| each 0..rows * d"),
    "a trap that is never come to": (_FLAT + "if (x[i] < 0) __trap(); assert(x[i] > 0); out[i] = x[i];",
                                     "| each 0..rows * d"),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_read(case: str) -> None:
    body, expected = READ[case]
    assert summary(lifted(_problem(body))).replace("block<rows", "row<rows") == expected


# What the kernel is read as, with its own tests and loops where nothing more is proved.
AS_IT_IS = {
    "a bound that the body computes": (
        "const int i = blockIdx.x * 32 + threadIdx.x, n = (int)x[i]; if (i >= n) return; out[i] = 1;",
        "if (!(i >= n))"),
    "a start that depends on a size": (
        "const int r = blockIdx.x * d;\n"
        "for (int i = (d == 5001 ? 2 : 1) * threadIdx.x; i < d; i += 32) out[r + i] = 1;", "d == 5001"),
    "a step that depends on a size": (
        "const int r = blockIdx.x * d;\n"
        "for (int i = threadIdx.x; i < d; i += d == 5001 ? 64 : 32) out[r + i] = 1;", "d == 5001"),
    "rounds that depend on a size": (
        "const int r = blockIdx.x * d; const int rounds = d == 5001 ? 1 : (d + 31) / 32;\n"
        "for (int k = 0; k < rounds; k++) { const int i = k * 32 + threadIdx.x; if (i < d) out[r + i] = 1; }",
        "d == 5001"),
    "a sum in memory that may never be touched": (
        _FLAT + "for (int j = 0; j < 8; j++) if (x[j] > 0) out[i / 2] += x[j];", "out[i / 2] += x[j]"),
    "an argument that counts": (
        _FLAT + "int j = 0; float v = pick(x, j++, x[i] > 0); out[i] = v + j;", "= j++;"),
}  # fmt: skip


@pytest.mark.parametrize("case", AS_IT_IS)
def test_what_is_not_proved_stays_in_the_text(case: str) -> None:
    body, text = AS_IT_IS[case]
    (step,) = lifted(_problem(body)).steps
    assert isinstance(step, Each)
    assert text in print_statements(step.body)


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        ("vstore4(vload4(i, x), i, out);", ""),
        ("vstore4(vload4(i, out), i, out);", ""),
        ("vstore4(vload4(i + 1, out), i, out);", "depend on each other"),
        ("out[i] = vload4(i, out).x;", "depend on each other"),
    ],
)
def test_vectors_of_opencl_are_accesses(stored: str, reason: str) -> None:
    problem = row_problem("", grid=("ceildiv(rows * d, 64)",), block=("64",))
    text = (
        "__kernel void k(__global const float *x, __global float *out, int rows, int d) {\n"
        f"const int i = get_global_id(0);\nif (i < rows * d / 4) {stored} }}"
    )
    problem = replace(problem, kernel=replace(problem.kernel, language="opencl", text=text))
    if reason:
        assert reason in refusal(problem)
    else:
        assert summary(lifted(problem)) == "| each 0..rows * d / 4"
