"""Accesses several elements wide, by a cast pointer: float4, int2, uchar4, __half2."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.hostile.random_kernels.arrays import Reached, bound_of
from tests.hostile.random_kernels.elements import Elements, Value
from tests.hostile.random_kernels.program import Operand

_TYPES = {
    ("float32", 4): "float4", ("float32", 2): "float2", ("int32", 4): "int4", ("int32", 2): "int2",
    ("uint8", 4): "uchar4", ("int8", 4): "char4", ("int16", 4): "short4", ("int16", 2): "short2",
    ("float16", 2): "__half2",
}  # fmt: skip
PARTS = "xyzw"


def name_of(operand: Operand, width: int) -> str:
    """The vector's type; "" where the array has none, or is not aligned for it."""
    return _TYPES.get((operand.type, width), "") if operand.align >= 16 else ""


def place(rng: random.Random, operand: Operand, type_: str, row: str, col: str, width: int) -> str:
    const = "const " if operand.role == "input" else ""
    name = operand.name
    return rng.choice(
        (
            f"(({const}{type_} *){name})[{row} * (d / {width}) + {col}]",
            f"reinterpret_cast<{const}{type_} *>({name} + {row} * d)[{col}]",
            f"*({const}{type_} *)({name} + {row} * d + {col} * {width})",
        )
    )


def loaded(
    elements: Elements, inputs: Sequence[Reached], row: str, col: str, width: int
) -> tuple[list[str], list[list[Value]]]:
    """Statements that load vectors, and what each of their parts is."""
    lines: list[str] = []
    parts: list[list[Value]] = [[] for _ in range(width)]
    for reached in inputs:
        type_ = name_of(reached.operand, width)
        if reached.over != "both" or not type_ or elements.rng.random() < 0.2:
            continue
        elements.tags.add(type_)
        name = elements.name("q")
        source = place(elements.rng, reached.operand, type_, row, col, width)
        lines.append(f"const {type_} {name} = {source};")
        bound = bound_of(reached.operand)
        for part, values in enumerate(parts):
            if type_ == "__half2":
                text = f"{('__low2float', '__high2float')[part]}({name})"
            else:
                text = f"{name}.{PARTS[part]}"
            is_float = reached.operand.type in ("float32", "float16")
            values.append(Value(text if is_float else f"(int){text}", "float" if is_float else "int", bound))
    return lines, parts


def stored(
    elements: Elements, operand: Operand, row: str, col: str, width: int, values: Sequence[Value]
) -> str:
    """All parts at once; "" where the array has no such vector."""
    type_ = name_of(operand, width)
    if not type_:
        return ""
    elements.tags.add(f"{type_} stored")
    target = place(elements.rng, operand, type_, row, col, width)
    if type_ == "__half2":
        return f"{target} = __floats2half2_rn({', '.join(v.as_kind('float').text for v in values)});"
    if operand.type == "float32":
        return f"{target} = make_{type_}({', '.join(v.as_kind('float').text for v in values)});"
    word = {"int8": "signed char", "uint8": "unsigned char", "int16": "short"}.get(operand.type, "int")
    texts = ", ".join(f"({word})({v.as_kind('int').text})" for v in values)
    return f"{target} = make_{type_}({texts});"
