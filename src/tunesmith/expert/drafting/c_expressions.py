"""From the C expressions of a launch to the expression language of problem files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tunesmith.core.dtypes import TYPES
from tunesmith.core.expr import LIMIT, Expr, Undefined, unparse
from tunesmith.core.expr.nodes import (
    Arithmetic,
    ArithmeticOp,
    Call,
    Compare,
    CompareOp,
    If,
    Logic,
    Name,
    Neg,
    Node,
    Not,
    Num,
)
from tunesmith.csource.grammar import callee, syntax_nodes, syntax_tree, text_of
from tunesmith.expert.reading.element_types import element_type

if TYPE_CHECKING:
    from tree_sitter import Node as Tree

_DEEPEST = 60
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)[uUlLzZ]*")
_ARITHMETIC: Mapping[str, ArithmeticOp] = {"+": "+", "-": "-", "*": "*", "%": "%"}
_COMPARE: Mapping[str, CompareOp] = {"==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
# What projects call their own rounding-up division, without underscores and case.
_CEILDIV = frozenset({"ceildiv", "cdiv", "divup", "idivup", "divceil", "divroundup", "roundupdiv"})


class _NoTranslationError(Exception):
    pass


def translate(text: str, sizes: Mapping[str, str], constants: Mapping[str, str]) -> str | None:
    """The same expression in our language, or None where it has none.

    `sizes` maps host expressions to size names, `constants` host names to the C expressions they stand for.
    """
    try:
        return unparse(_Translation(sizes, constants).text(text, 0))
    except _NoTranslationError:
        return None


class _Translation:
    def __init__(self, sizes: Mapping[str, str], constants: Mapping[str, str]) -> None:
        self._sizes = sizes
        self._constants = constants

    def text(self, text: str, depth: int) -> Node:
        root = syntax_tree(f"int x = ({text});", "cuda")
        if not root.has_error and len(root.children) == 1:
            for tree in syntax_nodes(root):
                if tree.type == "init_declarator":
                    return self.node(tree.child_by_field_name("value"), depth)
        raise _NoTranslationError

    def node(self, tree: Tree | None, depth: int) -> Node:
        if tree is None or depth > _DEEPEST:
            raise _NoTranslationError
        text = text_of(tree)
        if text in self._sizes:
            return Name(self._sizes[text])
        depth += 1
        match tree.type:
            case "parenthesized_expression" if len(tree.named_children) == 1:
                return self.node(tree.named_children[0], depth)
            case "number_literal":
                return _number(text)
            case "identifier" if text in self._constants:
                return self.text(self._constants[text], depth)
            case "binary_expression":
                return self.binary(tree, depth)
            case "unary_expression":
                return self.unary(tree, depth)
            case "conditional_expression":
                parts = (tree.child_by_field_name(f) for f in ("condition", "consequence", "alternative"))
                return If(*(self.node(part, depth) for part in parts))
            case "cast_expression" if _is_integer(text_of(tree.child_by_field_name("type"))):
                return self.node(tree.child_by_field_name("value"), depth)
            case "call_expression":
                return self.call(tree, depth)
            case "sizeof_expression":
                return _size_of(text)
            case "field_expression" if text_of(tree.child_by_field_name("field")) == "multiProcessorCount":
                return Name("device.sms")
        raise _NoTranslationError

    def binary(self, tree: Tree, depth: int) -> Node:
        left = self.node(tree.child_by_field_name("left"), depth)
        right = self.node(tree.child_by_field_name("right"), depth)
        operator = text_of(tree.child_by_field_name("operator"))
        if operator in _ARITHMETIC:
            return _folded(Arithmetic(_ARITHMETIC[operator], left, right))
        if operator == "/":
            return _divided(left, right)
        if operator in _COMPARE:
            return Compare(left, ((_COMPARE[operator], right),))
        if operator in ("&&", "||"):
            return Logic("and" if operator == "&&" else "or", (left, right))
        if operator in ("<<", ">>") and isinstance(right, Num) and 0 <= right.value <= 30:
            return _folded(Arithmetic("*" if operator == "<<" else "//", left, Num(1 << right.value)))
        raise _NoTranslationError

    def unary(self, tree: Tree, depth: int) -> Node:
        operand = self.node(tree.child_by_field_name("argument"), depth)
        match text_of(tree.child_by_field_name("operator")):
            case "+":
                return operand
            case "-":
                return Num(-operand.value) if isinstance(operand, Num) else Neg(operand)
            case "!":
                return Not(operand)
        raise _NoTranslationError

    def call(self, tree: Tree, depth: int) -> Node:
        name = callee(tree) or ""
        listed = tree.child_by_field_name("arguments")
        args = listed.named_children if listed is not None else []
        if len(args) == 1 and (_is_integer(name) or _casts_to_integer(tree, name)):
            return self.node(args[0], depth)
        if len(args) == 2 and name.lower() in ("min", "max"):
            parts = tuple(self.node(argument, depth) for argument in args)
            return Call("min" if name.lower() == "min" else "max", parts)
        if len(args) == 2 and name.lower().replace("_", "") in _CEILDIV:
            return Call("ceildiv", tuple(self.node(a, depth) for a in args))
        raise _NoTranslationError


def _number(text: str) -> Num:
    match = _INTEGER.fullmatch(text.replace("'", ""))
    if match is None:
        raise _NoTranslationError
    digits = match[1]
    octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
    try:
        value = int(digits, 8 if octal else 0)
    except ValueError:
        raise _NoTranslationError from None
    if value > LIMIT:
        raise _NoTranslationError
    return Num(value)


def _is_integer(type_text: str) -> bool:
    element, vector = element_type(type_text.removeprefix("const ").strip(), "cuda")
    return element is not None and vector == 1 and TYPES[element].kind != "float"


def _casts_to_integer(call: Tree, name: str) -> bool:
    text = text_of(call.child_by_field_name("function"))
    return name == "static_cast" and _is_integer(text[text.find("<") + 1 : text.rfind(">")])


def _size_of(text: str) -> Num:
    element, vector = element_type(text.removeprefix("sizeof").strip(" ()"), "cuda")
    if element is None:
        raise _NoTranslationError
    return Num(TYPES[element].bytes * vector)


def _folded(node: Arithmetic) -> Node:
    if isinstance(node.left, Num) and isinstance(node.right, Num):
        try:
            return Num(Expr("", node).evaluate({}))
        except Undefined:
            raise _NoTranslationError from None
    return node


def _divided(left: Node, right: Node) -> Node:
    """`(n + 255) / 256` and `(n + b - 1) / b` say ceildiv; any other division rounds down."""
    terms = _terms(left, 1)
    constant = sum(sign * node.value for sign, node in terms if isinstance(node, Num))
    others = [(sign, node) for sign, node in terms if not isinstance(node, Num)]
    if isinstance(right, Num):
        rounds_up = right.value > 1 and constant == right.value - 1
    else:
        rounds_up = constant == -1 and (1, right) in others
        if rounds_up:
            others.remove((1, right))
    if not rounds_up or not others:
        return _folded(Arithmetic("//", left, right))
    sign, total = others[0]
    if sign < 0:
        total = Neg(total)
    for sign, node in others[1:]:
        total = Arithmetic("+" if sign > 0 else "-", total, node)
    return Call("ceildiv", (total, right))


def _terms(node: Node, sign: int) -> list[tuple[int, Node]]:
    if isinstance(node, Arithmetic) and node.op in ("+", "-"):
        return _terms(node.left, sign) + _terms(node.right, sign if node.op == "+" else -sign)
    return [(sign, node)]
