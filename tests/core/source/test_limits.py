"""Texts that grow, nest or repeat without end are refused, and what is no program at all is."""

from __future__ import annotations

import pytest

from tests.core.source.reading import source_of
from tunesmith.source.inline import inline_calls
from tunesmith.source.preprocess import preprocess
from tunesmith.source.reader.parse import read_source_tree
from tunesmith.source.reader.templates import BoundKernel, bind_kernel
from tunesmith.source.tree import Unreadable


@pytest.mark.parametrize("opening", ["(", "{", "[", "f(", "if (a) ", "!", "a ? b : ", "-", "#if 1\n", "a + "])
@pytest.mark.few(3)
def test_hostile_nesting_is_refused_in_words(opening: str):
    source = read_source_tree(f"__global__ void k(int a) {{ a = {opening * 5000} 1; }}", "cuda")

    assert len(source.unread) >= 1
    assert all("line " in reason for reason in source.unread)


@pytest.mark.parametrize(
    "text", ["", "\0\x01", "}}}}", "#", "#define", "#if\n", "/*", '"', "template <", "\\\n"]
)
def test_scraps_do_not_raise(text: str):
    source = read_source_tree(text, "cuda")

    assert source.functions == ()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "#define A0 x x\n" + "".join(f"#define A{n} A{n - 1} A{n - 1}\n" for n in range(1, 50)) + "A49",
            marks=pytest.mark.long,
        ),
        "#define F(x) x x\n" + "F(" * 40 + "1" + ")" * 40,
        "".join(f"#define A{n} A{n - 1}\n" for n in range(1, 500)) + "A499",
    ],
)
def test_macros_without_end_are_refused(text: str):
    with pytest.raises(Unreadable):
        preprocess(text, "cuda")


@pytest.mark.long
def test_calls_that_double_with_each_other_end():
    helpers = "__device__ void f0(float *p) { p[0] = 1; }\n" + "\n".join(
        f"__device__ void f{n}(float *p) {{ f{n - 1}(p); f{n - 1}(p); }}" for n in range(1, 40)
    )
    source = source_of(f"{helpers}\n__global__ void k(float *p)\n{{\nf39(p);\n}}\n")
    bound = bind_kernel(source, "k")
    assert isinstance(bound, BoundKernel), bound

    assert inline_calls(bound.function, source).notes != ()
