"""Conditions that known values decide, and macros that are numbers by then."""

from __future__ import annotations

from tunesmith.source.preprocess import define_macro_values, preprocess


def test_what_the_preprocessor_makes_of_it_is_the_same() -> None:
    text = "#ifndef A\n#define A 1\n#endif\n"
    text += "#if A > 1 && B\nint x[A];\n#elif B == 0\nint y;\n#else\nint z;\n#endif\n"
    for a in (1, 2):
        for b in (0, 1):
            before = preprocess(text, "cuda", [("A", str(a)), ("B", str(b))])
            after = preprocess(define_macro_values(text, {"A": a}), "cuda", [("B", str(b))])
            assert [t.text for t in before.tokens] == [t.text for t in after.tokens]
