"""A call as the kernels it launches: each is read as a problem of its own, with its launch alone.

What is known of such a problem is what holds at that launch: its arguments, its grid, the sizes at which it
is made (`when`). An array that one launch writes and a later one reads is written in the first, and only read
in the second: a launch begins when the one ahead of it has ended.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tunesmith.expert.model.kernel import KernelModel
from tunesmith.problem.problem import Argument, Launch, Problem
from tunesmith.space.expr import Expr
from tunesmith.space.real import RealExpr
from tunesmith.space.space import Constraint


@dataclass(frozen=True)
class CallPart:
    """A kernel of a call, with the launches that run it in the same way but for the names of its arrays."""

    number: str  # from 1 on; "" where the call has no other
    places: tuple[int, ...]  # of its launches in the call
    problem: Problem  # with the first of these launches alone

    @property
    def entry(self) -> str:
        return self.problem.launches[0].entry


def parts_of(problem: Problem) -> tuple[CallPart, ...]:
    """The kernels of a call, in the order of their first launches."""
    if len(problem.launches) < 2:
        return (CallPart("", tuple(range(len(problem.launches))), problem),)
    alike: dict[object, list[int]] = {}
    for place, launch in enumerate(problem.launches):
        alike.setdefault(_signature(launch, problem), []).append(place)
    return tuple(
        CallPart(str(number) if len(alike) > 1 else "", tuple(own), alone(problem, problem.launches[own[0]]))
        for number, own in enumerate(alike.values(), 1)
    )


def alone(problem: Problem, launch: Launch) -> Problem:
    """The problem with one of its launches, at the sizes at which that is made."""
    when = launch.when
    own = replace(problem, launches=(launch,))
    if when is None or not when.names <= set(problem.size_names):
        return own  # made at all sizes, or nobody knows at which: what is to hold everywhere holds there
    contract = replace(own.contract, require=(*own.contract.require, Constraint("launched", when)))
    made = tuple(w for w in problem.workloads if when.holds(w.as_dict()))
    return replace(own, contract=contract, workloads=made)


def _signature(launch: Launch, problem: Problem) -> object:
    """What a reading of the launch may depend on; arrays count by their places, not by their names."""
    arguments = {argument.name: argument for argument in problem.arguments}
    passed = [arguments[name] for name in launch.args]
    roots = [memory_of(argument, problem) for argument in passed]
    how = (launch.grid, launch.block, launch.cluster, (launch.shared, launch.when))
    texts = tuple(tuple(_text(expr) for expr in exprs) for exprs in how)
    given = tuple(_given(argument, roots.index(root)) for argument, root in zip(passed, roots, strict=True))
    return launch.entry, texts, launch.cooperative, launch.pdl, given


def memory_of(argument: Argument, problem: Problem) -> str:
    """The array whose memory it is."""
    arguments = {one.name: one for one in problem.arguments}
    seen: list[str] = []
    while argument.alias is not None and argument.name not in seen:
        seen.append(argument.name)
        argument = arguments.get(argument.alias, replace(argument, alias=None))
    return argument.name


def _given(argument: Argument, memory: int) -> object:
    shape, strides = (tuple(map(_text, exprs)) for exprs in (argument.shape, argument.strides))
    value = argument.value if isinstance(argument.value, float) else _text(argument.value)
    kind = "array" if argument.is_array else argument.role
    place = memory if argument.is_array else None
    return argument.type, kind, shape, strides, value, argument.align, argument.alias is None, place


def _text(expr: Expr | RealExpr | None) -> str | None:
    return None if expr is None else expr.text


def passed_twice(launch: Launch, problem: Problem) -> str | None:
    """An array that a launch passes more than once: by two names, which nobody says are one."""
    arrays = [name for name in launch.args if problem.argument(name).is_array]
    return next((name for name in arrays if arrays.count(name) > 1), None)


def with_handed(problem: Problem) -> Problem:
    """Of a single launch that overlaps: a launch ahead of the call may still be writing any array."""
    if not problem.launches[0].pdl:
        return problem
    changed = tuple(replace(a, role="inout") if a.is_array else a for a in problem.arguments)
    return replace(problem, arguments=changed)


def with_own_roles(problem: Problem, kernel: KernelModel, handed: Collection[str] = ()) -> Problem:
    """With every array that this launch leaves alone as its input, whatever other launches do to it.

    Not so what is `handed` to it by a launch that may still be under way when it starts.
    """
    parameters = [parameter.name for parameter in kernel.function.parameters]
    stored = {access.array for access in kernel.accesses if access.kind != "load"}
    by_argument = dict(zip(problem.launches[0].args, parameters, strict=False))
    only_read = [name for name, parameter in by_argument.items() if parameter not in stored]
    changed: list[Argument] = []
    for argument in problem.arguments:
        if argument.is_array and argument.name in handed:
            changed.append(replace(argument, role="inout"))
        elif argument.is_array and argument.name in only_read:
            changed.append(replace(argument, role="input"))
        else:
            changed.append(argument)
    return replace(problem, arguments=tuple(changed))


def handed_on(problem: Problem, reading: Sequence[tuple[CallPart, KernelModel | str]]) -> list[str]:
    """Arrays that a launch leaves for a later one, in words; as far as both are read."""
    touched: list[tuple[str, set[str], set[str]]] = []  # of each launch: its entry, what it writes, and reads
    by_place = {place: kernel for part, kernel in reading for place in part.places}
    for place, launch in enumerate(problem.launches):
        kernel = by_place[place]
        if isinstance(kernel, str):
            touched.append((launch.entry, set(), set()))
            continue
        names = {p.name: arg for p, arg in zip(kernel.function.parameters, launch.args, strict=False)}
        uses = [(names[a.array], a.kind) for a in kernel.accesses if a.array in names]
        written = {name for name, kind in uses if kind != "load"}
        touched.append((launch.entry, written, {name for name, kind in uses if kind != "store"}))
    lines = []
    for at, (entry, _, wanted) in enumerate(touched):
        for name in sorted(wanted):
            before = [other for other, written, _ in touched[:at] if name in written]
            if before:
                lines.append(f"{name}: {entry} finds there what {before[-1]} has left")
    return list(dict.fromkeys(lines))


def launches_of(problem: Problem, parts: Sequence[CallPart]) -> tuple[Launch, ...]:
    """The launches of these kernels, in the call's order."""
    places = sorted(place for part in parts for place in part.places)
    return tuple(problem.launches[place] for place in places)
