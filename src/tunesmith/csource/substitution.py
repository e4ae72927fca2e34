"""Names replaced by expressions in a part of the tree, with respect for scopes.

A declaration hides an outer variable of its name; a declaration that would capture a name of a replacement
is itself renamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import overload

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.arguments import Handed, is_plain_place
from tunesmith.csource.changes import Changes
from tunesmith.csource.effects import effects_of, is_pure
from tunesmith.csource.printing import print_expr
from tunesmith.csource.types import INTEGERS, declared_types, type_of

_WORD = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.[xyz]\b)?")


@overload
def substitute(part: c.Expr, values: Mapping[str, c.Expr]) -> c.Expr: ...
@overload
def substitute(part: Iterable[c.Stmt], values: Mapping[str, c.Expr]) -> tuple[c.Stmt, ...]: ...
def substitute(part: c.Expr | Iterable[c.Stmt], values: Mapping[str, c.Expr]) -> c.Expr | tuple[c.Stmt, ...]:
    """Every free use of a name in `values` replaced by its expression."""
    if isinstance(part, c.Expr):
        return _in_expr(part, values)
    stmts = tuple(part)
    used = walk.names_in(stmts)
    # Only what is used: a file may have thousands of constants, and this is done statement by statement.
    texts = " ".join(text for call in walk.calls_in(stmts) for text in call.template_args)
    wanted = {name: values[name] for name in used.union(_WORD.findall(texts)) if name in values}
    if not wanted:
        return stmts
    taken = set(walk.declared_in(stmts)) | used | set(wanted)
    for value in wanted.values():
        taken |= walk.names_in(value)
    return _Scopes(taken).block(stmts, wanted, 0)


def with_unique_names(stmts: Iterable[c.Stmt], taken: set[str]) -> tuple[c.Stmt, ...]:
    """Every declaration under a name of its own; blocks for their own sake dissolve."""
    named = _Scopes(taken, unique=True).block(stmts, {}, 0)
    return walk.map_statements(named, on_stmt=lambda stmt: stmt.body if isinstance(stmt, c.Scope) else stmt)


def rename(stmts: Iterable[c.Stmt], names: Mapping[str, str]) -> tuple[c.Stmt, ...]:
    """Variables renamed where they are declared and wherever they are used, whatever the scope."""
    values: dict[str, c.Expr] = {old: c.Name(new) for old, new in names.items()}

    def statement(stmt: c.Stmt) -> c.Stmt:
        if isinstance(stmt, c.Verbatim) and any(name in values for name in stmt.names):
            text, used = replace_words(stmt.text, values), _names_after(stmt.names, values)
            return replace(stmt, text=text, names=used)
        return walk.map_declared(stmt, lambda part: replace(part, name=names.get(part.name, part.name)))

    return walk.map_statements(stmts, lambda expr: _in_expr(expr, values), statement)


def replace_words(text: str, values: Mapping[str, c.Expr]) -> str:
    """Text that was not understood, with names replaced word by word; members of structures stay."""

    def word(match: re.Match[str]) -> str:
        if text[: match.start()].rstrip().endswith(("->", "::")):
            return match.group()
        whole = match.group()
        plain, dot, rest = whole.partition(".")
        if whole in values:
            return _inserted(values[whole])
        return _inserted(values[plain]) + dot + rest if plain in values else whole

    return _WORD.sub(word, text)


def _inserted(value: c.Expr) -> str:
    return value.name if isinstance(value, c.Name) else f"({print_expr(value)})"


def _in_expr(expr: c.Expr, values: Mapping[str, c.Expr]) -> c.Expr:
    if not values:
        return expr

    def leaf(node: c.Expr) -> c.Expr:
        match node:
            case c.Name(name=name):
                return values.get(name, node)
            case c.Call(template_args=texts) if texts:
                changed = tuple([_bare(replace_words(text, values)) for text in texts])
                return replace(node, template_args=changed)
            case c.Opaque(text=text, names=names) if any(name in values for name in names):
                return c.Opaque(replace_words(text, values), _names_after(names, values))
        return node

    return walk.map_expr(expr, leaf)


def _bare(text: str) -> str:
    """`(32)` as a template argument reads better as `32`."""
    return text[1:-1] if re.fullmatch(r"\(\w+\)", text) else text


def _names_after(names: frozenset[str], values: Mapping[str, c.Expr]) -> frozenset[str]:
    after: set[str] = set()
    for name in names:
        after |= walk.names_in(values[name]) if name in values else {name}
    return frozenset(after)


class _Scopes:
    """`unique`: every declaration gets a name that is not taken, not only one that would capture another."""

    def __init__(self, taken: set[str], unique: bool = False) -> None:
        self._taken, self._unique = taken, unique

    def block(self, stmts: Iterable[c.Stmt], values: dict[str, c.Expr], depth: int) -> tuple[c.Stmt, ...]:
        """`values` is this block's own: a declaration changes it for what follows."""
        if depth > c.MAX_DEPTH:
            raise c.TooDeep
        return tuple([self._statement(stmt, values, depth + 1) for stmt in stmts])

    def _statement(self, stmt: c.Stmt, values: dict[str, c.Expr], depth: int) -> c.Stmt:
        match stmt:
            case c.Declare() | c.Evaluate():
                return self._simple(stmt, values)
            case c.Alternative():
                return self._alternative(stmt, values, depth)
            case c.Verbatim(text=text, names=names) if any(name in values for name in names):
                return replace(stmt, text=replace_words(text, values), names=_names_after(names, values))
            case _:
                inner = dict(values)
                return walk.map_parts(
                    stmt,
                    lambda expr: _in_expr(expr, inner),
                    lambda body: self.block(body, dict(inner), depth),
                    lambda part: self._simple(part, inner),
                )

    def _alternative(self, stmt: c.Alternative, values: dict[str, c.Expr], depth: int) -> c.Stmt:
        """Its branches are no scopes: what either declares hides a variable from there on."""
        seen = [dict(values), dict(values)]
        then, otherwise = (
            self.block(part, own, depth) for part, own in zip((stmt.then, stmt.otherwise), seen, strict=True)
        )
        now = dict(seen[0].items() & seen[1].items())
        if any(name not in values or values[name] != value for own in seen for name, value in own.items()):
            raise c.Unreadable("a choice of the preprocessor declares a variable that must be renamed")
        condition = _in_expr(stmt.condition, values)
        values.clear()
        values.update(now)
        inside = self.block(stmt.inside, dict(now), depth)
        return replace(stmt, condition=condition, then=then, otherwise=otherwise, inside=inside)

    def _simple(self, stmt: c.Declare | c.Evaluate, values: dict[str, c.Expr]) -> c.Declare | c.Evaluate:
        if isinstance(stmt, c.Declare):
            dims = tuple([_in_expr(dim, values) for dim in stmt.dims])
            values.pop(stmt.name, None)  # in scope from its own initialiser on
            if self._unique or any(stmt.name in walk.names_in(value) for value in values.values()):
                fresh = walk.fresh_name(stmt.name, self._taken)
                if fresh != stmt.name:
                    values[stmt.name] = c.Name(fresh)
                    stmt = replace(stmt, name=fresh)
            init = None if stmt.init is None else _in_expr(stmt.init, values)
            return replace(stmt, init=init, dims=dims)
        return walk.map_simple(stmt, lambda expr: _in_expr(expr, values))


@dataclass(frozen=True)
class Placed:
    body: tuple[c.Stmt, ...]
    value: c.Expr | None  # what the call comes to, after the body; None for void


class Placer:
    """Gives out names that are new to the kernel, and shared memory once for all calls of a function."""

    def __init__(self, taken: set[str], types: dict[str, c.Type], source: c.Source) -> None:
        self.shared: list[c.Declare] = []
        self._homes: dict[tuple[str, c.Declare], str] = {}
        self._taken = taken
        self._types = types  # of the kernel's variables; those of placed bodies are added
        self._source = source
        self._changes = Changes(source)
        self._aliased: frozenset[str] = frozenset()
        self.results: set[str] = set()  # variables that only hold what a function gives back

    def as_expression(self, function: c.Function, args: tuple[c.Expr, ...]) -> c.Expr | None:
        """The call as one expression, where the function is no more than `return expression;`."""
        last = function.body[0] if len(function.body) == 1 else None
        if not isinstance(last, c.Return) or last.value is None:
            return None
        if function.result.reference:
            return None
        values: dict[str, c.Expr] = {}
        sometimes = any(
            isinstance(node, c.Ternary) or (isinstance(node, c.Binary) and node.op in ("&&", "||"))
            for node in walk.nodes_in(last.value)
        )
        changed = self._changes.of(last.value)
        addresses = (n for n in walk.nodes_in(last.value) if isinstance(n, c.Unary) and n.op == "&")
        pointed = {name for name, through in map(walk.root, (n.operand for n in addresses)) if not through}
        for parameter, arg in zip(function.parameters, args, strict=True):
            uses = sum(1 for node in walk.nodes_in(last.value) if node == c.Name(parameter.name))
            if (uses > 1 and not _is_cheap(arg)) or changed.parameter(parameter):
                return None
            if uses == 0 and not is_pure(arg):
                return None
            if sometimes and not effects_of(arg).may_drop:
                return None  # it may then never be evaluated
            values[parameter.name] = self._as_type(arg, parameter.type)
            if parameter.name in pointed and not is_plain_place(values[parameter.name]):
                return None  # a value has no address
        value = substitute(last.value, values)
        return value if function.result.base == "auto" else self._as_type(value, function.result)

    def as_place(self, function: c.Function, args: tuple[c.Expr, ...]) -> c.Expr | None:
        """The call as the place that it names, where the function is no more than `return place;`."""
        last = function.body[0] if len(function.body) == 1 else None
        if not isinstance(last, c.Return) or last.value is None or not is_plain_place(last.value):
            return None
        values: dict[str, c.Expr] = {}
        for parameter, arg in zip(function.parameters, args, strict=True):
            uses = sum(1 for node in walk.nodes_in(last.value) if node == c.Name(parameter.name))
            if not is_plain_place(arg) or (uses != 1 and not is_pure(arg)):
                return None
            by_value = not parameter.type.reference
            values[parameter.name] = self._as_index(arg, parameter.type) if by_value else arg
        return substitute(last.value, values)

    def _as_index(self, value: c.Expr, type_: c.Type) -> c.Expr:
        """An index that fits either type is written without a cast."""
        if isinstance(value, c.Number) and isinstance(value.value, int) and value.value >= 0:
            return value
        own = self._type(value)
        integers = own is not None and own.base in INTEGERS and type_.base in INTEGERS
        if own is not None and integers and not own.pointers:
            size, signed = INTEGERS[own.base]
            into, into_signed = INTEGERS[type_.base]
            if size < into or (size == into and signed == into_signed):
                return value  # a negative index would be out of the object either way
        return self._as_type(value, type_)

    def _as_type(self, value: c.Expr, type_: c.Type) -> c.Expr:
        own = self._type(value)
        if type_.is_pointer or (own is not None and (own.base, own.pointers) == (type_.base, 0)):
            return value
        return c.Cast(c.Type(type_.base), value)

    def place(self, function: c.Function, args: tuple[c.Expr, ...], line: int, updated: str = "") -> Placed:
        """Raises Unreadable where it cannot be done.

        `updated`: the variable the result is assigned to. Where the function changes a copy of it and
        gives that back, the copy is left out.
        """
        self._check(function)
        body = self._shared_apart(function)
        handed = Handed(function, args, self._changes, self._types, self._type, updated, self._aliased)
        own = {name: self.fresh(name) for name in walk.declared_in(body)}
        body = rename(body, own)
        before: list[c.Stmt] = []
        values: dict[str, c.Expr] = {}
        for parameter, arg in zip(function.parameters, args, strict=True):
            if not parameter.name:
                continue
            if handed.goes_in_directly(parameter, arg):
                values[parameter.name] = (
                    self._fixed(arg, line, before) if handed.moves(parameter, arg) else arg
                )
                continue
            fresh = self.fresh("object" if parameter.name == "this" else parameter.name)
            values[parameter.name] = c.Name(fresh)
            const = parameter.type.const if parameter.type.is_pointer else not handed.changes(parameter)
            type_ = replace(parameter.type, const=const, reference=False, restrict=False)
            before.append(c.Declare(type_, fresh, arg, line=line))
            self._types[fresh] = type_
        alone = replace(function, parameters=())
        body = substitute(body, values)
        self._types.update(declared_types(alone, body))
        self.note_addresses(body)
        body, value = self._with_result(body, function, line)
        self._types.update(declared_types(alone, body))
        return Placed((*before, *body), value)

    def _fixed(self, place: c.Expr, line: int, before: list[c.Stmt]) -> c.Expr:
        """The place of a reference, with the index that it had when the reference was made."""
        if isinstance(place, c.Member) and not place.arrow:
            return replace(place, base=self._fixed(place.base, line, before))
        type_ = self._type(place.index) if isinstance(place, c.Index) else None
        if not isinstance(place, c.Index) or type_ is None or type_.is_pointer:
            raise c.Unreadable("which element its argument names is not followed")
        fresh = self.fresh("index")
        self._types[fresh] = c.Type(type_.base, const=True)
        before.append(c.Declare(self._types[fresh], fresh, place.index, line=line))
        return replace(place, index=c.Name(fresh))

    def _type(self, value: c.Expr) -> c.Type | None:
        return type_of(value, self._types, self._source.functions, self._source.language)

    def note_addresses(self, body: tuple[c.Stmt, ...]) -> None:
        """Of the variables in a body, which have other names as well."""
        self._aliased |= self._changes.addressed(body)

    def take(self, name: str) -> None:
        self._taken.add(name)

    def fresh(self, name: str) -> str:
        return walk.fresh_name(name, self._taken)

    def _check(self, function: c.Function) -> None:
        if any(
            isinstance(n, c.Verbatim) and n.names & {"return", "goto"} for n in walk.nodes_in(function.body)
        ):
            raise c.Unreadable("it leaves from inside text that is not understood")
        again = {p.name for p in function.parameters} & set(walk.declared_in(function.body))
        if again:
            raise c.Unreadable(f"it declares {min(again)} again, the name of its parameter")

    def _shared_apart(self, function: c.Function) -> tuple[c.Stmt, ...]:
        names: dict[str, str] = {}
        for node in walk.nodes_in(function.body):
            if isinstance(node, c.Declare) and "shared" in node.storage:
                names[node.name] = self._home(function, node)

        def keep(stmt: c.Stmt) -> c.Stmt | tuple[c.Stmt, ...]:
            return () if isinstance(stmt, c.Declare) and "shared" in stmt.storage else stmt

        return rename(walk.map_statements(function.body, on_stmt=keep), names) if names else function.body

    def _home(self, function: c.Function, declare: c.Declare) -> str:
        key = (function.name, declare)
        if key not in self._homes:
            name = self._homes[key] = self.fresh(f"{_word(function.name)}_{declare.name}")
            self.shared.append(replace(declare, name=name))
            pointers = declare.type.pointers + (len(declare.dims) or int(declare.is_array))
            self._types[name] = replace(declare.type, pointers=pointers)
        return self._homes[key]

    def _with_result(
        self, body: tuple[c.Stmt, ...], function: c.Function, line: int
    ) -> tuple[tuple[c.Stmt, ...], c.Expr | None]:
        is_void = function.result == c.Type("void")
        returns = [node for node in walk.statements_in(body) if isinstance(node, c.Return)]
        if not returns:
            if not is_void:
                raise c.Unreadable("it ends without giving its value")
            return body, None
        last = body[-1]
        if len(returns) == 1 and isinstance(last, c.Return):
            return self._last_value(body[:-1], last, function, line)
        if is_void:
            return walk.without_exits(body), None
        name = self.fresh(f"{_word(function.name)}_result")
        result = replace(function.result, const=False, reference=False)
        if result.base == "auto":
            result = self._type_of_value(returns[0].value)
        self.results.add(name)
        return (c.Declare(result, name, line=line), *walk.without_exits(body, name)), c.Name(name)

    def _type_of_value(self, value: c.Expr | None) -> c.Type:
        language = self._source.language
        found = None if value is None else type_of(value, self._types, self._source.functions, language)
        if found is None:
            raise c.Unreadable("the type of its value is not written")
        return replace(found, const=found.const and found.is_pointer, reference=False)

    def _last_value(
        self, body: tuple[c.Stmt, ...], last: c.Return, function: c.Function, line: int
    ) -> tuple[tuple[c.Stmt, ...], c.Expr | None]:
        value = last.value
        if value is None:
            return body, None
        if function.result.reference and is_plain_place(value):
            return body, value
        result = replace(function.result, const=False, reference=False, restrict=False)
        if isinstance(value, c.Name):
            declared = next(
                (n for n in walk.nodes_in(body) if isinstance(n, c.Declare) and n.name == value.name), None
            )
            known = declared.type if declared is not None else self._types.get(value.name)
            if known is not None and (known.base, known.pointers) == (result.base, result.pointers):
                return body, value
        if result.base == "auto":
            result = self._type_of_value(value)
        name = self.fresh(f"{_word(function.name)}_result")
        const = result if result.is_pointer else replace(result, const=True)
        return (*body, c.Declare(const, name, value, line=last.line or line)), c.Name(name)


def _word(name: str) -> str:
    """The last word of a function's name: `vec<float, 4>::operator+#1` has none but operator."""
    plain = name.partition("#")[0].rpartition("::")[2]
    return re.sub(r"\W+", "", plain) or "value"


def _is_cheap(arg: c.Expr) -> bool:
    """So short and free of effects that it may be written twice."""
    nodes = list(walk.nodes_in(arg))
    return len(nodes) <= 2 and all(isinstance(node, c.Name | c.Number | c.Member | c.Cast) for node in nodes)
