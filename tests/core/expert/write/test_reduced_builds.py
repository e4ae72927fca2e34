"""What the expert writes, reduced to what won, is the same machine code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.expert.write.building import build_all, configurations, read, variant
from tests.cuda_here import needs_nvrtc
from tests.running import EXAMPLES
from tests.samples import a_device
from tunesmith.backends.port import KernelBinary
from tunesmith.expert.author import ExpertAuthor
from tunesmith.expert.moves import PARAMETERS
from tunesmith.problem.problem import Problem
from tunesmith.problem.reduced import as_reduced, reduce_template
from tunesmith.problem.template import Template
from tunesmith.run.ports import Refactoring, Written
from tunesmith.session.problems import load_problem
from tunesmith.source.preprocess import preprocess
from tunesmith.space.configset import Config

CUDA = (
    "rmsnorm",
    "silu_and_mul_vector",
    "fused_add_rmsnorm",
    "merge_attn_states_lse",
    "per_token_group_quant_fp8",
    "rotary_embedding",
    "silu_and_mul",
)


def searched(name: str) -> tuple[Problem, Template]:
    problem = load_problem(Path(EXAMPLES) / name / "problem.toml").definition
    written = ExpertAuthor().write(Refactoring(tuple(PARAMETERS)), problem, a_device(capability=90))
    assert isinstance(written, Written)
    return problem, read(written.text, problem)


def some_winners(template: Template, problem: Problem, seed: int) -> list[Config]:
    """Two that agree in most of their choices, some of them far from the default."""
    legal = configurations(template, problem, pairs=40, seed=seed)
    one = legal[-1]
    alike = [other for other in legal if 0 < len(set(other.items) - set(one.items)) <= 12]
    return [one, min(alike, key=lambda other: len(set(other.items) - set(one.items)))] if alike else [one]


@needs_nvrtc
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", CUDA)
@pytest.mark.few(1)
def test_it_is_the_machine_code_that_won(name: str, seed: int) -> None:
    problem, whole = searched(f"cuda/{name}")
    winners = some_winners(whole, problem, seed)
    small = reduce_template(whole, problem, winners)
    assert len(small.source) < len(whole.source)
    made = [variant(whole, problem, config) for config in winners]
    made += [variant(small, problem, as_reduced(config, small)) for config in winners]
    builds = build_all(made)
    for one in builds:
        assert isinstance(one, KernelBinary), one
    data = [one.data for one in builds if isinstance(one, KernelBinary)]
    assert data[: len(winners)] == data[len(winners) :]


@pytest.mark.parametrize("name", ["rmsnorm", "softmax", "silu_and_mul"])
@pytest.mark.few(1)
def test_in_opencl_the_kernel_is_word_for_word_the_one_that_won(name: str) -> None:
    problem, whole = searched(f"opencl/{name}")
    winners = some_winners(whole, problem, 1)
    small = reduce_template(whole, problem, winners)
    for config in winners:
        before, after = (
            [t.text for t in preprocess(variant(t, problem, c).source, "opencl").tokens]
            for t, c in ((whole, config), (small, as_reduced(config, small)))
        )
        entry = problem.launches[0].entry
        assert before[before.index(entry) :] == after[after.index(entry) :]
        assert set(after) <= set(before)
