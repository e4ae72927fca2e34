"""What is decided of a kernel before a line is printed: packs, tails, what stays in registers, names."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from tunesmith.csource.lex import directives
from tunesmith.csource.nodes import Binary, Declare, Expr, Index, Name, Number, Type
from tunesmith.csource.snippets import Wording
from tunesmith.csource.types import byte_size
from tunesmith.csource.walk import declared_in, map_nodes, names_in, nodes_in, statements_in
from tunesmith.expert.model.affine import BUILTINS, terms
from tunesmith.expert.model.kernel import (
    Each,
    KernelModel,
    Once,
    Repeat,
    Step,
    Task,
    TemplateDraft,
    When,
    all_steps,
    map_steps,
    names_in_steps,
    own_parts,
)
from tunesmith.expert.writing.blocking import Blocking
from tunesmith.expert.writing.naming import Knobs, Names, Unwritable, wide, wording, words_of
from tunesmith.expert.writing.packs import Key, Pack, pack_accesses
from tunesmith.expert.writing.sites import Independence, Sites, extent_of, gathered, length_of_all, runs
from tunesmith.expert.writing.sizes import Sizes
from tunesmith.problem.problem import Problem

Level = Literal["registers", "shared", "global"]


@dataclass(frozen=True)
class Buffer:
    """Where a loop's elements of one pack lie while threads work on them, and for how long.

    A buffer lives for a turn. One that is `kept` lives as long as the loops over one range, where the
    schedule keeps rows in registers: then what is `filled` is not loaded, what is `replaced` or lies in
    shared memory otherwise is not stored, and what is `wanted` a later loop reads again.
    """

    name: str
    home: Level  # where its elements come from and go to; the buffer itself is in registers
    kept: bool = False
    filled: bool = False  # by an earlier loop
    replaced: bool = False  # by a later one that stores all of it, and not read in between
    wanted: bool = False


@dataclass(frozen=True)
class LoopPlan:
    each: Each
    packs: tuple[Pack, ...] = ()
    buffers: Mapping[Key, Buffer] = field(default_factory=dict)
    tail: bool = False  # the range may end within a pack
    in_row: bool = False  # one of several loops over a range, between which a thread's elements can stay
    opens: tuple[Pack, ...] = ()  # where it is the first of these: all packs that stay in one of them

    @property
    def is_packed(self) -> bool:
        """Whether a thread takes VEC neighbours at once: where one access at least is wide, or must be."""
        return self.in_row or any(pack.width for pack in self.packs)

    @property
    def extent(self) -> Expr:
        return extent_of(self.each)

    @property
    def kept(self) -> frozenset[Key]:
        return frozenset(key for key, buffer in self.buffers.items() if buffer.kept)

    def name(self, pack: Pack) -> str:
        return self.buffers[pack.key].name


@dataclass
class WritingPlan:
    draft: TemplateDraft
    problem: Problem
    kernel: KernelModel  # with every loop an object of its own
    sizes: Sizes
    knobs: Knobs
    names: Names
    words: Wording
    all_loops: tuple[LoopPlan, ...]  # by their numbers
    arrays: dict[str, Type]  # pointer parameters
    written: frozenset[str]  # arrays the kernel writes, and their aliases
    element_align: dict[str, int]
    beside: list[tuple[LoopPlan, ...]] = field(default_factory=list)  # loops that may run side by side
    blocking: Blocking = field(default_factory=Blocking)

    @property
    def language(self) -> str:
        return self.kernel.source.language

    @cached_property
    def lines(self) -> Mapping[str, int]:
        """Where the kernel's variables are declared."""
        declares = [s for s in statements_in(self.kernel.function.body) if isinstance(s, Declare)]
        return {declare.name: declare.line for declare in reversed(declares)}

    @cached_property
    def file_words(self) -> frozenset[str]:
        """Words that mean something in the whole file: of macros, types, constants, functions, headers."""
        source, kernel = self.kernel.source, self.problem.kernel
        texts = [*source.preamble, *(text for _, text in kernel.headers)]
        texts += [one.rest for one in directives(kernel.text) if one.word == "define"]
        own = [f.name for f in source.functions] + [declare.name for declare in source.shared]
        own += [name for name, _ in (*source.constants, *source.aliases)]
        given = [choice.name for choice in self.draft.schedule.choices]
        return words_of(texts) | {*own, *given, *self.problem.size_names}

    def word(self, word: str) -> str:
        """What a word of the snippets is called in this kernel."""
        return str(self.words.words[word])

    @property
    def is_flat(self) -> bool:
        return not self.kernel.tasks

    @property
    def outer(self) -> tuple[Task, ...]:
        """Further indices of the tasks that only today's grid tells the end of: axes z and y of the grid.

        Axis y is free where no task is split over several blocks. What lies along x today stays
        there: only that axis may be long.
        """
        unbounded = [task for task in self.kernel.tasks if names_in(task.extent) & set(BUILTINS)]
        if len(unbounded) > (2 if self.knobs.split.most > 0 else 3):
            raise Unwritable(
                "several indices of the tasks end where today's grid does, and nobody tells where"
            )
        along_x = next((task for task in unbounded if "gridDim.x" in names_in(task.extent)), None)
        return tuple(task for task in unbounded if task != (along_x or unbounded[0]))

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The others, which become one index; one whose end nobody tells is the slowest."""
        found = [task for task in self.kernel.tasks if task not in self.outer]
        return tuple(sorted(found, key=lambda task: not names_in(task.extent) & set(BUILTINS)))

    @property
    def counts_tasks(self) -> bool:
        """Whether the kernel is told how many tasks there are; else the grid must be exactly as large."""
        return not any(names_in(task.extent) & set(BUILTINS) for task in self.tasks)

    @property
    def is_spread(self) -> bool:
        """Whether several blocks share a task's elements."""
        return self.is_flat or self.knobs.split.most > 0

    def index_type(self, loop: LoopPlan) -> str:
        """An int, unless a step beyond the end could overflow it."""
        reach = [loop.each.stop, Number("2", 2)] if self.is_spread else [loop.each.stop]
        return "int" if self.sizes.fits_int(*reach) else wide(self.language)

    @property
    def has_totals(self) -> bool:
        return any(loop.each.totals for loop in self.all_loops)

    @property
    def keeps(self) -> bool:
        """Whether rows may stay in registers: the schedule says so, and loops read elements again."""
        return self.knobs.keep.most > 0 and any(loop.in_row for loop in self.all_loops)

    @property
    def keeps_staged(self) -> bool:
        """Whether nothing is left in shared memory once rows are kept."""
        kept = {key[0] for loop in self.all_loops for key in loop.kept}
        return self.keeps and all(staged.name in kept for staged in self.kernel.staged)

    def loop(self, each: Each) -> LoopPlan:
        return self.all_loops[each.number]


def loops_in(steps: Sequence[Step]) -> Iterator[Each]:
    return (step for step in all_steps(steps) if isinstance(step, Each))


def has_nested_totals(steps: Sequence[Step]) -> bool:
    """Totals that some tasks of a block may reach and others not."""
    nested = [step for step in steps if isinstance(step, When | Repeat)]
    return any(each.totals for each in loops_in(nested))


# -- loops over one range between which a thread's elements can stay, and those that may run side by side


def rows(steps: Sequence[Step]) -> Iterator[list[Each]]:
    """Several loops over one range in one list of steps; branches and loops have lists of their own."""
    ranges: dict[tuple[object, object], list[Each]] = {}
    for step in steps:
        match step:
            case Each():
                key = (frozenset(terms(step.start).items()), frozenset(terms(step.stop).items()))
                ranges.setdefault(key, []).append(step)
            case When(then=then, otherwise=otherwise):
                yield from rows(then)
                yield from rows(otherwise)
            case Repeat(body=body):
                yield from rows(body)
    yield from (loops for loops in ranges.values() if len(loops) > 1)


def side_by_side(plan: WritingPlan) -> list[tuple[LoopPlan, ...]]:
    """Those that take their elements in one way, none of which could keep them, with no pack over an end."""
    if plan.is_flat:
        return []
    found = []
    for run in runs(plan.kernel.steps, Independence.of(plan.kernel, plan.problem)):
        loops = tuple(plan.loop(each) for each in run)
        packed = {any(pack.width for pack in loop.packs) for loop in loops}
        whole = not any(loop.tail or loop.in_row for loop in loops)
        if whole and len(packed) == 1 and plan.sizes.node(length_of_all(run)) is not None:
            found.append(loops)
    return found


def _kept(loops: Sequence[Each], plan: WritingPlan) -> list[LoopPlan]:
    """Loops over one range, with the buffers that stay from one to a later one."""
    row = [plan.loop(each) for each in loops]
    if plan.sizes.node(row[0].extent) is None:
        return row
    staged = {staged.name for staged in plan.kernel.staged}
    elsewhere = _outside(row, plan)
    if staged & elsewhere & {name for loop in row for name in names_in(loop.each.body)}:
        return row  # a loop in a branch reads what these would have kept in registers alone
    uses: dict[Key, list[tuple[LoopPlan, Pack]]] = {}
    for loop in row:
        for pack in loop.packs:
            uses.setdefault(pack.key, []).append((loop, pack))
    shared = {
        key: members
        for key, members in uses.items()
        if _is_used_again([pack for _, pack in members])
        and (key[0] in staged or not (key[0] in elsewhere & plan.written or _is_mixed(row, key, plan)))
    }
    if not shared:
        return row
    done = []
    for number, loop in enumerate(row):
        buffers = dict(loop.buffers)
        for key, members in shared.items():
            first = members[0][0]
            own = next((pack for pack in loop.packs if pack.key == key), None)
            later = [pack for other in row[number + 1 :] for pack in other.packs if pack.key == key]
            if own is not None or number == 0:
                buffers[key] = replace(
                    first.buffers[key],
                    kept=True,
                    filled=own is not None and own.loads and loop is not first,
                    replaced=own is not None and own.stores and any(pack.stores for pack in later),
                    wanted=any(pack.loads for pack in later),
                )
        opens = () if number else tuple(members[0][1] for members in shared.values())
        done.append(replace(loop, buffers=buffers, in_row=True, opens=opens))
    return done


def _is_used_again(packs: Sequence[Pack]) -> bool:
    return any(pack.loads for pack in packs[1:]) or sum(pack.stores for pack in packs) > 1


def _names_of(array: str, plan: WritingPlan) -> frozenset[str]:
    """The names by which the steps touch the array's memory: those that the contract says are the same."""
    storage = Independence.of(plan.kernel, plan.problem).storage
    same = {name for name in plan.arrays if storage.get(name, name) == storage.get(array, array)}
    return names_in_steps(plan.kernel.steps) & same


def _in_turn(each: Each, plan: WritingPlan) -> set[str]:
    """Arrays of one memory by several names, which the body touches by one after a store by another."""
    storage = Independence.of(plan.kernel, plan.problem).storage
    sites = Sites.of(each.body, plan.arrays)
    used = names_in(each.body)
    stored: dict[str, set[str]] = {}
    mixed: set[str] = set()
    for site in sites.found:
        memory = storage[site.array]
        names = {name for name in used & storage.keys() if storage[name] == memory}
        repeats = bool(site.loops) and memory in {storage[array] for array in sites.stored}
        if len(names) > 1 and (repeats or names & sites.escaped or stored.get(memory, set()) - {site.array}):
            mixed.add(memory)
        if site.kind == "store":
            stored.setdefault(memory, set()).add(site.array)
    return {name for name in storage if storage[name] in mixed}


def _outside(row: Sequence[LoopPlan], plan: WritingPlan) -> set[str]:
    """Names in steps other than these loops."""
    own = {loop.each.number for loop in row}
    others = [s for s in all_steps(plan.kernel.steps) if not isinstance(s, Each) or s.number not in own]
    return {name for step in others for part in own_parts(step) for name in names_in(part)}


def _is_mixed(row: Sequence[LoopPlan], key: Key, plan: WritingPlan) -> bool:
    """Whether the loops touch the array by another name as well or, if it is written, in another way."""
    array = key[0]
    if len(_names_of(array, plan)) > 1:
        return True  # a store by another name would be missed
    if array not in plan.written:
        return False
    for loop in row:
        packs = {node: pack.key for pack in loop.packs for node, _ in pack.sites}
        sites = Sites.of(loop.each.body, plan.arrays)
        others = (site for site in sites.found if site.array == array and packs.get(site.node) != key)
        if array in sites.escaped or any(others):
            return True
    return False


# -- everything that is decided before a line is printed, for one draft -----------------------------


def make_plan(draft: TemplateDraft, problem: Problem) -> WritingPlan:
    if len(problem.launches) != 1:
        raise Unwritable("the problem launches several kernels; the writer writes one")
    steps = _flat_staged(draft.kernel)
    if "beside" in draft.schedule:
        steps = gathered(steps, Independence.of(draft.kernel, problem))
    kernel = replace(draft.kernel, steps=_numbered(steps))
    texts = [problem.kernel.text, kernel.function.text, *(text for _, text in problem.kernel.headers)]
    taken = [choice.name for choice in draft.schedule.choices]
    names = Names(texts, [*taken, *problem.size_names, *_model_names(kernel)])
    knobs = Knobs.of(kernel, draft.schedule, names)
    sizes = Sizes.of(kernel, problem)
    arrays = {p.name: p.type for p in kernel.function.parameters if p.type.is_pointer}
    found = WritingPlan(
        draft, problem, kernel, sizes, knobs, names, wording(knobs, names), (), arrays,
        _written(kernel, arrays, problem), _alignments(kernel, problem),
    )  # fmt: skip
    _refuse_launch_words(kernel)
    if found.is_flat and (found.has_totals or kernel.staged):
        raise Unwritable("a kernel without tasks has a total; nothing says which threads share it")
    if "blocking" in draft.schedule:
        if found.is_flat or found.language == "opencl":
            raise Unwritable("there are no tasks, or no registers, to take several at once")
        found.blocking = Blocking.of(kernel, found.tasks, knobs.blocking, names, found.written)
    found.all_loops = tuple(_plan_loop(each, found) for each in loops_in(kernel.steps))
    if found.language != "opencl":  # a CPU's caches keep rows better than its few registers
        kept = {loop.each.number: loop for row in rows(kernel.steps) for loop in _kept(row, found)}
        found.all_loops = tuple(kept.get(loop.each.number, loop) for loop in found.all_loops)
        if "beside" in draft.schedule:
            found.beside = side_by_side(found)
    return found


def _numbered(steps: Sequence[Step]) -> tuple[Step, ...]:
    """With every loop's number among all of them."""
    count = itertools.count()
    return map_steps(steps, lambda s: replace(s, number=next(count)) if isinstance(s, Each) else s)


def _refuse_launch_words(kernel: KernelModel) -> None:
    """The launch is ours to choose: what a step says of today's would be wrong."""
    parts = [part for step in all_steps(kernel.steps) for part in own_parts(step)]
    for node in (node for part in parts for node in nodes_in(part)):
        if isinstance(node, Name) and node.name in BUILTINS:
            raise Unwritable(f"a step asks for {node.name}, which another launch changes")


def _model_names(kernel: KernelModel) -> Iterator[str]:
    """Every name in the steps: the reader may have made some that the source does not have."""
    yield from (name for task in kernel.tasks for name in (task.name, task.count) if name)
    yield from (staged.name for staged in kernel.staged)
    for step in all_steps(kernel.steps):
        if isinstance(step, Each | Repeat):
            yield step.index
        if isinstance(step, Each):
            yield from (total.name for total in step.totals)
        for part in own_parts(step):
            yield from names_in(part)
            yield from declared_in(part)


def _flat_staged(kernel: KernelModel) -> tuple[Step, ...]:
    """`row[i][c]` as `row[i * width + c]`, like any other array."""
    widths = {staged.name: staged.width for staged in kernel.staged if staged.width > 1}
    if not widths:
        return kernel.steps

    def visit(node: Expr) -> Expr:
        match node:
            case Index(base=Index(base=Name(name=name), index=index), index=place) if name in widths:
                width = widths[name]
                product = Binary("*", index, Number(str(width), width))
                return Index(Name(name), Binary("+", product, place))
        return node

    return map_steps(
        kernel.steps,
        lambda step: replace(step, body=map_nodes(step.body, visit)) if isinstance(step, Each) else step,
    )


def _written(kernel: KernelModel, arrays: dict[str, Type], problem: Problem) -> frozenset[str]:
    by_name = dict(zip(problem.launches[0].args, (p.name for p in kernel.function.parameters), strict=False))
    found: set[str] = set()
    for argument in problem.arguments:
        name = by_name.get(argument.name, argument.name)
        if argument.is_written or argument.role == "workspace" or argument.alias is not None:
            found.add(name)
            if argument.alias is not None:
                found.add(by_name.get(argument.alias, argument.alias))
    # What the model stores to, whatever the problem says of it.
    for step in all_steps(kernel.steps):
        if isinstance(step, Each | Once):
            sites = Sites.of(step.body, arrays)
            found |= sites.escaped | sites.stored
    return frozenset(found & arrays.keys())


def _alignments(kernel: KernelModel, problem: Problem) -> dict[str, int]:
    """Bytes at whose multiples callers promise each array to start."""
    found: dict[str, int] = {}
    for parameter, name in zip(kernel.function.parameters, problem.launches[0].args, strict=False):
        argument = problem.argument(name)
        if parameter.type.is_pointer:
            own = byte_size(parameter.type.base) or 1  # what the source itself relies on
            found[parameter.name] = max(argument.align or argument.element.bytes, own)
    return found


def _plan_loop(each: Each, plan: WritingPlan) -> LoopPlan:
    knobs, vector = plan.knobs, plan.knobs.vector
    narrow = vector.most == knobs.items.most == knobs.blocking.most == 1
    if narrow and knobs.keep.most == 0 and "ring" not in plan.draft.schedule:
        return LoopPlan(each)
    aligned = plan.language != "opencl"
    staged = [staged.name for staged in plan.kernel.staged]
    packs = pack_accesses(each, plan.arrays, staged, plan.sizes, vector.most, aligned)
    in_turn = _in_turn(each, plan)
    packs = tuple(pack for pack in packs if pack.array not in in_turn)
    tail = plan.is_flat or not plan.sizes.is_plain(extent_of(each)) or not aligned
    if tail and any(pack.array in staged for pack in packs):
        raise Unwritable("what a loop keeps for a later one has no length that the contract tells")
    buffers = {
        pack.key: Buffer(
            plan.names.fresh(f"{pack.array}_pack"), "shared" if pack.array in staged else "global"
        )
        for pack in packs
    }
    return LoopPlan(each, packs, buffers, tail)
