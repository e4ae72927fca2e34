"""Conditions that known values decide, and macros that are numbers by then."""

from __future__ import annotations

import pytest

from tunesmith.csource.preprocess import preprocess
from tunesmith.csource.resolve import folded, resolved


def lines(text: str, **values: int) -> list[str]:
    return [line for line in resolved(text, values).splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("KEEP", ["yes"]),
        ("!KEEP", ["no"]),
        ("KEEP == 2 && VEC > 1", ["#if VEC > 1", "yes", "#else", "no", "#endif"]),
        ("KEEP == 1 && VEC > 1", ["no"]),
        ("KEEP == 2 || VEC > 1", ["yes"]),
        ("(KEEP == 1 || VEC > 1) && KEEP", ["#if VEC > 1", "yes", "#else", "no", "#endif"]),
        ("(ROWS || VEC > 1) && KEEP", ["#if (ROWS || VEC > 1)", "yes", "#else", "no", "#endif"]),
        ("__CUDA_ARCH__ >= 900", ["#if __CUDA_ARCH__ >= 900", "yes", "#else", "no", "#endif"]),
        ("defined(KEEP) && defined VEC", ["#if defined VEC", "yes", "#else", "no", "#endif"]),
        ("VEC ? KEEP : 0", ["#if VEC ? KEEP : 0", "yes", "#else", "no", "#endif"]),
        ("HALF(KEEP) == 1", ["yes"]),
        ("TWICE == 4", ["yes"]),
    ],
)
def test_a_condition_asks_only_what_is_not_known(condition: str, left: list[str]) -> None:
    macros = "#define HALF(x) ((x) / 2)\n#define TWICE (KEEP * 2)\n"
    found = lines(f"{macros}#if {condition}\nyes\n#else\nno\n#endif\n", KEEP=2)
    assert found[3:] == left
    assert found[:3] == ["#define KEEP 2", *macros.splitlines()]


def test_branches_in_a_row() -> None:
    text = "#if A == 1\none\n#elif B\nbee  // said\n#elif A == 2\ntwo\n#elif C\nsea\n#else\nrest\n#endif\n"
    assert lines(text, A=1)[1:] == ["one"]
    assert lines(text, A=2)[1:] == ["#if B", "bee  // said", "#else", "two", "#endif"]
    assert lines(text, A=3, B=0)[2:] == ["#if C", "sea", "#else", "rest", "#endif"]


def test_what_is_inside_a_branch_that_is_gone_is_gone_whatever_it_asks() -> None:
    text = "#if A\n#if B\nx\n#else\ny\n#endif\n#define Q 1\n#endif\nz\n"
    assert lines(text, A=0)[1:] == ["z"]


def test_a_comment_of_a_condition_that_holds_stands_by_itself() -> None:
    text = "void f()\n{\n#if A  // all at once\n    g();\n#endif\n}\n"
    assert lines(text, A=1)[1:] == ["void f()", "{", "    // all at once", "    g();", "}"]


def test_a_default_gives_way_to_the_value_where_it_stands_unless_it_was_used_before() -> None:
    text = "int a;\n#ifndef A\n#define A 1  // threads\n#endif\nint b[A];\n"
    assert lines(text, A=4) == ["int a;", "#define A 4  // threads", "int b[A];"]
    assert lines("int early = A;\n" + text, A=4)[0] == "#define A 4"
    assert resolved(text, {"A": 4}, early=["A"]).startswith("#define A 4\n")
    assert lines(text, A=-4)[1] == "#define A (-4)  // threads"


def test_a_macro_that_is_one_of_several_is_not_known() -> None:
    text = "#if B\n#define N 1\n#else\n#define N 2\n#endif\n#if N == 1\nx\n#endif\n"
    assert lines(text, A=1)[1:] == text.splitlines()


def test_numbers_take_the_place_of_arithmetic_and_bools_stay() -> None:
    text = "#define A 4\n#define N (A > 2 ? A * 2 : 1)  // why\n"
    text += "#define IS (A > 2)\n#define U (A * 2u)\n#define X (A * B)\n"
    assert folded(text, {"A": 4}).splitlines() == [
        "#define A 4",
        "#define N 8  // why",
        "#define IS (A > 2)",
        "#define U (A * 2u)",
        "#define X (A * B)",
    ]


def test_what_the_preprocessor_makes_of_it_is_the_same() -> None:
    text = "#ifndef A\n#define A 1\n#endif\n"
    text += "#if A > 1 && B\nint x[A];\n#elif B == 0\nint y;\n#else\nint z;\n#endif\n"
    for a in (1, 2):
        for b in (0, 1):
            before = preprocess(text, "cuda", [("A", str(a)), ("B", str(b))])
            after = preprocess(resolved(text, {"A": a}), "cuda", [("B", str(b))])
            assert [t.text for t in before.tokens] == [t.text for t in after.tokens]
