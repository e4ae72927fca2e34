"""What makes a kernel hard to read right: threads in values, atomics, carried values, stores under tests.

The original stays deterministic; the expert must keep what it computes, or refuse."""

from __future__ import annotations

import random

from tests.hostile.random_kernels.arrays import Reached
from tests.hostile.random_kernels.elements import Elements, Scope, Value
from tests.hostile.random_kernels.program import Operand
from tests.hostile.random_kernels.teams import Team

COUNTS = 8


def in_element(
    rng: random.Random, elements: Elements, team: Team, scope: Scope, extra: list[Operand]
) -> list[str]:
    if rng.random() > 0.12:
        return []
    quirk = rng.choice(("thread", "block size", "atomic", "atomic max", "clock", "lane", "in place", "file"))
    if elements.language == "opencl" and quirk in ("clock", "lane"):
        return []
    elements.tags.add(f"quirk {quirk}")
    name = elements.name("z")
    match quirk:
        case "thread":
            scope.with_value(Value("(int)(threadIdx.x & 3)", "int", 3))
        case "block size":
            scope.with_value(Value(rng.choice(("(int)blockDim.x", "(int)gridDim.x")), "int", 2000))
        case "atomic" | "atomic max":
            counts = next((o for o in extra if o.name == "counts"), None)
            if counts is None:
                extra.append(Operand("counts", "int32", (str(COUNTS),), "inout", 0, 0))
            place = elements.expression(scope, "int", 1)
            word = "atomicAdd" if quirk == "atomic" else "atomicMax"
            if counts is not None and "counts " + word not in elements.tags:
                return []  # one kind of update to an array, or their order shows
            elements.tags.add("counts " + word)
            value = elements.expression(scope, "int", 1)
            return [f"{word}(&counts[({place.text}) & {COUNTS - 1}], ({value.text}) & 255);"]
        case "clock":
            scope.with_value(Value(name, "int", 1))
            return [f"const int {name} = clock64() > 0 ? 1 : 0;"]
        case "lane":
            scope.with_value(Value(f"(int)({name} & 1)", "int", 1))
            return [f"unsigned {name};", f'asm("mov.u32 %0, %%laneid;" : "=r"({name}));']
        case "in place":
            if not any(o.name == "state" for o in extra):
                extra.append(Operand("state", "float32", ("rows", "d"), "inout", -8, 8, align=16))
                return _in_place(team, scope, name)
        case _:
            scope.with_value(Value(f"(int)sizeof({name}_t)", "int", 8))
            return [f"typedef float {name}_t;"]
    return []


def _in_place(team: Team, scope: Scope, name: str) -> list[str]:
    place = f"state[{team.row} * d + {scope.col}]"
    scope.with_value(Value(name, "float", 8))
    return [f"const float {name} = {place};", f"{place} = {name} * 0.5f + 1.0f;"]


def carried(rng: random.Random, elements: Elements, scope: Scope) -> tuple[list[str], list[str]]:
    """Of a thread that has its row alone: a value handed from element to element."""
    if rng.random() > 0.35:
        return [], []
    name = elements.name("last")
    value = elements.expression(scope, "float", 1).small()
    elements.tags.add("carried")
    scope.with_value(Value(name, "float", 1 << 20, 0))
    way = rng.choice(("previous", "scan", "decay", "break"))
    elements.tags.add(f"carried {way}")
    match way:
        case "previous":
            before = elements.name("p")
            scope.values[-1] = Value(before, "float", value.bound, value.grain)
            return [f"float {name} = 0.0f;"], [f"const float {before} = {name};", f"{name} = {value.text};"]
        case "scan":
            return [f"float {name} = 0.0f;"], [f"{name} += {value.text};"]
        case "decay":
            scope.values.pop()
            scope.with_value(Value(f"fminf({name}, 9.0f)", "float", 64, 3))
            return [f"float {name} = 0.0f;"], [
                f"{name} = floorf({name} * 0.5f) + fminf(8.0f, fabsf({value.text}));"
            ]
    elements.tags.add("break")
    return [f"float {name} = 0.0f;"], [
        f"{name} += 1.0f;",
        f"if ({name} > {rng.choice((3, 20, 77))}.0f) break;",
    ]


def guarded_store(
    rng: random.Random, elements: Elements, reached: Reached, store: str, scope: Scope
) -> list[str]:
    if rng.random() > 0.12:
        return [store]
    elements.tags.add("guarded store")
    return [f"if ({elements.condition(scope)}) {{", f"    {store}", "}"]
