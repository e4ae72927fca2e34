"""What a kernel's steps compute with: what has a fast form, index divisions, inner loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tunesmith.expert.c.nodes import Assign, Binary, Expr, For, Number, Stmt, Type
from tunesmith.expert.c.walk import declared_in, names_in, nodes_in
from tunesmith.expert.model.affine import type_of
from tunesmith.expert.model.kernel import Each, Kernel, Let, Once
from tunesmith.expert.moves.shape import all_steps, loops
from tunesmith.expert.writing.fast_math import FastMath
from tunesmith.expert.writing.float_types import declared_types
from tunesmith.expert.writing.naming import Names
from tunesmith.expert.writing.source_parts import used_functions


def statements(kernel: Kernel) -> Iterator[Stmt]:
    """Of every step, in order."""
    for step in all_steps(kernel.steps):
        if isinstance(step, Each | Let | Once):
            yield from step.body


def inner_loops(kernel: Kernel) -> tuple[For, ...]:
    return tuple(node for node in nodes_in(tuple(statements(kernel))) if isinstance(node, For))


def types_of(kernel: Kernel) -> dict[str, Type | None]:
    """Of every name that steps may use; None where two of one name differ."""
    found: dict[str, Type | None] = {p.name: p.type for p in kernel.function.parameters}
    found |= {task.name: Type(task.type) for task in kernel.tasks}
    found |= {task.count: Type("unsigned int") for task in kernel.tasks if task.count}
    found |= {kept.name: Type(kept.type.base, 1) for kept in kernel.kept}
    found |= {loop.index: Type(loop.type) for loop in loops(kernel)}
    found |= {total.name: total.type for loop in loops(kernel) for total in loop.totals}
    return found | declared_types(statements(kernel))


@dataclass(frozen=True)
class FastForms:
    """What the writer would put behind macros: nothing where it would change nothing."""

    functions: tuple[str, ...]  # called, that have a fast form; quotients count as one
    by_invariants: int  # quotients by what is the same for a whole loop


def fast_forms(kernel: Kernel, language: str) -> FastForms:
    """As the writer finds them: in the steps, and in helper functions that they may call."""
    results = {f.name: f.result for f in kernel.source.functions if not f.template}
    fast = FastMath(language, Names(()), "FAST", "", results)
    reciprocal = FastMath(language, Names(()), "", "RECIP", results)
    types, count = types_of(kernel), 0
    for step in all_steps(kernel.steps):
        if isinstance(step, Each | Let | Once):
            varying = frozenset((step.index,)) if isinstance(step, Each) else None
            fast.statements(step.body, types, varying)
            count += len(reciprocal.statements(step.body, types, varying)[1])
    for function in used_functions(kernel):
        fast.statements(function.body, {p.name: p.type for p in function.parameters})
    used = sorted(name.lower() for name in fast.all_names if name)
    return FastForms(tuple(used), count)


def index_divisions(kernel: Kernel) -> int:
    """Divisions and remainders of integers in loops, by something that is no constant and does not vary."""
    types = {name: type_ for name, type_ in types_of(kernel).items() if type_ is not None}
    found: set[Binary] = set()
    for loop in loops(kernel):
        varying = {loop.index, *declared_in(loop.body)}
        for node in nodes_in(loop.body):
            division = _division(node)
            if division is None or isinstance(division.right, Number):
                continue
            if names_in(division.right) & varying or not names_in(division.left) & varying:
                continue
            if type_of(division, types) is not None:
                found.add(division)
    return len(found)


def _division(node: Expr | Stmt) -> Binary | None:
    if isinstance(node, Binary) and node.op in ("/", "%"):
        return node
    if isinstance(node, Assign) and node.op in ("/=", "%="):
        return Binary(node.op[0], node.target, node.value)
    return None
