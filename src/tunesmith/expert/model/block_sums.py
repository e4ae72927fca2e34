"""Integers of a block whose shape is known, looked at in every one of its threads.

What threads count by themselves (their own number, turns of loops with a number of turns) is gone through;
blocks, sizes and everything else stay symbols. So what holds here holds for all blocks and all sizes.

    (blockIdx.y * 16 + threadIdx.y - 1) * w + x      ->  blockIdx.y * w: 16,  w: threadIdx.y - 1,  1: x

A `Box` says where the elements of a block lie: along an axis they are `width * blockIdx + place`, every place
below the width once. A `Fit` says a sum over these in place of threads and blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from typing import Any

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.fold import int_value
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import INTEGERS, integer_type
from tunesmith.expert.model.affine import (
    MIRROR,
    OPPOSITE,
    Terms,
    from_terms,
    head_of,
    number,
    terms,
    without_casts,
)
from tunesmith.expert.model.kernel import OutOfReach
from tunesmith.expert.model.scenarios import Triple

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

MOST_TURNS = 1 << 16  # of all threads together


@dataclass(frozen=True)
class Turn:
    """A thread in one turn of the loops around a statement; `at`: where its element lies, by the box's axes.

    `other`: the numbers of whoever has left a value there, where that is another thread.
    """

    numbers: Numbers
    at: tuple[int, ...] = ()
    other: Numbers = field(default_factory=dict)


@dataclass(frozen=True)
class BoxAxis:
    """0 <= name < extent: `width` elements of it to a block along `axis` of the grid."""

    name: str
    axis: str  # blockIdx.x
    width: int


def threads_of(block: Triple) -> Iterator[Numbers]:
    for z in range(block[2]):
        for y in range(block[1]):
            for x in range(block[0]):
                yield {"threadIdx.x": x, "threadIdx.y": y, "threadIdx.z": z}


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
            if len(longer) > MOST_TURNS:
                raise OutOfReach.at(loop.line, f"more than {MOST_TURNS} turns of a block's threads")
        current = longer
    return [numbers for numbers in current if all(_holds(test, numbers) for test in tests)]


def _holds(test: c.Expr, numbers: Numbers) -> bool:
    value = int_value(test, numbers)
    if value is None:
        raise OutOfReach(f"whether '{print_expr(test)}' holds has no number in a block")
    return bool(value)


def operands(expr: c.Expr, op: str = "&&") -> list[c.Expr]:
    if isinstance(expr, c.Binary) and expr.op == op:
        return [*operands(expr.left, op), *operands(expr.right, op)]
    return [expr]


def inequalities(test: c.Expr, types: Mapping[str, c.Type], yes: bool = True) -> list[c.Expr] | None:
    """Sums that are at least 0 where the test holds (or does not: `yes`), and only there; None: not said so.

    Comparisons without sign are right as well: see `check_signs`.
    """
    match test:
        case c.Unary(op="!", operand=operand):
            return inequalities(operand, types, not yes)
        case c.Binary(op="&&" | "||" as op, left=left, right=right) if (op == "&&") == yes:
            both = [inequalities(side, types, yes) for side in (left, right)]
            return None if None in both else [one for side in both if side for one in side]
        case c.Binary(op=op, left=left, right=right) if op in OPPOSITE:
            if None in [integer_type(side, types) for side in (left, right)] or loads(test):
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
            return [distance if op == "<=" else c.Binary("-", distance, number(1))]
    return None


def loads(expr: c.Expr) -> bool:
    return any(isinstance(node, c.Index) for node in walk.nodes_in(expr))


def check_signs(body: Sequence[c.Stmt], types: Mapping[str, c.Type]) -> None:
    """Without a sign C compares and divides numbers below 0 as large ones; sums here would be small.

    Nothing without a sign has a difference in it: then it is at least 0.
    """
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
        for symbols, count, own in self._parts(expr, tuple(numbers)):
            for factor in own:
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
            for factors, count in terms(expr).items():
                own = tuple(factor for factor in factors if walk.names_in(factor) & set(counted))
                parts.append((Symbols.of(f for f in factors if f not in own), count, own))
            self._split[key] = expr, parts  # with the expression itself: its number stays its own
        return self._split[key][1]


def rebuilt(expr: c.Expr, fn: Callable[[c.Expr], c.Expr]) -> c.Expr:
    """The expression with each of its parts passed through `fn`."""
    changed: dict[str, Any] = {}
    for part in fields(expr):
        value = getattr(expr, part.name)
        if isinstance(value, c.Expr):
            changed[part.name] = fn(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], c.Expr):
            changed[part.name] = tuple(fn(each) for each in value)
    return replace(expr, **changed)


def added(one: Sum, other: Sum) -> Sum:
    return {symbols: one.get(symbols, 0) + other.get(symbols, 0) for symbols in {*one, *other}}


def is_at_least_zero(one: Sum, facts: Sequence[Sum], natural: frozenset[str]) -> bool:
    """Whether it follows from one of the facts, each `sum >= 0`, or from that symbols are."""
    for fact in (_NOTHING, *facts):
        for symbols in {*one, *fact}:
            count = one.get(symbols, 0) - fact.get(symbols, 0)
            if count < 0 or (count > 0 and not all(_is_natural(f, natural) for f in symbols.factors)):
                break
        else:
            return True
    return False


_NOTHING: Sum = {}


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

        `sizes`: what is multiplied with sums of all others.
        """
        groups: dict[Symbols, Terms] = {}
        for part in self.parts:
            outer = [f for f in part.symbols.factors if walk.names_in(f) <= set(sizes)]
            own = tuple(f for f in part.symbols.factors if f not in outer)
            inside = groups.setdefault(Symbols.of(outer), {})
            for name, count in part.counts:
                if count:
                    inside[(*own, c.Name(name))] = count
            if part.constant:
                inside[own] = part.constant
        done: list[c.Expr] = []
        for symbols, inside in sorted(groups.items(), key=lambda pair: -len(pair[0].factors)):
            factors = [from_terms(inside), *symbols.factors]
            if factors[0] == number(1) and symbols:
                del factors[0]
            if wide:
                first = isinstance(factors[0], c.Number) and len(factors) > 1
                factors[first] = c.Cast(c.Type(wide), factors[first]) if symbols else factors[first]
            done.append(reduce(lambda a, b: c.Binary("*", a, b), factors))
        return reduce(lambda a, b: c.Binary("+", a, b), done) if done else number(0)

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
            return c.Binary(">=", from_terms({**more, (): max(0, constant)}), number(max(0, -constant)))
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


def fitted(sums: Sequence[tuple[Turn, Sum]], axes: Sequence[BoxAxis], inner: Sequence[str]) -> Fit:
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
        steps, constant = _straight(left, inner)
        names_and_counts = [*((axes[at].name, times) for at, times in counts.items()), *steps]
        parts.append(FitPart(rest, tuple(names_and_counts), constant))
    return Fit(tuple(part for part in parts if part.constant or any(k for _, k in part.counts)))


def _straight(values: Sequence[tuple[Turn, int]], inner: Sequence[str]) -> tuple[list[tuple[str, int]], int]:
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

        A tree is over the numbers of `Turn.other`, or of the turn itself where there are none.
        """
        own = frozenset().union(*(turn.other.keys() or turn.numbers.keys() for _, turn in turns))
        return self._one(trees, turns, inner, own)

    def _one(
        self, trees: Sequence[c.Expr], turns: Followed, inner: Sequence[str], own: frozenset[str]
    ) -> c.Expr:
        moving = own | {axis.axis for axis in self.axes}
        if not any(walk.names_in(tree) & moving for tree in trees):
            if any(tree != trees[0] for tree in trees):
                raise OutOfReach(_DIFFERENT)
            return trees[0]
        if all(is_index(tree, self.types) for tree in trees):
            return self._sum(trees, turns, inner, own)
        return self._alike(trees, turns, inner, own)

    def _alike(
        self, trees: Sequence[c.Expr], turns: Followed, inner: Sequence[str], own: frozenset[str]
    ) -> c.Expr:
        """Nodes that differ in their parts alone."""
        columns = [[part for part in walk.children(tree) if isinstance(part, c.Expr)] for tree in trees]
        shapes = {rebuilt(tree, lambda _: c.Name("")) for tree in trees}
        if len(shapes) > 1 or not columns[0]:
            raise OutOfReach(_DIFFERENT)
        done = iter([self._one(row, turns, inner, own) for row in zip(*columns, strict=True)])
        return rebuilt(trees[0], lambda _: next(done))

    def _sum(
        self, trees: Sequence[c.Expr], turns: Followed, inner: Sequence[str], own: frozenset[str]
    ) -> c.Expr:
        # What threads and blocks share other than by sums, `min(max(y, 0), h - 1)`, by itself.
        mixed = [self._mixed(tree, own) for tree in trees]
        if any(len(parts) != len(mixed[0]) for parts in mixed):
            raise OutOfReach(_DIFFERENT)
        held: dict[str, c.Expr] = {}
        plain = list(trees)
        for row in zip(*mixed, strict=True):
            name = f"@{len(held)}"
            held[name] = self._alike(row, turns, inner, own)
            plain = [_named(tree, part, name) for tree, part in zip(plain, row, strict=True)]
        sums = [(turn, self.sums.at(plain[at], turn.other or turn.numbers)) for at, turn in turns]
        wide = any(INTEGERS[t.base][0] == 8 for tree in trees if (t := integer_type(tree, self.types)))
        return substitute(fitted(sums, self.axes, inner).expr(self.wide if wide else "", self.sizes), held)

    def _mixed(self, tree: c.Expr, own: frozenset[str]) -> list[c.Expr]:
        found: list[c.Expr] = []
        moving = own | {axis.axis for axis in self.axes}
        for factor in (factor for key in terms(tree) for factor in key):
            names = walk.names_in(factor)
            if isinstance(factor, c.Call | c.Ternary) and names - own and names & moving:
                found.append(factor)
        return list(dict.fromkeys(found))


def _named(tree: c.Expr, part: c.Expr, name: str) -> c.Expr:
    return walk.map_expr(without_casts(tree), lambda node: c.Name(name) if node == part else node)
