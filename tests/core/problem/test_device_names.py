"""`device.*` in a contract and in arguments: numbers of the device wherever one is known, and on what is
delivered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.lab.labs import read_problem
from tunesmith.backends.fake import FakeBackend
from tunesmith.base.errors import BadInput
from tunesmith.problem.cases import case_misfit, case_reach, full_cases
from tunesmith.problem.device import Device
from tunesmith.problem.plan import ExtraCase, Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import original_variant
from tunesmith.run.delivery import assemble_delivery
from tunesmith.run.race import Winners

TEXT = """name = "split"
kernel = { source = "kernel.fake", entry = "split" }
argument = [
  { name = "out", type = "float32*", role = "output", shape = ["d"] },
  { name = "x", type = "float32*", role = "input", shape = ["rows", "d"] },
  { name = "parts", type = "float32*", role = "workspace", shape = ["device.sms", "d"] },
  { name = "blocks", type = "int32", value = "device.sms" },
]
launch = { grid = ["device.sms"], block = ["64"] }
[contract]
rows = { min = 1, max = 4096 }
d = { min = 1, max = 4096 }
require = ["d <= device.max_threads", "d * 4 <= device.shared"]
[workloads]
only = { rows = 64, d = 32 }
"""
FILES = {"kernel.fake": "void split();"}


def a_device(sms: int = 5, threads: int = 48) -> Device:
    found = FakeBackend().devices()[0]
    return replace(found, limits=replace(found.limits, sms=sms, max_threads=threads, shared=1 << 14))


@pytest.fixture
def problem() -> Problem:
    return read_problem(TEXT, FILES)


def test_a_plan_has_the_devices_numbers(problem: Problem) -> None:
    plan = plan_launch(problem, original_variant(problem), {"rows": 64, "d": 32}, a_device(threads=64), None)
    assert isinstance(plan, Plan)
    assert plan.buffer("parts").shape == (5, 32)
    assert plan.scalars[0].value == 5


def test_cases_keep_to_what_holds_on_the_device(problem: Problem) -> None:
    for threads in (48, 100):
        cases = full_cases(problem, original_variant(problem), a_device(threads=threads), 1)
        assert 32 <= max(dict(case.sizes)["d"] for case in cases) <= threads
        assert [name for name, _ in case_reach(problem, cases)] == ["rows", "d", "rows * d"]
    assert case_misfit(problem, ExtraCase((("rows", 4), ("d", 8)), "normal")) is None


def test_what_is_delivered_has_numbers(problem: Problem) -> None:
    nothing = Winners(None, ())
    made = assemble_delivery(problem, lambda _: pytest.fail("nothing is tuned"), a_device(), nothing)
    dispatch = made.dispatch
    assert dispatch.require == ("d <= 48", "d * 4 <= 16384")
    assert [(a.name, a.shape, a.value) for a in dispatch.arguments[2:]] == [
        ("parts", ("5", "d"), None),
        ("blocks", (), "5"),
    ]
    assert dispatch.original.workspace[0].shape == ("5", "d")
    assert b"device." not in made.files["dispatch.json"]


def test_a_workload_must_hold_on_the_device(problem: Problem) -> None:
    assert problem.beyond(a_device().limits.names()) is None
    found = problem.beyond(a_device(threads=16).limits.names())
    assert found == "workload 'only' is outside the contract here: it breaks 'd <= 16'"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('shape = ["rows", "d"]', 'shape = ["rows", "device.sms"]', 5),
        ("device.max_threads", "device.threads", 13),
        ("max = 4096 }\nd", 'max = "device.sms" }\nd', 11),
    ],
)
def test_elsewhere_it_is_refused(old: str, new: str, line: int) -> None:
    with pytest.raises(BadInput) as caught:
        read_problem(TEXT.replace(old, new, 1), FILES)
    assert caught.value.where == f"problem.toml:{line}"
