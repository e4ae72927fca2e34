"""What loops move by the same amount in every turn, and what they do not."""

from __future__ import annotations

import pytest

from tunesmith.csource.parse import read_source_tree
from tunesmith.csource.printing import print_statements
from tunesmith.expert.model.tidy import tidy


def tidied(body: str) -> str:
    source = read_source_tree(f"__kernel void k(__global float *a, int n, int s) {{ {body} }}", "opencl")
    (function,) = source.functions
    return " ".join(print_statements(tidy(function.body, source, function.parameters)).split())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("int at = s; for (int i = 0; i < n; ++i, at += s) a[at] = 1;", "a[at + i * s] = 1;"),
        ("int at = s; for (int i = 2; i < n; i += 2) { a[at] = 1; at++; }", "a[at + (i - 2) / 2] = 1;"),
        ("int at = 0; for (int i = 0; i < n; ++i) { at += s; a[at] = 1; }", "a[at + (i + 1) * s] = 1;"),
        (
            "int y = s; for (int i = 0; i < 4; ++i) if (y < n) { a[y] = 1; ++y; }",
            "if (y + i < n) a[y + i] = 1;",
        ),
        ("for (int y = s, end = min(n, y + 4); y < end; ++y) a[y] = 1;", "int end = min(n, s + 4);"),
        ("for (int i = 0; i < n; ++i, ++a) a[0] = 1;", "(a + (a_at + (long)i))[0] = 1;"),
    ],
)
def test_sums_over_the_index(body: str, said: str) -> None:
    assert said in tidied(body)


@pytest.mark.parametrize(
    "body",
    [
        "int at = 0; for (int i = 0; i < n; ++i, at += s) a[at] = 1; a[at] = 2;",  # used behind the loop
        "int at = 0; for (int i = 0; i < n; ++i) { a[at] = 1; at += i; }",  # by another amount in every turn
        "int at = 0; for (int i = 0; i < n; ++i) { if (a[i] > 0) continue; a[at] = 1; at += s; }",
        "int at = 0; for (int i = 0; i < n; ++i) if (a[i] > 0) { a[at] = 1; at += s; }",
        "int y = s; for (int i = 0; i < 4; ++i) if (y < n) { a[y] = 1; --n; ++y; }",  # the bound moves
        "int y = s; for (int i = 0; i < 4; ++i) if (y > n) { a[y] = 1; ++y; }",  # it may hold again
        "int at = 0; for (int k = 0; k < 2; ++k) for (int i = 0; i < n; ++i, at += s) a[at] = 1;",
        "int at = 0; for (int i = 0; i < n; i *= 2) { a[at] = 1; at += s; }",
    ],
)
def test_what_moves_otherwise_stays(body: str) -> None:
    assert "+= " in tidied(body) or "++" in tidied(body).replace("++i", "").replace("++k", "")


def test_24_bits_are_plain_products() -> None:
    assert "a[n * s + 3] = n * s;" in tidied("a[mad24(n, s, 3)] = mul24(n, s);")
