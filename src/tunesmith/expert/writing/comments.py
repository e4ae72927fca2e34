"""The source's own comments in a template: with what became of their statement, each of them once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tunesmith.csource.nodes import Comment, Declare, Stmt
from tunesmith.csource.walk import map_blocks, statements_in
from tunesmith.expert.model.kernel import Each, KernelModel


class SourceComments:
    """By line: a statement may become another, or a step of the model, and has its line still.

    A loop that is printed in several forms has its comments in the first of them.
    """

    def __init__(self, kernel: KernelModel) -> None:
        self._by_line: dict[int, list[Comment]] = {}
        self._declared: dict[str, int] = {}
        for function in (*kernel.source.functions, kernel.function):
            for stmt in statements_in(function.body):
                if stmt.comments and function is not kernel.function:
                    self._by_line.setdefault(stmt.line, []).extend(stmt.comments)
                if isinstance(stmt, Declare) and function is kernel.function:
                    self._declared.setdefault(stmt.name, stmt.line)

    def at(self, line: int) -> tuple[Comment, ...]:
        return tuple(self._by_line.pop(line, ()))

    def of(self, variable: str) -> tuple[Comment, ...]:
        """Those of the kernel's variable where it is declared."""
        return self.at(self._declared.get(variable, 0))

    def of_loop(self, each: Each) -> tuple[Comment, ...]:
        totals = [said for total in each.totals for said in self.of(total.name)]
        return tuple(sorted((*totals, *self.at(each.line)), key=lambda said: said.line))

    def statements(self, stmts: Iterable[Stmt]) -> tuple[Stmt, ...]:
        """With the comments of their lines, and those that are ours."""
        return tuple(map_blocks(self._told(stmt), self.statements) for stmt in stmts)

    def _told(self, stmt: Stmt) -> Stmt:
        ours = tuple(said for said in stmt.comments if not said.line)
        return replace(stmt, comments=(*self.at(stmt.line), *ours))
