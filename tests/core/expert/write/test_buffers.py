"""What of arrays stays in registers, and which copies that saves: decided before anything is printed."""

from __future__ import annotations

from dataclasses import replace

from tests.core.expert.write.models import choice, each, kernel, let, problem_of, rmsnorm, task, total
from tunesmith.expert.read.model import Each, Schedule, TemplateDraft, When
from tunesmith.expert.write.buffers import LoopPlan
from tunesmith.expert.write.given import loops_in
from tunesmith.expert.write.plan import WritingPlan, make_plan
from tunesmith.source.reader.parse import read_expression

WIDE = Schedule.of(lanes=choice("LANES", 32, 256), vector=choice("VEC", 1, 8))
KEPT = WIDE.having(keep=choice("KEEP", 0, 2))


def plan(schedule: Schedule) -> WritingPlan:
    model, problem = rmsnorm()
    return make_plan(TemplateDraft(model, schedule), problem)


def ways(loop: LoopPlan) -> list[tuple[str, str, bool]]:
    return [(copy.pack.array, copy.way, copy.needless) for copy in (*loop.loads, *loop.stores)]


def test_what_a_later_loop_reads_again_is_loaded_once() -> None:
    first, second = plan(KEPT).all_loops
    (x,) = first.packs
    assert first.opens == (x,)
    held = [loop.buffers[x.key] for loop in (first, second)]
    assert held[0].name == held[1].name
    assert [(buffer.kept, buffer.filled, buffer.wanted) for buffer in held] == [
        (True, False, True),
        (True, True, False),
    ]
    assert ways(first) == [("input", "load", False)]
    assert ways(second) == [("input", "load", True), ("weight", "load", False), ("out", "store", False)]


def test_nothing_is_needless_where_no_row_is_kept() -> None:
    found = plan(WIDE)
    assert not found.keeps
    assert not any(copy.needless for loop in found.all_loops for copy in (*loop.loads, *loop.stores))


def test_hints_are_for_what_one_task_alone_wants() -> None:
    hints = {"load_hint": choice("LOAD", 0, 1), "store_hint": choice("STORE", 0, 1)}
    _, second = plan(WIDE.having(**hints)).all_loops
    found = {array: way for array, way, _ in ways(second)}
    assert found == {"input": "load_once", "weight": "load", "out": "store_once"}


def test_tasks_taken_at_once_have_rows_of_a_table_and_share_the_weights() -> None:
    _, second = plan(WIDE.having(blocking=choice("BLOCKED", 1, 4))).all_loops
    tables = {pack.array: second.buffers[pack.key].table for pack in second.packs}
    assert tables["weight"] == ""
    assert tables["input"] == second.name(next(pack for pack in second.packs if pack.array == "input"))


def test_a_load_that_waits_for_another_comes_last() -> None:
    problem = problem_of("cuda/rmsnorm")
    model = kernel(
        problem,
        (task("token", "tokens"),),
        each("d", "s += (float)input[token * d + i];", total("s", "+", "0.f")),
        let("const int at = (int)s;"),
        each("d", "out[token * d + i] = input[at * d + i] * weight[i];"),
    )
    _, second = make_plan(TemplateDraft(model, WIDE), problem).all_loops
    assert [(copy.pack.array, copy.waits) for copy in second.loads] == [("weight", False), ("input", True)]


def test_a_loop_in_a_branch_has_the_plan_of_its_own_number() -> None:
    model, problem = rmsnorm()
    first, *others = model.steps
    loops = [step for step in others if isinstance(step, Each)]
    branch = When(read_expression("d > 8"), (replace(first, totals=()),), tuple(loops))
    found = make_plan(TemplateDraft(replace(model, steps=(first, branch, *others)), WIDE), problem)
    assert [loop.each.number for loop in found.all_loops] == [0, 1, 2, 3]
    assert [loop.each for loop in found.all_loops] == list(loops_in(found.kernel.steps))
