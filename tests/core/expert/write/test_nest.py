"""Loop nests printed from axes; helpers declared above the types that call them."""

from __future__ import annotations

from tunesmith.expert.write.given import LoopAxis, item_axis, nest_loops
from tunesmith.expert.write.page import forward_declare_helpers
from tunesmith.source.printing import print_statements
from tunesmith.source.snippets import parse_snippet, parse_snippet_expr


def printed(axes: list[LoopAxis]) -> str:
    return print_statements(nest_loops(axes, parse_snippet("x[i] = 0;")))


def test_the_first_axis_is_the_outermost() -> None:
    outer = LoopAxis(
        "base",
        parse_snippet_expr("end"),
        parse_snippet_expr("lane"),
        parse_snippet_expr("LANES"),
        "long long",
    )
    inner = item_axis(
        "k",
        parse_snippet_expr("ITEMS"),
        parse_snippet("const int i = base + k;"),
        parse_snippet_expr("i < end"),
    )
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
    axis = LoopAxis("i", parse_snippet_expr("n"), parse_snippet_expr("first"), type="long")
    assert print_statements(axis.at_start(parse_snippet("x[i] = 0;"))).split() == (
        ["{", "const", "long", "i", "=", "first;", "x[i]", "=", "0;", "}"]
    )


TYPE = "struct Byte { uint8_t x; Byte(float v) : x(to_byte(v)) {} };"


def test_a_helper_is_declared_above_the_type_that_calls_it() -> None:
    helpers = ["inline uint8_t to_byte(float v) { return v; }", "float twice(float v) { return 2 * v; }"]
    lines = forward_declare_helpers(["#include <cstdint>", TYPE], helpers)
    assert lines == ["#include <cstdint>", "inline uint8_t to_byte(float v);", TYPE]


def test_what_nobody_calls_there_or_has_default_arguments_is_not() -> None:
    assert forward_declare_helpers([TYPE], ["uint8_t to_byte(float v, int how = 1) { return v; }"]) == [TYPE]
    assert forward_declare_helpers([TYPE], ["uint8_t to_bytes(float v) { return v; }"]) == [TYPE]
