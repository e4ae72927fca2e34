"""The small expression language of shapes, launches and constraints: integers in, one integer out.

Arithmetic is Python's (`//` and `%` round down); comparisons, `and`, `or` and `not` yield 0 or 1, and what
`and`, `or`, `if` and a chain do not need is not looked at: `BLOCK > 0 and d % BLOCK == 0` is safe.
An expression with no value (a division by zero, a name without a value, a number beyond 2**62) raises
`Undefined`; as a constraint it does not hold.
"""

from __future__ import annotations

import ast
import difflib
import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, assert_never, cast, get_args

from tunesmith.base.errors import BadInput

# Python's own parser splits the text; what it returns is translated node by node into our tree, and whatever
# has no translation is an error. Nothing of the text is ever evaluated.

# The largest magnitude of a value. Two of them add up to 64 bits at most, so that NumPy can check afterwards.
LIMIT = 2**62

ArithmeticOp = Literal["+", "-", "*", "//", "%"]
CompareOp = Literal["==", "!=", "<", "<=", ">", ">="]
BoolOp = Literal["and", "or"]
Function = Literal["min", "max", "ceildiv", "round_up", "next_pow2", "is_pow2"]


@dataclass(frozen=True, slots=True)
class Num:
    value: int


@dataclass(frozen=True, slots=True)
class Variable:
    id: str  # "d", or dotted: "device.sms"


@dataclass(frozen=True, slots=True)
class Neg:
    """Minus something. Minus a plain number is `Num(-3)`, so that a text has one tree and a tree one text."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node


@dataclass(frozen=True, slots=True)
class Arithmetic:
    op: ArithmeticOp
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right op right ...`, chained as in Python."""

    left: Node
    links: tuple[tuple[CompareOp, Node], ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    item: Node
    options: tuple[int, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Logic:
    op: BoolOp
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    test: Node
    then: Node
    other: Node


@dataclass(frozen=True, slots=True)
class FunctionCall:
    function: Function
    args: tuple[Node, ...]


Node = Num | Variable | Neg | Not | Arithmetic | Compare | OneOf | Logic | Conditional | FunctionCall


def operands_of_node(node: Node) -> tuple[Node, ...]:
    match node:
        case Num() | Variable():
            return ()
        case Neg(operand) | Not(operand):
            return (operand,)
        case Arithmetic(_, left, right):
            return (left, right)
        case Compare(left, links):
            return (left, *(right for _, right in links))
        case OneOf(item):
            return (item,)
        case Logic(_, operands):
            return operands
        case Conditional(test, then, other):
            return (test, then, other)
        case FunctionCall(_, args):
            return args
    assert_never(node)


def map_operands(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with each of its operands changed."""
    match node:
        case Num() | Variable():
            return node
        case Neg(operand) | Not(operand):
            return type(node)(change(operand))
        case Arithmetic(op, left, right):
            return Arithmetic(op, change(left), change(right))
        case Compare(left, links):
            return Compare(change(left), tuple((op, change(right)) for op, right in links))
        case OneOf(item, options, negated):
            return OneOf(change(item), options, negated)
        case Logic(op, operands):
            return Logic(op, tuple(map(change, operands)))
        case Conditional(test, then, other):
            return Conditional(change(test), change(then), change(other))
        case FunctionCall(function, args):
            return FunctionCall(function, tuple(map(change, args)))
    assert_never(node)


def iterate_nodes(node: Node) -> Iterator[Node]:
    """The node and all below it, in reading order."""
    yield node
    for child in operands_of_node(node):
        yield from iterate_nodes(child)


def iterate_variable_names(node: Node) -> Iterator[str]:
    """Every name in the tree, in reading order, repeats included."""
    return (part.id for part in iterate_nodes(node) if isinstance(part, Variable))


# Binding strength, weakest first, as in Python's grammar.
_IF, _OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _UNARY, _ATOM = range(9)


def unparse(node: Node) -> str:
    """The text of a tree, with the fewest parentheses; reading it again gives the same tree."""
    return _render_node(node, _IF)


def tidy_expression(text: str) -> str:
    """The same expression with the fewest parentheses."""
    return unparse(read_tree(text, None))


def product_text(factors: Iterable[str]) -> str:
    return tidy_expression(" * ".join(f"({text})" for text in factors))


def _render_node(node: Node, at_least: int) -> str:
    text, strength = _render_with_strength(node)
    return text if strength >= at_least else f"({text})"


def _render_with_strength(node: Node) -> tuple[str, int]:
    match node:
        case Num(value):
            return str(value), _ATOM if value >= 0 else _UNARY
        case Variable(id):
            return id, _ATOM
        case Neg(operand):
            return f"-{_render_node(operand, _UNARY)}", _UNARY
        case Not(operand):
            return f"not {_render_node(operand, _NOT)}", _NOT
        case Arithmetic(op, left, right):
            strength = _SUM if op in ("+", "-") else _PRODUCT
            return f"{_render_node(left, strength)} {op} {_render_node(right, strength + 1)}", strength
        case Compare(left, links):
            tail = "".join(f" {op} {_render_node(right, _SUM)}" for op, right in links)
            return f"{_render_node(left, _SUM)}{tail}", _COMPARE
        case OneOf(item, options, negated):
            listed = ", ".join(map(str, options)) + ("," if len(options) == 1 else "")
            return f"{_render_node(item, _SUM)} {'not in' if negated else 'in'} ({listed})", _COMPARE
        case Logic(op, operands):
            strength = _OR if op == "or" else _AND
            return f" {op} ".join(_render_node(operand, strength + 1) for operand in operands), strength
        case Conditional(test, then, other):
            text = f"{_render_node(then, _OR)} if {_render_node(test, _OR)} else {_render_node(other, _IF)}"
            return text, _IF
        case FunctionCall(function, args):
            return f"{function}({', '.join(_render_node(arg, _IF) for arg in args)})", _ATOM
    assert_never(node)


# Binding a name to a number may lengthen a text but adds no word, and such a text must be readable again:
# words are what is scarce, and there is room for all of them to become numbers.
MAX_WORDS = 3_000  # where a kernel serves is one condition, with all that its template requires in it
MAX_LENGTH = 80_000
MAX_DEPTH = 100  # far above any constraint written by hand, far below Python's own recursion limit
NAMESPACES = ("device", "resources")
FUNCTIONS: tuple[str, ...] = get_args(Function)

_ALLOWED_IN_EXPRESSIONS = (
    "an expression has integers, names, + - * // %, comparisons, in (1, 2), and, or, not, a if c else b, "
    + ", ".join(FUNCTIONS)
)
_SMALLER = "no size or limit is that large"
_OPERATOR_SIGNS: dict[type[ast.operator], ArithmeticOp] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip
_RELATIONS: dict[type[ast.cmpop], CompareOp] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_ARITY = {"ceildiv": 2, "round_up": 2, "next_pow2": 1, "is_pow2": 1}
_FOREIGN_CHARACTER = re.compile(r"[^A-Za-z0-9_+\-*/%<>=!()\[\],. \t\r\n]")
_WORD = re.compile(r"\w+")
_DEEP = re.compile(rf"([-(\[]\s*){{{MAX_DEPTH + 1}}}")
_NUMBER = re.compile(r"(?<![\w.])\d[\w.]*|\.\d\w*")
_INTEGER = re.compile(r"\d+(_\d+)*|0[xX][0-9a-fA-F]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIELD = re.compile(r"[a-z][a-z0-9_]*")
_WORDS = frozenset(("and", "or", "not", "in", "is", "if", "else", "lambda", "None", "True", "False"))
_HABITS = (  # what people used to C and to Python write instead
    (re.compile(r"&&"), "write 'and' for '&&'"),
    (re.compile(r"\|\|"), "write 'or' for '||'"),
    (re.compile(r"\?"), "write 'a if c else b' for 'c ? a : b'"),
    (re.compile(r"!(?!=)"), "write 'not' for '!'"),
    (re.compile(r"(?<![=<>!])=(?!=)"), "compare with '=='"),
    (re.compile(r"\*\*"), "there is no power; multiply, or use next_pow2"),
    (re.compile(r"(?<!/)/(?!/)"), "divide with '//' (rounds down) or ceildiv(a, b) (rounds up)"),
    (re.compile(r"\b(True|true|False|false)\b"), "write 1 for true and 0 for false"),
    (re.compile(r"[\"']"), "give a choice a number, such as 0 and 1, and say in a comment what they mean"),
)


class ExprError(BadInput):
    """A text that is not an expression, or that names what is not there."""


def is_name(text: str) -> bool:
    """Whether a parameter or a size may be called so: it must also do as a C macro."""
    reserved = text in _WORDS or text in FUNCTIONS or text in NAMESPACES
    return _NAME.fullmatch(text) is not None and not reserved


def read_tree(text: str, names: Collection[str] | None) -> Node:
    return _ExprReader(text, names).read()


def suggest_name(name: str, known: Collection[str]) -> str | None:
    """The known name that was probably meant, as a hint."""
    lowered = {other.lower(): other for other in sorted(known)}
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    if name.lower() in lowered:
        close = [lowered[name.lower()]]
    return f"did you mean '{close[0]}'?" if close else None


def shorten_text(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


class _ExprReader:
    def __init__(self, text: str, names: Collection[str] | None) -> None:
        self.text = text
        # A TOML text may run over several lines; to Python's parser a line break would end it.
        self.line = re.sub(r"\s", " ", text).strip()
        self.names = names

    def read(self) -> Node:
        text = self.text
        if len(text) > MAX_LENGTH:
            reason = f"it has {len(text)} characters, at most {MAX_LENGTH} are allowed"
            raise self.refused(reason, hint="split it up")
        if not text.strip():
            raise self.refused("it is empty", hint='write an integer or an expression such as "d % VEC == 0"')
        if len(_WORD.findall(text)) > MAX_WORDS:
            raise self.refused(f"it has more than {MAX_WORDS} names and numbers", hint="split it up")
        if _DEEP.search(text):
            raise self.refused("it is nested too deeply", hint="split it up")
        if foreign := _FOREIGN_CHARACTER.search(text):
            raise self.refused(f"the character {foreign[0]!a} is not allowed")
        for number in _NUMBER.findall(text):
            if not _INTEGER.fullmatch(number):
                raise self.refused(f"'{shorten_text(number)}' is not an integer")
            if len(number) > 40:  # Python would refuse thousands of digits in words of its own
                reason = f"an integer in it has {len(number)} digits, larger than 2**62"
                raise self.refused(reason, hint=_SMALLER)
        try:
            tree = ast.parse(self.line, mode="eval")
        except SyntaxError as error:
            offset = error.offset or 0
            place = f"near character {offset}" if 0 < offset <= len(self.line) else "at its end"
            # After the first sentence Python advises in terms of Python.
            raise self.refused(f"{error.msg.split('. ')[0]}, {place}") from error
        except (RecursionError, MemoryError, ValueError) as error:
            raise self.refused("it is nested too deeply", hint="split it up") from error
        return self.read_node(tree.body, 1)

    def refused(self, reason: str, *, hint: str | None = None) -> ExprError:
        habit = next((advice for pattern, advice in _HABITS if pattern.search(self.text)), None)
        message = f'"{shorten_text(self.text)}" is not an expression: {reason}'
        return ExprError(message, hint=hint or habit or _ALLOWED_IN_EXPRESSIONS)

    def read_node(self, tree: ast.expr, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self.refused(f"it is nested more than {MAX_DEPTH} deep", hint="split it up")
        depth += 1
        match tree:
            case ast.Constant(value):
                return Num(self.read_integer(value))
            case ast.Name(id):
                return self.read_name(id)
            case ast.Attribute(ast.Name(space), field):
                return self.read_dotted(space, field)
            case ast.UnaryOp(ast.USub(), ast.Constant(value)):
                return Num(-self.read_integer(value))
            case ast.UnaryOp(ast.USub(), operand):
                return Neg(self.read_node(operand, depth))
            case ast.UnaryOp(ast.Not(), operand):
                return Not(self.read_node(operand, depth))
            case ast.BinOp(left, op, right) if type(op) in _OPERATOR_SIGNS:
                sign = _OPERATOR_SIGNS[type(op)]
                return Arithmetic(sign, self.read_node(left, depth), self.read_node(right, depth))
            case ast.BoolOp(joint, operands):
                parts = tuple(self.read_node(operand, depth) for operand in operands)
                return Logic("and" if isinstance(joint, ast.And) else "or", parts)
            case ast.Compare():
                return self.read_comparison(tree, depth)
            case ast.IfExp(test, then, other):
                return Conditional(*(self.read_node(part, depth) for part in (test, then, other)))
            case ast.Call(ast.Name(function), args, []):
                return self.read_call(function, args, depth)
            case _:
                raise self.refused(f"'{self.source_of(tree)}' is not allowed")

    def source_of(self, tree: ast.expr) -> str:
        return shorten_text(self.line[tree.col_offset : tree.end_col_offset])

    def read_integer(self, value: object) -> int:
        if type(value) is not int:
            raise self.refused(f"'{value!r}' is not an integer")
        if value > LIMIT:
            raise self.refused("an integer in it is larger than 2**62", hint=_SMALLER)
        return value

    def read_name(self, name: str) -> Variable:
        if name in FUNCTIONS:
            raise self.refused(f"'{name}' is a function", hint=f"call it: {name}(...)")
        if name in NAMESPACES:
            raise self.refused(f"'{name}' alone has no value", hint=f"name one of its fields: {name}.<field>")
        return self.read_known_name(name)

    def read_dotted(self, space: str, field: str) -> Variable:
        if space not in NAMESPACES or not _FIELD.fullmatch(field):
            allowed = " and ".join(f"{namespace}.<field>" for namespace in NAMESPACES)
            raise self.refused(f"'{space}.{field}' is not allowed", hint=f"names with a dot are {allowed}")
        return self.read_known_name(f"{space}.{field}")

    def read_known_name(self, name: str) -> Variable:
        if self.names is not None and name not in self.names:
            boolean = "write 1 for true and 0 for false" if name in ("true", "false") else None
            raise _unknown_name(name, self.text, self.names, boolean or suggest_name(name, self.names))
        return Variable(name)

    def read_comparison(self, tree: ast.Compare, depth: int) -> Node:
        left, op, right = tree.left, tree.ops[0], tree.comparators[0]
        if len(tree.ops) == 1 and isinstance(op, ast.In | ast.NotIn):
            return OneOf(self.read_node(left, depth), self.read_options(right), isinstance(op, ast.NotIn))
        links: list[tuple[CompareOp, Node]] = []
        for op, right in zip(tree.ops, tree.comparators, strict=True):
            if isinstance(op, ast.In | ast.NotIn):
                raise self.refused("'in' cannot be part of a chain", hint="join two comparisons with 'and'")
            if type(op) not in _RELATIONS:
                raise self.refused("'is' is not allowed", hint="compare with '==' or '!='")
            links.append((_RELATIONS[type(op)], self.read_node(right, depth)))
        return Compare(self.read_node(left, depth), tuple(links))

    def read_options(self, tree: ast.expr) -> tuple[int, ...]:
        rule = "write the integers in parentheses or brackets: x in (1, 2) or x in [1]"
        if not isinstance(tree, ast.Tuple | ast.List) or not tree.elts:
            raise self.refused("'in' needs a list of integers on its right", hint=rule)
        values: list[int] = []
        for element in tree.elts:
            match element:
                case ast.Constant(value):
                    values.append(self.read_integer(value))
                case ast.UnaryOp(ast.USub(), ast.Constant(value)):
                    values.append(-self.read_integer(value))
                case _:
                    raise self.refused(f"the list after 'in' holds '{self.source_of(element)}'", hint=rule)
        return tuple(values)

    def read_call(self, function: str, args: list[ast.expr], depth: int) -> FunctionCall:
        if function not in FUNCTIONS:
            hint = suggest_name(function, FUNCTIONS) or f"functions: {', '.join(FUNCTIONS)}"
            raise self.refused(f"there is no function '{function}'", hint=hint)
        arity = _ARITY.get(function)
        if len(args) != arity if arity else len(args) < 2:
            wants = arity or "at least 2"
            reason = f"{function} takes {wants} arguments, got {len(args)}"
            raise self.refused(reason, hint=f"give it {wants}")
        return FunctionCall(cast("Function", function), tuple(self.read_node(arg, depth) for arg in args))


def _unknown_name(name: str, text: str, names: Collection[str], hint: str | None) -> ExprError:
    listed = ", ".join(sorted(names)) or "none"
    return ExprError(
        f"unknown name '{name}' in \"{shorten_text(text)}\": known names are {listed}", hint=hint
    )


class Undefined(Exception):
    """An expression has no value for these values of its names."""


@dataclass(frozen=True)
class Expr:
    """A checked expression. `text` is what the user wrote, or what is left of it after `bind`."""

    text: str
    tree: Node

    def __str__(self) -> str:
        return self.text

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(iterate_variable_names(self.tree))

    def evaluate(self, values: Mapping[str, int]) -> int:
        return _evaluate_node(self.tree, values)

    def holds(self, values: Mapping[str, int]) -> bool:
        try:
            return _evaluate_node(self.tree, values) != 0
        except Undefined:
            return False

    def bind(self, values: Mapping[str, int]) -> Expr:
        """The same expression with these names replaced by their values and what is now constant folded."""
        if self.names.isdisjoint(values):
            return self
        tree = _bind_node(self.tree, values)
        return Expr(unparse(tree), tree)


def parse_expr(text: str | int, *, names: Collection[str] | None = None) -> Expr:
    """Read an expression; with `names`, refuse any name that is not among them."""
    if isinstance(text, str):
        return Expr(text.strip(), read_tree(text, names))
    if type(text) is not int:
        kind = type(text).__name__
        message = f"an expression is an integer or a text, got the {kind} {shorten_text(repr(text))}"
        raise ExprError(message, hint='write 1 or 0 for true or false, "..." around anything longer')
    if abs(text) > LIMIT:
        raise ExprError(f"an integer is at most 2**62, got {text:.3e}", hint="no size or limit is that large")
    return Expr(str(text), Num(text))


def _evaluate_node(node: Node, values: Mapping[str, int]) -> int:
    match node:
        case Num(value):
            return value
        case Variable(id):
            if id not in values:
                raise Undefined(f"'{id}' has no value")
            return _check_magnitude(operator.index(values[id]))
        case Arithmetic(op, left, right):
            sides = _evaluate_node(left, values), _evaluate_node(right, values)
            return _check_magnitude(_ARITHMETIC[op](*sides))
        case Compare(left, links):
            value = _evaluate_node(left, values)
            for relation, right in links:
                previous, value = value, _evaluate_node(right, values)
                if not COMPARE[relation](previous, value):
                    return 0
            return 1
        case Logic("and", operands):
            return int(all(_evaluate_node(operand, values) for operand in operands))
        case Logic(_, operands):
            return int(any(_evaluate_node(operand, values) for operand in operands))
        case Conditional(test, then, other):
            return _evaluate_node(then if _evaluate_node(test, values) else other, values)
        case FunctionCall(function, args):
            return _check_magnitude(_FUNCTIONS[function](*(_evaluate_node(arg, values) for arg in args)))
        case Not(operand):
            return int(not _evaluate_node(operand, values))
        case Neg(operand):
            return -_evaluate_node(operand, values)
        case OneOf(item, options, negated):
            return int((_evaluate_node(item, values) in options) != negated)
    assert_never(node)


def _check_magnitude(value: int) -> int:
    if -LIMIT <= value <= LIMIT:
        return value
    raise Undefined("a value is larger than 2**62")


def _check_nonzero(divisor: int) -> int:
    if divisor == 0:
        raise Undefined("division by zero")
    return divisor


def _ceil_divide(a: int, b: int) -> int:
    return -(-a // _check_nonzero(b))


def _next_pow2(a: int) -> int:
    if a <= 0:
        raise Undefined(f"next_pow2 needs a positive number, got {a}")
    return 1 << (a - 1).bit_length()


_ARITHMETIC: dict[ArithmeticOp, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "//": lambda a, b: a // _check_nonzero(b), "%": lambda a, b: a % _check_nonzero(b),
}  # fmt: skip
COMPARE: dict[CompareOp, Callable[[Any, Any], Any]] = {  # of numbers, and of columns of them
    "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_FUNCTIONS: dict[Function, Callable[..., int]] = {
    "min": min, "max": max, "ceildiv": _ceil_divide, "round_up": lambda a, b: _ceil_divide(a, b) * b,
    "next_pow2": _next_pow2, "is_pow2": lambda a: int(a > 0 and a & (a - 1) == 0),
}  # fmt: skip


def _bind_node(node: Node, values: Mapping[str, int]) -> Node:
    match node:
        case Num():
            return node
        case Variable(id):
            # A value out of range stays a name: without a value it is undefined, which is what it was.
            value = operator.index(values[id]) if id in values else LIMIT + 1
            return Num(value) if -LIMIT <= value <= LIMIT else node
        case Logic(op, operands):
            return _bind_logic(op == "and", operands, values)
        case Conditional(test, then, other):
            test = _bind_node(test, values)
            if isinstance(test, Num):
                return _bind_node(then if test.value else other, values)
            return Conditional(test, _bind_node(then, values), _bind_node(other, values))
        case Compare(left, links):
            return _bind_chain(_bind_node(left, values), links, values)
    return _fold_node(map_operands(node, lambda operand: _bind_node(operand, values)))


def _fold_node(node: Node) -> Node:
    """The number a node over numbers stands for; a node with no value stays, to be undefined later."""
    if all(isinstance(child, Num) for child in operands_of_node(node)):
        try:
            return Num(_evaluate_node(node, {}))
        except Undefined:
            pass
    return node


def _bind_chain(left: Node, links: tuple[tuple[CompareOp, Node], ...], values: Mapping[str, int]) -> Node:
    bound = [(op, _bind_node(right, values)) for op, right in links]
    while bound and isinstance(left, Num) and isinstance(right := bound[0][1], Num):
        op, _ = bound.pop(0)
        if not COMPARE[op](left.value, right.value):
            return Num(0)
        left = right
    return Compare(left, tuple(bound)) if bound else Num(1)


def _bind_logic(conjunction: bool, operands: tuple[Node, ...], values: Mapping[str, int]) -> Node:
    """Drop operands that change nothing; stop at one that settles it, since nothing after it is looked at.
    What stands before the settling operand stays: it may have no value, and then the whole has none."""
    remaining: list[Node] = []
    for operand in operands:
        operand = _bind_node(operand, values)
        if not isinstance(operand, Num):
            remaining.append(operand)
        elif bool(operand.value) != conjunction:
            remaining.append(Num(int(not conjunction)))
            break
    if not remaining:
        return Num(int(conjunction))
    if len(remaining) > 1:
        return Logic("and" if conjunction else "or", tuple(remaining))
    alone = remaining[0]
    if isinstance(alone, Compare | OneOf | Not | Logic) or alone in (Num(0), Num(1)):
        return alone
    return Compare(alone, (("!=", Num(0)),))  # `1 and x` is 0 or 1, not x


# The values of float scalars: numbers and sizes, + - * / and sqrt, in double precision. No other function:
# these alone give the same result, to the last bit, in every language that a result is delivered in.

RealOp = Literal["+", "-", "*", "/"]
LONGEST_REAL = 500  # characters
DEEPEST_REAL = 40

_ALLOWED_IN_REALS = "it has numbers, sizes, + - * / and sqrt(x), as in 1 / sqrt(head_dim)"
_OPERATORS: dict[type[ast.operator], RealOp] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
}  # fmt: skip
_FOREIGN = re.compile(r"[^A-Za-z0-9_+\-*/(). \t\r\n]")
_ACTIONS: dict[RealOp, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RealNumber:
    value: float


@dataclass(frozen=True, slots=True)
class RealName:
    id: str


@dataclass(frozen=True, slots=True)
class RealNegative:
    operand: RealNode


@dataclass(frozen=True, slots=True)
class RealOperation:
    op: RealOp
    left: RealNode
    right: RealNode


@dataclass(frozen=True, slots=True)
class SquareRoot:
    operand: RealNode


RealNode = RealNumber | RealName | RealNegative | RealOperation | SquareRoot


@dataclass(frozen=True)
class RealExpr:
    text: str
    tree: RealNode

    def __str__(self) -> str:
        return self.text

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(_iterate_real_names(self.tree))

    @cached_property
    def has_root(self) -> bool:
        return "sqrt" in real_code(self, dict.fromkeys(self.names, ""))

    def evaluate(self, values: Mapping[str, int]) -> float:
        """Raises Undefined where there is no finite value."""
        try:
            value = _evaluate_real(self.tree, values)
        except (ZeroDivisionError, OverflowError, ValueError) as error:
            raise Undefined(str(error)) from error
        if not math.isfinite(value):
            raise Undefined("it is not finite")
        return value


def parse_real(text: str, *, names: Collection[str] | None = None) -> RealExpr:
    """Read an expression; with `names`, refuse any name that is not among them."""
    line = " ".join(text.split())
    if not line or len(line) > LONGEST_REAL:
        raise _real_expr_error(text, f"it must have 1 to {LONGEST_REAL} characters, it has {len(line)}")
    if foreign := _FOREIGN.search(line):
        raise _real_expr_error(text, f"the character {foreign[0]!a} is not allowed")
    try:
        tree = ast.parse(line, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _real_expr_error(text, str(getattr(error, "msg", error))) from error
    return RealExpr(line, _read_real_node(tree, text, names, 1))


def real_code(expr: RealExpr, names: Mapping[str, str]) -> str:
    """As C and C++ over `double`; each name is written as `names` says."""
    return _render_real_node(expr.tree, lambda id: f"(double)({names[id]})", "sqrt")


def real_python(expr: RealExpr, name: Callable[[str], str]) -> str:
    """As Python that has imported math."""
    return _render_real_node(expr.tree, lambda id: f"float({name(id)})", "math.sqrt")


def _real_expr_error(text: str, reason: str, hint: str = _ALLOWED_IN_REALS) -> ExprError:
    return ExprError(f'"{shorten_text(text)}" is not an expression of a float: {reason}', hint=hint)


def _read_real_node(tree: ast.expr, text: str, names: Collection[str] | None, depth: int) -> RealNode:
    if depth > DEEPEST_REAL:
        raise _real_expr_error(text, f"it is nested more than {DEEPEST_REAL} deep", "split it up")
    match tree:
        case ast.Constant(int(value) | float(value)) if not isinstance(value, bool) and value < 1e300:
            return RealNumber(float(value))
        case ast.Name(id):
            if names is not None and id not in names:
                raise _unknown_name(id, text, names, suggest_name(id, names) or _ALLOWED_IN_REALS)
            return RealName(id)
        case ast.UnaryOp(ast.USub(), operand):
            return RealNegative(_read_real_node(operand, text, names, depth + 1))
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
            sides = (_read_real_node(side, text, names, depth + 1) for side in (left, right))
            return RealOperation(_OPERATORS[type(op)], *sides)
        case ast.Call(ast.Name("sqrt"), [operand], []):
            return SquareRoot(_read_real_node(operand, text, names, depth + 1))
    part = shorten_text(ast.unparse(tree))
    raise _real_expr_error(text, f"'{part}' is not allowed")


def _iterate_real_names(node: RealNode) -> Iterator[str]:
    match node:
        case RealName(id):
            yield id
        case RealNegative(operand) | SquareRoot(operand):
            yield from _iterate_real_names(operand)
        case RealOperation(_, left, right):
            yield from (*_iterate_real_names(left), *_iterate_real_names(right))


def _evaluate_real(node: RealNode, values: Mapping[str, int]) -> float:
    match node:
        case RealNumber(value):
            return value
        case RealName(id):
            if id not in values:
                raise Undefined(f"'{id}' has no value")
            return float(values[id])
        case RealNegative(operand):
            return -_evaluate_real(operand, values)
        case RealOperation(op, left, right):
            return _ACTIONS[op](_evaluate_real(left, values), _evaluate_real(right, values))
        case SquareRoot(operand):
            return math.sqrt(_evaluate_real(operand, values))
    assert_never(node)


def _render_real_node(node: RealNode, name: Callable[[str], str], root: str) -> str:
    match node:
        case RealNumber(value):
            return repr(value)
        case RealName(id):
            return name(id)
        case RealNegative(operand):
            return f"(-{_render_real_node(operand, name, root)})"
        case RealOperation(op, left, right):
            return f"({_render_real_node(left, name, root)} {op} {_render_real_node(right, name, root)})"
        case SquareRoot(operand):
            return f"{root}({_render_real_node(operand, name, root)})"
    assert_never(node)
