"""Inputs that an expression makes, in every process alike; and what such an expression may not say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.core.lab.kept_scenarios import X
from tests.core.lab.labs import read_problem, scale_problem
from tests.core.lab.oracles import SECONDS, Judges, a_case
from tests.core.lab.python_kernels import Argument, Kernel
from tunesmith.backends.fake import FakeBackend
from tunesmith.backends.messages import Draw
from tunesmith.base.errors import BadInput
from tunesmith.lab.memory import Examined
from tunesmith.lab.references import UserCodeFailed, draw_inputs, linked_inputs
from tunesmith.problem.cases import full_cases
from tunesmith.problem.dispatch import dispatch_argument
from tunesmith.problem.inputs import shaped_view
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import original_variant

TEXT = """name = "gather"
kernel = { source = "kernel.fake", entry = "gather" }
argument = [
  { name = "out", type = "float32*", role = "output", shape = ["rows", "d"] },
  { name = "table", type = "int32*", role = "input", shape = ["rows", "d"], init = "(i1 * 7 + i0) % d" },
  { name = "offsets", type = "int32*", role = "input", shape = ["rows + 1"], init = "i * d" },
  { name = "position", type = "float16*", role = "input", shape = ["rows"], strides = ["2"], init = "i % 3" },
  { name = "mask", type = "uint4*", role = "input", shape = ["rows", "2 * d"], init = "i % 16" },
]
launch = { grid = ["rows"], block = ["32"] }
contract = { rows = { min = 1, max = 8 }, d = { min = 1, max = 64 } }
workloads = { only = { rows = 4, d = 10 } }
"""
FILES = {"kernel.fake": "void gather();", "inputs.py": "def make(rng):\n    return {'offsets': [0]}\n"}


def a_plan(problem: Problem, rows: int = 3, d: int = 5) -> Plan:
    device, sizes = FakeBackend().devices()[0], {"rows": rows, "d": d}
    made = plan_launch(problem, original_variant(problem), sizes, device, None)
    assert isinstance(made, Plan)
    return made


def test_every_element_is_what_its_index_says() -> None:
    problem = read_problem(TEXT, FILES)
    plan = a_plan(problem)
    for seed in (1, 2):
        memory = draw_inputs(plan, Draw("normal", seed))
        arrays = {name: shaped_view(data, plan.buffer(name)) for name, data in memory.items()}
        i0, i1 = np.indices((3, 5))
        assert np.array_equal(arrays["table"], (i1 * 7 + i0) % 5)
        assert arrays["offsets"].tolist() == [0, 5, 10, 15]
        assert arrays["position"].tolist() == [0.0, 1.0, 2.0]
        assert arrays["position"].dtype == np.float16
        assert arrays["mask"].reshape(-1).tolist() == [i % 16 for i in range(30)]


def test_nothing_else_is_drawn_for_them() -> None:
    problem = read_problem(TEXT, FILES)
    cases = full_cases(problem, original_variant(problem), FakeBackend().devices()[0], 1)
    assert {case.distribution for case in cases} == {"normal"}
    assert dispatch_argument(problem.argument("offsets")).init is None, "callers bring it"


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (('"i * d"', '"i * e"'), 6, "unknown name 'e'"),
        (('"i * d"', '"i1 * d"'), 6, "unknown name 'i1'"),
        (('"i * d"', '"i // (d - 10)"'), 6, "'i // (d - 10)' has no value at offsets[0] at workload 'only'"),
        (('"i % 16"', '"i % 17"'), 8, "is no uint4 at mask[0, 16]: allowed is 0 to 15"),
        (('init = "i * d"', 'init = "i * d", values = "zeros"'), 6, "values says how an array is drawn"),
        (('init = "i * d"', 'init = "i", range = [0, 1]'), 6, "range says how an array is drawn"),
        (("d = { min", "i0 = { one_of = [1] }, d = { min"), 5, "no size is called i0"),
    ],
)
def test_faults_have_their_line(change: tuple[str, str], line: int, words: str) -> None:
    workload = "rows = 4, i0 = 1," if "i0 =" in change[1] else "rows = 4,"
    text = TEXT.replace(*change, 1).replace("rows = 4,", workload)
    with pytest.raises(BadInput) as caught:
        read_problem(text, FILES)
    said = f"{caught.value.where}\n{caught.value}"
    assert f"problem.toml:{line}" in said
    assert words in said


def test_a_fault_beyond_the_workloads_is_told_when_it_is_met() -> None:
    text = TEXT.replace('"i * d"', '"i // (d - 5)"')
    plan = a_plan(read_problem(text, FILES))
    with pytest.raises(UserCodeFailed, match=r"init: 'i // 0' has no value at offsets\[0\]"):
        linked_inputs(plan, Draw("normal", 1))


def test_a_function_may_not_make_it_too() -> None:
    problem = read_problem('inputs = "inputs.py:make"\n' + TEXT, FILES)
    with pytest.raises(UserCodeFailed, match="gave offsets, which has an init in the problem file"):
        linked_inputs(a_plan(problem), Draw("normal", 1, problem.inputs))


def test_both_oracles_and_timed_launches_see_the_same() -> None:
    """It is not swapped before a check, as what is drawn is, and a candidate may not change it."""

    def spoils(out: Argument, x: Argument, *_: object) -> None:
        out.of("float32")[:] = 2 * x.of("float32")
        x.of("float32")[5] += 1

    def twice(out: Argument, x: Argument, *_: object) -> None:
        assert np.array_equal(x.of("float32"), np.arange(x.of("float32").size) % 100)
        out.of("float32")[:] = 2 * x.of("float32")

    kernels: dict[str, Kernel] = {"original": twice, "same": twice, "spoils": spoils}
    judges = Judges(scale_problem((X, f'{X}\ninit = "i % 100"')), kernels)
    case = a_case()
    for oracle in (judges.on_the_host(), judges.on_the_device()):
        assert isinstance(oracle.establish(case), float)
        examined = [Examined(case, judges.plan(case), SECONDS)]
        assert oracle.examine(judges.code("same"), examined).ok
        assert "changes the input x" in oracle.examine(judges.code("spoils"), examined).detail


def test_what_the_sizes_say_is_numbers_in_a_plan() -> None:
    buffer = a_plan(read_problem(TEXT, FILES)).buffer("table")
    assert buffer.formula == "(i1 * 7 + i0) % 5"
    assert replace(buffer, formula="") != buffer
