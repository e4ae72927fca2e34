"""Launches with far more threads than the kernel uses are told, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.expert.model.kernels import lifted, row_problem
from tests.running import EXAMPLES, FIXTURES
from tests.wording import says
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.expert.excess_blocks import ExcessBlocks, excess_block_notes, excess_blocks
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem, Workload
from tunesmith.session.problems import load_problem
from tunesmith.session.strategies.casting import launch_notes
from tunesmith.space.expr import parse

H200 = absent_device("H200")
SHIPPED = sorted(path.parent for root in (EXAMPLES, FIXTURES) for path in root.glob("**/problem.toml"))

ROWS = "int i = blockIdx.x * blockDim.x + threadIdx.x; int r = blockIdx.y * blockDim.y + threadIdx.y;"
TWO_AXES = f"{ROWS} if (i >= d || r >= rows) return; out[r * d + i] = x[r * d + i];"
FLAT = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
ONE_AXIS = f"{FLAT} if (i < rows * d) out[i] = x[i] * 2.0f;"
STRIDE = "i += gridDim.x * blockDim.x"
LOOP = f"for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d; {STRIDE}) out[i] = x[i];"


def launched(body: str, grid: Sequence[str], block: Sequence[str], *sizes: tuple[int, int]) -> Problem:
    """With a workload for each pair of rows and d."""
    made = row_problem(body, grid=grid, block=block)
    workloads = tuple(
        Workload(f"r{rows}_d{d}", (("rows", rows), ("d", d))) for rows, d in sizes or [(64, 16384)]
    )
    return replace(made, workloads=workloads)


def found(
    body: str, grid: Sequence[str], block: Sequence[str], *sizes: tuple[int, int]
) -> list[ExcessBlocks]:
    problem = launched(body, grid, block, *sizes)
    return list(excess_blocks(problem, lifted(problem), H200))


class TestToldOf:
    def test_a_grid_that_counts_threads(self) -> None:
        (one,) = found(TWO_AXES, ["d", "rows"], ["64"])
        assert (one.workload, one.launched, one.enough) == ("r64_d16384", 64 << 20, 1 << 20)
        assert one.meant == (("d", "ceildiv(d, 64)"),)

    def test_axes_that_are_both_too_long(self) -> None:
        (one,) = found(TWO_AXES, ["d", "rows"], ["16", "4"])
        assert one.times == 64
        assert one.meant == (("d", "ceildiv(d, 16)"), ("rows", "ceildiv(rows, 4)"))

    def test_two_factors_that_are_small_by_themselves(self) -> None:
        (one,) = found(TWO_AXES, ["d", "rows"], ["4", "4"])
        assert one.times == 16
        assert found(TWO_AXES, ["d", "ceildiv(rows, 4)"], ["4", "4"]) == []

    def test_loops_over_the_grid(self) -> None:
        (one,) = found(LOOP, ["rows * d"], ["128"])
        assert one.times == 128
        assert one.meant == (("rows * d", "ceildiv(rows * d, 128)"),)

    def test_blocks_that_each_take_a_row(self) -> None:
        body = (
            "int r = blockIdx.x; if (r >= rows) return; float s = 0.0f; __shared__ float all[256];"
            "for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[r * d + i];"
            "all[threadIdx.x] = s; __syncthreads();"
            "for (int w = 128; w > 0; w >>= 1) { if (threadIdx.x < w) all[threadIdx.x] += "
            "all[threadIdx.x + w]; __syncthreads(); }"
            "for (int i = threadIdx.x; i < d; i += blockDim.x) out[r * d + i] = x[r * d + i] / all[0];"
        )
        assert found(body, ["rows"], ["256"]) == []
        (one,) = found(body, ["rows * 256"], ["256"])
        assert (one.times, one.meant) == (256, ())

    def test_the_part_of_a_kernel_that_uses_most(self) -> None:
        """Vectors and the rest: the first loop has a quarter of the threads to itself, not all of them."""
        body = (
            "int n = rows * d; int fours = n / 4; int first = blockIdx.x * blockDim.x + threadIdx.x;"
            f"for (int i = first; i < fours; {STRIDE}) "
            "((float4 *)out)[i] = ((const float4 *)x)[i];"
            f"for (int i = fours * 4 + first; i < n; {STRIDE}) out[i] = x[i];"
        )
        assert found(body, ["ceildiv(rows * d, 128)"], ["128"]) == []
        (one,) = found(body, ["rows * d"], ["128"])
        assert one.times == 512

    def test_the_workloads_where_it_is_so(self) -> None:
        grid = ["rows * d if rows > 8 else ceildiv(rows * d, 64)"]
        sizes = (8, 4096), (16, 4096), (32, 1024)
        assert [one.workload for one in found(ONE_AXIS, grid, ["64"], *sizes)] == ["r16_d4096", "r32_d1024"]


class TestNotToldOf:
    @pytest.mark.parametrize("sizes", [(64, 16384), (1, 1), (3, 5)])
    def test_launches_that_fit(self, sizes: tuple[int, int]) -> None:
        """One thread of a block is enough to need it."""
        assert found(ONE_AXIS, ["ceildiv(rows * d, 1024)"], ["1024"], sizes) == []
        assert found(TWO_AXES, ["ceildiv(d, 32)", "ceildiv(rows, 32)"], ["32", "32"], sizes) == []

    def test_a_few_idle_blocks(self) -> None:
        assert found(ONE_AXIS, ["round_up(ceildiv(rows * d, 256), 16)"], ["256"], (1, 1)) == []

    def test_loops_with_as_many_blocks_as_the_device_wants(self) -> None:
        assert found(LOOP, ["device.sms * 8"], ["256"], (1, 64)) == []

    def test_what_nothing_bounds(self) -> None:
        assert found(f"{FLAT} out[i] = x[i];", ["rows * d // 64"], ["64"]) == []

    def test_what_cannot_be_read(self) -> None:
        body = f"{FLAT} if (i < rows * d) out[i] = i ? out[i - 1] : x[i];"
        assert excess_block_notes(launched(body, ["rows * d"], ["64"]), H200) == ()

    @pytest.mark.parametrize("folder", SHIPPED, ids=[folder.name for folder in SHIPPED])
    @pytest.mark.few(5)
    def test_what_is_shipped(self, folder: Path) -> None:
        assert excess_block_notes(load_problem(folder)[0], H200) == ()


def test_a_bug_in_the_expert_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_problem: Problem, _device: Device) -> tuple[str, ...]:
        raise KeyError("nowhere")

    monkeypatch.setattr("tunesmith.expert.excess_blocks.excess_block_notes", broken)
    (note,) = launch_notes(launched(ONE_AXIS, ["rows"], ["64"]), H200)
    assert note.startswith("the expert failed, which is a bug in Tunesmith: KeyError: 'nowhere'")


class TestWords:
    def test_of_cuda(self) -> None:
        (note,) = excess_block_notes(launched(TWO_AXES, ["d", "rows"], ["64"]), H200)
        says(note, "r64_d16384", "64 times the threads", "67108864", "1048576 are enough")
        says(note, "blocks, not threads", '"d" is meant as "ceildiv(d, 64)"')
        assert "similarly" not in note

    def test_of_opencl(self) -> None:
        problem = load_problem(EXAMPLES / "opencl" / "silu_and_mul")[0]
        launch = replace(problem.launches[0], grid=(parse("tokens * d"),))
        (note,) = excess_block_notes(replace(problem, launches=(launch,)), H200)
        says(note, "256 times the work-items", "similarly at prefill, ragged")
        says(note, "work-groups, not work-items", '"tokens * d" is meant as "ceildiv(tokens * d, 256)"')

    def test_of_a_grid_with_no_likely_meaning_and_of_many_workloads(self) -> None:
        sizes = [(rows, 4096) for rows in (16, 17, 18, 19, 20)]
        (note,) = excess_block_notes(launched(ONE_AXIS, ["rows * d * 3"], ["32"], *sizes), H200)
        says(note, "4 other workloads", "blocks, not threads", "see whether")
        assert "is meant as" not in note
