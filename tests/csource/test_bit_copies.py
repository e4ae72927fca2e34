"""Bits of local variables as another type: copies as assignments, arrays aligned for their words."""

from __future__ import annotations

import pytest

from tunesmith.csource.bit_copies import with_bit_copies
from tunesmith.csource.parse import read_source_tree
from tunesmith.csource.printing import print_statements


def after(text: str) -> str:
    source = read_source_tree(f"__global__ void k(float *p) {{ {text} }}", "cuda")
    return " ".join(print_statements(with_bit_copies(source.functions[0].body)).split())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("half c[8]; int4 b; memcpy(&c, &b, 16);", "((int4 *)c)[0] = b;"),
        ("half c[8]; int4 b; memcpy(c, &b, sizeof(int4));", "((int4 *)c)[0] = b;"),
        ("half c[8]; int4 b; memcpy(&b, c, 16);", "b = ((int4 *)c)[0];"),
    ],
)
def test_a_copy_of_one_word_is_an_assignment(text: str, found: str) -> None:
    assert found in after(text)
    assert "memcpy" not in after(text)


@pytest.mark.parametrize(
    "text",
    [
        "half c[4]; int4 b; memcpy(&c, &b, 16);",  # beyond the array
        "half c[8]; int4 b; memcpy(&c, &b, 8);",  # a part of the word
        "half c[8]; int4 b; memcpy(&b, p, 16);",  # memory whose alignment nobody promises
        "half c[8]; int4 b; memcpy(&c[1], &b, 16);",
        "half c[8]; half b[8]; memcpy(&c, &b, 16);",  # no word is that wide
        "float f; unsigned int u; memcpy(&u, &f, 4);",
        "half c[8]; int4 b; int n; memcpy(&c, &b, n);",
        "half c[8]; { int4 c; int4 b; memcpy(&c, &b, 16); }",  # two variables of one name
        "__shared__ half c[8]; int4 b; memcpy(&c, &b, 16);",
    ],
)
def test_any_other_copy_stays_a_call(text: str) -> None:
    assert "memcpy(" in after(text)


def test_an_array_is_aligned_to_the_widest_word_it_is_accessed_as() -> None:
    found = after(
        "half c[8]; half d[8]; ((float *)c)[0] = 1; ((uint4 *)c)[0] = ((uint4 *)p)[0]; d[0] = c[1];"
    )
    assert "__align__(16) __half c[8];" in found
    assert "; __half d[8];" in found
    assert "__align__(32) __half c[8];" in after(
        "__align__(32) half c[8]; ((uint4 *)c)[0] = ((uint4 *)p)[0];"
    )
