"""Moves that change how the work is shared: their domains, defaults and conditions, and what refuses them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.expert.passes.kernels import (
    CPU,
    FLAT,
    FLAT_PROBLEM,
    LOAD,
    MAP,
    NORM,
    PROBLEM,
    ROWS,
    SIGNATURE,
    SUM,
    applied,
    each,
    expr,
    kernel,
    problem,
    refused,
    searched,
)
from tests.wording import says
from tunesmith.csource.nodes import Name
from tunesmith.expert.model.kernel import ArrayAccess, KernelModel, ParameterChoice, Task, TemplateDraft
from tunesmith.expert.writing import structural_rules
from tunesmith.problem.device import DEVICE_NAMES
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Remedy
from tunesmith.space.expr import parse


def choice(draft: TemplateDraft, role: str) -> ParameterChoice:
    return draft.schedule[role]


def required(draft: TemplateDraft, given: Problem = PROBLEM) -> dict[str, str]:
    """What the written kernel relies on: the writer's own conditions and the moves'."""
    return dict(structural_rules(draft, given)) | dict(draft.require)


class TestLanes:
    def test_widths_up_to_one_turn_of_the_row_with_the_block_of_today_as_default(self) -> None:
        lanes = choice(applied(MAP, "lanes"), "lanes")
        assert lanes.values == (32, 64, 128, 192, 256, 384, 512, 768, 1024)
        assert lanes.default == 256

    def test_short_rows_take_parts_of_a_warp(self) -> None:
        short = problem(SIGNATURE, sizes="rows = 1024, d = 128", block="128")
        assert choice(applied(MAP, "lanes", problem=short), "lanes").values == (4, 8, 16, 32, 64, 128)

    @pytest.mark.parametrize(
        ("team", "lanes", "default"), [("thread", None, 32), ("warp", None, 32), ("block", None, 256)]
    )
    def test_the_default_is_as_near_to_the_original_as_the_domain_has_it(
        self, team: str, lanes: None, default: int
    ) -> None:
        assert choice(applied(replace(MAP, team=team, lanes=lanes), "lanes"), "lanes").default == default  # type: ignore[arg-type]

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

    def test_on_a_cpu_work_items_are_few(self) -> None:
        lanes = choice(applied(MAP, "lanes", device=CPU), "lanes")
        assert lanes.values == (1, 8, 64, 256)
        assert lanes.default == 256  # today's

    def test_widths_that_make_a_row_a_few_whole_turns_are_added(self) -> None:
        uneven = problem(SIGNATURE, sizes="rows = 1024, d = 11008")
        assert {352, 704} <= set(choice(applied(MAP, "lanes", problem=uneven), "lanes").values)

    def test_answers_say_where_the_remedies_are(self) -> None:
        answers = dict(searched(applied(NORM, "lanes")).answers)
        assert answers == {
            "block_size": "LANES != 256",
            "warp_per_row": "LANES <= 32",
            "shuffle_reduction": "LANES <= 256",
        }
        assert "share_serial_work" in dict(applied(replace(NORM, team="thread"), "lanes").answers)


class TestTasks:
    def test_as_many_as_a_block_of_512_holds(self) -> None:
        draft = applied(MAP, "lanes", "tasks")
        assert choice(draft, "tasks").values == (1, 2, 4, 8, 16)
        assert required(draft)["block_fits"] == "LANES * TASKS <= device.max_threads"
        assert (
            dict(searched(draft).prefer)["enough_threads"] == "LANES * TASKS >= min(64, device.max_threads)"
        )

    def test_a_grid_on_one_task_has_none_to_put_side_by_side(self) -> None:
        assert "one task" in refused(FLAT, "lanes", "tasks", problem=FLAT_PROBLEM)


class TestVector:
    def test_up_to_sixteen_bytes_where_rows_are_whole(self) -> None:
        draft = applied(MAP, "lanes", "tasks", "vector")
        assert choice(draft, "vector").values == (1, 2, 4, 8)
        assert required(draft)["whole_vectors"] == "d % VEC == 0"
        assert dict(searched(draft).answers)["wide_access"] == "VEC * 2 >= 16"
        assert [text for name, text in searched(draft).prefer if name == "no_idle_lanes"] == [
            "LANES * VEC < 2 * d"
        ]

    def test_what_the_contract_grants_is_not_asked_for(self) -> None:
        whole = problem(
            SIGNATURE, contract="rows = { min = 1, max = 9000 }\nd = { min = 8, max = 4096, multiple_of = 8 }"
        )
        assert "whole_vectors" not in required(applied(MAP, "lanes", "vector", problem=whole), whole)

    def test_another_stride_must_be_whole_as_well(self) -> None:
        strided = kernel(
            f"{ROWS}, long long stride", each("out[row * d + i] = x[row * stride + i];")
        )  # fmt: skip
        given = problem(f"{SIGNATURE}; stride: int64 = 3 * d + 8")
        assert required(applied(strided, "lanes", "vector", problem=given), given)["whole_vectors"] in (
            "d % VEC == 0 and (3 * d + 8) % VEC == 0", "(3 * d + 8) % VEC == 0 and d % VEC == 0",
        )  # fmt: skip

    def test_the_wider_of_two_types_may_take_two_accesses(self) -> None:
        mixed = kernel(
            "unsigned char *out, const __half *x, int rows, int d", each("out[row * d + i] = x[row * d + i];")
        )
        given = problem(SIGNATURE.replace("out: float16", "out: uint8"))
        assert choice(applied(mixed, "lanes", "vector", problem=given), "vector").values == (1, 2, 4, 8, 16)

    def test_arrays_that_may_start_anywhere_are_refused_with_what_to_write(self) -> None:
        reason = refused(MAP, "lanes", "vector", problem=problem(SIGNATURE, align=2))
        assert "promised at multiples of 2 bytes only" in reason
        assert "align = 16" in reason

    def test_half_the_alignment_is_half_the_width(self) -> None:
        assert choice(
            applied(MAP, "lanes", "vector", problem=problem(SIGNATURE, align=8)), "vector"
        ).values == (1, 2, 4)

    def test_on_a_cpu_totals_are_for_vectors_or_for_lanes(self) -> None:
        prefer = dict(applied(NORM, "lanes", "vector", device=CPU).prefer)
        assert prefer["lanes_or_vectors"] == "LANES == 1 or VEC == 1"
        assert "lanes_or_vectors" not in dict(applied(MAP, "lanes", "vector", device=CPU).prefer)

    def test_values_that_no_workload_allows_are_left_out(self) -> None:
        ragged = problem(SIGNATURE, sizes="rows = 1024, d = 2730")
        draft = applied(MAP, "lanes", "vector", "fast", problem=ragged)
        assert choice(draft, "vector").values == (1, 2)
        wide = "FAST == 0 or VEC >= 2 or not d % (2 * VEC) == 0"
        assert dict(searched(draft, ragged).prefer)["touches_if_wide"] == wide
        odd = problem(SIGNATURE, sizes="rows = 1024, d = 2731")
        assert "at any workload" in refused(MAP, "lanes", "vector", problem=odd)

    def test_sixteen_bytes_already_are_wide_enough(self) -> None:
        wide = kernel(
            "uint4 *out, const uint4 *x, int rows, int d", each("out[row * d + i] = x[row * d + i];")
        )
        given = problem(
            "out: uint32*[rows, 4 * d]; x: uint32*[rows, 4 * d]; rows: int32 = rows; d: int32 = d"
        )
        assert "16 bytes at once already" in refused(wide, "lanes", "vector", problem=given)

    def test_elements_apart_are_refused_with_their_line(self) -> None:
        apart = kernel(ROWS, each("out[i * rows + row] = x[i * rows + row];"))
        access = ArrayAccess(
            "x", "load", apart.function.parameters[1].type, expr("i * rows + row"), None, "i", line=7
        )
        reason = refused(replace(apart, accesses=(access,)), "lanes", "vector")
        says(reason, "x", "no fixed number", "(line 7)")

    def test_what_not_every_turn_does_is_left_alone(self) -> None:
        some = kernel(ROWS, each("if (i % 3 == row) out[row * d + i] = x[row * d + i];"))
        assert "in every turn" in refused(some, "lanes", "vector")


class TestItems:
    def test_bytes_under_way_are_limited(self) -> None:
        draft = applied(MAP, "lanes", "vector", "items")
        assert choice(draft, "items").values == (1, 2, 4)
        assert dict(searched(draft).prefer)["loads_under_way"] == "VEC * ITEMS * 2 <= 256"
        assert dict(searched(draft).prefer)["no_idle_lanes"] == "LANES * VEC * ITEMS < 2 * d"

    def test_on_a_cpu_there_are_enough_sums_as_the_original_has(self) -> None:
        moves = ("lanes", "vector", "items")
        draft = applied(NORM, *moves, device=CPU)
        assert dict(draft.prefer)["enough_sums"] == "2 * LANES * VEC * ITEMS >= 256"
        assert "enough_sums" not in dict(applied(NORM, *moves).prefer)
        assert "enough_sums" not in dict(applied(MAP, *moves, device=CPU).prefer)
        alone = replace(NORM, team="thread")
        assert "enough_sums" not in dict(applied(alone, *moves, device=CPU).prefer)

    def test_without_a_loop_there_are_no_turns(self) -> None:
        assert "no loop" in refused(replace(MAP, steps=()), "lanes", "items")


class TestSplit:
    def test_maps_may_be_split(self) -> None:
        draft = applied(MAP, "lanes", "tasks", "vector", "items", "split")
        assert choice(draft, "split").values == (0, 1)
        assert dict(searched(draft).prefer)["something_to_split"] == "SPLIT == 0 or LANES * VEC * ITEMS < d"
        assert dict(searched(draft).prefer)["split_rows_are_long"] == "SPLIT == 0 or TASKS == 1"

    def test_totals_keep_a_task_in_its_block(self) -> None:
        says(refused(NORM, "lanes", "split"), "total sum", "own threads alone")

    def test_a_flat_loop_is_spread_already(self) -> None:
        assert "whole grid already" in refused(FLAT, "lanes", "split", problem=FLAT_PROBLEM)


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
    def test_independent_loops_are_one_and_rows_are_as_long_as_both(self) -> None:
        draft = applied(kernel(PAIR, *LOOPS), "beside", "lanes", "split", problem=PAIR_PROBLEM)
        assert choice(draft, "beside").values == (0, 1)
        assert choice(draft, "beside").default == 0
        rules = searched(draft, PAIR_PROBLEM)
        assert dict(rules.prefer)["no_idle_lanes"] == "LANES < 2 * (d + e if BESIDE else max(d, e))"
        assert dict(rules.answers)[Remedy.MORE_BLOCKS] == "BESIDE == 1 or SPLIT == 1"
        assert dict(rules.prefer)["split_as_one"].startswith("SPLIT == 0 or BESIDE == 1 and LANES < 2 * (")

    def test_a_loop_that_reads_what_the_other_writes_comes_after_it(self) -> None:
        second = each("other[row * e + i] = out[row * d + i];", stop="e")
        assert "touch what the other writes" in refused(
            kernel(PAIR, LOOPS[0], second), "beside", problem=PAIR_PROBLEM
        )

    def test_totals_are_waited_for(self) -> None:
        assert "total something" in refused(NORM, "beside")

    def test_one_loop_has_no_other_beside_it(self) -> None:
        assert "one loop" in refused(MAP, "beside")

    def test_on_a_cpu_nothing_waits(self) -> None:
        assert "CPU" in refused(kernel(PAIR, *LOOPS), "beside", problem=PAIR_PROBLEM, device=CPU)


class TestKeep:
    def test_the_row_must_fit_and_registers_must_do(self) -> None:
        draft = applied(NORM, "lanes", "tasks", "vector", "keep")
        assert choice(draft, "keep").values == (0, 1, 2, 3, 4, 6, 8, 16)
        assert required(draft)["row_fits"] == "KEEP == 0 or LANES * VEC * KEEP >= d"
        assert dict(searched(draft).prefer)["registers"].startswith(
            "LANES * TASKS * (KEEP * VEC * 2 // 4 + 32) <= (device.registers_per_sm if"
        )
        assert dict(searched(draft).prefer)["no_idle_part"] == "KEEP <= 1 or LANES * VEC * (KEEP - 1) < d"
        assert dict(searched(draft).answers)["row_in_registers"] == "KEEP > 0"

    def test_vectors_are_kept_or_under_way_and_not_both(self) -> None:
        draft = applied(NORM, "lanes", "vector", "items", "keep")
        assert dict(searched(draft).prefer)["one_way_at_a_time"] == "KEEP == 0 or ITEMS == 1"

    @pytest.mark.parametrize(
        ("given", "reason"),
        [
            (MAP, "one loop over the row only"),
            (
                kernel(
                    ROWS,
                    each(f"{LOAD} sum += v;", totals=(SUM,)),
                    each("out[row * d + i] = __float2half(sum);"),
                ),
                "no later loop over the same range reads",
            ),
            (
                kernel(
                    ROWS,
                    each(f"{LOAD} sum += v;", stop="d / 2", totals=(SUM,)),
                    each("out[row * d + i] = __hadd(x[row * d + i], __float2half(sum));"),
                ),
                "no later loop over the same range reads",
            ),
        ],
    )
    def test_nothing_to_keep(self, given: KernelModel, reason: str) -> None:
        assert reason in refused(given, "lanes", "vector", "keep")

    def test_not_on_a_cpu(self) -> None:
        assert "CPU" in refused(NORM, "lanes", "keep", device=CPU)


class TestPersistent:
    def test_enough_threads_and_enough_to_go_on(self) -> None:
        draft = applied(NORM, "lanes", "tasks", "persistent")
        assert choice(draft, "persistent").values == (0, 1, 2, 4, 8)
        assert dict(searched(draft).prefer)["room_to_persist"].startswith(
            "PERSIST == 0 or 512 <= PERSIST * LANES * TASKS <= (device.threads_per_sm if"
        )
        assert (
            dict(searched(draft).prefer)["many_to_go_on"]
            == "PERSIST == 0 or rows >= 2 * PERSIST * TASKS * device.sms"
        )

    def test_a_kernel_without_the_number_of_rows_cannot_go_on(self) -> None:
        uncounted = replace(NORM, tasks=(Task("row", Name("gridDim.x"), "int", "rows"),))
        assert "not told how many tasks" in refused(uncounted, "lanes", "persistent")

    def test_a_flat_loop_goes_on_by_pieces(self) -> None:
        draft = applied(FLAT, "lanes", "vector", "persistent", problem=FLAT_PROBLEM)
        assert (
            "n >= 2 * PERSIST * LANES * VEC * device.sms"
            in dict(searched(draft, FLAT_PROBLEM).prefer)["many_to_go_on"]
        )

    def test_not_on_a_cpu(self) -> None:
        assert "CPU" in refused(NORM, "lanes", "persistent", device=CPU)


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
        assert parse(text, names=known)
    for remedy, text in draft.answers:
        assert Remedy(remedy)
        assert parse(text, names={c.name for c in draft.schedule.choices}).names  # parameters alone
    names = [name for name, _ in draft.prefer]
    assert len(names) == len(set(names))
