"""C text in colours: each piece is what it is called, and together they are the text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunesmith.deliver.page_texts import coloured_lines

TEXT = """#define N 4 // how many
__global__ void f(float* x) {
  /* two
     lines */ x[0] = 1.5f + 'a';  const char* s = "int 3";
}
"""


def test_every_kind_is_told() -> None:
    lines = coloured_lines(TEXT)
    assert len(lines) == 5
    assert lines[0] == [("directive", "#define N 4 "), ("comment", "// how many")]
    assert ("keyword", "__global__") in lines[1]
    assert lines[2][-1] == ("comment", "/* two")
    assert lines[3][0] == ("comment", "     lines */")
    assert ("number", "1.5f") in lines[3]
    assert ("string", "'a'") in lines[3]
    assert ("string", '"int 3"') in lines[3]
    assert ("keyword", "const") in lines[3]


@given(st.one_of(st.text(max_size=80), st.text(alphabet="#/*\"'\\\n a1.", max_size=60)))
def test_nothing_is_left_out(text: str) -> None:
    lines = ["".join(piece for _, piece in line) for line in coloured_lines(text)]
    assert "\n".join(lines) == text.removesuffix("\n")
