"""Loop nests printed from axes."""

from __future__ import annotations

from tunesmith.csource.printing import print_statements
from tunesmith.csource.snippets import code, expr
from tunesmith.expert.writing.nest import LoopAxis, items, nest


def printed(axes: list[LoopAxis]) -> str:
    return print_statements(nest(axes, code("x[i] = 0;")))


def test_the_first_axis_is_the_outermost() -> None:
    outer = LoopAxis("base", expr("end"), expr("lane"), expr("LANES"), "long long")
    inner = items("k", expr("ITEMS"), code("const int i = base + k;"), expr("i < end"))
    assert printed([outer, inner]).splitlines() == [
        "for (long long base = lane; base < end; base += LANES) {",
        "#pragma unroll",
        "    for (int k = 0; k < ITEMS; k++) {",
        "        const int i = base + k;",
        "        if (i < end)",
        "            x[i] = 0;",
        "    }",
        "}",
    ]


def test_without_an_axis_there_is_the_body() -> None:
    assert printed([]) == "x[i] = 0;\n"


def test_one_value_needs_no_loop() -> None:
    axis = LoopAxis("i", expr("n"), expr("first"), type="long")
    assert print_statements(axis.at_start(code("x[i] = 0;"))).split() == (
        ["{", "const", "long", "i", "=", "first;", "x[i]", "=", "0;", "}"]
    )
