"""A drafted problem's arguments and launch: FILL where only the user knows."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tunesmith.csource.nodes import Binary, Call, Expr, Language, Member, Name, Opaque, SizeOf, Unreadable
from tunesmith.csource.parse import read_expression
from tunesmith.expert.model.translate import NoTranslation, size_node
from tunesmith.expert.reading.headers import unambiguous
from tunesmith.expert.reading.launches import LaunchSite
from tunesmith.expert.reading.source import KernelParameter, KernelSignature, SourceModel, elements_of
from tunesmith.problem.problem import TYPES
from tunesmith.space import grammar as size
from tunesmith.space.expr import is_name, unparse

FILL = "FILL"
DraftRole = Literal["input", "output", "inout", "local", "FILL", "size", "scalar"]

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SIZE_LETTERS = frozenset("bcdhklmntwBCDHKLMNSTW") | {"nx", "ny", "nz", "hw", "nnz"}
_SIZE_WORDS = frozenset({
    "size", "sz", "len", "length", "seqlen", "count", "cnt", "num", "dim", "dims", "row", "rows", "col",
    "cols", "column", "columns", "width", "height", "depth", "batch", "batches", "head", "heads",
    "token", "tokens", "hidden", "channel", "channels", "element", "elements", "elem", "elems", "vocab",
    "features", "classes", "experts", "groups", "bins", "points", "items", "samples", "nodes", "edges",
    "total",
})  # fmt: skip
# An integer with one of these in its name is no size, whatever else is there: row_stride, batch_idx.
_OTHER_WORDS = frozenset({
    "stride", "strides", "offset", "start", "begin", "end", "idx", "index", "id", "seed", "flag",
    "mode", "axis", "is", "has", "use", "pad", "padding", "step", "shift", "pos", "position", "mask",
    "ld", "lda", "ldb", "ldc",
})  # fmt: skip
_RESERVED_SIZES = frozenset({"weight", "cache", "require"})  # words that stand beside sizes in problem files


@dataclass(frozen=True)
class DraftArgument:
    parameter: KernelParameter
    name: str  # as in the problem file, where a few names of C are not possible
    element: str | None
    vector: int
    role: DraftRole

    @property
    def is_array(self) -> bool:
        return self.parameter.pointer

    @property
    def may_be_output(self) -> bool:
        return self.role in ("output", "inout", FILL)


def draft_arguments(
    kernel: KernelSignature, language: Language, bound: Mapping[str, str]
) -> tuple[DraftArgument, ...]:
    """`bound` gives the template parameters that the user has chosen already."""
    taken: set[str] = set()
    arguments = []
    for parameter in kernel.parameters:
        element, vector = parameter.element, parameter.vector
        if element is None and parameter.base in bound and parameter.type.count("*") <= 1:
            element, vector = elements_of(bound[parameter.base], language)
        name = _possible_name(parameter.name, taken)
        taken.add(name)
        arguments.append(
            DraftArgument(parameter, name, element, vector, _role(parameter, name, element, vector))
        )
    return tuple(arguments)


def looks_like_a_size(name: str) -> bool:
    if name in _SIZE_LETTERS:
        return True
    parts = [part.lower() for part in _PART.findall(name)]
    if any(part in _OTHER_WORDS for part in parts):
        return False
    counted = len(parts) > 1 and parts[0] in ("n", "num", "nr")  # n_rows, nRows, num_warps
    return counted or any(part in _SIZE_WORDS for part in parts)


def _role(parameter: KernelParameter, name: str, element: str | None, vector: int) -> DraftRole:
    if not parameter.pointer:
        integer = element is not None and vector == 1 and TYPES[element].kind != "float"
        usable = is_name(name) and name not in _RESERVED_SIZES
        return "size" if integer and usable and looks_like_a_size(name) else "scalar"
    if parameter.space == "local":
        return "local"
    if parameter.written is None or (parameter.written and parameter.read is None):
        return "FILL"
    if parameter.written:
        return "inout" if parameter.read else "output"
    return "input"


def _possible_name(name: str, taken: set[str]) -> str:
    """An ASCII name that also does as a keyword argument in Python: `in` is no such name."""
    possible = re.sub(r"[^A-Za-z0-9_]", "_", name)
    while keyword.iskeyword(possible) or possible in taken:
        possible += "_"
    return possible


_CAST = re.compile(
    r"\([\w\s]+\)\s*(\w+)|(?:static_cast<[\w\s]+>|int|unsigned|u?int\d+_t|size_t)\s*\(\s*(\w+)\s*\)"
)
_WORD = re.compile(r"[^\W\d]\w*")
# What projects call their own rounding-up division, without underscores and case.
_CEILDIV = frozenset({"ceildiv", "cdiv", "divup", "idivup", "divceil", "divroundup", "roundupdiv"})


@dataclass(frozen=True)
class DraftLaunch:
    grid: tuple[str, ...]
    block: tuple[str, ...]
    shared: str | None
    about: str  # what the whole is taken from
    about_grid: str  # what is wanted, where FILL stands
    about_block: str
    about_shared: str


def launches_of(kernel: KernelSignature, model: SourceModel) -> tuple[LaunchSite, ...]:
    return tuple(site for site in model.launches if site.kernel == kernel.name)


def draft_launch(
    kernel: KernelSignature, arguments: Sequence[DraftArgument], model: SourceModel, language: Language
) -> DraftLaunch:
    sites = launches_of(kernel, model)
    if sites:
        return _from_site(sites, arguments, model, kernel)
    example = next((argument.name for argument in arguments if argument.role == "size"), "n")
    grid_unit = "work-groups, not work-items" if language == "opencl" else "blocks"
    constants = dict(model.constants)
    block = [translate(text, {}, constants) or FILL for text in kernel.reqd_work_group_size or (FILL,)]
    return DraftLaunch(
        grid=(FILL,),
        block=_without_ones(block),
        shared=FILL if kernel.dynamic_shared else None,
        about="as reqd_work_group_size says" if kernel.reqd_work_group_size else "",
        about_grid=f'{grid_unit}, up to three expressions, e.g. ["ceildiv({example}, 256)"]',
        about_block=("work-items in a group" if language == "opencl" else "threads in a block")
        + ', e.g. ["256"]'
        + _bounds(kernel, constants),
        about_shared="bytes of dynamic shared memory",
    )


def _from_site(
    sites: Sequence[LaunchSite],
    arguments: Sequence[DraftArgument],
    model: SourceModel,
    kernel: KernelSignature,
) -> DraftLaunch:
    site = sites[0]
    sizes = _host_sizes(site, arguments)
    constants = {name: text for name, text in model.constants if name not in site.local}
    constants.update(site.settled)

    def ours(text: str) -> str:
        return translate(text, sizes, constants) or FILL

    shared = ours(site.shared) if site.shared is not None else "0"
    others = ", ".join(str(other.line) for other in sites[1:])
    said = f"line {site.line} says"
    return DraftLaunch(
        grid=_without_ones([ours(text) for text in site.grid]),
        block=_without_ones([ours(text) for text in site.block]),
        shared=shared if shared != "0" else None,
        about=f"as launched in line {site.line}" + (f"; also launched in line {others}" if others else ""),
        about_grid=f"blocks, over the sizes; {said} {', '.join(site.grid)}",
        about_block=f"threads in a block; {said} {', '.join(site.block)}" + _bounds(kernel, constants),
        about_shared=f"bytes of dynamic shared memory; {said} {site.shared}",
    )


def _host_sizes(site: LaunchSite, arguments: Sequence[DraftArgument]) -> Mapping[str, str]:
    """What the host calls the sizes, from the arguments it passes; a text that means two sizes means none."""
    if len(site.arguments) != len(arguments):
        return {}
    return unambiguous(
        (host, argument.name)
        for text, argument in zip(site.arguments, arguments, strict=True)
        for host in (_uncast(text) if argument.role == "size" else ())
        if _WORD.search(host) and not site.changed.intersection(_WORD.findall(host))
    )


def _uncast(text: str) -> Iterator[str]:
    yield text
    match = _CAST.fullmatch(text)
    if match is not None:
        yield next(group for group in match.groups() if group is not None)


def _without_ones(dimensions: Sequence[str]) -> tuple[str, ...]:
    found = list(dimensions)[:3]
    while len(found) > 1 and found[-1] == "1":
        found.pop()
    return tuple(found)


def _bounds(kernel: KernelSignature, constants: Mapping[str, str]) -> str:
    if not kernel.launch_bounds:
        return ""
    most = kernel.launch_bounds[0]
    return f"; __launch_bounds__ allows {translate(most, {}, constants) or most}"


# -- the host's expressions over sizes -----------------------------------------------------------------


def translate(text: str, sizes: Mapping[str, str], constants: Mapping[str, str]) -> str | None:
    """The C expression in the language of problem files, or None where it has no counterpart there.

    `sizes` maps host expressions to size names, `constants` host names to the C expressions they stand for.
    """
    try:
        return unparse(_HostExpressions(sizes, constants).node(text, 0))
    except NoTranslation:
        return None


class _HostExpressions:
    def __init__(self, sizes: Mapping[str, str], constants: Mapping[str, str]) -> None:
        self._sizes = {host: name for text, name in sizes.items() if (host := _expression(text)) is not None}
        self._constants = constants

    def node(self, text: str, depth: int) -> size.Node:
        expr = _expression(text)
        if expr is None:
            raise NoTranslation
        return size_node(expr, self._meaning, depth)

    def _meaning(self, expr: Expr, depth: int) -> size.Node | None:
        if expr in self._sizes:
            return size.Variable(self._sizes[expr])
        match expr:
            case Name(name=name) if name in self._constants:
                return self.node(self._constants[name], depth + 1)
            case Member(field="multiProcessorCount"):
                return size.Variable("device.sms")
            case SizeOf(type=type_) if not type_.is_pointer:
                return _bytes(type_.base)
            case Opaque(text=text) if text.startswith("sizeof"):
                return _bytes(text.removeprefix("sizeof").strip(" ()"))
            case Call(function=function, args=(left, right)):
                return self._call(function.split("::")[-1].lower(), left, right, depth + 1)
            case Binary(op="&"):
                raise NoTranslation
        return None

    def _call(self, name: str, left: Expr, right: Expr, depth: int) -> size.Node:
        args = (size_node(left, self._meaning, depth), size_node(right, self._meaning, depth))
        if name == "min" or name == "max":
            return size.FunctionCall("min" if name == "min" else "max", args)
        if name.replace("_", "") in _CEILDIV:
            return size.FunctionCall("ceildiv", args)
        raise NoTranslation


def _expression(text: str) -> Expr | None:
    try:
        return read_expression(text)
    except Unreadable:
        return None


def _bytes(base: str) -> size.Num:
    element, vector = elements_of(base, "cuda")
    if element is None:
        raise NoTranslation
    return size.Num(TYPES[element].bytes * vector)
