"""Reading kernel sources: signatures, element types, launch sites, and text that is no source."""

from __future__ import annotations

import textwrap
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thoroughness import examples
from tunesmith.base.errors import BadInput
from tunesmith.expert.drafts.headers import KernelSignature, blank_source
from tunesmith.expert.drafts.signature import read_source
from tunesmith.problem.device import language_of
from tunesmith.source.tree import Language

LANGUAGES: tuple[Language, ...] = ("opencl", "cuda", "hip")


def kernel(text: str, language: Language = "cuda") -> KernelSignature:
    (found,) = read_source(textwrap.dedent(text), language).kernels
    return found


class TestRefusals:
    def test_language_of(self) -> None:
        assert [language_of(f"a/b.{e}") for e in ("cl", "cu", "cuh", "hip", "CU")] == [
            "opencl", "cuda", "cuda", "hip", "cuda",
        ]  # fmt: skip
        for name in ("kernel.py", "kernel", ""):
            with pytest.raises(BadInput, match=r"must end in \.cl"):
                language_of(name)


# Joined at random: everything the readers give a meaning to, and what could throw them off.
WORDS = """__global__ __kernel __global void template typename T k p n float int const dim3 extern namespace
__launch_bounds__ __attribute__ (( )) reqd_work_group_size hipLaunchKernelGGL reinterpret_cast <<< >>> < > ( )
{ } [ ] ; , : :: * & = + -> . @ $ é 1 0x " ' R"( )" "C" // /* */ # \\"""
LINES = (
    *("\n", "\n#if X\n", "\n#else\n", "\n#endif\n", "\n#if 0\n", "\n#define T float\n", "p[n] = 1;"),
    *("\n#define k(p) __global__ p\n", "__global__ void k(float* p, int n) {", "{ p[0] = n; }"),
    "__kernel void k(global float* p) {",
)
SOUP = st.lists(st.sampled_from([*WORDS.split(), *LINES]), max_size=60).map(" ".join)


@examples(300)
@given(text=st.one_of(st.text(), SOUP), language=st.sampled_from(LANGUAGES))
def test_any_text_is_read_or_refused(text: str, language: Language) -> None:
    try:
        model = read_source(text, language)
    except BadInput:
        return
    assert all(kernel.name and kernel.line >= 1 for kernel in model.kernels)


@examples(300)
@given(text=st.one_of(st.text(), SOUP), language=st.sampled_from(LANGUAGES))
def test_blanking_keeps_length_and_line_breaks(text: str, language: Language) -> None:
    blanked = blank_source(text, language)
    for result in (blanked.plain, blanked.code):
        assert len(result) == len(text)
        for before, after in zip(text, result, strict=True):
            assert after in (before, " ")
            assert before not in "\r\n" or after == before


@pytest.mark.few(1)
def test_conditions_nest_without_limit() -> None:
    opened = "#if X\n" * 5_000
    text = f"__global__ void k(float* p) {{ {opened} p = 1; }}"
    assert kernel(text).name == "k"


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("{" * 40_000, "nested more than 256"),
        ("(" * 40_000, "nested more than 256"),
        ("p[" * 20_000, "nested more than 256"),
        ("[" * 300 + "]" * 300, "nested more than 256"),
        ("]" * 200 + "[" * 300, "nested more than 256"),
        ("[]" * 20_000, "one after the other"),
        ("p " + "+=" * 20_000, "one after the other"),
        ("'" * 40_000, "no other half"),
        ("a<b<" * 40_000, "at most 50,000"),
        ("a" * 600_000, "longer than 500,000"),
    ],
)
@pytest.mark.few(2)
def test_what_a_grammar_takes_long_over_is_refused_before_it_is_shown(inside: str, words: str) -> None:
    text = f"__global__ void k(float* p) {{\n{inside}\n p = 1; }}"
    began = time.process_time()
    with pytest.raises(BadInput, match=words) as caught:
        read_source(text, "cuda", where="kernel.cu")
    assert caught.value.hint
    assert time.process_time() - began < 10.0


def test_brackets_as_deep_as_compilers_take_them() -> None:
    assert kernel(f"__global__ void k(float* p) {{ p[0] = {'(' * 200}1{')' * 200}; }}").name == "k"


def test_text_that_is_off_stays_off_however_deep_and_takes_no_longer() -> None:
    inside = "#if 1\n" * 20_000 + "hidden\n#else\nhidden\n" + "#endif\n" * 20_000
    text = f"#if 0\n{inside}#else\nshown\n#endif\nafter\n"
    began = time.process_time()
    found = blank_source(text, "opencl")
    assert found.plain.split() == ["shown", "after"]
    assert time.process_time() - began < 10.0


def test_a_long_chain_of_helpers_ends_in_doubt() -> None:
    helpers = "\n".join(f"__device__ void f{i}(float* q) {{ f{i + 1}(q); }}" for i in range(2000))
    (pointer,) = kernel(f"{helpers}\n__global__ void k(float* p) {{ f0(p); }}").parameters
    assert (pointer.read, pointer.written) == (None, None)
