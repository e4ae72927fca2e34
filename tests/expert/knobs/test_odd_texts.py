"""Which numbers of a text are knobs, however they are written, and which stay, with a sentence."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.expert.knobs.problems import NAMES, asked, made, opened, problem_of
from tunesmith.problem.problem import Problem
from tunesmith.run.ports import Declined, Written

# A sum over tiles in shared memory; `{}` is where things are defined.
SUM = """\
{head}
__global__ void work(float *out, const float *x, int n)
{{
    {inside}
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}}
"""


def summing(head: str = "", inside: str = "", **more: str) -> Problem:
    text = SUM.format(head=head, inside=inside)
    return made(text, '["ceildiv(n, 128)"]', '["128"]', **more)


def knobs_of(problem: Problem) -> dict[str, int]:
    return opened(problem)[1].default.as_dict()


def notes_of(problem: Problem) -> str:
    written = asked(problem)
    return written.reason if isinstance(written, Declined) else "\n".join(written.notes)


@pytest.mark.parametrize(
    ("head", "inside", "changed"),
    [
        ("#define BLOCK 128", "", "#define BLOCK KNOB_BLOCK\n"),
        ("#define BLOCK  (128)  // threads", "", "#define BLOCK  KNOB_BLOCK  // threads\n"),
        ("#define BLOCK 128u", "", "#define BLOCK (KNOB_BLOCK + 0u)\n"),
        ("#  define BLOCK 0x80 /* hex */", "", "#  define BLOCK KNOB_BLOCK /* hex */\n"),
        ("#ifndef BLOCK\n#define BLOCK 128\n#endif", "", "#define BLOCK KNOB_BLOCK\n"),
        ("constexpr int BLOCK = 128;", "", "constexpr int BLOCK = KNOB_BLOCK;"),
        ("static const unsigned BLOCK{128};", "", "static const unsigned BLOCK{KNOB_BLOCK};"),
        ("static constexpr auto A = 3, BLOCK = 4 * 32;", "", "A = 3, BLOCK = KNOB_BLOCK;"),
        ("namespace own { constexpr int BLOCK = 128; }", "using own::BLOCK;", "int BLOCK = KNOB_BLOCK; }"),
        ("enum { BLOCK = 128, OTHER = 3 };", "", "enum { BLOCK = KNOB_BLOCK, OTHER = 3 };"),
        ("enum : int { BLOCK = 128 };", "", "enum : int { BLOCK = KNOB_BLOCK };"),
        ("", "const int BLOCK = 128;", "const int BLOCK = KNOB_BLOCK;"),
        ("#if 0\n#define BLOCK 64\n#endif\n#define BLOCK 128", "", "\n#define BLOCK KNOB_BLOCK\n"),
        ("#define HALF 64\n#define BLOCK (2 * HALF)", "", "#define HALF KNOB_HALF\n"),
        ("#define LOG 7\n#define BLOCK (1 << 7)", "", "#define BLOCK KNOB_BLOCK\n"),
    ],
)
def test_a_definition_takes_its_value_from_a_parameter(head: str, inside: str, changed: str) -> None:
    written, template = opened(summing(head, inside))
    assert changed in written.text
    (name,) = template.default.as_dict()
    value = "2 * KNOB_HALF" if name == "KNOB_HALF" else "KNOB_BLOCK"
    (launch,) = template.launches
    assert (launch.grid[0].text, launch.block[0].text) == (f"ceildiv(n, {value})", value)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("#ifdef WIDE\n#define BLOCK 128\n#endif", "it is defined under an #if"),
        (
            "#ifdef WIDE\n#define BLOCK 256\n#else\n#define BLOCK 128\n#endif",
            "defined more than once (lines 2, 4)",
        ),
        ("#if __CUDA_ARCH__ > 800\nconstexpr int BLOCK = 128;\n#endif", "it is defined under an #if"),
        ("#define BLOCK 64\n#undef BLOCK\n#define BLOCK 128", "defined more than once (lines 1, 3)"),
        ("#define BLOCK \\\n    128", "its definition goes over lines"),
        ("constexpr int BLOCK = 128;\nstatic_assert(BLOCK == 128);", "leaves it one value"),
        (
            "constexpr int BLOCK = 128;\n#define BLOCK_MASK 127\nstatic_assert(BLOCK < 129 && BLOCK > 127);",
            "one value",
        ),
    ],
)
def test_what_is_not_one_plain_definition_is_left_with_a_sentence(head: str, reason: str) -> None:
    assert reason in notes_of(summing(head))


def test_macros_that_are_no_numbers_are_no_knobs() -> None:
    assert "no number" in notes_of(summing("static int count;\n#define BLOCK (count++ * 0 + 128)"))
    assert "no number" in notes_of(summing("__device__ int blocks(); \n#define BLOCK blocks()"))


def test_a_name_that_a_variable_has_too_is_left_alone() -> None:
    head = "constexpr int BLOCK = 128;\n__device__ int twice(int BLOCK) { return 2 * BLOCK; }"
    assert "a variable or parameter is called so too (line 2)" in notes_of(
        summing(head, "n += 0 * twice(n);")
    )


def test_constants_that_the_kernel_does_not_reach_are_no_knobs() -> None:
    other = "constexpr int OTHER = 64;\n__global__ void other(float *p) { p[blockIdx.x * OTHER] = 0; }"
    head = f"#define BLOCK 128\n{other}"
    assert knobs_of(summing(head)) == {"KNOB_BLOCK": 128}


def test_names_of_the_source_are_never_taken() -> None:
    written, template = opened(summing("#define BLOCK 128\n#define KNOB_BLOCK 3"))
    assert template.default.as_dict() == {"KNOB_BLOCK_2": 128}
    assert "#define BLOCK KNOB_BLOCK_2\n" in written.text


def test_what_the_problem_defines_is_a_knob() -> None:
    written, template = opened(summing(extra="defines = { BLOCK = 128 }"))
    assert template.default.as_dict() == {"KNOB_BLOCK": 128}
    assert "#undef BLOCK\n#define BLOCK KNOB_BLOCK\n" in written.text
    written, _ = opened(summing("#ifndef BLOCK\n#define BLOCK 64\n#endif", extra="defines = { BLOCK = 128 }"))
    assert "#define BLOCK 64\n" in written.text  # as before: the problem's comes first


def test_a_header_keeps_its_text() -> None:
    problem = summing('#include "sizes.cuh"')
    for text, told in (
        ("#define BLOCK 128\n", "it is defined in sizes.cuh, whose text is not changed"),
        ("#pragma once\nconstexpr int BLOCK = 128;\n", "it is defined in sizes.cuh"),
    ):
        kernel = replace(problem.kernel, headers=(("sizes.cuh", text),))
        assert told in notes_of(replace(problem, kernel=kernel))
    guarded = replace(problem.kernel, headers=(("sizes.cuh", "#ifndef BLOCK\n#define BLOCK 128\n#endif\n"),))
    written = asked(replace(problem, kernel=guarded))
    assert isinstance(written, Written)
    assert "\n#define BLOCK KNOB_BLOCK\n" in written.text


@pytest.mark.parametrize(
    ("head", "use", "reason"),
    [
        ("#define FULL_MASK 0xffffffff", "__syncwarp(FULL_MASK);", "its value is 4294967295"),
        ("#define WARP_SIZE 32", "if (threadIdx.x % WARP_SIZE == 0) n = n;", "it is the width of a warp"),
        ("#define CODE 4", "switch (n) { case CODE: return; }", "it is a case of a switch"),
        ("#define BITS_SET 12", "if (threadIdx.x & BITS_SET) n = n;", "it takes part in arithmetic of bits"),
        ("#define PARTS 8", "float y = threadIdx.x * 0.5f * PARTS;", "computed with as a float"),
        ("#define COUNT 8", "float y = threadIdx.x / (float)COUNT;", "computed with as a float"),
        ("#define STEPS 5", "for (int k = 0; k < STEPS; k++) n += 0;", "an odd number, 5"),
        ("#define RADIUS 2", "for (int k = 0; k < RADIUS; k++) n += 0;", "part of what is computed"),
        ("#define ADDED 6", "n += ADDED - 6;", "neither the extent"),
        ("#define OFF 0", "for (int k = 0; k < OFF; k++) n += 0;", "it is 0"),
        ("template <bool CAUSAL = true> __device__ int f(int n) { if (CAUSAL) return n; return 0; }",
         "n = f(n);", "it switches something"),
    ],
)  # fmt: skip
def test_what_is_computed_is_left_alone(head: str, use: str, reason: str) -> None:
    problem = summing(f"#define BLOCK 128\n{head}", use)
    assert reason in notes_of(problem)
    assert knobs_of(problem) == {"KNOB_BLOCK": 128}


def test_a_number_that_the_contract_fixes_is_left_alone() -> None:
    problem = summing("#define BLOCK 128\n#define WIDE 64", "for (int k = 0; k < WIDE; k++) n += 0;")
    assert knobs_of(problem) == {"KNOB_BLOCK": 128, "KNOB_WIDE": 64}
    fixed = replace(problem.contract.sizes[0], name="d", min=64, max=64)
    contract = replace(problem.contract, sizes=(*problem.contract.sizes, fixed))
    one = replace(problem.workloads[0], sizes=(("n", 65536), ("d", 64)))
    assert "it is the size d of the problem" in notes_of(
        replace(problem, contract=contract, workloads=(one,))
    )


def test_what_is_derived_follows_by_itself() -> None:
    head = "constexpr int WARPS = 4;\nconstexpr int BLOCK = WARPS * 32;"
    written, template = opened(summing(head))
    assert template.default.as_dict() == {"KNOB_WARPS": 4}
    assert template.launches[0].block[0].text == "KNOB_WARPS * 32"
    assert "constexpr int BLOCK = WARPS * 32;" in written.text


def test_switches_are_knobs_where_their_names_say_so() -> None:
    head = "#define BLOCK 128\n#define USE_PREFETCH 0\n#if USE_PREFETCH\n__device__ int f;\n#endif\n"
    head += "#define HAS_BIAS 1\n#if HAS_BIAS\n#endif"
    problem = summing(head, "n += 0 * USE_PREFETCH * HAS_BIAS;")
    written, template = opened(problem)
    assert template.default.as_dict() == {"KNOB_BLOCK": 128, "KNOB_USE_PREFETCH": 0}
    assert "KNOB_USE_PREFETCH = { values = [0, 1], categorical = true }" in written.text
    assert "HAS_BIAS (line 6) stays as it is: it switches something" in notes_of(problem)


def test_guarded_defaults_that_are_no_knobs_declare_nothing() -> None:
    head = "#define BLOCK 128\n#ifndef RADIUS  // of the filter\n#define RADIUS 2\n#endif"
    written, _ = opened(summing(head, "n += RADIUS - 2;"))
    assert "#if !defined(RADIUS)  // of the filter\n#define RADIUS 2\n" in written.text


def test_lines_may_end_as_on_windows() -> None:
    problem = summing("#define BLOCK 128\nconstexpr int WIDE = 64;", "for (int k = 0; k < WIDE; k++) n += 0;")
    text = problem.kernel.text.replace("\n", "\r\n")
    written, template = opened(replace(problem, kernel=replace(problem.kernel, text=text)))
    assert template.default.as_dict() == {"KNOB_BLOCK": 128, "KNOB_WIDE": 64}
    assert "#define BLOCK KNOB_BLOCK\r\n" in written.text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.few(4)
def test_broken_texts_are_refused_or_read_in_words(name: str) -> None:
    """Whatever a text has lost, repeated or mixed up, there is an answer."""
    problem, draw = problem_of(name), random.Random(name)
    for _ in range(12):
        text = problem.kernel.text
        for _ in range(draw.randrange(1, 5)):
            a, b = sorted(draw.randrange(len(text)) for _ in range(2))
            piece = text[a : min(b, a + 40)]
            text = (
                draw.choice([text[:a] + text[a + len(piece) :], text[:b] + piece + text[b:], text[:b]]) or "x"
            )
        found = asked(replace(problem, kernel=replace(problem.kernel, text=text)))
        assert isinstance(found, Written | Declined)


WRITTEN_OUT = """\
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float part[96];
    int i = blockIdx.x * 96u + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[96 - 1 - threadIdx.x];
}
"""


def test_the_blocks_number_written_out_is_a_knob_wherever_it_stands() -> None:
    written, template = opened(made(WRITTEN_OUT, '["ceildiv(n, 96)"]', '["96"]'))
    assert template.default.as_dict() == {"KNOB_NUMBER_96": 96}
    assert template.launches[0].grid[0].text == "ceildiv(n, KNOB_NUMBER_96)"
    assert "float part[KNOB_NUMBER_96];" in written.text
    assert "blockIdx.x * (KNOB_NUMBER_96 + 0u) + threadIdx.x" in written.text
    assert "part[KNOB_NUMBER_96 - 1 - threadIdx.x]" in written.text


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("96 - 1 - threadIdx.x", "95 - threadIdx.x", "95 is there as well, and may follow from it"),
        ("96 - 1 - threadIdx.x", "(threadIdx.x + 48) % 96", "48 is there as well"),
        ("96 - 1 - threadIdx.x", "blockDim.x - 1 - threadIdx.x", "it asks for the block along x as well"),
    ],
)
def test_a_number_that_others_may_follow_from_stays(old: str, new: str, reason: str) -> None:
    problem = made(WRITTEN_OUT.replace(old, new), '["ceildiv(n, 96)"]', '["96"]')
    assert reason in notes_of(problem)
