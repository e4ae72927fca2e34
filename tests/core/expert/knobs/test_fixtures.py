"""Knobs of whole kernels beyond reading: found, followed into the launch, by default the same code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.expert.knobs.problems import CUDA, H200, opened, problem_of
from tests.core.expert.write.comparing import alike
from tests.core.expert.write.emulator import needs_emulator
from tests.cuda_here import needs_nvrtc
from tests.running import FIXTURES
from tunesmith.backends.cuda.compile import build_cubin
from tunesmith.expert.author import ExpertAuthor, try_read_kernel
from tunesmith.lab.build import unit_of
from tunesmith.problem.template import configs_of, original_variant
from tunesmith.run.ports import Refactoring, Written
from tunesmith.session.problems import load_problem
from tunesmith.space.configset import Config


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
    assert not isinstance(try_read_kernel(problem), str)
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


@needs_nvrtc
@pytest.mark.parametrize("name", CUDA)
@pytest.mark.few(3)
def test_by_default_the_machine_code_is_the_originals(name: str) -> None:
    problem = problem_of(name)
    _, template = opened(problem)
    sizes = problem.workloads[0].as_dict()
    variants = original_variant(problem, sizes), template.render(problem, template.default, sizes)
    first, second = (build_cubin(unit_of(variant), H200) for variant in variants)
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
        assert build_cubin(unit_of(template.render(problem, legal[place], sizes)), H200).data


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
    for config in chosen:
        alike(problem, template.render(problem, config, sizes), sizes, emulated)
