"""The source's own comments in a template: with what became of their statement, each of them once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tunesmith.csource.nodes import Alternative, Comment, Source, Stmt
from tunesmith.csource.walk import map_blocks, statements_in


def at_line(stmts: Iterable[Stmt], line: int) -> tuple[Stmt, ...]:
    """Made from what stood there: the first of them has its comments."""
    found = tuple(stmts)
    return (replace(found[0], line=line), *found[1:]) if found else ()


class SourceComments:
    """By line: a statement may become another, or a step of the model, and has its line still.

    A loop that is printed in several forms has its comments in the first of them.
    """

    def __init__(self, source: Source) -> None:
        self._by_line: dict[int, list[Comment]] = {}
        for stmt in (stmt for function in source.functions for stmt in statements_in(function.body)):
            if stmt.comments:
                self._by_line.setdefault(stmt.line, []).extend(stmt.comments)

    def statements(self, stmts: Iterable[Stmt]) -> tuple[Stmt, ...]:
        """With the comments of their lines, and those that are ours."""
        return tuple(map_blocks(self._told(stmt), self.statements) for stmt in stmts)

    def _told(self, stmt: Stmt) -> Stmt:
        ours = [said for said in stmt.comments if not said.line]
        theirs = self._by_line.pop(stmt.line, [])
        if isinstance(stmt, Alternative):  # what closes the line of an #if is about the choice
            theirs = [replace(said, behind=False) for said in theirs]
        return replace(stmt, comments=(*ours, *theirs))
