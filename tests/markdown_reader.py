"""Markdown as its reader takes it: what is text, and what acts."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.token import Token

ACTING = (
    "html_inline",
    "html_block",
    "em_open",
    "strong_open",
    "s_open",
    "code_inline",
    "code_block",
    "fence",
)
ACTING += ("link_open", "image", "heading_open", "blockquote_open", "ordered_list_open", "table_open", "hr")


def tokens(markdown: str) -> list[Token]:
    """Of all lines, what is inside them included."""
    found = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown)
    return [t for token in found for t in (token, *(token.children or ()))]


def acting(markdown: str) -> list[tuple[str, str]]:
    """All that is more than text and lists of it, and HTML as it is written."""
    return [(t.type, t.content if "html" in t.type else "") for t in tokens(markdown) if t.type in ACTING]


def read(markdown: str) -> str:
    """What a reader sees of it, without fences and pictures, on one line."""
    return "".join(t.content for t in tokens(markdown) if t.type == "text")
