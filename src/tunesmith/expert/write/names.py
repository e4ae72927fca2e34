"""Names of a printed kernel as somebody would write them: a number behind one only where it is needed.

Readers and writers of the model give every variable a name of its own. In the text a name can serve again in
another block, one that the source had and the template has not is free, and equal constants are one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.substitution import rename_variables, substitute
from tunesmith.source.types import is_integer, is_of_type

_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBERED = re.compile(r"(.*[A-Za-z_])_(\d+)")
_PLAIN = (c.Number, c.Name, c.Unary, c.Binary, c.Ternary, c.Cast)
_Body = tuple[c.Stmt, ...]


def with_plain_names(
    body: Sequence[c.Stmt], parameters: Iterable[str], file_words: Iterable[str], kept: Iterable[str]
) -> _Body:
    """`file_words` mean something outside of the function, `kept` are names that macros use."""
    return _PlainNamer(body, frozenset(file_words), frozenset(kept)).block(tuple(body), frozenset(parameters))


class _PlainNamer:
    def __init__(self, body: Sequence[c.Stmt], file_words: frozenset[str], kept: frozenset[str]) -> None:
        self._file_words, self._kept = file_words, kept
        declares = [node for node in walk.nodes_in(body) if isinstance(node, c.Declare)]
        self._changed = {
            *_iterate_changed_names(body),
            *(d.name for d in declares if not d.type.const or d.type.pointers),
        }

    def block(self, stmts: _Body, visible: frozenset[str]) -> _Body:
        stmts = self._without_twins(stmts)
        (stmts,), renamed = self._rename_scope([stmts], _block_declarations(stmts), visible)
        done = list(stmts)
        for at, stmt in enumerate(stmts):
            if isinstance(stmt, c.Alternative) and not stmt.inside:
                shared = visible | (renamed & words_in([*done[:at], *stmts[at + 1 :]]))
                done[at] = replace(
                    stmt,
                    then=self._branch(stmt.then, shared),
                    otherwise=self._branch(stmt.otherwise, shared),
                )
            else:
                done[at] = self._inner(stmt, visible | renamed)
        return tuple(done)

    def _branch(self, stmts: _Body, shared: frozenset[str]) -> _Body:
        """Of an `#if`: what it declares for itself alone may be called as in the other branch."""
        stmts = self._without_twins(stmts)
        alone = [name for name in _block_declarations(stmts) if name not in shared]
        (stmts,), renamed = self._rename_scope([stmts], alone, shared)
        return tuple(self._inner(stmt, shared | renamed) for stmt in stmts)

    def _rename_scope(
        self, parts: list[_Body], declared: Sequence[str], visible: frozenset[str]
    ) -> tuple[list[_Body], frozenset[str]]:
        """The parts of one scope, with plain names for what it declares where these are free in it."""
        names = list(dict.fromkeys(declared))
        for at, name in enumerate(names):
            found = _NUMBERED.fullmatch(name)
            if found is None or name in visible or name in self._kept:
                continue
            used = visible | self._file_words | words_in([stmt for part in parts for stmt in part])
            shorter = [found[1], *(f"{found[1]}_{number}" for number in range(2, int(found[2])))]
            plain = next((word for word in shorter if word not in used), None)
            if plain is None or name in _unrenamable_words(parts):
                continue
            parts = [rename_variables(part, {name: plain}) for part in parts]
            names[at] = plain
        return parts, frozenset(names)

    def _inner(self, stmt: c.Stmt, visible: frozenset[str]) -> c.Stmt:
        match stmt:
            case c.For():
                heads = [part.name for part in stmt.init if isinstance(part, c.Declare)]
                ((loop,),), renamed = self._rename_scope([(stmt,)], heads, visible)
                assert isinstance(loop, c.For), "a loop stays one"
                return replace(loop, body=self.block(loop.body, visible | renamed))
            case c.If():
                then, otherwise = self.block(stmt.then, visible), self.block(stmt.otherwise, visible)
                return replace(stmt, then=then, otherwise=otherwise)
            case c.While() | c.Scope():
                return replace(stmt, body=self.block(stmt.body, visible))
            case c.Alternative(inside=()):
                then, otherwise = (
                    tuple(self._inner(one, visible) for one in branch)
                    for branch in (stmt.then, stmt.otherwise)
                )
                return replace(stmt, then=then, otherwise=otherwise)
            case c.Alternative():
                return self._two_heads(stmt, visible)
        return stmt

    def _two_heads(self, stmt: c.Alternative, visible: frozenset[str]) -> c.Stmt:
        """Both branches end with a loop or a block, and what follows is inside of either."""
        ends = [branch[-1] for branch in (stmt.then, stmt.otherwise) if branch]
        if len(ends) < 2 or not all(isinstance(end, c.For | c.Scope) for end in ends):
            return stmt
        heads: list[str] = []
        for end in ends:
            heads += [p.name for p in end.init if isinstance(p, c.Declare)] if isinstance(end, c.For) else []
            heads += _block_declarations(end.body) if isinstance(end, c.For | c.Scope) else []
        within = self._without_twins(stmt.inside)
        whole = [(ends[0],), (ends[1],), within]
        ((first,), (second,), inside), renamed = self._rename_scope(
            whole, [*heads, *_block_declarations(within)], visible
        )
        now = visible | renamed
        return replace(
            stmt,
            then=(*(self._inner(one, visible) for one in stmt.then[:-1]), first),
            otherwise=(*(self._inner(one, visible) for one in stmt.otherwise[:-1]), second),
            inside=tuple(self._inner(one, now) for one in inside),
        )

    def _without_twins(self, stmts: _Body) -> _Body:
        """Constants of one block that have the same value are declared once."""
        known: dict[tuple[c.Type, c.Expr], str] = {}
        done, left = list[c.Stmt](), stmts
        ahead: tuple[c.Comment, ...] = ()
        while left:
            stmt, left = left[0], left[1:]
            if self._is_constant(stmt):
                assert isinstance(stmt, c.Declare), "constants are declared"
                assert stmt.init is not None, "with a value"
                twin = known.setdefault((stmt.type, stmt.init), stmt.name)
                if twin != stmt.name and stmt.name not in _unrenamable_words([left]):
                    ahead = (*ahead, *stmt.comments)
                    left = rename_variables(left, {stmt.name: twin})
                    continue
            if ahead:
                (stmt,) = walk.prepend_comments([stmt], ahead)
                ahead = ()
            done.append(stmt)
        return tuple(done)

    def _is_constant(self, stmt: c.Stmt) -> bool:
        if not isinstance(stmt, c.Declare) or stmt.init is None or stmt.is_array:
            return False
        plain = stmt.storage == "" and all(isinstance(node, _PLAIN) for node in walk.nodes_in(stmt.init))
        return (
            plain
            and not self._changed & {stmt.name, *walk.names_in(stmt.init)}
            and stmt.name not in self._kept
        )


def _block_declarations(stmts: Iterable[c.Stmt]) -> list[str]:
    """In this block itself: the branches of an `#if` are part of it, what is in loops is not."""
    found: list[str] = []
    for stmt in stmts:
        if isinstance(stmt, c.Declare):
            found.append(stmt.name)
        elif isinstance(stmt, c.Alternative):
            last = -1 if stmt.inside else None
            found += _block_declarations((*stmt.then[:last], *stmt.otherwise[:last]))
    return found


def words_in(stmts: Sequence[c.Stmt]) -> set[str]:
    return {*walk.names_in(stmts), *walk.declared_in(stmts), *_unrenamable_words([tuple(stmts)])}


def _unrenamable_words(parts: Iterable[_Body]) -> set[str]:
    """Words that stand in the text in another form than names: calls, types, what is kept as it is."""
    found: set[str] = set()
    for node in (node for part in parts for node in walk.nodes_in(part)):
        match node:
            case c.Opaque(names=names) | c.Verbatim(names=names):
                found |= names
                found.update(_WORD.findall(node.text))
            case c.Call(function=function, template_args=given):
                found.update(_WORD.findall(" ".join((function, *given))))
            case c.For(unroll=str(macro)):
                found.add(macro)
            case c.MacroDefinition():
                found.update((node.name, *node.parameters))
        type_ = getattr(node, "type", None)
        if isinstance(type_, c.Type):
            found.update(_WORD.findall(type_.base))
    return found


def _iterate_changed_names(body: Sequence[c.Stmt]) -> Iterable[str]:
    for node in walk.nodes_in(body):
        target = None
        if isinstance(node, c.Assign):
            target = node.target
        elif isinstance(node, c.Unary) and ("++" in node.op or "--" in node.op or node.op == "&"):
            target = node.operand
        name = walk.root_variable(target)[0] if target is not None else None
        if name is not None:
            yield name


# -- What the source has a name for is called so in the template, where the model wrote it out.
#
#     const int half = rot_dim / 2;    the same for every thread: declared once, at the top
#     const int row = i / d;           of a loop's index: declared behind the index that it is made of
#
# A name comes back where what it stands for is said more than once, and where it means nothing else.


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
        changed = walk.assigned_in(function.body)
        types = {p.name: p.type for p in function.parameters if is_integer(p.type) and p.name not in changed}
        known: dict[str, c.Expr] = {}
        uniform: list[Named] = []
        shares: dict[tuple[str, c.Expr], str] = {}
        for node in walk.nodes_in(function.body):
            if not isinstance(node, c.Declare) or node.name in changed or not _is_scalar(node):
                continue
            assert node.init is not None, "it is set where it is declared"
            expr = substitute(node.init, known)
            if language == "opencl" and any(_divides_by_a_name(part) for part in walk.nodes_in(expr)):
                continue
            if _is_arithmetic(expr) and walk.names_in(expr) <= types.keys():
                if is_of_type(expr, node.type, types):
                    known[node.name] = expr
                    uniform += [Named(node.name, node.type, expr, node.line)] if walk.names_in(expr) else []
            elif (share := _operator_and_divisor(expr)) is not None and walk.names_in(
                share[1]
            ) <= types.keys():
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
            if one.name not in taken and _count_expression((*declared, *body), one.expr) > 1:
                declare = c.Declare(replace(one.type, const=True), one.name, one.expr, line=one.line)
                body = _replace_with_name(body, one.expr, one.name)
                declared = [declare, *_replace_with_name(declared, one.expr, one.name)]
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
                rest, visible = _replace_with_name(rest, share, name), visible | {name}
        return tuple([walk.map_blocks(stmt, lambda body: self.block(body, visible)) for stmt in done])

    def _said_again(self, index: c.Declare, rest: _Body, visible: frozenset[str]) -> dict[c.Expr, str]:
        found: dict[c.Expr, str] = {}
        for node in walk.expressions_in(rest):
            op, left, by = self._split_division(node)
            name = self.names.get((op, by), "")
            if left != c.Name(index.name) or not name or name in visible or name in found.values():
                continue
            whole = c.Binary(op, left, by)
            if (
                is_of_type(whole, index.type, {**self.types, index.name: index.type})
                and _count_expression(rest, node) > 1
            ):
                found[node] = name
        return found

    def _split_division(self, node: c.Expr) -> tuple[str, c.Expr, c.Expr]:
        match node:
            case c.Binary(left=left) if (share := _operator_and_divisor(node)) is not None:
                return share[0], left, share[1]
            case c.Call(function=function, args=(left, by, *_)) if function in self.division:
                return self.division[function], left, by
        return "", node, node


def _operator_and_divisor(expr: c.Expr) -> tuple[str, c.Expr] | None:
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
        for node in walk.nodes_in(expr)
    )


def _count_expression(body: _Body, expr: c.Expr) -> int:
    return sum(node == expr for node in walk.expressions_in(body))


def _replace_with_name(body: Iterable[c.Stmt], expr: c.Expr, name: str) -> _Body:
    return walk.map_nodes(body, lambda node: c.Name(name) if node == expr else node)
