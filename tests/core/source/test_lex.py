"""Words, directives and blanks of C text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.source.lex import lex, split_at
from tunesmith.source.text import blank_elements, find_directives, join_spliced_lines, without_comments

SOUP = st.lists(
    st.sampled_from(
        ['"', "'", "/*", "*/", "//", "\\\n", "\n", "#", "define", 'R"(', ')"', "1'0", "0x1e+", ".", "a", " "]
    ),
    max_size=16,
).map("".join)


def _words(text: str) -> list[str]:
    return [token.text for token in lex(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a+++b->c", ["a", "++", "+", "b", "->", "c"]),
        ("1'000 + 'x' // it's", ["1'000", "+", "'x'"]),
        ("k<<<g, b>>>(x)", ["k", "<<<", "g", ",", "b", ">>", ">", "(", "x", ")"]),
        ("a / b /= c /* d */ .5f", ["a", "/", "b", "/=", "c", ".5f"]),
        ('s = R"x(" // )x" + u8"//";', ["s", "=", 'R"x(" // )x"', "+", "u8", '"//"', ";"]),
        ('x\n#define U "a//b" /* no\n */ 2 \\\n + 3 // c\ny', ["x", 'define U "a//b"   2  + 3', "y"]),
        ("x /*\n*/ # y", ["x", "#", "y"]),
        ("/*\n*/ # error it's\n", ["error it's"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert _words(text) == words


def test_words_know_their_place_and_line() -> None:
    text = "a /* 1\n2 */ b \\\n c\n#if X\n  d"
    assert [(t.text, t.line, text[t.offset]) for t in lex(text)] == [
        ("a", 1, "a"), ("b", 2, "b"), ("c", 3, "c"), ("if X", 4, "#"), ("d", 5, "d"),
    ]  # fmt: skip


def test_directives_are_one_line_and_know_where_they_stand() -> None:
    text = 'int a;\n  # define F(x) \\\n  x // why\n#if(A)\n"#else"\n#endif'
    found = list(find_directives(text))
    assert [(d.word, d.rest, d.line) for d in found] == [
        ("define", "F(x)   x", 2),
        ("if", "(A)", 4),
        ("endif", "", 6),
    ]
    assert all(text[d.start] == "#" and text[d.end : d.end + 1] in ("", "\n") for d in found)


def test_blanks_keep_every_place() -> None:
    assert blank_elements('f("a", 1); // b\n#if 0', ("comment", "string")) == 'f(" ", 1);     \n#if 0'
    assert blank_elements("#if 0 // x\nint a;", ("directive",)) == "          \nint a;"
    assert without_comments("a/* b\n */c\r\n'//'") == "a    \n   c\n'//'"


def test_a_string_of_several_lines_stays_one() -> None:
    for text in ('f("a \\\n b", 1);', 'f(R"x(a\n "b)x", 1);', 'f("a\\\\ \\\r\n b", 1);'):
        after = blank_elements(text, ("string",))
        assert "a" not in after
        assert "b" not in after
        assert [token.kind for token in lex(after)] == [token.kind for token in lex(text)]


def test_lines_that_go_on_are_one_and_still_count() -> None:
    assert join_spliced_lines("#inc\\\nlude <a>\nb") == "#include <a>\v\nb"


def test_lists_are_split_outside_of_brackets() -> None:
    parts = split_at(",", lex("a, f(b, c), d<e, g<h>>, i"))
    assert ["".join(token.text for token in part) for part in parts] == ["a", "f(b,c)", "d<e,g<h>>", "i"]


@given(SOUP)
def test_any_text_is_read_and_blanks_keep_its_length(text: str) -> None:
    for token in lex(text):
        assert token.text or token.kind == "directive"
    for kinds in (("comment",), ("comment", "string"), ("comment", "string", "directive")):
        after = blank_elements(text, kinds)
        assert len(after) == len(text)
        assert all(b in (a, " ") for a, b in zip(text, after, strict=True))
