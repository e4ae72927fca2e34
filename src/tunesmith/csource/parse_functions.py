"""A function's head: its name, its parameters and those of its template; with its body it is a function."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tunesmith.csource.nodes import (
    Function,
    Parameter,
    TemplateParameter,
    Type,
    Unreadable,
)
from tunesmith.csource.parse_statements import StatementReader
from tunesmith.csource.types import canonical

if TYPE_CHECKING:
    from tree_sitter import Node

KERNEL_WORDS = frozenset({"__global__", "__kernel", "kernel"})


class FunctionReader(StatementReader):
    def function(
        self, node: Node, template: tuple[TemplateParameter, ...], words: set[str], text: str
    ) -> Function | None:
        """None: an operator, which is used by its sign, so that only the compiler needs it."""
        declarator = node.child_by_field_name("declarator")
        result = self.specifiers(node).type
        while declarator is not None and declarator.type in ("pointer_declarator", "reference_declarator"):
            pointer = declarator.type == "pointer_declarator"
            result = (
                replace(result, pointers=result.pointers + 1) if pointer else replace(result, reference=True)
            )
            declarator = declarator.child_by_field_name("declarator") or declarator.named_children[-1]
        name = declarator.child_by_field_name("declarator") if declarator is not None else None
        if declarator is None or name is None or declarator.type != "function_declarator":
            raise Unreadable("its head is not understood", self.line(node))
        specialises: tuple[str, ...] = ()
        if name.type == "template_function":
            specialises = tuple(self.short(a) for a in _arguments(name))
            name = name.child_by_field_name("name") or name
        if name.type == "operator_name":
            return None
        if name.type not in ("identifier", "field_identifier"):
            raise Unreadable(
                f"`{self.short(name)}` is a form of function that is not understood", self.line(name)
            )
        self.pointers = set()
        self.variables = set()
        parameters = self._parameters(declarator.child_by_field_name("parameters"))
        return Function(
            self.short(name),
            parameters,
            self.block(node.child_by_field_name("body")),
            result,
            is_kernel=bool(words & KERNEL_WORDS),
            template=template,
            specialises=tuple(canonical(text, self.language) for text in specialises),
            text=text.strip(),
            line=self.line(name),
        )

    def function_name(self, node: Node) -> str:
        declarator = node.child_by_field_name("declarator")
        for _ in range(8):
            if declarator is None or declarator.type == "identifier":
                break
            declarator = declarator.child_by_field_name("declarator")
        return self.short(declarator) if declarator is not None else "a function"

    def _parameters(self, node: Node | None) -> tuple[Parameter, ...]:
        found: list[Parameter] = []
        for child in node.named_children if node is not None else []:
            if child.type == "comment":
                continue
            if child.type not in ("parameter_declaration", "optional_parameter_declaration"):
                raise Unreadable(f"the parameter `{self.short(child)}` is not understood", self.line(child))
            declared = self.declarator(child.child_by_field_name("declarator"), self.specifiers(child).type)
            type_ = declared.type
            if declared.dims:
                type_ = replace(type_, pointers=type_.pointers + len(declared.dims))
            if type_ == Type("void") and not declared.name:
                continue
            self.variables.add(declared.name)
            if type_.is_pointer:
                self.pointers.add(declared.name)
            found.append(Parameter(type_, declared.name))
        return tuple(found)

    def template_parameters(self, node: Node | None) -> tuple[TemplateParameter, ...]:
        found: list[TemplateParameter] = []
        for child in node.named_children if node is not None else []:
            match child.type:
                case "type_parameter_declaration" | "optional_type_parameter_declaration":
                    default = child.child_by_field_name("default_type")
                    name = next(
                        (c for c in child.named_children if c.type == "type_identifier" and c != default),
                        None,
                    )
                    text = "" if name is None else self.short(name)
                    found.append(
                        TemplateParameter(
                            text, "type", default="" if default is None else self.short(default)
                        )
                    )
                case "parameter_declaration" | "optional_parameter_declaration":
                    declared = self.declarator(
                        child.child_by_field_name("declarator"), self.specifiers(child).type
                    )
                    value = child.child_by_field_name("default_value")
                    found.append(
                        TemplateParameter(
                            declared.name, "value", declared.type, "" if value is None else self.short(value)
                        )
                    )
                case "comment":
                    pass
                case _:
                    raise Unreadable(
                        f"the template parameter `{self.short(child)}` is not understood", self.line(child)
                    )
        return tuple(found)


def _arguments(name: Node) -> list[Node]:
    listed = name.child_by_field_name("arguments")
    return listed.named_children if listed is not None else []
