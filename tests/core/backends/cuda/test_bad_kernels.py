"""The kernels with planted faults, as far as they can be judged without a GPU or a compiler."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.backends.cuda.static_profiles import FOLDERS, read_problem
from tunesmith.expert.drafts.signature import missing_entry, signature_faults
from tunesmith.profiles.facts import Kind
from tunesmith.space.expr import Expr

pytestmark = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def test_the_kernel_takes_the_arguments_of_the_problem(folder: Path) -> None:
    problem = read_problem(folder)
    assert missing_entry(problem) is None
    assert signature_faults(problem) == []


def test_there_are_two_workloads_within_the_contract(folder: Path) -> None:
    workloads = read_problem(folder).workloads
    assert len(workloads) == 2
    assert all(read_problem(folder).contract.violations(w.as_dict()) == () for w in workloads)
    assert workloads[0].name == "large"


def test_what_names_the_fault_is_a_kind_of_finding(folder: Path) -> None:
    names = json.loads((folder / "expected.json").read_text("utf-8"))["names"]
    assert set(names) <= set(Kind)
    assert bool(names) is not folder.name.startswith("healthy")


def test_the_reference_gives_the_shape_of_the_output(folder: Path) -> None:
    problem = read_problem(folder)
    sizes = {rule.name: max(rule.min, rule.multiple_of) for rule in problem.contract.sizes}
    known: dict[str, Any] = {}
    for argument in problem.arguments:
        if argument.is_array:
            known[argument.name] = np.ones([axis.evaluate(sizes) for axis in argument.shape])
        elif isinstance(argument.value, Expr):
            known[argument.name] = argument.value.evaluate(sizes)
    reference = problem.accuracy.reference
    names: dict[str, Any] = {}
    exec(compile((folder / reference.path).read_text("utf-8"), reference.path, "exec"), names)
    function = names[reference.function]
    answer = function(**{name: known[name] for name in inspect.signature(function).parameters})
    assert np.shape(answer) == np.shape(known["out"])
