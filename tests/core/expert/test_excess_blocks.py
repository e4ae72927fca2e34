"""Launches with far more threads than the kernel uses are told, and no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.expert.read.kernels import row_problem
from tests.running import EXAMPLES, FIXTURES
from tests.wording import says
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.expert.author import excess_block_notes
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.session.problems import load_problem
from tunesmith.session.roles import launch_notes
from tunesmith.space.expr import parse_expr

H200 = absent_device("H200")
SHIPPED = sorted(path.parent for root in (EXAMPLES, FIXTURES) for path in root.glob("**/problem.toml"))

ONE_AXIS = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i] * 2.0f;"


@pytest.mark.parametrize("folder", SHIPPED, ids=[folder.name for folder in SHIPPED])
@pytest.mark.few(5)
def test_what_is_shipped_has_none(folder: Path) -> None:
    assert excess_block_notes(load_problem(folder)[0], H200) == ()


def test_a_bug_in_the_expert_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_problem: Problem, _device: Device) -> tuple[str, ...]:
        raise KeyError("nowhere")

    monkeypatch.setattr("tunesmith.expert.author.excess_block_notes", broken)
    (note,) = launch_notes(row_problem(ONE_AXIS, block=["64"]), H200)
    assert note.startswith("the expert failed, which is a bug in Tunesmith: KeyError: 'nowhere'")


def test_words_of_opencl() -> None:
    problem = load_problem(EXAMPLES / "opencl" / "silu_and_mul")[0]
    launch = replace(problem.launches[0], grid=(parse_expr("tokens * d"),))
    (note,) = excess_block_notes(replace(problem, launches=(launch,)), H200)
    says(note, "256 times the work-items", "similarly at prefill, ragged")
    says(note, "work-groups, not work-items", '"tokens * d" is meant as "ceildiv(tokens * d, 256)"')
