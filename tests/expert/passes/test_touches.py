"""Finishing touches: hints, fast forms, conversions, sizes and compiler settings, and what refuses them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.expert.passes.kernels import (
    CPU,
    FLAT,
    FLAT_PROBLEM,
    MAP,
    NORM,
    ROWS,
    SIGNATURE,
    applied,
    each,
    expr,
    kernel,
    problem,
    refused,
    searched,
)
from tunesmith.csource.parse import read_source_tree
from tunesmith.csource.printing import print_expr, print_statements
from tunesmith.expert.model.kernel import Each
from tunesmith.expert.passes import PARAMETERS, REMEDIES, Context
from tunesmith.expert.passes.convert import FORMATS, recognised, run

E4M3 = """
__device__ unsigned char to_e4m3(float value)
{
    const unsigned bits = __float_as_uint(value);
    const unsigned sign = bits >> 24 & 0x80;
    const unsigned magnitude = bits & 0x7fffffff;
    unsigned code;
    if (magnitude < 121u << 23) {
        code = __float_as_uint(__uint_as_float(magnitude) + 16384.0f) - __float_as_uint(16384.0f);
    } else {
        const unsigned is_odd = magnitude >> 20 & 1;
        code = (magnitude - (120u << 23) + 0x7ffff + is_odd) >> 20;
    }
    return static_cast<unsigned char>(sign | code);
}
"""
BF16 = """
__device__ unsigned short to_bf16(float v)
{
    unsigned u = __float_as_uint(v);
    u += 0x7fff + ((u >> 16) & 1);
    return u >> 16;
}
"""


def recognise(text: str) -> str:
    (function,) = read_source_tree(text, "cuda").functions
    found = recognised(function)
    return found.name if found is not None else ""


class TestConvert:
    def test_a_conversion_is_known_by_what_it_gives(self) -> None:
        assert recognise(E4M3) == "float8_e4m3"
        assert recognise(BF16) == "bfloat16"

    @pytest.mark.parametrize(
        "text",
        [
            BF16.replace("u += 0x7fff + ((u >> 16) & 1);", ""),  # cuts off
            BF16.replace("0x7fff + ((u >> 16) & 1)", "0x8000"),  # ties away from zero
            E4M3.replace("sign | code", "code"),
            BF16.replace("float v", "float *v").replace("(v)", "(*v)"),
            "__device__ unsigned short f(float v) { for (;;) {} return 0; }",
            "__device__ unsigned short f(float v) { return unheard_of(v); }",
        ],
    )
    def test_what_rounds_otherwise_or_cannot_be_run_is_none(self, text: str) -> None:
        assert recognise(text) == ""

    def test_a_draft_says_what_the_hardware_does_instead(self) -> None:
        given = kernel(
            "unsigned char *out, const float *x, int rows, int d",
            each("out[row * d + i] = to_e4m3(x[row * d + i]);"),
            helpers=E4M3,
        )
        at = problem("out: uint8*[rows, d]; x: float32*[rows, d]; rows: int32 = rows; d: int32 = d")
        draft = applied(given, "lanes", "convert", problem=at)
        statement = "return (unsigned char)__nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);"
        assert draft.hardware == (("to_e4m3", statement),)
        without = replace(given, source=replace(given.source, includes=("<cuda_fp16.h>",)))
        assert "no helper" in refused(without, "lanes", "convert", problem=at)

    @pytest.mark.parametrize("form", FORMATS)
    def test_codes_and_values_agree(self, form) -> None:  # type: ignore[no-untyped-def]
        last = form.code(form.largest)
        for code in (0, 1, 2, 3, last // 3, last // 2, last - 1, last):
            assert form.code(form.value(code)) == code
            assert form.code(-form.value(code)) == code | 1 << (form.bits - 1)


def test_running_wraps_and_rounds_as_the_hardware_does() -> None:
    def result(text: str, argument: float) -> int | None:
        (function,) = read_source_tree(f"__device__ unsigned int f(float v) {{ {text} }}", "cuda").functions
        return run(function, argument)

    assert result("return 0xffffffffu + 2u;", 0.0) == 1
    assert result("return v + 16777216.0f == 16777216.0f;", 1.0) == 1
    assert result("int a = -8; return (unsigned)(a >> 1);", 0.0) == 2**32 - 4
    assert result("if (v < 0.0f || v > 1.0f) return 1u; else { return 2u; }", 0.5) == 2
    assert result("return v > 2.0f ? 5u : 6u;", 3.0) == 5
    assert result("unsigned a[2]; return 0u;", 0.0) is None
    assert result("return 1u << 40;", 0.0) is None


def test_a_loop_that_stores_again_what_was_stored_is_left_out() -> None:
    (first,) = MAP.steps
    assert isinstance(first, Each)
    twice = replace(MAP, steps=(first, replace(first, index="j", again=True)))
    assert applied(twice, "redundant").kernel.steps == (first,)
    assert "no loop only stores again" in refused(MAP, "redundant")


class TestRows:
    FLAT = kernel(
        "__half *out, const __half *x, int tokens, int d",
        each(
            "size_t token = i / d; size_t at = i % d; out[i] = x[token * 2 * d + at];",
            stop="(size_t)tokens * d",
        ),
        tasks=(),
        team="grid",
    )
    AT = problem(
        "out: float16*[tokens, d]; x: float16*[tokens, 2 * d]; tokens: int32 = tokens; d: int32 = d",
        grid="ceildiv(tokens * d, 256)",
        sizes="tokens = 100, d = 2730",
        contract="tokens = { min = 1, max = 9999 }\nd = { min = 1, max = 9999 }",
    )

    def test_the_index_becomes_a_row_and_a_place_in_it(self) -> None:
        found = applied(self.FLAT, "rows", problem=self.AT).kernel
        (task,), (loop,) = found.tasks, found.steps
        assert isinstance(loop, Each)
        assert (task.name, print_expr(task.extent)) == ("row", "tokens")
        assert (loop.index, print_expr(loop.stop)) == ("i_in_row", "d")
        text = print_statements(loop.body, 0, "cuda")
        assert "size_t token = row;" in text
        assert "size_t at = i_in_row;" in text
        assert "out[row * d + i_in_row] = x[token * 2 * d + at];" in text

    def test_of_several_lengths_the_one_that_leaves_nothing_to_divide(self) -> None:
        by_planes = (
            "i / d / tokens * 3 + i / d % tokens; size_t at = i - i / d * d; size_t two = i % (tokens * d)"
        )
        loop = each(f"size_t plane = {by_planes}; out[i] = x[plane * d + at + two];", stop="4 * tokens * d")
        (loop,) = applied(replace(self.FLAT, steps=(loop,)), "rows", problem=self.AT).kernel.steps
        assert isinstance(loop, Each)
        assert print_statements(loop.body, 0, "cuda").split("\n") == [
            "size_t plane = row / tokens * 3 + row % tokens;",
            "size_t at = i_in_row;",
            "size_t two = row % tokens * d + i_in_row;",
            "out[row * d + i_in_row] = x[plane * d + at + two];",
            "",
        ]

    @pytest.mark.parametrize("divided", ["i / d / 7", "i / (d * 7)", "(unsigned char)i / d", "i % (7 * d)"])
    def test_what_does_not_divide_the_whole_stays(self, divided: str) -> None:
        """Rows are not whole ones of seven, and a byte holds less than an index."""
        loop = each(f"size_t at = {divided}; out[i] = x[i % d + at];", stop="tokens * d")
        (loop,) = applied(replace(self.FLAT, steps=(loop,)), "rows", problem=self.AT).kernel.steps
        assert isinstance(loop, Each)
        first = print_statements(loop.body[:1], 0, "cuda")
        assert "row * d + i_in_row" in first or first == "size_t at = row / 7;\n"

    def test_rows_too_short_for_a_team_stay_flat(self) -> None:
        short = problem(
            "out: float16*[tokens, d]; x: float16*[tokens, 2 * d]; tokens: int32 = tokens; d: int32 = d",
            sizes="tokens = 100, d = 3", grid="tokens",
            contract="tokens = { min = 1, max = 9999 }\nd = { min = 1, max = 9999 }",
        )  # fmt: skip
        assert "fewer than 8" in refused(self.FLAT, "rows", problem=short)

    def test_what_is_no_whole_number_of_rows_stays_flat(self) -> None:
        (loop,) = self.FLAT.steps
        assert isinstance(loop, Each)
        ragged = replace(self.FLAT, steps=(replace(loop, stop=expr("tokens * d + 1")),))
        assert "not taken apart" in refused(ragged, "rows", problem=self.AT)
        assert "not taken apart" in refused(FLAT, "rows", problem=FLAT_PROBLEM)
        assert "in rows already" in refused(MAP, "rows")


def test_hints_for_loads_and_stores_go_with_wide_vectors() -> None:
    draft = applied(MAP, "lanes", "vector", "hints")
    assert "load_hint" in draft.schedule
    assert draft.schedule["load_hint"].values == (0, 1, 2)
    assert draft.schedule["load_hint"].categorical
    prefer, wide = dict(searched(draft).prefer), "VEC >= 8 or not d % (2 * VEC) == 0"
    assert prefer["touches_if_wide"] == f"LOAD == 0 and STORE == 0 or {wide}"
    assert prefer["hints_agree"] == "LOAD == 0 or STORE == LOAD // 2"
    assert dict(searched(draft).answers)["cache_hints"] == "LOAD > 0 or STORE > 0"
    assert "plain one of neighbours" in refused(
        kernel(ROWS, each("out[i * rows] = x[i * rows];")), "lanes", "hints"
    )


def test_fast_forms_name_what_they_replace() -> None:
    draft = applied(MAP, "lanes", "fast")
    assert "fast" in draft.schedule
    assert draft.schedule["fast"].note == "1: fast forms of exp, quotient"
    flagged = problem(SIGNATURE, flags='["-use_fast_math"]')
    assert "-use_fast_math" in refused(MAP, "lanes", "fast", problem=flagged)
    assert "has a fast form" in refused(FLAT, "lanes", "fast", problem=FLAT_PROBLEM)


def test_reciprocals_are_for_divisors_that_stay_the_same() -> None:
    assert "reciprocal" in applied(NORM, "lanes", "reciprocal").schedule
    assert "no float is divided" in refused(MAP, "lanes", "reciprocal")


def test_index_divisions_by_what_only_the_call_knows() -> None:
    divides = kernel(ROWS, each("out[row * d + i] = x[i / rows * d + i % rows];"))
    assert "divide" in applied(divides, "lanes", "divide").schedule
    by_constant = kernel(ROWS, each("out[row * d + i] = x[i / 8];"))
    assert "only the call knows" in refused(by_constant, "lanes", "divide")


def test_sizes_are_baked_where_rows_depend_on_them() -> None:
    assert "bake" in applied(MAP, "lanes", "bake").schedule
    assert "follows from the problem's sizes" in refused(FLAT, "lanes", "bake", problem=FLAT_PROBLEM)


def test_unrolling_is_for_long_inner_loops() -> None:
    taps = kernel(ROWS, each("float s = 0.0f; for (int k = 0; k < rows; k++) s += k; out[row * d + i] = s;"))
    assert "unroll" in applied(taps, "lanes", "unroll").schedule
    short = kernel(ROWS, each("float s = 0.0f; for (int k = 0; k < 4; k++) s += k; out[row * d + i] = s;"))
    assert "unrolled whole anyway" in refused(short, "lanes", "unroll")
    assert "no thread runs a loop" in refused(MAP, "lanes", "unroll")


def test_compiler_settings_are_tried_one_at_a_time() -> None:
    prefer = dict(searched(applied(MAP, "lanes", "tasks", "bounds", "registers", "flags")).prefer)
    assert prefer["one_setting"] == "(BOUNDS != 1) + (REGS != 255) + (LEVEL != 5) <= 1"
    assert prefer["bounds_fit"].startswith("BOUNDS == 1 or BOUNDS * LANES * TASKS <= ")
    capped = problem(SIGNATURE, flags='["-maxrregcount=64"]')
    assert "cap registers already" in refused(MAP, "registers", problem=capped)


@pytest.mark.parametrize("name", ["bounds", "registers", "flags", "convert"])
def test_settings_of_cuda_are_refused_for_opencl(name: str) -> None:
    source = "__kernel void it() {}"
    given = problem(SIGNATURE.replace("float16", "float32"), language="opencl", source=source)
    assert "opencl" in refused(MAP, "lanes", name, problem=given, device=CPU)


def test_a_word_of_the_source_is_never_made_a_macro() -> None:
    taken = problem(SIGNATURE, source="__global__ void it() { const int LANES = 3, LANES_ = 4; }")
    assert Context(taken, CPU).macro("LANES") == "LANES__"
    assert Context(taken, CPU).macro("VEC") == "VEC"


def test_every_move_says_what_it_answers_and_sets() -> None:
    assert REMEDIES.keys() == PARAMETERS.keys()
    assert all(REMEDIES.values())
    assert [name for name, own in PARAMETERS.items() if not own] == ["fills", "redundant", "rows"]
