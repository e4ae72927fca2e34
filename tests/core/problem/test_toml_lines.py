import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.problem.toml_table import KeyLines

TEXT = '''\
# a comment with [a.header] and a = 1
name = "x"

[kernel]
source = "a = 1 # not a comment"
"quoted key" = 1
deep.er = { inner = 1, "more" = [1, 2] }

[[argument]]
name = "out"
shape = [
    "tokens",   # [[argument]]
    "d",
]
[argument.extra]
note = """
[[argument]]
name = "inside a text"
"""
after = 1
[[argument]]
name = 'in'
shape = ["tokens", ["d", 2],
  { a = 1, b = 2 }, 'x, y']
[a . b]
c = 1
[[argument.part]]
x = 1
[[argument.part]]
x = 2
'''


LINES = {
    "name": 2, "kernel": 4, "kernel.source": 5, "kernel.quoted key": 6, "kernel.deep": 7, "kernel.deep.er": 7,
    "kernel.deep.er.inner": 7, "kernel.missing": 4, "argument": 9, "argument.0": 9, "argument.0.name": 10,
    "argument.0.shape": 11, "argument.0.shape.0": 12, "argument.0.shape.1": 13, "argument.0.shape.2": 11,
    "argument.0.extra": 15, "argument.0.extra.note": 16, "argument.0.extra.after": 20, "argument.1": 21,
    "argument.1.name": 22, "argument.1.shape.1.1": 23, "argument.1.shape.2.b": 24, "argument.1.shape.3": 24,
    "argument.1.shape.4": 23, "a.b.c": 26, "a": 25, "argument.1.part.0.x": 28, "argument.1.part.1.x": 30,
    "argument.2": 9, "nothing": None, "": None,
}  # fmt: skip


@pytest.mark.parametrize(("path", "line"), LINES.items())
def test_each_key_has_its_line(path: str, line: int | None) -> None:
    keys = [int(key) if key.isdigit() else key for key in path.split(".") if key]
    assert KeyLines(TEXT).of(*keys) == line


def test_the_text_of_these_tests_is_toml() -> None:
    assert len(tomllib.loads(TEXT)["argument"]) == 2


def test_windows_line_ends_count_once() -> None:
    assert KeyLines("a = 1\r\n\r\n[b]\r\nc = 2\r\n").of("b", "c") == 4


def test_escapes_do_not_end_a_text() -> None:
    text = 'a = "x\\" # [b]"\nc = """one " two "" \\""" three"""""\nd = \'\\\'\n"e\\"f" = 1'
    assert list(tomllib.loads(text)) == ["a", "c", "d", 'e"f']
    lines = KeyLines(text)
    assert [lines.of(key) for key in ("a", "c", "d", 'e"f')] == [1, 2, 3, 4]


@pytest.mark.parametrize("text", ["a = ]\nb = 1", 'a = "open\nb = 1', "= 1\nb = 1", "[\nb = 1", "a.\nb = 1"])
def test_a_broken_line_does_not_hide_the_next(text: str) -> None:
    assert KeyLines(text).of("b") == 2


def test_deep_nesting_is_no_trouble() -> None:
    assert KeyLines("a = " + "[" * 100_000 + "]" * 100_000 + "\nb = 1").of("b") == 2


@given(st.text(alphabet="ab.=[]{}\"'#\\, \n1", max_size=60))
def test_any_text_is_scanned(text: str) -> None:
    lines = KeyLines(text)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    last = text.count("\n") + 1
    assert all(1 <= (lines.of(key) or 0) <= last for key in data)
