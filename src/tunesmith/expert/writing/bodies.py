"""A loop's body made ready for printing: fast forms behind macros, packs for accesses, partial totals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tunesmith.expert.c.nodes import Binary, Expr, For, Index, Name, Number, Stmt, Type, Verbatim
from tunesmith.expert.c.substitution import substitute
from tunesmith.expert.c.walk import map_statements
from tunesmith.expert.model.kernel import Each, Repeat, Step, When
from tunesmith.expert.writing.fast_math import FastMath
from tunesmith.expert.writing.float_types import declared_types
from tunesmith.expert.writing.packs import replacements, rewrite
from tunesmith.expert.writing.plan import LoopPlan, Plan
from tunesmith.expert.writing.sites import counted


@dataclass(frozen=True)
class Body:
    plain: tuple[Stmt, ...]  # for one index, as in the source
    packed: tuple[Stmt, ...]  # for one lane of a pack
    inverses: tuple[tuple[str, Expr], ...]  # reciprocals to compute before the loop


def known_types(plan: Plan) -> dict[str, Type | None]:
    """Of everything a body may name, as far as the model tells."""
    found: dict[str, Type | None] = {p.name: p.type for p in plan.kernel.function.parameters}
    found.update({task.name: Type(task.type) for task in plan.kernel.tasks})
    found.update({task.count: Type("unsigned int") for task in plan.kernel.tasks if task.count})
    found.update({kept.name: Type(kept.type.base, 1) for kept in plan.kernel.kept})

    def visit(steps: Iterable[Step]) -> None:
        for step in steps:
            match step:
                case When(then=then, otherwise=otherwise):
                    visit((*then, *otherwise))
                case Repeat(body=body):
                    found[step.index] = Type(step.type)
                    visit(body)
                case _:
                    found.update(declared_types(step.body))
                    if isinstance(step, Each):
                        found[step.index] = Type(step.type)
                        found.update({total.name: total.type for total in step.totals})

    visit(plan.kernel.steps)
    return found


def prepare(
    loop: LoopPlan, plan: Plan, fast: FastMath, lane: str, item: str, parts: dict[str, str], chains: str
) -> Body:
    """`parts`: a total -> the array of its partial values, of which a lane takes one."""
    each = loop.each
    varying = frozenset((each.index, *(total.name for total in each.totals)))
    body, inverses = fast.statements(each.body, known_types(plan), varying)
    body = unrolled(body, plan)
    packs = {pack.key: Index(Name(loop.names[pack.key]), Name(item)) for pack in loop.packs}
    packed = rewrite(body, replacements(loop.packs, dict(packs), Name(lane)))
    if parts:
        first = {name: Index(Name(array), Number("0", 0)) for name, array in parts.items()}
        of_lane = {
            name: Index(Name(array), Binary("%", Name(lane), Name(chains))) for name, array in parts.items()
        }
        body, packed = substitute(body, dict(first)), substitute(packed, dict(of_lane))
    return Body(body, packed, inverses)


def unrolled(body: Iterable[Stmt], plan: Plan) -> tuple[Stmt, ...]:
    """Short counted loops unrolled whole, so that arrays stay in registers; others as the schedule says."""
    choice = plan.draft.schedule.unroll

    def visit(stmt: Stmt) -> Stmt | tuple[Stmt, ...]:
        if not isinstance(stmt, For) or stmt.unroll is not None:
            return stmt
        count = counted(stmt)
        if count is not None and count[1] <= 16:
            return replace(stmt, unroll=0)
        if choice is not None:
            return Verbatim(f"#pragma unroll {choice.name}"), stmt
        return stmt

    return map_statements(body, on_stmt=visit)
