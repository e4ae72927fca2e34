"""Moves that change how the work is shared: their domains, defaults and conditions, and what refuses them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.expert.moves.kernels import (
    FLAT,
    FLAT_PROBLEM,
    MAP,
    NORM,
    PROBLEM,
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
from tests.wording import says
from tunesmith.expert.read.model import ArrayAccess, KernelModel, ParameterChoice, Task, TemplateDraft
from tunesmith.problem.device import DEVICE_NAMES
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Remedy
from tunesmith.source.tree import Name
from tunesmith.space.expr import parse_expr


def choice(draft: TemplateDraft, role: str) -> ParameterChoice:
    return draft.schedule[role]


class TestLanes:
    def test_a_part_of_a_warp_is_read_from_the_model(self) -> None:
        part = replace(MAP, team="part of a warp", lanes=expr("16"))
        short = problem(SIGNATURE, sizes="rows = 1024, d = 128")
        assert choice(applied(part, "lanes", problem=short), "lanes").default == 16
        assert choice(applied(part, "lanes", "tasks", problem=short), "tasks").default == 16

    def test_a_kernel_without_loops_is_one_thread_s_work(self) -> None:
        alone = replace(MAP, steps=(), team="thread")
        draft = applied(alone, "lanes", "tasks")
        assert choice(draft, "lanes").values == (1,)
        assert choice(draft, "tasks").values == (32, 64, 128, 256, 512, 1024)
        assert choice(draft, "tasks").default == 256


class TestVector:
    def test_elements_apart_are_refused_with_their_line(self) -> None:
        apart = kernel(ROWS, each("out[i * rows + row] = x[i * rows + row];"))
        access = ArrayAccess(
            "x", "load", apart.function.parameters[1].type, expr("i * rows + row"), None, "i", line=7
        )
        reason = refused(replace(apart, accesses=(access,)), "lanes", "vector")
        says(reason, "x", "no fixed number", "(line 7)")


class TestItems:
    def test_without_a_loop_there_are_no_turns(self) -> None:
        assert "no loop" in refused(replace(MAP, steps=()), "lanes", "items")


PAIR = "__half *out, __half *other, const __half *x, int rows, int d, int e"
PAIR_PROBLEM = problem(
    "out: float16*[rows, d]; other: float16*[rows, e]; x: float16*[rows, d]; rows: int32 = rows; "
    "d: int32 = d; e: int32 = e",
    sizes="rows = 1024, d = 1024, e = 256",
    contract="rows = { min = 1, max = 65536 }\nd = { min = 1, max = 65536 }\ne = { min = 1, max = 65536 }",
)
LOOPS = (
    each("out[row * d + i] = x[row * d + i];"),
    each("other[row * e + i] = x[row * d];", stop="e"),
)


class TestBeside:
    def test_a_loop_that_reads_what_the_other_writes_comes_after_it(self) -> None:
        second = each("other[row * e + i] = out[row * d + i];", stop="e")
        assert "touch what the other writes" in refused(
            kernel(PAIR, LOOPS[0], second), "beside", problem=PAIR_PROBLEM
        )


class TestPersistent:
    def test_a_kernel_without_the_number_of_rows_cannot_go_on(self) -> None:
        uncounted = replace(NORM, tasks=(Task("row", Name("gridDim.x"), "int", "rows"),))
        assert "not told how many tasks" in refused(uncounted, "lanes", "persistent")


@pytest.mark.parametrize(("given", "at"), [(MAP, PROBLEM), (NORM, PROBLEM), (FLAT, FLAT_PROBLEM)])
def test_every_condition_is_an_expression_over_parameters_sizes_and_limits(
    given: KernelModel, at: Problem
) -> None:
    moves = [
        "lanes",
        *(["tasks"] if given.tasks else []),
        "vector",
        "items",
        "hints",
        "persistent",
        "bounds",
        "registers",
    ]
    draft = searched(applied(given, *moves, problem=at), at)
    known = {c.name for c in draft.schedule.choices} | set(at.size_names) | set(DEVICE_NAMES)
    for _, text in (*draft.prefer, *draft.require):
        assert parse_expr(text, names=known)
    for remedy, text in draft.answers:
        assert Remedy(remedy)
        assert parse_expr(text, names={c.name for c in draft.schedule.choices}).names  # parameters alone
    names = [name for name, _ in draft.prefer]
    assert len(names) == len(set(names))
