"""A total that the reader makes up for an OpenCL kernel is in words that OpenCL has."""

from __future__ import annotations

from tests.expert.model.kernels import lifted
from tunesmith.csource.printing import print_expr, print_statements
from tunesmith.expert.model.kernel import Each
from tunesmith.problem.problem_file import parse_problem

KERNEL = """
__kernel void row_max(__global float *out, __global const float *a, int rows)
{
    __local float partial[64];
    const int lane = get_local_id(0);
    const int row = get_group_id(0);
    partial[lane] = a[(size_t)row * 64 + lane];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = 32; s > 0; s >>= 1) {
        if (lane < s)
            partial[lane] = fmax(partial[lane], partial[lane + s]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0)
        out[row] = partial[0];
}
"""
PROBLEM = """
name = "row_max"
[kernel]
source = "kernel.cl"
entry = "row_max"
language = "opencl"
[[argument]]
name = "out"
type = "float32*"
shape = ["rows"]
role = "output"
[[argument]]
name = "a"
type = "float32*"
shape = ["rows", "64"]
role = "input"
[[argument]]
name = "rows"
type = "int32"
value = "rows"
[launch]
grid = ["rows"]
block = ["64"]
[contract]
rows = { min = 1, max = 65535 }
[workloads]
some = { rows = 512 }
[accuracy]
rtol = 1e-6
atol = 1e-6
"""


def test_a_maximum_over_an_element_each_is_joined_by_a_function_of_opencl() -> None:
    kernel = lifted(parse_problem(PROBLEM, path="problem.toml", read=lambda name: KERNEL))
    (loop,) = (step for step in kernel.steps if isinstance(step, Each))
    (total,) = loop.totals
    assert total.combine == "fmax"
    assert print_expr(total.start) == "-as_float(0x7f800000)"
    assert "= fmax(" in print_statements(loop.body, 0, "opencl")
