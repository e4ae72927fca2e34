"""Expressions and texts as plain C, which C99 and C++ compilers read alike."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce

from tunesmith.deliver.c_code import CodeWriter
from tunesmith.space import grammar as n
from tunesmith.space.expr import Expr
from tunesmith.space.grammar import ArithmeticOp, CompareOp, Function, Node
from tunesmith.space.real import RealExpr, real_code

LONGEST = 2000  # characters of a literal: C99 promises 4095, and an escape takes four
_ARITHMETIC: dict[ArithmeticOp, str] = {
    "+": "ts_add", "-": "ts_subtract", "*": "ts_multiply", "//": "ts_divide", "%": "ts_remainder",
}  # fmt: skip
_TOTAL: tuple[Function, ...] = ("min", "max", "is_pow2")  # with a value whatever the arguments
_ESCAPES = {"\n": r"\n", "\t": r"\t", "\r": r"\r", '"': r"\"", "\\": r"\\", "?": r"\?"}
_PLAIN = re.compile(r"[ -~]")


def c_function(name: str, expr: Expr, names: Mapping[str, str]) -> str:
    """A function with the value that our own evaluation gives; `names` says how each size is written.

    What has no value sets `*undefined` and goes on with 0, as in `deliver.c_code`: the caller looks at the
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

    arithmetic = _ARITHMETIC
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


def literal(text: str) -> str:
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


def literals(text: str) -> list[str]:
    """Literals that together are the text: a line each, long lines in several."""
    lines = text.split("\n")
    lines = [*(f"{line}\n" for line in lines[:-1]), *([lines[-1]] if lines[-1] else [])]
    step = LONGEST // 4  # an escape for a character of four bytes has sixteen
    cut = [line[at : at + step] for line in lines for at in range(0, len(line), step)]
    return [literal(line) for line in cut]


def c_names(names: Sequence[str], prefix: str) -> dict[str, str]:
    """Each name as one of C, with a prefix, so that it is neither a word of the language nor one of ours."""
    found: dict[str, str] = {}
    for name in names:
        made = f"{prefix}_{re.sub(r'[^A-Za-z0-9_]', '_', name)}"
        while made in found.values():
            made += "_"
        found[name] = made
    return found
