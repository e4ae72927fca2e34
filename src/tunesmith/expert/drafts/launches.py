"""Where host code launches kernels, and a drafted problem's launch made of that: FILL where only the user
knows.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tunesmith.expert.drafts.headers import (
    KernelParameter,
    KernelSignature,
    LaunchSite,
    elements_of,
    unambiguous_names,
)
from tunesmith.expert.read.integers import NoTranslation, size_node
from tunesmith.problem.problem import TYPES
from tunesmith.source.reader.grammar import callee_name, declared_name, encode_source, syntax_nodes, text_of
from tunesmith.source.reader.parse import read_expression
from tunesmith.source.tree import Binary, Call, Expr, Language, Member, Name, Opaque, SizeOf, Unreadable
from tunesmith.space import expr as size
from tunesmith.space.expr import is_name, unparse

if TYPE_CHECKING:
    from tree_sitter import Node

    from tunesmith.expert.drafts.headers import SourceModel


# -- The parts of a launch in host code, however it is spelled.
#
# `k<<<grid, block, shared>>>(...)`, `hipLaunchKernelGGL(k, grid, block, shared, stream, ...)`,
# `cudaLaunchKernelEx(&config, k, ...)`, and with an array of addresses `cudaLaunchKernelExC(&config, k,
# args)`,
# `cudaLaunchKernel(k, grid, block, args, shared, stream)` and its cooperative sister.


_HIP = ("hipLaunchKernelGGL", "hipLaunchKernelGGLInternal")
_BY_CONFIG = ("cudaLaunchKernelEx", "cudaLaunchKernelExC")
_BY_ADDRESSES = ("cudaLaunchKernel", "cudaLaunchCooperativeKernel", "hipLaunchKernel")
CALLS = frozenset((*_HIP, *_BY_CONFIG, *_BY_ADDRESSES))
_FIELDS = ("gridDim", "blockDim", "dynamicSmemBytes")


@dataclass(frozen=True)
class LaunchParts:
    kernel: Node
    shape: tuple[Node, ...]  # grid, block, and perhaps shared memory
    passed: tuple[Node, ...]


def launch_parts(call: Node, function: Node) -> LaunchParts | None:
    """None: the call launches nothing, or its geometry is not to be found. `function`: the one around it."""
    arguments, named = call.child_by_field_name("arguments"), call.child_by_field_name("function")
    if arguments is None or named is None:
        return None
    given = arguments.named_children
    geometry = next((child for child in call.children if child.type == "kernel_call_syntax"), None)
    if geometry is not None:
        return _launch_parts(named, geometry.named_children, given)
    name = (callee_name(call) or "").split("<")[0].split("::")[-1]
    if name in _HIP and len(given) >= 5:
        return _launch_parts(given[0], given[1:5], given[5:])
    if name in _BY_CONFIG and len(given) >= 2:
        shape = _config_shape(text_of(given[0]).lstrip("&* "), call, function)
        is_plain = name == "cudaLaunchKernelEx"
        passed = given[2:] if is_plain else _addressed_arguments(given[2:], call, function)
        return None if passed is None else _launch_parts(_strip_wrappers(given[1]), shape, passed)
    if name in _BY_ADDRESSES and len(given) >= 4:
        passed, shape = _addressed_arguments(given[3:4], call, function), [*given[1:3], *given[4:5]]
        return None if passed is None else _launch_parts(_strip_wrappers(given[0]), shape, passed)
    return None


def _launch_parts(kernel: Node, shape: list[Node], passed: list[Node]) -> LaunchParts | None:
    return LaunchParts(kernel, tuple(shape), tuple(passed)) if len(shape) >= 2 else None


def _config_shape(name: str, call: Node, function: Node) -> list[Node]:
    """Grid, block and shared memory of a `cudaLaunchConfig_t`, by what was assigned last before the call."""
    found: dict[str, Node] = {}
    for node in syntax_nodes(function):
        if node.start_byte >= call.start_byte:
            continue
        if node.type == "init_declarator" and text_of(declared_name(node)) == name:
            found.update(_initializer_fields(node.child_by_field_name("value")))
        elif node.type == "assignment_expression":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            holder, _, field = text_of(left).replace("->", ".").partition(".")
            if holder == name and field in _FIELDS and right is not None:
                found[field] = right
    shape = [found[field] for field in _FIELDS if field in found]
    return shape if {"gridDim", "blockDim"} <= found.keys() else []


def _initializer_fields(value: Node | None) -> Iterator[tuple[str, Node]]:
    """`{grid, block, shared}`, or with the fields' names."""
    if value is None or value.type != "initializer_list":
        return
    for place, child in enumerate(value.named_children):
        if child.type == "initializer_pair":
            designator = text_of(child.child_by_field_name("designator")).lstrip(".")
            inner = child.child_by_field_name("value")
            if inner is not None:
                yield designator, inner
        elif place < len(_FIELDS):
            yield _FIELDS[place], child


def _addressed_arguments(given: list[Node], call: Node, function: Node) -> list[Node] | None:
    """What an array of addresses leads to: `void* args[] = {&out, (void*)&n};`."""
    name = text_of(given[0]) if given else ""
    listed: Node | None = None
    for node in syntax_nodes(function):
        if node.type == "init_declarator" and node.start_byte < call.start_byte:
            value = node.child_by_field_name("value")
            if (
                value is not None
                and value.type == "initializer_list"
                and text_of(declared_name(node)) == name
            ):
                listed = value
    if listed is None:
        return None
    return [_strip_wrappers(child) for child in listed.named_children]


def _strip_wrappers(node: Node) -> Node:
    """Without casts, parentheses and `&` around it."""
    while node.type in ("cast_expression", "pointer_expression", "parenthesized_expression"):
        inner = node.child_by_field_name("value") or node.child_by_field_name("argument")
        inner = inner or (node.named_children[-1] if node.named_children else None)
        if inner is None:
            break
        node = inner
    casts = ("reinterpret_cast", "const_cast", "static_cast")
    if node.type == "call_expression" and (callee_name(node) or "").split("<")[0] in casts:
        arguments = node.child_by_field_name("arguments")
        if arguments is not None and len(arguments.named_children) == 1:
            return _strip_wrappers(arguments.named_children[0])
    return node


def assigned_fields(function: Node, call: Node) -> Iterator[tuple[str, str]]:
    """What fields of structs hold at a launch, by the last assignment before it."""
    for node in syntax_nodes(function):
        if node.type == "assignment_expression" and node.start_byte < call.start_byte:
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            whole = left is not None and text_of(node.child_by_field_name("operator")) == "="
            if whole and left is not None and left.type in ("field_expression", "subscript_expression"):
                yield text_of(left).replace("->", "."), text_of(right)


def is_listed_address(node: Node) -> bool:
    """Whether `&x` stands in an array of addresses for a launch, which reads x and does not change it."""
    around = ("cast_expression", "argument_list", "call_expression")
    while (parent := node.parent) is not None and parent.type in around:
        node = parent
    return parent is not None and parent.type == "initializer_list"


FILL = "FILL"
_CHECK = re.compile(r"(?:\w+_)?(?:CHECK|ASSERT|ASSERTM|INTERNAL_ASSERT)|assert")


@dataclass(frozen=True)
class _Declaration:
    name: str
    value: Node | None
    start: int  # from here to `end` the name means this
    end: int


@dataclass(frozen=True)
class _HostFunction:
    declarations: tuple[_Declaration, ...]
    changed: frozenset[str]

    def visible(self, place: int) -> dict[str, Node | None]:
        """What each local name means at a place: its innermost declaration."""
        found = (d for d in self.declarations if d.start <= place < d.end)
        return {d.name: d.value for d in sorted(found, key=lambda d: (d.start, -d.end))}


def read_launches(root: Node, code: str) -> Iterator[LaunchSite]:
    """`code` is the text that `root` was parsed from."""
    text = encode_source(code)
    known: dict[int, _HostFunction] = {}
    for node in syntax_nodes(root):
        if node.type != "call_expression":
            continue
        function_around = _outermost_function(node)
        parts = launch_parts(node, function_around)
        if parts is None:
            continue
        kernel, shape, passed = parts.kernel, parts.shape, parts.passed
        if function_around.id not in known:
            known[function_around.id] = _read_function(function_around)
        host = known[function_around.id]
        visible = host.visible(node.start_byte)
        settled = {n: v for n, v in visible.items() if v is not None and n not in host.changed}
        name, template_args = _kernel_name(kernel)
        yield LaunchSite(
            kernel=name,
            template_args=template_args,
            grid=_dimension_texts(shape[0], settled),
            block=_dimension_texts(shape[1], settled),
            shared=text_of(shape[2]) if len(shape) > 2 else None,
            arguments=tuple(text_of(argument) for argument in passed),
            # Not start_point: reading its row corrupts memory in tree-sitter 0.26.0 (py-tree-sitter #466).
            line=text.count(b"\n", 0, node.start_byte) + 1,
            settled=tuple((local, text_of(value)) for local, value in settled.items()),
            local=frozenset(visible),
            changed=host.changed,
            conditions=tuple(_enclosing_conditions(node)),
            checks=tuple(_preceding_checks(function_around, node)),
            around=tuple(_handed_to(node)),
            aliases=tuple(_type_aliases(function_around, node.start_byte)),
            function=text_of(declared_name(function_around.child_by_field_name("declarator"))),
            fields=tuple(assigned_fields(function_around, node)),
        )


def _enclosing_conditions(node: Node) -> Iterator[str]:
    """Of `if` statements around a node, outermost first."""
    found: list[str] = []
    while (parent := node.parent) is not None and parent.type != "function_definition":
        if parent.type == "if_statement":
            condition = text_of(parent.child_by_field_name("condition")).removeprefix("(").removesuffix(")")
            if parent.child_by_field_name("consequence") == node:
                found.append(condition)
            elif parent.child_by_field_name("alternative") == node:
                found.append(f"!({condition})")
        node = parent
    yield from reversed(found)


def _preceding_checks(function: Node, launch: Node) -> Iterator[str]:
    """Those that come before a launch wherever it is made."""
    above = [*_enclosing_conditions(launch)]
    for node in syntax_nodes(function):
        is_before = node.type == "call_expression" and node.start_byte < launch.start_byte
        if is_before and _CHECK.fullmatch(callee_name(node) or ""):
            arguments = node.child_by_field_name("arguments")
            around = [*_enclosing_conditions(node)]
            if arguments is not None and arguments.named_children and above[: len(around)] == around:
                yield text_of(arguments.named_children[0])


def _handed_to(node: Node) -> Iterator[tuple[str, ...]]:
    """Calls around a node one of whose arguments is the code that it stands in: the innermost first."""
    while (parent := node.parent) is not None and parent.type != "function_definition":
        if parent.type == "call_expression" and node.type == "argument_list":
            others = (child for child in node.named_children if child.type != "lambda_expression")
            yield (callee_name(parent) or "", *(text_of(child) for child in others))
        node = parent


def _type_aliases(function: Node, end: int) -> Iterator[tuple[str, str]]:
    for node in syntax_nodes(function):
        if node.type == "alias_declaration" and node.start_byte < end:
            yield text_of(node.child_by_field_name("name")), text_of(node.child_by_field_name("type"))


def read_constants(root: Node) -> Iterator[tuple[str, str]]:
    """File-level `const`/`constexpr` values, and those of namespaces."""
    for node in syntax_nodes(root):
        if node.type != "init_declarator" or node.parent is None or node.parent.type != "declaration":
            continue
        words = [text_of(child) for child in node.parent.children]
        inside = _outermost_function(node).type == "function_definition"
        if not inside and ("const" in words or "constexpr" in words):
            name, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
            if name is not None and name.type == "identifier" and value is not None:
                yield text_of(name), text_of(value)


def _kernel_name(node: Node) -> tuple[str, str | None]:
    """The name and its template arguments, out of `(k<T>)`, `HIP_KERNEL_NAME(k<T>)`, `ns::k`."""
    for child in syntax_nodes(node):
        if child.type == "template_function":
            arguments = text_of(child.child_by_field_name("arguments"))
            return text_of(child.child_by_field_name("name")), arguments[1:-1].strip()
    names = [text_of(child) for child in syntax_nodes(node) if child.type == "identifier"]
    return (names[-1] if names else text_of(node)), None


def _dimension_texts(node: Node, settled: Mapping[str, Node], depth: int = 8) -> tuple[str, ...]:
    value = settled.get(text_of(node))
    if value is not None and depth > 0:
        return _dimension_texts(value, settled, depth - 1)
    if node.type == "call_expression" and callee_name(node) == "dim3":
        node = node.child_by_field_name("arguments") or node
    if node.type in ("argument_list", "initializer_list", "parameter_list"):
        found = node.named_children
        if len(found) == 1 and depth > 0:  # `dim3(grid)`: perhaps itself the name of a dim3
            return _dimension_texts(found[0], settled, depth - 1)
        return tuple(text_of(child) for child in found)
    return (text_of(node),)


def _outermost_function(node: Node) -> Node:
    """The outermost function around a node, so that a lambda shares the variables it captures."""
    found = None
    while (parent := node.parent) is not None:
        if parent.type == "function_definition":
            found = parent
        node = parent
    return found if found is not None else node


def _read_function(function: Node) -> _HostFunction:
    """Its declarations, and the names that are assigned, stepped, or could be under another name."""
    declarations: list[_Declaration] = []
    changed: set[str] = set()
    for node in syntax_nodes(function):
        match node.type:
            case "parameter_declaration" | "optional_parameter_declaration" if not _is_dim3(node.parent):
                name = text_of(declared_name(node.child_by_field_name("declarator")))
                declarations.append(_Declaration(name, None, node.start_byte, function.end_byte))
            case "declaration":
                for declarator in node.children_by_field_name("declarator"):
                    declarations.append(_host_declaration(declarator))
                    named = declarator.child_by_field_name("declarator")
                    is_reference = named is not None and named.type == "reference_declarator"
                    if declarator.type == "init_declarator" and is_reference:
                        changed.add(_assigned_variable(declarator.child_by_field_name("value")))
            case "assignment_expression":
                changed.add(_assigned_variable(node.child_by_field_name("left")))
            case "update_expression":
                changed.add(_assigned_variable(node.child_by_field_name("argument")))
            case "pointer_expression" if _may_change(node):
                changed.add(_assigned_variable(node.child_by_field_name("argument")))
    return _HostFunction(tuple(declarations), frozenset(changed - {""}))


def _may_change(node: Node) -> bool:
    """Whether what is pointed to may be changed by somebody else."""
    return text_of(node.child_by_field_name("operator")) == "&" and not is_listed_address(node)


def _host_declaration(declarator: Node) -> _Declaration:
    block = declarator
    while block.parent is not None and block.type not in ("compound_statement", "for_statement"):
        block = block.parent
    is_set = declarator.type == "init_declarator"
    named = declarator.child_by_field_name("declarator") if is_set else declarator
    listed = declarator.child_by_field_name("parameters")
    value = declarator.child_by_field_name("value")
    if listed is not None and _is_dim3(listed):
        value = listed
    elif named is None or named.type != "identifier":  # a pointer, an array: no value to follow
        value = None
    return _Declaration(text_of(declared_name(named)), value, declarator.start_byte, block.end_byte)


def _is_dim3(listed: Node | None) -> bool:
    """Whether a list of parameters is the arguments of `dim3 grid(tokens);`, which reads as a function."""
    declarator = listed.parent if listed is not None else None
    declaration = declarator.parent if declarator is not None else None
    if declaration is None or declaration.type != "declaration":
        return False
    return text_of(declaration.child_by_field_name("type")) == "dim3"


def _assigned_variable(node: Node | None) -> str:
    """The variable that an assignment changes: `grid` in `grid.x = 3`."""
    parts = ("field_expression", "subscript_expression", "parenthesized_expression")
    while node is not None and node.type in parts:
        first = next(iter(node.named_children), None)
        node = node.child_by_field_name("argument") or first
    return text_of(node)


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
    block = [translate_expr(text, {}, constants) or FILL for text in kernel.reqd_work_group_size or (FILL,)]
    return DraftLaunch(
        grid=(FILL,),
        block=_without_ones(block),
        shared=FILL if kernel.dynamic_shared else None,
        about="as reqd_work_group_size says" if kernel.reqd_work_group_size else "",
        about_grid=f'{grid_unit}, up to three expressions, e.g. ["ceildiv({example}, 256)"]',
        about_block=("work-items in a group" if language == "opencl" else "threads in a block")
        + ', e.g. ["256"]'
        + _launch_bounds_note(kernel, constants),
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
        return translate_expr(text, sizes, constants) or FILL

    shared = ours(site.shared) if site.shared is not None else "0"
    others = ", ".join(str(other.line) for other in sites[1:])
    said = f"line {site.line} says"
    return DraftLaunch(
        grid=_without_ones([ours(text) for text in site.grid]),
        block=_without_ones([ours(text) for text in site.block]),
        shared=shared if shared != "0" else None,
        about=f"as launched in line {site.line}" + (f"; also launched in line {others}" if others else ""),
        about_grid=f"blocks, over the sizes; {said} {', '.join(site.grid)}",
        about_block=f"threads in a block; {said} {', '.join(site.block)}"
        + _launch_bounds_note(kernel, constants),
        about_shared=f"bytes of dynamic shared memory; {said} {site.shared}",
    )


def _host_sizes(site: LaunchSite, arguments: Sequence[DraftArgument]) -> Mapping[str, str]:
    """What the host calls the sizes, from the arguments it passes; a text that means two sizes means none."""
    if len(site.arguments) != len(arguments):
        return {}
    by_name = {a.name: a.name for a in arguments if a.role == "size" and a.name not in site.local}
    said = unambiguous_names(
        (host, argument.name)
        for text, argument in zip(site.arguments, arguments, strict=True)
        for host in (_uncast_forms(text) if argument.role == "size" else ())
        if _WORD.search(host) and not site.changed.intersection(_WORD.findall(host))
    )
    return {**by_name, **said}


def _uncast_forms(text: str) -> Iterator[str]:
    yield text
    match = _CAST.fullmatch(text)
    if match is not None:
        yield next(group for group in match.groups() if group is not None)


def _without_ones(dimensions: Sequence[str]) -> tuple[str, ...]:
    found = list(dimensions)[:3]
    while len(found) > 1 and found[-1] == "1":
        found.pop()
    return tuple(found)


def _launch_bounds_note(kernel: KernelSignature, constants: Mapping[str, str]) -> str:
    if not kernel.launch_bounds:
        return ""
    most = kernel.launch_bounds[0]
    return f"; __launch_bounds__ allows {translate_expr(most, {}, constants) or most}"


def translate_expr(text: str, sizes: Mapping[str, str], constants: Mapping[str, str]) -> str | None:
    """The C expression in the language of problem files, or None where it has no counterpart there.

    `sizes` maps host expressions to size names, `constants` host names to the C expressions they stand for.
    """
    try:
        return unparse(_HostExpressions(sizes, constants).node(text, 0))
    except NoTranslation:
        return None


class _HostExpressions:
    def __init__(self, sizes: Mapping[str, str], constants: Mapping[str, str]) -> None:
        self._sizes = {
            host: name for text, name in sizes.items() if (host := _try_read_expression(text)) is not None
        }
        self._constants = constants

    def node(self, text: str, depth: int) -> size.Node:
        expr = _try_read_expression(text)
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
                return _element_bytes(type_.base)
            case Opaque(text=text) if text.startswith("sizeof"):
                return _element_bytes(text.removeprefix("sizeof").strip(" ()"))
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


def _try_read_expression(text: str) -> Expr | None:
    try:
        return read_expression(text)
    except Unreadable:
        return None


def _element_bytes(base: str) -> size.Num:
    element, vector = elements_of(base, "cuda")
    if element is None:
        raise NoTranslation
    return size.Num(TYPES[element].bytes * vector)


DraftRole = Literal["input", "output", "inout", "local", "FILL", "size", "scalar"]
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SIZE_LETTERS = frozenset("bcdhklmntwBCDHKLMNSTW") | {"nx", "ny", "nz", "hw", "nnz"}
_SIZE_WORDS = frozenset({
    "size", "sz", "len", "length", "seqlen", "count", "cnt", "num", "dim", "dims", "row", "rows", "col",
    "cols", "column", "columns", "width", "height", "depth", "batch", "batches", "head", "heads",
    "token", "tokens", "hidden", "channel", "channels", "element", "elements", "elem", "elems", "vocab",
    "features", "classes", "experts", "groups", "bins", "points", "items", "samples", "nodes", "edges",
    "total", "planes", "images", "frames", "sequences",
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
    def may_be_output(self) -> bool:
        return self.role in ("output", "inout", FILL)

    @property
    def is_float(self) -> bool:
        return self.element is not None and TYPES[self.element].kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.element is not None and self.vector == 1 and not self.is_float


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
        name = possible_name(parameter.name, taken)
        taken.add(name)
        role = _parameter_role(parameter, name, element, vector)
        arguments.append(DraftArgument(parameter, name, element, vector, role))
    return tuple(arguments)


def looks_like_a_size(name: str) -> bool:
    if name in _SIZE_LETTERS:
        return True
    parts = [part.lower() for part in _PART.findall(name)]
    if any(part in _OTHER_WORDS for part in parts):
        return False
    counted = len(parts) > 1 and parts[0] in ("n", "num", "nr")  # n_rows, nRows, num_warps
    return counted or any(part in _SIZE_WORDS for part in parts)


def _parameter_role(parameter: KernelParameter, name: str, element: str | None, vector: int) -> DraftRole:
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


def possible_name(name: str, taken: Container[str] = ()) -> str:
    """An ASCII name that also does as a keyword argument in Python: `in` is no such name."""
    possible = re.sub(r"[^A-Za-z0-9_]", "_", name)
    while keyword.iskeyword(possible) or possible in taken:
        possible += "_"
    return possible
