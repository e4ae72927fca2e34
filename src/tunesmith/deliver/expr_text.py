"""Expressions over sizes as text of other languages: C++, C99 and Python."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache, reduce
from importlib import resources
from typing import Any, assert_never

from tunesmith.base.errors import BadInput
from tunesmith.base.text import strip_controls
from tunesmith.space import expr as n
from tunesmith.space.expr import LIMIT, ArithmeticOp, CompareOp, Expr, Function, Node, RealExpr, real_code

# Each type, and the header that has it.
C_TYPES: dict[str, tuple[str, str | None]] = {
    "float16": ("__half", "cuda_fp16.h"), "bfloat16": ("__nv_bfloat16", "cuda_bf16.h"),
    "float8_e4m3": ("__nv_fp8_e4m3", "cuda_fp8.h"), "float8_e5m2": ("__nv_fp8_e5m2", "cuda_fp8.h"),
    "float32": ("float", None), "float64": ("double", None),
    "int8": ("signed char", None), "int16": ("short", None),
    "int32": ("int", None), "int64": ("long long", None),
    "uint8": ("unsigned char", None), "uint16": ("unsigned short", None),
    "uint32": ("unsigned int", None), "uint64": ("unsigned long long", None),
    "int4": ("unsigned char", None), "uint4": ("unsigned char", None),  # two in a byte
}  # fmt: skip


def c_identifier(text: str) -> str:
    """The text as (part of) a C name."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return f"k{name}" if not name or name[0].isdigit() else name


def c_text(text: str) -> str:
    """A string literal of C with this text, whatever is in it."""
    return '"' + "".join(map(_escape_byte, text.encode("utf-8", "surrogatepass"))) + '"'


def _escape_byte(byte: int) -> str:
    char = chr(byte)
    return char if 32 <= byte < 127 and char not in '"\\?' else f"\\{byte:03o}"


def format_comment(lines: Iterable[str], indent: str = "") -> str:
    """Line comments, whatever the text: no line of it ends, or goes on, where the compiler would notice."""
    shown = (" ".join(strip_controls(line).split("\n")).rstrip("\\/? \t") for line in lines)
    return "".join(f"{indent}//{' ' if line else ''}{line}\n" for line in shown)


@cache
def template_macros(package: str, name: str, **known: Hashable) -> Any:
    """The macros of a file of texts with holes."""
    from jinja2 import Environment, StrictUndefined  # which few runs need

    text = resources.files(package).joinpath(name).read_text("utf-8")
    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    return environment.from_string(text, {"comment": format_comment, **known}).module


_ARITHMETIC: dict[ArithmeticOp, str] = {
    "+": "add", "-": "subtract", "*": "multiply", "//": "divide", "%": "remainder_of",
}  # fmt: skip
_FUNCTIONS: dict[Function, str] = {"min": "smaller", "max": "larger"}
_TOTAL: tuple[Function, ...] = ("min", "max", "is_pow2")  # with a value whatever the arguments


def c_code(expr: Expr, names: Mapping[str, str]) -> str:
    """The expression as C++ over `long long`, with the value our own evaluation gives; each name is written
    as `names` says, and one that is not there has no value.

    What has no value sets the flag `undefined` and goes on with 0: whatever is computed afterwards is defined
    arithmetic, and the caller looks at the flag before it looks at the value. C++ skips the same operands of
    `and`, `or`, `if` and a chain that we skip, so nothing that is not looked at can set the flag.

    The names' values must lie within ±2**62; the text needs `arithmetic.cuh` before it and a `bool undefined`
    in scope.
    """
    return CodeWriter(names).of(expr.tree)


class CodeWriter:
    arithmetic: Mapping[ArithmeticOp, str] = _ARITHMETIC
    unknown = "no_value"

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def of(self, node: Node) -> str:
        """Text that may stand as an operand or an argument anywhere."""
        match node:
            case n.Num(value):
                return f"{value}LL" if value >= 0 else f"({value}LL)"
            case n.Variable(id):
                return self.names.get(id, f"{self.unknown}(undefined)")
            case n.Arithmetic(op, left, right):
                return f"{self.arithmetic[op]}({self.of(left)}, {self.of(right)}, undefined)"
            case n.Compare(left, links):
                return self.chain(left, links)
            case n.Logic(op, operands):
                joint = " && " if op == "and" else " || "
                return f"({joint.join(self.of(operand) for operand in operands)})"
            case n.Conditional(test, then, other):
                return f"({self.of(test)} ? {self.of(then)} : {self.of(other)})"
            case n.FunctionCall(function, args):
                return self.call(function, [self.of(arg) for arg in args])
            case n.Not(operand):
                return f"(!{self.of(operand)})"
            case n.Neg(operand):
                return f"(-{self.of(operand)})"
            case n.OneOf():
                return self.one_of(node)
        assert_never(node)

    def one_of(self, node: n.OneOf) -> str:
        listed = ", ".join(f"{option}LL" for option in node.options)
        return f"({'!' if node.negated else ''}is_in({self.of(node.item)}, {{{listed}}}))"

    def call(self, function: Function, args: list[str]) -> str:
        name = _FUNCTIONS.get(function, function)
        if function in ("min", "max"):
            return reduce(lambda left, right: f"{name}({left}, {right})", args)
        return f"{name}({', '.join(args if function in _TOTAL else [*args, 'undefined'])})"

    def chain(self, left: Node, links: tuple[tuple[CompareOp, Node], ...]) -> str:
        texts = [self.of(left), *(self.of(right) for _, right in links)]
        if all(isinstance(right, n.Num | n.Variable) for _, right in links[:-1]):
            pairs = zip(texts, links, texts[1:], strict=False)
            parts = [f"{a} {op} {b}" for a, (op, _), b in pairs]
            return f"({' && '.join(parts)})"
        # What stands between two comparisons is written once: written twice, chains within chains would
        # double the text at every level.
        steps = [f"const long long link0 = {texts[0]};"]
        for number, (op, _) in enumerate(links, 1):
            steps.append(f"const long long link{number} = {texts[number]};")
            steps.append(f"if (!(link{number - 1} {op} link{number})) return false;")
        return f"[&]() -> bool {{ {' '.join(steps)} return true; }}()"


# Expressions and texts as plain C, which C99 and C++ compilers read alike.
LONGEST = 2000  # characters of a literal: C99 promises 4095, and an escape takes four
_C99_ARITHMETIC: dict[ArithmeticOp, str] = {
    "+": "ts_add", "-": "ts_subtract", "*": "ts_multiply", "//": "ts_divide", "%": "ts_remainder",
}  # fmt: skip
_ESCAPES = {"\n": r"\n", "\t": r"\t", "\r": r"\r", '"': r"\"", "\\": r"\\", "?": r"\?"}
_PLAIN = re.compile(r"[ -~]")


def c_function(name: str, expr: Expr, names: Mapping[str, str]) -> str:
    """A function with the value that our own evaluation gives; `names` says how each size is written.

    What has no value sets `*undefined` and goes on with 0, as in `c_code`: the caller looks at the
    flag first. The sizes must lie within ±2**62.
    """
    writer = _PlainCWriter(names)
    value = writer.of(expr.tree)
    kept = f"    long long t[{writer.kept}];\n" if writer.kept else ""
    unused = "".join(
        f"    (void){name};\n"
        for name in ("size", "undefined")
        if not re.search(rf"\b{name}\b", value)  # the text has no other words than these and ours
    )
    return (
        f"static long long {name}(const long long *size, int *undefined) {{\n"
        f"{kept}{unused}    return {value};\n}}\n"
    )


def c_real_function(name: str, expr: RealExpr, kind: str, names: Mapping[str, str]) -> str:
    """A function with the bits of a float32 or float64; what is not finite has no value."""
    float_type, bits = {"float32": ("float", "int32_t"), "float64": ("double", "int64_t")}[kind]
    return (
        f"static long long {name}(const long long *size, int *undefined) {{\n"
        f"    const {float_type} value = ({float_type}){real_code(expr, names)} + 0;\n"
        f"    {bits} same;\n"
        "    if (!(value - value == 0)) *undefined = 1;\n"
        "    memcpy(&same, &value, sizeof same);\n"
        "    return same;\n}\n"
    )


class _PlainCWriter(CodeWriter):
    """C has no functions within expressions: what is needed twice is kept in `t`."""

    arithmetic = _C99_ARITHMETIC
    unknown = "ts_no_value"

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__(names)
        self.kept = 0

    def one_of(self, node: n.OneOf) -> str:
        kept = self.keep()
        equal = " || ".join(f"{kept} == {option}LL" for option in node.options)
        return f"({kept} = {self.of(node.item)}, {'!' if node.negated else ''}({equal}))"

    def keep(self) -> str:
        self.kept += 1
        return f"t[{self.kept - 1}]"

    def call(self, function: Function, args: list[str]) -> str:
        if function in ("min", "max"):
            return reduce(lambda left, right: f"ts_{function}({left}, {right})", args)
        return f"ts_{function}({', '.join(args if function in _TOTAL else [*args, 'undefined'])})"

    def chain(self, left: Node, links: tuple[tuple[CompareOp, Node], ...]) -> str:
        if len(links) == 1:
            ((op, right),) = links
            return f"({self.of(left)} {op} {self.of(right)})"
        before = self.keep()
        parts = [f"{before} = {self.of(left)}"]
        steps: list[str] = []
        for op, right in links:
            here = self.keep()
            parts.append(f"{here} = {self.of(right)}")
            steps.append(f"({', '.join(parts)}, {before} {op} {here})")
            parts, before = [], here
        return f"({' && '.join(steps)})"


def string_literal(text: str) -> str:
    """A string literal; every byte that is not plain ASCII is an escape of three digits, which nothing that
    follows can make longer."""
    pieces = []
    for character in text:
        if character in _ESCAPES:
            pieces.append(_ESCAPES[character])
        elif _PLAIN.match(character):
            pieces.append(character)
        else:
            pieces += [f"\\{byte:03o}" for byte in character.encode(errors="surrogatepass")]
    return f'"{"".join(pieces)}"'


def string_literals(text: str) -> list[str]:
    """Literals that together are the text: a line each, long lines in several."""
    lines = text.split("\n")
    lines = [*(f"{line}\n" for line in lines[:-1]), *([lines[-1]] if lines[-1] else [])]
    step = LONGEST // 4  # an escape for a character of four bytes has sixteen
    cut = [line[at : at + step] for line in lines for at in range(0, len(line), step)]
    return [string_literal(line) for line in cut]


def c_names(names: Sequence[str], prefix: str) -> dict[str, str]:
    """Each name as one of C, with a prefix, so that it is neither a word of the language nor one of ours."""
    found: dict[str, str] = {}
    for name in names:
        made = f"{prefix}_{re.sub(r'[^A-Za-z0-9_]', '_', name)}"
        while made in found.values():
            made += "_"
        found[name] = made
    return found


# Expressions as Python text, over a dictionary of values: what holds here holds there.
# The functions of the language that Python lacks; names without a value there raise as they do here.
HELPERS = """\
def ceildiv(a, b):
    return -(-a // b)


def round_up(a, b):
    return ceildiv(a, b) * b


def next_pow2(a):
    if a <= 0:
        raise ValueError(f"next_pow2 needs a positive number, got {a}")
    return 1 << (a - 1).bit_length()


def is_pow2(a):
    return int(a > 0 and a & (a - 1) == 0)
"""


def python_text(expr: Expr, largest: Mapping[str, int]) -> str:
    """The expression over `v`, where each name has its value; its own value is an integer, or a truth value
    that counts as one. `largest` has the greatest magnitude of each name: the language gives no value beyond
    2**62, Python does, so where one may lie there the two would differ."""
    _largest_magnitude(expr, expr.tree, largest)
    return _expression_text(expr.tree, as_number=True)


def _expression_text(node: n.Node, as_number: bool) -> str:
    """In parentheses wherever it has parts. A truth value need not be a number where it is only tested."""
    match node:
        case n.Num(value):
            return str(value) if value >= 0 else f"({value})"
        case n.Variable(id):
            return f"v[{id!r}]"
        case n.Neg(operand):
            return f"(-{_expression_text(operand, True)})"
        case n.Not(operand):
            return f"(not {_expression_text(operand, False)})"
        case n.Arithmetic(op, left, right):
            return f"({_expression_text(left, True)} {op} {_expression_text(right, True)})"
        case n.Compare(left, links):
            chain = "".join(f" {op} {_expression_text(right, True)}" for op, right in links)
            return f"({_expression_text(left, True)}{chain})"
        case n.OneOf(item, options, negated):
            listed = "".join(f"{option}, " for option in options)
            return f"({_expression_text(item, True)} {'not in' if negated else 'in'} ({listed}))"
        case n.Logic(op, operands):
            joined = f" {op} ".join(_expression_text(operand, False) for operand in operands)
            return f"bool({joined})" if as_number else f"({joined})"
        case n.Conditional(test, then, other):
            return (
                f"({_expression_text(then, True)} if {_expression_text(test, False)} else "
                f"{_expression_text(other, True)})"
            )
        case n.FunctionCall(function, args):
            return f"{function}({', '.join(_expression_text(arg, True) for arg in args)})"
    assert_never(node)


def _largest_magnitude(expr: Expr, node: n.Node, largest: Mapping[str, int]) -> int:
    """A bound on how large a value may become; refused where that is beyond what an expression can be."""
    parts = [_largest_magnitude(expr, child, largest) for child in n.operands_of_node(node)]
    match node:
        case n.Num(value):
            most = abs(value)
        case n.Variable(id):
            most = largest[id]
        case n.Arithmetic("*", _, _):
            most = parts[0] * parts[1]
        case n.Arithmetic("+" | "-", _, _) | n.FunctionCall("round_up", _):
            most = sum(parts)
        case n.FunctionCall("next_pow2", _):
            most = 2 * parts[0]
        case n.Compare() | n.OneOf() | n.Not() | n.Logic() | n.FunctionCall("is_pow2", _):
            most = 1
        case _:
            most = max(parts)
    if most > LIMIT:
        fault = f'values of "{expr.text}" may exceed 2**62, where it has none'
        raise BadInput(fault, hint="give its parameters or sizes smaller values")
    return most
