"""Numbers behind names only where two of them meet."""

from __future__ import annotations

from tunesmith.expert.write.names import with_plain_names
from tunesmith.source import tree as c
from tunesmith.source.printing import print_statements
from tunesmith.source.snippets import parse_snippet


def named(body: tuple[c.Stmt, ...], *file_words: str, kept: tuple[str, ...] = ()) -> str:
    return " ".join(print_statements(with_plain_names(body, ["p"], file_words, kept)).split())


def test_branches_of_the_preprocessor_share_names_unless_they_are_used_below() -> None:
    (one, two) = parse_snippet("int x = 1; int x_2 = 2;")
    (first, second) = parse_snippet("g(x); g(x_2);")
    flag = c.Name("A")
    apart = c.Alternative(flag, (one, first), (two, second))
    assert named((apart,)) == "#if A int x = 1; g(x); #else int x = 2; g(x); #endif"
    below = (c.Alternative(flag, (one, first), (two,)), c.Alternative(flag, (), (second,)))
    assert "int x_2 = 2;" in named(below)


def test_two_heads_of_one_body() -> None:
    (loop,) = parse_snippet("for (int base_2 = 0; base_2 < p; base_2++) {}")
    (block,) = parse_snippet("{ const int base_2 = 0; }")
    inside = parse_snippet("const int here_2 = base_2; g(here_2);")
    text = named((c.Alternative(c.Name("A"), (loop,), (block,), inside),))
    assert "base_2" not in text
    assert "const int here = base; g(here);" in text
