"""Traps of what a team does beside its loops: atomics of one thread, tests by thread and size."""

from __future__ import annotations

from collections.abc import Mapping

from tests.hostile.random_kernels.trap import LOOP, SUM, TREE, Trap, block_trap

_COPY = LOOP + "out[i] = x[i];"

_ATOMICS: Mapping[str, Trap] = {
    "a total added by one thread": block_trap(
        SUM + TREE + "if (threadIdx.x == 0) atomicAdd(&aux[row & 7], (int)room[0]);\n" + _COPY
    ),
    "a total added to what a pointer says": block_trap(
        SUM + TREE + "if (threadIdx.x == 0) atomicMax(aux + 3, (int)room[0]);\n" + LOOP + "out[i] = room[0];"
    ),
    "a total added by all": block_trap(
        SUM + TREE + "atomicAdd(&aux[0], (int)room[0]);\n" + _COPY
    ),
    "a total added by a thread of each warp": block_trap(
        SUM + TREE + "if (threadIdx.x % 32 == 0) atomicAdd(&aux[0], (int)room[0]);\n" + _COPY
    ),
    "a part of a total added": block_trap(
        SUM + TREE + "if (threadIdx.x == 0) atomicAdd(&aux[0], (int)s);\n" + _COPY
    ),
    "a number drawn by an atomic": block_trap(
        "__shared__ int first;\nif (threadIdx.x == 0) first = atomicAdd(&aux[row], 1);\n__syncthreads();\n"
        + LOOP
        + "out[i] = x[i] + first;"
    ),
    "an exchange by one thread": block_trap(
        SUM + TREE + "if (threadIdx.x == 0) atomicExch(&aux[row], (int)room[0]);\n" + _COPY
    ),
    "a total added where it is large": block_trap(
        SUM + TREE
        + "if (threadIdx.x == 0 && room[0] > 3.0f) atomicAdd(&aux[1], (int)room[0]);\n" + _COPY
    ),
    "a total added once a sum is large": block_trap(
        SUM + TREE + "if (room[0] > 3.0f) { if (threadIdx.x == 0) atomicAdd(&aux[2], 1); }\n" + _COPY
    ),
}  # fmt: skip

_FOURS = (
    "float s = 0.0f;\nfor (int i = threadIdx.x; i < d / 4; i += 64)\n"
    "    for (int j = 0; j < 4; j++) s += x[i * 4 + j];\n"
)
_TAIL = "s += x[d / 4 * 4 + threadIdx.x];\n"
_PUT = LOOP + "out[i] = x[i] + room[0];"

_TESTS: Mapping[str, Trap] = {
    "a tail by a test": block_trap(_FOURS + "if (threadIdx.x < d % 4) " + _TAIL + TREE + _PUT),
    "a tail by a difference": block_trap(_FOURS + "if (threadIdx.x < d - d / 4 * 4) " + _TAIL + TREE + _PUT),
    "a tail by its place": block_trap(
        _FOURS + "const int t = d / 4 * 4 + threadIdx.x;\nif (t < d) s += x[t];\n" + TREE + _PUT
    ),
    "a tail that is stored": block_trap(
        "for (int i = threadIdx.x; i < d / 4; i += 64)\n"
        "    for (int j = 0; j < 4; j++) out[i * 4 + j] = x[i * 4 + j] + 1.0f;\n"
        "if (threadIdx.x < d % 4) out[d / 4 * 4 + threadIdx.x] = x[d / 4 * 4 + threadIdx.x] - 1.0f;"
    ),
    "a tail longer than a block": block_trap(
        _FOURS + "if (threadIdx.x < d % 100) s += x[threadIdx.x];\n" + TREE + _PUT
    ),
    "a tail as long as a block": block_trap(
        _FOURS + "if (threadIdx.x < d % 64) s += x[threadIdx.x];\n" + TREE + _PUT
    ),
    "a tail that may be below zero": block_trap(
        _FOURS + "if (threadIdx.x < d % 4 - 1) s += x[threadIdx.x % d];\n" + TREE + _PUT
    ),
    "a tail from a place on": block_trap(
        _FOURS + "if (threadIdx.x >= 2 && threadIdx.x < d % 4) s += x[threadIdx.x];\n" + TREE + _PUT
    ),
    "a tail of the last threads": block_trap(
        _FOURS + "if (63 - threadIdx.x < d % 4) s += x[threadIdx.x % d];\n" + TREE + _PUT
    ),
    "a tail with something beside": block_trap(
        _FOURS + "if (threadIdx.x < d % 4) s += x[d - 1 - threadIdx.x]; else s += 1.0f;\n" + TREE + _PUT
    ),
    "two ends": block_trap(
        "float s = 0.0f;\nfor (int i = threadIdx.x; i < d && i < rows * 20; i += 64) s += x[i];\n"
        + TREE + _PUT
    ),
    "two ends, one included": block_trap(
        "float s = 0.0f;\nfor (int i = threadIdx.x; i < d && i <= rows; i += 64) s += x[i];\n" + TREE + _PUT
    ),
    "two ends, one of them moved by the loop": block_trap(
        "float s = 0.0f;\nint end = d;\n"
        "for (int i = threadIdx.x; i < d && i < end; i += 64) { s += x[i]; end -= 32; }\n" + TREE + _PUT
    ),
    "two ends, one by the data": block_trap(
        "float s = 0.0f;\nfor (int i = threadIdx.x; i < d && x[i] > -7.0f; i += 64) s += x[i];\n"
        + TREE + _PUT
    ),
}  # fmt: skip

TEAM_TRAPS: Mapping[str, Trap] = {**_ATOMICS, **_TESTS}
