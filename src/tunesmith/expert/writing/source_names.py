"""What the source has a name for is called so in the template, where the model wrote it out.

    const int half = rot_dim / 2;    the same for every thread: declared once, at the top
    const int row = i / d;           of a loop's index: declared behind the index that it is made of

A name comes back where what it stands for is said more than once, and where it means nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tunesmith.csource import nodes as c
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import is_integer, is_of_type
from tunesmith.csource.walk import assigned_in, expressions_in, map_blocks, map_nodes, names_in, nodes_in
from tunesmith.expert.writing.plain_names import words_in

_Body = tuple[c.Stmt, ...]
_ARITHMETIC = ("+", "-", "*", "/", "%", "<<", ">>")


@dataclass(frozen=True)
class Named:
    """A variable of the source that is set once: over parameters alone, `expr` has no other variable."""

    name: str
    type: c.Type
    expr: c.Expr
    line: int


@dataclass(frozen=True)
class SourceNames:
    types: Mapping[str, c.Type]  # of the parameters that are integers, and never changed
    uniform: tuple[Named, ...]  # in the order of the source
    shares: tuple[tuple[str, c.Expr, str], ...]  # quotients and remainders: operator, uniform divisor, name

    @staticmethod
    def of(function: c.Function, language: str = "cuda") -> SourceNames:
        """On a CPU a division stays where it is: nobody may divide by zero who did not."""
        changed = assigned_in(function.body)
        types = {p.name: p.type for p in function.parameters if is_integer(p.type) and p.name not in changed}
        known: dict[str, c.Expr] = {}
        uniform: list[Named] = []
        shares: dict[tuple[str, c.Expr], str] = {}
        for node in nodes_in(function.body):
            if not isinstance(node, c.Declare) or node.name in changed or not _is_scalar(node):
                continue
            assert node.init is not None, "it is set where it is declared"
            expr = substitute(node.init, known)
            if language == "opencl" and any(_divides_by_a_name(part) for part in nodes_in(expr)):
                continue
            if _is_arithmetic(expr) and names_in(expr) <= types.keys():
                if is_of_type(expr, node.type, types):
                    known[node.name] = expr
                    uniform += [Named(node.name, node.type, expr, node.line)] if names_in(expr) else []
            elif (share := _share(expr)) is not None and names_in(share[1]) <= types.keys():
                shares.setdefault(share, node.name)
        several = tuple(one for one in uniform if isinstance(one.expr, c.Binary))
        return SourceNames(types, several, tuple((op, by, name) for (op, by), name in shares.items()))

    def in_body(self, body: _Body, taken: frozenset[str], division: Mapping[str, str]) -> _Body:
        """`taken` are words that mean something already; `division`: functions that are `/` or `%`."""
        free = {(op, by): name for op, by, name in self.shares if name not in taken | words_in(body)}
        body = _Shares(free, self.types, division).block(body, frozenset()) if free else body
        taken |= words_in(body)
        declared: list[c.Stmt] = []
        for one in reversed(self.uniform):  # those made of others first
            if one.name not in taken and _count((*declared, *body), one.expr) > 1:
                declare = c.Declare(replace(one.type, const=True), one.name, one.expr, line=one.line)
                body = _called(body, one.expr, one.name)
                declared = [declare, *_called(declared, one.expr, one.name)]
        return (*declared, *body)


@dataclass(frozen=True)
class _Shares:
    """Quotients and remainders of an index get their names behind the declaration of the index."""

    names: Mapping[tuple[str, c.Expr], str]
    types: Mapping[str, c.Type]
    division: Mapping[str, str]

    def block(self, stmts: _Body, visible: frozenset[str]) -> _Body:
        rest, done = stmts, list[c.Stmt]()
        while rest:
            stmt, rest = rest[0], rest[1:]
            done.append(stmt)
            if not isinstance(stmt, c.Declare) or not stmt.type.const or not _is_scalar(stmt):
                continue
            for share, name in self._said_again(stmt, rest, visible).items():
                done.append(c.Declare(stmt.type, name, share))
                rest, visible = _called(rest, share, name), visible | {name}
        return tuple([map_blocks(stmt, lambda body: self.block(body, visible)) for stmt in done])

    def _said_again(self, index: c.Declare, rest: _Body, visible: frozenset[str]) -> dict[c.Expr, str]:
        found: dict[c.Expr, str] = {}
        for node in expressions_in(rest):
            op, left, by = self._share(node)
            name = self.names.get((op, by), "")
            if left != c.Name(index.name) or not name or name in visible or name in found.values():
                continue
            whole = c.Binary(op, left, by)
            if (
                is_of_type(whole, index.type, {**self.types, index.name: index.type})
                and _count(rest, node) > 1
            ):
                found[node] = name
        return found

    def _share(self, node: c.Expr) -> tuple[str, c.Expr, c.Expr]:
        match node:
            case c.Binary(left=left) if (share := _share(node)) is not None:
                return share[0], left, share[1]
            case c.Call(function=function, args=(left, by, *_)) if function in self.division:
                return self.division[function], left, by
        return "", node, node


def _share(expr: c.Expr) -> tuple[str, c.Expr] | None:
    """Operator and divisor."""
    match expr:
        case c.Binary(op="/" | "%" as op, right=by):
            return op, by
    return None


def _divides_by_a_name(node: c.Expr | c.Stmt) -> bool:
    return isinstance(node, c.Binary) and node.op in ("/", "%") and not isinstance(node.right, c.Number)


def _is_scalar(declare: c.Declare) -> bool:
    return is_integer(declare.type) and not declare.is_array and not declare.storage and bool(declare.init)


def _is_arithmetic(expr: c.Expr) -> bool:
    return all(
        isinstance(node, c.Number | c.Name | c.Cast)
        or (isinstance(node, c.Binary) and node.op in _ARITHMETIC)
        for node in nodes_in(expr)
    )


def _count(body: _Body, expr: c.Expr) -> int:
    return sum(node == expr for node in expressions_in(body))


def _called(body: Iterable[c.Stmt], expr: c.Expr, name: str) -> _Body:
    return map_nodes(body, lambda node: c.Name(name) if node == expr else node)
