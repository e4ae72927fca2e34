"""Expressions from tree-sitter's nodes, in the tree's one spelling for each thing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tunesmith.csource import nodes as c
from tunesmith.csource.grammar import GrammarText, grammar_text
from tunesmith.csource.lex import is_unsigned, lex, read_number
from tunesmith.csource.parse_types import TypeReader, plain_value
from tunesmith.csource.syntax import syntax_nodes, syntax_tree
from tunesmith.csource.types import canonical

if TYPE_CHECKING:
    from tree_sitter import Node

_HIP_INDICES = {
    f"hip{name[0].upper()}{name[1:]}_{axis}": f"{name}.{axis}" for name in c.INDICES for axis in "xyz"
}
_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast"})
_BARRIERS = frozenset({"barrier", "work_group_barrier"})
_ZERO = c.Number("0", 0)
_BINARY_OPERATORS = frozenset({
    "+", "-", "*", "/", "%", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "&&", "||",
})  # fmt: skip


class ExpressionReader(TypeReader):
    def __init__(self, place: GrammarText) -> None:
        super().__init__(place)
        # Names declared as pointers or arrays in the function being read: `*(i + p)` is p[i].
        self.pointers: set[str] = set()
        # All names declared in it: a call of one is the call of a lambda, which is not understood.
        self.variables: dict[str, c.Type] = {}

    def declare(self, name: str, type_: c.Type) -> None:
        self.variables[name] = type_
        if type_.is_pointer:
            self.pointers.add(name)

    def expr(self, node: Node | None, depth: int = 0) -> c.Expr:
        if node is None:
            raise c.Unreadable("an expression is missing")
        if depth > c.MAX_DEPTH:
            raise c.TooDeep(self.place.line(node))
        d = depth + 1
        match node.type:
            case "identifier" | "field_identifier" | "type_identifier" | "primitive_type":
                name = (node.text or b"").decode()
                return c.Name(_HIP_INDICES.get(name, name))
            case "number_literal" | "char_literal" | "true" | "false":
                return self._number(node)
            case "parenthesized_expression" | "condition_clause":
                return self.expr(_only_child(node), d)
            case "binary_expression":
                op = self._operator(node)
                if op not in _BINARY_OPERATORS:
                    return self.opaque(node)
                return c.Binary(op, self._field(node, "left", d), self._field(node, "right", d))
            case "comma_expression":
                return c.Binary(",", self._field(node, "left", d), self._field(node, "right", d))
            case "assignment_expression":
                op = self._operator(node)
                return c.Assign(op, self._field(node, "left", d), self._field(node, "right", d))
            case "conditional_expression":
                parts = [self._field(node, part, d) for part in ("condition", "consequence", "alternative")]
                return c.Ternary(*parts)
            case "unary_expression" | "pointer_expression":
                return self._prefix(self._operator(node), self._field(node, "argument", d))
            case "update_expression":
                op, operand = self._operator(node), node.child_by_field_name("argument")
                is_prefix = node.children[0].type == op
                return c.Unary(op, self.expr(operand, d)) if is_prefix else self._postfix(op, operand, d)
            case "subscript_expression":
                index = node.child_by_field_name("index") or _only_child(node.child_by_field_name("indices"))
                return c.Index(self._field(node, "argument", d), self.expr(index, d))
            case "field_expression":
                return self._member(node, d)
            case "call_expression":
                return self._call(node, d)
            case "cast_expression":
                return self._cast(node, d)
            case "sizeof_expression":
                return self._sizeof(node)
            case "initializer_list":
                return c.Braces(tuple([self.expr(item, d) for item in node.named_children]))
            case "compound_literal_expression":
                return self._compound_literal(node, d)
            case "qualified_identifier" if "<" not in self.place.short(node):
                return c.Name(self.qualified(node))
            case "null":
                return c.Name("nullptr")
            case "this":
                return c.Name("this")
        return self.opaque(node)

    def reread(self, node: Node) -> c.Expr:
        """What the grammar took for something else, as the expression that its words are."""
        words = self.place.words(node.start_byte, node.end_byte)
        line = self.place.line(node)
        before, behind = (
            [replace(token, line=line) for token in lex(text)] for text in ("int value = ( ", ") ;")
        )
        place = self.place
        self.place = grammar_text([*before, *words, *behind], self.language, place.known)
        try:
            tree = syntax_tree(self.place.text, self.language)
            values = [n for n in syntax_nodes(tree) if n.type == "parenthesized_expression"]
            if tree.has_error or not values:
                raise c.Unreadable(f"`{place.short(node)}` is not understood as an expression", line)
            return self.expr(values[0])
        finally:
            self.place = place

    def opaque(self, node: Node) -> c.Opaque:
        return c.Opaque(" ".join(self.place.written(node).split()), self.place.names(node))

    def _field(self, node: Node, name: str, depth: int) -> c.Expr:
        return self.expr(node.child_by_field_name(name), depth)

    def _operator(self, node: Node) -> str:
        operator = node.child_by_field_name("operator")
        if operator is None:
            raise c.Unreadable(f"`{self.place.short(node)}` has no operator", self.place.line(node))
        return "<" if operator.start_byte in self.place.less else (operator.text or b"").decode()

    def qualified(self, node: Node) -> str:
        """`std::max`; namespaces of the file itself are gone by now."""
        return self.place.short(node).removeprefix("::")

    def _number(self, node: Node) -> c.Expr:
        text = (node.text or b"").decode("utf-8", "replace")
        positive = text.removeprefix("-").strip()  # the grammar reads -1 as one literal
        value = read_number(positive)
        if value is None:
            return self.opaque(node)
        return _negated(c.Number(positive, value)) if text.startswith("-") else c.Number(text, value)

    def _postfix(self, op: str, operand: Node | None, d: int) -> c.Expr:
        """The grammar reads `-x++` as (-x)++ and `(float)x++` as ((float)x)++."""
        if d > c.MAX_DEPTH:
            raise c.TooDeep
        if operand is not None and operand.type in ("unary_expression", "pointer_expression"):
            inner = self._postfix(op, operand.child_by_field_name("argument"), d + 1)
            return self._prefix(self._operator(operand), inner)
        if operand is not None and operand.type == "cast_expression":
            descriptor = operand.child_by_field_name("type")
            if descriptor is not None:
                value = self._postfix(op, operand.child_by_field_name("value"), d + 1)
                return c.Cast(plain_value(self.type_of(descriptor)), value)
        return c.Unary(op, self.expr(operand, d), postfix=True)

    def _prefix(self, op: str, operand: c.Expr) -> c.Expr:
        op = {"not": "!", "compl": "~"}.get(op, op)
        if op == "*":
            return self._dereference(operand)
        if op == "-" and isinstance(operand, c.Number) and not operand.text.startswith("-"):
            return _negated(operand)
        return c.Unary(op, operand)

    def _dereference(self, address: c.Expr) -> c.Expr:
        if isinstance(address, c.Unary) and address.op == "&":
            return address.operand
        if isinstance(address, c.Binary) and address.op == "+":
            left, right = address.left, address.right
            if not self._is_address(left) and self._is_address(right):
                left, right = right, left
            return c.Index(left, right)
        return c.Index(address, _ZERO)

    def _is_address(self, expr: c.Expr) -> bool:
        for _ in range(c.MAX_DEPTH):
            match expr:
                case c.Name(name=name):
                    return name in self.pointers
                case c.Cast(type=type_):
                    return type_.is_pointer
                case c.Unary(op="&"):
                    return True
                case c.Binary(op="+" | "-", left=left):
                    expr = left
                case _:
                    return False
        return False

    def _member(self, node: Node, d: int) -> c.Expr:
        field = node.child_by_field_name("field")
        base = node.child_by_field_name("argument")
        if field is None or base is None or field.type != "field_identifier":
            return self.opaque(node)
        name, of = (field.text or b"").decode(), (base.text or b"").decode()
        if of in c.INDICES and self.language != "opencl":
            return c.Name(f"{of}.{name}")
        arrow = any(child.type == "->" for child in node.children)
        return c.Member(self.expr(base, d), name, arrow)

    # -- calls and casts ----------------------------------------------------------------------------

    def _call(self, node: Node, d: int) -> c.Expr:
        function = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
        if (
            function is None
            or arguments is None
            or any(child.type == "kernel_call_syntax" for child in node.children)
        ):
            return self.opaque(node)
        args = tuple([self.expr(a, d) for a in arguments.named_children if a.type != "comment"])
        if function.type == "parenthesized_expression" and len(args) == 1:
            inner = _only_child(function)
            if inner is not None and inner.type in ("identifier", "qualified_identifier"):
                return self._converted(c.Type(canonical(self.place.short(inner), self.language)), args)
        if function.type == "field_expression":
            return self._method_call(node, function, args, d)
        if (called := self.lambda_called(function, args)) is not None:
            return called
        template_args: tuple[str, ...] = ()
        name, list_text = function, ""
        while name.type in ("qualified_identifier", "template_function", "dependent_name"):
            if name.type == "template_function":
                listed = name.child_by_field_name("arguments")
                given = listed.named_children if listed is not None else []
                template_args = tuple(self.place.short(a) for a in given)
                list_text = self.place.short(listed) if listed is not None else ""
                if (named := name.child_by_field_name("name")) is not None and named.type != "identifier":
                    return self.opaque(node)
                if given and self.place.short(name).split("<")[0] in _CASTS:
                    return c.Cast(self.type_of(given[0]), args[0]) if args else self.opaque(node)
            following = name.child_by_field_name("name")
            if following is None:
                return self.opaque(node)
            name = following
        if name.type not in ("identifier", "primitive_type"):
            return self.opaque(node)
        whole = self.qualified(function)
        if whole in self.variables or not whole.endswith(list_text):  # an object, if it is one
            is_plain = list_text or self.language == "opencl" or self.variables[whole].base == "auto"
            return self.opaque(node) if is_plain else c.Call("operator()", args, (), c.Name(whole))
        whole = whole.removesuffix(list_text) if template_args else whole
        if "<" in whole:  # std::numeric_limits<float>::max(), Traits<T>::convert<U>(x)
            return c.Call(whole, args, template_args)
        if self.place.is_type(whole) and not template_args:
            return self._converted(c.Type(canonical(whole, self.language)), args)
        return self._known_call(whole, args, template_args)

    def lambda_called(self, function: Node, args: tuple[c.Expr, ...]) -> c.Expr | None:
        """The call of a lambda as that of a function; None for any other."""
        return None

    def _method_call(self, node: Node, function: Node, args: tuple[c.Expr, ...], d: int) -> c.Expr:
        named, base = function.child_by_field_name("field"), function.child_by_field_name("argument")
        if named is not None and named.type == "dependent_name" and named.named_children:
            named = named.named_children[0]  # v.template load<4>(p)
        listed = named.child_by_field_name("arguments") if named is not None else None
        if named is not None and named.type == "template_method":
            named = named.child_by_field_name("name") or named
        if named is None or base is None or named.type != "field_identifier" or self.language == "opencl":
            return self.opaque(node)
        template_args = tuple(self.place.short(a) for a in listed.named_children) if listed else ()
        of = self.expr(base, d)
        if any(child.type == "->" for child in function.children):
            of = of if of == c.Name("this") else c.Index(of, _ZERO)
        return c.Call(self.place.short(named), args, template_args, of)

    def _converted(self, type_: c.Type, args: tuple[c.Expr, ...]) -> c.Expr:
        return c.Cast(type_, args[0]) if len(args) == 1 else c.Braces(args, type_)

    def _known_call(self, name: str, args: tuple[c.Expr, ...], template_args: tuple[str, ...]) -> c.Expr:
        if self.language != "opencl":
            return c.Call(name, args, template_args)
        if name in _BARRIERS:
            return c.Call("__syncthreads", () if args == (c.Name("CLK_LOCAL_MEM_FENCE"),) else args)
        if len(args) == 1 and isinstance(args[0], c.Number) and args[0].value in (0, 1, 2):
            axis = "xyz"[int(args[0].value)]
            if name in c.OPENCL_INDICES:
                return c.Name(f"{c.OPENCL_INDICES[name]}.{axis}")
            group = c.Name(f"blockIdx.{axis}"), c.Name(f"blockDim.{axis}")
            if name == "get_global_id":
                return c.Binary("+", c.Binary("*", *group), c.Name(f"threadIdx.{axis}"))
            if name == "get_global_size":
                return c.Binary("*", c.Name(f"gridDim.{axis}"), group[1])
        return c.Call(name, args)

    def _cast(self, node: Node, d: int) -> c.Expr:
        descriptor, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        if descriptor is None or value is None:
            return self.opaque(node)
        type_ = self.type_of(descriptor)
        if self.language == "opencl" and value.type == "parenthesized_expression":
            inner = _only_child(value)
            if inner is not None and inner.type == "comma_expression":  # (float4)(a, b, c, d)
                return c.Braces(tuple(self.commas(inner, d)), type_)
        return c.Cast(plain_value(type_), self.expr(value, d))

    def commas(self, node: Node | None, depth: int = 0) -> list[c.Expr]:
        """The parts of `a, b, c`, which the grammars nest to either side."""
        found: list[c.Expr] = []
        pending: list[Node | None] = [node] if node is not None else []
        while pending:
            part = pending.pop()
            if part is not None and part.type == "comma_expression":
                pending += [part.child_by_field_name("right"), part.child_by_field_name("left")]
            else:
                found.append(self.expr(part, depth + 1))
        return found

    def _sizeof(self, node: Node) -> c.Expr:
        descriptor, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        if descriptor is not None:
            return c.SizeOf(plain_value(self.type_of(descriptor)))
        inner = (
            _only_child(value) if value is not None and value.type == "parenthesized_expression" else value
        )
        if inner is not None and inner.type in ("identifier", "primitive_type", "type_identifier"):
            name = self.place.short(inner)
            if self.place.is_type(name):
                return c.SizeOf(c.Type(canonical(name, self.language)))
        return self.opaque(node)

    def _compound_literal(self, node: Node, d: int) -> c.Expr:
        type_node, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        if type_node is None or value is None:
            return self.opaque(node)
        if type_node.type == "type_descriptor":  # C: (float4){a, b}
            type_ = self.type_of(type_node)
        else:
            type_ = c.Type(canonical(self.place.short(type_node), self.language))
        return c.Braces(tuple([self.expr(item, d) for item in value.named_children]), type_)


def _negated(number: c.Number) -> c.Expr:
    if is_unsigned(number.text):
        return c.Unary("-", number)
    return c.Number(f"-{number.text}", -number.value)


def _only_child(node: Node | None) -> Node | None:
    """The expression in parentheses, a condition or a subscript."""
    if node is None:
        return None
    inside = [child for child in node.named_children if child.type != "comment"]
    return inside[0] if len(inside) == 1 else None
