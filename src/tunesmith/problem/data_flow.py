"""Which values of a kernel come from its arrays: by assignments, calls, and branches taken on such values, on
the syntax tree and whatever the order. Where that cannot be told, a value counts as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tunesmith.csource.syntax import callee, declared_name, syntax_nodes, text_of
from tunesmith.problem.device_words import listed

if TYPE_CHECKING:
    from tree_sitter import Node

_LOOPS = listed("for_statement while_statement do_statement for_range_loop")
BRANCHES = _LOOPS | listed("if_statement switch_statement conditional_expression")
_JUMPS = listed("break_statement continue_statement goto_statement")
_DECLARES = listed("declaration parameter_declaration optional_parameter_declaration")
_MEMORY = listed("pointer_declarator array_declarator reference_declarator")
NEVER_RUN = listed("sizeof_expression alignof_expression decltype template_argument_list type_descriptor")
_Change = tuple[str, "Node | None", int]  # the name, its new value, where


@dataclass
class FlowFunction:
    name: str
    node: Node
    parameters: list[str] = field(default_factory=list)
    bound: set[str] = field(default_factory=set)  # parameters that are references
    memory: set[str] = field(default_factory=set)  # names behind which there may be data
    data: set[str] = field(default_factory=set)  # names that may be data themselves
    changes: list[_Change] = field(default_factory=list)
    declared: list[tuple[str, int]] = field(default_factory=list)
    branches: list[Node] = field(default_factory=list)
    calls: list[Node] = field(default_factory=list)

    def is_data(self, root: Node | None) -> bool:
        """A bare address is none: it is read by an index, by `*` and `->`, and by a function that gets it."""
        pending = [(root, False)] if root is not None else []
        while pending:
            node, is_read = pending.pop()
            below = node.named_children
            if node.type == "identifier" and text_of(node) in (self.memory if is_read else ()):
                return True
            if node.type == "identifier" and text_of(node) in self.data:
                return True
            if node.type == "subscript_expression":
                pending += [(below[0], True), *((index, is_read) for index in below[1:])]
            elif node.type == "pointer_expression" and text_of(node.child_by_field_name("operator")) == "&":
                place = without_parentheses(below[-1])
                is_element = place.type == "subscript_expression" and not is_read
                pending += [(part, is_read) for part in (place.named_children[1:] if is_element else [place])]
            elif node.type not in NEVER_RUN:
                is_arrow = node.type == "field_expression" and any(text_of(n) == "->" for n in node.children)
                is_call = node.type == "call_expression" and not (callee(node) or "").endswith("_cast")
                reads = is_read or is_arrow or is_call or node.type == "pointer_expression"
                pending += [(part, reads) for part in below]
        return False


def trace_data(root: Node) -> list[FlowFunction]:
    """All functions of a text but methods, with what in them is data."""
    shared = {name for node in root.named_children for name, is_memory in _declared(node) if is_memory}
    nodes = [node for node in syntax_nodes(root) if node.type == "function_definition"]
    functions = [_read_function(node, shared) for node in nodes if not _is_method(node)]
    before = -1
    while before != (now := sum(len(one.data) for one in functions)):
        before = now
        for one in functions:
            _follow(one)
            for call in one.calls:
                _follow_call(one, call, [other for other in functions if other.name == callee(call)])
    return functions


def _is_method(node: Node) -> bool:
    above = node.parent
    while above is not None and above.type == "template_declaration":
        above = above.parent
    return above is not None and above.type == "field_declaration_list"


def _declared(node: Node) -> Iterator[tuple[str, bool]]:
    """Names, and whether there is memory behind them; constant tables hold no data."""
    is_auto = text_of(node.child_by_field_name("type")) == "auto"
    is_const = any(n.type == "type_qualifier" and text_of(n) == "const" for n in node.children)
    for declarator in node.children_by_field_name("declarator") if node.type in _DECLARES else ():
        kinds = {part.type for part in syntax_nodes(declarator)} & _MEMORY
        is_table = is_const and kinds == {"array_declarator"} and node.type == "declaration"
        yield text_of(declared_name(declarator)), bool(kinds or is_auto) and not is_table


def _read_function(function: Node, shared: set[str]) -> FlowFunction:
    head = next((n for n in syntax_nodes(function) if n.type == "function_declarator"), None)
    own = FlowFunction(text_of(declared_name(head)), function, memory=set(shared))
    for node in syntax_nodes(function):
        at = node.start_byte
        for name, is_memory in _declared(node):
            own.memory |= {name} if is_memory else set()
            if node.type != "declaration":
                own.parameters.append(name)
                is_bound = any(n.type == "reference_declarator" for n in node.children)
                own.bound |= {name} if is_bound else set()
            else:
                own.declared.append((name, at))
        if node.type == "init_declarator":
            name = text_of(declared_name(node.child_by_field_name("declarator")))
            own.changes.append((name, node.child_by_field_name("value"), at))
        elif node.type == "assignment_expression":
            target = node.child_by_field_name("left")
            name = _changed_name(target)
            if name not in own.memory or (target is not None and target.type == "identifier"):
                own.changes.append((name, node.named_children[-1], at))
        elif node.type == "update_expression":
            own.changes.append((_changed_name(node), None, at))
        elif node.type in BRANCHES or is_logical(node):
            own.branches.append(node)
        elif node.type == "call_expression":
            own.calls.append(node)
    own.data |= own.bound
    return own


def is_logical(node: Node) -> bool:
    return node.type == "binary_expression" and text_of(node.child_by_field_name("operator")) in ("&&", "||")


def condition_of(branch: Node) -> Node | None:
    """What it is taken on; None: a declaration, or what no one asks."""
    found = branch.child_by_field_name("left" if is_logical(branch) else "condition")
    if found is not None and found.type == "condition_clause":
        found = found.child_by_field_name("value")
    return without_parentheses(found) if found is not None and found.type != "declaration" else None


def without_parentheses(node: Node) -> Node:
    while node.type == "parenthesized_expression" and len(node.named_children) == 1:
        node = node.named_children[0]
    return node


def _changed_name(target: Node | None) -> str:
    """The variable that an lvalue belongs to, or is reached through."""
    names = (n for n in syntax_nodes(target) if n.type == "identifier") if target is not None else iter(())
    return next((text_of(name) for name in names), "")


def _follow(own: FlowFunction) -> None:
    own.data |= {name for name, value, _ in own.changes if own.is_data(value)}
    decided = [branch for branch in own.branches if own.is_data(condition_of(branch))]
    for branch in decided:  # what is changed there and is there after it
        inside = {name for name, at in own.declared if _holds(branch, at)}
        own.data |= {name for name, _, at in own.changes if _holds(branch, at)} - inside
    for loop in (branch for branch in own.branches if branch.type in _LOOPS):
        left = (b for b in decided if b != loop and _holds(loop, b.start_byte))
        if any(part.type in _JUMPS for branch in left for part in syntax_nodes(branch)):
            own.data |= {name for name, _, at in own.changes if _holds(loop, at)}


def _holds(node: Node, at: int) -> bool:
    return node.start_byte <= at < node.end_byte


def _follow_call(own: FlowFunction, call: Node, called: list[FlowFunction]) -> None:
    """Data goes into its parameters, and out by what it is given the address of."""
    arguments = call.child_by_field_name("arguments")
    reads_data = own.is_data(call)
    for at, value in enumerate(arguments.named_children if arguments is not None else ()):
        for other in called if own.is_data(value) else ():
            other.data |= set(other.parameters[at : at + 1])
        is_bound = any(set(other.parameters[at : at + 1]) & other.bound for other in called)
        if reads_data and (is_bound or value.type == "pointer_expression"):
            own.data |= {_changed_name(value)}
