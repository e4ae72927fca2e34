"""Loops of a task that do not depend on each other: which stand next to each other and may run side by side.

Two such loops are over ranges of their own, total nothing and keep nothing, and neither touches an array that
the other writes. So their turns may come in any order, also on different threads or blocks, and the two
ranges may be one: first the indices of the one, then those of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.core.problem import Problem
from tunesmith.expert.c.nodes import Binary, Cast, Expr, Index, Name, Number, Ternary, Type
from tunesmith.expert.c.walk import assigned_in, declared_in, names_in
from tunesmith.expert.model.affine import type_of
from tunesmith.expert.model.kernel import Each, Kernel, Let, Repeat, Step, When
from tunesmith.expert.writing.sites import Sites

Run = tuple[Each, ...]


@dataclass(frozen=True)
class Touched:
    """Arrays by the storage they stand for: those that may overlap have one name."""

    all: frozenset[str]
    written: frozenset[str]


@dataclass(frozen=True)
class Independence:
    """What decides whether two loops of a kernel depend on each other."""

    storage: Mapping[str, str]  # an array -> the name of its storage
    kept: frozenset[str]

    @classmethod
    def of(cls, kernel: Kernel, problem: Problem) -> Independence:
        names = [p.name for p in kernel.function.parameters]
        by_argument = dict(zip(problem.launches[0].args, names, strict=False))
        storage = {p.name: p.name for p in kernel.function.parameters if p.type.is_pointer}
        for argument in problem.arguments:
            name = by_argument.get(argument.name, argument.name)
            if argument.alias is not None and name in storage:
                storage[name] = by_argument.get(argument.alias, argument.alias)
        for name in storage:  # of one that stands for another in turn
            for _ in storage:
                storage[name] = storage.get(storage[name], storage[name])
        return cls(storage, frozenset(kept.name for kept in kernel.kept))

    def touched(self, step: Each | Let) -> Touched:
        sites = Sites.of(step.body, self.storage)
        written = sites.escaped | {site.array for site in sites.found if site.kind == "store"}
        every = names_in(step.body) & self.storage.keys()
        return Touched(self._stored(every), self._stored(written))

    def _stored(self, arrays: Iterable[str]) -> frozenset[str]:
        return frozenset(self.storage[array] for array in arrays)

    def stands_alone(self, loop: Each) -> bool:
        from_zero = isinstance(loop.start, Number) and loop.start.value == 0
        return from_zero and not loop.totals and not names_in(loop.body) & self.kept

    def is_apart(self, one: Each, other: Each) -> bool:
        a, b = self.touched(one), self.touched(other)
        return not a.written & b.all and not b.written & a.all

    def may_come_first(self, let: Let, loops: Sequence[Each]) -> bool:
        """Whether what the whole team computes after these loops is the same before them."""
        told = self.touched(let).all
        own = assigned_in(let.body) | frozenset(declared_in(let.body))
        return not any(
            own & (names_in(loop.body) | names_in(loop.stop)) or told & self.touched(loop).written
            for loop in loops
        )


def gathered(steps: Sequence[Step], rules: Independence) -> tuple[Step, ...]:
    """The steps with loops that may run side by side next to each other: what stood between comes first."""
    done: list[Step] = []
    run: list[Each] = []
    for step in steps:
        match step:
            case Each():
                alone = rules.stands_alone(step)
                if not alone or not all(rules.is_apart(step, other) for other in run):
                    run = []
                done.append(step)
                run = [*run, step] if alone else []
            case Let() if run and rules.may_come_first(step, run):
                done.insert(len(done) - len(run), step)
            case When(then=then, otherwise=otherwise):
                run = []
                done.append(replace(step, then=gathered(then, rules), otherwise=gathered(otherwise, rules)))
            case Repeat(body=body):
                run = []
                done.append(replace(step, body=gathered(body, rules)))
            case _:
                run = []
                done.append(step)
    return tuple(done)


def runs(steps: Sequence[Step], rules: Independence) -> tuple[Run, ...]:
    """Two loops or more each, of gathered steps."""
    found: list[Run] = []
    run: Run = ()
    for step in (*steps, Let(())):
        if isinstance(step, Each) and rules.stands_alone(step):
            if all(rules.is_apart(step, other) for other in run):
                run = (*run, step)
                continue
            found.append(run)
            run = (step,)
            continue
        found.append(run)
        run = ()
        if isinstance(step, When):
            found += [*runs(step.then, rules), *runs(step.otherwise, rules)]
        elif isinstance(step, Repeat):
            found += runs(step.body, rules)
    return tuple(one for one in found if len(one) > 1)


def length_of_all(run: Iterable[Each]) -> Expr:
    """Indices of all loops together: they start at 0."""
    ends = [loop.stop for loop in run]
    total = ends[0]
    for end in ends[1:]:
        total = Binary("+", total, end)
    return total


def either(first: Expr, one: Expr, other: Expr, types: Mapping[str, Type]) -> Expr | None:
    """`one` where `first` holds and else `other`, chosen between as late as can be: what they share stays.

    None where the two have not one type, so that a choice would convert one of them.
    """
    if one == other:
        return one
    match one, other:
        case Index(), Index():
            base, index = (
                either(first, one.base, other.base, types),
                either(first, one.index, other.index, types),
            )
            return None if base is None or index is None else Index(base, index)
        case Binary(), Binary() if one.op == other.op:
            left, right = (
                either(first, one.left, other.left, types),
                either(first, one.right, other.right, types),
            )
            if left is not None and right is not None:
                return Binary(one.op, left, right)
        case Cast(), Cast() if one.type == other.type:
            value = either(first, one.value, other.value, types)
            return None if value is None else replace(one, value=value)
    kinds = [_kind(expr, types) for expr in (one, other)]
    return Ternary(first, one, other) if kinds[0] is not None and kinds[0] == kinds[1] else None


def _kind(expr: Expr, types: Mapping[str, Type]) -> Type | None:
    """Of an integer or a pointer."""
    found = types.get(expr.name) if isinstance(expr, Name) else None
    if found is None or not found.is_pointer:
        found = type_of(expr, types)
    return None if found is None else replace(found, restrict=False)
