"""Lambdas as functions of the file: what they capture becomes parameters, passed at every call.

A lambda that is called where it stands, or that a variable is set to and that is called or handed to a
function (see `handed_lambdas`). By value it would keep what a variable was when it was made: taken only where
nothing changes the variable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import is_function
from tunesmith.csource.parse_functions import FunctionReader
from tunesmith.csource.parse_statements import parts_of

if TYPE_CHECKING:
    from tree_sitter import Node

    from tunesmith.csource.grammar import GrammarText


@dataclass(frozen=True)
class Lambda:
    function: c.Function
    captured: tuple[str, ...]
    template_args: tuple[str, ...]
    by_value: frozenset[str]  # captured variables that must not change


def _handed_over(function: c.Function) -> frozenset[str]:
    """Variables that are arguments of functions which no table knows: these may take a reference."""
    constant = {n.name for n in walk.nodes_in(function.body) if isinstance(n, c.Declare) and n.type.const}
    handed: set[str] = set()
    for call in walk.calls_in(function.body):
        if call.of is None and (is_function(call.function) or call.function.startswith("lambda_")):
            continue
        handed |= {name for arg in call.args if (name := walk.root(arg)[0])}
    return frozenset(handed - constant)


class LambdaReader(FunctionReader):
    def __init__(self, place: GrammarText) -> None:
        super().__init__(place)
        self._lambdas: dict[str, Lambda] = {}
        self._all: list[Lambda] = []

    def taken(self) -> list[c.Function]:
        """Those of the function that was read last."""
        found, self._all, self._lambdas = self._all, [], {}
        return [each.function for each in found]

    def function(
        self,
        node: Node,
        template: tuple[c.TemplateParameter, ...],
        words: set[str],
        text: str,
        operators: bool = False,
    ) -> c.Function | None:
        self._template, self._lambdas, self._all = template, {}, []
        done = super().function(node, template, words, text, operators)
        if done is not None and self._lambdas:
            done = replace(done, body=walk.map_nodes(done.body, self._handed_on))
        if done is not None and self._all:
            changed = walk.assigned_in(done.body) | _handed_over(done)
            for name in sorted({name for each in self._all for name in each.by_value} & changed):
                raise c.Unreadable(f"a lambda keeps an earlier value of {name}", self.place.line(node))
        return done

    def _handed_on(self, node: c.Expr) -> c.Expr:
        """An argument that is a lambda: the call of its function with nothing but what it captures."""
        if not isinstance(node, c.Call) or not any(isinstance(arg, c.Name) for arg in node.args):
            return node

        def given(arg: c.Expr) -> c.Expr:
            found = self._lambdas.get(arg.name) if isinstance(arg, c.Name) else None
            if found is None:
                return arg
            captured = tuple(c.Name(name) for name in found.captured)
            return c.Call(found.function.name, captured, found.template_args)

        return replace(node, args=tuple([given(arg) for arg in node.args]))

    def lambda_declared(self, name: str, value: Node) -> bool:
        found = self._read(value, name)
        if found is not None:
            self._lambdas[name] = found
        return found is not None

    def lambda_called(self, function: Node, args: tuple[c.Expr, ...]) -> c.Expr | None:
        found = self._lambdas.get(self.place.short(function)) if function.type == "identifier" else None
        if function.type == "lambda_expression":
            found = self._read(function, "called")
        if found is None or len(args) + len(found.captured) != len(found.function.parameters):
            return None
        captured = tuple(c.Name(name) for name in found.captured)
        return c.Call(found.function.name, (*args, *captured), found.template_args)

    def _read(self, node: Node, name: str) -> Lambda | None:
        captures, declarator = node.child_by_field_name("captures"), node.child_by_field_name("declarator")
        outer_variables, outer_pointers = dict(self.variables), set(self.pointers)
        try:
            self.variables, self.pointers = {}, set()
            listed = declarator.child_by_field_name("parameters") if declarator is not None else None
            parameters = self._parameters(listed)
            own = set(self.variables)
            self.variables = {**outer_variables, **self.variables}
            self.pointers |= outer_pointers - own
            body = self.block(node.child_by_field_name("body"))
            result = self._result(declarator)
            if result.base == "auto" and not any(
                isinstance(n, c.Return) and n.value for n in walk.nodes_in(body)
            ):
                result = c.Type("void")
        except c.TooDeep:
            raise
        except c.Unreadable:
            return None
        finally:
            self.variables, self.pointers = outer_variables, outer_pointers
        if any(isinstance(part, c.Verbatim | c.Opaque) for part in walk.nodes_in(body)):
            return None
        inside = own | set(walk.declared_in(body))
        free = tuple(sorted(n for n in walk.names_in(body) - inside if n in outer_variables))
        by_value = self._by_value(captures, free)
        if by_value is None or any(
            outer_variables[n].is_pointer for n in walk.assigned_in(body) if n in free
        ):
            return None  # a pointer that it moves would be another one outside
        return self._lifted(name, parameters, body, result, (free, by_value), self.place.line(node))

    def _result(self, declarator: Node | None) -> c.Type:
        for child in declarator.named_children if declarator is not None else []:
            if child.type == "trailing_return_type" and child.named_children:
                return self.type_of(child.named_children[0])
        return c.Type("auto")

    def _by_value(self, captures: Node | None, free: tuple[str, ...]) -> frozenset[str] | None:
        """Which of the names are captured by value; None where that is not clear."""
        default, named = "", dict[str, bool]()
        for part in parts_of(captures):
            text = self.place.short(part)
            if part.type == "lambda_default_capture":
                default = text
            elif part.type == "identifier":
                named[text] = part.prev_sibling is None or part.prev_sibling.type != "&"
            elif text.startswith("&") and text[1:].strip().isidentifier():
                named[text[1:].strip()] = False
            else:
                return None
        return frozenset(name for name in free if named.get(name, default == "="))

    def _lifted(
        self,
        name: str,
        parameters: tuple[c.Parameter, ...],
        body: tuple[c.Stmt, ...],
        result: c.Type,
        captured: tuple[tuple[str, ...], frozenset[str]],
        line: int,
    ) -> Lambda:
        free, by_value = captured
        changed = walk.assigned_in(body)
        template = list(self._template)
        generic: list[c.TemplateParameter] = []

        def typed(type_: c.Type, own: str) -> c.Type:
            if type_.base != "auto":
                return type_
            generic.append(c.TemplateParameter(f"Type_{own}", "type"))
            return replace(type_, base=f"Type_{own}")

        own = tuple(replace(p, type=typed(p.type, p.name)) for p in parameters)
        held: list[c.Parameter] = []
        for each in free:
            type_ = typed(self.variables[each], each)
            if not type_.is_pointer:
                type_ = replace(type_, reference=True, const=each not in changed, restrict=False)
            held.append(c.Parameter(replace(type_, restrict=False), each))
        function = c.Function(
            f"lambda_{name}_{line}",
            (*own, *held),
            body,
            result,
            template=(*template, *generic),
            line=line,
        )
        args = tuple(parameter.name for parameter in template)
        found = Lambda(function, free, args, by_value)
        self._all.append(found)
        return found
