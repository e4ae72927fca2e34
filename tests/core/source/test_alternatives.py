"""Choices of the preprocessor and macros as nodes: printed, walked, and with names replaced in them."""

from __future__ import annotations

import pytest

from tests.core.source.reading import expression_of, statements_of
from tunesmith.source.printing import print_statements
from tunesmith.source.substitution import substitute
from tunesmith.source.tree import (
    BLANK,
    Alternative,
    Comment,
    Evaluate,
    Expr,
    If,
    MacroDefinition,
    Name,
    Stmt,
    Unreadable,
)
from tunesmith.source.walk import declared_in, names_in


def choice(condition: str, then: str, otherwise: tuple[Stmt, ...] = (), inside: str = "") -> Alternative:
    return Alternative(expression_of(condition), statements_of(then), otherwise, statements_of(inside))


def test_branches_are_printed_between_directives() -> None:
    both = choice("VEC > 1", "f();", statements_of("g();"))
    assert print_statements([both], 1) == "#if VEC > 1\n    f();\n#else\n    g();\n#endif\n"
    chain = choice("VEC > 4", "f();", (choice("VEC > 2", "g();", statements_of("h();")),))
    assert print_statements([chain]) == "#if VEC > 4\nf();\n#elif VEC > 2\ng();\n#else\nh();\n#endif\n"


def test_two_heads_may_have_one_body() -> None:
    loop = statements_of("int i = 7;\nfor (int b = 0; b < n; b++) { int own; }")
    heads = choice("KEEP", "{ const int b = 0; }", loop, inside="f(b);")
    assert print_statements([heads], 1) == (
        "#if KEEP\n    {\n        const int b = 0;\n#else\n    int i = 7;\n"
        "    for (int b = 0; b < n; b++) {\n        int own;\n#endif\n        f(b);\n    }\n"
    )


def test_a_head_without_a_block_is_refused() -> None:
    with pytest.raises(ValueError, match="ends with a loop or a block"):
        print_statements([choice("KEEP", "f();", statements_of("{ g(); }"), inside="h();")])


def test_a_branch_is_no_simple_body() -> None:
    inner = choice("VEC > 1", "f();")
    assert "if (a) {\n#if VEC > 1\n" in print_statements([If(Name("a"), (inner,))])


def test_comments_and_blank_lines() -> None:
    said = Alternative(
        Name("KEEP"), statements_of("f();"), comments=(BLANK, Comment("all at once", behind=True))
    )
    text = print_statements([*statements_of("g();"), said])
    assert text == "g();\n\n#if KEEP  // all at once\nf();\n#endif\n"


@pytest.mark.parametrize(
    ("value", "parameters", "text"),
    [
        ("LANES / 32", (), "(LANES / 32)"),
        ("blockIdx.x", (), "blockIdx.x"),
        ("x - f(x, d) * d", ("x", "d"), "((x) - f(x, d) * (d))"),
        ("(int)__umulhi((unsigned)x, made)", ("x", "made"), "((int)__umulhi((unsigned int)(x), made))"),
    ],
)
def test_macros_take_any_argument(value: str, parameters: tuple[str, ...], text: str) -> None:
    head = f"M({', '.join(parameters)})" if parameters else "M"
    assert (
        print_statements([MacroDefinition("M", expression_of(value), parameters)])
        == f"#define {head} {text}\n"
    )


def test_names_are_found_and_replaced_in_every_part() -> None:
    whole = choice("KEEP", "{ a = x; }", statements_of("for (;;) { a = y; }"), inside="int z = x;")
    assert {"KEEP", "a", "x", "y"} <= names_in([whole])
    assert declared_in([whole]) == ("z",)
    values: dict[str, Expr] = {"x": Name("new"), "KEEP": Name("HOLD")}
    text = print_statements(substitute([whole], values))
    assert "#if HOLD" in text
    assert text.count("new") == 2
    assert "x" not in text


def test_what_a_branch_declares_hides_a_name_after_it() -> None:
    stmts = (choice("KEEP", "int x = x0;", statements_of("f(x);")), *statements_of("g(x);"))
    text = print_statements(substitute(stmts, {"x": Name("outer")}))
    assert "f(outer);" in text
    assert "g(x);" in text


def test_what_would_have_to_be_renamed_in_a_branch_is_refused() -> None:
    stmts = (choice("KEEP", "int x = 1;"), Evaluate(Name("y")))
    with pytest.raises(Unreadable, match="must be renamed"):
        substitute(stmts, {"y": Name("x")})
