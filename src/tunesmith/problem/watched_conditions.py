"""The conditions of a kernel on its data, and a copy of its text that marks which sides of each were taken.

Watched are comparisons, logical operators and branches whose outcome may depend on what an array holds. The
copy is for checks alone: marks go to an array that kernels get as their first argument and hand on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tunesmith.csource.grammar import GrammarText, grammar_text, known_names
from tunesmith.csource.lex import Token, layout, obstacle, read_number
from tunesmith.csource.nodes import Language, Unreadable
from tunesmith.csource.preprocess import preprocess
from tunesmith.csource.syntax import callee, syntax_nodes, syntax_tree, text_of
from tunesmith.problem import data_flow as flow
from tunesmith.problem.device_words import listed
from tunesmith.text import cut

if TYPE_CHECKING:
    from tree_sitter import Node

MARKS = "tm_marks"  # the argument; two numbers for each condition: it was false, it was true
_MARK = "tm_mark"
_COMPARISONS = listed("== != < > <= >=")
_RELATIONS = re.compile(
    r"is(?:nan|inf|finite|normal|equal|notequal|greater(?:equal)?|less(?:equal|greater)?|(?:un)?ordered)"
    r"|any|all|signbit|__h(?:eq|ne|lt|gt|le|ge)u?|__h(?:isnan|isinf)"
)
_UNASKED = flow.NEVER_RUN | listed("static_assert_declaration array_declarator")
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
    if fault := next(iter(prepared.problems), obstacle(prepared.tokens)):
        return fault
    tokens = prepared.tokens
    place = grammar_text(tokens, language, known_names(tokens, language))
    root = syntax_tree(place.text, language)
    if root.has_error:
        bad = next(n for n in syntax_nodes(root) if n.type == "ERROR" or n.is_missing)
        return f"line {place.line(bad)} could not be read"
    marking = _ConditionMarker(place, text)
    functions = flow.trace_data(root)
    for function in functions:
        marking.mark_conditions(function)
    marking.hand_on(root, functions, "__global " if language == "opencl" else "")
    includes = "".join(f"#include {name}\n" for name in prepared.includes)
    return WatchedText(
        includes + (_OPENCL if language == "opencl" else _CPP) + layout(marking.tokens()),
        includes + layout(tokens),
        tuple(marking.conditions),
        frozenset(marking.functions),
        tuple(number for number in _numbers(root) if number not in _USUAL),
    )


def _numbers(root: Node) -> tuple[float, ...]:
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

    def tokens(self) -> Iterator[Token]:
        for at, token in enumerate(self._place.tokens):
            before, behind = self._before.get(at, ""), self._behind.get(at, "")
            yield replace(token, text=f"{before}{token.text}{behind}") if before or behind else token

    def mark_conditions(self, function: flow.FlowFunction) -> None:
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
        text = cut(" ".join(self._place.written(node).split()), 80)
        self.conditions.append(DataCondition(line - at + says - 1, text, _numbers(node)))

    def hand_on(self, root: Node, functions: Sequence[flow.FlowFunction], space: str) -> None:
        """The marks to every function that needs them, from whoever calls it."""
        calls = [(function.name, callee(call)) for function in functions for call in function.calls]
        while new := {name for name, called in calls if called in self.functions} - self.functions:
            self.functions |= new
        for node in syntax_nodes(root):
            is_call = node.type == "call_expression"
            name = callee(node) if is_call else text_of(node.child_by_field_name("declarator"))
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
        return flow.is_logical(node) or text_of(node.child_by_field_name("operator")) in _COMPARISONS
    return node.type == "call_expression" and _RELATIONS.fullmatch(callee(node) or "") is not None


def _asked_by(node: Node) -> Iterator[Node]:
    """What is asked for its truth there and is no comparison: `if (found)`."""
    asked = (
        [flow.condition_of(node)] if node.type in flow.BRANCHES and node.type != "switch_statement" else []
    )
    if flow.is_logical(node):
        asked = [node.child_by_field_name("left"), node.child_by_field_name("right")]
    elif node.type == "unary_expression" and text_of(node.child_by_field_name("operator")) == "!":
        asked = [node.child_by_field_name("argument")]
    bare = [flow.without_parentheses(part) for part in asked if part is not None]
    yield from (part for part in bare if not _is_condition(part) and part.type != "unary_expression")
