"""Shapes of arrays, from where a kernel that was read touches them.

An index is a sum of indices times strides: `(token * heads + head) * d + i` has the strides heads * d, d, 1.
From one stride to the next is an extent; the outermost one is how far its index goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count as counting
from math import isqrt, lcm

from tunesmith.expert.drafts.launches import looks_like_a_size
from tunesmith.expert.read.integers import (
    expand_terms,
    from_terms,
    head_of,
    number_node,
    simplify_exact,
    to_sizes,
)
from tunesmith.expert.read.model import (
    ArrayAccess,
    Each,
    KernelModel,
    Let,
    Once,
    Repeat,
    When,
    all_steps,
    own_parts,
)
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.fold import int_value
from tunesmith.source.printing import print_expr
from tunesmith.source.substitution import substitute
from tunesmith.source.types import byte_size, vector_parts
from tunesmith.space import expr as size

Terms = dict[tuple[c.Expr, ...], int]


def in_whole_sizes(expr: c.Expr, multiples: Mapping[str, int]) -> c.Expr:
    """Simplified, with sizes divided by what divides them: `8 * (d / 8)` is d."""
    pairs = [(name, by) for name, most in multiples.items() for by in range(1, most + 1) if most % by == 0]
    shares = {f"{name} / {by}": (name, by) for name, by in pairs}
    whole = {share: c.Binary("/", c.Name(name), number_node(by)) for share, (name, by) in shares.items()}
    found: Terms = {}
    for key, count in expand_terms(simplify_exact(expr, multiples)).items():
        factors: list[c.Expr] = []
        for factor in key:
            name, by = shares.get(factor.name, ("", 1)) if isinstance(factor, c.Name) else ("", 1)
            if not name:
                factors.append(factor)
            elif count % by == 0:
                factors.append(c.Name(name))
                count //= by
            else:
                factors.append(c.Binary("/", c.Name(name), number_node(by)))
        factors = [substitute(factor, whole) for factor in factors]
        product = tuple(sorted(factors, key=print_expr))
        found[product] = found.get(product, 0) + count
    return from_terms(found)


def rounded_up(expr: c.Expr | None, by: int | None) -> c.Expr | None:
    """x of `(x + 15) / 16`, where it is rounded up by that number."""
    match expr:
        case c.Binary(op="/", left=left, right=c.Number(value=int(divisor))) if divisor == by:
            rest = dict(expand_terms(left))
            if rest.pop((), 0) == divisor - 1:
                return from_terms(rest)
    return None


def large_primes() -> Iterator[int]:
    """Sizes to compare strides by: large, and none the multiple of others."""
    return (at for at in counting(1009, 2) if all(at % n for n in range(3, isqrt(at) + 1, 2)))


def side_by_side(parts: set[tuple[int, int]], whole: int) -> bool:
    """Whether parts fill the whole, each where the one before it ends: two halves of a row."""
    reached = 0
    for start, extent in sorted(parts):
        if start != reached:
            return False
        reached += extent
    return reached == whole


def meanings_of(kernel: KernelModel) -> dict[str, c.Expr]:
    """Variables with one value, and that value."""
    found: dict[str, c.Expr] = {}
    changed: set[str] = set()
    for step in all_steps(kernel.steps):
        if not isinstance(step, Each | Let | Once):
            continue
        changed |= walk.assigned_in(step.body)
        for stmt in walk.statements_in(step.body):
            if isinstance(stmt, c.Declare):
                if stmt.init is None or stmt.name in found:
                    changed.add(stmt.name)
                else:
                    found[stmt.name] = stmt.init
    return {name: value for name, value in found.items() if name not in changed}


FILL = "FILL"  # in a problem file: what only the user knows
_DEEPEST = 12


@dataclass(frozen=True)
class ArrayShape:
    extents: tuple[str, ...]  # over sizes, outermost first; FILL where only the data tell
    align: int | None = None  # bytes of its widest access, where that is more than an element
    read: bool = False
    written: bool = False
    item: str = ""  # the index that its first axis is only ever indexed by
    others: frozenset[str] = frozenset()  # names in its indices besides that, but for those inside loads
    scattered: bool = False  # data say where it is stored: what is not may have to stay


@dataclass(frozen=True)
class _AxisSpan:
    """One part of an index: a stride, and how far what is multiplied with it goes; None: not known."""

    stride: c.Expr
    extent: c.Expr | None
    factor: c.Expr


@dataclass(frozen=True)
class _IndexPlace:
    spans: tuple[_AxisSpan, ...]
    offset: Terms  # over sizes alone
    width: int  # elements moved at once


class ShapeReader:
    """`launch`: what gridDim and blockDim are over sizes; `values`: parameters and added names as sizes."""

    def __init__(
        self,
        kernel: KernelModel,
        launch: Mapping[str, c.Expr],
        values: Mapping[str, size.Node],
        multiples: Mapping[str, int],
    ) -> None:
        self._kernel, self._values = kernel, values
        self._launch = dict(launch)
        self._meanings = meanings_of(kernel)
        self._starts: dict[str, c.Expr] = {}
        self._extents = dict(self._loops())
        steps = list(all_steps(kernel.steps))
        nodes = (node for step in steps for part in own_parts(step) for node in walk.nodes_in(part))
        self._guarded = any(isinstance(one, c.If | c.Ternary | When) for one in (*nodes, *steps))
        self._aligned = any(record.align is not None for record in kernel.source.records)
        self.multiples = {**multiples, **self._whole()}
        self._samples = dict(zip(sorted(values), large_primes(), strict=False))

    def shapes(self) -> dict[str, ArrayShape]:
        found: dict[str, ArrayShape] = {}
        for parameter in self._kernel.function.parameters:
            accesses = [a for a in self._kernel.accesses if a.array == parameter.name]
            if accesses:
                found[parameter.name] = self._array_shape(accesses, parameter.type.base)
        return found

    def text(self, expr: c.Expr) -> str | None:
        return to_sizes(in_whole_sizes(self._plain(expr), self.multiples), self._values)

    def _loops(self) -> Iterator[tuple[str, c.Expr]]:
        for task in self._kernel.tasks:
            yield task.name, task.extent
        for step in all_steps(self._kernel.steps):
            if isinstance(step, Each | Repeat):
                yield self._loop(step.index, step.start, step.stop)
            for part in own_parts(step):
                for node in walk.nodes_in(part):
                    head = head_of(node) if isinstance(node, c.For) else None
                    if head is not None:
                        yield self._loop(head.index, head.start, head.stop)

    def _loop(self, index: str, start: c.Expr, stop: c.Expr) -> tuple[str, c.Expr]:
        """Of a loop that starts where other indices say, its turns are counted from there."""
        start, stop = self._plain(start), self._plain(stop)
        if walk.names_in(start) <= self._values.keys():
            return index, stop
        self._starts[index] = c.Binary("+", start, c.Name(index))
        return index, c.Binary("-", stop, start)

    def _plain(self, expr: c.Expr) -> c.Expr:
        for _ in range(_DEEPEST):
            changed = substitute(substitute(expr, self._meanings), self._launch)
            if changed == expr:
                break
            expr = changed
        return expr

    def _whole(self) -> dict[str, int]:
        """Sizes that wide accesses take to be multiples: `d / 8`, or `(d + 7) / 8`, turns of 8 elements."""
        found: dict[str, int] = {}
        for access in self._kernel.accesses:
            width, run = self._width(access), self._run(access)
            stop = self._plain(self._extents[access.loop]) if access.loop in self._extents else None
            if width == 1 and run == 1:
                continue
            whole = rounded_up(stop, run) if run > 1 and not self._guarded else None
            if isinstance(whole, c.Name) and whole.name in self._values:
                found[whole.name] = lcm(found.get(whole.name, 1), run)
            for expr in (access.index, *((stop,) if stop is not None else ())) if width > 1 else ():
                for node in walk.nodes_in(self._plain(expr)):
                    match node:
                        case c.Binary(op="/", left=c.Name(name=name), right=c.Number(value=int(by))):
                            if name in self._values and by > 0 and by % width == 0:
                                found[name] = lcm(found.get(name, 1), by)
        return found

    def _run(self, access: ArrayAccess) -> int:
        """Neighbours that a turn takes: a wide access, or one after the other as far as the turn moves."""
        width = self._width(access)
        if width > 1 or access.stride is None or access.stride <= 1:
            return width if access.stride == 1 else 1
        for key, count in expand_terms(self._plain(access.index)).items():
            inner = key[0] if len(key) == 1 and count == 1 else None
            if isinstance(inner, c.Name) and int_value(self._extents.get(inner.name, inner)) == access.stride:
                return access.stride
        return 1

    def _width(self, access: ArrayAccess) -> int:
        base = next(p.type.base for p in self._kernel.function.parameters if p.name == access.array)
        parts = vector_parts(base, self._kernel.source.language)
        mine, theirs = byte_size(parts[0] if parts else base), byte_size(access.type.base)
        return theirs // mine if mine and theirs and theirs > mine else 1

    def _extent(self, factor: c.Expr, depth: int = 0) -> c.Expr | None:
        """How many values a factor of an index takes."""
        if depth > _DEEPEST:
            return None
        match factor:
            case c.Number():
                return c.Binary("+", factor, number_node(1))
            case c.Name(name=name) if name in self._extents:
                stop = in_whole_sizes(self._plain(self._extents[name]), self.multiples)
                return stop if walk.names_in(stop) <= self._values.keys() else None
            case c.Binary(op="%", right=right) if walk.names_in(right) <= self._values.keys():
                return in_whole_sizes(right, self.multiples)
            case c.Call(function="min" | "clamp", args=args):  # a place that is kept inside
                fixed = (one for one in args if walk.names_in(one) <= self._values.keys())
                last = [one for one in fixed if one != number_node(0)]
                if len(last) == 1:
                    return in_whole_sizes(c.Binary("+", last[0], number_node(1)), self.multiples)
            case c.Binary(op="/", left=left, right=right) if walk.names_in(right) <= self._values.keys():
                whole = self._reached(left, depth + 1)
                if whole is None:
                    return None
                up = c.Binary("-", c.Binary("+", whole, right), number_node(1))
                rounded = c.Binary("/", up, right) if len(expand_terms(whole)) == 1 else None
                return self._quotient(whole, right) or rounded
        return None

    def _reached(self, expr: c.Expr, depth: int) -> c.Expr | None:
        """One more than the largest value of a sum of indices; None where it cannot be told."""
        total: c.Expr = number_node(1)
        for key, count in expand_terms(expr).items():
            inside = [f for f in key if not walk.names_in(f) <= self._values.keys()]
            stride = from_terms({tuple(f for f in key if f not in inside): count})
            if not inside:
                total = c.Binary("+", total, stride)
                continue
            extent = self._extent(inside[0], depth) if len(inside) == 1 and count > 0 else None
            if extent is None:
                return None
            total = c.Binary("+", total, c.Binary("*", stride, c.Binary("-", extent, number_node(1))))
        return in_whole_sizes(total, self.multiples)

    def _quotient(self, whole: c.Expr, by: c.Expr) -> c.Expr | None:
        """Where one divides the other term by term."""
        divisor = expand_terms(in_whole_sizes(by, self.multiples))
        if len(divisor) != 1:
            return number_node(1) if expand_terms(whole) == divisor else None
        (factors, times) = next(iter(divisor.items()))
        found: Terms = {}
        for key, share in expand_terms(in_whole_sizes(whole, self.multiples)).items():
            rest = list(key)
            for factor in factors:
                if factor not in rest:
                    return None
                rest.remove(factor)
            if share % times:
                return None
            found[tuple(rest)] = share // times
        return from_terms(found)

    def _array_shape(self, accesses: list[ArrayAccess], base: str) -> ArrayShape:
        places = [self._index_place(access) for access in accesses]
        widest = max(byte_size(access.type.base) or 0 for access in accesses)
        known = [place for place in places if place is not None]
        extents = self._joined(known) if len(known) == len(places) else (FILL,)
        kinds = {access.kind for access in accesses}
        item = self._item(known) if len(known) == len(places) else None
        item = item if isinstance(item, c.Name) else None
        factors = [span.factor for place in known for span in place.spans if not item or span.factor != item]
        stored = [self._plain(access.index) for access in accesses if access.kind == "store"]
        run = max(map(self._run, accesses)) * (byte_size(base) or 0) if self._aligned else 0
        if run in (4, 8, 16):  # an object of that size, which says how it lies
            widest = max(widest, run)
        return ArrayShape(
            extents,
            widest if widest > (byte_size(base) or widest) else None,
            any(a.kind != "store" and not self._stored_before(a) for a in accesses),
            bool(kinds & {"store", "update", "atomic"}),
            item.name if item is not None else "",
            _index_names(factors),
            any(isinstance(node, c.Index) for index in stored for node in walk.nodes_in(index)),
        )

    def _stored_before(self, access: ArrayAccess) -> bool:
        """Whether an earlier loop has stored what is found there: in every turn, in as many turns."""
        steps = self._kernel.steps
        loops = {step.index: at for at, step in enumerate(steps) if isinstance(step, Each)}
        for step in steps[: loops.get(access.loop, 0)] if access.kind != "atomic" else ():
            now = steps[loops[access.loop]]
            if not isinstance(step, Each) or not isinstance(now, Each):
                continue
            ends = [(self._plain(each.start), self._plain(each.stop)) for each in (step, now)]
            place = expand_terms(substitute(self._plain(access.index), {now.index: c.Name(step.index)}))
            sets = (s.expr for s in step.body if isinstance(s, c.Evaluate) and isinstance(s.expr, c.Assign))
            stores = (one.target for one in sets if one.op == "=")
            if ends[0] == ends[1] and any(
                target.base == c.Name(access.array) and expand_terms(self._plain(target.index)) == place
                for target in stores
                if isinstance(target, c.Index)
            ):
                return True
        return False

    def _item(self, places: list[_IndexPlace]) -> c.Expr | None:
        """What the first axis is indexed by, where that is one thing alone."""
        ranks = (self._stride_rank(span.stride) for place in places for span in place.spans)
        outer = max(ranks, default=(False, 0))
        found: set[c.Expr] = set()
        for place in places:
            mine = [span.factor for span in place.spans if self._stride_rank(span.stride) == outer]
            ahead = (from_terms({key: count}) for key, count in place.offset.items())
            if len(mine) != 1 or any(abs(self._size(part)) >= outer[1] for part in ahead):
                return None
            found.add(mine[0])
        return found.pop() if len(found) == 1 else None

    @property
    def overlaps(self) -> bool:
        """Whether blocks do again what others do, or leave something out: the block is not the kernel's."""
        parts: dict[tuple[str, str, int], set[tuple[int, int]]] = {}  # of what a block has: offset, extent
        for access in self._kernel.accesses:
            place = self._index_place(access)
            for span in filter(self._counts_blocks, () if place is None else place.spans):
                assert place is not None
                for other in place.spans:
                    turns = int_value(self._quotient(span.stride, other.stride) or number_node(0))
                    extent = None if other.extent is None else int_value(other.extent)
                    if turns is not None and turns > 1 and extent is not None and extent != turns:
                        start = place.offset.get((), 0) // (int_value(other.stride) or 1)
                        whose = (access.array, print_expr(span.factor), turns)
                        parts.setdefault(whose, set()).add((start, extent))
        return not all(side_by_side(found, turns) for (_, _, turns), found in parts.items())

    def _counts_blocks(self, span: _AxisSpan) -> bool:
        task = next((t for t in self._kernel.tasks if span.factor == c.Name(t.name)), None)
        return task is not None and any(name.startswith("gridDim") for name in walk.names_in(task.extent))

    def _index_place(self, access: ArrayAccess) -> _IndexPlace | None:
        width = self._width(access)
        index: c.Expr = access.index if width == 1 else c.Binary("*", number_node(width), access.index)
        if access.offset is not None:
            index = c.Binary("+", access.offset, index)
        for _ in self._starts:
            index = self._shift_to_zero(index)
        strides: dict[c.Expr, Terms] = {}
        offset: Terms = {}
        for key, count in expand_terms(in_whole_sizes(self._plain(index), self.multiples)).items():
            inside = [factor for factor in key if not walk.names_in(factor) <= self._values.keys()]
            if not inside:
                offset[key] = count
            elif len(inside) > 1 or count < 0:
                return None
            else:
                strides.setdefault(inside[0], {})[tuple(f for f in key if f != inside[0])] = count
        parts = ((factor, from_terms(stride)) for factor, stride in strides.items())
        spans = (_AxisSpan(stride, self._extent(factor), factor) for factor, stride in parts)
        return _IndexPlace(tuple(spans), offset, width)

    def _shift_to_zero(self, index: c.Expr) -> c.Expr:
        """With loops counted from 0, each once."""
        plain = self._plain(index)
        todo = {name: start for name, start in self._starts.items() if name in walk.names_in(plain)}
        done = {name: c.Name(f"{name}'") for name in todo}
        for name in done:
            self._extents[f"{name}'"] = self._extents[name]
        return substitute(plain, {name: substitute(start, done) for name, start in todo.items()})

    def _size(self, stride: c.Expr) -> int:
        return int_value(stride, self._samples) or 0

    def _stride_rank(self, stride: c.Expr) -> tuple[bool, int]:
        """Strides that are called so are longer than products of sizes."""
        return not all(looks_like_a_size(name) for name in walk.names_in(stride)), self._size(stride)

    def _joined(self, places: list[_IndexPlace]) -> tuple[str, ...]:
        """One shape for all places of an array."""
        strides = {self._stride_rank(span.stride): span.stride for place in places for span in place.spans}
        if not strides:
            return self._fixed_extents(places)
        apart = [strides[at] for at in sorted(strides, reverse=True)]
        chain = [apart[0]]
        for stride in apart[1:]:
            comparable = walk.names_in(stride) <= walk.names_in(chain[-1])
            if not comparable and self._stride_rank(stride)[0] == self._stride_rank(chain[-1])[0]:
                return (FILL,)  # which of them is the longer one, only callers know
            if self._quotient(chain[-1], stride) is not None and self._is_axis(stride, places):
                chain.append(stride)
        pairs = zip(chain, [*chain[1:], number_node(1)], strict=True)
        inner = [self._quotient(left, right) for left, right in pairs]
        outer = self._outermost_extent(chain[0], places)
        if len(chain) > 1 and inner[0] is not None and (whole := rounded_up(outer, int_value(inner[0]))):
            outer = whole  # tiles of a row whose last one need not be whole
            del inner[0], chain[0]
        last = inner.pop() if chain[-1] != number_node(1) else None
        if chain[-1] == number_node(1):
            inner.pop()
        elif int_value(last or number_node(0)) is not None and not self._is_axis(chain[-1], places):
            outer, last = (None if outer is None else c.Binary("*", outer, chain[-1])), None
        listed = [outer, *inner, *([last] if last is not None else [])]
        if len(listed) == 1 and outer is not None and (factors := self._factors(outer)):
            return factors
        return tuple(FILL if extent is None else self.text(extent) or FILL for extent in listed)

    def _factors(self, extent: c.Expr) -> tuple[str, ...]:
        """`rows * d` elements are rows of d: in the order in which the kernel says so."""
        found = expand_terms(in_whole_sizes(extent, self.multiples))
        key, count = next(iter(found.items()))
        if len(found) != 1 or count != 1 or len(set(key)) < 2 or not all(isinstance(f, c.Name) for f in key):
            return ()
        said = " ".join(print_expr(self._plain(stop)) for stop in self._extents.values())
        inner = {
            node.right
            for access in self._kernel.accesses
            for node in walk.nodes_in(self._plain(access.index))
            if isinstance(node, c.Binary) and node.op in ("%", "/") and isinstance(node.left, c.Name)
        }
        within = {name for divisor in inner for name in walk.names_in(divisor)}
        ordered = sorted(key, key=lambda f: (print_expr(f) in within, said.find(print_expr(f))))
        return tuple(self.text(factor) or FILL for factor in ordered)

    def _fixed_extents(self, places: list[_IndexPlace]) -> tuple[str, ...]:
        """An array that is only touched at fixed places."""
        ends = [int_value(from_terms(place.offset)) for place in places]
        if any(end is None for end in ends):
            return (FILL,)
        return (str(max(end for end in ends if end is not None) + max(place.width for place in places)),)

    def _is_axis(self, stride: c.Expr, places: list[_IndexPlace]) -> bool:
        """Strides that are numbers are axes where something lies between: 2 * i and 2 * i + 1."""
        value = int_value(stride)
        if value is None or value == 1:
            return True
        if any(place.width > 1 for place in places):
            return False
        if any(0 < count < value for place in places for key, count in place.offset.items() if not key):
            return True
        return any(
            int_value(span.stride) == 1 and span.extent is not None and int_value(span.extent) == value
            for place in places
            for span in place.spans
        )

    def _outermost_extent(self, stride: c.Expr, places: list[_IndexPlace]) -> c.Expr | None:
        """The largest number of steps that any place makes along the axis of this stride."""
        best: c.Expr | None = None
        for place in places:
            mine = [span for span in place.spans if expand_terms(span.stride) == expand_terms(stride)]
            if not mine:
                continue
            if any(span.extent is None for span in mine):
                return None
            extents = [span.extent for span in mine if span.extent is not None]
            extent = max(extents, key=self._size)
            if not self._guarded:  # else tests keep neighbours within
                for other in extents:
                    if other is not extent:
                        extent = c.Binary("-", c.Binary("+", extent, other), number_node(1))
            for key, count in place.offset.items():
                more = self._quotient(from_terms({key: count}), stride)
                if more is None or count < 0 or (self._guarded and int_value(more) is not None):
                    continue
                extent = c.Binary("+", extent, more)
            if best is None or self._size(extent) > self._size(best):
                best = extent
        return best


def _index_names(factors: list[c.Expr]) -> frozenset[str]:
    """Names by which an index depends on tasks and elements; what a load depends on is data."""
    unloaded = (walk.map_expr(f, lambda n: number_node(0) if isinstance(n, c.Index) else n) for f in factors)
    return frozenset(name for factor in unloaded for name in walk.names_in(factor))
