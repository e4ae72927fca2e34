"""Ways through steps: their expressions and names, what nothing needs left out, OpenCL's words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tunesmith.csource.nodes import Call, Declare, Expr, Name, Stmt
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import map_expr, map_nodes, names_in, nodes_in
from tunesmith.expert.model.kernel import Each, KernelModel, Let, Once, Repeat, Step, When


def own_parts(step: Step) -> Iterator[Expr | tuple[Stmt, ...]]:
    """The expressions and statement lists of a step; not those of steps inside it."""
    match step:
        case Each():
            yield step.start
            yield step.stop
            for total in step.totals:
                yield total.start
            yield step.body
        case Let(body=body) | Once(body=body):
            yield body
        case When():
            yield step.condition
        case Repeat():
            yield step.start
            yield step.stop
            yield step.step


def parts_of(step: Step) -> Iterator[Expr | tuple[Stmt, ...]]:
    """The same, and of those inside it."""
    for each in all_steps((step,)):
        yield from own_parts(each)


def names_in_steps(steps: Sequence[Step]) -> frozenset[str]:
    found: set[str] = set()
    for step in steps:
        for part in parts_of(step):
            found |= names_in(part)
    return frozenset(found)


def all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        if isinstance(step, When):
            yield from all_steps((*step.then, *step.otherwise))
        elif isinstance(step, Repeat):
            yield from all_steps(step.body)


def map_steps(steps: Sequence[Step], fn: Callable[[Step], Step | None]) -> tuple[Step, ...]:
    """Steps rebuilt from the inside out, each passed through `fn`; None leaves it out."""
    done: list[Step | None] = []
    for step in steps:
        if isinstance(step, When):
            step = replace(step, then=map_steps(step.then, fn), otherwise=map_steps(step.otherwise, fn))
        elif isinstance(step, Repeat):
            step = replace(step, body=map_steps(step.body, fn))
        done.append(fn(step))
    return tuple(step for step in done if step is not None)


def map_own_parts(
    step: Step, on_expr: Callable[[Expr], Expr], on_body: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]
) -> Step:
    """A step with its expressions and statement lists passed through these; not those of steps inside it."""
    match step:
        case Each():
            totals = tuple(replace(total, start=on_expr(total.start)) for total in step.totals)
            start, stop = on_expr(step.start), on_expr(step.stop)
            return replace(step, start=start, stop=stop, totals=totals, body=on_body(step.body))
        case Let(body=body) | Once(body=body):
            return replace(step, body=on_body(body))
        case When():
            return replace(step, condition=on_expr(step.condition))
        case Repeat():
            start, stop = on_expr(step.start), on_expr(step.stop)
            return replace(step, start=start, stop=stop, step=on_expr(step.step))


def replaced(steps: Sequence[Step], values: Mapping[str, Expr]) -> tuple[Step, ...]:
    """Names replaced everywhere in the steps; indices of loops must not be among them."""

    def one(step: Step) -> Step:
        return map_own_parts(step, lambda e: substitute(e, values), lambda body: substitute(body, values))

    return map_steps(steps, one)


def without_unused(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Definitions that nothing reads left out, and neighbouring ones put together."""
    current = tuple(steps)
    while True:
        used = names_in_steps(current)
        shorter = map_steps(current, partial(_needed, used=used))
        if shorter == current:
            return _together(current)
        current = shorter


def _needed(step: Step, used: frozenset[str]) -> Step | None:
    if isinstance(step, Let):
        step = replace(step, body=tuple(s for s in step.body if not isinstance(s, Declare) or s.name in used))
    is_empty = (isinstance(step, Let) and not step.body) or (
        isinstance(step, When) and not (step.then or step.otherwise)
    )
    return None if is_empty else step


def _together(steps: Sequence[Step]) -> tuple[Step, ...]:
    done: list[Step] = []
    for step in steps:
        match step:
            case When():
                step = replace(step, then=_together(step.then), otherwise=_together(step.otherwise))
            case Repeat():
                step = replace(step, body=_together(step.body))
        last = done[-1] if done else None
        if isinstance(step, Let) and isinstance(last, Let):
            done[-1] = replace(last, body=(*last.body, *step.body))
        else:
            done.append(step)
    return tuple(done)


def renamed_lets(steps: Sequence[Step], names: Mapping[str, str]) -> tuple[Step, ...]:
    """Definitions under other names, where these are not in use yet."""
    used = names_in_steps(steps) | {
        stmt.name
        for step in all_steps(steps)
        for part in parts_of(step)
        if isinstance(part, tuple)
        for stmt in nodes_in(part)
        if isinstance(stmt, Declare)
    }
    free: dict[str, str] = {}
    for old, new in names.items():
        if new not in used and new not in free.values():
            free[old] = new
    if not free:
        return tuple(steps)

    def one(step: Step) -> Step:
        if not isinstance(step, Let):
            return step
        return replace(step, body=tuple(_renamed_in(stmt, free) for stmt in step.body))

    return map_steps(replaced(steps, {old: Name(new) for old, new in free.items()}), one)


def _renamed_in(stmt: Stmt, names: Mapping[str, str]) -> Stmt:
    """One statement of a `Let`, which may also use what those before it define."""
    values = {old: Name(new) for old, new in names.items()}
    if not isinstance(stmt, Declare):
        return substitute((stmt,), values)[0]
    init = None if stmt.init is None else substitute(stmt.init, values)
    return replace(stmt, name=names.get(stmt.name, stmt.name), init=init)


# -- what the reader itself adds to steps, in OpenCL's words: it names functions as CUDA does -------


_WORDS = {
    "fmaxf": "fmax", "fminf": "fmin", "__int_as_float": "as_float", "__uint_as_float": "as_float",
}  # fmt: skip


def in_opencl_words(kernel: KernelModel) -> KernelModel:
    own = {function.name for function in kernel.source.functions}
    words = {cuda: opencl for cuda, opencl in _WORDS.items() if cuda not in own}

    def word(expr: Expr) -> Expr:
        if isinstance(expr, Call) and expr.function in words:
            return replace(expr, function=words[expr.function])
        return expr

    def one(step: Step) -> Step:
        step = map_own_parts(step, lambda expr: map_expr(expr, word), lambda body: map_nodes(body, word))
        if isinstance(step, Each):
            totals = tuple(replace(t, combine=words.get(t.combine, t.combine)) for t in step.totals)
            step = replace(step, totals=totals)
        return step

    return replace(kernel, steps=map_steps(kernel.steps, one))
