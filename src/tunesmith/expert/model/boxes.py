"""Kernels whose blocks work on boxes of elements together, through tiles in shared memory.

The shape of a block is a number. Along each axis of the grid one sum of the kernel, `32 * blockIdx.y +
threadIdx.x` say, counts the elements of a block: its threads and turns come to every place of the box once.
These sums become tasks and the loop over elements; everything else is said by them (`block_sums`), reads of
tiles become the values that lie there (`tiles`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import Effects, Program, effects_of
from tunesmith.csource.fold import fold_statements, int_value
from tunesmith.csource.substitution import substitute
from tunesmith.expert.model import block_sums as b
from tunesmith.expert.model.accesses import touches
from tunesmith.expert.model.affine import (
    BUILTINS,
    OPPOSITE,
    from_terms,
    head_of,
    number,
    same_value,
    stride,
    terms,
)
from tunesmith.expert.model.facts import Fact
from tunesmith.expert.model.flat import Flat
from tunesmith.expert.model.geometry import THREAD, LaunchedKernel
from tunesmith.expert.model.kernel import Each, OutOfReach, Reach, Task
from tunesmith.expert.model.surroundings import SurroundedReading, Surroundings
from tunesmith.expert.model.tidy import structured
from tunesmith.expert.model.tiles import Tiles

_AXES = ("blockIdx.x", "blockIdx.y", "blockIdx.z")


def read_boxes(kernel: LaunchedKernel, source: c.Source) -> tuple[Flat, tuple[Fact, ...]]:
    """Raises OutOfReach where the blocks do not work on boxes."""
    return _Boxes(kernel, source).flat()


_Missing = dict[tuple[tuple[b.Symbols, int], ...], int]  # sums without their number -> the number


class _Boxes(SurroundedReading):
    def __init__(self, kernel: LaunchedKernel, source: c.Source) -> None:
        self._kernel, self._normal, self._launch = kernel, kernel.normal, kernel.launch
        self._language = source.language
        fixed = {n: v for n, v in self._launch.values.items() if n.startswith("blockDim")}
        x, y, z = (int_value(fixed.get(f"blockDim.{axis}", c.Name(""))) for axis in "xyz")
        if x is None or y is None or z is None:
            raise OutOfReach("the shape of a block is no number")
        body = structured(substitute(substitute(self._normal.body, self._normal.definitions), fixed))
        body = fold_statements(body)
        if effects_of(body, Program.of(source)) & (Effects.ATOMIC | Effects.MASK):
            raise OutOfReach("threads of a block cooperate other than by tiles")
        self._check_memory(body)
        b.check_signs(body, self._normal.types)
        self._threads = list(b.threads_of((x, y, z)))
        normal = self._normal
        self._tiles = Tiles(body, normal.shared, normal.arrays, normal.types, self._threads, source)
        super().__init__(kernel, self._tiles.body, normal.types)
        self._said: dict[int, list[c.Expr]] = {}  # by tests that the tiles hold
        self._turns: list[b.Turn] = []
        self._tests: list[c.Expr] = []
        self._loops: list[c.For] = []

    def _check_memory(self, body: Sequence[c.Stmt]) -> None:
        """With barriers, what one thread stores another may read."""
        aliases = self._kernel.aliases
        found = touches(body, self._normal.arrays)
        written = {aliases.get(t.place.array, t.place.array) for t in found if t.writes}
        read = {aliases.get(t.place.array, t.place.array) for t in found if t.reads}
        for array in sorted(written & read):
            raise OutOfReach(f"'{array}' is read and written by a kernel with barriers")
        for node in walk.nodes_in(body):
            if (
                isinstance(node, c.Unary)
                and node.op in ("&", "++", "--")
                and isinstance(node.operand, c.Index)
            ):
                raise OutOfReach("memory is changed in a way that is not followed")
            if isinstance(node, c.Verbatim | c.Opaque):
                raise OutOfReach(f"'{node.text.strip()[:60]}' is not understood")

    def flat(self) -> tuple[Flat, tuple[Fact, ...]]:
        body = self._peeled(self._tiles.body)
        counted = frozenset({*THREAD, *(h.index for loop in self._loops if (h := head_of(loop)))})
        tests = [part for test in self._tests for part in b.operands(self.straight(test))]
        own = [test for test in tests if walk.names_in(test) <= counted]
        rest = [test for test in tests if test not in own]
        every = b.turns_of(self._loops, own, self._threads)
        self._axes = self._found_axes(body, rest, every)
        bounds, tests = self._bounds(rest)
        around = Surroundings()
        for test in rest:
            around = self.where(around, test)
        wide = "long" if self._language == "opencl" else "long long"
        sizes = frozenset(self._launch.parameters)
        self._refit = b.Refit(self._axes, self._types, sizes, wide, self._sums)
        done = self.block(body, around)
        if any("@" in name for name in walk.names_in(done)):
            raise OutOfReach("a tile is read in a way that is not followed")
        for test in reversed(tests):
            done = (c.If(self.rewritten(test, Surroundings()), done, line=getattr(body[0], "line", 0)),)
        return self._flat(done, bounds), self._facts()

    # -- the element: guards and turns taken off ------------------------------------------------------

    def _peeled(self, body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        """Guards of all that is stored, and loops over a thread's elements, taken off."""
        while body:
            *before, last = body
            if walk.stored_in(before) & set(self._normal.arrays):
                break
            changed = walk.assigned_in(before) | set(walk.declared_in(before))
            if isinstance(last, c.If) and not last.otherwise and not walk.names_in(last.condition) & changed:
                if b.loads(last.condition) or walk.assigned_in(last.condition):
                    break
                self._tests.append(last.condition)
                body = (*before, *last.then)
                continue
            head = head_of(last) if isinstance(last, c.For) else None
            if head is None or not isinstance(last, c.For):
                break
            stored = [t for t in touches(last.body, self._normal.arrays) if t.writes]
            if not any(head.index in walk.names_in(t.place.index) for t in stored):
                break
            if walk.names_in(last.init) & changed or walk.assigned_in(last.body) & set(
                walk.declared_in(before)
            ):
                raise OutOfReach.at(last.line, "a value is carried from one element to the next")
            if any(isinstance(stmt, c.For | c.While) for stmt in walk.statements_in(before)):
                break
            self._loops.append(last)
            body = (*before, *structured(last.body))
        if not body:
            raise OutOfReach("the kernel does nothing")
        return body

    # -- the box --------------------------------------------------------------------------------------

    def _found_axes(
        self, body: Sequence[c.Stmt], tests: Sequence[c.Expr], every: Sequence[b.Numbers]
    ) -> tuple[b.BoxAxis, ...]:
        stores = [t.place.index for t in touches(body, self._normal.arrays) if t.writes]
        if not stores or not every:
            raise OutOfReach("a block stores nothing")
        used = walk.names_in(body) | {name for test in tests for name in walk.names_in(test)}
        names = {*used, *self._normal.arrays, *self._launch.parameters, *walk.declared_in(body)}
        ways: list[list[tuple[b.BoxAxis, list[int]]]] = []
        for axis in _AXES:
            if axis in used:
                found = [(expr, self._axis(expr, axis, every)) for expr in self._candidates(stores, tests)]
                ways.append(
                    [(b.BoxAxis(self._name(expr, axis), axis, one[0]), one[1]) for expr, one in found if one]
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
        self._turns = [b.Turn(numbers, place) for numbers, place in zip(every, at, strict=True)]
        self._natural |= {box.name for box in axes}
        self._types = {**self._types, **{box.name: c.Type("int") for box in axes}}
        return tuple(axes)

    def _candidates(self, stores: Sequence[c.Expr], tests: Sequence[c.Expr]) -> Iterator[c.Expr]:
        for test in tests:
            if isinstance(test, c.Binary) and test.op in OPPOSITE:
                yield from (test.left, test.right)
        for index in stores:
            by_symbols: dict[b.Key, dict[b.Key, int]] = {}
            for key, count in terms(index).items():
                inside = tuple(f for f in key if walk.names_in(f) & set(BUILTINS) or f in self._indices())
                rest = tuple(f for f in key if f not in inside)
                by_symbols.setdefault(rest, {})[inside] = count
            yield from (from_terms(part) for part in by_symbols.values())
        yield from self._normal.definitions.values()

    def _indices(self) -> list[c.Name]:
        return [c.Name(head.index) for loop in self._loops if (head := head_of(loop)) is not None]

    def _axis(self, expr: c.Expr, axis: str, every: Sequence[b.Numbers]) -> tuple[int, list[int]] | None:
        """How many elements a block has there, and which one each turn has."""
        try:
            sums = [self._sums.at(expr, numbers) for numbers in every]
        except OutOfReach:
            return None
        block = b.Symbols.of((c.Name(axis),))
        width = sums[0].get(block, 0)
        if width < 1 or any(one.keys() - {b.ONE, block} or one.get(block, 0) != width for one in sums):
            return None
        places = [one.get(b.ONE, 0) for one in sums]
        return (width, places) if set(places) == set(range(width)) else None

    def _name(self, expr: c.Expr, axis: str) -> str:
        """What the source calls it, or most of it."""
        wanted = terms(expr)

        def alike(name: str) -> int:
            own = terms(self._normal.ids[name].expr)
            return len(own.items() & wanted.items()) if own.get((c.Name(axis),)) else 0

        best = max(self._normal.ids, key=alike, default="")
        if not best or not alike(best):
            return f"at_{axis[-1]}"
        plain = re.sub(r"_\d+$", "", best)
        return plain if plain in self._normal.ids else best

    def _bounds(self, tests: Sequence[c.Expr]) -> tuple[dict[str, c.Expr], list[c.Expr]]:
        """Where the axes end, and the tests that say something else."""
        bounds: dict[str, c.Expr] = {}
        left: list[c.Expr] = []
        known = set(self._normal.types) - set(walk.declared_in(self._tiles.body)) - set(BUILTINS)
        for test in tests:
            found = b.inequalities(test, self._types)
            taken = False
            if found is not None and len(found) == 1:
                sums = [(turn, self._sums.at(found[0], turn.numbers)) for turn in self._turns]
                try:
                    fit = b.fitted(sums, self._axes, ())
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
        found = touches(body, self._normal.arrays)

        def neighbours(axis: b.BoxAxis) -> tuple[int, int]:
            near = [t for t in found if (s := stride(t.place.index, axis.name)) is not None and s.step == 1]
            return sum(t.writes for t in near), len(near)

        element = max(self._axes, key=neighbours)
        body = substitute(body, self._launch.values)
        each: Each | None = None
        line = next((stmt.line for stmt in walk.statements_in(body) if stmt.line), 0)
        for axis in self._axes:
            count = c.Binary("*", c.Name(axis.axis.replace("blockIdx", "gridDim")), number(axis.width))
            extent = bounds.get(axis.name, self._launch.replaced(count))
            if axis.name in bounds:
                reach.append(Reach(axis.name, extent, count))
            if axis is element:
                each = Each(axis.name, number(0), extent, body, (), "int", line=line)
            else:
                tasks.append((axis.axis, Task(axis.name, extent, "int", self._launch.size_text(extent))))
        assert each is not None
        tasks.sort(key=lambda pair: pair[0], reverse=True)
        return Flat(tuple(task for _, task in tasks), each, (), tuple(reach))

    def _facts(self) -> tuple[Fact, ...]:
        what = "every place of '{}' that is read was written by one thread, a barrier before"
        return tuple(
            Fact(what.format(name), "proved", f"line {declare.line}")
            for name, declare in self._normal.shared.items()
        )

    # -- statements over the box's axes ---------------------------------------------------------------

    def read(self, expr: c.Expr, around: Surroundings) -> c.Expr | None:
        place = self._tiles.read(expr) if isinstance(expr, c.Index) else None
        if place is not None:
            return self._held(place, around)
        moving = {*THREAD, *_AXES, *(name.name for name in self._indices())}
        if not any("@" in name or name in moving for name in walk.names_in(expr)):
            return expr
        if b.is_index(expr, self._types):
            return self._refit.one([expr], [(0, turn) for turn in self._turns], ())
        return None

    def _facts_at(self, around: Surroundings, turn: b.Turn) -> list[b.Sum]:
        found: list[b.Sum] = []
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
        turns: list[tuple[int, b.Turn]] = []
        others: set[c.Expr] = set()
        open_tests: list[_Missing] = []
        for base in self._turns:
            for numbers in b.turns_of(loops, (), [base.numbers]):
                held = self._tiles.at(read, numbers)
                turn = b.Turn(numbers, base.at, held.numbers)
                facts = self._facts_at(around, turn)
                for must in self._sums_of(held.must, held.numbers):
                    if not b.is_at_least_zero(must, facts, self._natural):
                        raise OutOfReach(
                            f"'{read[0]}' may be read where a test has kept it from being written"
                        )
                missing: _Missing = {}
                for one in self._sums_of(held.tests, held.numbers):
                    if not b.is_at_least_zero(one, facts, self._natural):
                        form = tuple(sorted((k, n) for k, n in one.items() if k))
                        constant = one.get(b.ONE, 0)
                        missing[form] = min(missing.get(form, constant), constant)
                if missing and held.other is not None:
                    others.add(held.other)
                if held.value not in trees:
                    trees.append(held.value)
                turns.append((trees.index(held.value), turn))
                open_tests.append(missing)
        value = self._refit.one(trees, turns, inner)
        return self._tested(value, others, turns, open_tests, inner, around)

    def _sums_of(self, tests: tuple[c.Expr, ...], numbers: b.Numbers) -> list[b.Sum]:
        if id(tests) not in self._said:
            said = [b.inequalities(test, self._types) for test in tests]
            if None in said:
                raise OutOfReach("a tile is written under a test that is not followed")
            self._said[id(tests)] = [one for found in said for one in found or ()]
        return [self._sums.at(one, numbers) for one in self._said[id(tests)]]

    def _tested(
        self,
        value: c.Expr,
        others: set[c.Expr],
        turns: Sequence[tuple[int, b.Turn]],
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
                (turn, {**dict(form), b.ONE: missing[form]})
                for (_, turn), missing in zip(turns, open_tests, strict=True)
                if form in missing
            ]
            fit = b.fitted(sums, self._axes, inner)
            for (_, turn), missing in zip(turns, open_tests, strict=True):
                sure = form not in missing
                facts = self._facts_at(around, turn) if sure else []
                if sure and not b.is_at_least_zero(fit.at(turn, self._axes), facts, self._natural):
                    raise OutOfReach("a tile's border is tested otherwise than its inside")
            tests.append(fit.test())
        joined = tests[0]
        for test in tests[1:]:
            joined = c.Binary("&&", joined, test)
        return c.Ternary(joined, value, other)
