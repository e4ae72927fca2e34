"""Statements and declarations of a unit, in the order of the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tunesmith.csource.syntax import declared_name, syntax_nodes, text_of
from tunesmith.problem.device_words import Refusal
from tunesmith.problem.vetting_expressions import FlowExpressions
from tunesmith.problem.vetting_unit import (
    Layers,
    content_of,
    declarator_kinds,
    dimensions,
    parameters_of,
    qualifiers_of,
    without_comments,
)
from tunesmith.problem.vetting_values import PLAIN, FlowArray, FlowValue, join_all

if TYPE_CHECKING:
    from tree_sitter import Node


class FlowStatements(FlowExpressions):
    def begin(self) -> None:
        super().begin()
        self.returned: list[FlowValue] = []
        self.returning: Layers = ""
        self.cases: list[tuple[set[str], set[str], set[str], set[str]]] = []

    def _on_compound_literal_expression(self, node: Node) -> FlowValue:
        layers, value = self.layers(node), node.child_by_field_name("value")
        if not self.is_c or value is None:
            return self._last(node)
        if set(layers) & set("*s"):
            raise self.refuse(node, "fills pointers from a list; assign them one by one", "pointer")
        self._listed(value, layers)
        key = self._declare("", node, layers)
        self.arrays[key] = FlowArray("a list", "private")
        return FlowValue(frozenset({key}), dims=layers.count("[")) if layers else PLAIN

    def _on_string_literal(self, node: Node) -> FlowValue:
        if not self.is_c:
            return PLAIN
        self.arrays["text"] = FlowArray("a text", "constant", True)
        return FlowValue(frozenset({"text"}))

    _on_concatenated_string = _on_string_literal

    def _listed(self, node: Node, layers: Layers) -> FlowValue:
        """What a list fills an array, a vector or a struct with."""
        layers = layers.lstrip("[")
        if layers.startswith("s"):
            raise self.refuse(node, "fills a struct that holds pointers; assign to its fields", "pointer")
        found: list[FlowValue] = []
        for part in node.named_children:
            value = part.child_by_field_name("value") if part.type == "initializer_pair" else part
            if value is None or value.type == "comment":
                continue
            is_list = value.type == "initializer_list"
            is_text = not layers and value.type.endswith("string_literal")
            given = self._listed(value, layers) if is_list else PLAIN if is_text else self.value(value)
            found.append(given if is_list else self._converted(given, layers, value, value))
        return join_all(found)

    def _on_compound_statement(self, node: Node) -> FlowValue:
        self.scopes.append({})
        for child in node.named_children:
            self.value(child)
        self.scopes.pop()
        return PLAIN

    def _on_if_statement(self, node: Node) -> FlowValue:
        self.scopes.append({})
        self._condition(node.child_by_field_name("condition"))
        sides = [node.child_by_field_name(side) for side in ("consequence", "alternative")]
        self._either([side for side in sides if side is not None])
        self.scopes.pop()
        return PLAIN

    def _on_switch_statement(self, node: Node) -> FlowValue:
        self.scopes.append({})
        value = self._field(node, "condition")
        if value.arrays:
            raise self.refuse(node, f"decides by the address of {self._names(value.arrays)}")
        unset, written = set(self.unset), set(self.written)
        self.cases.append((unset, written, unset, written))
        if (body := node.child_by_field_name("body")) is not None:
            self._either([body])
        *_, unset, written = self.cases.pop()
        self.unset, self.written = self.unset & unset, self.written | written
        self.scopes.pop()
        return PLAIN

    def _on_case_statement(self, node: Node) -> FlowValue:
        """Begins with what was there before all of them, and what the one before leaves where it goes on."""
        before = node.prev_named_sibling
        start, more, unset, written = self.cases[-1]
        unset, written = unset & self.unset, written | self.written
        self.cases[-1] = (start, more, unset, written)
        ends = before.named_children[-1].type if before is not None and before.named_children else ""
        if ends in ("break_statement", "return_statement", "continue_statement"):
            self.unset, self.written = set(start), set(more)
        label = node.child_by_field_name("value")
        for child in node.named_children:
            if child != label:
                self.value(child)
        return PLAIN

    def _loop(self, node: Node) -> FlowValue:
        self.scopes.append({})
        self._field(node, "initializer")
        source = self._field(node, "right")
        later: list[tuple[str, Refusal]] = []
        self.control.append(later)
        if node.type == "for_range_loop":
            inside = self._access(source, node) if source.arrays else PLAIN
            own = self._lies_in(source.arrays, "private") or self._lies_in(source.arrays, "shared")
            declarator = node.child_by_field_name("declarator")
            element = inside if own else join_all([source, inside])
            self._bind(declarator, node, element, place=source if source.arrays else None)
        if node.type != "do_statement":
            self._condition(node.child_by_field_name("condition"))
        self._field(node, "body")
        if node.type == "do_statement":
            self._condition(node.child_by_field_name("condition"))
        self._field(node, "update")
        self.control.pop()
        self.scopes.pop()
        for key, refusal in later:
            if key in self.unset or (key in self.arrays and key not in self.written):
                raise refusal
        return PLAIN

    _on_for_statement = _on_while_statement = _on_do_statement = _on_for_range_loop = _loop

    def _on_return_statement(self, node: Node) -> FlowValue:
        for child in node.named_children:
            value = self.value(child)
            if self.returning or value.is_place:  # whoever calls it decides on bits
                value = self._converted(value, self.returning, node, child)
            self.returned.append(value)
        return PLAIN

    def _on_declaration(self, node: Node) -> FlowValue:
        kind = node.child_by_field_name("type")
        qualifiers = qualifiers_of(self.place, node)
        is_shared = bool(qualifiers & {"__shared__", "_Noreturn"})
        is_constant = bool(qualifiers & {"const", "constexpr", "__constant__", "noreturn"})
        for declarator in node.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value")
            target = (
                declarator.child_by_field_name("declarator")
                if declarator.type == "init_declarator"
                else declarator
            )
            if target is None:
                continue
            if target.type == "function_declarator":
                self._vexing(target, node)
                continue
            if target.type == "structured_binding_declarator":
                held = self.value(value) if value is not None else PLAIN
                for one in target.named_children:
                    self._store(self._declare(text_of(one), one), held, one)
                continue
            name = declared_name(target)
            kinds = declarator_kinds(target)
            if value is not None and value.type == "lambda_expression":
                key = self._declare(text_of(name), target)
                self.lambdas[key] = (self.place, value, list(self.scopes))
                continue
            if "reference_declarator" in kinds and value is not None:
                self._bind(target, node, self.value(value), value)
                continue
            layers = self.layers(node, target) if self.is_c else ""
            key = self._declare(text_of(name), target, layers)
            at_file = len(self.scopes) == 1
            if value is not None and self.is_bare(kind) and not kinds:
                self.unset.add(key)  # until it has its value
            given = self._initial(value, kind, layers, declarator)
            dims = len(layers) - len(layers.lstrip("[")) if self.is_c else dimensions(name)
            dims += not self.is_c and text_of(kind) in self.array_types
            if dims or (is_shared and "pointer_declarator" not in kinds):
                space = "shared" if is_shared else "constant" if at_file else "private"
                lacks = value is None and not at_file and (self.is_bare(kind) or (is_shared and dims > 0))
                is_read = space == "constant"
                self.arrays[key] = FlowArray(text_of(name), space, is_read, lacks, content_of(layers))
                if dims:
                    self._hold(key, FlowValue(frozenset({key}), dims=dims), False)
                if not given.is_plain:
                    self._hold(f"*{key}", given, True)
                if not dims:
                    self.aliases[key] = (FlowValue(frozenset({key})),)
                continue
            if value is not None:
                if is_constant and (number := self.number(value)) is not None:
                    self.constants[key] = number
                self._store(key, given, node)
                if not self.is_c and given.arrays and self.record_of(text_of(kind)) in self.members:
                    self._hold("", given, True)
                self._members(key, value, kind)
            elif self.is_bare(kind) and not kinds and not at_file:
                self.unset.add(key)
        return PLAIN

    def _vexing(self, target: Node, node: Node) -> None:
        """`pair p(x, w);`, which the grammar takes for the declaration of a function."""
        types = [one.child_by_field_name("type") for one in parameters_of(target)]
        named = [one for one in types if one is not None and self.lookup(text_of(one)) is not None]
        if named:
            name = text_of(node.child_by_field_name("type"))
            self._store(self._declare(text_of(declared_name(target)), target), self._made(name, named), node)

    def _initial(self, value: Node | None, kind: Node | None, layers: Layers, node: Node) -> FlowValue:
        if value is None:
            return PLAIN
        if self.is_c and value.type == "initializer_list":
            return self._listed(value, layers)
        if self.is_c:
            is_text = layers.startswith("[")
            return PLAIN if is_text else self._converted(self.value(value), layers, node, value)
        if value.type in ("argument_list", "initializer_list"):
            return self._made(text_of(kind), without_comments(value))
        return self.value(value)

    def _made(self, name: str, arguments: Sequence[Node]) -> FlowValue:
        """By a constructor, where there is one."""
        name = name.partition("<")[0].strip()
        if name in self.functions:
            self._call(name, arguments)
        return join_all([self.value(one) for one in arguments])

    def _members(self, key: str, value: Node, kind: Node | None) -> None:
        """Of a list that fills a struct."""
        if value.type == "compound_literal_expression":
            value = value.child_by_field_name("value") or value
        names = self.members.get(record := self.record_of(text_of(kind)))
        if value.type == "identifier" and names:
            for name in names:
                for place in self._places(value):
                    if isinstance(place, str):
                        self._store(f"{key}.{name}", self._load(f"{place}.{name}", value), value)
        if value.type != "initializer_list" or not names:
            return
        if record in self.functions or (record, "") in self.wide:
            return  # what it holds may be any member's
        for name, one in zip(names, without_comments(value), strict=False):
            if one.type == "initializer_pair":
                name = text_of(one.child_by_field_name("designator")).lstrip(". ")
            elif (record, name) in self.wide and one.type != "initializer_list":
                break  # braces may be left out
            if not self.is_array_member(record, name):
                self._store(f"{key}.{name}", self.value(one), one)

    def _bind(
        self,
        target: Node | None,
        node: Node,
        value: FlowValue,
        source: Node | None = None,
        place: FlowValue | None = None,
    ) -> None:
        """A name for something else, or for a copy of it."""
        for name in (n for n in syntax_nodes(target) if n.type == "identifier") if target is not None else ():
            key = self._declare(text_of(name), name)
            places = self._places(source) if source is not None else ()
            if place is not None and "reference_declarator" in declarator_kinds(target):
                places = (place,)
            if places and "array_declarator" in declarator_kinds(target):
                at = [self._load(one, node) if isinstance(one, str) else one for one in places]
                self._store(key, join_all(at), node)
            elif places:
                self.aliases[key] = places
            else:
                self._store(key, value, node)
