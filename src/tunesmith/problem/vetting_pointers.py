"""Pointers in C that may run on the host's CPU: none is made of a number, and none becomes one.

A pointer comes from an argument, an array or `&`, by steps and by casts of one to another. Of its bits only
the lowest are asked for, where an alignment is tested; what is prefetched may be anywhere. C converts
silently as well: what is initialised, assigned, handed over and returned is judged like a cast.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tunesmith.csource.grammar import GrammarText
from tunesmith.csource.syntax import is_field, syntax_nodes, text_of
from tunesmith.problem.device_words import Refusal
from tunesmith.problem.vetting_types import (
    NULL,
    PASSED_ON,
    Layers,
    PointerTypes,
    either_of,
    holds_pointers,
    is_pointer,
    layers_of,
    may_be_pointer,
)

if TYPE_CHECKING:
    from tree_sitter import Node

# Built-in functions that take pointers.
_TAKE = re.compile(
    r"v(?:load|store)\w*|atom(?:ic)?_\w+|async_work_group_\w+|wait_group_events|prefetch|fract|frexp|modf|remquo"
    r"|sincos|lgamma_r|get_fence|sub_group_\w+|(?:read|write)_image\w+|__builtin_(?:prefetch|nontemporal_\w+)"
)
_PREFETCHES = ("prefetch", "__builtin_prefetch")
_AROUND = ("parenthesized_expression", "unary_expression")
FROM_ARRAY = "start from an argument or an array, and index it"


def _operator(node: Node) -> str:
    return text_of(node.child_by_field_name("operator")) if node.type == "binary_expression" else ""


class PointerJudge(PointerTypes):
    def __init__(self, parts: Sequence[tuple[GrammarText, Node]], kernels: frozenset[str]) -> None:
        super().__init__([root for _, root in parts])
        self.parts, self.kernels = parts, kernels
        self.distances: list[Refusal] = []

    # -- judgement ----------------------------------------------------------------------------------

    def judge(self) -> None:
        """Raises Refusal."""
        for place, root in self.parts:
            self._unit(place, root)
        if self.null and self.distances:
            raise self.distances[0]

    def _unit(self, place: GrammarText, root: Node) -> None:
        self.scope = self.file
        for node in root.named_children:
            if node.type != "function_definition":
                self._judge(place, node, "")
                continue
            own = dict(self.file)
            given: Layers = ""
            for inner in syntax_nodes(node):
                if inner.type == "function_declarator":
                    name = text_of(inner.child_by_field_name("declarator"))
                    given = self.returns.get(name, "")
                    for called, layers in self.parameters(inner):
                        self._kernel(place, inner, layers)
                        own[called] = layers
            local: dict[str, Layers] = {}
            for inner in syntax_nodes(node):
                if inner.type == "declaration":
                    self.declare(inner, local)
            for called, layers in local.items():
                parameters = {called for called, _ in self._all_parameters(node)}
                own[called] = either_of(own[called], layers) if called in parameters else layers
            self.scope = own
            self._judge(place, node, given)

    def _all_parameters(self, node: Node) -> Iterator[tuple[str, Layers]]:
        for inner in syntax_nodes(node):
            if inner.type == "function_declarator":
                yield from self.parameters(inner)

    def _kernel(self, place: GrammarText, function: Node, layers: Layers) -> None:
        name = text_of(function.child_by_field_name("declarator"))
        if name in self.kernels and set(layers[1:]) & set("*s?"):
            words = f"an argument of {name} holds pointers, which are numbers there; {FROM_ARRAY}"
            raise Refusal("pointer", place.line(function), words)

    def _judge(self, place: GrammarText, root: Node, given: Layers) -> None:
        for node in syntax_nodes(root):
            match node.type:
                case "cast_expression":
                    self._cast(place, node)
                case "init_declarator":
                    self._initialised(place, node)
                case "assignment_expression":
                    self._assigned(place, node)
                case "call_expression":
                    self._called(place, node)
                case "return_statement" if node.named_children:
                    self._moved(place, node.named_children[0], given, node)
                case "compound_literal_expression" if set(self.described(node)) & set("*s?"):
                    raise self._refusal(place, node, "fills pointers from a list")
                case "union_specifier" if self.struct_of(node):
                    words = "a union makes numbers of pointers; leave the pointer out of it"
                    raise Refusal("pointer", place.line(node), words)
                case "binary_expression" if text_of(node.child_by_field_name("operator")) == "-":
                    sides = [node.child_by_field_name(side) for side in ("left", "right")]
                    if all(side is not None and is_pointer(self.type_of(side)) for side in sides):
                        what = "is the distance from a pointer to another, and one here points to nothing"
                        self.distances.append(self._refusal(place, node, what))

    def _refusal(self, place: GrammarText, node: Node, what: str) -> Refusal:
        shown = " ".join(place.written(node).split())
        return Refusal("pointer", place.line(node), f"`{shown[:60]}` {what}; {FROM_ARRAY}")

    def _cast(self, place: GrammarText, node: Node) -> None:
        value = node.child_by_field_name("value")
        if value is None or self._is_prefetched(node):
            return
        target, own = self.described(node), self.type_of(value)
        if is_pointer(target):
            if holds_pointers(target) or holds_pointers(own):
                raise self._refusal(place, node, "reads or writes a pointer as something else")
            self._moved(place, value, target, node)
        elif text_of(node.child_by_field_name("type")).split()[-1:] != ["void"]:
            parts = [value] if own else list(_parts(value))
            if any(may_be_pointer(self.type_of(part)) for part in parts) and not self._tests_alignment(node):
                raise self._refusal(
                    place, node, "makes a number of a pointer, of which only `& 15` may be asked"
                )

    def _initialised(self, place: GrammarText, node: Node) -> None:
        declarator, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        outer = node.parent
        if declarator is None or value is None or outer is None:
            return
        own = layers_of(declarator) + self.base_of(outer)
        if value.type == "initializer_list":
            self._listed(place, value, own.lstrip("["))
        elif not own.startswith("["):
            self._moved(place, value, own, node)

    def _listed(self, place: GrammarText, node: Node, own: Layers) -> None:
        if own[:1] in ("s", "?"):
            raise self._refusal(place, node, "fills a struct that holds pointers; assign to its fields")
        for part in node.named_children:
            value = part.child_by_field_name("value") if part.type == "initializer_pair" else part
            if value is None:
                continue
            if value.type == "initializer_list":
                self._listed(place, value, own)
            else:
                self._moved(place, value, own, value)

    def _assigned(self, place: GrammarText, node: Node) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return
        if text_of(node.child_by_field_name("operator")) == "=":
            self._moved(place, right, self.type_of(left), node)
        elif may_be_pointer(self.type_of(right)):
            raise self._refusal(place, node, "makes a number of a pointer")

    def _called(self, place: GrammarText, node: Node) -> None:
        name = text_of(node.child_by_field_name("function"))
        listed = node.child_by_field_name("arguments")
        values = [n for n in listed.named_children if n.type != "comment"] if listed is not None else []
        if name in self.takes:
            for value, own in zip(values, self.takes[name], strict=False):
                self._moved(place, value, own, node)
        else:
            for value in values:
                own = self.type_of(value)
                takes = bool(_TAKE.fullmatch(name) or PASSED_ON.fullmatch(name))
                if may_be_pointer(own) and (not takes or holds_pointers(own)):
                    raise self._refusal(place, node, "takes a pointer for something else")

    def _moved(self, place: GrammarText, value: Node, target: Layers, node: Node) -> None:
        """A value that becomes one of this type, said or not."""
        if value.type == "initializer_list":
            return
        own = self.type_of(value)
        if is_pointer(target):
            if NULL.fullmatch(text_of(value)) or NULL.fullmatch(_behind_casts(value)):
                self.null = True
            elif not is_pointer(own):
                raise self._refusal(place, node, "makes a pointer of a number")
            elif holds_pointers(own) != holds_pointers(target):
                raise self._refusal(place, node, "reads or writes a pointer as something else")
        elif target[:1] not in ("s", "?") and may_be_pointer(own):
            raise self._refusal(place, node, "makes a number of a pointer")

    def _tests_alignment(self, node: Node) -> bool:
        outer = node
        while (above := outer.parent) is not None and (above.type in _AROUND or _operator(above) == ">>"):
            outer = above
        if above is None or above.type != "binary_expression":
            return False
        return _operator(above) == "&" or (_operator(above) == "%" and is_field(above, "left", outer))

    def _is_prefetched(self, node: Node) -> bool:
        """Nothing is accessed by an address that goes nowhere else."""
        outer = node
        while (above := outer.parent) is not None and above.type in (
            *_AROUND,
            "cast_expression",
            "binary_expression",
        ):
            outer = above
        call = above.parent if above is not None and above.type == "argument_list" else None
        if above is None or call is None or above.named_children[0] != outer:
            return False
        name = text_of(call.child_by_field_name("function"))
        return name in _PREFETCHES and name not in self.takes


def _parts(value: Node) -> Iterator[Node]:
    """Of a vector's literal."""
    while value.type == "parenthesized_expression" and len(value.named_children) == 1:
        value = value.named_children[0]
    if value.type == "comma_expression":
        for side in value.named_children:
            yield from _parts(side)
    else:
        yield value


def _behind_casts(value: Node) -> str:
    while value.type in ("cast_expression", "parenthesized_expression"):
        inner = value.child_by_field_name("value") if value.type == "cast_expression" else None
        if inner is None:
            inner = value.named_children[-1]
        value = inner
    return text_of(value)
