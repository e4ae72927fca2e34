"""What exports are made from: the dispatch and files of a run, or of several runs of one problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from math import prod

from tunesmith.base.errors import BadInput
from tunesmith.deliver.expr_text import c_identifier
from tunesmith.problem.dispatch import Dispatch, DispatchArgument, DispatchEntry, headers_of
from tunesmith.problem.problem import SizeRule, element_type
from tunesmith.run.candidates import Templates
from tunesmith.run.state import State
from tunesmith.space import expr as n
from tunesmith.space.expr import Expr, Node, parse_expr, unparse


@dataclass(frozen=True)
class DeviceResult:
    """What one run delivered, on one device."""

    run: str  # the name of its folder
    dispatch: Dispatch
    files: Mapping[str, bytes]  # below `tuned/`, by name
    kernel_path: str = ""  # the user's own file, as the problem names it, and its text; for a patch of it
    kernel_text: str = ""
    state: State | None = None  # the run's own, for exports that tell of the search
    templates: Templates | None = None

    def source(self, entry: DispatchEntry) -> str:
        return self.files[entry.file].decode()

    def binary(self, entry: DispatchEntry) -> bytes | None:
        return self.files[entry.binary.file] if entry.binary is not None else None


@dataclass(frozen=True)
class Artefact:
    """The results of one problem: dispatched by device first, then by size."""

    results: tuple[DeviceResult, ...]

    @property
    def first(self) -> DeviceResult:
        return self.results[0]

    @property
    def tuned(self) -> tuple[tuple[DeviceResult, str], ...]:
        """The tuned kernels, by the file of each. This is what is counted, everywhere."""
        return tuple((result, file) for result in self.results for file in result.dispatch.tuned_files)

    @property
    def problem(self) -> str:
        return self.first.dispatch.problem

    @cached_property
    def name(self) -> str:
        """The problem's, as a name in C and Python."""
        return c_identifier(self.problem)


@dataclass(frozen=True)
class Export:
    """The files of an export by name, and a sentence for each tuned kernel that it cannot have. `delivered`:
    how many of them it has, where the sentences do not tell. `notes`: what else is not as in the run."""

    files: dict[str, bytes]
    left_out: tuple[str, ...] = ()
    delivered: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """A form of export. `write` gives its files by name; it raises BadInput where a result cannot have it."""

    name: str
    about: str  # one line, for people
    languages: tuple[str, ...]
    write: Callable[[Artefact], Export | dict[str, bytes]]
    from_journal: bool = False  # it needs the user's own kernel, or what was searched

    def export(self, artefact: Artefact) -> Export:
        made = self.write(artefact)
        return made if isinstance(made, Export) else Export(made)


def missing_lines(
    lines: Iterable[tuple[DeviceResult, DispatchEntry, str, str]],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of entries that an export tried, each with its name and why it is missing, empty where it is there: a
    sentence for each tuned kernel that has none, and notes on entries that are missing of the original, or of
    a kernel that has others."""
    tried = list(lines)
    there = {(id(result), entry.file) for result, entry, _, why in tried if not why}
    left_out: dict[tuple[int, str], str] = {}
    notes: list[str] = []
    for result, entry, about, why in tried:
        source = id(result), entry.file
        if why and entry.config is not None and source not in there:
            left_out.setdefault(source, f"{about}: {why}")
        elif why:
            notes.append(f"{about}, where {entry.when}: {why}")
    return tuple(left_out.values()), tuple(notes)


def one_artefact(results: tuple[DeviceResult, ...]) -> Artefact:
    """The same operator on each device, no device twice."""
    first = results[0]
    for other in results[1:]:
        if differs := _find_difference(first, other):
            names = f"{first.run} ({first.dispatch.device}) and {other.run} ({other.dispatch.device})"
            fault = f"one export takes runs of one problem, {other.dispatch.problem} is not the same operator"
            hint = "export each by itself, or tune the first run's problem there: tunesmith retune RUN"
            raise BadInput(f"{fault} in {names}: {differs}", hint=hint)
    devices = [result.dispatch.architecture or result.dispatch.device for result in results]
    if twice := next((d for d in devices if devices.count(d) > 1), None):
        fault = f"an export takes one run for each kind of device, two runs are for {twice}"
        raise BadInput(fault, hint="name one of them")
    return Artefact(results)


def _find_difference(one: DeviceResult, two: DeviceResult) -> str:
    """What the runs of one problem have in common, and these have not. Grids, blocks and flags may differ, as
    devices do, and so may the workloads; but one of the same name has the same sizes."""
    a, b = one.dispatch, two.dispatch
    if a.problem != b.problem:
        return f"one is {a.problem}, the other {b.problem}"
    if a.language != b.language:
        return f"one is in {a.language}, the other in {b.language}"
    if a.arguments != b.arguments:
        return f"{_first_that_differs(a.arguments, b.arguments)} is another argument"
    if a.sizes != b.sizes:
        return f"the contract on {_first_that_differs(a.sizes, b.sizes)} is another"
    if set(a.require) != set(b.require):
        return f"the contract requires {min(set(a.require) ^ set(b.require))} in one of them"
    if _original_texts(one) != _original_texts(two):
        return f"the original kernel is another text, {a.original.file}"
    if (launched := _launched_entries(a)) != _launched_entries(b):
        return f"the original kernel is {launched} in one, {_launched_entries(b)} in the other"
    sizes = {workload.name: workload.sizes for workload in a.workloads}
    resized = [w.name for w in b.workloads if sizes.get(w.name, w.sizes) != w.sizes]
    return f"the workload {resized[0]} has other sizes" if resized else ""


def _first_that_differs(
    one: Sequence[DispatchArgument | SizeRule], two: Sequence[DispatchArgument | SizeRule]
) -> str:
    """The name of it; `two` is not the same as `one`."""
    return next((x or y).name for x, y in zip_longest(one, two) if x != y)


def _original_texts(result: DeviceResult) -> tuple[str, object]:
    """The user's own kernel, and its headers."""
    own = result.dispatch.original
    return result.source(own), headers_of(own, result.files)


def _launched_entries(dispatch: Dispatch) -> str:
    return ", ".join(launch.entry for launch in dispatch.original.launches)


# What exports ask about a call before a tuned kernel may serve it, as expressions over the sizes.


def bytes_of(argument: DispatchArgument) -> Expr:
    """The bytes of an array or of local memory, from its first element to the last one."""
    element = element_type(argument.type)
    shape = [n.FunctionCall("max", (n.Num(0), parse_expr(text).tree)) for text in argument.shape]
    count: Node = _product_node(list(shape))
    if argument.strides:
        extent: Node = n.Num(1)
        for length, stride in zip(shape, argument.strides, strict=True):
            step = n.Arithmetic("*", n.Arithmetic("-", length, n.Num(1)), parse_expr(stride).tree)
            extent = n.Arithmetic("+", extent, step)
        count = n.Conditional(n.Compare(count, ((">", n.Num(0)),)), extent, n.Num(0))
    if element.packed > 1:
        count = n.FunctionCall("ceildiv", (count, n.Num(element.packed)))
    tree = n.Arithmetic("*", count, n.Num(element.bytes))
    return Expr(unparse(tree), tree)


def within_contract(dispatch: Dispatch) -> Expr:
    """What callers promise: nothing was verified beyond it."""
    parts: list[Node] = []
    for rule in dispatch.sizes:
        size = n.Variable(rule.name)
        if rule.one_of:
            parts.append(n.OneOf(size, rule.one_of, False))
            continue
        parts.append(n.Compare(n.Num(rule.min), (("<=", size), ("<=", n.Num(rule.max)))))
        if rule.multiple_of != 1:
            rest = n.Arithmetic("%", size, n.Num(rule.multiple_of))
            parts.append(n.Compare(rest, (("==", n.Num(0)),)))
    parts += [parse_expr(text).tree for text in dispatch.require]
    if not parts:
        return parse_expr(1)
    tree = parts[0] if len(parts) == 1 else n.Logic("and", tuple(parts))
    return Expr(unparse(tree), tree)


def argument_of(dispatch: Dispatch, entry: DispatchEntry, name: str) -> DispatchArgument:
    return next(a for a in (*dispatch.arguments, *entry.workspace) if a.name == name)


def is_written(argument: DispatchArgument) -> bool:
    return argument.role in ("output", "inout", "workspace")


def describe_argument(argument: DispatchArgument, *, caller_fills: bool = False) -> str:
    """A parameter, for people."""
    if not argument.is_array:
        return f"{argument.type}, tuned with {argument.value}"
    strides = f" with strides [{', '.join(argument.strides)}]" if argument.strides else ""
    parts = [f"{argument.role} of {argument.type} [{', '.join(argument.shape)}]{strides}"]
    parts += [f"aligned to {argument.align} bytes"] if argument.align > 1 else []
    if argument.init is not None:
        fills = "you fill it" if caller_fills else "filled"
        parts.append(f"{fills} with {argument.init:g} before each call")
    return ", ".join(parts)


def _product_node(nodes: list[Node]) -> Node:
    if all(isinstance(node, n.Num) for node in nodes):
        return n.Num(prod(node.value for node in nodes if isinstance(node, n.Num)))
    product = nodes[0]
    for node in nodes[1:]:
        product = n.Arithmetic("*", product, node)
    return product
