"""What makes any configuration legal, the launch, and sizes as constants of a build."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tunesmith.expert.read.contract import is_of_entry
from tunesmith.expert.read.model import TemplateDraft
from tunesmith.expert.write.fast_math import division_rules
from tunesmith.expert.write.given import Unwritable, flatten_factors, has_nested_totals, parenthesize_term
from tunesmith.expert.write.plan import WritingPlan, make_plan
from tunesmith.expert.write.ring import bulk_rules, ring_bytes, ring_rules
from tunesmith.expert.write.sites import length_of_all
from tunesmith.expert.write.tile import tile_grid, tile_of, tile_rules
from tunesmith.problem.problem import Problem
from tunesmith.source.snippets import parse_snippet
from tunesmith.source.tree import Alternative, Expr, Name, Parameter, Stmt
from tunesmith.source.types import is_integer
from tunesmith.source.walk import names_in
from tunesmith.space.expr import Node, product_text, unparse

_MAX_Y = 65535  # blocks in the grid's second dimension


def structural_rules(draft: TemplateDraft, problem: Problem) -> list[tuple[str, str]]:
    """Name and expression of everything the written kernel itself relies on."""
    return rules_of(make_plan(draft, problem))


def rules_of(plan: WritingPlan) -> list[tuple[str, str]]:
    rules = [*_sharing_rules(plan), *_kept_row_rules(plan), *_uncounted_rules(plan), *_blocking_rules(plan)]
    rules += [(f"only_{name}", f"{name} == {value}") for name, value in plan.kernel.pinned]
    rules += [*division_rules(plan), *ring_rules(plan), *bulk_rules(plan), *tile_rules(plan)]
    if (shared := shared_bytes(plan)) is not None:
        rules.append(("memory_fits", f"{shared} + 4096 <= device.shared"))
    return rules


def _sharing_rules(plan: WritingPlan) -> Iterator[tuple[str, str]]:
    """How many threads share a task, and how many elements each takes at once."""
    knobs = plan.knobs
    lanes, tasks = knobs.lanes.size_text, knobs.tasks.size_text
    if knobs.lanes.is_parameter or knobs.tasks.is_parameter:
        threads = f"{lanes} * {tasks}" if knobs.tasks.is_parameter or knobs.tasks.default > 1 else lanes
        yield "block_fits", f"{threads} <= device.max_threads"
    if plan.has_totals and plan.language != "opencl":
        if any(value > 32 and value % 32 for value in knobs.lanes.values):
            yield "whole_warps", f"{lanes} <= 32 or {lanes} % 32 == 0"
        if any(value < 32 and value & (value - 1) for value in knobs.lanes.values):
            yield "even_teams", f"{lanes} >= 32 or is_pow2({lanes})"
    sign, few = ("==", 1) if plan.language == "opencl" else ("<=", 32)  # threads that need no barrier
    nested = has_nested_totals(plan.kernel.steps) and knobs.tasks.most > 1
    if nested and knobs.lanes.most > few:
        yield "barriers_are_reached", f"{tasks} == 1 or {lanes} {sign} {few}"
    if knobs.vector.most > 1 and (texts := _divisibility_terms(plan)):
        yield "whole_vectors", " and ".join(f"{text} == 0" for text in texts)


def _kept_row_rules(plan: WritingPlan) -> Iterator[tuple[str, str]]:
    knobs = plan.knobs
    keep, split = knobs.keep.size_text, knobs.split
    if knobs.keep.most > 0:
        for number, loop in enumerate(loop for loop in plan.all_loops if loop.opens):
            whole = f"{knobs.lanes.size_text} * {knobs.vector.size_text} * {keep}"
            name = f"row_fits_{number + 1}" if number else "row_fits"
            yield name, f"{keep} == 0 or {whole} >= {plan.sizes.text(loop.extent)}"
        if split.is_parameter:
            yield "kept_by_one_block", f"{keep} == 0 or {split.size_text} == 0"
    if split.is_parameter and knobs.persistent.is_parameter and not plan.is_flat:
        yield "split_or_go_on", f"{split.size_text} == 0 or {knobs.persistent.size_text} == 0"


def _uncounted_rules(plan: WritingPlan) -> Iterator[tuple[str, str]]:
    """Where the kernel is not told how many tasks there are."""
    if plan.counts_tasks or plan.is_flat:
        return
    knobs, tasks = plan.knobs, plan.knobs.tasks
    if tasks.most > 1:
        yield "whole_blocks", f"{parenthesize_term(tasks_text(plan))} % {tasks.size_text} == 0"
    if knobs.split.most > 0:
        count = tasks_text(plan)
        count = f"{parenthesize_term(count)} // {tasks.size_text}" if tasks.most > 1 else count
        yield "one_row_of_blocks", f"{knobs.split.size_text} == 0 or {count} <= {_MAX_Y}"
    if knobs.persistent.most > 0:
        raise Unwritable("the kernel is not told how many tasks there are, so no block can go on to others")


def _blocking_rules(plan: WritingPlan) -> Iterator[tuple[str, str]]:
    task, blocked, beside = plan.blocking.task, plan.knobs.blocking, plan.knobs.beside
    if not blocked.is_parameter or task is None:
        return
    if not plan.blocking.is_counted:
        count = parenthesize_term(task.size or plan.sizes.text(task.extent) or "0")
        yield "whole_teams", f"{count} % {blocked.name} == 0"
    if beside.is_parameter:
        yield "beside_or_blocked", f"{beside.name} == 0 or {blocked.name} == 1"


def _divisibility_terms(plan: WritingPlan) -> list[str]:
    """Terms `d % VEC` that must be 0, each once: none that follows from another, or from the contract."""
    vec, most = plan.knobs.vector, plan.knobs.vector.most
    found: dict[tuple[Node, int], None] = {}
    for loop in plan.all_loops:
        needs: list[tuple[Expr, int]] = [(need, pack.unit) for pack in loop.packs for need in pack.needs]
        if loop.is_packed and not loop.tail:
            needs.append((loop.extent, 1))
        for need, unit in needs:
            node = plan.sizes.node(need)
            if node is None:
                raise Unwritable(
                    "a length that must be a multiple of the vector's is not told by the contract"
                )
            if plan.sizes.divisor(need) % (unit * most):
                found[(node, unit)] = None
    texts = []
    for node, unit in sorted(found, key=lambda need: (need[1], unparse(need[0]))):
        if any(other != node and size >= unit and other in flatten_factors(node) for other, size in found):
            continue
        by = vec.size_text if unit == 1 else f"({unit} * {vec.size_text})"
        texts.append(f"{parenthesize_term(unparse(node))} % {by}")
    return texts


def grid_sizes(plan: WritingPlan) -> list[str]:
    tiled = tile_of(plan)
    if tiled is not None:
        return tile_grid(plan, tiled)
    found = _leading_grid_sizes(plan)
    axes: list[str] = []
    for task in plan.outer:
        size = task.size or plan.sizes.text(task.extent)
        if not size:
            raise Unwritable(f"how far {task.name} goes is not told by the contract, so no grid can cover it")
        axes.append(size)
    if not axes:
        return found
    return [*found, *(axes[1:] or (["1"] if len(found) == 1 else [])), axes[0]]


def _leading_grid_sizes(plan: WritingPlan) -> list[str]:
    knobs = plan.knobs
    lanes, vec, items = knobs.lanes.size_text, knobs.vector.size_text, knobs.items.size_text
    if not any(pack.width for loop in plan.all_loops for pack in loop.packs):
        vec = "1"  # nothing is taken several at once
    chunk = " * ".join(part for part in (lanes, vec, items) if part != "1") or "1"
    persistent = knobs.persistent
    if plan.is_flat:
        pieces = _piece_count(plan, chunk)
        if not persistent.is_parameter:
            return [pieces]
        return [f"min({pieces}, device.sms * {persistent.name}) if {persistent.name} else {pieces}"]
    blocks = plain = blocks_text(plan) or "1"
    if persistent.is_parameter:
        plain = f"(min({blocks}, device.sms * {persistent.name}) if {persistent.name} else {blocks})"
    if knobs.split.most == 0:
        return [plain.removeprefix("(").removesuffix(")") if persistent.is_parameter else plain]
    pieces = _piece_count(plan, chunk)
    split = knobs.split.size_text
    return [f"{pieces} if {split} else {plain}", f"min({blocks}, {_MAX_Y}) if {split} else 1"]


def blocks_text(plan: WritingPlan) -> str | None:
    """How many blocks all tasks take; None where the whole grid works on one."""
    if plan.is_flat:
        return None
    count, tasks = tasks_text(plan), plan.knobs.tasks.size_text
    return count if tasks == "1" else f"ceildiv({count}, {tasks})"


def _piece_count(plan: WritingPlan, chunk: str) -> str:
    length = _longest_loop(plan, [loop.extent for loop in plan.all_loops])
    if plan.beside:
        inside = {loop.each.number for run in plan.beside for loop in run}
        lengths = [length_of_all(loop.each for loop in run) for run in plan.beside]
        rest = [loop.extent for loop in plan.all_loops if loop.each.number not in inside]
        length = f"({_longest_loop(plan, [*lengths, *rest])} if {plan.knobs.beside.name} else {length})"
    return f"max(1, ceildiv({length}, {chunk}))"


def _longest_loop(plan: WritingPlan, lengths: Iterable[Expr]) -> str:
    texts: dict[str, None] = {}
    for length in lengths:
        text = plan.sizes.text(length)
        if text is None:
            raise Unwritable("the length of a loop is not told by the contract, so no grid can cover it")
        texts[text] = None
    return next(iter(texts)) if len(texts) == 1 else f"max({', '.join(texts)})"


def block_sizes(plan: WritingPlan) -> list[str]:
    tasks = plan.knobs.tasks.size_text
    return [plan.knobs.lanes.size_text] if tasks == "1" else [plan.knobs.lanes.size_text, tasks]


def tasks_text(plan: WritingPlan) -> str:
    found = [task.size or plan.sizes.text(task.extent) for task in plan.tasks]
    blocked = plan.knobs.blocking.size_text
    if plan.blocking.task is not None and blocked != "1":
        at = plan.tasks.index(plan.blocking.task)
        found[at] = f"ceildiv({found[at]}, {blocked})" if found[at] is not None else None
    texts = [text for text in found if text is not None]
    if len(texts) < len(found):
        raise Unwritable("how many tasks there are is not told by the contract, so no grid can cover them")
    return product_text(texts)


def shared_bytes(plan: WritingPlan) -> str | None:
    """Bytes of shared memory for what loops copy ahead, and keep for later ones; None where neither is."""
    rows, ring = _staged_bytes(plan), ring_bytes(plan)
    return f"{ring} + {rows}" if ring is not None and rows is not None else ring or rows


def _staged_bytes(plan: WritingPlan) -> str | None:
    if not plan.shared:
        return None
    total: list[str] = []
    for row in plan.shared:
        extent = plan.sizes.text(row.extent)
        if not row.size or extent is None:
            raise Unwritable(f"the size of what is staged in {row.name} is not known")
        total.append(f"round_up({parenthesize_term(extent)} * {row.size}, 16)")
    each = " + ".join(total)
    tasks = plan.knobs.tasks.size_text
    several = [text for text in (tasks, plan.knobs.blocking.size_text) if text != "1"]
    whole = " * ".join([*several, f"({each})"]) if several else each
    if plan.knobs.keep.is_parameter and plan.keeps_staged:
        return f"(0 if {plan.knobs.keep.name} else {whole})"
    return whole


@dataclass(frozen=True)
class Size:
    parameter: Parameter
    macro: str
    value: str  # over sizes
    given: str  # what the parameter is called now


@dataclass(frozen=True)
class Baked:
    """Integer parameters that say how long rows are and where they start; how many there are stays open."""

    switch: str = ""
    sizes: tuple[Size, ...] = ()
    always: tuple[Size, ...] = ()  # template arguments that follow a size

    @classmethod
    def of(cls, plan: WritingPlan) -> Baked:
        always = _of_entry(plan)
        if not plan.knobs.bake.is_parameter:
            return cls(always=always)
        counts = {name for task in plan.kernel.tasks for name in names_in(task.extent)}
        loops = [loop.each for loop in plan.all_loops]
        lengths = {n for each in loops for e in (each.stop, each.start, each.body) for n in names_in(e)}
        found: list[Size] = []
        for parameter in plan.kernel.function.parameters:
            node = plan.sizes.arguments.get(parameter.name)
            if node is None or not is_integer(parameter.type) or parameter.name not in lengths:
                continue
            if any(size.parameter == parameter for size in always):
                continue
            if plan.is_flat or (parameter.name in counts and len(plan.kernel.tasks) == 1):
                continue
            macro = plan.names.fresh(f"{parameter.name.upper()}_CONST")
            found.append(Size(parameter, macro, unparse(node), plan.names.fresh(f"{parameter.name}_given")))
        return cls(plan.knobs.bake.name, tuple(found), always)

    def without_baked(self, parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
        """Those that a call passes, by the names they have now."""
        baked = [size.parameter.name for size in self.always]
        return tuple(self.parameter(parameter) for parameter in parameters if parameter.name not in baked)

    def parameter(self, parameter: Parameter) -> Parameter:
        given = {size.parameter.name: size.given for size in self.sizes}
        return replace(parameter, name=given.get(parameter.name, parameter.name))

    def declare(self) -> tuple[Stmt, ...]:
        """The parameters by their own names: constants of the build, or what the call gives."""

        def named(size: Size, value: str) -> tuple[Stmt, ...]:
            parameter = size.parameter
            return parse_snippet(
                "const T own = value;", T=parameter.type.base, own=parameter.name, value=value
            )

        always = tuple(stmt for size in self.always for stmt in named(size, size.macro))
        constants = tuple(stmt for size in self.sizes for stmt in named(size, size.macro))
        given = tuple(stmt for size in self.sizes for stmt in named(size, size.given))
        return (*always, *((Alternative(Name(self.switch), constants, given),) if self.sizes else ()))

    def declared(self) -> list[tuple[str, str]]:
        """For the template's [defines], where the switch is on."""
        return [(s.macro, s.value) for s in self.sizes]


def _of_entry(plan: WritingPlan) -> tuple[Size, ...]:
    """The kernel's parameters that are template arguments of its entry."""
    found = []
    for parameter, argument in zip(
        plan.kernel.function.parameters, plan.problem.launches[0].args, strict=False
    ):
        node = plan.sizes.arguments.get(parameter.name)
        if is_of_entry(argument) and node is not None:
            macro = plan.names.fresh(f"{parameter.name.upper()}_CONST")
            found.append(Size(parameter, macro, unparse(node), parameter.name))
    return tuple(found)
