"""What a template names for itself: `[defines]`, for other expressions; entries that share lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from tunesmith.csource.lex import without_comments
from tunesmith.problem.problem import Argument, Launch
from tunesmith.problem.template import PLACEHOLDER
from tunesmith.problem.template_source import used_words
from tunesmith.problem.toml_table import Table, show, texts
from tunesmith.space.expr import Expr, parse
from tunesmith.space.space import Constraint

T = TypeVar("T")
ALL = "all"  # of [require], [prefer], [answers] and [defines]: several to a line
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?![\w.])")


@dataclass(frozen=True)
class InFull:
    """Expressions with what [defines] says in place of its names."""

    macros: Mapping[str, str]

    @staticmethod
    def of(macros: Sequence[tuple[str, Expr]]) -> InFull:
        return InFull({name: f"({expr.text})" for name, expr in macros})

    def __call__(self, value: T) -> T:
        """The same, an expression or what has some, with each of them in full."""
        found: T = self._filled(value)
        return found

    def _filled(self, value: Any) -> Any:
        match value:
            case Expr() if not value.names.isdisjoint(self.macros):
                return parse(_NAME.sub(lambda name: self.macros.get(name[0], name[0]), value.text))
            case tuple():
                return tuple(map(self._filled, value))
            case Constraint() | Argument() | Launch():
                parts = {field.name: self._filled(getattr(value, field.name)) for field in fields(value)}
                return replace(value, **parts)
        return value


def built_with(root: Table, text: str, headers: Sequence[tuple[str, str]]) -> frozenset[str]:
    """Names that a build depends on. A define that only the launch names is no macro: it would bake the sizes
    of its expression into builds that have no use for them."""
    launches = root.data.get("launch")
    entries = [said for _, said in texts(launches)] + [said for _, said in texts(root.data.get("build"))]
    code = "\n".join([text, *(header for _, header in headers)])
    return used_words(without_comments(code)).union(*map(PLACEHOLDER.findall, entries))


def take_apart(root: Table, title: str, switches: Collection[str]) -> None:
    """Entries that share a line, `all = [{ A = "1", B = "2" }]`, as entries of the table.

    By the name of one of `switches`, a parameter, they are 0 without it.
    """
    table = root.data.get(title)
    if not isinstance(table, dict):
        return
    entries: list[tuple[str, object]] = []
    for key, value in table.items():
        is_switch = key in switches and not isinstance(value, str | int)
        if key != ALL and not is_switch:
            entries.append((key, value))
            continue
        lines = value if isinstance(value, list) else [value]
        if not all(isinstance(line, dict) for line in lines):
            rule = f"[{title}]: {key} must be a list of tables, got {show(value)}"
            root.faults.add((title, key), rule, f'write e.g. {key} = [{{ A = "d", B = "2 * d" }}]')
            continue
        for name, text in (pair for line in lines for pair in line.items()):
            on = is_switch and isinstance(text, str | int)
            entries.append((name, f"({text}) if {key} else 0" if on else text))
    if twice := [name for name, count in Counter(name for name, _ in entries).items() if count > 1]:
        root.faults.add((title, twice[0]), f"[{title}]: {twice[0]} is there twice", "say it once")
    root.data[title] = dict(entries)
