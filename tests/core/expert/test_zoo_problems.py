"""The zoo: plain kernels of many families and styles, and some in the style of published ones.


They are right themselves.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.core.backends.cuda.builds import built
from tests.core.lab.labs import lab
from tests.cuda_here import needs_nvrtc
from tests.opencl_here import needs_opencl
from tests.running import FIXTURES, tunesmith
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.backends.messages import Refer
from tunesmith.lab.references import compute_expected, draw_of
from tunesmith.problem.cases import HUGE_SHARE, Case, full_cases, verify_cases
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import original_variant
from tunesmith.session.problems import load_problem

HOMES = {
    path.parent.name: path.parent
    for folder in ("zoo", "published")
    for path in (FIXTURES / folder).glob("*/problem.toml")
}
NAMES = sorted(HOMES)
CUDA = [name for name in NAMES if (HOMES[name] / "kernel.cu").exists()]
OPENCL = [name for name in NAMES if (HOMES[name] / "kernel.cl").exists()]
H200 = absent_device("H200")
SMALL = 1 << 20  # bytes that a reference is quick at

every = pytest.mark.parametrize("name", NAMES)


@cache
def read(name: str) -> Problem:
    return load_problem(HOMES[name])[0]


@cache
def cases(name: str) -> tuple[Case, ...]:
    problem = read(name)
    full = full_cases(problem, original_variant(problem), H200, seed=0)
    used = [case.sizes for case in full]
    return (*full, *verify_cases(problem, original_variant(problem), H200, seed=0, used=used))


def planned(name: str, case: Case) -> Plan:
    problem = read(name)
    plan = plan_launch(problem, original_variant(problem), dict(case.sizes), H200, None)
    assert isinstance(plan, Plan), f"{case.where}: {plan}"
    return plan


def test_all_languages_are_there() -> None:
    assert len(CUDA) >= 21
    assert len(OPENCL) >= 5
    assert len(NAMES) - len(CUDA) - len(OPENCL) >= 2


@every
@pytest.mark.few(12)
def test_problems_are_read(name: str) -> None:
    """Reading also holds the arguments against the kernel's own signature."""
    problem = read(name)
    assert 2 <= len(problem.workloads) <= 4
    assert problem.accuracy.reference is not None
    assert {path.name for path in (HOMES[name]).iterdir() if path.is_file()} <= {
        Path(problem.kernel.path).name,
        "problem.toml",
        "reference.py",
        "inputs.py",
    }


@every
@pytest.mark.few(5)
def test_originals_can_be_launched_all_over_the_contract(name: str) -> None:
    taken = {case: planned(name, case).nbytes for case in cases(name)}
    assert max(nbytes for case, nbytes in taken.items() if case.level == "full") <= 128 << 20
    assert sum(nbytes > 192 << 20 for nbytes in taken.values()) <= 1  # beyond 2**31 elements or bytes
    assert max(taken.values()) <= HUGE_SHARE * H200.limits.memory


@every
@pytest.mark.few(5)
def test_references_give_the_shapes_of_the_problem(name: str) -> None:
    problem = read(name)
    small = {case.sizes: case for case in cases(name) if planned(name, case).nbytes <= SMALL}
    assert small
    for case in list(small.values())[:6]:
        plan = planned(name, case)
        draw = draw_of(problem, case)
        expected, _ = compute_expected(
            Refer(problem.accuracy.reference, plan, draw, (), None, (), digests=False)
        )
        assert [array.name for array in expected.arrays] == [buffer.name for buffer in plan.compared()]


@needs_nvrtc
@pytest.mark.parametrize("name", CUDA)
@pytest.mark.few(8)
def test_cuda_kernels_build(name: str) -> None:
    problem = read(name)
    entries = original_variant(problem, problem.workloads[0].as_dict()).entries
    kernel = problem.kernel
    binary = built(kernel.text, *entries, device="H200", flags=kernel.flags, headers=kernel.headers)
    assert not binary.resources.spills


@needs_opencl
@pytest.mark.parametrize("name", OPENCL)
@pytest.mark.few(1)
@pytest.mark.long
def test_opencl_kernels_are_right(name: str) -> None:
    with lab(read(name), spec="opencl", baseline=False) as harness:
        assert harness.lab.check() >= 10


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CUDA)
def test_cuda_kernels_are_right(name: str, tmp_path: Path) -> None:
    ended = tunesmith(tmp_path, "check", HOMES[name], "--json")
    assert ended.code == 0, ended.err or ended.out
    assert ended.json["right"]
