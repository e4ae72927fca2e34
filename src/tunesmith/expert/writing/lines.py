"""Lines of C under construction: indentation, blocks, and preprocessor lines at the margin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Lines:
    def __init__(self, indent: int = 0) -> None:
        self.lines: list[str] = []
        self.indent = indent

    def add(self, *texts: str) -> None:
        for text in texts:
            for line in text.split("\n"):
                directive = line.startswith("#")
                self.lines.append(line if directive or not line else "    " * self.indent + line)

    def blank(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head {` ... `}`; several lines of preprocessor may be part of the head."""
        self.add(f"{head} {{" if head else "{")
        self.indent += 1
        yield
        self.indent -= 1
        self.add("}")

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
