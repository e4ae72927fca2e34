"""What no case of tests/golden/kernels says of readings: how long they take, and what names they hang on."""

from __future__ import annotations

import time
from dataclasses import replace

from tests.core.expert.read.kernels import problem_in, row_problem
from tunesmith.expert.read.integers import launch_terms, parameter_values
from tunesmith.expert.read.lift import lift_kernel
from tunesmith.source.preprocess import Predefined
from tunesmith.source.printing import print_expr
from tunesmith.source.reader.parse import read_expression
from tunesmith.space.expr import parse_expr


def test_reading_is_quick() -> None:
    problem = problem_in("examples/cuda/rmsnorm")
    began = time.process_time()
    lift_kernel(problem)
    assert time.process_time() - began < 3.0  # some 0.2 s on an idle machine


def test_what_a_compiler_defines_says_nothing_of_the_problem() -> None:
    problem = row_problem("out[threadIdx.x] = 1.0f;")
    nvcc = Predefined((("__CUDA_ARCH__", "800"), ("__cplusplus", "201402L")), "nvcc")
    known = replace(problem, kernel=replace(problem.kernel, predefined=(nvcc,)))
    assert known.digest == problem.digest


def test_parameters_go_by_their_order_not_their_names() -> None:
    problem = problem_in("examples/cuda/rmsnorm")
    found = parameter_values(problem, ("y", "x", "w", "epsilon", "rows", "width"))
    assert {name: found[name] for name in ("rows", "width")} == {
        "rows": parse_expr("tokens").tree,
        "width": parse_expr("d").tree,
    }


def test_the_launch_over_parameters() -> None:
    problem = problem_in("examples/cuda/rmsnorm")
    terms = launch_terms(problem, ("out", "input", "weight", "eps", "tokens", "d"))
    assert print_expr(terms.replaced(read_expression("blockDim.x"))) == "d < 1024 ? d : 1024"
    assert terms.size_text(read_expression("gridDim.x * 2")) == "tokens * 2"
