"""Where host code launches kernels, by `k<<<grid, block>>>(...)` or by `hipLaunchKernelGGL(k, ...)`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tunesmith.csource.grammar import callee, declared_name, encoded, syntax_nodes, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_HIP_LAUNCHES = ("hipLaunchKernelGGL", "hipLaunchKernelGGLInternal")


@dataclass(frozen=True)
class LaunchSite:
    """One launch in host code. Geometry and arguments are C expressions, dim3 already taken apart."""

    kernel: str
    template_args: str | None
    grid: tuple[str, ...]
    block: tuple[str, ...]
    shared: str | None
    arguments: tuple[str, ...]
    line: int
    settled: tuple[tuple[str, str], ...]  # local variables with one value, and that value
    local: frozenset[str]  # every local name: it hides a constant of the file
    changed: frozenset[str]  # local names that take more than one value


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
    text = encoded(code)
    known: dict[int, _HostFunction] = {}
    for node in syntax_nodes(root):
        if node.type != "call_expression":
            continue
        arguments = node.child_by_field_name("arguments")
        function = node.child_by_field_name("function")
        geometry = next((child for child in node.children if child.type == "kernel_call_syntax"), None)
        if function is None or arguments is None:
            continue
        if geometry is not None:
            kernel, shape, passed = function, geometry.named_children, arguments.named_children
        elif callee(node) in _HIP_LAUNCHES and len(arguments.named_children) >= 5:
            kernel, shape = arguments.named_children[0], arguments.named_children[1:5]
            passed = arguments.named_children[5:]
        else:
            continue
        if len(shape) < 2:
            continue
        function_around = _enclosing(node)
        if function_around.id not in known:
            known[function_around.id] = _read_function(function_around)
        host = known[function_around.id]
        visible = host.visible(node.start_byte)
        settled = {n: v for n, v in visible.items() if v is not None and n not in host.changed}
        name, template_args = _kernel_name(kernel)
        yield LaunchSite(
            kernel=name,
            template_args=template_args,
            grid=_dimensions(shape[0], settled),
            block=_dimensions(shape[1], settled),
            shared=text_of(shape[2]) if len(shape) > 2 else None,
            arguments=tuple(text_of(argument) for argument in passed),
            # Not start_point: reading its row corrupts memory in tree-sitter 0.26.0 (py-tree-sitter #466).
            line=text.count(b"\n", 0, node.start_byte) + 1,
            settled=tuple((local, text_of(value)) for local, value in settled.items()),
            local=frozenset(visible),
            changed=host.changed,
        )


def read_constants(root: Node) -> Iterator[tuple[str, str]]:
    """File-level `const`/`constexpr` values, and those of namespaces."""
    for node in syntax_nodes(root):
        if node.type != "init_declarator" or node.parent is None or node.parent.type != "declaration":
            continue
        words = [text_of(child) for child in node.parent.children]
        inside = _enclosing(node).type == "function_definition"
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


def _dimensions(node: Node, settled: Mapping[str, Node], depth: int = 8) -> tuple[str, ...]:
    value = settled.get(text_of(node))
    if value is not None and depth > 0:
        return _dimensions(value, settled, depth - 1)
    if node.type == "call_expression" and callee(node) == "dim3":
        node = node.child_by_field_name("arguments") or node
    if node.type in ("argument_list", "initializer_list", "parameter_list"):
        found = node.named_children
        if len(found) == 1 and depth > 0:  # `dim3(grid)`: perhaps itself the name of a dim3
            return _dimensions(found[0], settled, depth - 1)
        return tuple(text_of(child) for child in found)
    return (text_of(node),)


def _enclosing(node: Node) -> Node:
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
                    declarations.append(_declaration(declarator))
                    if declarator.type == "init_declarator" and _is_reference(declarator):
                        changed.add(_leftmost(declarator.child_by_field_name("value")))
            case "assignment_expression":
                changed.add(_leftmost(node.child_by_field_name("left")))
            case "update_expression":
                changed.add(_leftmost(node.child_by_field_name("argument")))
            case "pointer_expression" if text_of(node.child_by_field_name("operator")) == "&":
                changed.add(_leftmost(node.child_by_field_name("argument")))
    return _HostFunction(tuple(declarations), frozenset(changed - {""}))


def _declaration(declarator: Node) -> _Declaration:
    block = declarator
    while block.parent is not None and block.type not in ("compound_statement", "for_statement"):
        block = block.parent
    named = (
        declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
    )
    listed = declarator.child_by_field_name("parameters")
    value = declarator.child_by_field_name("value")
    if listed is not None and _is_dim3(listed):
        value = listed
    elif named is None or named.type != "identifier":  # a pointer, an array: no value to follow
        value = None
    return _Declaration(text_of(declared_name(named)), value, declarator.start_byte, block.end_byte)


def _is_reference(declarator: Node) -> bool:
    named = declarator.child_by_field_name("declarator")
    return named is not None and named.type == "reference_declarator"


def _is_dim3(listed: Node | None) -> bool:
    """Whether a list of parameters is the arguments of `dim3 grid(tokens);`, which reads as a function."""
    declarator = listed.parent if listed is not None else None
    declaration = declarator.parent if declarator is not None else None
    if declaration is None or declaration.type != "declaration":
        return False
    return text_of(declaration.child_by_field_name("type")) == "dim3"


def _leftmost(node: Node | None) -> str:
    """The variable that an assignment changes: `grid` in `grid.x = 3`."""
    while node is not None and node.type in (
        "field_expression",
        "subscript_expression",
        "parenthesized_expression",
    ):
        node = node.child_by_field_name("argument") or (
            node.named_children[0] if node.named_children else None
        )
    return text_of(node)
