"""Names that the source has for what the model writes out."""

from __future__ import annotations

import pytest

from tests.csource.reading import function_of
from tunesmith.csource.printing import print_statements
from tunesmith.csource.snippets import code
from tunesmith.expert.writing.source_names import SourceNames

SOURCE = """
    const int half = d / 2;
    const int quarter = half / 2;
    const long long wide = d / 4;
    int grows = d * 3;
    grows += 1;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = i / half;
    const int col = i % half;
    out[row * half + col] = quarter + grows + wide;
"""


def named(text: str, taken: tuple[str, ...] = (), source: str = SOURCE, parameters: str = "int d") -> str:
    function = function_of(f"__global__ void f({parameters}, float *out) {{{source}}}")
    found = SourceNames.of(function).in_body(code(text), frozenset(taken), {"DIVIDED": "/", "REST": "%"})
    return " ".join(print_statements(found).split())


def test_what_is_said_twice_is_declared_at_the_top() -> None:
    assert named("out[d / 2] = d / 2;") == "const int half = d / 2; out[half] = half;"


def test_what_is_said_once_stays() -> None:
    assert named("out[0] = d / 2;") == "out[0] = d / 2;"


def test_one_name_is_made_of_another() -> None:
    assert named("out[d / 2 / 2] = d / 2 / 2 + d / 2;") == (
        "const int half = d / 2; const int quarter = half / 2; out[quarter] = quarter + half;"
    )


@pytest.mark.parametrize(
    "text",
    [
        "out[d / 4] = d / 4;",  # `wide` has another type: what is made of it would be wider
        "out[d * 3] = d * 3;",  # `grows` does not stay
    ],
)
def test_a_name_that_means_more_does_not_come_back(text: str) -> None:
    assert named(text) == text


def test_a_name_that_means_something_else_does_not_come_back() -> None:
    assert "half = d / 2" not in named("int half = 1; out[d / 2] = d / 2 + half;")
    assert named("out[d / 2] = d / 2;", taken=("half",)) == "out[d / 2] = d / 2;"


def test_shares_of_an_index_are_declared_behind_it() -> None:
    assert named("{ const int here = 3; out[here / (d / 2)] = here / (d / 2) + d / 2; }") == (
        "const int half = d / 2; { const int here = 3; const int row = here / half; out[row] = row + half; }"
    )


def test_shares_in_other_words() -> None:
    assert named("const int at = 3; out[REST(at, d / 2, made)] = REST(at, d / 2, made);") == (
        "const int at = 3; const int col = REST(at, d / 2, made); out[col] = col;"
    )


def test_an_index_inside_another_does_not_take_its_name() -> None:
    text = """const int a = 3; out[a / (d / 2)] = a / (d / 2);
        if (d) { const int b = 4; out[b / (d / 2)] = b / (d / 2) + a / (d / 2); }"""
    assert named(text) == (
        "const int half = d / 2; const int a = 3; const int row = a / half; out[row] = row; "
        "if (d) { const int b = 4; out[b / half] = b / half + row; }"
    )


def test_two_blocks_side_by_side_have_the_same_name() -> None:
    one = "{ const int here = 3; out[here / (d / 2)] = here / (d / 2); }"
    assert named(one + one).count("const int row = here / half;") == 2


@pytest.mark.parametrize("type_", ["long long", "unsigned int"])
def test_an_index_of_another_type_than_its_share_keeps_it(type_: str) -> None:
    text = "const int here = 3; out[here / (d / 2)] = here / (d / 2);"
    source = "const int row = threadIdx.x / (d / 2); out[row] = row;"
    assert "row" not in named(text, source=source, parameters=f"{type_} d")
