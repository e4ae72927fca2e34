"""The arrays of a generated kernel: types, shapes, and the ways people reach an element."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.hostile.random_kernels.elements import Elements, Scope, Value
from tests.hostile.random_kernels.program import Operand

C_NAMES = {
    "float32": "float", "float16": "__half", "bfloat16": "__nv_bfloat16", "int32": "int",
    "int8": "signed char",
    "uint8": "unsigned char", "int16": "short", "uint32": "unsigned",
}  # fmt: skip
_RANGES = {
    "float32": (-8, 8),
    "float16": (-8, 8),
    "bfloat16": (-8, 8),
    "int32": (-50, 50),
    "int8": (-100, 100),
}
_RANGES |= {"uint8": (0, 200), "int16": (-300, 300), "uint32": (0, 90)}
ELEMENT_TYPES = ("float32",) * 6 + ("float16", "float16", "bfloat16", "int32", "int8", "uint8", "int16")
TABLE = 16  # elements of a small table


@dataclass(frozen=True)
class Reached:
    """An array, and where its elements are: over rows and columns, columns, rows, or a table."""

    operand: Operand
    over: str  # both, columns, rows, table, turned
    is_row_pointer: bool = False  # it is reached through a pointer to its row


def declared(operand: Operand, restrict: bool) -> str:
    """As a parameter of the kernel."""
    if not operand.shape:
        return f"{C_NAMES.get(operand.type, operand.type)} {operand.name}"
    const = "const " if operand.role == "input" else ""
    return f"{const}{C_NAMES[operand.type]} *{'__restrict__ ' if restrict else ''}{operand.name}"


def drawn(rng: random.Random, aligned: bool) -> list[Reached]:
    """The inputs: one over rows and columns at least."""
    found = []
    for number in range(rng.choice((1, 2, 2, 3))):
        over = "both" if number == 0 else rng.choice(("both", "both", "columns", "rows", "table", "turned"))
        kind = rng.choice(ELEMENT_TYPES)
        shape = {
            "both": ("rows", "d"), "columns": ("d",), "rows": ("rows",), "table": (str(TABLE),),
            "turned": ("d", "rows"),
        }[over]  # fmt: skip
        low, high = _RANGES[kind]
        align = rng.choice((16, 32)) if aligned and rng.random() < 0.85 else 0
        operand = Operand(f"x{number}", kind, shape, low=low, high=high, align=align)
        found.append(Reached(operand, over, over == "both" and rng.random() < 0.3))
    return found


def bound_of(operand: Operand) -> float:
    return float(max(map(abs, _RANGES[operand.type])))


def loaded(operand: Operand, place: str, base: str = "") -> Value:
    """An element as a float or an int, whatever its type."""
    bound = bound_of(operand)
    text = f"{base or operand.name}[{place}]"
    if operand.type == "float16":
        return Value(f"__half2float({text})", "float", bound)
    if operand.type == "bfloat16":
        return Value(f"__bfloat162float({text})", "float", bound)
    return Value(
        text if operand.type == "float32" else f"(int){text}",
        "float" if operand.type == "float32" else "int",
        bound,
    )


def stored(operand: Operand, place: str, value: Value, base: str = "") -> str:
    target = f"{base or operand.name}[{place}]"
    if operand.type == "float16":
        return f"{target} = __float2half({value.as_kind('float').text});"
    if operand.type == "bfloat16":
        return f"{target} = __float2bfloat16({value.as_kind('float').text});"
    if operand.type == "float32":
        return f"{target} = {value.as_kind('float').text};"
    return f"{target} = ({C_NAMES[operand.type]})({value.as_kind('int').text});"


class Reaching:
    """Loads of an element at row `row` and column `col`: straight, shifted, turned round, guarded."""

    def __init__(self, elements: Elements, row: str, col: str, wild: bool) -> None:
        self.rng, self.elements = elements.rng, elements
        self.row, self.col, self.wild = row, col, wild

    def load(self, reached: Reached, scope: Scope) -> Callable[[], Value]:
        return lambda: self._made(reached, scope)

    def _made(self, reached: Reached, scope: Scope) -> Value:
        operand, row, col = reached.operand, self.row, self.col
        match reached.over:
            case "columns":
                return loaded(operand, col)
            case "rows":
                return loaded(operand, row)
            case "turned":
                self.elements.tags.add("transposed")
                return loaded(operand, f"{col} * rows + {row}")
            case "table":
                self.elements.tags.add("table")
                inner = Scope([v for v in scope.values if v.bound < 1 << 20])
                place = self.elements.expression(inner, "int", 1)
                return loaded(operand, f"({place.text}) & {TABLE - 1}")
        base = f"{operand.name}_row" if reached.is_row_pointer else ""
        start = "" if base else f"{row} * d + "
        if not self.wild or self.rng.random() < 0.72:
            return loaded(operand, f"{start}{col}", base)
        way = self.rng.choice(
            ("left", "right", "clamped", "turned round", "pairs", "spread", "first", "next row")
        )
        self.elements.tags.add(way)
        match way:
            case "left":
                own = loaded(operand, f"{start}{col} - 1", base)
                return Value(f"({col} > 0 ? {own.text} : 0)", own.kind, own.bound)
            case "right":
                own = loaded(operand, f"{start}{col} + 1", base)
                return Value(f"({col} + 1 < d ? {own.text} : 0)", own.kind, own.bound)
            case "clamped":
                return loaded(operand, f"{start}min({col} + 2, d - 1)", base)
            case "turned round":
                return loaded(operand, f"{start}(d - 1 - {col})", base)
            case "pairs":
                own = loaded(operand, f"{start}({col} ^ 1)", base)
                return Value(f"(({col} ^ 1) < d ? {own.text} : 1)", own.kind, own.bound)
            case "spread":
                return loaded(operand, f"{start}({col} * 3) % d", base)
            case "first":
                return loaded(operand, f"{start}0", base)
        return loaded(operand, f"(({row} + 1) % rows) * d + {col}")
