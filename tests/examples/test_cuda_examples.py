"""The CUDA examples, as far as they can be judged without a GPU or a compiler."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.samples import a_device
from tunesmith.expert.drafts.signature import missing_entry, signature_faults
from tunesmith.problem.cases import smoke_cases
from tunesmith.problem.problem import Argument, Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import Template, configs_of, original_variant
from tunesmith.problem.template_file import parse_template
from tunesmith.space.expr import Expr

FOLDERS = sorted(path.parent for path in (Path(__file__).parents[2] / "examples/cuda").glob("*/problem.toml"))
H200 = a_device(shared=232448, sms=132, llc=50 << 20, memory=140 << 30, max_allocation=140 << 30)
FEWEST = {"silu_and_mul": 100}

pytestmark = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def read_problem(folder: Path) -> Problem:
    return parse_problem(
        (folder / "problem.toml").read_text("utf-8"),
        path="problem.toml",
        read=lambda name: (folder / name).read_text("utf-8"),
    )


def read_template(folder: Path, problem: Problem) -> Template:
    text = (folder / "template.cu").read_text("utf-8")
    return parse_template(text, path="template.cu", problem=problem)


def test_the_kernels_take_the_arguments_of_the_problem(folder: Path) -> None:
    problem = read_problem(folder)
    template = read_template(folder, problem)
    assert missing_entry(problem) is None
    assert signature_faults(problem) == []
    if not template.workspace:
        kernel = replace(problem.kernel, text=template.source, path="template.cu")
        assert signature_faults(replace(problem, kernel=kernel, launches=template.launches)) == []


def test_the_default_is_legal_at_every_workload(folder: Path) -> None:
    problem = read_problem(folder)
    template = read_template(folder, problem)
    variant = template.render(problem, template.default, problem.workloads[0].as_dict())
    for workload in problem.workloads:
        assert variant.allows({**workload.as_dict(), **H200.limits.names()}), workload.name


def test_there_is_enough_to_search_and_every_workload_has_a_share(folder: Path) -> None:
    problem = read_problem(folder)
    configs = configs_of(problem, read_template(folder, problem), H200)
    assert len(configs) >= FEWEST.get(folder.name, 51)
    for place, workload in enumerate(problem.workloads):
        assert any(configs.feasible(number)[place] for number in range(len(configs))), workload.name


def test_a_reference_gives_the_shapes_of_the_problem(folder: Path) -> None:
    problem = read_problem(folder)
    sizes = dict(smoke_cases(problem, original_variant(problem), H200, seed=1)[0].sizes)
    rng = np.random.default_rng(1)
    known: dict[str, Any] = {a.name: scalar(a, sizes) for a in problem.arguments if a.role == "scalar"}
    known |= {a.name: drawn(a, sizes, rng) for a in problem.arguments if a.role in ("input", "inout")}
    known |= sizes
    if problem.inputs is not None:
        make = function(folder, problem.inputs.path, problem.inputs.function)
        made = make(**{name: {**sizes, "rng": rng}[name] for name in inspect.signature(make).parameters})
        known |= {name: in_float64(np.asarray(array)) for name, array in made.items()}
    assert problem.accuracy.reference is not None
    named = problem.accuracy.reference
    reference = function(folder, named.path, named.function)
    answer = reference(**{name: known[name] for name in inspect.signature(reference).parameters})
    written = [a for a in problem.arguments if a.role in ("output", "inout") and not a.alias]
    if not isinstance(answer, dict):
        parts = answer if isinstance(answer, tuple) else (answer,)
        answer = dict(zip([a.name for a in written], parts, strict=True))
    for argument in written:
        assert np.asarray(answer[argument.name]).shape == shape(argument, sizes), argument.name


def function(folder: Path, path: str, name: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile((folder / path).read_text("utf-8"), path, "exec"), names)
    return names[name]


def shape(argument: Argument, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(axis.evaluate(sizes) for axis in argument.shape)


def scalar(argument: Argument, sizes: dict[str, int]) -> Any:
    return argument.value.evaluate(sizes) if isinstance(argument.value, Expr) else argument.value


def drawn(argument: Argument, sizes: dict[str, int], rng: np.random.Generator) -> Any:
    if argument.element.kind == "float":
        return rng.standard_normal(shape(argument, sizes))
    low, high = argument.range or (0, 100)
    return rng.integers(int(low), int(high), shape(argument, sizes), endpoint=True)


def in_float64(array: Any) -> Any:
    return array if array.dtype.kind in "iu" else array.astype(np.float64)
