"""A kernel without a problem: read with sizes and a launch that are made up, to say what follows from it.

Every integer parameter is a size of its own, arrays are apart, and the grid has as many blocks as anything
could need. The block is that of a launch in the file, of the text's own numbers, or a usual one: the first
with which the kernel can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tunesmith.csource.fold import int_value
from tunesmith.csource.nodes import Binary, Expr, Name, Parameter, Unreadable
from tunesmith.csource.parse import read_source_tree
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import names_in
from tunesmith.expert.model.affine import number
from tunesmith.expert.model.entry_sizes import with_entry_sizes
from tunesmith.expert.model.kernel import KernelModel, NotReadable
from tunesmith.expert.model.lift import lift
from tunesmith.expert.model.translate import launch_terms, to_sizes
from tunesmith.expert.reading.arguments import DraftArgument, looks_like_a_size
from tunesmith.expert.reading.bare_text import BareKernel, not_said
from tunesmith.expert.reading.launches import FILL
from tunesmith.expert.reading.likely_blocks import AXES, likely_blocks, used_axes
from tunesmith.expert.reading.local_arrays import local_extent
from tunesmith.expert.reading.shapes import ArrayShape, ShapeReader
from tunesmith.problem.problem import (
    Accuracy,
    Argument,
    Contract,
    Kernel,
    Launch,
    Problem,
    SizeRule,
    Workload,
)
from tunesmith.space.expr import is_name, parse
from tunesmith.space.grammar import Variable

LARGEST = 512  # of a size that is made up: products of three are below the number of threads
_BLOCKS = 1 << 30
_MOST_TRIED = 10
_ADDED = "size "
# What a single letter counts, where it is the only name.
_LETTERS = {"b": "batch", "r": "rows", "t": "tokens", "h": "heads", "c": "channels", "n": "batch"}


@dataclass(frozen=True)
class BareReading:
    """What follows for a problem. Names in `added` are sizes that no parameter has."""

    problem: Problem  # with made-up numbers for what only the user knows
    kernel: KernelModel
    shapes: Mapping[str, ArrayShape]  # by the problem's names
    grid: tuple[str, ...]  # empty, as the block is: no launch follows
    block: tuple[str, ...]
    own_block: bool  # the block is the file's or the text's own, not just one that would do
    added: tuple[str, ...]
    multiples: Mapping[str, int]
    independent: str | None

    @property
    def used(self) -> frozenset[str]:
        """Sizes that shapes and the launch are made of."""
        texts = [*self.grid, *(extent for shape in self.shapes.values() for extent in shape.extents)]
        return frozenset(name for text in texts if text != FILL for name in parse(text).names)


@dataclass(frozen=True)
class BareFailure:
    """`problem` is the one with which the reading came furthest."""

    problem: Problem
    reason: NotReadable


def read_bare(bare: BareKernel) -> BareReading | BareFailure | str:
    """A text says why no problem could even be made up."""
    if missing := not_said(bare):
        return missing[0]
    integers = bare.sizes
    failure: BareFailure | None = None
    for block, own in islice(likely_blocks(bare), _MOST_TRIED):
        problem = _made_up(bare, block, integers)
        kernel = _lifted(problem)
        if bare.entry_sizes and _by_a_number(kernel):
            sizes = " and ".join(f"{{{name}}}" for name in bare.entry_sizes)
            said = re.sub(r"\{\w+\}", "128", bare.entry)
            why = (
                f"types depend on {sizes}: say a number in its place to have it read, as in --entry '{said}'"
            )
            return BareFailure(problem, NotReadable(kernel.source, kernel.function, why))
        if isinstance(kernel, KernelModel):
            found = _reading(bare, problem, kernel, own_block=own)
            if found is not None:
                return found
            why = "blocks would do the same work as others"
            kernel = NotReadable(kernel.source, kernel.function, why)
        # The first is the likeliest block; an obstacle of the text itself stays whatever the block is.
        failure = failure or BareFailure(problem, kernel)
    assert failure is not None
    return failure


def _by_a_number(kernel: KernelModel | NotReadable) -> bool:
    """Whether a size in the entry is one that types depend on: what follows from a made-up number is none."""
    if isinstance(kernel, KernelModel):
        return bool(kernel.pinned)
    return "is no integer that is known here" in kernel.reason


def _lifted(problem: Problem) -> KernelModel | NotReadable:
    try:
        return lift(problem)
    except Unreadable as error:
        source = read_source_tree("", "cuda", ())
        return NotReadable(source, None, error.reason, error.line)


def _made_up(bare: BareKernel, block: tuple[str, ...], integers: Sequence[str]) -> Problem:
    axes = used_axes(bare, "block")
    taken = set(integers)
    blocks = [
        _fresh(f"blocks_{axis}", taken) if axis in axes else "1"
        for axis in AXES[: AXES.index(axes[-1]) + 1 if axes else 1]
    ]
    rules = [SizeRule(name, 1, LARGEST) for name in integers]
    rules += [SizeRule(name, _BLOCKS, _BLOCKS) for name in blocks if name != "1"]
    launch = Launch(
        bare.entry,
        tuple(map(parse, blocks)),
        tuple(map(parse, block)),
        tuple(a.name for a in bare.arguments),
        parse("16384") if bare.launch.shared is not None else None,
    )
    return _problem(bare, launch, rules, {}, None)


def _problem(
    bare: BareKernel,
    launch: Launch,
    rules: Sequence[SizeRule],
    shapes: Mapping[str, ArrayShape],
    independent: str | None,
) -> Problem:
    sizes = tuple((rule.name, min(rule.max, LARGEST if rule.min < LARGEST else rule.max)) for rule in rules)
    return Problem(
        bare.entry.split("<")[0].split("::")[-1],
        Kernel(bare.file, bare.text, bare.entry, bare.language, defines=bare.defines, headers=bare.headers),
        tuple(_argument(argument, shapes.get(argument.name)) for argument in bare.arguments),
        (launch,),
        Contract(tuple(rules)),
        (Workload("made_up", sizes),),
        Accuracy(1e-3, 1e-3, independent=independent),
    )


def _argument(argument: DraftArgument, shape: ArrayShape | None) -> Argument:
    assert argument.element is not None
    if not argument.parameter.pointer:
        value = parse(argument.name) if argument.is_integer else 1.0
        return Argument(argument.name, argument.element, "scalar", value=value)
    extents = ("1",) if shape is None else tuple(str(LARGEST) if e == FILL else e for e in shape.extents)
    role = "inout" if argument.role in (FILL, "inout") else argument.role
    assert role in ("input", "output", "inout", "local")
    align = shape.align if shape is not None and role != "local" else None
    return Argument(argument.name, argument.element, role, tuple(map(parse, extents)), align=align)


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


# -- what the reading says ------------------------------------------------------------------------------


def _reading(
    bare: BareKernel, problem: Problem, kernel: KernelModel, *, own_block: bool
) -> BareReading | None:
    terms = launch_terms(with_entry_sizes(problem), tuple(p.name for p in kernel.function.parameters))
    taken = {rule.name for rule in problem.contract.sizes}
    integers = bare.sizes
    grid: list[str] = []
    multiples: dict[str, int] = {}
    launched: dict[str, Expr] = {name: value for name, value in terms.values.items() if "blockDim" in name}
    added: list[str] = []
    for at, expr in enumerate(problem.launches[0].grid):
        word = f"gridDim.{AXES[at]}"
        if not isinstance(expr.tree, Variable):
            grid.append("1")
            continue
        count, bound = _counted(kernel, word, terms.values)
        if bound is not None and (said := to_sizes(bound, terms.parameters)) is not None:
            grid.append(f"ceildiv({said}, {count})" if count > 1 else said)
            continue
        name = _size_name(kernel, word, bare.host_grid[at : at + 1])
        if name not in integers:  # else as many as that parameter says: what is called row is below rows
            name = _fresh(name, taken)
            added.append(name)
        grid.append(name if count == 1 else f"{name} // {count}")
        counted = Name(_ADDED + name)  # no index of the kernel is called so
        launched[word] = counted if count == 1 else Binary("/", counted, number(count))
        if count > 1:
            multiples[counted.name] = count
    values = {**terms.parameters, **{_ADDED + name: Variable(name) for name in (*added, *integers)}}
    reader = ShapeReader(kernel, launched, values, multiples)
    if reader.overlaps:
        return None
    names = {p.name: a.name for p, a in _pairs(bare, kernel)}
    names |= zip((p.name for p in kernel.function.parameters[len(names) :]), bare.entry_sizes, strict=False)
    whole = {names.get(name, name.removeprefix(_ADDED)): n for name, n in reader.multiples.items()}
    shapes = _by_argument(bare, kernel, reader.shapes())
    return _checked(bare, problem, kernel, shapes, tuple(grid), tuple(added), whole, own_block)


def _by_argument(
    bare: BareKernel, kernel: KernelModel, shapes: Mapping[str, ArrayShape]
) -> dict[str, ArrayShape]:
    return {argument.name: shapes[p.name] for p, argument in _pairs(bare, kernel) if p.name in shapes}


def _local_shapes(
    bare: BareKernel, kernel: KernelModel, block: tuple[str, ...]
) -> Iterator[tuple[str, ArrayShape]]:
    for parameter, argument in _pairs(bare, kernel):
        extent = local_extent(kernel, parameter.name, block) if argument.role == "local" else None
        if extent is not None:
            yield argument.name, ArrayShape((extent,))


def _pairs(bare: BareKernel, kernel: KernelModel) -> Iterator[tuple[Parameter, DraftArgument]]:
    """Parameters with their arguments; behind them are those that follow a size of the entry."""
    return zip(kernel.function.parameters, bare.arguments, strict=False)


def _checked(
    bare: BareKernel,
    problem: Problem,
    kernel: KernelModel,
    shapes: Mapping[str, ArrayShape],
    grid: tuple[str, ...],
    added: tuple[str, ...],
    multiples: Mapping[str, int],
    own_block: bool,
) -> BareReading:
    """With the launch that is drafted, which must do for the kernel at all sizes; else it is not drafted."""
    integers = bare.sizes
    rules = [
        SizeRule(name, multiples.get(name, 1), LARGEST * multiples.get(name, 1), multiples.get(name, 1))
        for name in (*added, *integers)
    ]
    if FILL not in (*bare.launch.grid, *bare.launch.block):
        grid = bare.launch.grid
    block = tuple(str(expr) for expr in problem.launches[0].block)
    launch = replace(problem.launches[0], grid=tuple(map(parse, grid)))
    shapes = {**shapes, **dict(_local_shapes(bare, kernel, block))}
    independent = _independent(kernel, shapes)
    drafted = _problem(bare, launch, rules, shapes, independent)
    again = _lifted(drafted)
    if isinstance(again, NotReadable):
        return BareReading(problem, kernel, shapes, (), (), own_block, added, multiples, independent)
    return BareReading(drafted, again, shapes, grid, block, own_block, added, multiples, independent)


def _independent(kernel: KernelModel, shapes: Mapping[str, ArrayShape]) -> str | None:
    """A size that is the first axis of every output, of which no item needs another's inputs."""
    name = next((shape.extents[0] for shape in shapes.values() if shape.written), FILL)
    if (
        not is_name(name)
        or name == FILL
        or not (kernel.tasks or any(len(s.extents) > 1 for s in shapes.values()))
    ):
        return None
    items = {shape.item for shape in shapes.values() if shape.extents[0] == name}
    for shape in shapes.values():
        mine = shape.extents[0] == name
        other_axes = shape.extents[1:] if mine else shape.extents
        if "" in items or (shape.written and not mine) or shape.others & items:
            return None
        if any(extent != FILL and name in parse(extent).names for extent in other_axes):
            return None
    return None if any(access.kind == "atomic" for access in kernel.accesses) else name


def _counted(kernel: KernelModel, word: str, values: Mapping[str, Expr]) -> tuple[int, Expr | None]:
    """How many values of an index a block along this axis comes to, and where they end."""
    for reach in (one for group in kernel.reach for one in group):
        if word in names_in(reach.count):
            block = int_value(substitute(substitute(reach.count, {word: number(1)}), values))
            if block is not None and not names_in(reach.bound) & {word}:
                return block, reach.bound
    for task in kernel.tasks:
        if word in names_in(task.extent):
            block = int_value(substitute(substitute(task.extent, {word: number(1)}), values))
            if block is not None:
                return block, None
    return 1, None


def _size_name(kernel: KernelModel, word: str, host: Sequence[str]) -> str:
    """A name for how many tasks there are: the host's, or the plural of what the kernel calls one."""
    if host and is_name(host[0]):
        return host[0]
    task = next((task.name for task in kernel.tasks if word in names_in(task.extent)), "block")
    stem = re.sub(r"_?(idx|index|id)$", "", task, flags=re.IGNORECASE) or task
    plural = stem if stem == "batch" or stem.endswith("s") else _LETTERS.get(stem.lower(), f"{stem}s")
    if is_name(plural) and looks_like_a_size(plural):
        return plural
    return {"x": "rows", "y": "count_y", "z": "count_z"}[word[-1]]
