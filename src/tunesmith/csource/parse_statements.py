"""Statements and whole functions from tree-sitter's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import is_pure
from tunesmith.csource.lex import Token, read_number
from tunesmith.csource.parse_assembly import AsmOperand, as_statements
from tunesmith.csource.parse_expressions import ExpressionReader
from tunesmith.csource.parse_types import Declarator, Specifiers, plain_value
from tunesmith.csource.switches import leaves_switch, without_break
from tunesmith.csource.types import canonical, integer
from tunesmith.csource.walk import commented, statements_in

if TYPE_CHECKING:
    from tree_sitter import Node

_NOTHING = frozenset({"comment", "preproc_call", ";", "static_assert_declaration"})


class StatementReader(ExpressionReader):
    template: frozenset[str] = frozenset()  # names of the template's parameters, of the function at hand

    def block(self, node: Node | None, depth: int = 0) -> tuple[c.Stmt, ...]:
        """The statements of `{ ... }`, or of the single statement that stands for them."""
        if node is None:
            return ()
        parts = node.named_children if node.type == "compound_statement" else [node]
        done: list[c.Stmt] = []
        for part in parts:
            done.extend(self.statement(part, depth + 1))
        return tuple(done)

    def statement(self, node: Node, depth: int) -> tuple[c.Stmt, ...]:
        """With the comments before it and on its lines; those of a block's statements are their own."""
        done = self._statement(node, depth)
        return commented(done, self.place.comments(node.start_byte, _head_end(node)))

    def _statement(self, node: Node, depth: int) -> tuple[c.Stmt, ...]:
        line = self.place.line(node)
        if depth > c.MAX_DEPTH:
            raise c.TooDeep(line)
        if node.is_missing:
            raise c.Unreadable("a statement is missing", line)
        d = depth + 1
        match node.type:
            case "expression_statement":
                return self._expression_statement(node, line)
            case "declaration":
                return self.declaration(node, line)
            case "compound_statement":
                return (c.Scope(self.block(node, d), line=line),)
            case "if_statement":
                return (self._if(node, line, d),)
            case "for_statement":
                return (self._for(node, line, d),)
            case "while_statement" | "do_statement":
                condition = node.child_by_field_name("condition")
                if _declares(condition):
                    return (self._verbatim(node, line),)
                body = self.block(node.child_by_field_name("body"), d)
                test = self.expr(condition)
                return (_once(c.While(test, body, node.type == "do_statement", line=line)),)
            case "switch_statement":
                found = self._switch(node, line, d)
                return (self._verbatim(node, line),) if found is None else found
            case "return_statement":
                value = next(iter(parts_of(node)), None)
                return (c.Return(None if value is None else self.expr(value), line=line),)
            case "break_statement" | "continue_statement":
                return (c.Jump("break" if node.type == "break_statement" else "continue", line=line),)
            case "attributed_statement":
                return self._attributed(node, d)
            case kind if kind in _NOTHING:
                return ()
        return (self._verbatim(node, line),)

    def _switch(self, node: Node, line: int, d: int) -> tuple[c.Stmt, ...] | None:
        """One that a template argument decides, as branches; None where a case goes on into the next one."""
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
        cases = parts_of(body)
        if _declares(condition) or any(case.type != "case_statement" for case in cases):
            return None
        asked = self.expr(condition)
        names = walk.names_in(asked)
        if not names or not names <= self.template or not is_pure(asked):
            return None
        ways: list[tuple[c.Expr | None, tuple[c.Stmt, ...]]] = []
        labels: list[c.Expr] = []
        is_default = False
        for case in cases:
            label = case.child_by_field_name("value")
            is_default = is_default or label is None
            labels += [] if label is None else [self.expr(label)]
            inside = [part for part in parts_of(case) if part != label]
            if not inside and case != cases[-1]:
                continue  # with the next one
            stmts = tuple(stmt for part in inside for stmt in self.statement(part, d))
            ended = without_break(stmts)
            stmts = stmts if ended is None and case == cases[-1] else ended if ended is not None else ()
            if (ended is None and case != cases[-1]) or leaves_switch(stmts):
                return None
            test: c.Expr | None = None
            for value in labels:
                one = c.Binary("==", asked, value)
                test = one if test is None else c.Binary("||", test, one)
            if is_default and case != cases[-1]:
                return None
            ways.append((None if is_default else test, stmts))
            labels, is_default = [], False
        done: tuple[c.Stmt, ...] = ()
        for choice, stmts in reversed(ways):
            done = stmts if choice is None else (c.If(choice, stmts, done, line=line),)
        return (c.Scope(done, line=line),)

    def _verbatim(self, node: Node, line: int) -> c.Verbatim:
        return c.Verbatim(self.place.written(node), self.place.names(node), line=line)

    def _expression_statement(self, node: Node, line: int) -> tuple[c.Stmt, ...]:
        inside = parts_of(node)
        if not inside:
            return ()
        if inside[0].type == "gnu_asm_expression":
            return self._assembly(node, inside[0], line)
        if inside[0].type == "comma_expression":
            return tuple(c.Evaluate(part, line=line) for part in self.commas(inside[0]))
        return (c.Evaluate(self.expr(inside[0]), line=line),)

    def _assembly(self, node: Node, inside: Node, line: int) -> tuple[c.Stmt, ...]:
        try:
            outputs, inputs = (
                [self._operand(part) for part in parts_of(inside.child_by_field_name(f"{side}_operands"))]
                for side in ("output", "input")
            )
        except c.Unreadable:
            return (self._verbatim(node, line),)
        found = as_statements(self.place.written(node), outputs, inputs, self.variables, line)
        return (self._verbatim(node, line),) if found is None else found

    def _operand(self, node: Node) -> AsmOperand:
        constraint, value = node.child_by_field_name("constraint"), node.child_by_field_name("value")
        if constraint is None or value is None or node.child_by_field_name("symbol") is not None:
            raise self.place.trouble(node, "", " is an operand that is not understood")
        words = self.place.words(constraint.start_byte, constraint.end_byte)
        return AsmOperand("".join(word.text for word in words).strip('"'), self.expr(value))

    def _attributed(self, node: Node, d: int) -> tuple[c.Stmt, ...]:
        """`#pragma unroll` reached the grammar as [[unroll]]."""
        inner = node.named_children[-1]
        done = self.statement(inner, d)
        attribute = (node.named_children[0].text or b"").decode()
        count: int | None = None
        if "unroll" in attribute:
            inside = attribute.partition("(")[2].partition(")")[0].strip()
            value = read_number(inside) if inside else 0
            count = value if isinstance(value, int) else 0
        if len(done) == 1 and isinstance(done[0], c.For) and count is not None:
            return (replace(done[0], unroll=count),)
        return done

    def _if(self, node: Node, line: int, d: int) -> c.Stmt:
        condition = node.child_by_field_name("condition")
        if _declares(condition):
            return self._verbatim(node, line)
        then, otherwise = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        about_rest: tuple[c.Comment, ...] = ()
        if otherwise is not None and otherwise.type == "else_clause":
            start, otherwise = otherwise.start_byte, next(reversed(parts_of(otherwise)), None)
            if otherwise is not None and otherwise.type == "compound_statement":
                about_rest = self.place.comments(start, otherwise.start_byte + 1)
        return c.If(
            self.expr(condition),
            self.block(then, d),
            commented(self.block(otherwise, d), tuple(replace(said, behind=False) for said in about_rest)),
            constexpr=any(child.type == "constexpr" for child in node.children),
            line=line,
        )

    def _for(self, node: Node, line: int, d: int) -> c.Stmt:
        head = node.child_by_field_name("initializer")
        condition = node.child_by_field_name("condition")
        if _declares(condition):
            return self._verbatim(node, line)
        init: list[c.Declare | c.Evaluate] = []
        if head is not None and head.type == "declaration":
            for part in self.declaration(head, line):
                if not isinstance(part, c.Declare):
                    return self._verbatim(node, line)
                init.append(part)
        elif head is not None:
            init += [c.Evaluate(part, line=line) for part in self.commas(head)]
        return c.For(
            tuple(init),
            None if condition is None else self.expr(condition),
            tuple(self.commas(node.child_by_field_name("update"))),
            self.block(node.child_by_field_name("body"), d),
            line=line,
        )

    # -- declarations -------------------------------------------------------------------------------

    def declaration(self, node: Node, line: int) -> tuple[c.Stmt, ...]:
        try:
            specifiers = self.specifiers(node)
            declarators = node.children_by_field_name("declarator")
            if not declarators or specifiers.words & {"mutable", "thread_local", "inline"}:
                return (self._verbatim(node, line),)
            plain = [part for part in declarators if not self._is_lambda(part)]
            return tuple([self._declared(specifiers, part, line) for part in plain])
        except c.TooDeep:
            raise
        except c.Unreadable:
            return (self._verbatim(node, line),)  # kept as text: only what names it is not understood

    def lambda_declared(self, name: str, value: Node) -> bool:
        """Whether a variable that is set to a lambda was read as a function."""
        return False

    def _is_lambda(self, node: Node) -> bool:
        value, name = node.child_by_field_name("value"), node.child_by_field_name("declarator")
        if value is None or name is None or value.type != "lambda_expression" or name.type != "identifier":
            return False
        return self.lambda_declared(self.place.short(name), value)

    def _declared(self, specifiers: Specifiers, node: Node, line: int) -> c.Declare:
        with_value = node.type == "init_declarator"
        value = node.child_by_field_name("value") if with_value else None
        inner = node.child_by_field_name("declarator") if with_value else node
        found = self.declarator(inner, specifiers.type)
        init: c.Expr | None = None
        if found.arguments is not None:
            init = self._constructed(found)
        elif value is not None and value.type == "argument_list":
            init = _construction(found, tuple(self.expr(a) for a in parts_of(value)))
        elif value is not None:
            init = self.expr(value)
        storage = _storage(specifiers, found.type, self.place.language)
        if storage == "shared" and not found.type.is_pointer:
            found = replace(found, type=replace(found.type, space=""))
        dims: tuple[c.Expr, ...] = ()
        if storage != "dynamic shared":
            if None in found.dims and not isinstance(init, c.Braces):
                raise c.Unreadable("an array without a size", line)
            count = integer(len(init.items) if isinstance(init, c.Braces) else 0)
            dims = tuple(self.expr(dim) if dim is not None else count for dim in found.dims)
        self.declare(found.name, replace(found.type, pointers=found.type.pointers + len(found.dims)))
        align = None if specifiers.align is None else self.expr(specifiers.align)
        return c.Declare(found.type, found.name, init, dims, storage, align, line=line)

    def _constructed(self, found: Declarator) -> c.Expr:
        """`float4 v(a, b);`, which the grammar takes for the declaration of a function."""
        items: list[c.Expr] = []
        for parameter in parts_of(found.arguments):
            if not self._is_value(self.place.words(parameter.start_byte, parameter.end_byte)):
                raise c.Unreadable("a function is declared inside a function", self.place.line(parameter))
            items.append(self.reread(parameter))
        if not items:
            raise c.Unreadable("a function is declared inside a function")
        return _construction(found, tuple(items))

    def _is_value(self, words: Sequence[Token]) -> bool:
        """Whether `a`, `x[i]`, `a * b` between parentheses are a value, and not a parameter's type."""
        first = words[0]
        if first.text in self.variables:
            return True
        if first.kind != "word" or self.place.is_type(first.text):
            return False
        return len(words) == 1 or any(w.kind == "number" or w.text in self.variables for w in words)


def _head_end(node: Node) -> int:
    """Where the statement's own words end: with a block's opening brace, before another statement."""
    if node.type == "attributed_statement":
        return node.named_children[-1].start_byte
    body = node.child_by_field_name("consequence" if node.type == "if_statement" else "body")
    body = node if node.type == "compound_statement" else body
    if body is None:
        return node.end_byte
    return body.start_byte + (body.type == "compound_statement")


def _construction(found: Declarator, args: tuple[c.Expr, ...]) -> c.Expr:
    type_ = plain_value(found.type)
    return c.Cast(type_, args[0]) if len(args) == 1 else c.Braces(args, type_)


def _once(loop: c.While) -> c.Stmt:
    """`do { ... } while (0)` of a macro is only a scope."""
    never = isinstance(loop.condition, c.Number) and loop.condition.value == 0
    leaves = any(isinstance(part, c.Jump | c.Verbatim) for part in statements_in(loop.body))
    return c.Scope(loop.body, line=loop.line) if loop.after and never and not leaves else loop


def _declares(condition: Node | None) -> bool:
    """`if (int x = f(); x > 0)`: a declaration where a plain condition is expected."""
    if condition is None:
        return False
    return any(child.type in ("declaration", "init_statement") for child in condition.named_children)


def _storage(specifiers: Specifiers, type_: c.Type, language: str) -> c.Storage:
    words = specifiers.words
    if "__shared__" in words:
        return "dynamic shared" if "extern" in words else "shared"
    if language == "opencl" and type_.space == "local" and not type_.is_pointer:
        return "shared"
    if "constexpr" in words:
        return "constexpr"
    return "static" if "static" in words else ""


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
        self.pointers, self.variables = set(), {}
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
        self.pointers, self.variables = set(), {}
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


def parts_of(node: Node | None) -> list[Node]:
    """What stands below a node, without comments."""
    return [child for child in node.named_children if child.type != "comment"] if node is not None else []
