"""Foreign text is shown, never obeyed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.base.text import escaped_json, strip_controls, truncate_text

UNKNOWN = "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("kernel.cl:3:5: error\n\tint x;", "kernel.cl:3:5: error\n\tint x;"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never closed", "0;never closed"),
        ("\x1bc reset \x1b(B", " reset "),
        ("half\x1b", f"half{UNKNOWN}"),
        ("\x9b31m", f"{UNKNOWN}31m"),
        ("over\rwritten\r\nline", "over\nwritten\nline"),
        ("one\x0btwo\x85three\u2028four", "one\ntwo\nthree\nfour"),
        ("bell\x07 back\x08 nul\0", f"bell{UNKNOWN} back{UNKNOWN} nul{UNKNOWN}"),
        ("right\u202eto left", f"right{UNKNOWN}to left"),
        ("a name of bytes \udcff", f"a name of bytes {UNKNOWN}"),
        ("µ × 你好 [bold]", "µ × 你好 [bold]"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    assert strip_controls(text) == shown


@given(st.text(st.characters(codec=None)))
def test_nothing_that_acts_is_left(text: str) -> None:
    left = strip_controls(text)
    assert all(c in "\n\t" or c.isprintable() or c.isspace() or ord(c) > 0x9F for c in left)
    assert "\x1b" not in left
    assert strip_controls(left) == left
    left.encode()


@pytest.mark.parametrize(("text", "shown"), [("abcd", "abcd"), ("abcde", "abc…"), ("", "")])
def test_what_is_cut_says_so(text: str, shown: str) -> None:
    assert truncate_text(text, 4) == shown


@given(st.text())
def test_json_means_the_same(text: str) -> None:
    escaped = escaped_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(escaped) == text
    assert "\x9b" not in escaped
    assert "\u202e" not in escaped
