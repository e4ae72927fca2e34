"""Values of float scalars: computed alike here, in C and in what is delivered, and refused otherwise."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tunesmith.deliver.expr_text import c_real_function
from tunesmith.deliver.runtime.expressions import NotAnExpression, NoValue, RealExpression
from tunesmith.space.expr import ExprError, Undefined, parse_real, real_python

CC = shutil.which("cc") or shutil.which("gcc")
WRITTEN = {
    "1 / sqrt(d)": lambda d, n: 1 / math.sqrt(d),
    "-2.5e-3 * d + n / 3": lambda d, n: -2.5e-3 * d + n / 3,
    "sqrt(d * n) / (d - n / 7)": lambda d, n: math.sqrt(d * n) / (d - n / 7),
    "1.0 / (n * d)": lambda d, n: 1.0 / (n * d),
    "d": lambda d, n: float(d),
}
SIZES = [(1, 1), (64, 3), (80, 12345), (128, 7), (4097, 1_000_003)]


def test_they_have_the_value_that_python_gives() -> None:
    for text, meant in WRITTEN.items():
        expr = parse_real(text, names=("d", "n"))
        delivered = RealExpression(text, ("d", "n"))
        assert expr.names == delivered.names
        for d, n in SIZES:
            values = {"d": d, "n": n}
            assert expr.evaluate(values) == meant(d, n) == delivered.evaluate(values)
            written = real_python(expr, lambda name: f"v[{name!r}]")
            assert eval(written, {"math": math, "v": values}) == meant(d, n)


@pytest.mark.skipif(CC is None, reason="needs a C compiler")
def test_c_gives_the_same_bits(tmp_path: Path) -> None:
    functions, lines = [], []
    for number, text in enumerate(WRITTEN):
        for kind in ("float32", "float64"):
            name = f"f{number}_{kind}"
            sizes = {"d": "size[0]", "n": "size[1]"}
            functions.append(c_real_function(name, parse_real(text), kind, sizes))
            show = f'long long bits = {name}(size, &undefined); printf("%lld %d\\n", bits, undefined);'
            lines += [f"{{ long long size[] = {{{d}, {n}}}; {show} }}" for d, n in SIZES]
    functions.append(c_real_function("none", parse_real("1 / (d - 1)"), "float32", {"d": "size[0]"}))
    lines.append('{ long long size[] = {1}; none(size, &undefined); printf("0 %d\\n", undefined); }')
    includes = "#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n"
    body = "\n".join(lines)
    text = f"{includes}{''.join(functions)}int main(void) {{\nint undefined = 0;\n{body}\nreturn 0;\n}}\n"
    (tmp_path / "values.c").write_text(text)
    own = {name: value for name, value in os.environ.items() if name != "LIBRARY_PATH"}
    built = [str(CC), "-std=c99", "-Wall", "-Wextra", "-Werror", "values.c", "-o", "values", "-lm"]
    subprocess.run(built, cwd=tmp_path, check=True, env=own)
    printed = subprocess.run([str(tmp_path / "values")], capture_output=True, text=True, check=True)
    expected = [
        f"{np.array(meant(d, n), dtype=kind).view(bits)} 0"
        for meant in WRITTEN.values()
        for kind, bits in (("float32", "int32"), ("float64", "int64"))
        for d, n in SIZES
    ]
    assert printed.stdout.splitlines() == [*expected, "0 1"]


@pytest.mark.parametrize("text", ["1 / (d - 4)", "sqrt(-d)", "1e200 * 1e200 * d", "d / n"])
def test_what_is_not_finite_is_no_value(text: str) -> None:
    with pytest.raises(Undefined):
        parse_real(text).evaluate({"d": 4})
    with pytest.raises(NoValue):
        RealExpression(text, ("d", "n")).evaluate({"d": 4})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 / sqrt(hd)", "unknown name 'hd'"),
        ("d ** 2", "'d ** 2' is not allowed"),
        ("exp(d)", "is not allowed"),
        ("sqrt(d, d)", "is not allowed"),
        ("d // 2", "is not allowed"),
        ("d[0]", "the character '['"),
        ("True * d", "is not allowed"),
        ("1 /", "is not an expression of a float"),
        ("", "1 to 500 characters"),
        ("-" * 60 + "d", "nested more than 40 deep"),
        ("d.real", "is not allowed"),
    ],
)
def test_anything_else_is_refused(text: str, words: str) -> None:
    with pytest.raises(ExprError) as caught:
        parse_real(text, names=("d", "n"))
    assert words in str(caught.value)
    assert caught.value.hint
    if "nested" not in words:
        with pytest.raises(NotAnExpression):
            RealExpression(text, ("d", "n"))
