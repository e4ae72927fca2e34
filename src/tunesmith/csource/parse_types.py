"""Types and declarators from tree-sitter's nodes: what stands before a declared name, and around it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tunesmith.csource import nodes as c
from tunesmith.csource.grammar import OPENCL_SPACES, GrammarText
from tunesmith.csource.types import canonical

if TYPE_CHECKING:
    from tree_sitter import Node

_TYPE_NODES = frozenset({
    "primitive_type", "sized_type_specifier", "type_identifier", "template_type", "qualified_identifier",
    "placeholder_type_specifier", "dependent_type", "struct_specifier", "decltype", "auto",
})  # fmt: skip
_RESTRICT = frozenset({"restrict", "__restrict__", "__restrict"})


@dataclass(frozen=True)
class Specifiers:
    """What stands before the declarators of a declaration."""

    type: c.Type
    words: frozenset[str]  # static, extern, constexpr, __shared__, __constant__ ...
    align: Node | None = None


@dataclass(frozen=True)
class Declarator:
    name: str
    type: c.Type
    dims: tuple[Node | None, ...] = ()  # None: []
    arguments: Node | None = None  # of `float4 v(a, b)` where the grammar sees a function


class TypeReader:
    def __init__(self, place: GrammarText) -> None:
        self.place = place
        self.language = place.language

    def declared(self, node: Node) -> Declarator:
        """A parameter's name and type."""
        return self.declarator(node.child_by_field_name("declarator"), self.specifiers(node).type)

    def specifiers(self, node: Node) -> Specifiers:
        """Of a declaration, parameter, type descriptor or function definition."""
        words: set[str] = set()
        base, space, const, volatile = "", "", False, False
        align: Node | None = None
        declarators = node.children_by_field_name("declarator")
        for child in node.children:
            if child in declarators or child.type in ("compound_statement", ";"):
                break
            if child.type == "type_qualifier" and child.named_children:
                align = child.named_children[0]  # alignas
                align = align.named_children[0] if align.named_children else None
            elif child.type == "alignas_qualifier":
                align = child.named_children[0] if child.named_children else None
            elif child.type in ("type_qualifier", "storage_class_specifier"):
                word = (child.text or b"").decode()
                if child.start_byte in self.place.inserted:
                    continue
                const, volatile = const or word == "const", volatile or word == "volatile"
                if self.language == "opencl" and word in OPENCL_SPACES:
                    space = OPENCL_SPACES[word]
                else:
                    words.add(word)
            elif child.type in _TYPE_NODES:
                base, more = self._base(child)
                const, volatile = const or "const" in more, volatile or "volatile" in more
            elif child.is_named and child.type not in ("attribute_specifier", "attribute_declaration"):
                raise self.place.trouble(child, "", " in a declaration is not understood")
        if not base:
            raise c.Unreadable("a declaration without a type that is understood", self.place.line(node))
        type_ = c.Type(canonical(base, self.language), const=const, volatile=volatile, space=space)
        return Specifiers(type_, frozenset(words), align)

    def _base(self, node: Node) -> tuple[str, set[str]]:
        words = [word.text for word in self.place.words(node.start_byte, node.end_byte)]
        if node.type in ("sized_type_specifier", "primitive_type"):
            qualifiers = {"const", "volatile"}
            return " ".join(w for w in words if w not in qualifiers), qualifiers & set(words)
        if node.type == "struct_specifier" and node.child_by_field_name("body") is not None:
            raise c.Unreadable("a struct is defined inside a declaration", self.place.line(node))
        return self.place.short(node), set()

    def type_of(self, node: Node) -> c.Type:
        """Of a `type_descriptor`: `const uint4 *`."""
        return self.declared(node).type

    def declarator(self, node: Node | None, type_: c.Type, depth: int = 0) -> Declarator:
        """What a declarator makes of the type before it; the name is "" where there is none."""
        if depth > c.MAX_DEPTH:
            raise c.TooDeep
        if node is None:
            return Declarator("", type_)
        inner = node.child_by_field_name("declarator")
        if inner is None and node.named_children and node.type in (
            "parenthesized_declarator", "reference_declarator", "abstract_reference_declarator",
            "attributed_declarator",
        ):  # fmt: skip
            inner = node.named_children[-1]
        match node.type:
            case "identifier" | "type_identifier" | "field_identifier":
                return Declarator((node.text or b"").decode(), type_)
            case "pointer_declarator" | "abstract_pointer_declarator":
                restrict = any(
                    (part.text or b"").decode() in _RESTRICT for part in node.children if part != inner
                )
                type_ = replace(type_, pointers=type_.pointers + 1, restrict=type_.restrict or restrict)
                return self.declarator(inner, type_, depth + 1)
            case "reference_declarator" | "abstract_reference_declarator":
                return self.declarator(inner, replace(type_, reference=True), depth + 1)
            case "array_declarator" | "abstract_array_declarator":
                found = self.declarator(inner, type_, depth + 1)
                if inner is not None and inner.type == "parenthesized_declarator":
                    if not found.type.reference:
                        raise c.Unreadable("a pointer to an array is not understood", self.place.line(node))
                    # A reference to an array is used as a pointer to its elements.
                    return replace(found, type=replace(type_, pointers=type_.pointers + 1))
                return replace(found, dims=(*found.dims, node.child_by_field_name("size")))
            case "parenthesized_declarator" | "attributed_declarator":
                return self.declarator(inner, type_, depth + 1)
            case "function_declarator":
                found = self.declarator(inner, type_, depth + 1)
                return replace(found, arguments=node.child_by_field_name("parameters"))
        raise self.place.trouble(node, "", " as a declared name is not understood")


def plain_value(type_: c.Type) -> c.Type:
    """`const` says nothing about a converted value; of what a pointer points to it does."""
    return type_ if type_.is_pointer else replace(type_, const=False)
