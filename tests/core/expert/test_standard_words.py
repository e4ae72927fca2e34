"""Kernels in the words of the standard's headers are read, written and built without the host's headers."""

from __future__ import annotations

import pytest

from tests.core.expert.moves.kernels import problem
from tests.core.expert.write.building import build_all, configurations, read, variant
from tests.core.expert.write.models import ROWS
from tests.cuda_here import needs_nvrtc
from tunesmith.expert.read.lift import lift_kernel
from tunesmith.expert.read.model import Each, KernelModel, TemplateDraft
from tunesmith.expert.write import render_draft

SIGNATURE = "out: float32*[rows, d]; x: float32*[rows, d]; rows: int32 = rows; d: int32 = d"
SOURCE = """{head}
extern "C" __global__ void it(float *out, const float *x, {type} rows, {type} d)
{{
    __shared__ float warps[32];
    const {type} row = blockIdx.x;
    float most = {least};
    for ({type} i = threadIdx.x; i < d; i += blockDim.x)
        most = {larger}(most, x[row * d + i]);
    for (int lane = 16; lane > 0; lane /= 2)
        most = {larger}(most, __shfl_xor_sync(0xffffffffu, most, lane));
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = most;
    __syncthreads();
    most = {least};
    for (int w = 0; w < blockDim.x / 32; w++)
        most = {larger}(most, warps[w]);
    for ({type} i = threadIdx.x; i < d; i += blockDim.x)
        out[row * d + i] = expf(x[row * d + i] - most);
}}
"""


@needs_nvrtc
@pytest.mark.parametrize(
    ("headers", "type_", "least", "larger"),
    [
        ((), "int", "-INFINITY", "fmaxf"),
        (("cfloat", "cstdint"), "uint32_t", "-FLT_MAX", "fmaxf"),
        (("float.h", "stdint.h"), "int32_t", "-FLT_MAX", "fmaxf"),
        (("cmath", "algorithm"), "int", "-INFINITY", "std::max"),
        (("limits", "cmath"), "int", "-std::numeric_limits<float>::infinity()", "std::fmax"),
    ],
)
@pytest.mark.few(1)
def test_a_maximum_is_a_total(headers: tuple[str, ...], type_: str, least: str, larger: str) -> None:
    head = "\n".join(f"#include <{name}>" for name in headers)
    given = problem(SIGNATURE, source=SOURCE.format(head=head, type=type_, least=least, larger=larger))
    kernel = lift_kernel(given)
    assert isinstance(kernel, KernelModel), kernel.reason
    (total,) = [total for step in kernel.steps if isinstance(step, Each) for total in step.totals]
    assert total.operator == "max"
    template = read(render_draft(TemplateDraft(kernel, ROWS), given), given)
    made = [variant(template, given, config) for config in configurations(template, given)[:6]]
    for result in build_all(made):
        assert not isinstance(result, Exception), result
