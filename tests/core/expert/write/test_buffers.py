"""What of arrays stays in registers, and which copies that saves: decided before anything is printed."""

from __future__ import annotations

from dataclasses import replace

from tests.core.expert.write.models import choice, each, kernel, let, problem_of, rmsnorm, task, total
from tunesmith.expert.read.model import Each, Schedule, TemplateDraft, When
from tunesmith.expert.write.given import loops_in
from tunesmith.expert.write.plan import WritingPlan, make_plan
from tunesmith.source.reader.parse import read_expression

WIDE = Schedule.of(lanes=choice("LANES", 32, 256), vector=choice("VEC", 1, 8))


def plan(schedule: Schedule) -> WritingPlan:
    model, problem = rmsnorm()
    return make_plan(TemplateDraft(model, schedule), problem)


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
