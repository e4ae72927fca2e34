"""Expressions as C++: compiled once, thousands of values, each the one our own evaluation gives."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.core.space.expressions import NAMES, ROUND, outcome
from tunesmith.deliver.cuda.host import read_cuda_resource
from tunesmith.deliver.expr_text import c_code
from tunesmith.space.expr import (
    Arithmetic,
    Compare,
    Conditional,
    Expr,
    FunctionCall,
    Logic,
    Neg,
    Node,
    Not,
    Num,
    OneOf,
    Variable,
    parse_expr,
    unparse,
)

C_NAMES = {"a": "size_a", "b": "size_b", "c": "size_c"}  # device.sms is left without a value
WRITTEN = (
    "b > 0 and a % b == 0",
    "b == 0 or a % b == 0",
    "a // b if b else -1",
    "1 <= a <= b <= 9",
    "a < b // c < 5",
    "a not in (1, -2, 3)",
    "c in (7,)",
    "min(a, b, c) + max(a, b, c)",
    "a * b + c",
    "a - b - c",
    "next_pow2(a) + is_pow2(b)",
    "round_up(a, b)",
    "-(a == b)",
    "(a < b) < c",
    "not a % b",
    "a and device.sms",
    "a or device.sms",
)


def a_number(draw: random.Random) -> int:
    return draw.choice(
        [draw.randint(-3, 9), draw.randint(-300, 300), draw.choice(ROUND) * draw.choice((1, -1))]
    )


def a_tree(draw: random.Random, depth: int) -> Node:
    if depth == 0 or draw.random() < 0.15:
        return (
            Num(a_number(draw)) if draw.random() < 0.4 else Variable(draw.choice(NAMES[:3] * 8 + NAMES[3:]))
        )

    def inner() -> Node:
        return a_tree(draw, depth - 1)

    def several() -> tuple[Node, ...]:
        return tuple(inner() for _ in range(draw.randint(2, 3)))

    def chain() -> Node:
        count = draw.randint(1, 3)
        return Compare(
            inner(), tuple((draw.choice(("==", "!=", "<", "<=", ">", ">=")), inner()) for _ in range(count))
        )

    def negated() -> Node:
        operand = inner()
        return Num(-operand.value) if isinstance(operand, Num) else Neg(operand)

    kinds = [
        lambda: Arithmetic(draw.choice(("+", "-", "*", "//", "%")), inner(), inner()),
        chain,
        lambda: Logic(draw.choice(("and", "or")), several()),
        lambda: Conditional(inner(), inner(), inner()),
        lambda: FunctionCall(draw.choice(("min", "max")), several()),
        lambda: FunctionCall(draw.choice(("ceildiv", "round_up")), (inner(), inner())),
        lambda: FunctionCall(draw.choice(("next_pow2", "is_pow2")), (inner(),)),
        lambda: Not(inner()),
        negated,
        lambda: OneOf(inner(), tuple(a_number(draw) for _ in range(draw.randint(1, 3))), draw.random() < 0.5),
    ]
    return draw.choice([*kinds[:1] * 4, *kinds])()


def the_program(exprs: list[Expr], table: list[dict[str, int]]) -> str:
    functions = [
        f"static void f{number}(long long size_a, long long size_b, long long size_c) {{\n"
        f"    bool undefined = false;\n"
        f"    const long long value = {c_code(expr, C_NAMES)};\n"
        f'    undefined ? (void)puts("None") : (void)printf("%lld\\n", value);\n}}\n'
        for number, expr in enumerate(exprs)
    ]
    calls = [
        f"    f{number}({', '.join(f'{row[name]}LL' for name in C_NAMES)});\n"
        for number in range(len(exprs))
        for row in table
    ]
    parts = [
        "#include <cstdio>\n",
        read_cuda_resource("arithmetic.cuh"),
        *functions,
        "int main() {\n",
        *calls,
        "}\n",
    ]
    return "".join(parts)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_every_value_is_the_one_that_evaluation_gives(tmp_path: Path) -> None:
    draw = random.Random(20)
    trees = [a_tree(draw, draw.randint(1, 4)) for _ in range(150)]
    exprs = [*(parse_expr(text) for text in WRITTEN), *(Expr(unparse(tree), tree) for tree in trees)]
    table = [{name: a_number(draw) for name in C_NAMES} for _ in range(14)]
    source = tmp_path / "values.cpp"
    source.write_text(the_program(exprs, table))
    # The sanitizer ends the program at the first overflow, division by zero or other undefined behaviour.
    checks = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    command = ["g++", "-std=c++14", "-O0", "-w", *checks, str(source), "-o", str(tmp_path / "values")]
    # Our tests put empty libraries there for PoCL, and a linker would take libc from among them.
    environment = {name: value for name, value in os.environ.items() if name != "LIBRARY_PATH"}
    subprocess.run(command, check=True, timeout=100, env=environment)
    printed = subprocess.run([tmp_path / "values"], check=True, capture_output=True, text=True, timeout=20)
    got = iter(printed.stdout.split())
    values = 0
    for expr in exprs:
        for row in table:
            expected = outcome(expr, row)
            assert next(got) == str(expected), f"{expr.text} at {row}"
            values += expected is not None
    assert values > len(exprs) * len(table) / 3  # most have a value, or little was compared


def test_a_deep_chain_of_chains_stays_short() -> None:
    text = "a"
    for _ in range(30):
        text = f"(1 < {text} < 9)"
    assert len(c_code(parse_expr(text), C_NAMES)) < 10_000
