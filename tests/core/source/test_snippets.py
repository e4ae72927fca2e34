"""Pieces of C with holes: every hole filled, nothing left that was not understood."""

from __future__ import annotations

import pytest

from tunesmith.source.printing import print_expr, print_statements
from tunesmith.source.snippets import parse_snippet, parse_snippet_expr
from tunesmith.source.tree import Call, Evaluate, Index, Name, Number


def test_names_expressions_and_statements_go_into_holes() -> None:
    stmts = parse_snippet(
        "const T first = a + 1;  // where it starts\n#pragma unroll\nfor (int i = 0; i < n; i++) body;",
        T="long long", first="begin", a=parse_snippet_expr("x * y"), i="k", n=Number("4", 4),
        body=parse_snippet("f(i);", f="use", i="k"),
    )  # fmt: skip
    assert print_statements(stmts) == (
        "const long long begin = x * y + 1;  // where it starts\n"
        "#pragma unroll\nfor (int k = 0; k < 4; k++)\n    use(k);\n"
    )
    assert all(stmt.line == 0 for stmt in stmts)


def test_holes_are_filled_at_once() -> None:
    assert print_expr(parse_snippet_expr("a - b", a="b", b="a")) == "b - a"


def test_types_in_casts() -> None:
    assert (
        print_expr(parse_snippet_expr("(T)x", T="float", x=parse_snippet_expr("a + b"))) == "(float)(a + b)"
    )


def test_a_method_of_an_object() -> None:
    call = Call("load", (Name("p"),), of=Index(Name("packs"), Name("k")))
    assert print_statements([Evaluate(call)]) == "packs[k].load(p);\n"


@pytest.mark.parametrize("text", ["a b c;", "p.load(x);", "switch (a) {}", ""])
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not understood"):
        parse_snippet(text)
