"""A kernel without a problem: read with sizes and a launch that are made up, to say what follows from it.

Every integer parameter is a size of its own, arrays are apart, and the grid has as many blocks as anything
could need. The block is that of a launch in the file, of the text's own numbers, or a usual one: the first
with which the kernel can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest

from tunesmith.expert.drafts.headers import KernelSignature, SourceModel
from tunesmith.expert.drafts.launches import (
    FILL,
    DraftArgument,
    DraftLaunch,
    launches_of,
    looks_like_a_size,
    translate_expr,
)
from tunesmith.expert.drafts.shapes import ArrayShape, ShapeReader
from tunesmith.expert.read.contract import with_entry_sizes
from tunesmith.expert.read.integers import launch_terms, number_node, to_sizes
from tunesmith.expert.read.lift import lift_kernel
from tunesmith.expert.read.model import KernelModel, NotReadable
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
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.fold import int_value
from tunesmith.source.inline import inline_calls
from tunesmith.source.reader.parse import read_source_tree
from tunesmith.source.reader.templates import bind_kernel, sizes_of_entry
from tunesmith.source.substitution import substitute
from tunesmith.source.tree import Binary, Expr, Language, Name, Parameter, Unreadable
from tunesmith.source.walk import names_in
from tunesmith.space.expr import Variable, is_name, parse_expr


@dataclass(frozen=True)
class BareKernel:
    """A kernel as far as its text alone goes; `entry` with its template arguments."""

    text: str
    file: str
    language: Language
    entry: str
    kernel: KernelSignature
    arguments: tuple[DraftArgument, ...]
    source: SourceModel
    launch: DraftLaunch  # of a launch in the file, or with FILL
    bound: tuple[tuple[str, str], ...] = ()  # template parameters with their arguments
    defines: tuple[tuple[str, str], ...] = ()  # macros given to the compiler
    headers: tuple[tuple[str, str], ...] = ()  # the user's own, as included -> text

    @property
    def entry_sizes(self) -> tuple[str, ...]:
        """Sizes that template arguments follow: `kernel<{head_dim}>`."""
        return tuple(dict.fromkeys(sizes_of_entry(self.entry)))

    @property
    def sizes(self) -> tuple[str, ...]:
        """Every integer parameter, and those."""
        return tuple(dict.fromkeys((*integers_of(self.arguments), *self.entry_sizes)))

    @property
    def host_grid(self) -> tuple[str, ...]:
        """As the file's first launch writes it; by the kernel's own name where the host passes the same."""
        sites = launches_of(self.kernel, self.source)
        by_kernel = [text if text in integers_of(self.arguments) else "" for text in self.launch.grid]
        return tuple(said or text for text, said in zip_longest(sites[0].grid, by_kernel)) if sites else ()


def integers_of(arguments: Sequence[DraftArgument]) -> list[str]:
    return [a.name for a in arguments if not a.parameter.pointer and a.is_integer]


def not_said(bare: BareKernel) -> list[str]:
    """What the text leaves open, without which it cannot be read."""
    found = []
    if FILL in bare.entry:
        sites = [(s.template_args, s.line, "launches") for s in launches_of(bare.kernel, bare.source)]
        instances = (one for one in bare.source.instantiations if one.kernel == bare.kernel.name)
        sites += [(one.template_args, one.line, "instantiates") for one in instances]
        arguments, line, how = next((site for site in sites if site[0]), ("", 0, ""))
        said = f"{bare.kernel.qualified_name}<{arguments or _example_arguments(bare)}>"
        told = f"; line {line} {how} it so" if how else ""
        found.append(f"its template arguments are not known: say them, as in --entry '{said}'{told}")
    for argument in bare.arguments:
        parameter = argument.parameter
        if argument.element is None and parameter.base in bare.kernel.template_params and FILL in bare.entry:
            continue  # that is what the entry leaves open
        if argument.element is None or (argument.vector > 1 and not parameter.pointer):
            found.append(f"the type of {parameter.name}, {parameter.type}, is not known")
    wrong = [name for name in bare.sizes if not is_name(name)]
    return found + [f"'{name}' cannot be the name of a size" for name in wrong]


def _example_arguments(bare: BareKernel) -> str:
    """Template arguments of the right kind: numbers where the text declares integers."""

    def example(name: str) -> str:
        kind = re.search(rf"\b(bool|int|unsigned|size_t|long|short|char|u?int\d+_t)\s+{name}\b", bare.text)
        return "float" if kind is None else "true" if kind[1] == "bool" else "128"

    return ", ".join(map(example, bare.kernel.template_params))


AXES = "xyz"
_THREADS_WORD = re.compile(r"block|thread|tpb|tile|wg", re.IGNORECASE)
_TIMES = re.compile(r"\b(?:hipB|b)lockIdx\s*[._]\s*([xyz])\s*\*\s*(\w+)")
_SHARED = re.compile(r"(?:__shared__|__local|\blocal)\s+[\w\s]+?\w+((?:\s*\[[^\]]*\])+)")
_OPENCL_INDEX = re.compile(r"\bget_(local|group|global)_id\s*\(\s*([012])\s*\)")
_CUDA_INDEX = re.compile(r"\b(?:hip)?([Tt]hread|[Bb]lock)Idx\s*[._]\s*([xyz])\b")
_USUAL: Mapping[int, tuple[tuple[int, ...], ...]] = {
    1: ((256,), (128,), (64,), (32,), (512,), (1024,)),
    2: ((32, 8), (16, 16), (32, 4), (32, 32), (8, 8)),
    3: ((32, 4, 2), (8, 8, 8), (8, 8, 4)),
}


def likely_blocks(bare: BareKernel) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Blocks, and whether the file itself says so; the likeliest first."""
    found: dict[tuple[str, ...], bool] = {}
    if FILL not in bare.launch.block:
        found[bare.launch.block] = True
    axes = used_axes(bare, "thread") or "x"
    for candidate in _own_blocks(bare, axes):
        found.setdefault(candidate, True)
    for usual in _USUAL[len(axes)]:
        found.setdefault(_pad_axes(axes, usual), False)
    yield from found.items()


def _own_blocks(bare: BareKernel, axes: str) -> Iterator[tuple[str, ...]]:
    """Blocks that the text tells of: what a block's number is times, bounds, constants, shared rows."""
    constants = {**dict(bare.source.constants), **dict(bare.bound)}

    def value(text: str) -> int:
        said = translate_expr(text, {}, constants)
        return int(said) if said is not None and said.isdecimal() else 0

    times = {axis: n for axis, text in _TIMES.findall(bare.text) if (n := value(text)) > 1}
    bounds = [value(text) for text in (bare.kernel.launch_bounds or ())[:1]]
    named = [value(text) for name, text in constants.items() if _THREADS_WORD.search(name)]
    rows = [
        [value(text.strip()) for text in re.findall(r"\[([^\]]*)\]", dimensions)]
        for dimensions in _SHARED.findall(bare.text)
    ]
    if len(axes) == 1:
        first = times.get(axes[-1], 0)
        numbers = [first * 32 if 0 < first < 32 else first, first, *bounds, *named]
        numbers += [n for row in rows if len(row) == 1 for n in row if n > 32]
        yield from (_pad_axes(axes, (n,)) for n in numbers if 1 < n <= 1024)
        return
    for usual in _USUAL[len(axes)] if times else ():
        yield _pad_axes(axes, tuple(times.get(axis, n) for axis, n in zip(axes, usual, strict=True)))
    for n in [n for n in named if 1 < n <= 32]:
        yield _pad_axes(axes, (n, *(n if n * n <= 1024 else 1 for _ in axes[1:2]), *(1 for _ in axes[2:])))


def _pad_axes(axes: str, numbers: Sequence[int]) -> tuple[str, ...]:
    """Numbers along some axes, 1 along those before them."""
    along = dict(zip(axes, numbers, strict=True))
    last = AXES.index(axes[-1])
    return tuple(str(along.get(axis, 1)) for axis in AXES[: last + 1])


def used_axes(bare: BareKernel, kind: str) -> str:
    """Axes of `thread` or `block` numbers that the kernel asks for; x where it seems to ask for neither."""
    text = _inlined_text(bare)
    used = {axis for word, axis in _CUDA_INDEX.findall(text) if word.lower() == kind}
    group = "group" if kind == "block" else "local"
    used |= {AXES[int(at)] for word, at in _OPENCL_INDEX.findall(text) if word in ("global", group)}
    seen = _CUDA_INDEX.search(text) or _OPENCL_INDEX.search(text)
    return "".join(axis for axis in AXES if axis in used) or ("" if seen else "x")


def _inlined_text(bare: BareKernel) -> str:
    """The names that the kernel and its helpers use, or the whole file where they are not found."""
    try:
        source = read_source_tree(bare.text, bare.language, bare.defines, bare.headers)
        bound = bind_kernel(source, bare.entry)
        if isinstance(bound, str) or len(bare.source.kernels) == 1:
            return bare.text
        found = names_in(inline_calls(bound.function, source).function.body)
        return " ".join(found) if any("Idx" in name for name in found) else bare.text
    except (Unreadable, RecursionError):
        return bare.text


_THREAD = c.Name("threadIdx.x")


def local_extent(kernel: KernelModel, array: str, block: Sequence[str]) -> str | None:
    """Of a kernel that was read: what is loaded there was stored before, so stores alone say how long it is.
    None where a store is not by the thread's number in a block of one axis."""
    if len(block) != 1:
        return None
    body = kernel.function.body
    nodes = [node for stmt in body for node in walk.nodes_in(stmt)]
    places = [n for n in nodes if isinstance(n, c.Index) and n.base == c.Name(array)]
    if sum(n == c.Name(array) for n in nodes) != len(places):
        return None  # a pointer to it goes elsewhere
    if any(isinstance(n, c.Unary) and n.operand in places for n in nodes):
        return None  # atomics, and what counts
    changed = walk.assigned_in(body)
    known = {
        n.name: n.init
        for n in nodes
        if isinstance(n, c.Declare) and n.init is not None and n.name not in changed
    }
    stored = [n.target for n in nodes if isinstance(n, c.Assign) and n.target in places]
    for place in stored:
        assert isinstance(place, c.Index)
        if not _is_within_block(substitute(place.index, known), block[0]):
            return None
    return block[0] if stored else None


def _is_within_block(index: c.Expr, threads: str) -> bool:
    match index:
        case c.Cast(value=value):
            return _is_within_block(value, threads)
        case c.Binary(op="/" | "%" | ">>" | "&", left=left):
            return _is_within_block(left, threads)
    at = int_value(index)
    return index == _THREAD or (at is not None and threads.isdecimal() and 0 <= at < int(threads))


LARGEST = 512  # of a size that is made up: products of three are below the number of threads
_BLOCKS = 1 << 30
_MAX_TRIED = 10
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
        return frozenset(name for text in texts if text != FILL for name in parse_expr(text).names)


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
    for block, is_said in islice(likely_blocks(bare), _MAX_TRIED):
        problem = _made_up(bare, block, integers)
        kernel = _try_lift(problem)
        if bare.entry_sizes and _by_a_number(kernel):
            sizes = " and ".join(f"{{{name}}}" for name in bare.entry_sizes)
            said = re.sub(r"\{\w+\}", "128", bare.entry)
            why = (
                f"types depend on {sizes}: say a number in its place to have it read, as in --entry '{said}'"
            )
            return BareFailure(problem, NotReadable(kernel.source, kernel.function, why))
        if isinstance(kernel, KernelModel):
            found = _read_bare(bare, problem, kernel, own_block=is_said)
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


def _try_lift(problem: Problem) -> KernelModel | NotReadable:
    try:
        return lift_kernel(problem)
    except Unreadable as error:
        source = read_source_tree("", "cuda", ())
        return NotReadable(source, None, error.reason, error.line)


def _made_up(bare: BareKernel, block: tuple[str, ...], integers: Sequence[str]) -> Problem:
    axes = used_axes(bare, "block")
    taken = set(integers)
    blocks = [
        _fresh_size_name(f"blocks_{axis}", taken) if axis in axes else "1"
        for axis in AXES[: AXES.index(axes[-1]) + 1 if axes else 1]
    ]
    rules = [SizeRule(name, 1, LARGEST) for name in integers]
    rules += [SizeRule(name, _BLOCKS, _BLOCKS) for name in blocks if name != "1"]
    launch = Launch(
        bare.entry,
        tuple(map(parse_expr, blocks)),
        tuple(map(parse_expr, block)),
        tuple(a.name for a in bare.arguments),
        parse_expr("16384") if bare.launch.shared is not None else None,
    )
    return _make_problem(bare, launch, rules, {}, None)


def _make_problem(
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
        tuple(_make_argument(argument, shapes.get(argument.name)) for argument in bare.arguments),
        (launch,),
        Contract(tuple(rules)),
        (Workload("made_up", sizes),),
        Accuracy(1e-3, 1e-3, independent=independent),
    )


def _make_argument(argument: DraftArgument, shape: ArrayShape | None) -> Argument:
    assert argument.element is not None
    if not argument.parameter.pointer:
        value = parse_expr(argument.name) if argument.is_integer else 1.0
        return Argument(argument.name, argument.element, "scalar", value=value)
    extents = ("1",) if shape is None else tuple(str(LARGEST) if e == FILL else e for e in shape.extents)
    role = "inout" if argument.role in (FILL, "inout") else argument.role
    assert role in ("input", "output", "inout", "local")
    align = shape.align if shape is not None and role != "local" else None
    return Argument(argument.name, argument.element, role, tuple(map(parse_expr, extents)), align=align)


def _fresh_size_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _read_bare(
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
        count, bound = _block_coverage(kernel, word, terms.values)
        if bound is not None and (said := to_sizes(bound, terms.parameters)) is not None:
            grid.append(f"ceildiv({said}, {count})" if count > 1 else said)
            continue
        name = _size_name(kernel, word, bare.host_grid[at : at + 1])
        if name not in integers:  # else as many as that parameter says: what is called row is below rows
            name = _fresh_size_name(name, taken)
            added.append(name)
        grid.append(name if count == 1 else f"{name} // {count}")
        counted = Name(_ADDED + name)  # no index of the kernel is called so
        launched[word] = counted if count == 1 else Binary("/", counted, number_node(count))
        if count > 1:
            multiples[counted.name] = count
    values = {**terms.parameters, **{_ADDED + name: Variable(name) for name in (*added, *integers)}}
    reader = ShapeReader(kernel, launched, values, multiples)
    if reader.overlaps:
        return None
    names = {p.name: a.name for p, a in _pair_parameters(bare, kernel)}
    names |= zip((p.name for p in kernel.function.parameters[len(names) :]), bare.entry_sizes, strict=False)
    whole = {names.get(name, name.removeprefix(_ADDED)): n for name, n in reader.multiples.items()}
    found = reader.shapes()
    shapes = {a.name: found[p.name] for p, a in _pair_parameters(bare, kernel) if p.name in found}
    return _check_reading(bare, problem, kernel, shapes, tuple(grid), tuple(added), whole, own_block)


def _local_shapes(
    bare: BareKernel, kernel: KernelModel, block: tuple[str, ...]
) -> Iterator[tuple[str, ArrayShape]]:
    for parameter, argument in _pair_parameters(bare, kernel):
        extent = local_extent(kernel, parameter.name, block) if argument.role == "local" else None
        if extent is not None:
            yield argument.name, ArrayShape((extent,))


def _pair_parameters(bare: BareKernel, kernel: KernelModel) -> Iterator[tuple[Parameter, DraftArgument]]:
    """Parameters with their arguments; behind them are those that follow a size of the entry."""
    return zip(kernel.function.parameters, bare.arguments, strict=False)


def _check_reading(
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
    launch = replace(problem.launches[0], grid=tuple(map(parse_expr, grid)))
    shapes = {**shapes, **dict(_local_shapes(bare, kernel, block))}
    independent = _independent_size(kernel, shapes)
    drafted = _make_problem(bare, launch, rules, shapes, independent)
    again = _try_lift(drafted)
    if isinstance(again, NotReadable):
        return BareReading(problem, kernel, shapes, (), (), own_block, added, multiples, independent)
    return BareReading(drafted, again, shapes, grid, block, own_block, added, multiples, independent)


def _independent_size(kernel: KernelModel, shapes: Mapping[str, ArrayShape]) -> str | None:
    """A size that is the first axis of every output, of which no item needs another's inputs."""
    name = next((shape.extents[0] for shape in shapes.values() if shape.written), FILL)
    is_one_axis = not kernel.tasks and all(len(shape.extents) < 2 for shape in shapes.values())
    if not is_name(name) or name == FILL or is_one_axis:
        return None
    items = {shape.item for shape in shapes.values() if shape.extents[0] == name}
    for shape in shapes.values():
        mine = shape.extents[0] == name
        other_axes = shape.extents[1:] if mine else shape.extents
        if "" in items or (shape.written and not mine) or shape.others & items:
            return None
        if any(extent != FILL and name in parse_expr(extent).names for extent in other_axes):
            return None
    return None if any(access.kind == "atomic" for access in kernel.accesses) else name


def _block_coverage(kernel: KernelModel, word: str, values: Mapping[str, Expr]) -> tuple[int, Expr | None]:
    """How many values of an index a block along this axis comes to, and where they end."""
    for reach in (one for group in kernel.reach for one in group):
        if word in names_in(reach.count):
            block = int_value(substitute(substitute(reach.count, {word: number_node(1)}), values))
            if block is not None and not names_in(reach.bound) & {word}:
                return block, reach.bound
    for task in kernel.tasks:
        if word in names_in(task.extent):
            block = int_value(substitute(substitute(task.extent, {word: number_node(1)}), values))
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


@dataclass(frozen=True)
class KnownWorkload:
    name: str
    sizes: tuple[tuple[str, int], ...]
    weight: float = 1.0
    about: str = ""


@dataclass(frozen=True)
class KnownFacts:
    """By the problem's names for arguments and sizes; expressions are those of problem files."""

    head: str = ""  # the first line of the file, a comment
    notes: tuple[str, ...] = ()  # further ones
    values: Mapping[str, str] = field(default_factory=dict)  # of scalars
    shapes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shapes_from: Mapping[str, str] = field(default_factory=dict)  # who says so
    strides: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    aligned: Mapping[str, int] = field(default_factory=dict)
    nulls: frozenset[str] = frozenset()  # pointers that callers pass as null
    passed: Mapping[str, str] = field(default_factory=dict)  # in the caller's words
    multiples: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # of sizes
    limits_from: Mapping[str, str] = field(default_factory=dict)  # who says so
    requires: tuple[str, ...] = ()
    workloads: tuple[KnownWorkload, ...] = ()
    flags: tuple[str, ...] = ()
    compiler: str = ""
    reference: str | None = ""  # "file.py:function"; "": drafted; None: results are those of the original
    deterministic: bool = True

    def beside(self, name: str) -> str:
        """What callers pass, for the comment beside a FILL."""
        text = self.passed.get(name, "")
        return f"the host passes {text}" if text else ""

    def renamed(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Expressions with what scalars stand for in their place."""
        replaced = {name: value for name, value in self.values.items() if value != name}

        def meaning(match: re.Match[str]) -> str:
            value = replaced.get(match[0])
            if value is None:
                return match[0]
            return value if is_name(value) or value.isdecimal() else f"({value})"

        return tuple(re.sub(r"(?<![.\w])[A-Za-z_]\w*", meaning, text) for text in texts)


NOTHING_KNOWN = KnownFacts()
