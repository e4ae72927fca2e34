"""C expressions over parameters to expressions over sizes, and back."""

from __future__ import annotations

import pytest

from tests.expert.model.kernels import problem_in
from tunesmith.csource.parse import read_expression
from tunesmith.csource.printing import print_expr
from tunesmith.expert.model.translate import from_sizes, launch_terms, parameter_values, to_sizes
from tunesmith.space.expr import parse

VALUES = {"n": parse("tokens * d").tree, "dim": parse("d").tree, "vecs": parse("d // 4").tree}


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("dim / 8", "d // 8"),
        ("(n + 255) / 256", "ceildiv(tokens * d, 256)"),
        ("(n + dim - 1) / dim", "ceildiv(tokens * d, d)"),
        ("min(dim, 1024)", "min(d, 1024)"),
        ("dim < 8 ? dim : 8", "d if d < 8 else 8"),
        ("(long long)dim * 2", "d * 2"),
        ("dim & 7", "d % 8"),
        ("dim >> 3", "d // 8"),
        ("dim % 4 == 0 && n > 1", "d % 4 == 0 and tokens * d > 1"),
    ],
)
def test_to_sizes(text: str, sizes: str) -> None:
    assert to_sizes(read_expression(text), VALUES) == sizes


@pytest.mark.parametrize("text", ["eps * 2", "table[dim]", "dim ^ 3", "f(dim)"])
def test_no_sizes(text: str) -> None:
    assert to_sizes(read_expression(text), VALUES) is None


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ("d", "dim"),
        ("d // 4", "vecs"),
        ("tokens * d", "n"),
        ("ceildiv(tokens * d, 128)", "(n + 127) / 128"),
        ("min(d, 1024)", "dim < 1024 ? dim : 1024"),
        ("round_up(d, 32)", "(dim + 31) / 32 * 32"),
    ],
)
def test_from_sizes(sizes: str, text: str) -> None:
    found = from_sizes(parse(sizes).tree, VALUES)
    assert found is not None
    assert print_expr(found) == text


def test_a_size_that_no_parameter_tells() -> None:
    assert from_sizes(parse("tokens").tree, VALUES) is None


def test_parameters_go_by_their_order_not_their_names() -> None:
    problem = problem_in("examples/cuda/rmsnorm")
    found = parameter_values(problem, ("y", "x", "w", "epsilon", "rows", "width"))
    assert {name: found[name] for name in ("rows", "width")} == {
        "rows": parse("tokens").tree,
        "width": parse("d").tree,
    }


def test_the_launch_over_parameters() -> None:
    problem = problem_in("examples/cuda/rmsnorm")
    terms = launch_terms(problem, ("out", "input", "weight", "eps", "tokens", "d"))
    assert print_expr(terms.replaced(read_expression("blockDim.x"))) == "d < 1024 ? d : 1024"
    assert terms.size_text(read_expression("gridDim.x * 2")) == "tokens * 2"
