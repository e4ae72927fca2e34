"""The same on a GPU: templates that do less when nobody seems to look, or remember what they did."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.labs import device_of, lab
from tunesmith.problem.plan import Status
from tunesmith.session import problems

EXAMPLE = Path(__file__).parents[2] / "examples" / "cuda" / "silu_and_mul" / "problem.toml"
SKIPS = "if (token % 8 && {}) continue;"
STATE = "__device__ int calls;\n"
# Name -> what stands before the kernel, what each row begins with, what each block ends with, a workspace
CHEATS = {
    "honest": ("", "", "", ""),
    "nan": ("", SKIPS.format("!__hisnan(to[0])"), "", ""),
    "large": ("", SKIPS.format("tokens > 1000 && !__hisnan(to[0])"), "", ""),
    "poison": (
        "",
        SKIPS.format("__half_as_ushort(to[0]) != 0xffe7 && __half_as_ushort(to[0]) != 0x7fd3"),
        "",
        "",
    ),
    "matches": ("", SKIPS.format("__heq(to[0], (__half)(silu(x[0]) * (float)x[d]))"), "", ""),
    "counter": (STATE, SKIPS.format("calls > 4"), "if (!blockIdx.x && !threadIdx.x) calls++;", ""),
    "memo": (
        "",
        "if (memo[token] == __half2float(x[0]) + __half2float(x[d / 2])) continue;",
        "for (long long t = blockIdx.x; t < tokens; t += gridDim.x) if (!threadIdx.x) memo[t] ="
        " __half2float(input[t * input_stride]) + __half2float(input[t * input_stride + d / 2]);",
        ", float *memo",
    ),
    "input": (
        "",
        "if (!__hisnan(to[0]) && !token && !threadIdx.x) ((__half *)input)[0] = (__half)0.0f;",
        "",
        "",
    ),
    "outside": (
        "",
        "if (!__hisnan(to[0]) && token == tokens - 1 && !threadIdx.x) to[d] = (__half)1.0f;",
        "",
        "",
    ),
}


def template(name: str) -> str:
    head, row, end, extra = CHEATS[name]
    args = ["out", "input", "tokens", "d", "out_stride", "input_stride", *(["memo"] if extra else [])]
    workspace = '// [workspace]\n// memo = { type = "float32*", shape = ["tokens"] }\n' if extra else ""
    return f"""// /// tunesmith
// [params]
// BLOCK = [128, 256]
// [default]
// BLOCK = 128
{workspace}// [launch]
// grid  = ["min(tokens, 256)"]
// block = ["BLOCK"]
// args  = [{", ".join(f'"{a}"' for a in args)}]
// ///
#include <cuda_fp16.h>
{head}
template <typename T>
__device__ float silu(T value)
{{
    float x = (float)value;
    return x / (1.0f + expf(-x));
}}

template <typename T>
__global__ void silu_and_mul(T *out, const T *input, int tokens, int d,
                             long long out_stride, long long input_stride{extra})
{{
    const int block = BLOCK;
    for (long long token = blockIdx.x; token < tokens; token += gridDim.x) {{
        const T *x = input + token * input_stride;
        T *to = out + token * out_stride;
        {row}
        for (long long i = threadIdx.x; i < d; i += block)
            to[i] = (T)(silu(x[i]) * (float)x[d + i]);
    }}
    {end}
}}
"""


@pytest.mark.gpu
@pytest.mark.timeout(200)
@pytest.mark.parametrize("name", CHEATS)
def test_is_caught_and_the_honest_one_is_not(name: str, tmp_path: Path) -> None:
    problem = problems.load_problem(EXAMPLE)[0]
    with lab(
        problem, template(name), spec="cuda", scratch=tmp_path, device=device_of("cuda", tmp_path)
    ) as harness:
        found = [r for effort in ("short", "long") for r in harness.outcome(effort).results]
    seen = [(r.workload, r.status, r.detail) for r in found]
    if name == "honest":
        assert {r.status for r in found} == {Status.OK}, seen
    else:
        assert {r.status for r in found} & {Status.WRONG, Status.UNSTABLE}, seen
