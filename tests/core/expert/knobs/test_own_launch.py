"""Kernels without a constant to open: the block that rows cut short, grids that show the block in a factor or
in a number of their own, kernels whose name a macro makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.expert.knobs.problems import H200, made, opened
from tests.core.expert.write.comparing import alike, planned
from tests.core.expert.write.emulator import needs_emulator
from tests.cuda_here import needs_nvrtc
from tunesmith.backends.cuda.compile import build_cubin
from tunesmith.expert.knobs.values import Bounds, cap_of, cap_values, without_cap
from tunesmith.lab.build import unit_of
from tunesmith.problem.template import configs_of, original_variant
from tunesmith.space.expr import Variable, parse_expr


@pytest.mark.parametrize(
    ("text", "cap"),
    [
        ("min(n, 1024)", 1024),
        ("min(512, n // 8)", 512),
        ("min(n, 1024) // 2", 1024),
        ("round_up(min(n, 256), 32)", 256),
        ("max(min(n, 256), 32)", 256),
        ("n", 0),
        ("round_up(n, 32)", 0),
        ("min(n, m)", 0),
        ("256", 0),
    ],
)
def test_the_number_that_cuts_a_block_short_is_found(text: str, cap: int) -> None:
    found = cap_of(parse_expr(text).tree)
    assert (found[1] if found is not None else 0) == cap


def test_a_cap_has_the_values_that_workloads_come_to() -> None:
    key, nodes = Variable("K"), [parse_expr("min(d, K)").tree]
    assert cap_values(key, 1024, nodes, [{"d": 4096}], Bounds(1024, 32, warp=32)) == (256, 512, 768, 1024)
    # Rows of 256: caps of 256 and more are all the same.
    assert cap_values(key, 1024, nodes, [{"d": 256}], Bounds(1024, 32, warp=32)) == (64, 128, 192, 1024)
    assert cap_values(key, 1024, nodes, [{"d": 96}], Bounds(1024, 32, warp=32)) == (1024,)
    assert cap_values(key, 256, nodes, [{"d": 64}, {"d": 320}], Bounds(1024, 32, warp=32)) == (
        64, 128, 192, 256, 384,
    )  # fmt: skip
    assert without_cap(parse_expr("2 * min(d, K)").tree, key) == parse_expr("2 * K").tree


SCALED = made(
    """\
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float part[1024];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += x[i] * x[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int i = 0; i < blockDim.x; i++)
        sum += part[i];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = x[i] / sqrtf(sum);
}
""",
    "1",
    "min(n, 1024)",
)


@needs_nvrtc
@pytest.mark.long
def test_a_kernel_with_another_cap_builds() -> None:
    _, template = opened(SCALED)
    legal = configs_of(SCALED, template, H200)
    assert [config.as_dict()["KNOB_BLOCK_X"] for config in legal] == [256, 512, 768, 1024]
    sizes = SCALED.workloads[0].as_dict()
    assert build_cubin(unit_of(template.render(SCALED, legal[0], sizes)), H200).data


@needs_nvrtc
@pytest.mark.long
def test_with_its_own_cap_it_is_the_original() -> None:
    _, template = opened(SCALED)
    sizes = SCALED.workloads[0].as_dict()
    variants = original_variant(SCALED, sizes), template.render(SCALED, template.default, sizes)
    first, second = (build_cubin(unit_of(variant), H200).data for variant in variants)
    assert first == second


@needs_emulator
@pytest.mark.long
def test_another_cap_gives_the_same(emulated: Path) -> None:
    _, template = opened(SCALED)
    sizes = {"n": 700}
    made = template.render(SCALED, template.default.replace("KNOB_BLOCK_X", 256), sizes)
    assert [launch.block[0] for launch in planned(SCALED, made, sizes).launches] == [256]
    alike(SCALED, made, sizes, emulated)
