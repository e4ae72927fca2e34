"""Structures that a kernel declares for itself: those of fields alone are records of the file."""

from __future__ import annotations

import pytest

from tunesmith.csource import nodes as c
from tunesmith.csource.parse import read_source_tree

_HEAD = "template <typename T, int N> __global__ void k(T *x, int n) "


def test_a_plain_structure_is_a_template_of_the_file() -> None:
    source = read_source_tree(
        _HEAD + "{ struct alignas(16) pack { T at[N]; }; pack p; x[0] = p.at[0]; }", "cuda"
    )
    (kernel,), (record,) = source.functions, source.records
    assert isinstance(kernel.body[0], c.Verbatim)
    assert kernel.body[0].text == "using pack = pack_of_k<T, N>;"
    assert (record.name, [p.name for p in record.template]) == ("pack_of_k", ["T", "N"])
    (text,) = source.of_records
    assert " ".join(text.split()) == (
        "template <typename T, int N> struct alignas(16) pack_of_k { T at[N]; };"
    )
    assert "struct alignas(16) pack {" in kernel.text  # the kernel's own text is the user's


@pytest.mark.parametrize(
    "text",
    [
        "struct pack { T at[N]; __device__ T first() { return at[0]; } };",
        "constexpr int M = 4; struct pack { T at[M]; };",  # of the function
        "struct pack : other { T at[N]; };",
        "if (n > 3) { struct pack { T at[N]; }; }",
    ],
)
def test_others_stay_text(text: str) -> None:
    source = read_source_tree(f"struct other {{ int a; }}; {_HEAD} {{ {text} x[0] = 1; }}", "cuda")
    assert [record.name for record in source.records] == ["other"]
