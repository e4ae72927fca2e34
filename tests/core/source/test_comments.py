"""Comments of a source: whose they are, that they come through, and that they stay comments."""

from __future__ import annotations

import time

import pytest

from tests.core.source.reading import statements_of
from tunesmith.source.fold import fold_statements
from tunesmith.source.printing import print_statements
from tunesmith.source.substitution import substitute
from tunesmith.source.tree import Comment, Name


def test_rewriting_carries_them_and_what_goes_takes_its_own_along() -> None:
    found = statements_of("// kept\nint a = n * 1;\nif (0) {\n    // gone\n    f();\n}\n")
    changed = fold_statements(substitute(found, {"n": Name("m")}))
    assert print_statements(changed) == "// kept\nint a = m;\n"


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


def test_very_many_comments_take_no_longer_than_other_text() -> None:
    started = time.process_time()
    found = statements_of("// word\n" * 8_000 + "f();\n" + "/* a */ " * 8_000 + "g();")
    assert time.process_time() - started < 5
    assert [len(stmt.comments) for stmt in found] == [8_000, 8_000]
