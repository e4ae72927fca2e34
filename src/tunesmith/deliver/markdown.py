"""Markdown around text that is not ours."""

from __future__ import annotations

from tunesmith.core.untrusted import plain

_HARMLESS = {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {c: f"&#{ord(c)};" for c in "|`[]*_~$\\"}


def cell(text: str) -> str:
    """What compilers, kernels and drivers say is not ours: one line, nothing Markdown or HTML acts upon."""
    return "".join(_HARMLESS.get(letter, letter) for letter in " ".join(plain(text).split())[:300])
