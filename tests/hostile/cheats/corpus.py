"""What a cheat is: an honest template and what is changed in it, with the reason it must be caught for.

To add one takes a line in a table: which honest text it starts from, what each work-item begins and ends with
(or what is replaced), at which stage it must be caught at the latest, and with which verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.session import problems

ROOT = Path(__file__).parents[3]
# Turned away before it is built; a search's measurement; a final; the verification of a winner.
Stage = Literal["vetting", "short", "long", "verify"]
WRONG = (Status.WRONG,)
DIFFERS = (Status.WRONG, Status.UNSTABLE)


@dataclass(frozen=True)
class Cheat:
    kind: str
    why: str  # what it does, as its author would put it
    at: Stage = "long"
    base: str = "rmsnorm"  # the problem and its honest text
    begin: str = ""  # what a work-item does first
    end: str = ""  # and last
    edits: tuple[tuple[str, str], ...] = ()
    workspace: str = ""  # its declaration
    parameter: str = ""  # the same in the kernel's own words
    verdicts: tuple[Status, ...] = WRONG
    rule: str = ""  # of the vetting, where that turns a model's away; a user's is caught at its stage
    quick: bool = False  # in `make test`, for its kind
    tries: int = 1  # where one look shows it only by chance: a winner has eleven or more at a workload


def text_of(honest: str, cheat: Cheat) -> str:
    """The template; an edit that changes nothing is a fault of the table."""
    text = honest
    for old, new in cheat.edits:
        assert old in text, f"{old!r} is not in the honest text"
        text = text.replace(old, new)
    if cheat.workspace:
        name = cheat.workspace.partition(" ")[0]
        text = text.replace("// [launch]", f"// [workspace]\n// {cheat.workspace}\n// [launch]")
        text = text.replace('"]  // args', f'", "{name}"]').replace("/*more*/", f", {cheat.parameter}")
    text = text.replace('"]  // args', '"]').replace("/*more*/", "")
    return text.replace("/*begin*/", cheat.begin).replace("/*end*/", cheat.end)


HEADER = """// /// tunesmith
// [params]
// LOCAL = [16, 32]
// [default]
// LOCAL = 16
// [launch]
// grid  = ["{grid}"]
// block = ["LOCAL"]
// args = [{args}"]  // args
// ///
"""


def header(grid: str, *args: str) -> str:
    return HEADER.format(grid=grid, args=", ".join(f'"{a}"' for a in args)[:-1])


RMSNORM = (
    header("ceildiv(rows, LOCAL)", "out", "input", "weight", "eps", "rows", "d")
    + """__kernel void rmsnorm(__global float *out, __global const float *input, __global const float *weight,
                      float eps, int rows, int d/*more*/)
{
    size_t row = get_global_id(0);
    if (row >= rows)
        return;
    __global const float *from = input + row * d;
    __global float *to = out + row * d;
    float sum = 0.0f;
    /*begin*/
    for (int i = 0; i < d; i++)
        sum += from[i] * from[i];
    float scale = 1.0f / sqrt(sum / d + eps);
    for (int i = 0; i < d; i++)
        to[i] = from[i] * scale * weight[i];
    /*end*/
}
"""
)
GROUPS = (
    header("rows", "out", "input", "weight", "eps", "rows", "d")
    + """__kernel void rmsnorm(__global float *out, __global const float *input, __global const float *weight,
                      float eps, int rows, int d/*more*/)
{
    __local float sums[LOCAL];
    int lane = get_local_id(0);
    size_t row = get_group_id(0);
    __global const float *from = input + row * d;
    __global float *to = out + row * d;
    /*begin*/
    float sum = 0.0f;
    for (int i = lane; i < d; i += LOCAL)
        sum += from[i] * from[i];
    sums[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    float total = 0.0f;
    for (int i = 0; i < LOCAL; i++)
        total += sums[i];
    float scale = 1.0f / sqrt(total / d + eps);
    for (int i = lane; i < d; i += LOCAL)
        to[i] = from[i] * scale * weight[i];
    /*end*/
}
"""
)
SILU = (
    header("ceildiv(tokens * d, LOCAL)", "out", "input", "tokens", "d")
    + """__kernel void silu_and_mul(__global float *out, __global const float *input, int tokens,
                           int d/*more*/)
{
    size_t at = get_global_id(0);
    if (at >= (size_t)tokens * d)
        return;
    size_t row = at / d, column = at % d;
    float x = input[row * 2 * d + column], gate = input[row * 2 * d + d + column];
    /*begin*/
    out[at] = x / (1.0f + exp(-x)) * gate;
    /*end*/
}
"""
)
SOFTMAX = (
    header("ceildiv(rows, LOCAL)", "out", "input", "rows", "d")
    + """__kernel void softmax(__global float *out, __global const float *input, int rows, int d/*more*/)
{
    size_t row = get_global_id(0);
    if (row >= rows)
        return;
    __global const float *from = input + row * d;
    __global float *to = out + row * d;
    float largest = -INFINITY, sum = 0.0f;
    /*begin*/
    for (int i = 0; i < d; i++)
        largest = fmax(largest, from[i]);
    for (int i = 0; i < d; i++)
        sum += exp(from[i] - largest);
    for (int i = 0; i < d; i++)
        to[i] = exp(from[i] - largest) / sum;
    /*end*/
}
"""
)
QUANT = (
    header("ceildiv(rows, LOCAL)", "x", "q", "scale", "rows", "d")
    + """__kernel void quant_rows(__global const float *x, __global char *q, __global float *scale,
                         int rows, int d/*more*/)
{
    size_t row = get_global_id(0);
    if (row >= rows)
        return;
    __global const float *from = x + row * d;
    /*begin*/
    float most = 0.0f;
    for (int i = 0; i < d; i++)
        most = max(most, fabs(from[i]));
    float inverse = most > 0.0f ? 127.0f / most : 0.0f;
    for (int i = 0; i < d; i++)
        q[row * d + i] = convert_char_sat_rte(from[i] * inverse);
    scale[row] = most / 127.0f;
    /*end*/
}
"""
)
ADD = (
    header("ceildiv(n, LOCAL)", "sum", "x", "n")
    + """__kernel void add_into(__global float *sum, __global const float *x, int n/*more*/)
{
    int at = get_global_id(0);
    if (at >= n)
        return;
    /*begin*/
    sum[at] += x[at];
    /*end*/
}
"""
)
HONEST = {"rmsnorm": RMSNORM, "silu": SILU, "softmax": SOFTMAX, "quant": QUANT, "add": ADD}
HONEST |= {"groups": GROUPS, "tall": SILU, "warm": RMSNORM}
ADD_PROBLEM = """
name = "add_into"
[kernel]
source = "kernel.cl"
entry = "add_into"
language = "opencl"
[[argument]]
name = "sum"
type = "float32*"
shape = ["n"]
role = "inout"
[[argument]]
name = "x"
type = "float32*"
shape = ["n"]
role = "input"
[[argument]]
name = "n"
type = "int32"
value = "n"
[launch]
grid = ["ceildiv(n, 16)"]
block = ["16"]
[contract]
n = { min = 1, max = 4000 }
[workloads]
usual = { n = 2048 }
[accuracy]
reference = "reference.py:add_into"
rtol = 1e-6
atol = 1e-6
"""
ADD_KERNEL = """__kernel void add_into(__global float *sum, __global const float *x, int n)
{
    int at = get_global_id(0);
    if (at < n)
        sum[at] += x[at];
}
"""
ADD_FILES = {"kernel.cl": ADD_KERNEL, "reference.py": "def add_into(sum, x):\n    return sum + x\n"}
# Where each is small: the largest of each size, and the workloads.
SMALL = {
    "rmsnorm": ("examples/opencl/rmsnorm", (600, 600), ((64, 256), (48, 300))),
    "groups": ("examples/opencl/rmsnorm", (600, 600), ((64, 256),)),
    "silu": ("examples/opencl/silu_and_mul", (600, 600), ((64, 256), (33, 300))),
    "softmax": ("examples/opencl/softmax", (300, 600), ((64, 256),)),
    "quant": ("tests/fixtures/zoo/cl_int8_quant", (300, 600), ((64, 256),)),
    "tall": ("examples/opencl/silu_and_mul", (80_000, 16), ((4096, 16),)),
    "warm": ("examples/opencl/rmsnorm", (64, 8192), ((4, 8192),)),
    "tiny": ("examples/opencl/rmsnorm", (40, 80), ((24, 64),)),  # of the quick ones, whose texts are its own
}


@cache
def problem(base: str) -> Problem:
    if base == "add":
        return parse_problem(ADD_PROBLEM, path="problem.toml", read=ADD_FILES.__getitem__)
    folder, most, workloads = SMALL[base]
    whole = problems.load_problem(ROOT / folder / "problem.toml")[0]
    sizes = tuple(replace(rule, max=limit) for rule, limit in zip(whole.contract.sizes, most, strict=True))
    cache_state: Literal["cold", "warm"] = "warm" if base in ("warm", "tiny") else "cold"
    chosen = tuple(
        replace(
            whole.workloads[i],
            sizes=tuple(zip(whole.size_names, values, strict=True)),
            cache=cache_state,
        )
        for i, values in enumerate(workloads)
    )
    return replace(whole, contract=replace(whole.contract, sizes=sizes), workloads=chosen)
