"""Markdown: tables, and text around which is not ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tunesmith.core.untrusted import cut, plain

_HARMLESS = {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {c: f"&#{ord(c)};" for c in "|`[]*_~$\\"}
_LONGEST = 4000  # characters of what is told in full


def table(head: str, rows: Iterable[Sequence[object]]) -> list[str]:
    """`head` names the columns, between bars; a name that ends in a colon is that of a column of numbers."""
    names = [name.strip() for name in head.split("|")]
    rules = ("---:" if name.endswith(":") else "---" for name in names)
    lines = [f"| {' | '.join(name.rstrip(':') for name in names)} |", f"|{'|'.join(rules)}|"]
    return [*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)]


def ratio_text(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}×"


def cell(text: str, most: int = 300) -> str:
    """What compilers, kernels and drivers say is not ours: one line, nothing Markdown or HTML acts upon."""
    line = " ".join(plain(text).split())
    return "".join(_HARMLESS.get(letter, letter) for letter in cut(line, most))


def sentence(text: str) -> str:
    """The same for what somebody says in words, as good as whole."""
    said = cell(text, _LONGEST)
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."
