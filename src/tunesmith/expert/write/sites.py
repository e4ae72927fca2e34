"""Where a loop's body touches arrays, and which loops may therefore run side by side.

Two such loops are over ranges of their own, total nothing and keep nothing, and neither touches an array that
the other writes. So their turns may come in any order, also on different threads or blocks, and the two
ranges may be one: first the indices of the one, then those of the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tunesmith.expert.read.accesses import ArrayPlace, place_of
from tunesmith.expert.read.integers import Head, head_of, trip_count
from tunesmith.expert.read.model import Each, KernelModel, Let, Step, map_lists, step_lists
from tunesmith.problem.problem import Problem
from tunesmith.source import tree as c
from tunesmith.source.snippets import chain_operator
from tunesmith.source.substitution import substitute
from tunesmith.source.tree import MAX_DEPTH, TooDeep
from tunesmith.source.types import integer_type, is_integer
from tunesmith.source.walk import assigned_in, child_nodes, declared_in, names_in, statements_in

# Members that are the whole of their struct: a store to one leaves nothing of the element as it was.
_WHOLE = frozenset(("__x",))
Kind = Literal["load", "store"]
_MAX_TURNS = 64  # of an inner loop that is taken for so many statements


@dataclass(frozen=True)
class AccessSite:
    node: c.Expr  # the Index as it stands in the body
    array: str
    element: c.Type | None  # what the pointer is cast to; None: the array's own type
    offset: c.Expr | None  # of a cast pointer, in elements of the array's own type
    index: c.Expr  # with the body's own integers replaced by what they are
    kind: Kind
    sure: bool  # every turn comes here
    whole: bool = True  # of a store: the whole element
    loops: tuple[tuple[str, int], ...] = ()  # inner loops around it that count 0, 1, ... below a constant

    @property
    def names(self) -> frozenset[str]:
        """What its place depends on."""
        return names_in(self.index) | (frozenset() if self.offset is None else names_in(self.offset))


def local_integers(body: tuple[c.Stmt, ...]) -> Mapping[str, c.Expr]:
    """Integers that a body declares once and never changes, each as an expression over other names."""
    declared: dict[str, c.Expr] = {}
    stmts = [stmt for stmt in statements_in(body) if isinstance(stmt, c.Declare)]
    for stmt in stmts:
        if stmt.init is not None and is_integer(stmt.type) and not stmt.is_array:
            declared[stmt.name] = substitute(stmt.init, declared)
    times, changed = Counter(stmt.name for stmt in stmts), assigned_in(body)
    return {name: value for name, value in declared.items() if times[name] == 1 and name not in changed}


def match_counted_loop(loop: c.For) -> tuple[str, int] | None:
    """The variable of `for (int j = 0; j < 8; j++)` and how many turns it takes."""
    match head := head_of(loop):
        case Head(start=c.Number(value=0), step=c.Number(value=1)):
            count = trip_count(head) or 0
            return (head.index, count) if 0 < count <= _MAX_TURNS else None
    return None


@dataclass
class Sites:
    """`escaped` are arrays that are used in a way that is not a plain access."""

    arrays: frozenset[str]
    found: list[AccessSite] = field(default_factory=list)
    escaped: set[str] = field(default_factory=set)
    _integers: Mapping[str, c.Expr] = field(default_factory=dict)  # `local_integers` of the body
    _loops: tuple[tuple[str, int], ...] = ()  # around the statement at hand

    @classmethod
    def of(cls, body: Iterable[c.Stmt], arrays: Iterable[str]) -> Sites:
        stmts = tuple(body)
        sites = cls(frozenset(arrays), _integers=local_integers(stmts))
        sites._block(stmts, True, 0)
        return sites

    @property
    def stored(self) -> set[str]:
        return {site.array for site in self.found if site.kind == "store"}

    def _block(self, stmts: Iterable[c.Stmt], sure: bool, depth: int) -> bool:
        """Whether what follows is still reached in every turn."""
        if depth > MAX_DEPTH:
            raise TooDeep
        for stmt in stmts:
            sure = self._statement(stmt, sure, depth + 1)
        return sure

    def _statement(self, stmt: c.Stmt, sure: bool, depth: int) -> bool:
        match stmt:
            case c.Declare(init=init):
                if init is not None:
                    self._expr(init, sure, 0)
            case c.Evaluate(expr=expr):
                self._expr(expr, sure, 0)
            case c.If(condition=condition, then=then, otherwise=otherwise):
                self._expr(condition, sure, 0)
                self._branches(then, otherwise, sure, depth)
                return sure and not _has_jump((*then, *otherwise))
            case c.For():
                self._for(stmt, sure, depth)
                return sure and not any(isinstance(s, c.Return) for s in statements_in(stmt.body))
            case c.While(condition=condition, body=body):
                self._expr(condition, sure, 0)
                self._block(body, False, depth)
                return sure and not any(isinstance(s, c.Return) for s in statements_in(body))
            case c.Scope(body=body):
                return self._block(body, sure, depth)
            case c.Jump() | c.Return():
                return False
            case c.Verbatim(names=names):
                self.escaped |= names & self.arrays
        return sure

    def _branches(self, then: tuple[c.Stmt, ...], otherwise: tuple[c.Stmt, ...], sure: bool, d: int) -> None:
        """Every turn comes to a place that both branches surely store to: known with the second of them."""
        first = len(self.found)
        self._block(then, sure, d)
        second = len(self.found)
        self._block(otherwise, sure, d)
        both = {_place_key(site) for site in self.found[first:second] if site.sure and site.kind == "store"}
        for at, site in enumerate(self.found[first:], first):
            known = at >= second and site.kind == "store" and _place_key(site) in both
            self.found[at] = replace(site, sure=site.sure and known)

    def _for(self, stmt: c.For, sure: bool, depth: int) -> None:
        for part in stmt.init:
            self._statement(part, sure, depth)
        count = match_counted_loop(stmt)
        if count is not None and not _has_jump(stmt.body):
            outside, self._loops = self._loops, (*self._loops, count)
            self._block(stmt.body, sure, depth)
            self._loops = outside
            return
        for part in (*(() if stmt.condition is None else (stmt.condition,)), *stmt.step):
            self._expr(part, False, 0)
        self._block(stmt.body, False, depth)

    def _expr(self, expr: c.Expr, sure: bool, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise TooDeep
        d = depth + 1
        match expr:
            case c.Assign(op=op, target=target, value=value):
                self._expr(value, sure, d)
                self._add_target(target, op != "=", sure, d)
            case c.Unary(op="++" | "--", operand=operand):
                self._add_target(operand, True, sure, d)
            case c.Unary(op="&", operand=operand) if found := self._place(operand):
                self.escaped.add(found.array)
                self._inner(found, False, 0)
            case c.Ternary(condition=condition, yes=yes, no=no):
                self._expr(condition, sure, d)
                self._expr(yes, False, d)
                self._expr(no, False, d)
            case c.Binary(op="&&" | "||", left=left, right=right):
                self._expr(left, sure, d)
                self._expr(right, False, d)
            case c.Index():
                found = self._place(expr)
                if found is None:
                    self._expr(expr.base, sure, d)
                    self._expr(expr.index, sure, d)
                else:
                    self._inner(found, sure, d)
                    self._add(expr, found, "load", sure)
            case c.Name() | c.Opaque():
                self.escaped |= names_in(expr) & self.arrays
            case _:
                for child in child_nodes(expr):
                    if not isinstance(child, c.Stmt):
                        self._expr(child, sure, d)

    def _add_target(self, target: c.Expr, reads: bool, sure: bool, depth: int) -> None:
        whole = True
        inner = target
        while isinstance(inner, c.Member) and not inner.arrow:
            whole = whole and inner.field in _WHOLE
            inner = inner.base
        found = self._place(inner)
        if found is None:
            self._expr(target, sure, depth)
            return
        self._inner(found, sure, depth)
        if reads:
            self._add(inner, found, "load", sure)
        self._add(inner, found, "store", sure, whole)

    def _place(self, expr: c.Expr) -> ArrayPlace | None:
        found = place_of(expr)
        return found if found is not None and found.array in self.arrays else None

    def _add(self, node: c.Expr, found: ArrayPlace, kind: Kind, sure: bool, whole: bool = True) -> None:
        index = substitute(found.index, self._integers)
        offset = None if found.offset is None else substitute(found.offset, self._integers)
        element = None if found.as_type is None else c.Type(found.as_type.base, found.as_type.pointers)
        site = AccessSite(node, found.array, element, offset, index, kind, sure, whole)
        loops = tuple(loop for loop in self._loops if loop[0] in site.names)
        self.found.append(replace(site, loops=loops))

    def _inner(self, found: ArrayPlace, sure: bool, depth: int) -> None:
        """Loads inside the index of another."""
        for part in (found.offset, found.index):
            if part is not None:
                self._expr(part, sure, depth)


def _place_key(site: AccessSite) -> tuple[object, ...]:
    return site.array, site.element, site.offset, site.index, site.whole, site.loops


def _has_jump(stmts: Iterable[c.Stmt]) -> bool:
    return any(isinstance(stmt, c.Jump | c.Return) for stmt in statements_in(tuple(stmts)))


Run = tuple[Each, ...]


@dataclass(frozen=True)
class Independence:
    """What decides whether two loops of a kernel depend on each other."""

    storage: Mapping[str, str]  # an array -> the name of its storage
    staged: frozenset[str]

    @classmethod
    def of(cls, kernel: KernelModel, problem: Problem) -> Independence:
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
        return cls(storage, frozenset(staged.name for staged in kernel.staged))

    def touched(self, step: Each | Let) -> tuple[set[str], set[str]]:
        """The storage that it touches, and of that what it may write."""
        sites = Sites.of(step.body, self.storage)
        written = {self.storage[array] for array in sites.escaped | sites.stored}
        return {self.storage[array] for array in names_in(step.body) & self.storage.keys()}, written

    def stands_alone(self, loop: Each) -> bool:
        return starts_at_zero(loop) and not loop.totals and not names_in(loop.body) & self.staged

    def is_apart(self, one: Each, other: Each) -> bool:
        (a, a_written), (b, b_written) = self.touched(one), self.touched(other)
        return not a_written & b and not b_written & a

    def going_on(self, run: Sequence[Each], step: Step) -> list[Each]:
        """Loops that may run side by side and end with this step: it goes with those before it, or begins."""
        if not isinstance(step, Each) or not self.stands_alone(step):
            return []
        return [*run, step] if all(self.is_apart(step, other) for other in run) else [step]

    def may_come_first(self, let: Let, loops: Sequence[Each]) -> bool:
        """Whether what the whole team computes after these loops is the same before them."""
        touched, _ = self.touched(let)
        changed = assigned_in(let.body) | frozenset(declared_in(let.body))
        return not any(
            changed & (names_in(loop.body) | names_in(loop.stop)) or touched & self.touched(loop)[1]
            for loop in loops
        )


def gather_independent_loops(steps: Sequence[Step], rules: Independence) -> tuple[Step, ...]:
    """The steps with loops that may run side by side next to each other: what stood between comes first."""

    def one_list(steps: Sequence[Step]) -> list[Step]:
        done: list[Step] = []
        run: list[Each] = []
        for step in steps:
            if isinstance(step, Let) and run and rules.may_come_first(step, run):
                done.insert(len(done) - len(run), step)
                continue
            run = rules.going_on(run, step)
            done.append(step)
        return done

    return map_lists(steps, one_list)


def find_loop_runs(steps: Sequence[Step], rules: Independence) -> tuple[Run, ...]:
    """Two loops or more each, of gathered steps."""
    found: list[Sequence[Each]] = []
    for siblings in step_lists(steps):
        run: Sequence[Each] = ()
        for step in (*siblings, Let(())):
            before, run = run, rules.going_on(run, step)
            if len(run) <= len(before):  # it has ended
                found.append(before)
    return tuple(tuple(run) for run in found if len(run) > 1)


def starts_at_zero(each: Each) -> bool:
    return isinstance(each.start, c.Number) and each.start.value == 0


def extent_of(each: Each) -> c.Expr:
    """How many indices it runs over."""
    return each.stop if starts_at_zero(each) else c.Binary("-", each.stop, each.start)


def length_of_all(run: Iterable[Each]) -> c.Expr:
    """Indices of all loops together: they start at 0."""
    return chain_operator("+", *(loop.stop for loop in run))


def select_expression(
    first: c.Expr, one: c.Expr, other: c.Expr, types: Mapping[str, c.Type]
) -> c.Expr | None:
    """`one` where `first` holds and else `other`, chosen between as late as can be: what they share stays.

    None where the two have not one type, so that a choice would convert one of them."""
    if one == other:
        return one
    match one, other:
        case c.Index(), c.Index():
            base = select_expression(first, one.base, other.base, types)
            index = select_expression(first, one.index, other.index, types)
            return None if base is None or index is None else c.Index(base, index)
        case c.Binary(), c.Binary() if one.op == other.op:
            left = select_expression(first, one.left, other.left, types)
            right = select_expression(first, one.right, other.right, types)
            if left is not None and right is not None:
                return c.Binary(one.op, left, right)
        case c.Cast(), c.Cast() if one.type == other.type:
            value = select_expression(first, one.value, other.value, types)
            return None if value is None else replace(one, value=value)
    kinds = [_scalar_type(expr, types) for expr in (one, other)]
    return c.Ternary(first, one, other) if kinds[0] is not None and kinds[0] == kinds[1] else None


def _scalar_type(expr: c.Expr, types: Mapping[str, c.Type]) -> c.Type | None:
    """Of an integer or a pointer."""
    found = types.get(expr.name) if isinstance(expr, c.Name) else None
    if found is None or not found.is_pointer:
        found = integer_type(expr, types)
    return None if found is None else replace(found, restrict=False)
