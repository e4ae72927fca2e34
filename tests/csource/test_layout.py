"""Long lines of C as several."""

from __future__ import annotations

import pytest

from tunesmith.csource.layout import WIDTH, wrapped
from tunesmith.csource.printing import print_statements
from tunesmith.csource.snippets import code

LONG = (
    "    send(ring + (threadIdx.y * STAGES + stage) * (CHUNK * 2), "
    "&table[id * dim + here], count * 2, &arrived[stage]);"
)


def narrow(line: str, width: int = 60) -> str:
    return "\n".join(wrapped(line, width))


def test_a_short_line_stays_one() -> None:
    assert wrapped(LONG, len(LONG)) == [LONG]


def test_what_follows_stands_below_what_the_bracket_holds() -> None:
    assert narrow(LONG, 80) == (
        "    send(ring + (threadIdx.y * STAGES + stage) * (CHUNK * 2),\n"
        "         &table[id * dim + here], count * 2, &arrived[stage]);"
    )


def test_the_weakest_operator_is_broken_first() -> None:
    assert narrow("const int x = first * second + third * fourth - fifth * sixth * seventh * eighth;") == (
        "const int x = first * second + third * fourth\n    - fifth * sixth * seventh * eighth;"
    )


def test_arguments_of_a_template_stay_together() -> None:
    assert narrow("    Pack<__half, VEC, 16>::copy(ring, stage * ITEMS + k, &weight[here], true);") == (
        "    Pack<__half, VEC, 16>::copy(ring, stage * ITEMS + k,\n"
        "                                &weight[here], true);"
    )


def test_a_comparison_is_no_bracket() -> None:
    assert narrow("    if (first < second && third > fourth && fifth < sixth && seventh > eighth) {") == (
        "    if (first < second && third > fourth && fifth < sixth\n        && seventh > eighth) {"
    )


def test_behind_an_assignment_where_nothing_else_is_left() -> None:
    assert narrow("    values[first_index_of_all][second] = value_of_a_long_name(argument);") == (
        "    values[first_index_of_all][second] =\n        value_of_a_long_name(argument);"
    )


def test_a_comment_behind_goes_ahead() -> None:
    assert narrow("    x = a + b;  // which is the sum of the one and the other number") == (
        "    // which is the sum of the one and the other number\n    x = a + b;"
    )


@pytest.mark.parametrize(
    "line",
    [
        "#define LONG (aaaaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbbbbbbbbb + cccccccccccccccccc)",
        "// a comment that is longer than it should be, as comments of the source may be",
        '    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from));',
        "    a_name_without_any_place_to_break_it_at_however_long_it_is_written();",
    ],
)
def test_some_lines_stay_as_they_are(line: str) -> None:
    assert wrapped(line, 60) == [line]


def test_printed_statements_are_no_wider() -> None:
    text = print_statements(code("x = " + " + ".join(f"value_{n}[{n}]" for n in range(40)) + ";"), 2)
    assert all(len(line) <= WIDTH for line in text.splitlines())
    assert len(text.splitlines()) > 3
    assert "".join(text.split()) == "x=" + "+".join(f"value_{n}[{n}]" for n in range(40)) + ";"
