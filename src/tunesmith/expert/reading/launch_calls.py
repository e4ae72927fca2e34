"""The parts of a launch in host code, however it is spelled.

`k<<<grid, block, shared>>>(...)`, `hipLaunchKernelGGL(k, grid, block, shared, stream, ...)`,
`cudaLaunchKernelEx(&config, k, ...)`, and with an array of addresses `cudaLaunchKernelExC(&config, k, args)`,
`cudaLaunchKernel(k, grid, block, args, shared, stream)` and its cooperative sister.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tunesmith.csource.syntax import callee, declared_name, syntax_nodes, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

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
        return _parts(named, geometry.named_children, given)
    name = (callee(call) or "").split("<")[0].split("::")[-1]
    if name in _HIP and len(given) >= 5:
        return _parts(given[0], given[1:5], given[5:])
    if name in _BY_CONFIG and len(given) >= 2:
        shape = _configured(text_of(given[0]).lstrip("&* "), call, function)
        passed = given[2:] if name == "cudaLaunchKernelEx" else _addressed(given[2:], call, function)
        return None if passed is None else _parts(_bared(given[1]), shape, passed)
    if name in _BY_ADDRESSES and len(given) >= 4:
        passed = _addressed(given[3:4], call, function)
        return None if passed is None else _parts(_bared(given[0]), [*given[1:3], *given[4:5]], passed)
    return None


def _parts(kernel: Node, shape: list[Node], passed: list[Node]) -> LaunchParts | None:
    return LaunchParts(kernel, tuple(shape), tuple(passed)) if len(shape) >= 2 else None


def _configured(name: str, call: Node, function: Node) -> list[Node]:
    """Grid, block and shared memory of a `cudaLaunchConfig_t`, by what was assigned last before the call."""
    found: dict[str, Node] = {}
    for node in syntax_nodes(function):
        if node.start_byte >= call.start_byte:
            continue
        if node.type == "init_declarator" and text_of(declared_name(node)) == name:
            found.update(_initial(node.child_by_field_name("value")))
        elif node.type == "assignment_expression":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            holder, _, field = text_of(left).replace("->", ".").partition(".")
            if holder == name and field in _FIELDS and right is not None:
                found[field] = right
    shape = [found[field] for field in _FIELDS if field in found]
    return shape if {"gridDim", "blockDim"} <= found.keys() else []


def _initial(value: Node | None) -> Iterator[tuple[str, Node]]:
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


def _addressed(given: list[Node], call: Node, function: Node) -> list[Node] | None:
    """What an array of addresses leads to: `void* args[] = {&out, (void*)&n};`."""
    name = text_of(given[0]) if given else ""
    listed: Node | None = None
    for node in syntax_nodes(function):
        if node.type == "init_declarator" and node.start_byte < call.start_byte:
            value = node.child_by_field_name("value")
            if (
                text_of(declared_name(node)) == name
                and value is not None
                and value.type == "initializer_list"
            ):
                listed = value
    if listed is None:
        return None
    return [_bared(child) for child in listed.named_children]


def _bared(node: Node) -> Node:
    """Without casts, parentheses and `&` around it."""
    while node.type in ("cast_expression", "pointer_expression", "parenthesized_expression"):
        inner = node.child_by_field_name("value") or node.child_by_field_name("argument")
        inner = inner or (node.named_children[-1] if node.named_children else None)
        if inner is None:
            break
        node = inner
    if node.type == "call_expression" and (callee(node) or "").split("<")[0] in (
        "reinterpret_cast",
        "const_cast",
        "static_cast",
    ):
        arguments = node.child_by_field_name("arguments")
        if arguments is not None and len(arguments.named_children) == 1:
            return _bared(arguments.named_children[0])
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
    while (parent := node.parent) is not None and parent.type in (
        "cast_expression",
        "argument_list",
        "call_expression",
    ):
        node = parent
    return parent is not None and parent.type == "initializer_list"
