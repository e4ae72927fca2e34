"""Text that is not ours: what kernels, compilers, drivers and files say, made harmless before it is shown."""

from __future__ import annotations

import re

# A terminal's own language: colours and cursor moves, window titles and links, two-character commands.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]P^_X][^\x07\x1b]{0,999}(?:\x07|\x1b\\)|[ -/]*[0-~])")
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# What acts without being seen: control characters, marks that turn the direction of writing, half characters.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def plain(text: str) -> str:
    """The text as it may go to a terminal: letters, spaces, tabs and newlines."""
    text = _LINE_ENDS.sub("\n", _ESCAPES.sub("", text))
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)


def cut(text: str, most: int) -> str:
    """At most so many characters; where any are left out, a mark says so."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def escaped_json(text: str) -> str:
    """The same JSON with what a terminal acts upon spelt out; it can only stand inside strings."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
