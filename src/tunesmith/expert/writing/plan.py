"""What is decided of a kernel before a line is printed: packs, tails, what stays in registers, names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tunesmith.csource.lex import directives
from tunesmith.csource.nodes import Binary, Declare, Expr, Index, Name, Number, Type
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
from tunesmith.expert.writing.naming import Knobs, Names, Unwritable, wide, words_of
from tunesmith.expert.writing.packs import Key, Pack, pack_accesses
from tunesmith.expert.writing.sites import Independence, Sites, extent_of, gathered, length_of_all, runs
from tunesmith.expert.writing.sizes import Sizes
from tunesmith.problem.problem import Problem


@dataclass
class Group:
    """Loops over the same range, one after the other, between which a thread's elements can stay."""

    loops: list[LoopPlan] = field(default_factory=list)
    shared: set[Key] = field(default_factory=set)  # packs that live as long as the group


@dataclass
class LoopPlan:
    each: Each
    packs: tuple[Pack, ...]
    names: dict[Key, str] = field(default_factory=dict)
    tail: bool = False  # the range may end within a pack
    group: Group | None = None
    reused: set[Key] = field(default_factory=set)  # loaded, or made, by an earlier loop of the group
    dead: set[Key] = field(default_factory=set)  # stored again by a later one, and not read in between

    @property
    def is_packed(self) -> bool:
        """Whether a thread takes VEC neighbours at once: where one access at least is wide, or must be."""
        return self.group is not None or any(pack.width for pack in self.packs)

    @property
    def extent(self) -> Expr:
        return extent_of(self.each)


@dataclass
class WritingPlan:
    draft: TemplateDraft
    problem: Problem
    kernel: KernelModel  # with every loop an object of its own
    sizes: Sizes
    knobs: Knobs
    names: Names
    loops: dict[int, LoopPlan]  # by id of the loop
    groups: list[Group]
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
    def all_loops(self) -> tuple[LoopPlan, ...]:
        return tuple(self.loops.values())

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
    def keeps(self) -> tuple[Group, ...]:
        """Groups with something to keep, where the schedule may keep it."""
        return tuple(self.groups) if self.knobs.keep.most > 0 else ()

    @property
    def keeps_staged(self) -> bool:
        """Whether nothing is left in shared memory once rows are kept."""
        kept = {key[0] for group in self.keeps for key in group.shared}
        return bool(self.keeps) and all(staged.name in kept for staged in self.kernel.staged)

    def loop(self, each: Each) -> LoopPlan:
        return self.loops[id(each)]


def loops_in(steps: Sequence[Step]) -> Iterator[Each]:
    return (step for step in all_steps(steps) if isinstance(step, Each))


def has_nested_totals(steps: Sequence[Step]) -> bool:
    """Totals that some tasks of a block may reach and others not."""
    nested = [step for step in steps if isinstance(step, When | Repeat)]
    return any(each.totals for each in loops_in(nested))


# -- loops over one range between which a thread's elements can stay, and those that may run side by side


def group_loops(steps: Sequence[Step], plan: WritingPlan) -> None:
    """Groups among the loops of one list of steps; branches and loops have lists of their own."""
    ranges: dict[tuple[object, object], Group] = {}
    for step in steps:
        match step:
            case Each():
                key = (frozenset(terms(step.start).items()), frozenset(terms(step.stop).items()))
                ranges.setdefault(key, Group()).loops.append(plan.loop(step))
            case When(then=then, otherwise=otherwise):
                group_loops(then, plan)
                group_loops(otherwise, plan)
            case Repeat(body=body):
                group_loops(body, plan)
    for group in ranges.values():
        if len(group.loops) > 1 and plan.sizes.node(group.loops[0].extent) is not None:
            _share(group, plan)


def side_by_side(plan: WritingPlan) -> list[tuple[LoopPlan, ...]]:
    """Those that take their elements in one way, none of which could keep them, with no pack over an end."""
    if plan.is_flat:
        return []
    found = []
    for run in runs(plan.kernel.steps, Independence.of(plan.kernel, plan.problem)):
        loops = tuple(plan.loop(each) for each in run)
        packed = {any(pack.width for pack in loop.packs) for loop in loops}
        whole = not any(loop.tail or loop.group is not None for loop in loops)
        if whole and len(packed) == 1 and plan.sizes.node(length_of_all(run)) is not None:
            found.append(loops)
    return found


def _share(group: Group, plan: WritingPlan) -> None:
    staged = {staged.name for staged in plan.kernel.staged}
    elsewhere = _outside(group, plan)
    if staged & elsewhere & {name for loop in group.loops for name in names_in(loop.each.body)}:
        return  # a loop in a branch reads what this group would have kept in registers alone
    touched = elsewhere & plan.written
    uses: dict[Key, list[tuple[LoopPlan, Pack]]] = {}
    for loop in group.loops:
        for pack in loop.packs:
            uses.setdefault(pack.key, []).append((loop, pack))
    names = {key: members[0][0].names[key] for key, members in uses.items()}
    for key, members in uses.items():
        array = key[0]
        if len(members) < 2 or (array not in staged and (array in touched or _other_keys(group, key, plan))):
            continue
        if array not in staged and len(_names_of(array, plan)) > 1:
            continue  # a store by another name would be missed
        if not any(p.loads for _, p in members[1:]) and sum(p.stores for _, p in members) < 2:
            continue  # nothing is read or stored again
        group.shared.add(key)
        for position, (loop, pack) in enumerate(members):
            loop.names[key] = names[key]
            if position and pack.loads:
                loop.reused.add(key)
            if pack.stores and any(p.stores for _, p in members[position + 1 :]):
                loop.dead.add(key)
    if group.shared:
        for loop in group.loops:
            loop.group = group
        plan.groups.append(group)


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


def _outside(group: Group, plan: WritingPlan) -> set[str]:
    """Names in steps other than the group's loops."""
    own = {id(loop.each) for loop in group.loops}
    others = [step for step in all_steps(plan.kernel.steps) if id(step) not in own]
    return {name for step in others for part in own_parts(step) for name in names_in(part)}


def _other_keys(group: Group, key: Key, plan: WritingPlan) -> bool:
    """Whether the group touches a written array also in another way than by this key."""
    array = key[0]
    if array not in plan.written:
        return False
    for loop in group.loops:
        packs = {node: pack.key for pack in loop.packs for node, _ in pack.sites}
        sites = Sites.of(loop.each.body, plan.arrays)
        others = (site for site in sites.found if site.array == array and packs.get(site.node) != key)
        if array in sites.escaped or any(others):
            return True
    return False


# -- everything that is decided before a line is printed, for one draft -----------------------------


def make_plan(draft: TemplateDraft, problem: Problem) -> WritingPlan:
    steps = map_steps(_flat_staged(draft.kernel), lambda step: replace(step))
    if "beside" in draft.schedule and len(problem.launches) == 1:
        steps = gathered(steps, Independence.of(draft.kernel, problem))
    kernel = replace(draft.kernel, steps=steps)
    if len(problem.launches) != 1:
        raise Unwritable("the problem launches several kernels; the writer writes one")
    texts = [problem.kernel.text, kernel.function.text, *(text for _, text in problem.kernel.headers)]
    taken = [choice.name for choice in draft.schedule.choices]
    names = Names(texts, [*taken, *problem.size_names, *_model_names(kernel)])
    knobs = Knobs.of(kernel, draft.schedule, names)
    sizes = Sizes.of(kernel, problem)
    arrays = {p.name: p.type for p in kernel.function.parameters if p.type.is_pointer}
    found = WritingPlan(
        draft, problem, kernel, sizes, knobs, names, {}, [], arrays, _written(kernel, arrays, problem),
        _alignments(kernel, problem),
    )  # fmt: skip
    _refuse_launch_words(kernel)
    if found.is_flat and (found.has_totals or kernel.staged):
        raise Unwritable("a kernel without tasks has a total; nothing says which threads share it")
    if "blocking" in draft.schedule:
        if found.is_flat or found.language == "opencl":
            raise Unwritable("there are no tasks, or no registers, to take several at once")
        found.blocking = Blocking.of(kernel, found.tasks, knobs.blocking, names, found.written)
    for each in loops_in(kernel.steps):
        found.loops[id(each)] = _plan_loop(each, found)
    if found.language != "opencl":  # a CPU's caches keep rows better than its few registers
        group_loops(kernel.steps, found)
        if "beside" in draft.schedule:
            found.beside = side_by_side(found)
    return found


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
        return LoopPlan(each, ())
    aligned = plan.language != "opencl"
    staged = [staged.name for staged in plan.kernel.staged]
    packs = pack_accesses(each, plan.arrays, staged, plan.sizes, vector.most, aligned)
    in_turn = _in_turn(each, plan)
    packs = tuple(pack for pack in packs if pack.array not in in_turn)
    loop = LoopPlan(each, packs)
    for pack in packs:
        loop.names[pack.key] = plan.names.fresh(f"{pack.array}_pack")
    loop.tail = plan.is_flat or not plan.sizes.is_plain(loop.extent) or plan.language == "opencl"
    if loop.tail and any(pack.array in staged for pack in packs):
        raise Unwritable("what a loop keeps for a later one has no length that the contract tells")
    return loop
