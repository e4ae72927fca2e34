"""Short ways to a tree for tests: one function, its statements, one expression."""

from __future__ import annotations

from typing import Literal

from tunesmith.csource.nodes import Evaluate, Expr, Function, Return, Source, Stmt
from tunesmith.csource.parse import read_source_tree

Language = Literal["cuda", "hip", "opencl"]


def source_of(text: str, language: Language = "cuda") -> Source:
    source = read_source_tree(text, language)
    assert source.unread == ()
    return source


def function_of(text: str, language: Language = "cuda") -> Function:
    return source_of(text, language).functions[-1]


def statements_of(body: str, language: Language = "cuda", before: str = "") -> tuple[Stmt, ...]:
    head = "void f()" if language == "opencl" else "__device__ void f()"
    return function_of(f"{before}\n{head}\n{{\n{body}\n}}\n", language).body


def expression_of(text: str, language: Language = "cuda", before: str = "") -> Expr:
    stmts = statements_of(f"return {text};", language, before)
    assert len(stmts) == 1
    assert isinstance(stmts[0], Return)
    assert stmts[0].value is not None
    return stmts[0].value


def effect_of(text: str, language: Language = "cuda", before: str = "") -> Expr:
    stmts = statements_of(text, language, before)
    assert len(stmts) == 1
    assert isinstance(stmts[0], Evaluate)
    return stmts[0].expr
