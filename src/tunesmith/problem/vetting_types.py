"""Types in C as far as pointers take: their layers of pointers and arrays, and whether a struct holds one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tunesmith.csource.syntax import declared_name, syntax_nodes, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

Layers = str  # from the outside: * a pointer, [ an array, s a struct that holds a pointer, ? nobody knows
_STRUCTS = ("struct_specifier", "union_specifier")
# Built-in functions that give back the pointer they take.
PASSED_ON = re.compile(r"to_(?:global|local|private)|__builtin_(?:assume_aligned|expect)")
NULL = re.compile(r"[()\s]*(?:0|NULL)[)\s]*")


class PointerTypes:
    """The types of a unit, and of expressions in it."""

    def __init__(self, roots: Sequence[Node]) -> None:
        self.typedefs: dict[str, Layers] = {}
        self.sized: dict[str, Node] = {}  # types that the unit defines
        self.fields: dict[str, Layers] = {}
        self.returns: dict[str, Layers] = {}
        self.takes: dict[str, list[Layers]] = {}
        self.scope: dict[str, Layers] = {}  # the function's under judgement, and the file's
        self.file: dict[str, Layers] = {}
        self.null = False  # some pointer is one to nothing
        for _ in range(2):  # a type may be used before what it holds is known
            for root in roots:
                self._read_types(root)
        for root in roots:
            self._read_functions(root)

    # -- what is declared ---------------------------------------------------------------------------

    def _read_types(self, root: Node) -> None:
        for node in syntax_nodes(root):
            if node.type == "type_definition":
                base = self.base_of(node)
                for declarator in node.children_by_field_name("declarator"):
                    name = name_in(declarator)
                    self.typedefs[name] = layers_of(declarator) + base
                    self.sized[name] = node
            elif node.type in _STRUCTS and node.child_by_field_name("body") is not None:
                name = text_of(node.child_by_field_name("name"))
                self.sized[name] = node
                self.typedefs[name] = self.struct_of(node)
            elif node.type == "field_declaration":
                for declarator in node.children_by_field_name("declarator"):
                    _note(self.fields, name_in(declarator), layers_of(declarator) + self.base_of(node))

    def struct_of(self, node: Node) -> Layers:
        inner = [n for n in syntax_nodes(node) if n.type == "field_declaration"]
        held = (
            layers_of(d) + self.base_of(one)
            for one in inner
            for d in one.children_by_field_name("declarator")
        )
        return "s" if any(set(each) & set("*s?") for each in held) else ""

    def _read_functions(self, root: Node) -> None:
        for node in syntax_nodes(root):
            if node.type == "function_declarator":
                outer, stars = node.parent, ""
                while outer is not None and outer.type == "pointer_declarator":
                    outer, stars = outer.parent, stars + "*"
                name = text_of(node.child_by_field_name("declarator"))
                if outer is None or outer.type not in ("function_definition", "declaration"):
                    continue
                self.returns[name] = stars + self.base_of(outer)
                self.takes[name] = [layers for _, layers in self.parameters(node)]
        for node in root.named_children:
            if node.type == "declaration":
                self.declare(node, self.file)

    def parameters(self, function: Node) -> Iterator[tuple[str, Layers]]:
        listed = function.child_by_field_name("parameters")
        for one in listed.named_children if listed is not None else ():
            if one.type == "parameter_declaration":
                declarator = one.child_by_field_name("declarator")
                layers = layers_of(declarator) + self.base_of(one)
                yield name_in(declarator), layers

    def base_of(self, node: Node) -> Layers:
        """Of the type that a declaration names."""
        kind = node.child_by_field_name("type")
        if kind is None:
            return ""
        if kind.type in _STRUCTS and kind.child_by_field_name("body") is not None:
            return self.struct_of(kind)
        name = kind.child_by_field_name("name") if kind.type in _STRUCTS else kind
        return self.typedefs.get(text_of(name), "")

    def declare(self, node: Node, into: dict[str, Layers]) -> None:
        for declarator in node.children_by_field_name("declarator"):
            if not any(n.type == "function_declarator" for n in syntax_nodes(declarator)):
                _note(into, name_in(declarator), layers_of(declarator) + self.base_of(node))

    # -- types --------------------------------------------------------------------------------------

    def described(self, node: Node) -> Layers:
        """Of a cast or a compound literal."""
        kind = node.child_by_field_name("type")
        if kind is None:
            return ""
        return layers_of(kind.child_by_field_name("declarator")) + self.base_of(kind)

    def type_of(self, node: Node) -> Layers:
        match node.type:
            case "identifier":
                return self.scope.get(text_of(node), "")
            case "parenthesized_expression" | "comma_expression":
                return self.type_of(node.named_children[-1]) if node.named_children else ""
            case "cast_expression" | "compound_literal_expression":
                return self.described(node)
            case "string_literal" | "concatenated_string":
                return "*"
            case "assignment_expression":
                return self._of(node, "left")
            case "update_expression":
                return self._of(node, "argument")
            case "conditional_expression":
                sides = [node.child_by_field_name(side) for side in ("consequence", "alternative")]
                known = [side for side in sides if side is not None and not NULL.fullmatch(text_of(side))]
                self.null |= len(known) < len(sides)
                types = [self.type_of(side) for side in known]
                return "" if not types else types[0] if len(types) == 1 else either_of(types[0], types[1])
            case "pointer_expression":
                inner = self._of(node, "argument")
                return "*" + inner if text_of(node).lstrip().startswith("&") else inner[1:]
            case "subscript_expression":
                whole, index = self._of(node, "argument"), self._of(node, "index")
                return whole[1:] if is_pointer(whole) or not is_pointer(index) else index[1:]
            case "field_expression":
                return self.fields.get(text_of(node.child_by_field_name("field")), "")
            case "call_expression":
                name = text_of(node.child_by_field_name("function"))
                listed = node.child_by_field_name("arguments")
                if PASSED_ON.fullmatch(name) and listed is not None and listed.named_children:
                    return self.type_of(listed.named_children[0])
                return self.returns.get(name, "")
            case "binary_expression":
                left, right = self._of(node, "left"), self._of(node, "right")
                match text_of(node.child_by_field_name("operator")):
                    case "+":
                        return left if may_be_pointer(left) else right
                    case "-":
                        return "" if is_pointer(right) else left
        return ""

    def _of(self, node: Node, field: str) -> Layers:
        inner = node.child_by_field_name(field)
        return self.type_of(inner) if inner is not None else ""


def layers_of(declarator: Node | None) -> Layers:
    """What stands nearest to the name is outermost."""
    found = ""
    while declarator is not None:
        kind = declarator.type
        found += "*" if "pointer_declarator" in kind else "[" if "array_declarator" in kind else ""
        inner = declarator.child_by_field_name("declarator")
        if inner is None and "parenthesized" in kind and declarator.named_children:
            inner = declarator.named_children[-1]
        declarator = inner
    return found[::-1]


def name_in(declarator: Node | None) -> str:
    """Also of a type or a field."""
    while declarator is not None and declarator.type not in ("type_identifier", "field_identifier"):
        if declarator.type == "identifier":
            break
        inner = declarator.child_by_field_name("declarator")
        if inner is None and declarator.named_children and declarator.type == "parenthesized_declarator":
            inner = declarator.named_children[-1]
        if inner is None:
            return text_of(declared_name(declarator))
        declarator = inner
    return text_of(declarator)


def _note(into: dict[str, Layers], name: str, layers: Layers) -> None:
    into[name] = either_of(into[name], layers) if name in into else layers


def either_of(one: Layers, other: Layers) -> Layers:
    """Where a name means two things; a pointer and an array are used alike."""
    if one.replace("[", "*") == other.replace("[", "*"):
        return one
    return "?" if set(one + other) & set("*[s?") else ""


def is_pointer(layers: Layers) -> bool:
    return layers[:1] in ("*", "[")


def may_be_pointer(layers: Layers) -> bool:
    return layers[:1] in ("*", "[", "?")


def holds_pointers(layers: Layers) -> bool:
    """Whether pointers lie where it points to."""
    return is_pointer(layers) and bool(set(layers[1:]) & set("*s?"))
