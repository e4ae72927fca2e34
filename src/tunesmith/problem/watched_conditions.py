"""Which values of a kernel come from its arrays: by assignments, calls, and branches taken on such values, on
the syntax tree and whatever the order. Where that cannot be told, a value counts as data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tunesmith.base.text import truncate_text
from tunesmith.problem.vetting.device_words import split_word_set
from tunesmith.source.preprocess import preprocess
from tunesmith.source.reader.grammar import (
    GrammarText,
    callee_name,
    declared_name,
    grammar_text,
    known_names,
    syntax_nodes,
    syntax_tree,
    text_of,
)
from tunesmith.source.tree import Language, Unreadable, read_number

if TYPE_CHECKING:
    from tree_sitter import Node

_LOOPS = split_word_set("for_statement while_statement do_statement for_range_loop")
BRANCHES = _LOOPS | split_word_set("if_statement switch_statement conditional_expression")
_JUMPS = split_word_set("break_statement continue_statement goto_statement")
_DECLARES = split_word_set("declaration parameter_declaration optional_parameter_declaration")
_MEMORY = split_word_set("pointer_declarator array_declarator reference_declarator")
NEVER_RUN = split_word_set(
    "sizeof_expression alignof_expression decltype template_argument_list type_descriptor"
)
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
                is_call = node.type == "call_expression" and not (callee_name(node) or "").endswith("_cast")
                reads = is_read or is_arrow or is_call or node.type == "pointer_expression"
                pending += [(part, reads) for part in below]
        return False


def trace_data(root: Node) -> list[FlowFunction]:
    """All functions of a text but methods, with what in them is data."""
    declared = (pair for node in root.named_children for pair in _declared_variables(node))
    shared = {name for name, is_memory in declared if is_memory}
    nodes = [node for node in syntax_nodes(root) if node.type == "function_definition"]
    functions = [_read_function(node, shared) for node in nodes if not _is_method(node)]
    before = -1
    while before != (now := sum(len(one.data) for one in functions)):
        before = now
        for one in functions:
            _propagate_data(one)
            for call in one.calls:
                _follow_call(one, call, [other for other in functions if other.name == callee_name(call)])
    return functions


def _is_method(node: Node) -> bool:
    above = node.parent
    while above is not None and above.type == "template_declaration":
        above = above.parent
    return above is not None and above.type == "field_declaration_list"


def _declared_variables(node: Node) -> Iterator[tuple[str, bool]]:
    """Names, and whether there is memory behind them; constant tables hold no data."""
    is_auto = text_of(node.child_by_field_name("type")) == "auto"
    is_const = any(n.type == "type_qualifier" and text_of(n) == "const" for n in node.children)
    for declarator in node.children_by_field_name("declarator") if node.type in _DECLARES else ():
        kinds = {part.type for part in syntax_nodes(declarator)} & _MEMORY
        is_table = is_const and kinds == {"array_declarator"} and node.type == "declaration"
        yield text_of(declared_name(declarator)), bool(kinds or is_auto) and not is_table


def _read_function(function: Node, shared: set[str]) -> FlowFunction:
    head = next((n for n in syntax_nodes(function) if n.type == "function_declarator"), None)
    flow = FlowFunction(text_of(declared_name(head)), function, memory=set(shared))
    for node in syntax_nodes(function):
        at = node.start_byte
        for name, is_memory in _declared_variables(node):
            flow.memory |= {name} if is_memory else set()
            if node.type != "declaration":
                flow.parameters.append(name)
                is_bound = any(n.type == "reference_declarator" for n in node.children)
                flow.bound |= {name} if is_bound else set()
            else:
                flow.declared.append((name, at))
        if node.type == "init_declarator":
            name = text_of(declared_name(node.child_by_field_name("declarator")))
            flow.changes.append((name, node.child_by_field_name("value"), at))
        elif node.type == "assignment_expression":
            target = node.child_by_field_name("left")
            name = _changed_name(target)
            if name not in flow.memory or (target is not None and target.type == "identifier"):
                flow.changes.append((name, node.named_children[-1], at))
        elif node.type == "update_expression":
            flow.changes.append((_changed_name(node), None, at))
        elif node.type in BRANCHES or is_logical(node):
            flow.branches.append(node)
        elif node.type == "call_expression":
            flow.calls.append(node)
    flow.data |= flow.bound
    return flow


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


def _propagate_data(flow: FlowFunction) -> None:
    flow.data |= {name for name, value, _ in flow.changes if flow.is_data(value)}
    decided = [branch for branch in flow.branches if flow.is_data(condition_of(branch))]
    for branch in decided:  # what is changed there and is there after it
        inside = {name for name, at in flow.declared if _is_inside_node(branch, at)}
        flow.data |= {name for name, _, at in flow.changes if _is_inside_node(branch, at)} - inside
    for loop in (branch for branch in flow.branches if branch.type in _LOOPS):
        left = (b for b in decided if b != loop and _is_inside_node(loop, b.start_byte))
        if any(part.type in _JUMPS for branch in left for part in syntax_nodes(branch)):
            flow.data |= {name for name, _, at in flow.changes if _is_inside_node(loop, at)}


def _is_inside_node(node: Node, at: int) -> bool:
    return node.start_byte <= at < node.end_byte


def _follow_call(flow: FlowFunction, call: Node, called: list[FlowFunction]) -> None:
    """Data goes into its parameters, and out by what it is given the address of."""
    arguments = call.child_by_field_name("arguments")
    reads_data = flow.is_data(call)
    for at, value in enumerate(arguments.named_children if arguments is not None else ()):
        for other in called if flow.is_data(value) else ():
            other.data |= set(other.parameters[at : at + 1])
        is_bound = any(set(other.parameters[at : at + 1]) & other.bound for other in called)
        if reads_data and (is_bound or value.type == "pointer_expression"):
            flow.data |= {_changed_name(value)}


# -- The conditions of a kernel on its data, and a copy of its text that marks which sides were taken.
#
# Watched are comparisons, logical operators and branches whose outcome may depend on what an array holds. The
# copy is for checks alone: marks go to an array that kernels get as their first argument and hand on.


MARKS = "tm_marks"  # the argument; two numbers for each condition: it was false, it was true
_MARK = "tm_mark"
_COMPARISONS = split_word_set("== != < > <= >=")
_RELATIONS = re.compile(
    r"is(?:nan|inf|finite|normal|equal|notequal|greater(?:equal)?|less(?:equal|greater)?|(?:un)?ordered)"
    r"|any|all|signbit|__h(?:eq|ne|lt|gt|le|ge)u?|__h(?:isnan|isinf)"
)
_UNASKED = NEVER_RUN | split_word_set("static_assert_declaration array_declarator")
_LINE = re.compile(r"[ \t]*#[ \t]*line[ \t]+(\d{1,9})")
_USUAL = (0.0, 1.0, 2.0)  # numbers that inputs have anyway
_HEAD = f" {_MARK}(%sint *m, int n, %s v) {{ "
_SCALAR = _HEAD + "m[2 * n + (v != 0)] = 1; return v; }\n"
_VECTOR = _HEAD + "if (any(v)) m[2 * n + 1] = 1; if (!all(v)) m[2 * n] = 1; return v; }\n"
_OVERLOAD, _GLOBAL = " __attribute__((overloadable))", "__global "
_VECTORS = [f"{kind}{n}" for kind in ("char", "short", "int", "long") for n in (2, 3, 4, 8, 16)]
_OPENCL = f"int{_OVERLOAD}{_SCALAR % (_GLOBAL, 'int')}" + "".join(
    f"{kind}{_OVERLOAD}{_VECTOR % (_GLOBAL, kind)}" for kind in _VECTORS
)
_CPP = f"static __device__ inline bool{_SCALAR % ('', 'bool')}"


@dataclass(frozen=True)
class DataCondition:
    line: int
    text: str
    numbers: tuple[float, ...]  # in it


@dataclass(frozen=True)
class WatchedText:
    source: str
    plain: str  # the same without marks
    conditions: tuple[DataCondition, ...]
    functions: frozenset[str]  # that take the marks
    numbers: tuple[float, ...]  # in all of it


def plain_entry(entry: str) -> str:
    """The function's own name, without namespaces and template arguments."""
    return re.sub(r"<.*", "", entry).split("::")[-1].strip()


def watch_conditions(
    text: str,
    language: Language,
    defines: Sequence[tuple[str, str]] = (),
    headers: Sequence[tuple[str, str]] = (),
) -> WatchedText | str:
    """Or why that cannot be done."""
    if _MARK in text:
        return f"names that begin with {_MARK} are taken"
    try:
        prepared = preprocess(text, language, defines, headers)
    except Unreadable as error:
        return f"line {error.line}: {error.reason}"
    if fault := next(iter(prepared.problems), prepared.parse_obstacle):
        return fault
    tokens = prepared.tokens
    place = grammar_text(tokens, language, known_names(tokens, language))
    root = syntax_tree(place.text, language)
    if root.has_error:
        bad = next(n for n in syntax_nodes(root) if n.type == "ERROR" or n.is_missing)
        return f"line {place.line(bad)} could not be read"
    marking = _ConditionMarker(place, text)
    functions = trace_data(root)
    for function in functions:
        marking.mark_conditions(function)
    marking.hand_on(root, functions, "__global " if language == "opencl" else "")
    includes = "".join(f"#include {name}\n" for name in prepared.includes)
    return WatchedText(
        includes + (_OPENCL if language == "opencl" else _CPP) + marking.marked_text(),
        includes + place.lay_out({}, {}),
        tuple(marking.conditions),
        frozenset(marking.functions),
        tuple(number for number in _literal_numbers(root) if number not in _USUAL),
    )


def _literal_numbers(root: Node) -> tuple[float, ...]:
    """But for those of an index."""
    pending, values = [root], list[float | None]()
    while pending:
        node = pending.pop()
        if node.type in ("number_literal", "char_literal"):
            values.append(read_number(text_of(node)))
        pending += reversed(node.named_children[: 1 if node.type == "subscript_expression" else None])
    return tuple(dict.fromkeys(float(v) for v in values if v is not None and abs(v) < 1e300))


class _ConditionMarker:
    def __init__(self, place: GrammarText, text: str) -> None:
        self._place = place
        self._before, self._behind = dict[int, str](), dict[int, str]()  # by tokens
        self._counted = [
            (n, int(m[1])) for n, line in enumerate(text.split("\n"), 1) if (m := _LINE.match(line))
        ]
        self.conditions: list[DataCondition] = []
        self.functions: set[str] = set()

    def marked_text(self) -> str:
        return self._place.lay_out(self._before, self._behind)

    def mark_conditions(self, function: FlowFunction) -> None:
        asked = {part.id for node in syntax_nodes(function.node) for part in _asked_by(node)}
        pending = [function.node]
        while pending:
            node = pending.pop()
            if (_is_condition(node) or node.id in asked) and function.is_data(node):
                self.functions.add(function.name)
                self._mark(node, "" if _is_condition(node) else " != 0")
            pending += reversed([part for part in node.named_children if part.type not in _UNASKED])

    def _mark(self, node: Node, behind: str) -> None:
        """Of two that begin or end with the same word the one around the other comes first."""
        first, last = self._place.at(node.start_byte), self._place.at(node.end_byte - 1)
        self._before[first] = self._before.get(first, "") + f"{_MARK}({MARKS}, {len(self.conditions)}, (("
        self._behind[last] = f"){behind}))" + self._behind.get(last, "")
        line = self._place.line(node)
        at, says = max((one for one in self._counted if one[0] < line), default=(0, 1))
        text = truncate_text(" ".join(self._place.written(node).split()), 80)
        self.conditions.append(DataCondition(line - at + says - 1, text, _literal_numbers(node)))

    def hand_on(self, root: Node, functions: Sequence[FlowFunction], space: str) -> None:
        """The marks to every function that needs them, from whoever calls it."""
        calls = [(function.name, callee_name(call)) for function in functions for call in function.calls]
        while new := {name for name, called in calls if called in self.functions} - self.functions:
            self.functions |= new
        for node in syntax_nodes(root):
            is_call = node.type == "call_expression"
            name = callee_name(node) if is_call else text_of(node.child_by_field_name("declarator"))
            given = node.child_by_field_name("arguments" if is_call else "parameters")
            if given is None or name not in self.functions or node.type == "lambda_expression":
                continue
            at, is_void = self._place.at(given.start_byte), text_of(given) == "(void)"
            comma = ", " if given.named_children and not is_void else ""
            words = (MARKS if is_call else f"{space}int *{MARKS}") + comma + ("/*" if is_void else "")
            self._behind[at] = words + self._behind.get(at, "")
            self._behind[at + 1] = "*/" * is_void + self._behind.get(at + 1, "")


def _is_condition(node: Node) -> bool:
    if node.type == "binary_expression":
        return is_logical(node) or text_of(node.child_by_field_name("operator")) in _COMPARISONS
    return node.type == "call_expression" and _RELATIONS.fullmatch(callee_name(node) or "") is not None


def _asked_by(node: Node) -> Iterator[Node]:
    """What is asked for its truth there and is no comparison: `if (found)`."""
    asked = [condition_of(node)] if node.type in BRANCHES and node.type != "switch_statement" else []
    if is_logical(node):
        asked = [node.child_by_field_name("left"), node.child_by_field_name("right")]
    elif node.type == "unary_expression" and text_of(node.child_by_field_name("operator")) == "!":
        asked = [node.child_by_field_name("argument")]
    bare = [without_parentheses(part) for part in asked if part is not None]
    yield from (part for part in bare if not _is_condition(part) and part.type != "unary_expression")
