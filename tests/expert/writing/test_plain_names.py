"""Numbers behind names only where two of them meet."""

from __future__ import annotations

from tunesmith.csource import nodes as c
from tunesmith.csource.printing import print_statements
from tunesmith.csource.snippets import code
from tunesmith.expert.writing.plain_names import with_plain_names


def named(body: tuple[c.Stmt, ...], *file_words: str, kept: tuple[str, ...] = ()) -> str:
    return " ".join(print_statements(with_plain_names(body, ["p"], file_words, kept)).split())


def test_a_name_serves_again_in_another_block() -> None:
    text = "for (int i = 0; i < p; i++) { const int x = i; f(x); }"
    text += "for (int i_2 = 0; i_2 < p; i_2++) { const int x_2 = i_2; f(x_2); }"
    assert named(code(text)).count("const int x = i; f(x);") == 2


def test_where_the_other_is_seen_or_means_something_the_number_stays() -> None:
    seen = "int x = 1; for (int i = 0; i < p; i++) { const int x_2 = i; g(x_2 + x); }"
    assert "g(x_2 + x)" in named(code(seen))
    hidden = "int x = 1; g(x); { const int x_2 = 3; g(x_2); }"  # one x would hide the other
    assert "g(x_2)" in named(code(hidden))
    assert "g(x_2)" in named(code("int x_2 = 1; g(x_2);"), "x")
    assert "g(x_2)" in named(code("int x_2 = 1; g(x_2);"), kept=("x_2",))
    assert "g(p_2)" in named(code("int p_2 = 1; g(p_2);"))
    assert "x(x_2)" in named(code("int x_2 = 1; x(x_2);"))
    assert named(code("int x_2 = 1; g(x_2);")) == "int x = 1; g(x);"


def test_the_lowest_number_that_is_free() -> None:
    assert named(code("int x = 1; int x_4 = 2; g(x, x_4);")) == "int x = 1; int x_2 = 2; g(x, x_2);"


def test_equal_constants_are_declared_once() -> None:
    twice = "const int end = p ? p * 2 : 0; g(end); const int end_2 = p ? p * 2 : 0; g(end_2);"
    assert named(code(twice)) == "const int end = p ? p * 2 : 0; g(end); g(end);"
    changed = "int q = 1; const int end = q; q = 2; const int end_2 = q; g(end, end_2);"
    assert "const int end_2 = q;" in named(code(changed))
    called = "const int end = f(p); const int end_2 = f(p); g(end, end_2);"
    assert "const int end_2 = f(p);" in named(code(called))


def test_branches_of_the_preprocessor_share_names_unless_they_are_used_below() -> None:
    (one, two) = code("int x = 1; int x_2 = 2;")
    (first, second) = code("g(x); g(x_2);")
    flag = c.Name("A")
    apart = c.Alternative(flag, (one, first), (two, second))
    assert named((apart,)) == "#if A int x = 1; g(x); #else int x = 2; g(x); #endif"
    below = (c.Alternative(flag, (one, first), (two,)), c.Alternative(flag, (), (second,)))
    assert "int x_2 = 2;" in named(below)


def test_two_heads_of_one_body() -> None:
    (loop,) = code("for (int base_2 = 0; base_2 < p; base_2++) {}")
    (block,) = code("{ const int base_2 = 0; }")
    inside = code("const int here_2 = base_2; g(here_2);")
    text = named((c.Alternative(c.Name("A"), (loop,), (block,), inside),))
    assert "base_2" not in text
    assert "const int here = base; g(here);" in text
