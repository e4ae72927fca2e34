"""Finishing touches: hints, fast forms, conversions, sizes and compiler settings, and what refuses them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.expert.moves.kernels import (
    CPU,
    FLAT,
    FLAT_PROBLEM,
    MAP,
    ROWS,
    SIGNATURE,
    applied,
    each,
    expr,
    kernel,
    problem,
    refused,
)
from tunesmith.expert.moves import PARAMETERS, REMEDIES
from tunesmith.expert.moves.convert import FORMATS
from tunesmith.expert.moves.move import Context
from tunesmith.expert.read.model import Each
from tunesmith.source.printing import print_statements


class TestConvert:
    @pytest.mark.parametrize("form", FORMATS)
    def test_codes_and_values_agree(self, form) -> None:  # type: ignore[no-untyped-def]
        last = form.code(form.largest)
        for code in (0, 1, 2, 3, last // 3, last // 2, last - 1, last):
            assert form.code(form.value(code)) == code
            assert form.code(-form.value(code)) == code | 1 << (form.bits - 1)


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

    def test_what_is_no_whole_number_of_rows_stays_flat(self) -> None:
        (loop,) = self.FLAT.steps
        assert isinstance(loop, Each)
        ragged = replace(self.FLAT, steps=(replace(loop, stop=expr("tokens * d + 1")),))
        assert "not taken apart" in refused(ragged, "rows", problem=self.AT)
        assert "not taken apart" in refused(FLAT, "rows", problem=FLAT_PROBLEM)
        assert "in rows already" in refused(MAP, "rows")


def test_hints_are_for_accesses_of_neighbours() -> None:
    apart = kernel(ROWS, each("out[i * rows] = x[i * rows];"))
    assert "plain one of neighbours" in refused(apart, "lanes", "hints")


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
