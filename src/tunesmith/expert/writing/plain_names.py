"""Names of a printed kernel as somebody would write them: a number behind one only where it is needed.

Readers and writers of the model give every variable a name of its own. In the text a name can serve again in
another block, one that the source had and the template has not is free, and equal constants are one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource.substitution import rename
from tunesmith.csource.walk import commented, declared_in, names_in, nodes_in, root

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
        declares = [node for node in nodes_in(body) if isinstance(node, c.Declare)]
        self._changed = {*_changed(body), *(d.name for d in declares if not d.type.const or d.type.pointers)}

    def block(self, stmts: _Body, visible: frozenset[str]) -> _Body:
        stmts = self._without_twins(stmts)
        (stmts,), own = self._renamed([stmts], _declared(stmts), visible)
        done = list(stmts)
        for at, stmt in enumerate(stmts):
            if isinstance(stmt, c.Alternative) and not stmt.inside:
                shared = visible | (own & words_in([*done[:at], *stmts[at + 1 :]]))
                done[at] = replace(
                    stmt,
                    then=self._branch(stmt.then, shared),
                    otherwise=self._branch(stmt.otherwise, shared),
                )
            else:
                done[at] = self._inner(stmt, visible | own)
        return tuple(done)

    def _branch(self, stmts: _Body, shared: frozenset[str]) -> _Body:
        """Of an `#if`: what it declares for itself alone may be called as in the other branch."""
        stmts = self._without_twins(stmts)
        alone = [name for name in _declared(stmts) if name not in shared]
        (stmts,), own = self._renamed([stmts], alone, shared)
        return tuple(self._inner(stmt, shared | own) for stmt in stmts)

    def _renamed(
        self, parts: list[_Body], declared: Sequence[str], visible: frozenset[str]
    ) -> tuple[list[_Body], frozenset[str]]:
        """The parts of one scope, with plain names for what it declares where these are free in it."""
        own = list(dict.fromkeys(declared))
        for at, name in enumerate(own):
            found = _NUMBERED.fullmatch(name)
            if found is None or name in visible or name in self._kept:
                continue
            used = visible | self._file_words | words_in([stmt for part in parts for stmt in part])
            shorter = [found[1], *(f"{found[1]}_{number}" for number in range(2, int(found[2])))]
            plain = next((word for word in shorter if word not in used), None)
            if plain is None or name in _fixed(parts):
                continue
            parts = [rename(part, {name: plain}) for part in parts]
            own[at] = plain
        return parts, frozenset(own)

    def _inner(self, stmt: c.Stmt, visible: frozenset[str]) -> c.Stmt:
        match stmt:
            case c.For():
                heads = [part.name for part in stmt.init if isinstance(part, c.Declare)]
                ((loop,),), own = self._renamed([(stmt,)], heads, visible)
                assert isinstance(loop, c.For), "a loop stays one"
                return replace(loop, body=self.block(loop.body, visible | own))
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
            heads += _declared(end.body) if isinstance(end, c.For | c.Scope) else []
        within = self._without_twins(stmt.inside)
        whole = [(ends[0],), (ends[1],), within]
        ((first,), (second,), inside), own = self._renamed(whole, [*heads, *_declared(within)], visible)
        now = visible | own
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
                if twin != stmt.name and stmt.name not in _fixed([left]):
                    ahead = (*ahead, *stmt.comments)
                    left = rename(left, {stmt.name: twin})
                    continue
            if ahead:
                (stmt,) = commented([stmt], ahead)
                ahead = ()
            done.append(stmt)
        return tuple(done)

    def _is_constant(self, stmt: c.Stmt) -> bool:
        if not isinstance(stmt, c.Declare) or stmt.init is None or stmt.is_array:
            return False
        plain = stmt.storage == "" and all(isinstance(node, _PLAIN) for node in nodes_in(stmt.init))
        return plain and not self._changed & {stmt.name, *names_in(stmt.init)} and stmt.name not in self._kept


def _declared(stmts: Iterable[c.Stmt]) -> list[str]:
    """In this block itself: the branches of an `#if` are part of it, what is in loops is not."""
    found: list[str] = []
    for stmt in stmts:
        if isinstance(stmt, c.Declare):
            found.append(stmt.name)
        elif isinstance(stmt, c.Alternative):
            last = -1 if stmt.inside else None
            found += _declared((*stmt.then[:last], *stmt.otherwise[:last]))
    return found


def words_in(stmts: Sequence[c.Stmt]) -> set[str]:
    return {*names_in(stmts), *declared_in(stmts), *_fixed([tuple(stmts)])}


def _fixed(parts: Iterable[_Body]) -> set[str]:
    """Words that stand in the text in another form than names: calls, types, what is kept as it is."""
    found: set[str] = set()
    for node in (node for part in parts for node in nodes_in(part)):
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
        own = getattr(node, "type", None)
        if isinstance(own, c.Type):
            found.update(_WORD.findall(own.base))
    return found


def _changed(body: Sequence[c.Stmt]) -> Iterable[str]:
    for node in nodes_in(body):
        target = None
        if isinstance(node, c.Assign):
            target = node.target
        elif isinstance(node, c.Unary) and ("++" in node.op or "--" in node.op or node.op == "&"):
            target = node.operand
        name = root(target)[0] if target is not None else None
        if name is not None:
            yield name
