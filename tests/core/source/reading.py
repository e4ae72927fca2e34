"""Short ways to a tree for tests: one function, its statements, one expression."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Literal

from tunesmith.source import walk
from tunesmith.source.reader.parse import read_source_tree
from tunesmith.source.tree import Expr, Function, Return, Source, Stmt, Unreadable

Language = Literal["cuda", "hip", "opencl"]


@cache
def source_of(text: str, language: Language = "cuda") -> Source:
    source = read_source_tree(text, language)
    if source.unread:
        raise Unreadable("; ".join(source.unread))
    return source


def statements_of(body: str, language: Language = "cuda", before: str = "") -> tuple[Stmt, ...]:
    head = "void f()" if language == "opencl" else "__device__ void f()"
    return source_of(f"{before}\n{head}\n{{\n{body}\n}}\n", language).functions[-1].body


def expression_of(text: str, language: Language = "cuda", before: str = "") -> Expr:
    stmts = statements_of(f"return {text};", language, before)
    assert len(stmts) == 1
    assert isinstance(stmts[0], Return)
    assert stmts[0].value is not None
    return stmts[0].value


def helpers_needed(function: Function, source: Source) -> tuple[Function, ...]:
    """The file's functions that a function still calls, those they call before them."""
    done: dict[int, Function] = {}
    pending: list[tuple[Function, bool]] = [(f, False) for f in reversed(_called(function, source))]
    seen: set[int] = set()
    while pending:
        current, ready = pending.pop()
        if ready:
            done[id(current)] = current
        elif id(current) not in seen:
            seen.add(id(current))
            pending.append((current, True))
            pending += [(f, False) for f in reversed(_called(current, source)) if id(f) not in seen]
    return tuple(helper for helper in done.values() if helper.text)


def _called(function: Function, source: Source) -> list[Function]:
    names = {call.function for call in walk.calls_in(function.body)}
    names |= _words_in_text(walk.nodes_in(function.body))
    for call in walk.calls_in(function.body):
        names |= {word for text in call.template_args for word in re.findall(r"\w+", text)}
    return [f for f in source.functions if f.name in names and not f.is_kernel]


def _words_in_text(nodes: Iterable[object]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        found |= getattr(node, "names", frozenset())
    return found
