from __future__ import annotations

import pytest

from tests.core.source.reading import expression_of, statements_of
from tunesmith.source.printing import print_expr, print_statements
from tunesmith.source.substitution import rename_variables, substitute
from tunesmith.source.tree import Binary, Evaluate, Expr, If, Name, Number, TooDeep, Type, Unary
from tunesmith.source.walk import (
    assigned_in,
    calls_in,
    child_nodes,
    declared_in,
    expressions_in,
    map_expr,
    map_statements,
    map_types,
    names_in,
    statements_in,
    stored_in,
)

_BODY = """
    float v = q[i];
    uint4 w;
    for (int j = 0; j < n; j++) {
        v += f(q[j]) * threadIdx.x;
        p[j].x = v;
        ((__half2 *)&w)[j] = h;
    }
    if (a) { s.y = 1; } else { g(&b); }
    asm("x" : "=r"(c));
"""


def test_what_a_part_uses_declares_writes_and_calls():
    body = statements_of(_BODY)

    assert {"q", "i", "j", "n", "threadIdx.x", "p", "v", "h", "a", "b", "c", "s"} <= names_in(body)
    assert "__half2" not in names_in(body)
    assert declared_in(body) == ("v", "w", "j")
    assert assigned_in(body) >= {"v", "w", "j", "s", "b", "c"}
    assert not assigned_in(body) & {"p", "q", "a", "n"}
    assert stored_in(body) == {"p"}
    assert [call.function for call in calls_in(body)] == ["f", "g"]
    assert len(list(statements_in(body))) == 11
    assert len(list(expressions_in(body))) > 30


def test_expressions_are_rebuilt_from_the_leaves_up():
    seen: list[str] = []

    def note(expr: Expr) -> Expr:
        seen.append(print_expr(expr))
        return Name("b") if expr == Name("a") else expr

    assert map_expr(expression_of("a + f(a)"), note) == expression_of("b + f(b)")
    assert seen == ["a", "a", "f(b)", "b + f(b)"]


def test_statements_may_become_none_or_several():
    def change(stmt):
        if isinstance(stmt, If):
            return stmt.then
        return (stmt, stmt) if isinstance(stmt, Evaluate) else stmt

    body = statements_of("if (a) { b(); } int c = 1;")

    assert map_statements(body, on_stmt=change) == statements_of("b(); b(); int c = 1;")


def test_types_are_reached_everywhere():
    body = statements_of(
        "T x = (T)a + sizeof(T); for (T i = T{1, 2}; i < x; i++) b = (T *)c;", before="struct T;"
    )

    text = print_statements(map_types(body, lambda t: Type("float", t.pointers) if t.base == "T" else t))

    assert text == (
        "float x = (float)a + sizeof(float);\nfor (float i = float{1, 2}; i < x; i++)\n    b = (float *)c;\n"
    )


def test_children_come_in_the_order_of_the_text():
    assert child_nodes(expression_of("a ? b : c")) == (Name("a"), Name("b"), Name("c"))
    assert child_nodes(Number("1", 1)) == ()


def test_a_tree_without_end_is_refused():
    expr: Expr = Name("a")
    for _ in range(300):
        expr = Unary("!", expr)

    with pytest.raises(TooDeep):
        map_expr(expr, lambda node: node)
    assert names_in(expr) == {"a"}


def test_a_declaration_hides_the_name_it_declares():
    body = statements_of(
        "x = n; { int n = n + 1; x = n; } for (int n = 0; n < 3; n++) y = n; int n = 2; z = n;"
    )

    assert print_statements(substitute(body, {"n": Number("7", 7)})) == (
        "x = 7;\n{\n    int n = n + 1;\n    x = n;\n}\n"
        "for (int n = 0; n < 3; n++)\n    y = n;\nint n = 2;\nz = n;\n"
    )


def test_a_replacement_is_not_captured():
    body = statements_of("for (int i = 0; i < n; i++) p[i] = x;")

    assert print_statements(substitute(body, {"x": Binary("+", Name("i"), Number("1", 1))})) == (
        "for (int i_2 = 0; i_2 < n; i_2++)\n    p[i_2] = i + 1;\n"
    )


def test_names_in_text_and_template_arguments_are_replaced_as_well():
    before = "template <int N> __device__ int f(int);"
    body = statements_of(
        'a = f<N>(x); asm("" : "+r"(x) : "r"(v.x), "r"(w->x)); b = threadIdx.x;', before=before
    )

    text = print_statements(substitute(body, {"N": Number("4", 4), "x": Name("y")}))

    assert text == 'a = f<4>(y);\nasm("" : "+r"(y) : "r"(v.x), "r"(w->x));\nb = threadIdx.x;\n'


def test_renaming_reaches_declarations_and_uses():
    body = statements_of("int a = 1; for (int b = a; b < 3; b++) { float a = b; c(a); }")

    assert print_statements(rename_variables(body, {"a": "x", "b": "y"})) == (
        "int x = 1;\nfor (int y = x; y < 3; y++) {\n    float x = y;\n    c(x);\n}\n"
    )
