"""Long lines of C as several."""

from __future__ import annotations

from tunesmith.source.printing import WIDTH, print_statements
from tunesmith.source.snippets import parse_snippet


def test_printed_statements_are_no_wider() -> None:
    text = print_statements(parse_snippet("x = " + " + ".join(f"value_{n}[{n}]" for n in range(40)) + ";"), 2)
    assert all(len(line) <= WIDTH for line in text.splitlines())
    assert len(text.splitlines()) > 3
    assert "".join(text.split()) == "x=" + "+".join(f"value_{n}[{n}]" for n in range(40)) + ";"
