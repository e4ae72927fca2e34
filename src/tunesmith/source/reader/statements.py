"""Expressions from tree-sitter's nodes, in the tree's one spelling for each thing.

Long, because every kind of node has its case here, and cases call each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import NotAssembly, instruction_lines, is_function, is_pure
from tunesmith.source.reader.grammar import OPENCL_SPACES, GrammarText, syntax_nodes, syntax_tree
from tunesmith.source.substitution import substitute
from tunesmith.source.tree import leaves_switch, without_break
from tunesmith.source.types import byte_size, canonical_type_name, integer_literal, vector_parts
from tunesmith.source.walk import prepend_comments, statements_in

if TYPE_CHECKING:
    from tree_sitter import Node


# -- Types and declarators from tree-sitter's nodes: what stands before a declared name, and around it.


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
        type_ = c.Type(canonical_type_name(base, self.language), const=const, volatile=volatile, space=space)
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
                words = {(part.text or b"").decode() for part in node.children if part != inner}
                restrict = bool(words & _RESTRICT)
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
                return self._apply_prefix(self._operator(node), self._field(node, "argument", d))
            case "update_expression":
                op, operand = self._operator(node), node.child_by_field_name("argument")
                if node.children[0].type == op:
                    return c.Unary(op, self.expr(operand, d))
                return self._apply_postfix(op, operand, d)
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
                return self._read_sizeof(node)
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
        place = self.place
        self.place = place.place_between("int value = ( ", node, ") ;")
        try:
            tree = syntax_tree(self.place.text, self.language)
            values = [n for n in syntax_nodes(tree) if n.type == "parenthesized_expression"]
            if tree.has_error or not values:
                raise place.trouble(node, "", " is not understood as an expression")
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
        value = c.read_number(positive)
        if value is None:
            return self.opaque(node)
        return _negate_literal(c.Number(positive, value)) if text.startswith("-") else c.Number(text, value)

    def _apply_postfix(self, op: str, operand: Node | None, d: int) -> c.Expr:
        """The grammar reads `-x++` as (-x)++ and `(float)x++` as ((float)x)++."""
        if d > c.MAX_DEPTH:
            raise c.TooDeep
        if operand is not None and operand.type in ("unary_expression", "pointer_expression"):
            inner = self._apply_postfix(op, operand.child_by_field_name("argument"), d + 1)
            return self._apply_prefix(self._operator(operand), inner)
        if operand is not None and operand.type == "cast_expression":
            descriptor = operand.child_by_field_name("type")
            if descriptor is not None:
                value = self._apply_postfix(op, operand.child_by_field_name("value"), d + 1)
                return c.Cast(plain_value(self.type_of(descriptor)), value)
        return c.Unary(op, self.expr(operand, d), postfix=True)

    def _apply_prefix(self, op: str, operand: c.Expr) -> c.Expr:
        op = {"not": "!", "compl": "~"}.get(op, op)
        if op == "*":
            return self._dereference_address(operand)
        if op == "-" and isinstance(operand, c.Number) and not operand.text.startswith("-"):
            return _negate_literal(operand)
        return c.Unary(op, operand)

    def _dereference_address(self, address: c.Expr) -> c.Expr:
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

    def _call(self, node: Node, d: int) -> c.Expr:
        function, arguments = map(node.child_by_field_name, ("function", "arguments"))
        is_launch = any(child.type == "kernel_call_syntax" for child in node.children)
        if function is None or arguments is None or is_launch:
            return self.opaque(node)
        args = tuple([self.expr(a, d) for a in arguments.named_children if a.type != "comment"])
        if function.type == "parenthesized_expression" and len(args) == 1:
            inner = _only_child(function)
            if inner is not None and inner.type in ("identifier", "qualified_identifier"):
                return self._converted(self._named_type(inner), args)
        if function.type == "field_expression":
            return self._method_call(node, function, args, d)
        if (called := self.lambda_called(function, args)) is not None:
            return called
        template_args, name, list_text = tuple[str, ...](), function, ""
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
            if (following := name.child_by_field_name("name")) is None:
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
            return self._converted(c.Type(canonical_type_name(whole, self.language)), args)
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

    def _named_type(self, node: Node) -> c.Type:
        return c.Type(canonical_type_name(self.place.short(node), self.language))

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

    def _read_sizeof(self, node: Node) -> c.Expr:
        descriptor, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        if descriptor is not None:
            return c.SizeOf(plain_value(self.type_of(descriptor)))
        in_brackets = value is not None and value.type == "parenthesized_expression"
        inner = _only_child(value) if in_brackets else value
        names = ("identifier", "primitive_type", "type_identifier")
        if inner is None or inner.type not in names or not self.place.is_type(self.place.short(inner)):
            return self.opaque(node)
        return c.SizeOf(self._named_type(inner))

    def _compound_literal(self, node: Node, d: int) -> c.Expr:
        type_node, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        if type_node is None or value is None:
            return self.opaque(node)
        if type_node.type == "type_descriptor":  # C: (float4){a, b}
            type_ = self.type_of(type_node)
        else:
            type_ = self._named_type(type_node)
        return c.Braces(tuple([self.expr(item, d) for item in value.named_children]), type_)


def _negate_literal(number: c.Number) -> c.Expr:
    if number.is_unsigned:
        return c.Unary("-", number)
    return c.Number(f"-{number.text}", -number.value)


def _only_child(node: Node | None) -> Node | None:
    """The expression in parentheses, a condition or a subscript."""
    if node is None:
        return None
    inside = [child for child in node.named_children if child.type != "comment"]
    return inside[0] if len(inside) == 1 else None


# -- Inline assembly that says what the language says as well: exchanges between lanes, loads and stores.
#
#     asm("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, %3;" : "=f"(y) : "f"(x), "r"(d), "r"(mask))
#                                         ->  y = __shfl_xor_sync(mask, x, d)
#     asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), ... : "l"(p))
#                                         ->  v = *(const uint4 *)p
#     asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @p ld.global.u32 %0, [%1]; }" : ...)
#                                         ->  v = 0; if (ok) v = *(const unsigned *)p
#     asm("griddepcontrol.wait;")         ->  cudaGridDependencySynchronize()
#
# One access to a statement, every operand accounted for; all else stays text.


_SHUFFLE = re.compile(r"shfl\.sync\.(bfly|down|up|idx)\.b32 (.*)")
_NAMES = {
    "bfly": "__shfl_xor_sync", "down": "__shfl_down_sync", "up": "__shfl_up_sync", "idx": "__shfl_sync",
}  # fmt: skip
_HINTS = r"(?:\.(?:nc|ca|cg|cs|lu|cv|wb|wt|relaxed|weak|gpu|L1::\w+|L2::\w+))*"
_ACCESS = re.compile(rf"(ld|st)\.global({_HINTS})(?:\.v([24]))?\.([busf])(8|16|32|64) (.*)")
_LOAD = re.compile(r"(?:\{(?P<several>[^{}]*)\}|(?P<one>%\d+)), ?\[(?P<at>%\d+)(?: ?\+ ?(?P<plus>\d+))?\]")
_STORE = re.compile(r"\[(?P<at>%\d+)(?: ?\+ ?(?P<plus>\d+))?\], ?(?:\{(?P<several>[^{}]*)\}|(?P<one>%\d+))")
_PREDICATE = re.compile(r"\.reg ?\.pred %?(\w+)")
_TEST = re.compile(r"setp\.ne\.[bsu](?:32|64) %?(\w+), ?(%\d+), ?0")
_ZEROING = re.compile(r"mov\.[busf](?:16|32|64) (%\d+), ?0(?:x0+)?")
_UNDER = re.compile(r"@%?(\w+) (.*)")
_DEPENDENT = re.compile(
    r'asm(?: volatile)? ?\( ?"griddepcontrol\.(wait|launch_dependents);? ?"(?: ?: ?: ?: ?"memory")? ?\) ?;?'
)
_DEPENDENTS = {
    "wait": "cudaGridDependencySynchronize", "launch_dependents": "cudaTriggerProgrammaticLaunchCompletion",
}  # fmt: skip
# Of a constraint: the type that its register has, and its bits.
_REGISTERS = {
    "f": ("float", 32), "r": ("unsigned int", 32), "h": ("unsigned short", 16),
    "l": ("unsigned long long", 64), "d": ("double", 64),
}  # fmt: skip
_VECTORS = {
    "float": "float", "unsigned int": "uint", "unsigned short": "ushort", "double": "double",
    "unsigned long long": "ulonglong",
}  # fmt: skip


@dataclass(frozen=True)
class AsmOperand:
    constraint: str
    value: c.Expr


def as_statements(
    text: str,
    outputs: Sequence[AsmOperand],
    inputs: Sequence[AsmOperand],
    types: Mapping[str, c.Type],
    line: int,
) -> tuple[c.Stmt, ...] | None:
    """None: it stays assembly. `types`: of variables, as far as they are known."""
    if (found := _DEPENDENT.fullmatch(" ".join(text.split()))) is not None:
        return (c.Evaluate(c.Call(_DEPENDENTS[found[1]]), line=line),)
    try:
        lines = instruction_lines(text)
    except NotAssembly:
        return None
    if any(not output.constraint.startswith("=") for output in outputs):
        return None
    lowering = _AsmLowering(outputs, (*outputs, *inputs), types, line)
    return lowering.lower_guarded_access(lines) if len(lines) > 1 else lowering.lower_instruction(lines[0])


@dataclass(frozen=True)
class _AsmLowering:
    outputs: Sequence[AsmOperand]
    operands: Sequence[AsmOperand]  # those that are set first
    types: Mapping[str, c.Type]
    line: int

    def _assignment(self, target: c.Expr, value: c.Expr) -> c.Evaluate:
        return c.Evaluate(c.Assign("=", target, value), line=self.line)

    def lower_guarded_access(self, lines: Sequence[str]) -> tuple[c.Stmt, ...] | None:
        """An access under a predicate: what a load leaves out is zero."""
        declared, tested = _PREDICATE.fullmatch(lines[0]), _TEST.fullmatch(lines[1])
        access = _UNDER.fullmatch(lines[-1])
        if declared is None or tested is None or access is None:
            return None
        if not declared[1] == tested[1] == access[1]:
            return None
        test = self._numbered_operand(tested[2])
        zeros = [_ZEROING.fullmatch(one) for one in lines[2:-1]]
        if test is None or test.constraint not in ("r", "l") or any(zero is None for zero in zeros):
            return None
        named = [zero[1] for zero in zeros if zero is not None]
        if sorted(named) != sorted(f"%{at}" for at in range(len(self.outputs))):
            return None
        inside = self.lower_instruction(access[2])
        set_here = {walk.root_variable(output.value)[0] for output in self.outputs}
        read_there = [operand.value for operand in self.operands[len(self.outputs) :]]
        if inside is None or any(walk.names_in(value) & set_here for value in read_there):
            return None
        before = tuple(self._assignment(output.value, _ZERO) for output in self.outputs)
        match inside:
            case (c.Evaluate(expr=c.Assign(target=whole)),) if len(self.outputs) > 1:
                before = (self._assignment(whole, _zero_vector(self.outputs)),)
        return (*before, c.If(c.Binary("!=", test.value, _ZERO), inside, line=self.line))

    def lower_instruction(self, text: str) -> tuple[c.Stmt, ...] | None:
        if (found := _SHUFFLE.fullmatch(text)) is not None:
            return self._lower_shuffle(found[1], found[2])
        found = _ACCESS.fullmatch(text)
        if found is None or ".relaxed" in found[2] or ".cv" in found[2]:
            return None
        width, kind, bits = int(found[3] or 1), found[4], int(found[5])
        place = (_LOAD if found[1] == "ld" else _STORE).fullmatch(found[6])
        if place is None or place["plus"]:
            return None
        names = [part.strip() for part in (place["several"] or place["one"]).split(",")]
        moved = [value for name in names if (value := self._numbered_operand(name)) is not None]
        pointer = self._numbered_operand(place["at"])
        if not len(names) == len(moved) == len(set(names)) == width or pointer is None:
            return None
        register = _moved_register_type(moved, kind, bits)
        if register is None:
            return None
        if found[1] == "ld":
            in_order = names == [f"%{at}" for at in range(len(self.outputs))]
            return self._lower_load(moved, register, pointer) if in_order else None
        return None if self.outputs else self._lower_store(moved, register, pointer)

    def _numbered_operand(self, text: str) -> AsmOperand | None:
        number = int(text[1:]) if re.fullmatch(r"%\d+", text) else -1
        return self.operands[number] if 0 <= number < len(self.operands) else None

    def _operand_value(self, text: str) -> c.Expr | None:
        if re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", text):
            value = int(text, 0)
            return c.Number(text if value < 2**31 else f"{text}u", value)
        operand = self._numbered_operand(text)
        return None if operand is None else operand.value

    def _lower_shuffle(self, way: str, text: str) -> tuple[c.Stmt, ...] | None:
        parts = [part.strip() for part in text.split(",")]
        if len(parts) != 5 or parts[0] != "%0" or len(self.outputs) != 1:
            return None
        target, value = self.operands[0], self._numbered_operand(parts[1])
        by, clamp, mask = map(self._operand_value, parts[2:])
        if value is None or by is None or mask is None or not isinstance(clamp, c.Number):
            return None
        if value.constraint != target.constraint.lstrip("=") or value.constraint not in ("f", "r"):
            return None
        segment, low = divmod(int(clamp.value), 256)
        width = 32 - segment
        if low != (0 if way == "up" else 31) or width not in (1, 2, 4, 8, 16, 32):
            return None
        args = (mask, value.value, by, *(() if width == 32 else (c.Number(str(width), width),)))
        return (self._assignment(target.value, c.Call(_NAMES[way], args)),)

    def _lower_load(
        self, values: Sequence[AsmOperand], register: str, pointer: AsmOperand
    ) -> tuple[c.Stmt, ...]:
        vector = _vector_type_name(register, len(values))
        found = _dereference_as(pointer, vector, const=True)
        if (whole := self._whole_vector(values, vector)) is not None:
            return (self._assignment(whole, found),)
        name = f"loaded_{self.line}"
        pairs = zip(values, "xyzw", strict=False)
        parts = [self._assignment(value.value, c.Member(c.Name(name), field)) for value, field in pairs]
        return (c.Declare(c.Type(vector, const=True), name, found, line=self.line), *parts)

    def _lower_store(
        self, values: Sequence[AsmOperand], register: str, pointer: AsmOperand
    ) -> tuple[c.Stmt, ...]:
        vector = _vector_type_name(register, len(values))
        made = c.Call(f"make_{vector}", tuple(value.value for value in values))
        return (
            self._assignment(
                _dereference_as(pointer, vector, const=False), self._whole_vector(values, vector) or made
            ),
        )

    def _whole_vector(self, values: Sequence[AsmOperand], vector: str) -> c.Expr | None:
        """A single value, or the variable whose parts x, y, z, w these are, in order."""
        first = values[0].value
        if len(values) == 1:
            return first
        base = first.base if isinstance(first, c.Member) else None
        known = self.types.get(base.name) if isinstance(base, c.Name) else None
        if base is None or known is None or (known.base, known.pointers) != (vector, 0):
            return None
        parts = [c.Member(base, field) for field in "xyzw"[: len(values)]]
        return base if [value.value for value in values] == parts else None


def _zero_vector(outputs: Sequence[AsmOperand]) -> c.Expr:
    register = _REGISTERS[outputs[0].constraint.lstrip("=")][0]
    zero = c.Number("0.0f", 0.0) if register == "float" else _ZERO
    return c.Call(f"make_{_vector_type_name(register, len(outputs))}", tuple(zero for _ in outputs))


def _moved_register_type(values: Sequence[AsmOperand], kind: str, bits: int) -> str | None:
    """The type that moves: that of the registers, where they are as wide as what lies in memory."""
    found = {_REGISTERS.get(value.constraint.lstrip("="), ("", 0)) for value in values}
    name, wide = found.pop() if len(found) == 1 else ("", 0)
    if kind == "s" or wide != bits or (kind == "f" and name not in ("float", "double")):
        return None
    return name


def _vector_type_name(register: str, count: int) -> str:
    name = f"{_VECTORS[register]}{count}" if count > 1 else register
    assert count == 1 or vector_parts(name), name
    return name


def _dereference_as(pointer: AsmOperand, type_: str, const: bool) -> c.Expr:
    value = pointer.value
    while isinstance(value, c.Cast) and not value.type.is_pointer:
        value = value.value
    if isinstance(value, c.Call) and value.function == "__cvta_generic_to_global":
        value = value.args[0]
    return c.Index(c.Cast(c.Type(type_, 1, const), value), _ZERO)


# -- Statements from tree-sitter's nodes.


_NOTHING = frozenset({"comment", "preproc_call", ";", "static_assert_declaration"})


class StatementReader(ExpressionReader):
    template: frozenset[str] = frozenset()  # names of the template's parameters, of the function at hand

    def __init__(self, place: GrammarText) -> None:
        super().__init__(place)
        self.arrays: dict[str, c.Declare | None] = {}  # of the function; None: a name that is declared twice

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
        return prepend_comments(done, self.place.comments(node.start_byte, _head_end(node)))

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
            case "for_range_loop":
                return (self._for_each(node, line, d),)
            case "while_statement" | "do_statement":
                condition = node.child_by_field_name("condition")
                if _has_declaration(condition):
                    return (self._read_verbatim(node, line),)
                body = self.block(node.child_by_field_name("body"), d)
                loop = c.While(self.expr(condition), body, node.type == "do_statement", line=line)
                return (_unwrap_single_pass_loop(loop),)
            case "switch_statement":
                found = self._read_switch(node, line, d)
                return (self._read_verbatim(node, line),) if found is None else found
            case "return_statement":
                value = next(iter(parts_of(node)), None)
                return (c.Return(None if value is None else self.expr(value), line=line),)
            case "break_statement" | "continue_statement":
                return (c.Jump("break" if node.type == "break_statement" else "continue", line=line),)
            case "attributed_statement":
                return self._read_attributed(node, d)
            case kind if kind in _NOTHING:
                return ()
        return (self._read_verbatim(node, line),)

    def _read_switch(self, node: Node, line: int, d: int) -> tuple[c.Stmt, ...] | None:
        """One that a template argument decides, as branches; None where a case goes on into the next one."""
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
        cases = parts_of(body)
        if _has_declaration(condition) or any(case.type != "case_statement" for case in cases):
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
            if is_default and case != cases[-1]:
                return None
            tests: list[c.Expr] = [c.Binary("==", asked, value) for value in labels]
            any_of = None if is_default else reduce(lambda left, right: c.Binary("||", left, right), tests)
            ways.append((any_of, stmts))
            labels, is_default = [], False
        done: tuple[c.Stmt, ...] = ()
        for choice, stmts in reversed(ways):
            done = stmts if choice is None else (c.If(choice, stmts, done, line=line),)
        return (c.Scope(done, line=line),)

    def _read_verbatim(self, node: Node, line: int) -> c.Verbatim:
        return c.Verbatim(self.place.written(node), self.place.names(node), line=line)

    def _expression_statement(self, node: Node, line: int) -> tuple[c.Stmt, ...]:
        inside = parts_of(node)
        if not inside:
            return ()
        if inside[0].type == "gnu_asm_expression":
            return self._read_assembly(node, inside[0], line)
        if inside[0].type == "comma_expression":
            return tuple(c.Evaluate(part, line=line) for part in self.commas(inside[0]))
        return (c.Evaluate(self.expr(inside[0]), line=line),)

    def _read_assembly(self, node: Node, inside: Node, line: int) -> tuple[c.Stmt, ...]:
        try:
            sides = [inside.child_by_field_name(f"{side}_operands") for side in ("output", "input")]
            outputs, inputs = ([self._read_asm_operand(part) for part in parts_of(side)] for side in sides)
        except c.Unreadable:
            return (self._read_verbatim(node, line),)
        found = as_statements(self.place.written(node), outputs, inputs, self.variables, line)
        return (self._read_verbatim(node, line),) if found is None else found

    def _read_asm_operand(self, node: Node) -> AsmOperand:
        constraint, value = node.child_by_field_name("constraint"), node.child_by_field_name("value")
        if constraint is None or value is None or node.child_by_field_name("symbol") is not None:
            raise self.place.trouble(node, "", " is an operand that is not understood")
        words = self.place.words(constraint.start_byte, constraint.end_byte)
        return AsmOperand("".join(word.text for word in words).strip('"'), self.expr(value))

    def _read_attributed(self, node: Node, d: int) -> tuple[c.Stmt, ...]:
        """`#pragma unroll` reached the grammar as [[unroll]]."""
        inner = node.named_children[-1]
        done = self.statement(inner, d)
        attribute = (node.named_children[0].text or b"").decode()
        count: int | None = None
        if "unroll" in attribute:
            inside = attribute.partition("(")[2].partition(")")[0].strip()
            value = c.read_number(inside) if inside else 0
            count = value if isinstance(value, int) else 0
        if len(done) == 1 and isinstance(done[0], c.For) and count is not None:
            return (replace(done[0], unroll=count),)
        return done

    def _if(self, node: Node, line: int, d: int) -> c.Stmt:
        condition = node.child_by_field_name("condition")
        if _has_declaration(condition):
            return self._read_verbatim(node, line)
        then, otherwise = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        about_rest: tuple[c.Comment, ...] = ()
        if otherwise is not None and otherwise.type == "else_clause":
            start, otherwise = otherwise.start_byte, next(reversed(parts_of(otherwise)), None)
            if otherwise is not None and otherwise.type == "compound_statement":
                about_rest = self.place.comments(start, otherwise.start_byte + 1)
        ahead = [replace(said, behind=False) for said in about_rest]
        return c.If(
            self.expr(condition),
            self.block(then, d),
            prepend_comments(self.block(otherwise, d), ahead),
            constexpr=any(child.type == "constexpr" for child in node.children),
            line=line,
        )

    def _for(self, node: Node, line: int, d: int) -> c.Stmt:
        head = node.child_by_field_name("initializer")
        condition = node.child_by_field_name("condition")
        if _has_declaration(condition):
            return self._read_verbatim(node, line)
        init: list[c.Declare | c.Evaluate] = []
        if head is not None and head.type == "declaration":
            for part in self.declaration(head, line):
                if not isinstance(part, c.Declare):
                    return self._read_verbatim(node, line)
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

    def _for_each(self, node: Node, line: int, d: int) -> c.Stmt:
        """`for (float &v : a)` over an array of the function: a loop that counts, v as a copy or as a[at]."""
        right = node.child_by_field_name("right")
        array = self.place.short(right) if right is not None and right.type == "identifier" else ""
        known = self.arrays.get(array)
        declarator = node.child_by_field_name("declarator")
        if known is None or declarator is None or node.child_by_field_name("initializer") is not None:
            return self._read_verbatim(node, line)
        declared = self.declarator(declarator, self.specifiers(node).type)
        name, type_ = declared.name, declared.type
        same = type_.base in ("auto", known.type.base) and type_.pointers == 0 == known.type.pointers
        if declared.dims or (type_.reference and not same) or (len(known.dims) > 1 and not type_.reference):
            return self._read_verbatim(node, line)
        self.arrays[name] = replace(known, dims=known.dims[1:]) if len(known.dims) > 1 else None
        self.declare(name, replace(known.type, pointers=len(known.dims) - 1))
        body = self.block(node.child_by_field_name("body"), d)
        at = c.Name(walk.fresh_name(f"{name}_at", {*self.variables, *walk.names_in(body)}))
        element = c.Index(c.Name(array), at)
        texts = (n for n in walk.nodes_in(body) if isinstance(n, c.Verbatim | c.Opaque))
        if {array, name}.intersection(walk.declared_in(body)):
            return self._read_verbatim(node, line)
        if type_.reference and any(name in text.names for text in texts):
            return self._read_verbatim(node, line)
        is_object = type_.const and byte_size(known.type.base) is None  # which methods ask
        if type_.reference and not is_object:
            body = substitute(body, {name: element})
        else:
            type_ = replace(type_, base=known.type.base) if type_.reference else type_
            body = (c.Declare(type_, name, element, line=line), *body)
        count = c.Declare(c.Type("int"), at.name, integer_literal(0), line=line)
        return c.For((count,), c.Binary("<", at, known.dims[0]), (c.Unary("++", at),), body, line=line)

    def declaration(self, node: Node, line: int) -> tuple[c.Stmt, ...]:
        try:
            specifiers = self.specifiers(node)
            declarators = node.children_by_field_name("declarator")
            if not declarators or specifiers.words & {"mutable", "thread_local", "inline"}:
                return (self._read_verbatim(node, line),)
            if specifiers.type.base.startswith("decltype"):
                return (self._read_verbatim(node, line),)
            plain = [part for part in declarators if not self._is_lambda(part)]
            return tuple([self._declared(specifiers, part, line) for part in plain])
        except c.TooDeep:
            raise
        except c.Unreadable:
            return (self._read_verbatim(node, line),)  # kept as text: only what names it is not understood

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
            init = self._read_construction(found)
        elif value is not None and value.type == "argument_list":
            init = _construct_value(found, tuple(self.expr(a) for a in parts_of(value)))
        elif value is not None:
            init = self.expr(value)
        storage = _storage_class(specifiers, found.type, self.place.language)
        if storage == "shared" and not found.type.is_pointer:
            found = replace(found, type=replace(found.type, space=""))
        dims: tuple[c.Expr, ...] = ()
        if storage != "dynamic shared":
            if None in found.dims and not isinstance(init, c.Braces):
                raise c.Unreadable("an array without a size", line)
            count = integer_literal(len(init.items) if isinstance(init, c.Braces) else 0)
            dims = tuple(self.expr(dim) if dim is not None else count for dim in found.dims)
        again = found.name in self.variables
        self.declare(found.name, replace(found.type, pointers=found.type.pointers + len(found.dims)))
        align = None if specifiers.align is None else self.expr(specifiers.align)
        done = c.Declare(found.type, found.name, init, dims, storage, align, line=line)
        self.arrays[found.name] = done if dims and not again else None
        return done

    def _read_construction(self, found: Declarator) -> c.Expr:
        """`float4 v(a, b);`, which the grammar takes for the declaration of a function."""
        items: list[c.Expr] = []
        for parameter in parts_of(found.arguments):
            if not self._is_value(parameter):
                raise c.Unreadable("a function is declared inside a function", self.place.line(parameter))
            items.append(self.reread(parameter))
        if not items:
            raise c.Unreadable("a function is declared inside a function")
        return _construct_value(found, tuple(items))

    def _is_value(self, node: Node) -> bool:
        """Whether `a`, `x[i]`, `a * b` between parentheses are a value, and not a parameter's type."""
        words = self.place.words(node.start_byte, node.end_byte)
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


def _construct_value(found: Declarator, args: tuple[c.Expr, ...]) -> c.Expr:
    type_ = plain_value(found.type)
    return c.Cast(type_, args[0]) if len(args) == 1 else c.Braces(args, type_)


def _unwrap_single_pass_loop(loop: c.While) -> c.Stmt:
    """`do { ... } while (0)` of a macro is only a scope."""
    never = isinstance(loop.condition, c.Number) and loop.condition.value == 0
    leaves = any(isinstance(part, c.Jump | c.Verbatim) for part in statements_in(loop.body))
    return c.Scope(loop.body, line=loop.line) if loop.after and never and not leaves else loop


def _has_declaration(condition: Node | None) -> bool:
    """`if (int x = f(); x > 0)`: a declaration where a plain condition is expected."""
    if condition is None:
        return False
    return any(child.type in ("declaration", "init_statement") for child in condition.named_children)


def _storage_class(specifiers: Specifiers, type_: c.Type, language: str) -> c.Storage:
    words = specifiers.words
    if "__shared__" in words:
        return "dynamic shared" if "extern" in words else "shared"
    if language == "opencl" and type_.space == "local" and not type_.is_pointer:
        return "shared"
    if "constexpr" in words:
        return "constexpr"
    return "static" if "static" in words else ""


def parts_of(node: Node | None) -> list[Node]:
    """What stands below a node, without comments."""
    return [child for child in node.named_children if child.type != "comment"] if node is not None else []


# -- Whole functions from tree-sitter's nodes: their heads, and the parameters of templates.


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
        declarator, result = node.child_by_field_name("declarator"), self.specifiers(node).type
        while declarator is not None and declarator.type in ("pointer_declarator", "reference_declarator"):
            pointer = declarator.type == "pointer_declarator"
            is_reference = result.reference or not pointer
            result = replace(result, pointers=result.pointers + pointer, reference=is_reference)
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
        return c.Function(
            self.place.short(name).replace(" ", ""),
            self._parameters(declarator.child_by_field_name("parameters")),
            self.block(node.child_by_field_name("body")),
            result,
            is_kernel=bool(words & KERNEL_WORDS),
            template=template,
            specialises=tuple(canonical_type_name(text, self.place.language) for text in specialises),
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
                    is_plain = child.named_children[-1].type == "type_parameter_declaration"
                    if not is_plain or names[-1].type != "type_identifier":
                        raise self.place.trouble(child, "the template parameter ", " is not understood")
                    found.append(c.TemplateParameter(self._text(names[-1]), "type"))
                case "parameter_declaration" | "optional_parameter_declaration":
                    declared = self.declared(child)
                    value = self._text(child.child_by_field_name("default_value"))
                    found.append(c.TemplateParameter(declared.name, "value", declared.type, value))
                case _:
                    raise self.place.trouble(child, "the template parameter ", " is not understood")
        return tuple(found)

    def _text(self, node: Node | None) -> str:
        return "" if node is None else self.place.short(node)


# -- Lambdas as functions of the file: what they capture becomes parameters, passed at every call.
#
# A lambda that is called where it stands, or that a variable is set to and that is called or handed on (see
# `inline`). By value it would keep what a variable was when it was made: taken only where nothing changes it.


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
        handed |= {name for arg in call.args if (name := walk.root_variable(arg)[0])}
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
            taken = set(self.variables)
            self.variables = {**outer_variables, **self.variables}
            self.pointers |= outer_pointers - taken
            body = self.block(node.child_by_field_name("body"))
            result = self._result(declarator)
            gives = any(isinstance(n, c.Return) and n.value for n in walk.nodes_in(body))
            result = result if gives or result.base != "auto" else c.Type("void")
        except c.TooDeep:
            raise
        except c.Unreadable:
            return None
        finally:
            self.variables, self.pointers = outer_variables, outer_pointers
        if any(isinstance(part, c.Verbatim | c.Opaque) for part in walk.nodes_in(body)):
            return None
        inside = taken | set(walk.declared_in(body))
        free = tuple(sorted(n for n in walk.names_in(body) - inside if n in outer_variables))
        by_value = self._by_value(captures, free)
        moved = (outer_variables[n].is_pointer for n in walk.assigned_in(body) if n in free)
        if by_value is None or any(moved):
            return None  # a pointer that it moves would be another one outside
        return self._lift_lambda(name, parameters, body, result, (free, by_value), self.place.line(node))

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

    def _lift_lambda(
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

        def typed(type_: c.Type, name: str) -> c.Type:
            if type_.base != "auto":
                return type_
            generic.append(c.TemplateParameter(f"Type_{name}", "type"))
            return replace(type_, base=f"Type_{name}")

        passed = tuple(replace(p, type=typed(p.type, p.name)) for p in parameters)
        held: list[c.Parameter] = []
        for each in free:
            type_ = typed(self.variables[each], each)
            if not type_.is_pointer:
                type_ = replace(type_, reference=True, const=each not in changed, restrict=False)
            held.append(c.Parameter(replace(type_, restrict=False), each))
        function = c.Function(
            f"lambda_{name}_{line}", (*passed, *held), body, result, template=(*template, *generic), line=line
        )
        args = tuple(parameter.name for parameter in template)
        found = Lambda(function, free, args, by_value)
        self._all.append(found)
        return found
