"""Traps of rows that threads keep in arrays of their own between totals."""

from __future__ import annotations

from collections.abc import Mapping

from tests.hostile.random_kernels.trap import TREE, Trap, block_trap

_TURNS = "for (int k = 0; k * 64 + threadIdx.x < d; k++) "
_EIGHT = "for (int k = 0; k < 8; k++) "
_I = "{ const int i = k * 64 + threadIdx.x; "
_OR_ZERO = _EIGHT + _I + "if (i < d) v[k] = x[i]; else v[k] = 0.0f; }\n"
_SUM = "float s = 0.0f;\n"
_PUT = _TURNS + "out[k * 64 + threadIdx.x] = v[k] + room[0];"
_PUT_EIGHT = _EIGHT + _I + "if (i < d) out[i] = v[k] + room[0]; }"
_LOADED = "float v[8];\n" + _SUM + _TURNS + "{ v[k] = x[k * 64 + threadIdx.x]; s += v[k]; }\n" + TREE
_ROWS = "for (int row = blockIdx.x; row < rows; row += gridDim.x) {\n"


def _rows_trap(body: str) -> Trap:
    """A block goes on from row to row, with an array of before them."""
    return Trap("float v[8];\n" + _ROWS + body + "\n}", ("ceildiv(rows, 2)",))


KEPT_ROW_TRAPS: Mapping[str, Trap] = {
    "a row kept turn by turn": block_trap(_LOADED + _PUT),
    "a row kept and changed": block_trap(
        _LOADED + _TURNS + "v[k] = v[k] * 2.0f - room[0];\n" + _PUT.replace("room[0]", "1.0f")
    ),
    "a row kept in as many turns for all": block_trap(
        "float v[8];\n" + _OR_ZERO + _SUM + _EIGHT + "s += v[k];\n" + TREE + _PUT_EIGHT
    ),
    "a row kept with what does change a total": block_trap(
        "float v[8];\n"
        + _OR_ZERO.replace("= 0.0f", "= 3.0f")
        + _SUM
        + _EIGHT
        + "s += v[k];\n"
        + TREE
        + _PUT_EIGHT
    ),
    "a total from the first place on": block_trap(
        "float v[8];\n"
        + _OR_ZERO
        + "float s = v[0];\nfor (int k = 1; k < 8; k++) s += v[k];\n"
        + TREE
        + _PUT_EIGHT
    ),
    "a total from the first place down": block_trap(
        "float v[8];\n"
        + _OR_ZERO
        + "float s = v[0];\nfor (int k = 1; k < 8; k++) s -= v[k];\n"
        + TREE
        + _PUT_EIGHT
    ),
    "a total of squares from the first place on": block_trap(
        "float v[8];\n"
        + _OR_ZERO
        + "float s = v[0];\nfor (int k = 1; k < 8; k++) s = fmaf(v[k], v[k], s);\n"
        + TREE
        + _PUT_EIGHT
    ),
    "a kept row that ends with a break": block_trap(
        "float v[8];\n"
        + _OR_ZERO
        + _SUM
        + _EIGHT
        + "s += v[k];\n"
        + TREE
        + _EIGHT
        + _I
        + "if (i < d) out[i] = v[k] - room[0]; else break; }"
    ),
    "a row kept in both ways": block_trap(
        "float v[8];\n" + _OR_ZERO + _SUM + _EIGHT + "s += v[k];\n" + TREE + _PUT
    ),
    "a kept row by neighbours at the end": block_trap(
        _LOADED + _EIGHT + "{ const int i = threadIdx.x * 8 + k; if (i < d) out[i] = v[k] + room[0]; }"
    ),
    "a kept row at another turn's place": block_trap(
        "float v[9];\nv[8] = 5.0f;\n"
        + _OR_ZERO
        + _SUM
        + _EIGHT
        + "s += v[k + 1];\n"
        + TREE
        + _TURNS
        + "out[k * 64 + threadIdx.x] = v[k + 1] + room[0];"
    ),
    "a kept row with the number of the turn": block_trap(
        _LOADED + _TURNS + "out[k * 64 + threadIdx.x] = v[k] * k + room[0];"
    ),
    "a kept row of which only half is used": block_trap(
        _LOADED + "for (int k = 0; k * 64 + threadIdx.x < d / 2; k++) out[k * 64 + threadIdx.x] = v[k];"
    ),
    "a kept row that is set in some turns": _rows_trap(
        _SUM + _TURNS + "{ const int i = row * d + k * 64 + threadIdx.x;\n"
        "if (x[i] > 0.0f || row == blockIdx.x) v[k] = x[i];\ns += v[k]; }\n"
        + TREE
        + _TURNS
        + "out[row * d + k * 64 + threadIdx.x] = v[k] + room[0];\n__syncthreads();"
    ),
    "a kept row of the row before": _rows_trap(
        _SUM + _TURNS + "{ const int i = row * d + k * 64 + threadIdx.x;\n"
        "s += row == blockIdx.x ? 0.0f : v[k]; v[k] = x[i]; }\n"
        + TREE
        + _TURNS
        + "out[row * d + k * 64 + threadIdx.x] = v[k] + room[0];\n__syncthreads();"
    ),
    "a kept row in an array of before": _rows_trap(
        _SUM
        + _TURNS
        + "{ const int i = row * d + k * 64 + threadIdx.x;\nv[k] = x[i]; s += v[k]; }\n"
        + TREE
        + _TURNS
        + "out[row * d + k * 64 + threadIdx.x] = v[k] + room[0];\n__syncthreads();"
    ),
    "two kept rows": block_trap(
        "float v[8], w[8];\n"
        + _SUM
        + _TURNS
        + "{ const int i = k * 64 + threadIdx.x; v[k] = x[i]; w[k] = x[d - 1 - i]; s += v[k]; }\n"
        + TREE
        + _TURNS
        + "out[k * 64 + threadIdx.x] = v[k] * w[k] + room[0];"
    ),
    "kept rows of several warps": Trap(
        "const int row = blockIdx.x * 4 + threadIdx.y;\nif (row >= rows) return;\n"
        "x += row * d; out += row * d;\nfloat v[16];\n"
        "for (int k = 0; k < 16; k++) { const int i = k * 32 + threadIdx.x; v[k] = i < d ? x[i] : -9.0f; }\n"
        "float m = v[0];\nfor (int k = 1; k < 16; k++) m = m > v[k] ? m : v[k];\n"
        "for (int o = 16; o > 0; o /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));\n"
        "for (int k = 0; k < 16; k++) { const int i = k * 32 + threadIdx.x; if (i < d) out[i] = v[k] - m; }",
        ("ceildiv(rows, 4)",),
        ("32", "4"),
    ),
}
