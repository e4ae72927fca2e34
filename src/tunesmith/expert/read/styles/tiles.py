"""Kernels whose blocks work on boxes of elements together, through tiles in shared memory.

The shape of a block is a number. Along each axis of the grid one sum of the kernel, `32 * blockIdx.y +
threadIdx.x` say, counts the elements of a block: its threads and turns come to every place of the box once.
These sums become tasks and the loop over elements; everything else is said by them , reads of tiles
become the values that lie there.

Long, because boxes, tiles and the sums of a block are one reading of one kind of kernel.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from math import prod

from tunesmith.expert.read.accesses import array_and_indices, find_touches
from tunesmith.expert.read.geometry import THREAD, LaunchedKernel, Triple
from tunesmith.expert.read.integers import (
    BUILTINS,
    MIRROR,
    OPPOSITE,
    Terms,
    expand_terms,
    from_terms,
    head_of,
    index_stride,
    number_node,
    same_value,
    split_operands,
    without_casts,
)
from tunesmith.expert.read.model import Each, Fact, OutOfReach, Reach, Task
from tunesmith.expert.read.rules.tidy import remove_early_exits
from tunesmith.expert.read.rules.totals import find_cooperative_call
from tunesmith.expert.read.styles.elements import Flat
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import Effects, Program, effects_of
from tunesmith.source.fold import fold_statements, int_value
from tunesmith.source.printing import print_expr
from tunesmith.source.substitution import substitute
from tunesmith.source.types import INTEGERS, integer_type, type_of
from tunesmith.space import expr as size

# -- Integers of a block whose shape is known, looked at in every one of its threads.
#
# What threads count by themselves (their own number, turns of loops with a number of turns) is gone through;
# blocks, sizes and everything else stay symbols. So what holds here holds for all blocks and all sizes.
#
#     (blockIdx.y * 16 + threadIdx.y - 1) * w + x      ->  blockIdx.y * w: 16,  w: threadIdx.y - 1,  1: x
#
# A `Box` says where the elements of a block lie: along an axis they are `width * blockIdx + place`, every
# place
# below the width once. A `Fit` says a sum over these in place of threads and blocks.


Numbers = Mapping[str, int]  # of one thread in one turn: threadIdx and indices of loops
Key = tuple[c.Expr, ...]


class Symbols(str):
    """A product of symbols by its text, which is quick to compare; nothing: a number alone."""

    __slots__ = ("factors",)
    factors: Key

    @classmethod
    def of(cls, factors: Iterable[c.Expr]) -> Symbols:
        by_text = sorted(((print_expr(factor), factor) for factor in factors), key=lambda pair: pair[0])
        made = cls(" * ".join(text for text, _ in by_text))
        made.factors = tuple(factor for _, factor in by_text)
        return made

    def times(self, name: str) -> Symbols:
        return Symbols.of((*self.factors, c.Name(name)))


ONE = Symbols.of(())
Sum = dict[Symbols, int]  # how often each product of symbols is added

MAX_TURNS = 1 << 16  # of all threads together


@dataclass(frozen=True)
class Turn:
    """A thread in one turn of the loops around a statement; `at`: where its element lies, by the box's axes.

    `other`: the numbers of whoever has left a value there, where that is another thread."""

    numbers: Numbers
    at: tuple[int, ...] = ()
    other: Numbers = field(default_factory=dict)


@dataclass(frozen=True)
class BoxAxis:
    """0 <= name < extent: `width` elements of it to a block along `axis` of the grid."""

    name: str
    axis: str  # blockIdx.x
    width: int


def threads_of(block: Triple) -> list[Numbers]:
    places = product(*(range(extent) for extent in reversed(block)))
    return [{"threadIdx.x": x, "threadIdx.y": y, "threadIdx.z": z} for z, y, x in places]


def turns_of(loops: Sequence[c.For], tests: Sequence[c.Expr], threads: Sequence[Numbers]) -> list[Numbers]:
    """Every thread in every turn of these loops for which the tests hold that have numbers there."""
    current = [dict(thread) for thread in threads]
    for loop in loops:
        head = head_of(loop)
        if head is None:
            raise OutOfReach.at(loop.line, "a loop that counts other than upwards is around a tile")
        longer: list[dict[str, int]] = []
        for numbers in current:
            ends = [int_value(part, numbers) for part in (head.start, head.stop, head.step)]
            if ends[0] is None or ends[1] is None or not ends[2] or ends[2] < 0:
                raise OutOfReach.at(loop.line, f"how far '{head.index}' counts has no number in a block")
            longer += [{**numbers, head.index: value} for value in range(ends[0], ends[1], ends[2])]
            if len(longer) > MAX_TURNS:
                raise OutOfReach.at(loop.line, f"more than {MAX_TURNS} turns of a block's threads")
        current = longer
    return [numbers for numbers in current if all(_evaluate_test(test, numbers) for test in tests)]


def _evaluate_test(test: c.Expr, numbers: Numbers) -> bool:
    value = int_value(test, numbers)
    if value is None:
        raise OutOfReach(f"whether '{print_expr(test)}' holds has no number in a block")
    return bool(value)


def derive_inequalities(test: c.Expr, types: Mapping[str, c.Type], yes: bool = True) -> list[c.Expr] | None:
    """Sums that are at least 0 where the test holds (or does not: `yes`), and only there; None: not said so.

    Comparisons without sign are right as well: see `check_signs`."""
    match test:
        case c.Unary(op="!", operand=operand):
            return derive_inequalities(operand, types, not yes)
        case c.Binary(op="&&" | "||" as op, left=left, right=right) if (op == "&&") == yes:
            both = [derive_inequalities(side, types, yes) for side in (left, right)]
            return None if None in both else [one for side in both if side for one in side]
        case c.Binary(op=op, left=left, right=right) if op in OPPOSITE:
            if None in [integer_type(side, types) for side in (left, right)] or has_load(test):
                return None
            if not yes:
                op = OPPOSITE[op]
            if op in (">", ">="):
                op, left, right = MIRROR[op], right, left
            if op == "!=":
                return None
            distance = c.Binary("-", right, left)
            if op == "==":
                return [distance, c.Binary("-", left, right)]
            return [distance if op == "<=" else c.Binary("-", distance, number_node(1))]
    return None


def has_load(expr: c.Expr) -> bool:
    return any(isinstance(node, c.Index) for node in walk.nodes_in(expr))


def check_signs(body: Sequence[c.Stmt], types: Mapping[str, c.Type]) -> None:
    """Without a sign C compares and divides numbers below 0 as large ones; sums here would be small.

    Nothing without a sign has a difference in it: then it is at least 0."""
    for node in (n for n in walk.nodes_in(body) if isinstance(n, c.Expr)):
        sides: tuple[c.Expr, ...] = ()
        if isinstance(node, c.Binary) and (node.op in OPPOSITE or node.op in ("/", "%", ">>")):
            sides = (node.left, node.right)
        elif isinstance(node, c.Call) and node.function in ("min", "max"):
            sides = node.args
        kinds = [integer_type(side, types) for side in sides]
        if all(kind is None or INTEGERS[kind.base][1] for kind in kinds):
            continue
        for part in (part for side in sides for part in walk.nodes_in(side)):
            if isinstance(part, c.Binary | c.Unary) and part.op == "-":
                raise OutOfReach(f"'{print_expr(node)}' may be of an unsigned number below zero")


class ThreadSums:
    """Sums of a kernel in numbers of its threads; what an expression comes to is worked out once."""

    def __init__(self) -> None:
        self._split: dict[tuple[int, tuple[str, ...]], tuple[c.Expr, list[tuple[Symbols, int, Key]]]] = {}

    def at(self, expr: c.Expr, numbers: Numbers) -> Sum:
        """With what has numbers counted; raises OutOfReach for a symbol that depends on them."""
        found: Sum = {}
        for symbols, count, factors in self._parts(expr, tuple(numbers)):
            for factor in factors:
                value = int_value(factor, numbers)
                if value is None:
                    raise OutOfReach(f"'{print_expr(factor)}' differs between threads in a way not followed")
                count *= value
            if count:
                found[symbols] = found.get(symbols, 0) + count
        return found

    def _parts(self, expr: c.Expr, counted: tuple[str, ...]) -> list[tuple[Symbols, int, Key]]:
        """Symbols, how often they are added, and what has numbers and is multiplied with them."""
        key = (id(expr), counted)
        if key not in self._split:
            parts: list[tuple[Symbols, int, Key]] = []
            for factors, count in expand_terms(expr).items():
                numbered = tuple(factor for factor in factors if walk.names_in(factor) & set(counted))
                parts.append((Symbols.of(f for f in factors if f not in numbered), count, numbered))
            self._split[key] = expr, parts  # with the expression itself: its number stays its own
        return self._split[key][1]


def is_at_least_zero(one: Sum, facts: Sequence[Sum], natural: frozenset[str]) -> bool:
    """Whether it follows from one of the facts, each `sum >= 0`, or from that symbols are."""
    for fact in (Sum(), *facts):
        for symbols in {*one, *fact}:
            count = one.get(symbols, 0) - fact.get(symbols, 0)
            if count < 0 or (count > 0 and not all(_is_natural(f, natural) for f in symbols.factors)):
                break
        else:
            return True
    return False


def _is_natural(factor: c.Expr, natural: frozenset[str]) -> bool:
    return isinstance(factor, c.Name) and factor.name in natural


@dataclass(frozen=True)
class FitPart:
    """symbols * (sum of axes and inner loops with these counts + constant)"""

    symbols: Symbols
    counts: tuple[tuple[str, int], ...]
    constant: int


@dataclass(frozen=True)
class Fit:
    parts: tuple[FitPart, ...]

    def expr(self, wide: str, sizes: Collection[str]) -> c.Expr:
        """`wide`: the type of 64 bits that the source computes it in, or "".

        `sizes`: what is multiplied with sums of all others."""
        groups: dict[Symbols, Terms] = {}
        for part in self.parts:
            outer = [f for f in part.symbols.factors if walk.names_in(f) <= set(sizes)]
            inner = tuple(f for f in part.symbols.factors if f not in outer)
            inside = groups.setdefault(Symbols.of(outer), {})
            for name, count in part.counts:
                if count:
                    inside[(*inner, c.Name(name))] = count
            if part.constant:
                inside[inner] = part.constant
        done: list[c.Expr] = []
        for symbols, inside in sorted(groups.items(), key=lambda pair: -len(pair[0].factors)):
            factors = [from_terms(inside), *symbols.factors]
            if factors[0] == number_node(1) and symbols:
                del factors[0]
            if wide:
                first = isinstance(factors[0], c.Number) and len(factors) > 1
                factors[first] = c.Cast(c.Type(wide), factors[first]) if symbols else factors[first]
            done.append(reduce(lambda a, b: c.Binary("*", a, b), factors))
        return reduce(lambda a, b: c.Binary("+", a, b), done) if done else number_node(0)

    def test(self) -> c.Expr:
        """That it is at least 0, with nothing below 0 in it."""
        sides: tuple[Terms, Terms] = ({}, {})
        constant = 0
        for part in self.parts:
            for name, count in part.counts:
                if count:
                    sides[count < 0][(*part.symbols.factors, c.Name(name))] = abs(count)
            if not part.symbols:
                constant = part.constant
            elif part.constant:
                sides[part.constant < 0][part.symbols.factors] = abs(part.constant)
        more, less = sides
        if not less:
            return c.Binary(">=", from_terms({**more, (): max(0, constant)}), number_node(max(0, -constant)))
        if constant < 0:
            return c.Binary("<", from_terms({**less, (): -constant - 1}), from_terms(more))
        return c.Binary("<=", from_terms(less), from_terms({**more, (): constant}))

    def at(self, turn: Turn, axes: Sequence[BoxAxis]) -> Sum:
        """The sum over blocks again, in this turn."""
        found: Sum = {}
        place = {axis.name: (axis, at) for axis, at in zip(axes, turn.at, strict=True)}
        for part in self.parts:
            value = part.constant
            for name, count in part.counts:
                if name in place:
                    axis, at = place[name]
                    key = part.symbols.times(axis.axis)
                    found[key] = found.get(key, 0) + count * axis.width
                    value += count * at
                else:
                    value += count * turn.numbers[name]
            found[part.symbols] = found.get(part.symbols, 0) + value
        return {key: count for key, count in found.items() if count}


def fit_sums(sums: Sequence[tuple[Turn, Sum]], axes: Sequence[BoxAxis], inner: Sequence[str]) -> Fit:
    """The sums, one for each turn, over the box's axes and inner loops; raises OutOfReach."""
    blocks = {axis.axis: at for at, axis in enumerate(axes)}
    by_symbols: dict[Symbols, dict[int, int]] = {}  # -> how often an axis' block is added
    for key in dict.fromkeys(key for _, one in sums for key in one):
        names = [f.name for f in key.factors if isinstance(f, c.Name) and f.name in blocks]
        rest = Symbols.of(f for f in key.factors if not isinstance(f, c.Name) or f.name not in blocks)
        if len(names) > 1 or any("blockIdx" in name for f in rest.factors for name in walk.names_in(f)):
            raise OutOfReach(f"blocks are counted by '{key}'")
        by_symbols.setdefault(rest, {})
        for name in names:
            count = next(one[key] for _, one in sums if key in one)
            if any(one.get(key, 0) != count for _, one in sums) or count % axes[blocks[name]].width:
                raise OutOfReach("blocks lie otherwise than the elements of a block")
            by_symbols[rest][blocks[name]] = count // axes[blocks[name]].width
    parts: list[FitPart] = []
    for rest, counts in by_symbols.items():
        left = [
            (turn, one.get(rest, 0) - sum(times * turn.at[at] for at, times in counts.items()))
            for turn, one in sums
        ]
        steps, constant = _fit_linear_steps(left, inner)
        names_and_counts = [*((axes[at].name, times) for at, times in counts.items()), *steps]
        parts.append(FitPart(rest, tuple(names_and_counts), constant))
    return Fit(tuple(part for part in parts if part.constant or any(k for _, k in part.counts)))


def _fit_linear_steps(
    values: Sequence[tuple[Turn, int]], inner: Sequence[str]
) -> tuple[list[tuple[str, int]], int]:
    """Numbers as a sum over inner loops and a constant: the same for whatever thread."""
    known: dict[tuple[int, ...], int] = {}
    for turn, value in values:
        if known.setdefault(tuple(turn.numbers[name] for name in inner), value) != value:
            raise OutOfReach("an index depends on the thread other than by its element")
    first = min(known)
    steps: list[int] = []
    for at in range(len(inner)):
        others = [
            p for p in known if p[at] != first[at] and p[:at] + p[at + 1 :] == first[:at] + first[at + 1 :]
        ]
        step = (known[others[0]] - known[first]) / (others[0][at] - first[at]) if others else 0
        steps.append(int(step))
    constant = known[first] - sum(step * value for step, value in zip(steps, first, strict=True))
    for point, value in known.items():
        if constant + sum(step * at for step, at in zip(steps, point, strict=True)) != value:
            raise OutOfReach("an index does not grow evenly with the loops around it")
    return list(zip(inner, steps, strict=True)), constant


def is_index(expr: c.Expr, types: Mapping[str, c.Type]) -> bool:
    """Whether it is arithmetic of integers that reads no memory."""
    found = integer_type(expr, types)
    plain = c.Name | c.Number | c.Unary | c.Binary | c.Cast
    return isinstance(expr, plain) and found is not None and found.base != "bool" and not any(
        isinstance(node, c.Index | c.Opaque | c.Assign) for node in walk.nodes_in(expr)
    )  # fmt: skip


Followed = Sequence[tuple[int, Turn]]  # the number of a tree, and whose it is
_DIFFERENT = "different values stand in one tile"


@dataclass(frozen=True)
class Refit:
    """Expressions over the box's axes in place of threads and blocks."""

    axes: tuple[BoxAxis, ...]
    types: Mapping[str, c.Type]
    sizes: frozenset[str]
    wide: str  # an integer of 64 bits
    sums: ThreadSums

    def one(self, trees: Sequence[c.Expr], turns: Followed, inner: Sequence[str]) -> c.Expr:
        """What these trees are in common; each turn goes by the one with its number.

        A tree is over the numbers of `Turn.other`, or of the turn itself where there are none."""
        counted = frozenset().union(*(turn.other.keys() or turn.numbers.keys() for _, turn in turns))
        return self._one(trees, turns, inner, counted)

    def _one(
        self, trees: Sequence[c.Expr], turns: Followed, inner: Sequence[str], counted: frozenset[str]
    ) -> c.Expr:
        moving = counted | {axis.axis for axis in self.axes}
        if not any(walk.names_in(tree) & moving for tree in trees):
            if any(tree != trees[0] for tree in trees):
                raise OutOfReach(_DIFFERENT)
            return trees[0]
        if all(is_index(tree, self.types) for tree in trees):
            return self._refit_sum(trees, turns, inner, counted)
        return self._alike(trees, turns, inner, counted)

    def _alike(
        self, trees: Sequence[c.Expr], turns: Followed, inner: Sequence[str], counted: frozenset[str]
    ) -> c.Expr:
        """Nodes that differ in their parts alone."""
        columns = [[part for part in walk.child_nodes(tree) if isinstance(part, c.Expr)] for tree in trees]
        shapes = {walk.map_below(tree, lambda _: c.Name("")) for tree in trees}
        if len(shapes) > 1 or not columns[0]:
            raise OutOfReach(_DIFFERENT)
        done = iter([self._one(row, turns, inner, counted) for row in zip(*columns, strict=True)])
        return walk.map_below(trees[0], lambda _: next(done))

    def _refit_sum(
        self, trees: Sequence[c.Expr], turns: Followed, inner: Sequence[str], counted: frozenset[str]
    ) -> c.Expr:
        # What threads and blocks share other than by sums, `min(max(y, 0), h - 1)`, by itself.
        mixed = [self._find_mixed_factors(tree, counted) for tree in trees]
        if any(len(parts) != len(mixed[0]) for parts in mixed):
            raise OutOfReach(_DIFFERENT)
        held: dict[str, c.Expr] = {}
        plain = list(trees)
        for row in zip(*mixed, strict=True):
            name = f"@{len(held)}"
            held[name] = self._alike(row, turns, inner, counted)
            plain = [_name_subexpression(tree, part, name) for tree, part in zip(plain, row, strict=True)]
        sums = [(turn, self.sums.at(plain[at], turn.other or turn.numbers)) for at, turn in turns]
        wide = any(INTEGERS[t.base][0] == 8 for tree in trees if (t := integer_type(tree, self.types)))
        return substitute(fit_sums(sums, self.axes, inner).expr(self.wide if wide else "", self.sizes), held)

    def _find_mixed_factors(self, tree: c.Expr, counted: frozenset[str]) -> list[c.Expr]:
        found: list[c.Expr] = []
        moving = counted | {axis.axis for axis in self.axes}
        for factor in (factor for key in expand_terms(tree) for factor in key):
            names = walk.names_in(factor)
            if isinstance(factor, c.Call | c.Ternary) and names - counted and names & moving:
                found.append(factor)
        return list(dict.fromkeys(found))


# -- Tiles in shared memory: what a block's threads write there for each other, read as the values they
# are.
#
#     tile[threadIdx.y + 1][threadIdx.x + 1] = u[y * w + x];  ... halo ...       v = u[y * w + x - 1]
#     __syncthreads();                                                     ->
#     v = tile[threadIdx.y + 1][threadIdx.x];
#
# The shape of a block is a number, so every write and every read is gone through thread by thread and turn by
# turn: each place has one writer before the barrier, whatever is read has been written, and the value, moved
# from writer to reader, is one expression over the elements of the block. Tests around a write
# must follow from those around the read, or have another value beside them (zero, a border). A loop in which
# the whole block fills tiles anew in every turn is the same, with its index a symbol.
#
# What is left has no shared memory: each element by itself.


def _name_subexpression(tree: c.Expr, part: c.Expr, name: str) -> c.Expr:
    return walk.map_expr(without_casts(tree), lambda node: c.Name(name) if node == part else node)


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
    numbers: Numbers


@dataclass(frozen=True)
class Segment:
    """Statements between two barriers, in the order of the text; `at` counts the barriers before them.

    `cycle`: the loop of the whole block they are in, 0 for none; its turns start at segment 0 again."""

    body: tuple[c.Stmt, ...]
    at: int = 0
    cycle: int = 0
    loop: c.For | None = None

    def name(self, array: str) -> str:
        """The array as it is read here: no source can have such a name."""
        return f"{array}@{self.cycle}@{self.at}"


def segments_of(
    body: Sequence[c.Stmt], local_names: frozenset[str], loop: c.For | None = None, cycle: int = 0
) -> list[Segment]:
    """The kernel cut at its barriers, which every thread of a block comes to; `own`: a thread's variables."""
    done: list[Segment] = []
    here: list[c.Stmt] = []
    at = 0
    for stmt in body:
        if not is_barrier(stmt) and find_cooperative_call((stmt,)) is None:
            here.append(stmt)
            continue
        done.append(Segment(tuple(here), at, cycle, loop))
        here = []
        if is_barrier(stmt):
            at += 1
        elif isinstance(stmt, c.For) and loop is None:
            done += _split_loop_segments(stmt, local_names, 1 + max((s.cycle for s in done), default=0))
        else:
            raise OutOfReach.at(stmt.line, "not every thread of a block comes to the barrier")
    return [*done, Segment(tuple(here), at, cycle, loop)]


def _split_loop_segments(loop: c.For, local_names: frozenset[str], cycle: int) -> list[Segment]:
    head = head_of(loop)
    uniform = head is not None and not any(
        walk.names_in(part) & (THREAD | local_names) for part in (head.start, head.stop, head.step)
    )
    if not uniform or any(isinstance(node, c.Jump | c.Return) for node in walk.nodes_in(loop.body)):
        raise OutOfReach.at(loop.line, "a loop with barriers turns differently for different threads")
    found = segments_of(loop.body, local_names, loop, cycle)
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
        threads: Sequence[Numbers],
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
            self._fill_segment(segment, env)
        self.body = self._without_writes()

    def _without_writes(self) -> tuple[c.Stmt, ...]:
        """The kernel with neither barriers nor writes; reads say between which barriers they stand."""
        done: list[c.Stmt] = []
        for segment in self._segments:
            names = {array: c.Name(segment.name(array)) for array in self.shared}
            body = substitute(_strip_shared_writes(segment.body, frozenset(self.shared)), names)
            if segment.loop is None:
                done += body
                continue
            last = done[-1] if done else None
            if isinstance(last, c.For) and last.line == segment.loop.line and last.init == segment.loop.init:
                done[-1] = replace(last, body=(*last.body, *body))
            else:
                done.append(replace(segment.loop, body=body))
        return _remove_dead_variables(done)

    def _check_segments(self) -> None:
        """A tile is filled, then read: never both between two barriers, nor in and out of one loop."""
        for array, declare in self.shared.items():
            name = frozenset({array})
            if not declare.is_array and any(name & walk.names_in(s.body) for s in self._segments):
                raise OutOfReach(f"'{array}' in shared memory is no array")
            written = {(s.cycle, s.at) for s in self._segments if name & walk.stored_in(s.body)}
            read = {
                (s.cycle, s.at)
                for s in self._segments
                if name & walk.names_in(_strip_shared_writes(s.body, name))
            }
            if written & read:
                raise OutOfReach(f"shared memory '{array}' is written and read with no barrier between")
            if len({cycle for cycle, _ in written | read}) > 1:
                raise OutOfReach(f"shared memory '{array}' is used both in a loop with barriers and outside")
        for segment in self._segments:
            if segment.cycle and walk.stored_in(segment.body) & set(self._arrays):
                raise OutOfReach("a loop with barriers stores to global memory")
        if sum(bool(walk.stored_in(s.body) & set(self._arrays)) for s in self._segments) > 1:
            raise OutOfReach("global memory is written before and after a barrier")

    def _fill_segment(self, segment: Segment, env: dict[str, c.Expr]) -> None:
        found: dict[tuple[str, int], list[tuple[TileWrite, Numbers]]] = {}
        forms: dict[tuple[int, ...], tuple[list[tuple[TileWrite, Numbers]], Held]] = {}
        for write in self._writes(segment.body, env, (), ()):
            counted = {*THREAD, *(h.index for loop in write.loops if (h := head_of(loop)))}
            settled: list[c.Expr] = []
            kept: list[c.Expr] = []
            for test in write.tests:
                parts = split_operands(test)
                numbers_alone = [part for part in parts if walk.names_in(part) <= counted]
                settled += numbers_alone
                left = [part for part in parts if part not in numbers_alone]
                if left:
                    kept.append(reduce(lambda x, y: c.Binary("&&", x, y), left))
            write = replace(write, tests=tuple(kept))
            for numbers in turns_of(write.loops, settled, self._threads):
                place = self._place_number(write.array, write.indices, numbers, write.line)
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

    def _joined(self, writes: Sequence[tuple[TileWrite, Numbers]]) -> Held:
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

    def _chosen(self, must: tuple[c.Expr, ...], value: c.Ternary, numbers: Numbers) -> Held:
        test = value.condition
        if derive_inequalities(test, self._types) is not None:
            return Held(must, (test,), value.yes, value.no, numbers)
        if derive_inequalities(test, self._types, False) is not None:
            return Held(must, (c.Unary("!", test),), value.no, value.yes, numbers)
        return Held(must, (), value, None, numbers)

    def _place_number(self, array: str, indices: Sequence[c.Expr], numbers: Numbers, line: int) -> int:
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
                    walk.root_variable(target)[0] in self.shared
                ):
                    yield self._write(stmt, op, target, substitute(value, env), env, tests, loops)
                case c.If(condition=condition, then=then, otherwise=otherwise):
                    test, sides = substitute(condition, env), (dict(env), dict(env))
                    yield from self._writes(then, sides[0], (*tests, test), loops)
                    yield from self._writes(otherwise, sides[1], (*tests, c.Unary("!", test)), loops)
                    _join_branches(env, test, sides, walk.assigned_in((stmt,)))
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
        array, indices = array_and_indices(substitute(target, env))
        if array is None or op != "=":
            raise OutOfReach.at(stmt.line, "shared memory is written in a way that is not followed")
        for part in (value, *tests, *indices):
            self._check_value(part, array, stmt.line, loops)
        tile_type, kind = self.shared[array].type, type_of(value, self._types, self._source.functions)
        if kind is None or kind.is_pointer:
            raise OutOfReach.at(stmt.line, f"the type of what '{array}' holds is not known")
        if kind.base != tile_type.base:
            value = c.Cast(c.Type(tile_type.base), value)
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

    def read(self, node: c.Expr) -> tuple[str, int, int, tuple[c.Expr, ...]] | None:
        """Array, loop, segment and place of an access, as `body` has them; None for anything else."""
        name, indices = array_and_indices(node)
        if name is None or "@" not in name:
            return None
        array, cycle, at = name.split("@")
        return array, int(cycle), int(at), indices

    def at(self, read: tuple[str, int, int, tuple[c.Expr, ...]], numbers: Numbers) -> Held:
        array, cycle, segment, indices = read
        place = self._place_number(array, indices, numbers, 0)
        for at in range(segment - 1, -1, -1):
            held = self._held.get((array, cycle, at, place))
            if held is not None:
                return held
        raise OutOfReach(f"shared memory '{array}' is read at a place that nobody wrote before the barrier")


def _join_branches(
    env: dict[str, c.Expr], test: c.Expr, sides: Sequence[Mapping[str, c.Expr]], assigned: Iterable[str]
) -> None:
    """What is known behind a branch of the variables that one of its sides sets."""
    for name in assigned:
        yes, no = (side.get(name) for side in sides)
        if yes is None or no is None:
            env.pop(name, None)
        else:
            env[name] = yes if yes == no else c.Ternary(test, yes, no)


def _strip_shared_writes(stmts: Sequence[c.Stmt], shared: frozenset[str]) -> tuple[c.Stmt, ...]:
    """Without writes to these."""

    def one(stmt: c.Stmt) -> c.Stmt | tuple[c.Stmt, ...]:
        if isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Assign):
            return () if walk.root_variable(stmt.expr.target)[0] in shared else stmt
        return stmt

    return walk.map_statements(stmts, None, one)


def _remove_dead_variables(stmts: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
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
                indices = {part.name for part in getattr(stmt, "init", ()) if isinstance(part, c.Declare)}
                return stmt if walk.assigned_in((stmt,)) - indices else ()
        return stmt

    shorter = walk.map_statements(stmts, None, one)
    return shorter if shorter == tuple(stmts) else _remove_dead_variables(shorter)


_ONLY_VALUES = Effects.READS | Effects.THREAD | Effects.SHAPE | Effects.ASSIGNS


@dataclass(frozen=True)
class Surroundings:
    facts: tuple[c.Expr, ...] = ()  # sums that are at least 0
    loops: tuple[c.For, ...] = ()


class SurroundedReading(ABC):
    """`read` says what an expression is; None: its parts are looked at."""

    def __init__(self, kernel: LaunchedKernel, body: Sequence[c.Stmt], types: Mapping[str, c.Type]) -> None:
        self._types, self._definitions, self._sums = types, kernel.normal.definitions, ThreadSums()
        heads = {h.index for n in walk.nodes_in(body) if isinstance(n, c.For) and (h := head_of(n))}
        self._changing = walk.assigned_in(body) - heads
        sizes = {n for n, node in kernel.launch.parameters.items() if isinstance(node, size.Variable)}
        self._natural = frozenset(BUILTINS) | sizes  # symbols that are at least 0

    @abstractmethod
    def read(self, expr: c.Expr, around: Surroundings) -> c.Expr | None: ...

    def block(self, stmts: Sequence[c.Stmt], around: Surroundings) -> tuple[c.Stmt, ...]:
        done: list[c.Stmt] = []
        for stmt in stmts:
            outer = walk.map_parts(stmt, lambda expr: self.rewritten(expr, around), lambda body: body)
            match outer, stmt:
                case c.If(), c.If(condition=test, then=then, otherwise=otherwise):
                    then = self.block(then, self.where(around, test))
                    otherwise = self.block(otherwise, self.where(around, test, False))
                    outer = replace(outer, then=then, otherwise=otherwise)
                case c.For(), c.For(condition=condition):
                    inside, head = replace(around, loops=(*around.loops, stmt)), head_of(stmt)
                    if head is not None and condition is not None:
                        inside = self.where(inside, condition)
                        first = self._sums.at(substitute(head.start, self._definitions), {})
                        if is_at_least_zero(first, (), self._natural):
                            self._natural |= {head.index}
                    outer = replace(outer, body=self.block(stmt.body, inside))
                case c.While(), c.While(body=body):
                    outer = replace(outer, body=self.block(body, around))
            done.append(outer)
        return tuple(done)

    def rewritten(self, expr: c.Expr, around: Surroundings) -> c.Expr:
        found = self.read(expr, around)
        if found is not None:
            return found
        match expr:
            case c.Ternary(condition=test, yes=yes, no=no):
                yes = self.rewritten(yes, self.where(around, test))
                no = self.rewritten(no, self.where(around, test, False))
                return c.Ternary(self.rewritten(test, around), yes, no)
            case c.Binary(op="&&", left=left, right=right):
                right = self.rewritten(right, self.where(around, left))
                return c.Binary("&&", self.rewritten(left, around), right)
        return walk.map_below(expr, lambda part: self.rewritten(part, around))

    def where(self, around: Surroundings, test: c.Expr, yes: bool = True) -> Surroundings:
        """With a test that holds, or does not."""
        if has_load(test) or walk.names_in(test) & self._changing:
            return around
        parts = split_operands(self.straight(test)) if yes else [test]
        found = [one for part in parts for one in derive_inequalities(part, self._types, yes) or ()]
        return replace(around, facts=(*around.facts, *found))

    def straight(self, test: c.Expr) -> c.Expr:
        """`!(a || b)` as `!a && !b`, comparisons of integers turned round."""
        match test:
            case c.Unary(op="!", operand=c.Binary(op="||", left=left, right=right)):
                return c.Binary("&&", *(self.straight(c.Unary("!", side)) for side in (left, right)))
            case c.Unary(op="!", operand=c.Binary(op=op, left=left, right=right) as inner) if op in OPPOSITE:
                said = [derive_inequalities(inner, self._types, holds) for holds in (True, False)]
                return test if said == [None, None] else c.Binary(OPPOSITE[op], left, right)
            case c.Unary(op="!", operand=c.Unary(op="!", operand=operand)):
                return self.straight(operand)
            case c.Binary(op="&&", left=left, right=right):
                return c.Binary("&&", self.straight(left), self.straight(right))
        return test


_AXES = ("blockIdx.x", "blockIdx.y", "blockIdx.z")


def read_boxes(kernel: LaunchedKernel, source: c.Source) -> tuple[Flat, tuple[Fact, ...]]:
    """Raises OutOfReach where the blocks do not work on boxes."""
    return _Boxes(kernel, source).flat()


_Missing = dict[tuple[tuple[Symbols, int], ...], int]  # sums without their number -> the number


class _Boxes(SurroundedReading):
    def __init__(self, kernel: LaunchedKernel, source: c.Source) -> None:
        self._kernel, self._normal, self._launch = kernel, kernel.normal, kernel.launch
        self._language = source.language
        fixed = {n: v for n, v in self._launch.values.items() if n.startswith("blockDim")}
        x, y, z = (int_value(fixed.get(f"blockDim.{axis}", c.Name(""))) for axis in "xyz")
        if x is None or y is None or z is None:
            raise OutOfReach("the shape of a block is no number")
        body = remove_early_exits(substitute(substitute(self._normal.body, self._normal.definitions), fixed))
        body = fold_statements(body)
        if effects_of(body, Program.of(source)) & (Effects.ATOMIC | Effects.MASK):
            raise OutOfReach("threads of a block cooperate other than by tiles")
        self._check_memory(body)
        check_signs(body, self._normal.types)
        self._threads = threads_of((x, y, z))
        normal = self._normal
        self._tiles = Tiles(body, normal.shared, normal.arrays, normal.types, self._threads, source)
        super().__init__(kernel, self._tiles.body, normal.types)
        self._said: dict[int, list[c.Expr]] = {}  # by tests that the tiles hold
        self._turns: list[Turn] = []
        self._tests: list[c.Expr] = []
        self._loops: list[c.For] = []

    def _check_memory(self, body: Sequence[c.Stmt]) -> None:
        """With barriers, what one thread stores another may read."""
        aliases = self._kernel.aliases
        found = find_touches(body, self._normal.arrays)
        written = {aliases.get(t.place.array, t.place.array) for t in found if t.writes}
        read = {aliases.get(t.place.array, t.place.array) for t in found if t.reads}
        for array in sorted(written & read):
            raise OutOfReach(f"'{array}' is read and written by a kernel with barriers")
        for node in walk.nodes_in(body):
            match node:
                case c.Unary(op="&" | "++" | "--", operand=c.Index()):
                    raise OutOfReach("memory is changed in a way that is not followed")
                case c.Verbatim(text=text) | c.Opaque(text=text):
                    raise OutOfReach(f"'{text.strip()[:60]}' is not understood")

    def flat(self) -> tuple[Flat, tuple[Fact, ...]]:
        body = self._peel_guards(self._tiles.body)
        counted = frozenset({*THREAD, *(h.index for loop in self._loops if (h := head_of(loop)))})
        tests = [part for test in self._tests for part in split_operands(self.straight(test))]
        settled = [test for test in tests if walk.names_in(test) <= counted]
        rest = [test for test in tests if test not in settled]
        every = turns_of(self._loops, settled, self._threads)
        self._axes = self._found_axes(body, rest, every)
        bounds, tests = self._axis_bounds(rest)
        around = Surroundings()
        for test in rest:
            around = self.where(around, test)
        wide = "long" if self._language == "opencl" else "long long"
        sizes = frozenset(self._launch.parameters)
        self._refit = Refit(self._axes, self._types, sizes, wide, self._sums)
        done = self.block(body, around)
        if any("@" in name for name in walk.names_in(done)):
            raise OutOfReach("a tile is read in a way that is not followed")
        for test in reversed(tests):
            done = (c.If(self.rewritten(test, Surroundings()), done, line=getattr(body[0], "line", 0)),)
        return self._flat(done, bounds), self._barrier_facts()

    def _peel_guards(self, body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        """Guards of all that is stored, and loops over a thread's elements, taken off."""
        while body:
            *before, last = body
            if walk.stored_in(before) & set(self._normal.arrays):
                break
            changed = walk.assigned_in(before) | set(walk.declared_in(before))
            if isinstance(last, c.If) and not last.otherwise and not walk.names_in(last.condition) & changed:
                if has_load(last.condition) or walk.assigned_in(last.condition):
                    break
                self._tests.append(last.condition)
                body = (*before, *last.then)
                continue
            head = head_of(last) if isinstance(last, c.For) else None
            if head is None or not isinstance(last, c.For):
                break
            stored = [t for t in find_touches(last.body, self._normal.arrays) if t.writes]
            if not any(head.index in walk.names_in(t.place.index) for t in stored):
                break
            if walk.names_in(last.init) & changed or walk.assigned_in(last.body) & set(
                walk.declared_in(before)
            ):
                raise OutOfReach.at(last.line, "a value is carried from one element to the next")
            if any(isinstance(stmt, c.For | c.While) for stmt in walk.statements_in(before)):
                break
            self._loops.append(last)
            body = (*before, *remove_early_exits(last.body))
        if not body:
            raise OutOfReach("the kernel does nothing")
        return body

    def _found_axes(
        self, body: Sequence[c.Stmt], tests: Sequence[c.Expr], every: Sequence[Numbers]
    ) -> tuple[BoxAxis, ...]:
        stores = [t.place.index for t in find_touches(body, self._normal.arrays) if t.writes]
        if not stores or not every:
            raise OutOfReach("a block stores nothing")
        used = walk.names_in(body) | {name for test in tests for name in walk.names_in(test)}
        names = {*used, *self._normal.arrays, *self._launch.parameters, *walk.declared_in(body)}
        ways: list[list[tuple[BoxAxis, list[int]]]] = []
        for axis in _AXES:
            if axis in used:
                found = [(expr, self._axis(expr, axis, every)) for expr in self._candidates(stores, tests)]
                ways.append(
                    [
                        (BoxAxis(self._axis_name(expr, axis), axis, one[0]), one[1])
                        for expr, one in found
                        if one
                    ]
                )
            elif any(scenario.several[_AXES.index(axis)] for scenario in self._kernel.scenarios):
                raise OutOfReach(f"the blocks along {axis[-1]} of the grid all do the same work")
        for way in product(*ways):
            at = list(zip(*(places for _, places in way), strict=True))
            if len(set(at)) == len(at) == prod(box.width for box, _ in way):
                break
        else:
            raise OutOfReach("the threads of a block do not come to every element of a box once")
        axes = [replace(box, name=walk.fresh_name(box.name, names)) for box, _ in way]
        self._turns = [Turn(numbers, place) for numbers, place in zip(every, at, strict=True)]
        self._natural |= {box.name for box in axes}
        self._types = {**self._types, **{box.name: c.Type("int") for box in axes}}
        return tuple(axes)

    def _candidates(self, stores: Sequence[c.Expr], tests: Sequence[c.Expr]) -> Iterator[c.Expr]:
        for test in tests:
            if isinstance(test, c.Binary) and test.op in OPPOSITE:
                yield from (test.left, test.right)
        for index in stores:
            by_symbols: dict[Key, dict[Key, int]] = {}
            for key, count in expand_terms(index).items():
                inside = tuple(
                    f for f in key if walk.names_in(f) & set(BUILTINS) or f in self._loop_indices()
                )
                rest = tuple(f for f in key if f not in inside)
                by_symbols.setdefault(rest, {})[inside] = count
            yield from (from_terms(part) for part in by_symbols.values())
        yield from self._normal.definitions.values()

    def _loop_indices(self) -> list[c.Name]:
        return [c.Name(head.index) for loop in self._loops if (head := head_of(loop)) is not None]

    def _axis(self, expr: c.Expr, axis: str, every: Sequence[Numbers]) -> tuple[int, list[int]] | None:
        """How many elements a block has there, and which one each turn has."""
        try:
            sums = [self._sums.at(expr, numbers) for numbers in every]
        except OutOfReach:
            return None
        block = Symbols.of((c.Name(axis),))
        width = sums[0].get(block, 0)
        if width < 1 or any(one.keys() - {ONE, block} or one.get(block, 0) != width for one in sums):
            return None
        places = [one.get(ONE, 0) for one in sums]
        return (width, places) if set(places) == set(range(width)) else None

    def _axis_name(self, expr: c.Expr, axis: str) -> str:
        """What the source calls it, or most of it."""
        wanted = expand_terms(expr)

        def alike(name: str) -> int:
            terms = expand_terms(self._normal.ids[name].expr)
            return len(terms.items() & wanted.items()) if terms.get((c.Name(axis),)) else 0

        best = max(self._normal.ids, key=alike, default="")
        if not best or not alike(best):
            return f"at_{axis[-1]}"
        plain = re.sub(r"_\d+$", "", best)
        return plain if plain in self._normal.ids else best

    def _axis_bounds(self, tests: Sequence[c.Expr]) -> tuple[dict[str, c.Expr], list[c.Expr]]:
        """Where the axes end, and the tests that say something else."""
        bounds: dict[str, c.Expr] = {}
        left: list[c.Expr] = []
        known = set(self._normal.types) - set(walk.declared_in(self._tiles.body)) - set(BUILTINS)
        for test in tests:
            found = derive_inequalities(test, self._types)
            taken = False
            if found is not None and len(found) == 1:
                sums = [(turn, self._sums.at(found[0], turn.numbers)) for turn in self._turns]
                try:
                    fit = fit_sums(sums, self._axes, ())
                except OutOfReach:
                    left.append(test)
                    continue
                axes = [(n, k) for part in fit.parts for n, k in part.counts if k]
                rest = {part.symbols.factors: part.constant for part in fit.parts if part.constant}
                bound = from_terms({**rest, (): rest.get((), 0) + 1})
                alone = all(not part.symbols for part in fit.parts if any(k for _, k in part.counts))
                if [k for _, k in axes] == [-1] and alone and walk.names_in(bound) <= known:
                    taken = same_value(bounds.setdefault(axes[0][0], bound), bound)
            if not taken:
                left.append(test)
        return bounds, left

    def _flat(self, body: tuple[c.Stmt, ...], bounds: Mapping[str, c.Expr]) -> Flat:
        tasks: list[tuple[str, Task]] = []
        reach: list[Reach] = []
        found = find_touches(body, self._normal.arrays)

        def accesses_beside(axis: BoxAxis) -> tuple[int, int]:
            near = [
                t for t in found if (s := index_stride(t.place.index, axis.name)) is not None and s.step == 1
            ]
            return sum(t.writes for t in near), len(near)

        element = max(self._axes, key=accesses_beside)
        body = substitute(body, self._launch.values)
        each: Each | None = None
        line = next((stmt.line for stmt in walk.statements_in(body) if stmt.line), 0)
        for axis in self._axes:
            count = c.Binary("*", c.Name(axis.axis.replace("blockIdx", "gridDim")), number_node(axis.width))
            extent = bounds.get(axis.name, self._launch.replaced(count))
            if axis.name in bounds:
                reach.append(Reach(axis.name, extent, count))
            if axis is element:
                each = Each(axis.name, number_node(0), extent, body, (), "int", line=line)
            else:
                tasks.append((axis.axis, Task(axis.name, extent, "int", self._launch.size_text(extent))))
        assert each is not None
        tasks.sort(key=lambda pair: pair[0], reverse=True)
        return Flat(tuple(task for _, task in tasks), each, (), tuple(reach))

    def _barrier_facts(self) -> tuple[Fact, ...]:
        what = "every place of '{}' that is read was written by one thread, a barrier before"
        return tuple(
            Fact(what.format(name), "proved", f"line {declare.line}")
            for name, declare in self._normal.shared.items()
        )

    def read(self, expr: c.Expr, around: Surroundings) -> c.Expr | None:
        place = self._tiles.read(expr) if isinstance(expr, c.Index) else None
        if place is not None:
            return self._held(place, around)
        moving = {*THREAD, *_AXES, *(name.name for name in self._loop_indices())}
        if not any("@" in name or name in moving for name in walk.names_in(expr)):
            return expr
        if is_index(expr, self._types):
            return self._refit.one([expr], [(0, turn) for turn in self._turns], ())
        return None

    def _facts_at(self, around: Surroundings, turn: Turn) -> list[Sum]:
        found: list[Sum] = []
        for fact in around.facts:
            try:
                found.append(self._sums.at(fact, turn.numbers))
            except OutOfReach:
                continue  # it says nothing that is followed
        return found

    def _held(self, read: tuple[str, int, int, tuple[c.Expr, ...]], around: Surroundings) -> c.Expr:
        """The value of a tile's place, over the box's axes and the loops around it."""
        used = {name for index in read[3] for name in walk.names_in(index)}
        loops = [loop for loop in around.loops if (h := head_of(loop)) is not None and h.index in used]
        inner = [head.index for loop in loops if (head := head_of(loop)) is not None]
        trees: list[c.Expr] = []
        turns: list[tuple[int, Turn]] = []
        others: set[c.Expr] = set()
        open_tests: list[_Missing] = []
        for base in self._turns:
            for numbers in turns_of(loops, (), [base.numbers]):
                held = self._tiles.at(read, numbers)
                turn = Turn(numbers, base.at, held.numbers)
                facts = self._facts_at(around, turn)
                for must in self._sums_of(held.must, held.numbers):
                    if not is_at_least_zero(must, facts, self._natural):
                        raise OutOfReach(
                            f"'{read[0]}' may be read where a test has kept it from being written"
                        )
                missing: _Missing = {}
                for one in self._sums_of(held.tests, held.numbers):
                    if not is_at_least_zero(one, facts, self._natural):
                        form = tuple(sorted((k, n) for k, n in one.items() if k))
                        constant = one.get(ONE, 0)
                        missing[form] = min(missing.get(form, constant), constant)
                if missing and held.other is not None:
                    others.add(held.other)
                if held.value not in trees:
                    trees.append(held.value)
                turns.append((trees.index(held.value), turn))
                open_tests.append(missing)
        value = self._refit.one(trees, turns, inner)
        return self._select_by_tests(value, others, turns, open_tests, inner, around)

    def _sums_of(self, tests: tuple[c.Expr, ...], numbers: Numbers) -> list[Sum]:
        if id(tests) not in self._said:
            said = [derive_inequalities(test, self._types) for test in tests]
            if None in said:
                raise OutOfReach("a tile is written under a test that is not followed")
            self._said[id(tests)] = [one for found in said for one in found or ()]
        return [self._sums.at(one, numbers) for one in self._said[id(tests)]]

    def _select_by_tests(
        self,
        value: c.Expr,
        others: set[c.Expr],
        turns: Sequence[tuple[int, Turn]],
        open_tests: Sequence[_Missing],
        inner: Sequence[str],
        around: Surroundings,
    ) -> c.Expr:
        """The value where the tests hold that no reader is sure of; what else stands there elsewhere."""
        forms = list(dict.fromkeys(form for missing in open_tests for form in missing))
        if not forms:
            return value
        if len(others) != 1:
            raise OutOfReach("different values stand beside one tile")
        (other,) = others
        if walk.names_in(other) & {*BUILTINS, *self._tiles.shared}:
            raise OutOfReach("what stands beside a tile depends on the thread")
        tests: list[c.Expr] = []
        for form in forms:
            sums = [
                (turn, {**dict(form), ONE: missing[form]})
                for (_, turn), missing in zip(turns, open_tests, strict=True)
                if form in missing
            ]
            fit = fit_sums(sums, self._axes, inner)
            for (_, turn), missing in zip(turns, open_tests, strict=True):
                sure = form not in missing
                facts = self._facts_at(around, turn) if sure else []
                if sure and not is_at_least_zero(fit.at(turn, self._axes), facts, self._natural):
                    raise OutOfReach("a tile's border is tested otherwise than its inside")
            tests.append(fit.test())
        joined = tests[0]
        for test in tests[1:]:
            joined = c.Binary("&&", joined, test)
        return c.Ternary(joined, value, other)
