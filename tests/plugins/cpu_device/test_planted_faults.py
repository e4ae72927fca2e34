"""Faults that results need not show, planted in small kernels: each is found there with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cpu_here import needs_cpu
from tests.plugins.cpu_device.watched_kernels import watched

pytestmark = needs_cpu

# A body, whose first line is the fourth; the kind of fault; where it is, and where the other thread is.
FAULTS = {
    "beyond an array": ("  if (t <= n)\n    o[t] = 2 * x[t];", "a read of 4 bytes outside its array", 5, 0),
    "before an array": ("  o[t - 1] = x[t];", "a write of 4 bytes outside its array", 4, 0),
    "beyond an array of a fixed size": (
        "  float a[4] = {1, 2, 3, 4};\n  o[t & 63] = a[t & 7];",
        "an index outside an array of a fixed size",
        5,
        0,
    ),
    "shared memory that nobody wrote": (
        "  if (t < 32)\n    s[t] = x[t];\n  __syncthreads();\n  if (t < 64)\n    o[t] = s[t];",
        "a read of shared memory that nobody has written",
        8,
        0,
    ),
    "a race in shared memory": (
        "  s[t & 63] = x[t & 63] + t;\n  __syncthreads();\n  o[t & 63] = s[t & 63];",
        "a race in shared memory",
        4,
        0,
    ),
    "no barrier between": (
        "  if (t < 64)\n    s[t] = x[t];\n  __syncthreads();\n  if (t < 63)\n    s[t + 1] = 1;\n"
        "  if (t < 64)\n    o[t] = s[t];",
        "a race in shared memory",
        10,
        8,
    ),
    "blocks that write one place": ("  if (t == 0)\n    o[0] = blockIdx.x;", "a race in global memory", 5, 0),
    "a barrier not reached by all": (
        "  if (t < 8)\n    o[t] = __shfl_xor_sync(0xffffffffu, x[t], 1);\n  __syncthreads();",
        "a barrier that is not reached by all",
        5,
        6,
    ),
    "a barrier in both branches": (
        "  if (t < 32)\n    __syncthreads();\n  else\n    __syncthreads();",
        "a barrier that threads reach in different places",
        5,
        7,
    ),
    "a misaligned vector": (
        "  if (t < 4)\n    *(float4 *)(o + 4 * t + 1) = make_float4(1, 2, 3, 4);",
        "a misaligned access",
        5,
        0,
    ),
    "an index that overflows": (
        "  int at = (t + 1) * 1000003 * n;\n  o[t & 63] = x[at & 31];",
        "an integer that overflows",
        4,
        0,
    ),
}
HONEST = {
    "lanes that have left": (
        "  if (t >= 40)\n    return;\n  float v = __shfl_xor_sync(0xffffffffu, x[t], 1);\n"
        "  v += __popc(__ballot_sync(0xffffffffu, 1));\n  __syncthreads();\n  o[t] = v;"
    ),
    "a warp that waits": (
        "  if (t < 64)\n    s[t] = x[t];\n  __syncwarp();\n  if (t < 64)\n    o[t] = s[t ^ 1];"
    ),
    "atomics": (
        "  if (t == 0)\n    s[0] = 0;\n  __syncthreads();\n  atomicAdd(s, 1.0f);\n  atomicAdd(o, 1.0f);"
    ),
    "one value by all": "  o[0] = 1.0f;",
    "read, shuffled, written": (
        "  if (t < 64)\n    s[t] = x[t];\n  __syncthreads();\n  if (t < 32) {\n    float v = s[t];\n"
        "    for (int i = 16; i; i /= 2)\n      v += __shfl_xor_sync(0xffffffffu, v, i);\n"
        "    if (t == 0)\n      s[1] = v;\n  }\n  __syncthreads();\n  if (t < 64)\n    o[t] = s[1];"
    ),
    "the last block reads what the others wrote": (
        "  __shared__ bool last;\n  if (t == 0) {\n    o[blockIdx.x + 1] = x[blockIdx.x];\n"
        "    __threadfence();\n"
        "    last = atomicAdd((unsigned *)o + 63, 1u) == 1;\n  }\n  __syncthreads();\n"
        "  if (last && t == 0)\n    o[0] = o[1] + o[2];"
    ),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.few(4)
def test_is_found_with_its_line(name: str, tmp_path: Path) -> None:
    body, kind, line, other = FAULTS[name]
    found = {finding.kind: finding for finding in watched(body, tmp_path)}
    assert kind in found, found
    assert (found[kind].place, found[kind].kernel) == (f"kernel.cu:{line}", "k")
    assert not other or f"kernel.cu:{other}" in found[kind].words


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.few(2)
def test_what_is_right_is_not_accused(name: str, tmp_path: Path) -> None:
    assert watched(HONEST[name], tmp_path) == ()
