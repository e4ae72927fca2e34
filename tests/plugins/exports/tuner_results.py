"""What the export for Kernel Tuner is made of: a finished search of a small problem, and changes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.core.run.test_library import NoTexts
from tests.samples import (
    PROBLEM,
    TEMPLATE,
    WORKLOADS,
    a_problem,
    a_template,
    config,
    finalist,
    outcome,
    state_of,
    verified,
)
from tunesmith.plugins.exports.kernel_tuner import kernel_tuner_files
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import Template
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Stopped
from tunesmith.run.state import State

OWN = a_problem()


PROVEN = {"small": 2.0, "wide": 4.0}


def won(*more: Any) -> State:
    return state_of(
        outcome(0, config(32), {"small": 0.5, "wide": 0.25}),
        outcome(1, config(64), {"small": 1.0, "wide": 1.0}),
        outcome(3, config(128), {"small": Status.BUILD_FAILED, "wide": Status.BUILD_FAILED}),
        outcome(4, config(256), {"small": Status.CRASHED, "wide": 2.0}),
        finalist(2, config(32), PROVEN),
        verified(config(32), PROVEN),
        *more,
        Stopped("done"),
    )


def export(
    problem: Problem = OWN, template: str | Template = TEMPLATE, state: State | None = None
) -> dict[str, bytes]:
    given = a_template(problem, template) if isinstance(template, str) else template
    state = state or won()
    return kernel_tuner_files(Templates(problem, state.device, given, NoTexts()), state)


def changed(old: str, new: str, text: str = TEMPLATE) -> str:
    assert old in text
    return text.replace(old, new, 1)


def before_launch(*lines: str) -> str:
    return changed("// [launch]", "".join(f"// {line}\n" for line in lines) + "// [launch]")


def problem_with(old: str, new: str, kernel: str = "__kernel void scale() {}") -> Problem:
    text = changed(old, new, PROBLEM.format(kernel="", workloads=WORKLOADS))
    return parse_problem(text, path="problem.toml", read=lambda _name: kernel)


def won_as(vec: str) -> State:
    renamed = replace(config(32), items=(("BLOCK", 32), (vec, 1)))
    return state_of(outcome(0, renamed, {"small": 0.5, "wide": 0.5}), Stopped("done"))
