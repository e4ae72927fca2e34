"""A reading in words, with line numbers: what `tunesmith explain` shows."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.expert.read.integers import head_of, trip_count
from tunesmith.expert.read.model import (
    ArrayAccess,
    Each,
    KernelModel,
    Let,
    Once,
    Repeat,
    Step,
    When,
    all_steps,
    own_parts,
)
from tunesmith.source.printing import print_expr
from tunesmith.source.substitution import substitute
from tunesmith.source.tree import Assign, Binary, Declare, Evaluate, Expr, For, If, Name, Stmt, While
from tunesmith.source.walk import calls_in, nodes_in

_TEAMS = {
    "grid": "Its elements are independent: any thread may take any of them.",
    "block": "A block of {lanes} threads works on each.",
    "warp": "A warp works on each, several to a block.",
    "part of a warp": "{lanes} threads of a warp work on each, several tasks to a block.",
    "thread": "One thread works on each, alone.",
}
_TOTALS = {
    "+": "adds up", "*": "multiplies up", "max": "finds the largest as", "min": "finds the smallest as",
    "&": "joins by &", "|": "joins by |", "^": "joins by ^",
}  # fmt: skip
_VERBS = {"load": "read", "store": "written", "update": "updated", "atomic": "updated by atomics"}
_NEAR = {
    None: "neighbours at no constant distance", 0: "the same for neighbours", 1: "neighbours side by side",
}  # fmt: skip
_LONGEST = 100


def explain_lines(reading: KernelModel) -> list[str]:
    lines = [_about_tasks(reading), *_about_steps(reading.steps, reading, 1)]
    lines += [
        f"Shared memory '{array.name}' keeps {array.width if array.width > 1 else 'one'} {array.type.base} "
        "of every element for a later loop."
        for array in reading.staged
    ]
    lines += _about_arrays(reading) + _again_read(reading)
    if reading.barriers:
        barriers = "1 barrier" if reading.barriers == 1 else f"{reading.barriers} barriers"
        lines.append(f"Its threads meet at {barriers} for a task; only totals are exchanged there.")
    parts = [part for step in all_steps(reading.steps) for part in own_parts(step)]
    calls = sorted({call.function for part in parts for call in calls_in(part)})
    if calls:
        lines.append(f"It calls {', '.join(calls)}.")
    return lines + [f"Note: {note}." for note in reading.notes]


def fact_lines(reading: KernelModel) -> list[str]:
    """What the reading rests on, one line for each thing that is relied on and its ground."""
    found: dict[tuple[str, str], list[str]] = {}
    for fact in reading.facts:
        found.setdefault((fact.what, fact.ground), []).append(fact.where)
    lines = [f"  {what}: {ground} ({', '.join(where)})" for (what, ground), where in found.items()]
    return ["It rests on:", *lines] if lines else []


def _about_tasks(kernel: KernelModel) -> str:
    lanes = "some" if kernel.lanes is None else _shorten_expression(kernel.lanes)
    team = _TEAMS[kernel.team].format(lanes=lanes)
    if not kernel.tasks:
        return f"{kernel.function.name}: one loop over all elements. {team}"
    ends = [(task.name, task.size or _shorten_expression(task.extent)) for task in kernel.tasks]
    of = ", ".join(f"{name} below {end}" for name, end in ends)
    return f"{kernel.function.name}: independent tasks, one for each {of}. {team}"


def _about_steps(steps: Sequence[Step], kernel: KernelModel, depth: int) -> list[str]:
    pad = "  " * depth
    lines: list[str] = []
    for step in steps:
        match step:
            case Each():
                lines.append(pad + _describe_each(step, kernel))
            case Let(body=body):
                for stmt in body:
                    what = "computes the same"
                    if isinstance(stmt, Declare) and stmt.init is not None:
                        what = f"knows {stmt.name} = {_shorten_expression(stmt.init)}"
                    lines.append(f"{pad}line {stmt.line}: the whole team {what}")
            case Once(body=body):
                stores = ", ".join(dict.fromkeys(_describe_target(stmt) for stmt in body))
                lines.append(f"{pad}line {step.line}: one thread of the team stores {stores}")
            case When():
                condition = _shorten_expression(step.condition)
                lines.append(f"{pad}line {step.line}: if {condition}, the whole team:")
                lines += _about_steps(step.then, kernel, depth + 1)
                if step.otherwise:
                    lines.append(f"{pad}otherwise:")
                    lines += _about_steps(step.otherwise, kernel, depth + 1)
            case Repeat():
                span = f"{_shorten_expression(step.start)} to {_shorten_expression(step.stop)}"
                lines.append(f"{pad}line {step.line}: in turn, for {step.index} from {span}:")
                lines += _about_steps(step.body, kernel, depth + 1)
    return lines


def _describe_each(step: Each, kernel: KernelModel) -> str:
    shared = {"grid": "over all threads", "thread": "by one thread, though no turn needs another"}.get(
        kernel.team, "shared by the team"
    )
    span = f"from {_shorten_expression(step.start)} to {_shorten_expression(step.stop)}"
    text = f"line {step.line}: for each {step.index} {span}, {shared}"
    if step.totals:
        starts = [(total, _shorten_expression(total.start)) for total in step.totals]
        text += "; " + ", ".join(f"{_TOTALS[t.operator]} {t.name} (from {start})" for t, start in starts)
    inner = [node for node in nodes_in(step.body) if isinstance(node, For | While)]
    if inner:
        text += f"; inside it {_about_loops(inner)}"
    branches = sum(1 for node in nodes_in(step.body) if isinstance(node, If))
    if branches:
        text += f"; {branches} {'branches' if branches > 1 else 'branch'} by element"
    return text


def _about_loops(inner: Sequence[For | While]) -> str:
    words: list[str] = []
    for loop in inner:
        head = head_of(loop) if isinstance(loop, For) else None
        count = trip_count(head) if head is not None else None
        kind = f"of {count} turns" if count is not None else "whose turns sizes or data decide"
        words.append(f"a loop {kind} (line {loop.line})")
    return " and ".join(words)


def _describe_target(stmt: Stmt) -> str:
    if isinstance(stmt, Evaluate) and isinstance(stmt.expr, Assign):
        return _shorten_expression(stmt.expr.target)
    return "a value"


def _about_arrays(kernel: KernelModel) -> list[str]:
    lines: list[str] = []
    for parameter in kernel.function.parameters:
        found = [access for access in kernel.accesses if access.array == parameter.name]
        if found:
            ways = "; ".join(dict.fromkeys(_describe_access(access) for access in found))
            lines.append(f"{parameter.name}: {ways}")
    return lines


def _describe_access(access: ArrayAccess) -> str:
    place = access.index if access.offset is None else Binary("+", access.offset, access.index)
    where = _shorten_expression(place)
    near = _NEAR.get(access.stride, f"neighbours {access.stride} apart") if access.loop else "once for a task"
    if access.loop and access.stride is not None and access.within:
        near += f" (within stretches of {', '.join(_shorten_expression(expr) for expr in access.within)})"
    return f"{_VERBS[access.kind]} as {access.type.base} at [{where}], {near}"


def _again_read(kernel: KernelModel) -> list[str]:
    """Loops that read what an earlier one has read, at the same places."""
    lines: list[str] = []
    before: list[tuple[Each, frozenset[tuple[str, Expr, Expr | None]]]] = []
    for step in all_steps(kernel.steps):
        if not isinstance(step, Each):
            continue
        names = {step.index: Name("")}
        mine = frozenset(
            (a.array, substitute(a.index, names), None if a.offset is None else substitute(a.offset, names))
            for a in kernel.accesses
            if a.loop == step.index and a.kind in ("load", "update")
        )
        for other, theirs in before:
            if (other.start, other.stop) == (step.start, step.stop) and mine & theirs:
                arrays = ", ".join(sorted({array for array, _, _ in mine & theirs}))
                lines.append(f"Line {step.line} reads again what line {other.line} has read: {arrays}.")
                break
        before.append((step, mine))
    return lines


def _shorten_expression(expr: Expr) -> str:
    text = print_expr(expr)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
