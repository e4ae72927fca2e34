"""Tiles in shared memory: what a block's threads write there for each other, read as the values they are.

    tile[threadIdx.y + 1][threadIdx.x + 1] = u[y * w + x];  ... halo ...       v = u[y * w + x - 1]
    __syncthreads();                                                     ->
    v = tile[threadIdx.y + 1][threadIdx.x];

The shape of a block is a number, so every write and every read is gone through thread by thread and turn by
turn: each place has one writer before the barrier, whatever is read has been written, and the value, moved
from writer to reader, is one expression over the elements of the block (`block_sums`). Tests around a write
must follow from those around the read, or have another value beside them (zero, a border). A loop in which
the whole block fills tiles anew in every turn is the same, with its index a symbol.

What is left has no shared memory: each element by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import Effects, Program, effects_of
from tunesmith.csource.fold import int_value
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import type_of
from tunesmith.expert.model import block_sums as b
from tunesmith.expert.model.affine import head_of
from tunesmith.expert.model.geometry import THREAD
from tunesmith.expert.model.kernel import OutOfReach
from tunesmith.expert.model.totals import cooperates

_BARRIER = "__syncthreads"


def is_barrier(stmt: c.Stmt) -> bool:
    return isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Call) and stmt.expr.function == _BARRIER


@dataclass(frozen=True)
class TileWrite:
    array: str
    indices: tuple[c.Expr, ...]
    value: c.Expr
    tests: tuple[c.Expr, ...]
    loops: tuple[c.For, ...]
    line: int


@dataclass(frozen=True)
class Held:
    """What is at a place: `must` holds or nothing is there; `value` where `tests` hold, else `other`."""

    must: tuple[c.Expr, ...]
    tests: tuple[c.Expr, ...]
    value: c.Expr
    other: c.Expr | None
    numbers: b.Numbers


@dataclass(frozen=True)
class Segment:
    """Statements between two barriers, in the order of the text; `at` counts the barriers before them.

    `cycle`: the loop of the whole block they are in, 0 for none; its turns start at segment 0 again.
    """

    body: tuple[c.Stmt, ...]
    at: int = 0
    cycle: int = 0
    loop: c.For | None = None

    def name(self, array: str) -> str:
        """The array as it is read here: no source can have such a name."""
        return f"{array}@{self.cycle}@{self.at}"


def segments_of(
    body: Sequence[c.Stmt], own: frozenset[str], loop: c.For | None = None, cycle: int = 0
) -> list[Segment]:
    """The kernel cut at its barriers, which every thread of a block comes to; `own`: a thread's variables."""
    done: list[Segment] = []
    here: list[c.Stmt] = []
    at = 0
    for stmt in body:
        if not is_barrier(stmt) and cooperates((stmt,)) is None:
            here.append(stmt)
            continue
        done.append(Segment(tuple(here), at, cycle, loop))
        here = []
        if is_barrier(stmt):
            at += 1
        elif isinstance(stmt, c.For) and loop is None:
            done += _cycle(stmt, own, 1 + max((s.cycle for s in done), default=0))
        else:
            raise OutOfReach.at(stmt.line, "not every thread of a block comes to the barrier")
    return [*done, Segment(tuple(here), at, cycle, loop)]


def _cycle(loop: c.For, own: frozenset[str], cycle: int) -> list[Segment]:
    head = head_of(loop)
    uniform = head is not None and not any(
        walk.names_in(part) & (THREAD | own) for part in (head.start, head.stop, head.step)
    )
    if not uniform or any(isinstance(node, c.Jump | c.Return) for node in walk.nodes_in(loop.body)):
        raise OutOfReach.at(loop.line, "a loop with barriers turns differently for different threads")
    found = segments_of(loop.body, own, loop, cycle)
    first, last = found[0].body, found[-1].body
    if walk.stored_in(first) & walk.names_in(last) or walk.stored_in(last) & walk.names_in(first):
        # What ends a turn and what starts the next have no barrier between them.
        raise OutOfReach.at(loop.line, "a turn fills shared memory that the turn before may still read")
    return found


class Tiles:
    """The tiles of a kernel: who writes which place, and what a read of it is."""

    def __init__(
        self,
        body: tuple[c.Stmt, ...],
        shared: Mapping[str, c.Declare],
        arrays: Mapping[str, c.Type],
        types: Mapping[str, c.Type],
        threads: Sequence[b.Numbers],
        source: c.Source,
    ) -> None:
        self.shared, self._arrays, self._types, self._threads = shared, arrays, types, threads
        self._program, self._source = Program.of(source), source
        self._segments = segments_of(body, frozenset({*walk.declared_in(body), *walk.assigned_in(body)}))
        self._check_segments()
        self._unknown = {*walk.declared_in(body), *walk.assigned_in(body), *walk.stored_in(body), *shared}
        self._held: dict[tuple[str, int, int, int], Held] = {}  # array, cycle, segment, place
        env: dict[str, c.Expr] = {}
        for segment in self._segments:
            for name in walk.assigned_in((segment.loop,) if segment.loop is not None else ()):
                env.pop(name, None)
            self._fill(segment, env)
        self.body = self._without_writes()

    def _without_writes(self) -> tuple[c.Stmt, ...]:
        """The kernel with neither barriers nor writes; reads say between which barriers they stand."""
        done: list[c.Stmt] = []
        for segment in self._segments:
            names = {array: c.Name(segment.name(array)) for array in self.shared}
            body = substitute(_stripped(segment.body, frozenset(self.shared)), names)
            if segment.loop is None:
                done += body
                continue
            last = done[-1] if done else None
            if isinstance(last, c.For) and last.line == segment.loop.line and last.init == segment.loop.init:
                done[-1] = replace(last, body=(*last.body, *body))
            else:
                done.append(replace(segment.loop, body=body))
        return _alive(done)

    def _check_segments(self) -> None:
        """A tile is filled, then read: never both between two barriers, nor in and out of one loop."""
        for array, declare in self.shared.items():
            name = frozenset({array})
            if not declare.is_array and any(name & walk.names_in(s.body) for s in self._segments):
                raise OutOfReach(f"'{array}' in shared memory is no array")
            written = {(s.cycle, s.at) for s in self._segments if name & walk.stored_in(s.body)}
            read = {(s.cycle, s.at) for s in self._segments if name & walk.names_in(_stripped(s.body, name))}
            if written & read:
                raise OutOfReach(f"shared memory '{array}' is written and read with no barrier between")
            if len({cycle for cycle, _ in written | read}) > 1:
                raise OutOfReach(f"shared memory '{array}' is used both in a loop with barriers and outside")
        for segment in self._segments:
            if segment.cycle and walk.stored_in(segment.body) & set(self._arrays):
                raise OutOfReach("a loop with barriers stores to global memory")
        if sum(bool(walk.stored_in(s.body) & set(self._arrays)) for s in self._segments) > 1:
            raise OutOfReach("global memory is written before and after a barrier")

    # -- writes -------------------------------------------------------------------------------------

    def _fill(self, segment: Segment, env: dict[str, c.Expr]) -> None:
        found: dict[tuple[str, int], list[tuple[TileWrite, b.Numbers]]] = {}
        forms: dict[tuple[int, ...], tuple[list[tuple[TileWrite, b.Numbers]], Held]] = {}
        for write in self._writes(segment.body, env, (), ()):
            counted = {*THREAD, *(h.index for loop in write.loops if (h := head_of(loop)))}
            own: list[c.Expr] = []
            kept: list[c.Expr] = []
            for test in write.tests:
                parts = b.operands(test)
                numbers_alone = [part for part in parts if walk.names_in(part) <= counted]
                own += numbers_alone
                left = [part for part in parts if part not in numbers_alone]
                if left:
                    kept.append(reduce(lambda x, y: c.Binary("&&", x, y), left))
            write = replace(write, tests=tuple(kept))
            for numbers in b.turns_of(write.loops, own, self._threads):
                place = self._place(write.array, write.indices, numbers, write.line)
                found.setdefault((write.array, place), []).append((write, numbers))
        for (array, place), writes in found.items():
            threads = {tuple(numbers[name] for name in sorted(THREAD)) for _, numbers in writes}
            if len(threads) > 1:
                line = writes[0][0].line
                raise OutOfReach.at(line, f"two threads write one place of '{array}' with no barrier between")
            # Places that the same statements write share what they hold, but for the numbers.
            key = tuple(id(write) for write, _ in writes)
            if key not in forms:
                forms[key] = writes, self._joined(writes)
            held = forms[key][1]
            if any(numbers != writes[0][1] for _, numbers in writes):
                held = self._joined(writes)
            self._held[array, segment.cycle, segment.at, place] = replace(held, numbers=writes[-1][1])

    def _joined(self, writes: Sequence[tuple[TileWrite, b.Numbers]]) -> Held:
        """What one thread leaves at a place, one write after the other."""
        held: Held | None = None
        for write, numbers in writes:
            new = Held(write.tests, (), write.value, None, numbers)
            if isinstance(write.value, c.Ternary):
                new = self._chosen(write.tests, write.value, numbers)
            if held is None:
                held = new
                continue
            trouble = OutOfReach.at(write.line, f"a place of '{write.array}' is written twice")
            if held.numbers != numbers or new.tests or held.tests:
                raise trouble
            if not write.tests:
                held = new
            elif held.must and write.tests == (*held.must[:-1], c.Unary("!", held.must[-1])):
                choice = c.Ternary(held.must[-1], held.value, write.value)
                held = self._chosen(held.must[:-1], choice, numbers)
            elif not held.must and len(write.tests) == 1:  # zero first, then the value where there is one
                held = self._chosen((), c.Ternary(write.tests[0], write.value, held.value), numbers)
            else:
                raise trouble
        assert held is not None
        return held

    def _chosen(self, must: tuple[c.Expr, ...], value: c.Ternary, numbers: b.Numbers) -> Held:
        test = value.condition
        if b.inequalities(test, self._types) is not None:
            return Held(must, (test,), value.yes, value.no, numbers)
        if b.inequalities(test, self._types, False) is not None:
            return Held(must, (c.Unary("!", test),), value.no, value.yes, numbers)
        return Held(must, (), value, None, numbers)

    def _place(self, array: str, indices: Sequence[c.Expr], numbers: b.Numbers, line: int) -> int:
        dims = [int_value(dim) for dim in self.shared[array].dims]
        place = 0
        if len(indices) != max(1, len(dims)):
            raise OutOfReach.at(line, f"shared memory '{array}' is used as a row")
        for at, index in enumerate(indices):
            value = int_value(index, numbers)
            if value is None or value < 0:
                raise OutOfReach.at(line, f"the place '{print_expr(index)}' in '{array}' has no number")
            extent = dims[at] if dims else None
            if dims and (extent is None or value >= extent):
                raise OutOfReach.at(line, f"a place of '{array}' lies beyond its end")
            place = place * (extent or 0) + value
        return place

    def _writes(
        self,
        stmts: Sequence[c.Stmt],
        env: dict[str, c.Expr],
        tests: tuple[c.Expr, ...],
        loops: tuple[c.For, ...],
    ) -> Iterator[TileWrite]:
        for stmt in stmts:
            if not walk.stored_in((stmt,)) & set(self.shared) and isinstance(stmt, c.For | c.While):
                for name in walk.assigned_in((stmt,)):
                    env.pop(name, None)
                continue
            match stmt:
                case c.Declare(init=init, dims=()) if init is not None:
                    env[stmt.name] = substitute(init, env)
                case c.Evaluate(expr=c.Assign(op="=", target=c.Name(name=name), value=value)):
                    env[name] = substitute(value, env)
                case c.Evaluate(expr=c.Assign(op=op, target=c.Index() as target, value=value)) if (
                    walk.root(target)[0] in self.shared
                ):
                    yield self._write(stmt, op, target, substitute(value, env), env, tests, loops)
                case c.If(condition=condition, then=then, otherwise=otherwise):
                    test, sides = substitute(condition, env), (dict(env), dict(env))
                    yield from self._writes(then, sides[0], (*tests, test), loops)
                    yield from self._writes(otherwise, sides[1], (*tests, c.Unary("!", test)), loops)
                    for name in walk.assigned_in((stmt,)):
                        yes, no = (side.get(name) for side in sides)
                        if yes is None or no is None:
                            env.pop(name, None)
                        else:
                            env[name] = yes if yes == no else c.Ternary(test, yes, no)
                case c.For(body=body):
                    if walk.assigned_in(body) & env.keys():
                        raise OutOfReach.at(stmt.line, "a loop that fills a tile carries a value")
                    (loop,) = substitute((replace(stmt, body=()),), env)
                    assert isinstance(loop, c.For)
                    yield from self._writes(body, dict(env), tests, (*loops, loop))
                case _:
                    for name in walk.assigned_in((stmt,)):
                        env.pop(name, None)
                    leaves = isinstance(stmt, c.Verbatim | c.Jump | c.Return)
                    if leaves or walk.stored_in((stmt,)) & set(self.shared):
                        raise OutOfReach.at(
                            stmt.line, "shared memory is written in a way that is not followed"
                        )

    def _write(
        self,
        stmt: c.Evaluate,
        op: str,
        target: c.Index,
        value: c.Expr,
        env: Mapping[str, c.Expr],
        tests: tuple[c.Expr, ...],
        loops: tuple[c.For, ...],
    ) -> TileWrite:
        found = indices_of(substitute(target, env))
        if found is None or op != "=":
            raise OutOfReach.at(stmt.line, "shared memory is written in a way that is not followed")
        array, indices = found
        for part in (value, *tests, *indices):
            self._check_value(part, array, stmt.line, loops)
        own, kind = self.shared[array].type, type_of(value, self._types, self._source.functions)
        if kind is None or kind.is_pointer:
            raise OutOfReach.at(stmt.line, f"the type of what '{array}' holds is not known")
        if kind.base != own.base:
            value = c.Cast(c.Type(own.base), value)
        return TileWrite(array, indices, value, tests, loops, stmt.line)

    def _check_value(self, part: c.Expr, array: str, line: int, loops: Sequence[c.For]) -> None:
        """What may be computed later, by another thread, and be the same."""
        around = [*loops, *(s.loop for s in self._segments if s.loop is not None)]
        counted = {head.index for loop in around if (head := head_of(loop)) is not None}
        effects = effects_of(part, self._program) & ~(Effects.READS | Effects.THREAD | Effects.SHAPE)
        if effects or any(isinstance(node, c.Opaque) for node in walk.nodes_in(part)):
            raise OutOfReach.at(line, f"what '{array}' holds is more than a value")
        for name in walk.names_in(part):
            if name in self._unknown - counted:
                raise OutOfReach.at(line, f"'{array}' holds what depends on '{name}', which changes")

    # -- reads --------------------------------------------------------------------------------------

    def read(self, node: c.Expr) -> tuple[str, int, int, tuple[c.Expr, ...]] | None:
        """Array, loop, segment and place of an access, as `body` has them; None for anything else."""
        found = indices_of(node)
        if found is None or "@" not in found[0]:
            return None
        array, cycle, at = found[0].split("@")
        return array, int(cycle), int(at), found[1]

    def at(self, read: tuple[str, int, int, tuple[c.Expr, ...]], numbers: b.Numbers) -> Held:
        array, cycle, segment, indices = read
        place = self._place(array, indices, numbers, 0)
        for at in range(segment - 1, -1, -1):
            held = self._held.get((array, cycle, at, place))
            if held is not None:
                return held
        raise OutOfReach(f"shared memory '{array}' is read at a place that nobody wrote before the barrier")


def _stripped(stmts: Sequence[c.Stmt], shared: frozenset[str]) -> tuple[c.Stmt, ...]:
    """Without writes to these."""

    def one(stmt: c.Stmt) -> c.Stmt | tuple[c.Stmt, ...]:
        if isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Assign):
            return () if walk.root(stmt.expr.target)[0] in shared else stmt
        return stmt

    return walk.map_statements(stmts, None, one)


def _alive(stmts: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
    """Without variables that nobody reads, and what is empty then."""
    uses = Counter(node.name for node in walk.nodes_in(stmts) if isinstance(node, c.Name))
    uses.subtract(
        node.target.name
        for node in walk.nodes_in(stmts)
        if isinstance(node, c.Assign) and isinstance(node.target, c.Name)
    )
    unread = {name for name in walk.declared_in(stmts) if uses[name] <= 0}

    def one(stmt: c.Stmt) -> c.Stmt | tuple[c.Stmt, ...]:
        match stmt:
            case c.Declare(name=name, init=init) if name in unread:
                return stmt if init is not None and effects_of(init) & ~_ONLY_VALUES else ()
            case c.Evaluate(expr=c.Assign(target=c.Name(name=name), value=value)) if name in unread:
                return stmt if effects_of(value) & ~_ONLY_VALUES else ()
            case c.If(then=(), otherwise=()) | c.For(body=()):
                own = {part.name for part in getattr(stmt, "init", ()) if isinstance(part, c.Declare)}
                return stmt if walk.assigned_in((stmt,)) - own else ()
        return stmt

    shorter = walk.map_statements(stmts, None, one)
    return shorter if shorter == tuple(stmts) else _alive(shorter)


_ONLY_VALUES = Effects.READS | Effects.THREAD | Effects.SHAPE | Effects.ASSIGNS


def indices_of(node: c.Expr) -> tuple[str, tuple[c.Expr, ...]] | None:
    """`tile[i][j]` -> tile, (i, j); None where it is read as another type."""
    indices: list[c.Expr] = []
    while isinstance(node, c.Index):
        indices.insert(0, node.index)
        node = node.base
    return (node.name, tuple(indices)) if isinstance(node, c.Name) else None
