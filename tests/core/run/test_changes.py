"""Diffs as reports show them: bounded in lines and in length."""

from __future__ import annotations

from tunesmith.run.rounds import LONGEST_LINE, MAX_COMPARED, MAX_LINES, diff_lines


def test_what_changed() -> None:
    found = diff_lines("a\nb\n", "a\nc\n", "kernel.cu", "template 1")
    assert found == ("--- kernel.cu", "+++ template 1", "@@ -1,2 +1,2 @@", " a", "-b", "+c")
    assert diff_lines("a\n", "a\n", "x", "y") == ()


def test_it_is_bounded() -> None:
    found = diff_lines("", "\n".join(f"line {n}" for n in range(1000)), "x", "y")
    assert len(found) == MAX_LINES + 1
    assert found[-1] == f"… {1003 - MAX_LINES} more lines"
    assert len(diff_lines("", "x" * 10_000, "x", "y")[-1]) == LONGEST_LINE + 1
    huge = "\n".join(map(str, range(MAX_COMPARED + 1)))
    assert diff_lines("", huge, "x", "y") == (
        f"… 0 lines before, {MAX_COMPARED + 1} after: too many to compare",
    )
