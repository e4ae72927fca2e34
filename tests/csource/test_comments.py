"""Comments of a source: whose they are, that they come through, and that they stay comments."""

from __future__ import annotations

import time

import pytest

from tests.csource.reading import function_of, source_of, statements_of
from tunesmith.csource.fold import fold_statements
from tunesmith.csource.inline import inline
from tunesmith.csource.lex import read_comment
from tunesmith.csource.nodes import Comment, Evaluate, Name, Stmt
from tunesmith.csource.printing import print_statements
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import statements_in


def said(stmts: tuple[Stmt, ...]) -> list[tuple[str, ...]]:
    return [tuple(comment.text for comment in stmt.comments) for stmt in stmts]


def test_comments_belong_to_the_statement_they_stand_before_or_behind() -> None:
    found = statements_of(
        "// the row\n/* and\n * its length */\nint a = 1;  // in elements\nint b = 2;\n"
        "\nb += a;  /* both */\n"
    )
    assert said(found) == [("the row", "and\nits length", "in elements"), (), ("both",)]
    assert [comment.behind for comment in found[0].comments] == [False, False, True]
    assert [comment.line for comment in found[0].comments] == [4, 5, 7]


def test_a_loop_has_those_of_its_head_and_its_body_those_of_its_own() -> None:
    text = (
        "// over all\n#pragma unroll\nfor (int i = 0; i < 4; i++) {  // by four\n    // one\n    f(i);\n}\n"
        "if (a) {  // first\n    g();\n} else {  // second\n    // third\n    h();\n}\n"
    )
    loop, branch = statements_of(text)
    assert [comment.text for comment in loop.comments] == ["over all", "by four"]
    assert [comment.text for comment in branch.comments] == ["first"]
    assert said(tuple(s for s in statements_in((loop, branch)) if isinstance(s, Evaluate))) == [
        ("one",), (), ("second", "third")
    ]  # fmt: skip


def test_words_inside_a_statement_stand_before_it() -> None:
    (found,) = statements_of("x = f(a,  // what\n      b);  // with")
    assert [(comment.text, comment.behind) for comment in found.comments] == [("what", False), ("with", True)]


def test_they_are_printed_where_they_were() -> None:
    text = "// the row\nint a = 1;  // in elements\n"
    text += "for (int i = 0; i < a; i++) {  // each\n    // one\n    f(i);\n}\n"
    assert print_statements(statements_of(text)) == text


def test_a_comment_between_else_and_if_goes_into_the_branch() -> None:
    text = "if (a) {\n    f();\n} else if (b) {  // rare\n    g();\n}\n"
    assert "else if (b) {\n    // rare\n    g();\n}" in print_statements(statements_of(text))


def test_a_macro_does_not_repeat_the_comments_of_its_arguments() -> None:
    found = statements_of("// all\nTWICE(f(a /* here */));  // done", before="#define TWICE(x) x; x")
    assert said(found) == [("all",), ("done",)]


def test_rewriting_carries_them_and_what_goes_takes_its_own_along() -> None:
    found = statements_of("// kept\nint a = n * 1;\nif (0) {\n    // gone\n    f();\n}\n")
    changed = fold_statements(substitute(found, {"n": Name("m")}))
    assert print_statements(changed) == "// kept\nint a = m;\n"


def test_a_function_that_is_put_in_place_brings_its_comments() -> None:
    source = source_of(
        "__device__ void add(float *p, float x)\n{\n    // the sum so far\n    p[0] += x;\n}\n"
        "__global__ void k(float *p)\n{\n    add(p, 1.0f);\n}\n"
    )
    assert "// the sum so far\np[0] += " in print_statements(
        inline(source.functions[1], source).function.body
    )


def test_a_function_has_those_before_it() -> None:
    assert [said.text for said in function_of("int a;\n// adds\n__device__ void f() {}").comments] == ["adds"]


@pytest.mark.parametrize(
    "comment",
    [
        "// all of it \\\n   and more \\",
        "// ends with ??/",
        "// ends with \\ ??/ \\  ",
        "/* one */ /* two */",
        "/* a \\\n#define x y\n */",
        "/// /// tunesmith",
        "/*\n// /// tunesmith\n// [params]\n// ///\n*/",
        "// right\u202eto left, and\u2028on",
        "// a\rint x;",
        "//" + "\\" * 3000,
        "//" + "/!" * 3000,
        "/*" + "*/ int y; /*" * 2 + "*/",
    ],
)
def test_no_comment_gets_out_of_it(comment: str) -> None:
    plain = statements_of("int a = 1;\nf(a);")
    ahead = statements_of(f"int a = 1;\n{comment}\n\nf(a);")
    text = print_statements(ahead)
    assert statements_of(text) == ahead
    assert "int y" in text or ahead == plain
    lines = [line for line in text.split("\n") if line.strip().startswith("//")]
    assert not [line for line in lines if line.endswith(("\\", "??/")) or line.startswith("// /")]
    assert len(lines) == len([line for c in ahead[-1].comments for line in c.lines])


@pytest.mark.parametrize("text", ["goes on \\", "goes on ??/", "/// tunesmith", "a\rb", "a\u2028b"])
def test_no_other_text_is_a_comment(text: str) -> None:
    with pytest.raises(ValueError, match="no line of a comment"):
        Comment(text)


def test_what_says_nothing_is_no_comment() -> None:
    assert read_comment("// -----", 1) is None
    assert read_comment("/***/", 1) is None


def test_very_many_comments_take_no_longer_than_other_text() -> None:
    started = time.process_time()
    found = statements_of("// word\n" * 8_000 + "f();\n" + "/* a */ " * 8_000 + "g();")
    assert time.process_time() - started < 5
    assert [len(stmt.comments) for stmt in found] == [8_000, 8_000]
