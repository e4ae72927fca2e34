"""Expressions as C++ over `long long`, the names that C++ has for our types, and comments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import assert_never

from tunesmith.space import grammar as n
from tunesmith.space.expr import Expr
from tunesmith.space.grammar import ArithmeticOp, CompareOp, Function, Node
from tunesmith.text import plain

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


def identifier(text: str) -> str:
    """The text as (part of) a C name."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return f"k{name}" if not name or name[0].isdigit() else name


def c_text(text: str) -> str:
    """A string literal of C with this text, whatever is in it."""
    return '"' + "".join(map(_escaped, text.encode("utf-8", "surrogatepass"))) + '"'


def _escaped(byte: int) -> str:
    char = chr(byte)
    return char if 32 <= byte < 127 and char not in '"\\?' else f"\\{byte:03o}"


def comment(lines: Iterable[str], indent: str = "") -> str:
    """Line comments, whatever the text: no line of it ends, or goes on, where the compiler would notice."""
    shown = (" ".join(plain(line).split("\n")).rstrip("\\/? \t") for line in lines)
    return "".join(f"{indent}//{' ' if line else ''}{line}\n" for line in shown)


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
