"""A comment of a kernel's source, apart from the tree: whoever only takes a text into words needs no tree."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Comment:
    """Words about a statement: lines of plain text, without the signs that make a comment of them.

    Somebody else may have written them, so a line that would be more than a comment is none: one that goes on
    with the next (`??/` is a backslash to old compilers), or that opens the declaration of a template.
    """

    text: str
    line: int = 0  # in the user's file; 0: ours
    behind: bool = False  # at the end of the statement's first line, not on lines before it

    def __post_init__(self) -> None:
        for words in self.text.split("\n"):
            if words.endswith(("\\", "??/")) or words.startswith("/") or not words.isprintable():
                raise ValueError(f"no line of a comment: {words!r}")

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")
