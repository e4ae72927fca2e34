"""Whole functions from tree-sitter's nodes: their heads, and the parameters of templates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tunesmith.csource import nodes as c
from tunesmith.csource.parse_statements import StatementReader, parts_of
from tunesmith.csource.types import canonical

if TYPE_CHECKING:
    from tree_sitter import Node

KERNEL_WORDS = frozenset({"__global__", "__kernel", "kernel"})


class FunctionReader(StatementReader):
    """A function's head: its name, its parameters and those of its template; its body is statements."""

    def function(
        self,
        node: Node,
        template: tuple[c.TemplateParameter, ...],
        words: set[str],
        text: str,
        operators: bool = False,
    ) -> c.Function | None:
        """None: an operator, which is used by its sign; with `operators` "operator+"."""
        declarator = node.child_by_field_name("declarator")
        result = self.specifiers(node).type
        while declarator is not None and declarator.type in ("pointer_declarator", "reference_declarator"):
            pointer = declarator.type == "pointer_declarator"
            result = replace(
                result, pointers=result.pointers + pointer, reference=result.reference or not pointer
            )
            declarator = declarator.child_by_field_name("declarator") or declarator.named_children[-1]
        name = declarator.child_by_field_name("declarator") if declarator is not None else None
        if declarator is None or name is None or declarator.type != "function_declarator":
            raise c.Unreadable("its head is not understood", self.place.line(node))
        specialises: tuple[str, ...] = ()
        if name.type == "template_function":
            specialises = tuple(self.place.short(a) for a in parts_of(name.child_by_field_name("arguments")))
            name = name.child_by_field_name("name") or name
        if name.type == "operator_name" and not operators:
            return None
        known = ("operator_name", "qualified_identifier") if operators else ()
        if name.type not in ("identifier", "field_identifier", *known):
            raise self.place.trouble(name, "", " is a form of function that is not understood")
        self.pointers, self.variables, self.arrays = set(), {}, {}
        self.template = frozenset(parameter.name for parameter in template)
        parameters = self._parameters(declarator.child_by_field_name("parameters"))
        return c.Function(
            self.place.short(name).replace(" ", ""),
            parameters,
            self.block(node.child_by_field_name("body")),
            result,
            is_kernel=bool(words & KERNEL_WORDS),
            template=template,
            specialises=tuple(canonical(text, self.place.language) for text in specialises),
            text=text.strip(),
            line=self.place.line(name),
        )

    def headless(
        self,
        node: Node,
        declarator: Node | None,
        name: str,
        result: c.Type,
        template: tuple[c.TemplateParameter, ...],
    ) -> c.Function:
        """A constructor or a conversion, which has no type before its name."""
        if declarator is None:
            raise c.Unreadable("its head is not understood", self.place.line(node))
        self.pointers, self.variables, self.arrays = set(), {}, {}
        parameters = self._parameters(declarator.child_by_field_name("parameters"))
        body = self.block(node.child_by_field_name("body"))
        return c.Function(name, parameters, body, result, template=template, line=self.place.line(node))

    def function_name(self, node: Node) -> str:
        declarator = node.child_by_field_name("declarator")
        for _ in range(8):
            if declarator is None or declarator.type == "identifier":
                break
            declarator = declarator.child_by_field_name("declarator")
        return self.place.short(declarator) if declarator is not None else "a function"

    def _parameters(self, node: Node | None) -> tuple[c.Parameter, ...]:
        found: list[c.Parameter] = []
        for child in parts_of(node):
            if child.type not in ("parameter_declaration", "optional_parameter_declaration"):
                raise self.place.trouble(child, "the parameter ", " is not understood")
            declared = self.declared(child)
            type_ = replace(declared.type, pointers=declared.type.pointers + len(declared.dims))
            if type_ == c.Type("void") and not declared.name:
                continue
            self.declare(declared.name, type_)
            value = child.child_by_field_name("default_value")
            found.append(c.Parameter(type_, declared.name, None if value is None else self.expr(value)))
        return tuple(found)

    def template_parameters(self, node: Node | None) -> tuple[c.TemplateParameter, ...]:
        found: list[c.TemplateParameter] = []
        for child in parts_of(node):
            match child.type:
                case "type_parameter_declaration" | "optional_type_parameter_declaration":
                    default = child.child_by_field_name("default_type")
                    names = [n for n in child.named_children if n.type == "type_identifier" and n != default]
                    name = self._text(names[0] if names else None)
                    found.append(c.TemplateParameter(name, "type", default=self._text(default)))
                case "template_template_parameter_declaration":  # template <typename> class Op
                    names = [n for part in child.named_children for n in part.named_children[:1]]
                    named = (
                        names[-1] if child.named_children[-1].type == "type_parameter_declaration" else None
                    )
                    if named is None or named.type != "type_identifier":
                        raise self.place.trouble(child, "the template parameter ", " is not understood")
                    found.append(c.TemplateParameter(self._text(named), "type"))
                case "parameter_declaration" | "optional_parameter_declaration":
                    declared = self.declared(child)
                    value = self._text(child.child_by_field_name("default_value"))
                    found.append(c.TemplateParameter(declared.name, "value", declared.type, value))
                case _:
                    raise self.place.trouble(child, "the template parameter ", " is not understood")
        return tuple(found)

    def _text(self, node: Node | None) -> str:
        return "" if node is None else self.place.short(node)
