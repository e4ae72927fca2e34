"""Tiles in shared memory: read as the values they hold, and left alone where that cannot be proved."""

from __future__ import annotations

import pytest

from tests.expert.model.kernels import lifted, problem_in, refusal, row_problem
from tunesmith.csource.printing import print_statements
from tunesmith.expert.model.kernel import Each, KernelModel
from tunesmith.expert.model.lift import lift

GRID, BLOCK = ("ceildiv(d, 16)", "ceildiv(rows, 8)"), ("16", "8")
PLACE = (
    "const int tx = threadIdx.x, ty = threadIdx.y;\n"
    "const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;\n"
)
OWN = "if (x0 < d && y0 < rows) out[y0 * d + x0] = "
TILE = "__shared__ float t[10][18];\n" + PLACE


def text_of(kernel: KernelModel) -> str:
    (each,) = kernel.steps
    assert isinstance(each, Each)
    return print_statements(each.body)


# What a kernel does between its tile and its barrier, and after it; what must be left of that.
READ = {
    "a copy": (
        TILE + "if (x0 < d && y0 < rows) t[ty][tx] = x[y0 * d + x0]; __syncthreads();\n" + OWN + "t[ty][tx];",
        "out[y0 * d + x0] = x[y0 * d + x0];"),
    "zero first": (
        TILE + "t[ty][tx] = 0; if (x0 < d && y0 < rows) t[ty][tx] = x[y0 * d + x0]; __syncthreads();\n"
        "const float v = t[ty][tx]; " + OWN + "v;",
        "v = x[y0 * d + x0];"),
    "a branch for the edge": (
        TILE + "if (x0 >= d - 1 || y0 >= rows) t[ty][tx] = 1; else t[ty][tx] = x[y0 * d + x0 + 1];\n"
        "__syncthreads();\n" + OWN + "t[ty][tx];",
        "x0 + 1 < d ? x[y0 * d + (x0 + 1)] : (float)1"),
    "a value by a branch": (
        TILE + "float v = 2.0f; if (x0 + 3 < d && y0 < rows) v = x[y0 * d + x0 + 3]; t[ty][tx] = v;\n"
        "__syncthreads();\n" + OWN + "t[ty][tx];",
        "x0 + 3 < d ? x[y0 * d + (x0 + 3)] : 2.0f"),
    "a block larger than its elements": (
        "__shared__ float t[8 * 18];\n"
        "const int c = (int)(blockIdx.x * 14 + threadIdx.x) - 1, r = blockIdx.y * 8 + threadIdx.y;\n"
        "t[threadIdx.y * 18 + threadIdx.x] = c >= 0 && c < d && r < rows ? x[r * d + c] : 0.0f;\n"
        "__syncthreads();\n"
        "if (threadIdx.x > 0 && threadIdx.x < 15 && c < d && r < rows)\n"
        "  out[r * d + c] = t[threadIdx.y * 18 + threadIdx.x - 1] + t[threadIdx.y * 18 + threadIdx.x + 1];",
        "(c >= 1 ? x[r * d + (c - 1)] : 0.0f) + (c + 1 < d ? x[r * d + (c + 1)] : 0.0f)"),
    "a tile filled twice": (
        TILE + "if (x0 < d && y0 < rows) t[ty][tx] = x[y0 * d + x0]; __syncthreads();\n"
        "const float v = t[ty][tx]; __syncthreads();\n"
        "if (x0 < d && y0 < rows) t[ty][tx] = 2 * x[y0 * d + x0]; __syncthreads();\n"
        + OWN + "v + t[ty][tx];",
        "v + 2 * x[y0 * d + x0]"),
    "a variable set anew": (
        TILE + "int a = ty; if (x0 < d && y0 < rows) t[a][tx] = x[y0 * d + x0]; __syncthreads();\n"
        "a = tx; " + OWN + "t[ty][a];",
        "out[y0 * d + x0] = x[y0 * d + x0];"),
}  # fmt: skip

BEYOND = {
    "no barrier": (
        TILE + "t[ty][tx] = x[ty]; " + OWN + "t[7 - ty][tx];", "with no barrier between"),
    "a place that nobody wrote": (
        TILE + "t[ty][tx] = x[ty]; __syncthreads(); " + OWN + "t[ty][tx + 1];", "that nobody wrote"),
    "a halo with a hole": (
        TILE + "t[ty][tx + 1] = x[y0]; if (tx == 0 && ty > 0) t[ty][0] = x[y0]; __syncthreads();\n"
        + OWN + "t[ty][tx];", "that nobody wrote"),
    "two writers": (
        TILE + "t[ty][tx / 2] = x[y0 * d + x0]; __syncthreads(); " + OWN + "t[ty][tx / 2];",
        "two threads write one place"),
    "a test weaker at the read": (
        TILE + "if (x0 < d - 1 && y0 < rows) t[ty][tx] = x[y0 * d + x0]; __syncthreads();\n"
        + OWN + "t[ty][tx];", "kept it from being written"),
    "a test of another thread": (
        TILE + "if (x0 < d && y0 < rows) t[ty][tx] = x[y0 * d + x0]; __syncthreads();\n"
        + OWN + "tx < 15 ? t[ty][tx + 1] : 0.0f;", "as tiles"),
    "a test by data": (
        TILE + "if (x[y0] > 0) t[ty][tx] = x[y0]; __syncthreads(); " + OWN + "t[ty][tx];", "not followed"),
    "what is copied changes": (
        TILE + "t[ty][tx] = out[y0 * d + x0]; __syncthreads(); " + OWN + "t[ty][tx];",
        "read and written by a kernel with barriers"),
    "a variable that changes": (
        TILE + "float s = 0; for (int i = 0; i < 4; i++) { s += x[i]; } t[ty][tx] = s; s = 1;\n"
        "__syncthreads(); " + OWN + "s + t[ty][tx];", "depends on 's', which changes"),
    "a barrier for some": (
        TILE + "t[ty][tx] = x[y0]; if (tx < 8) __syncthreads(); " + OWN + "t[ty][tx];",
        "comes to the barrier"),
    "a return before the barrier": (
        TILE + "if (x0 >= d) return; t[ty][tx] = x[y0]; __syncthreads(); " + OWN + "t[ty][tx];",
        "comes to the barrier"),
    "barriers as often as a thread likes": (
        TILE + "for (int i = 0; i < tx; i++) { t[ty][tx] = x[i]; __syncthreads(); } " + OWN + "t[ty][tx];",
        "turns differently"),
    "one barrier to a turn": (
        TILE + "float s = 0; for (int k = 0; k < d; k++) { t[ty][tx] = x[k]; __syncthreads();\n"
        "s += t[7 - ty][tx]; } " + OWN + "s;", "the turn before may still read"),
    "a tile from the turn before": (
        TILE + "float s = 0; for (int k = 0; k < d; k++) { s += t[ty][tx]; __syncthreads();\n"
        "t[ty][tx] = x[k]; __syncthreads(); } " + OWN + "s;", "that nobody wrote"),
    "a tile from before a loop that may not turn": (
        "__shared__ float u[8][16];\n" + TILE + "t[ty][tx] = x[y0];\n"
        "for (int k = 0; k < d; k++) { u[ty][tx] = x[k]; __syncthreads(); } " + OWN + "t[7 - ty][tx];",
        "with no barrier between"),
    "turns that a thread leaves": (
        TILE + "float s = 0; for (int k = 0; k < d; k++) { if (k == tx) break; t[ty][tx] = x[k];\n"
        "__syncthreads(); s += t[ty][tx]; __syncthreads(); } " + OWN + "s;", "turns differently"),
    "turns that data count": (
        TILE + "float s = 0; int n = (int)x[x0]; for (int k = 0; k < n; k++) { t[ty][tx] = x[k];\n"
        "__syncthreads(); s += t[ty][tx]; __syncthreads(); } " + OWN + "s;", "turns differently"),
    "a place that is left out": (
        TILE + "for (int j = 0; j < 1; j++) { if (x[j] > 0) break; t[ty][tx + j] = x[j]; }\n"
        "__syncthreads(); " + OWN + "t[ty][tx];", "as tiles"),
    "one value in shared memory": (
        "__shared__ float one;\n" + TILE + "if (tx == 3) one = x[ty]; t[ty][tx] = x[y0]; __syncthreads();\n"
        + OWN + "t[7 - ty][tx] + one;", "is no array"),
    "a tile read as vectors": (
        "__shared__ float u[128];\n" + PLACE + "u[ty * 16 + tx] = x[y0]; __syncthreads();\n"
        + OWN + "((float2 *)u)[(ty * 16 + tx) / 2].x;", "as tiles"),
    "a sum in the tile": (
        TILE + "t[ty][tx] = 0; __syncthreads(); t[ty][tx] += x[y0]; __syncthreads(); " + OWN + "t[ty][tx];",
        "not followed"),
    "an unsigned number below zero": (
        TILE + "t[ty][tx] = threadIdx.x - 1 < 20u ? x[y0] : 0.0f; __syncthreads(); " + OWN + "t[ty][tx];",
        "unsigned number below zero"),
    "a block turned round": (
        TILE + "if (x0 < d && y0 < rows) t[ty][15 - tx] = x[y0 * d + x0]; __syncthreads();\n"
        + OWN + "t[ty][tx];", "as tiles"),
    "elements of several threads": (
        TILE + "t[ty][tx] = x[y0 + tx]; __syncthreads(); if (y0 < rows) out[y0 * d + x0 / 2] = t[ty][tx];",
        "as tiles"),
    "a store before the barrier": (
        TILE + OWN + "1; t[ty][tx] = x[y0]; __syncthreads(); " + OWN + "t[ty][tx];",
        "before and after a barrier"),
    "an atomic": (
        TILE + "t[ty][tx] = x[y0]; __syncthreads(); atomicAdd(&out[y0 * d + x0], t[ty][tx]);", "as tiles"),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_what_a_tile_holds_is_read(name: str) -> None:
    body, want = READ[name]
    kernel = lifted(
        row_problem(body, grid=("ceildiv(d, 14)", GRID[1]) if "larger" in name else GRID, block=BLOCK)
    )
    assert want in text_of(kernel)
    assert not kernel.staged
    assert any("that is read was written by one thread" in fact.what for fact in kernel.facts)


@pytest.mark.parametrize("name", BEYOND)
@pytest.mark.few(10)
def test_what_is_not_proved_is_left_alone(name: str) -> None:
    body, reason = BEYOND[name]
    assert reason in refusal(row_problem(body, grid=GRID, block=BLOCK))


def test_a_block_whose_shape_is_a_size_is_left_alone() -> None:
    body = "__shared__ float t[1024]; const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    body += "t[threadIdx.x] = x[i]; __syncthreads(); out[i] = t[blockDim.x - 1 - threadIdx.x];"
    assert "as tiles: the shape of a block" in refusal(
        row_problem(body, grid=("rows",), block=("min(d, 1024)",))
    )


HEAD = "__shared__ float row[512]; const int r = blockIdx.x; if (r >= rows) return;\n"
FILL = "for (int i = threadIdx.x; i < d; i += blockDim.x) row[i] = x[r * d + i];\n"
EACH = "for (int i = threadIdx.x; i < d; i += blockDim.x) out[r * d + i] = "
BEFORE = "i > 0 ? row[i - 1] : 0.0f;\n"
WHOLE = HEAD + FILL + "__syncthreads();\n"
ROWS = {
    "neighbours": (
        WHOLE + EACH + "(i > 0 ? row[i - 1] : 0.0f) + (i + 1 < d ? row[i + 1] : 0.0f);",
        "(i_2 > 0 ? x[r * d + (i_2 - 1)] : 0.0f) + (i_2 + 1 < d ? x[r * d + (i_2 + 1)] : 0.0f)"),
    "an edge that repeats": (
        WHOLE + EACH + "row[max(i - 1, 0)] - row[min(i + 1, d - 1)];", "x[r * d + min(i_2 + 1, d - 1)]"),
    "all of it": (
        WHOLE + "for (int i = threadIdx.x; i < d; i += blockDim.x) {\n"
        "float s = 0; for (int j = 0; j <= i; j++) s += row[j]; out[r * d + i] = s; }", "s += x[r * d + j]"),
}  # fmt: skip
ROWS_BEYOND = {
    "behind its end": WHOLE + EACH + "row[i + 1];",
    "before its start": WHOLE + EACH + "row[i - 1];",
    "no barrier": HEAD + FILL + EACH + BEFORE,
    "what is loaded changes": WHOLE.replace("x[", "out[") + EACH + BEFORE,
    "threads that leave": WHOLE.replace("r >= rows", "threadIdx.x >= d") + EACH + BEFORE,
    "half the threads": WHOLE.replace("i += blockDim.x", "i += 512") + EACH + BEFORE,
    "each thread's own": WHOLE.replace("x[r * d + i]", "x[i] + threadIdx.x") + EACH + BEFORE,
    "filled twice": WHOLE + EACH + BEFORE + FILL,
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_that_all_threads_read_is_loaded_by_each(name: str) -> None:
    body, want = ROWS[name]
    kernel = lifted(row_problem(body, d="{ min = 1, max = 512 }"))
    assert want in text_of(kernel)
    assert any("that is read was filled before" in fact.what for fact in kernel.facts)


@pytest.mark.parametrize("name", ROWS_BEYOND)
def test_a_row_that_is_not_proved_whole_is_left_alone(name: str) -> None:
    assert refusal(row_problem(ROWS_BEYOND[name], d="{ min = 1, max = 512 }"))


ZOO = {
    "transpose_tiled": "out[(long long)y * rows + x] = in[(long long)x * cols + y];",
    "heat_tile": "(y + 1 < height ? u[(long long)(y + 1) * width + x] : 0.0f)",
    "conv3x3_tile": "taps[3 * dy + dx]",
    "matmul_tile": "(16 * t + i < k ? b[(long long)(16 * t + i) * n + col] : 0.0f)",
    "cl_blur_tile": "(col >= 1 ? in[(long)row * cols + (col - 1)] : 0.0f)",
}


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.few(2)
def test_tiles_of_the_zoo(name: str) -> None:
    kernel = lift(problem_in(f"tests/fixtures/zoo/{name}"))
    assert isinstance(kernel, KernelModel)
    assert ZOO[name] in text_of(kernel)
