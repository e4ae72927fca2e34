"""Knobs of whole kernels beyond reading: found, followed into the launch, by default the same code."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.cuda_here import needs_nvrtc
from tests.expert.knobs.problems import CUDA, H200, NAMES, opened, problem_of
from tests.expert.writing.emulator import needs_emulator, run
from tests.running import FIXTURES
from tunesmith.backends.cuda.compile import build
from tunesmith.backends.messages import Draw
from tunesmith.expert.author import ExpertAuthor, read
from tunesmith.lab.builders import unit_of
from tunesmith.lab.references import draw_inputs
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import element_type
from tunesmith.problem.template import Variant, configs_of, original
from tunesmith.run.ports import Refactoring, Written
from tunesmith.session.problems import load_problem
from tunesmith.space.params import Config

# What each is opened by, and how its launch follows: grid, block, shared memory.
EXPECTED = {
    "argmin_pairs": ({"KNOB_NT": 256}, ["rows"], ["KNOB_NT"], None),
    "bitonic_rows": ({"KNOB_THREADS": 128}, ["rows"], ["KNOB_THREADS"], None),
    "cl_matmul_tile": (
        {"KNOB_TILE": 8},
        ["ceildiv(n, KNOB_TILE)", "ceildiv(m, KNOB_TILE)"],
        ["KNOB_TILE", "KNOB_TILE"],
        None,
    ),
    "cl_scan_chunks": ({"KNOB_CHUNK": 64}, ["rows"], ["KNOB_CHUNK"], None),
    "conv_halo": (
        {"KNOB_BLOCK": 128, "KNOB_ITEMS": 4},
        ["ceildiv(n, KNOB_BLOCK * KNOB_ITEMS)"],
        ["KNOB_BLOCK"],
        "(KNOB_BLOCK * KNOB_ITEMS + 2 * 8) * 4",
    ),
    "dot_two_steps": ({"KNOB_BLOCK": 256}, ["512"], ["KNOB_BLOCK"], None),
    "hip_transpose": (
        {"KNOB_kTile": 32, "KNOB_kRows": 8},
        ["ceildiv(width, KNOB_kTile)", "ceildiv(height, KNOB_kTile)"],
        ["KNOB_kTile", "KNOB_kRows"],
        None,
    ),
    "histogram_private": (
        {"KNOB_THREADS": 128, "KNOB_PER_THREAD": 16, "KNOB_UNROLL": 4},
        ["ceildiv(n, KNOB_THREADS * KNOB_PER_THREAD)"],
        ["KNOB_THREADS"],
        None,
    ),
    "nbody_tile": ({"KNOB_TILE": 64, "KNOB_UNROLL": 4}, ["ceildiv(n, KNOB_TILE)"], ["KNOB_TILE"], None),
    "row_moments": (
        {"KNOB_BLOCK_THREADS": 256, "KNOB_ITEMS": 1},
        ["rows"],
        ["KNOB_BLOCK_THREADS"],
        None,
    ),
    "scan_rows": ({"KNOB_BLOCK": 256}, ["rows"], ["KNOB_BLOCK"], None),
    "sgemm_blocked": (
        {"KNOB_BM": 32, "KNOB_BN": 32, "KNOB_BK": 8, "KNOB_TM": 2, "KNOB_TN": 2},
        ["ceildiv(n, KNOB_BN)", "ceildiv(m, KNOB_BM)"],
        ["KNOB_BM // KNOB_TM * (KNOB_BN // KNOB_TN)"],
        None,
    ),
    "stencil_tile": (
        {"KNOB_TX": 16, "KNOB_TY": 16},
        ["(nx + (KNOB_TX - 1)) // KNOB_TX", "(ny + (KNOB_TY - 1)) // KNOB_TY"],
        ["KNOB_TX", "KNOB_TY"],
        None,
    ),
    "transpose_padded": (
        {"KNOB_TILE_DIM": 32, "KNOB_BLOCK_ROWS": 8},
        ["ceildiv(width, KNOB_TILE_DIM)", "ceildiv(height, KNOB_TILE_DIM)"],
        ["KNOB_TILE_DIM", "KNOB_BLOCK_ROWS"],
        None,
    ),
}


READ = (
    "cl_matmul_tile",
    "conv_halo",
    "hip_transpose",
    "nbody_tile",
    "stencil_tile",
    "transpose_padded",
)  # as tiles


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.few(4)
def test_knobs_are_found_and_followed_into_the_launch(name: str) -> None:
    problem = problem_of(name)
    assert isinstance(read(problem), str) == (name not in READ)
    _, template = opened(problem)
    launch = template.launches[0]
    found = (
        template.default.as_dict(),
        [e.text for e in launch.grid],
        [e.text for e in launch.block],
        launch.shared.text if launch.shared is not None else None,
    )
    assert found == EXPECTED[name]


def test_both_launches_follow_a_constant_that_they_share() -> None:
    _, template = opened(problem_of("dot_two_steps"))
    assert [launch.entry for launch in template.launches] == ["dot_parts", "dot_total"]
    assert [launch.block[0].text for launch in template.launches] == ["KNOB_BLOCK", "KNOB_BLOCK"]


def test_entries_take_template_arguments_from_parameters() -> None:
    _, template = opened(problem_of("sgemm_blocked"))
    names = ", ".join(f"{{KNOB_{name}}}" for name in ("BM", "BN", "BK", "TM", "TN"))
    assert template.launches[0].entry == f"sgemm_blocked<{names}>"


def test_what_the_code_asserts_is_required() -> None:
    problem = problem_of("sgemm_blocked")
    _, template = opened(problem)
    legal = configs_of(problem, template, H200)
    default = template.default
    assert default in legal
    assert default.replace("KNOB_TN", 4) in legal
    large = {"KNOB_BN": 128, "KNOB_TM": 8, "KNOB_TN": 8}  # 64 threads do not load rows of 128 elements whole
    assert Config.of({**default.as_dict(), **large}) not in legal
    assert Config.of({**default.as_dict(), **large, "KNOB_BM": 64}) in legal
    # The bitonic network's are conditions on one knob: its domain has no other values.
    _, bitonic = opened(problem_of("bitonic_rows"))
    assert bitonic.space.params[0].values == (32, 64, 128, 256)
    _, transpose = opened(problem_of("transpose_padded"))
    assert "KNOB_TILE_DIM % KNOB_BLOCK_ROWS == 0" in [c.expr.text for c in transpose.space.constraints]


def test_only_definitions_change() -> None:
    for name in ("transpose_padded", "scan_rows", "nbody_tile", "stencil_tile"):
        problem = problem_of(name)
        written, template = opened(problem)
        text = written.text[written.text.index("#endif\n//") + len("#endif\n") :]
        for param, value in template.default.items:
            text = text.replace(param, str(value))
        assert text == problem.kernel.text


def test_a_kernel_that_is_read_shows_its_own_knobs_when_they_alone_are_asked_for() -> None:
    problem = load_problem(FIXTURES / "zoo" / "l2_normalize")[0]
    assert not isinstance(read(problem), str)
    written, template = opened(problem)
    assert written.moves == ("knobs",)
    assert template.launches[0].entry == "l2_normalize<{KNOB_WARPS}>"
    moves, refused = ExpertAuthor().available(problem, H200)
    assert "knobs" not in moves  # what the expert writes of it has choices of its own
    assert "knobs" in dict(refused)
    assert "knobs" in ExpertAuthor().available(problem_of("nbody_tile"), H200)[0]


def test_values_that_the_gate_found_wrong_are_left_out() -> None:
    task = Refactoring(("knobs",), (("KNOB_TILE", 256),))
    written = ExpertAuthor().write(task, problem_of("nbody_tile"), H200)
    assert isinstance(written, Written)
    assert "KNOB_TILE   = [32, 64, 96, 128]  #" in written.text
    assert "#define KNOB_TILE 64\n" in written.text


# -- builds --------------------------------------------------------------------------------------------


@needs_nvrtc
@pytest.mark.parametrize("name", CUDA)
@pytest.mark.few(3)
def test_by_default_the_machine_code_is_the_originals(name: str) -> None:
    problem = problem_of(name)
    _, template = opened(problem)
    sizes = problem.workloads[0].as_dict()
    variants = original(problem, sizes), template.render(problem, template.default, sizes)
    first, second = (build(unit_of(variant), H200) for variant in variants)
    assert first.data == second.data


@needs_nvrtc
@pytest.mark.parametrize("name", CUDA)
@pytest.mark.few(1)
def test_other_configurations_build(name: str) -> None:
    problem = problem_of(name)
    _, template = opened(problem)
    legal = configs_of(problem, template, H200)
    sizes = problem.workloads[0].as_dict()
    for place in (0, len(legal) // 2, len(legal) - 1):
        assert build(unit_of(template.render(problem, legal[place], sizes)), H200).data


# -- results -------------------------------------------------------------------------------------------

SMALL = {
    "bitonic_rows": ({"rows": 2}, [{"KNOB_THREADS": 32}, {"KNOB_THREADS": 256}]),
    "histogram_private": (
        {"n": 5000},
        [{"KNOB_THREADS": 96, "KNOB_PER_THREAD": 4}, {"KNOB_PER_THREAD": 32, "KNOB_UNROLL": 1}],
    ),
    "nbody_tile": ({"n": 150}, [{"KNOB_TILE": 32, "KNOB_UNROLL": 8}, {"KNOB_TILE": 96}]),
    "row_moments": (
        {"rows": 2, "cols": 700},
        [{"KNOB_BLOCK_THREADS": 64, "KNOB_ITEMS": 4}, {"KNOB_BLOCK_THREADS": 512}],
    ),
    "scan_rows": ({"rows": 2, "cols": 600}, [{"KNOB_BLOCK": 64}, {"KNOB_BLOCK": 1024}]),
    "sgemm_blocked": (
        {"m": 45, "n": 70, "k": 33},
        [
            {"KNOB_BM": 64, "KNOB_BN": 64, "KNOB_TM": 4, "KNOB_TN": 4},
            {"KNOB_BM": 16, "KNOB_BN": 16, "KNOB_TM": 1, "KNOB_TN": 1, "KNOB_BK": 16},
        ],
    ),
    "stencil_tile": ({"nx": 70, "ny": 37}, [{"KNOB_TX": 32, "KNOB_TY": 4}, {"KNOB_TX": 8, "KNOB_TY": 32}]),
    "transpose_padded": (
        {"width": 70, "height": 45},
        [{"KNOB_TILE_DIM": 16, "KNOB_BLOCK_ROWS": 4}, {"KNOB_TILE_DIM": 64, "KNOB_BLOCK_ROWS": 8}],
    ),
    "argmin_pairs": ({"rows": 2, "cols": 777}, [{"KNOB_NT": 64}, {"KNOB_NT": 512}]),
}


def emulate(
    name: str, variants: list[Variant], sizes: dict[str, int], folder: Path
) -> list[dict[str, bytes]]:
    problem = problem_of(name)
    plans = []
    for variant in variants:
        plan = plan_launch(problem, variant, sizes, H200, None)
        assert isinstance(plan, Plan), plan
        plans.append(plan)
    inputs = draw_inputs(plans[0], Draw("normal", 7, problem.inputs))
    inputs |= {"counts": np.zeros(256, np.uint32)} if name == "histogram_private" else {}
    found = []
    for number, (variant, plan) in enumerate(zip(variants, plans, strict=True)):
        child = os.fork()  # a kernel that waits in vain ends its process
        if child == 0:
            try:
                np.savez(folder / f"{name}-{number}.npz", **run(variant, plan, inputs, folder))
                os._exit(0)
            except BaseException as error:
                print(error)
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0, variant.config
        with np.load(folder / f"{name}-{number}.npz") as told:
            found.append({key: told[key].tobytes() for key in told})
    return found


@needs_emulator
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.few(1)
def test_other_configurations_give_what_the_original_gives(name: str, emulated: Path) -> None:
    problem = problem_of(name)
    _, template = opened(problem)
    sizes, configs = SMALL[name]
    legal = configs_of(problem, template, H200)
    chosen = [Config.of({**template.default.as_dict(), **values}) for values in configs]
    assert all(config in legal for config in chosen)
    variants = [original(problem, sizes), *(template.render(problem, config, sizes) for config in chosen)]
    want, *others = emulate(name, variants, sizes, emulated)
    for got in others:
        for argument in problem.arguments:
            if argument.is_written:
                kind = element_type(argument.type).numpy
                expected, given = (np.frombuffer(one[argument.name], kind) for one in (want, got))
                np.testing.assert_allclose(given, expected, rtol=1e-4, atol=1e-4)
