"""Markdown around text that is not ours."""

from __future__ import annotations

from tunesmith.core.untrusted import cut, plain

_HARMLESS = {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {c: f"&#{ord(c)};" for c in "|`[]*_~$\\"}


_LONGEST = 4000  # characters of what is told in full


def cell(text: str, most: int = 300) -> str:
    """What compilers, kernels and drivers say is not ours: one line, nothing Markdown or HTML acts upon."""
    line = " ".join(plain(text).split())
    return "".join(_HARMLESS.get(letter, letter) for letter in cut(line, most))


def sentence(text: str) -> str:
    """The same for what somebody says in words, as good as whole."""
    said = cell(text, _LONGEST)
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."
