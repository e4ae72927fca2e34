"""Ways through steps: their expressions and names, what nothing needs left out, OpenCL's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tunesmith.csource.nodes import Call, Declare, Expr, Name, Stmt
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import map_expr, map_statements, names_in, nodes_in
from tunesmith.expert.model.kernel import Each, KernelModel, Let, Once, Repeat, Step, Total, When


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


def replaced(steps: Sequence[Step], values: Mapping[str, Expr]) -> tuple[Step, ...]:
    """Names replaced everywhere in the steps; indices of loops must not be among them."""
    done: list[Step] = []
    for step in steps:
        match step:
            case Each():
                totals = tuple(_total(total, values) for total in step.totals)
                start, stop = substitute(step.start, values), substitute(step.stop, values)
                body = substitute(step.body, values)
                done.append(replace(step, start=start, stop=stop, totals=totals, body=body))
            case Let(body=body) | Once(body=body):
                done.append(replace(step, body=substitute(body, values)))
            case When():
                done.append(
                    replace(
                        step,
                        condition=substitute(step.condition, values),
                        then=replaced(step.then, values),
                        otherwise=replaced(step.otherwise, values),
                    )
                )
            case Repeat():
                done.append(
                    replace(
                        step,
                        start=substitute(step.start, values),
                        stop=substitute(step.stop, values),
                        step=substitute(step.step, values),
                        body=replaced(step.body, values),
                    )
                )
    return tuple(done)


def _total(total: Total, values: Mapping[str, Expr]) -> Total:
    return replace(total, start=substitute(total.start, values))


def without_unused(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Definitions that nothing reads left out, and neighbouring ones put together."""
    current = tuple(steps)
    while True:
        used = names_in_steps(current)
        shorter = _needed(current, used)
        if shorter == current:
            return _together(current)
        current = shorter


def _needed(steps: Sequence[Step], used: frozenset[str]) -> tuple[Step, ...]:
    done: list[Step] = []
    for step in steps:
        match step:
            case Let(body=body):
                kept = tuple(s for s in body if not isinstance(s, Declare) or s.name in used)
                if kept:
                    done.append(replace(step, body=kept))
            case When():
                then, otherwise = _needed(step.then, used), _needed(step.otherwise, used)
                if then or otherwise:
                    done.append(replace(step, then=then, otherwise=otherwise))
            case Repeat():
                done.append(replace(step, body=_needed(step.body, used)))
            case _:
                done.append(step)
    return tuple(done)


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
    return _renamed(replaced(steps, {old: Name(new) for old, new in free.items()}), free)


def _renamed(steps: Sequence[Step], names: Mapping[str, str]) -> tuple[Step, ...]:
    done: list[Step] = []
    for step in steps:
        match step:
            case Let(body=body):
                done.append(replace(step, body=tuple(_renamed_in(stmt, names) for stmt in body)))
            case When():
                then, otherwise = _renamed(step.then, names), _renamed(step.otherwise, names)
                done.append(replace(step, then=then, otherwise=otherwise))
            case Repeat():
                done.append(replace(step, body=_renamed(step.body, names)))
            case _:
                done.append(step)
    return tuple(done)


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
    return replace(kernel, steps=_Words(words).steps(kernel.steps))


class _Words:
    def __init__(self, words: dict[str, str]) -> None:
        self._words = words

    def steps(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple(self._step(step) for step in steps)

    def _step(self, step: Step) -> Step:
        match step:
            case Each():
                totals = tuple(
                    replace(t, start=self._in(t.start), combine=self._words.get(t.combine, t.combine))
                    for t in step.totals
                )
                body = map_statements(step.body, on_expr=self._in)
                return replace(
                    step, start=self._in(step.start), stop=self._in(step.stop), totals=totals, body=body
                )
            case Let(body=body) | Once(body=body):
                return replace(step, body=map_statements(body, on_expr=self._in))
            case When():
                then, otherwise = self.steps(step.then), self.steps(step.otherwise)
                return replace(step, condition=self._in(step.condition), then=then, otherwise=otherwise)
            case Repeat():
                return replace(step, body=self.steps(step.body))

    def _in(self, expr: Expr) -> Expr:
        return map_expr(expr, self._one)

    def _one(self, expr: Expr) -> Expr:
        if isinstance(expr, Call) and expr.function in self._words:
            return replace(expr, function=self._words[expr.function])
        return expr
