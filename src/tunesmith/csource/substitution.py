"""Names replaced by expressions in a part of the tree, with respect for scopes.

A declaration hides an outer variable of its name; a declaration that would capture a name of a replacement
is itself renamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import overload

from tunesmith.csource.fold import is_pure
from tunesmith.csource.nodes import (
    MAX_DEPTH,
    Binary,
    Braces,
    Call,
    Cast,
    Declare,
    Evaluate,
    Expr,
    For,
    Function,
    If,
    Index,
    Member,
    Name,
    Number,
    Opaque,
    Parameter,
    Return,
    Scope,
    Source,
    Stmt,
    TooDeep,
    Type,
    Unary,
    Unreadable,
    Verbatim,
    While,
)
from tunesmith.csource.printing import print_expr
from tunesmith.csource.types import Types, declared_types, type_of
from tunesmith.csource.walk import (
    assigned_in,
    calls_in,
    declared_in,
    map_expr,
    map_simple,
    map_statements,
    names_in,
    nodes_in,
    statements_in,
    without_returns,
)

_WORD = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.[xyz]\b)?")


@overload
def substitute(part: Expr, values: Mapping[str, Expr]) -> Expr: ...
@overload
def substitute(part: Iterable[Stmt], values: Mapping[str, Expr]) -> tuple[Stmt, ...]: ...
def substitute(part: Expr | Iterable[Stmt], values: Mapping[str, Expr]) -> Expr | tuple[Stmt, ...]:
    """Every free use of a name in `values` replaced by its expression."""
    if isinstance(part, Expr):
        return _in_expr(part, values)
    stmts = tuple(part)
    used = names_in(stmts)
    # Only what is used: a file may have thousands of constants, and this is done statement by statement.
    wanted = {name: values[name] for name in (used | _template_words(stmts)) if name in values}
    if not wanted:
        return stmts
    taken = set(declared_in(stmts)) | used | set(wanted)
    for value in wanted.values():
        taken |= names_in(value)
    return _Scopes(taken).block(stmts, wanted, 0)


def _template_words(stmts: tuple[Stmt, ...]) -> set[str]:
    return {word for call in calls_in(stmts) for text in call.template_args for word in _WORD.findall(text)}


def rename(stmts: Iterable[Stmt], names: Mapping[str, str]) -> tuple[Stmt, ...]:
    """Variables renamed where they are declared and wherever they are used, whatever the scope."""
    values: dict[str, Expr] = {old: Name(new) for old, new in names.items()}

    def simple(part: Declare | Evaluate) -> Declare | Evaluate:
        return replace(part, name=names.get(part.name, part.name)) if isinstance(part, Declare) else part

    def statement(stmt: Stmt) -> Stmt:
        match stmt:
            case Declare():
                return simple(stmt)
            case For():
                return replace(stmt, init=tuple([simple(part) for part in stmt.init]))
            case Verbatim(text=text, names=used) if any(name in values for name in used):
                return replace(stmt, text=replace_words(text, values), names=_names_after(used, values))
            case _:
                return stmt

    return map_statements(stmts, lambda expr: _in_expr(expr, values), statement)


def replace_words(text: str, values: Mapping[str, Expr]) -> str:
    """Text that was not understood, with names replaced word by word; members of a struct are left."""

    def word(match: re.Match[str]) -> str:
        if text[: match.start()].endswith("->"):
            return match.group()
        whole = match.group()
        plain, dot, rest = whole.partition(".")
        if whole in values:
            return _inserted(values[whole])
        return _inserted(values[plain]) + dot + rest if plain in values else whole

    return _WORD.sub(word, text)


def _inserted(value: Expr) -> str:
    return value.name if isinstance(value, Name) else f"({print_expr(value)})"


def _in_expr(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    if not values:
        return expr

    def leaf(node: Expr) -> Expr:
        match node:
            case Name(name=name):
                return values.get(name, node)
            case Call(function=function, args=args, template_args=texts) if texts:
                changed = tuple([_bare(replace_words(text, values)) for text in texts])
                return Call(function, args, changed)
            case Opaque(text=text, names=names) if any(name in values for name in names):
                return Opaque(replace_words(text, values), _names_after(names, values))
            case _:
                return node

    return map_expr(expr, leaf)


def _bare(text: str) -> str:
    """`(32)` as a template argument reads better as `32`."""
    return text[1:-1] if re.fullmatch(r"\(\w+\)", text) else text


def _names_after(names: frozenset[str], values: Mapping[str, Expr]) -> frozenset[str]:
    after: set[str] = set()
    for name in names:
        after |= names_in(values[name]) if name in values else {name}
    return frozenset(after)


class _Scopes:
    def __init__(self, taken: set[str]) -> None:
        self._taken = taken

    def block(self, stmts: Iterable[Stmt], values: dict[str, Expr], depth: int) -> tuple[Stmt, ...]:
        """`values` is this block's own: a declaration changes it for what follows."""
        if depth > MAX_DEPTH:
            raise TooDeep
        return tuple([self._statement(stmt, values, depth + 1) for stmt in stmts])

    def _statement(self, stmt: Stmt, values: dict[str, Expr], depth: int) -> Stmt:
        match stmt:
            case Declare() | Evaluate():
                return self._simple(stmt, values)
            case If():
                return replace(
                    stmt,
                    condition=_in_expr(stmt.condition, values),
                    then=self.block(stmt.then, dict(values), depth),
                    otherwise=self.block(stmt.otherwise, dict(values), depth),
                )
            case For():
                inner = dict(values)
                init = tuple([self._simple(part, inner) for part in stmt.init])
                return replace(
                    stmt,
                    init=init,
                    condition=None if stmt.condition is None else _in_expr(stmt.condition, inner),
                    step=tuple([_in_expr(step, inner) for step in stmt.step]),
                    body=self.block(stmt.body, dict(inner), depth),
                )
            case While():
                body = self.block(stmt.body, dict(values), depth)
                return replace(stmt, condition=_in_expr(stmt.condition, values), body=body)
            case Return(value=value):
                return stmt if value is None else replace(stmt, value=_in_expr(value, values))
            case Scope():
                return replace(stmt, body=self.block(stmt.body, dict(values), depth))
            case Verbatim(text=text, names=names) if any(name in values for name in names):
                return replace(stmt, text=replace_words(text, values), names=_names_after(names, values))
            case _:
                return stmt

    def _simple(self, stmt: Declare | Evaluate, values: dict[str, Expr]) -> Declare | Evaluate:
        if isinstance(stmt, Declare):
            dims = tuple([_in_expr(dim, values) for dim in stmt.dims])
            values.pop(stmt.name, None)  # in scope from its own initialiser on
            if any(stmt.name in names_in(value) for value in values.values()):
                fresh = self._fresh(stmt.name)
                values[stmt.name] = Name(fresh)
                stmt = replace(stmt, name=fresh)
            init = None if stmt.init is None else _in_expr(stmt.init, values)
            return replace(stmt, init=init, dims=dims)
        return map_simple(stmt, lambda expr: _in_expr(expr, values))

    def _fresh(self, name: str) -> str:
        number = 2
        while f"{name}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{name}_{number}")
        return f"{name}_{number}"


@dataclass(frozen=True)
class Placed:
    body: tuple[Stmt, ...]
    value: Expr | None  # what the call comes to, after the body; None for void


class Placer:
    """Gives out names that are new to the kernel, and shared memory once for all calls of a function."""

    def __init__(self, taken: set[str], types: dict[str, Type], source: Source) -> None:
        self.shared: list[Declare] = []
        self._homes: dict[tuple[str, Declare], str] = {}
        self._taken = taken
        self._types = types  # of the kernel's variables; those of placed bodies are added
        self._source = source

    def as_expression(self, function: Function, args: tuple[Expr, ...]) -> Expr | None:
        """The call as one expression, where the function is no more than `return expression;`."""
        last = function.body[0] if len(function.body) == 1 else None
        if not isinstance(last, Return) or last.value is None:
            return None
        if function.result.base == "auto" or function.result.reference:
            return None
        values: dict[str, Expr] = {}
        for parameter, arg in zip(function.parameters, args, strict=True):
            uses = sum(1 for node in nodes_in(last.value) if node == Name(parameter.name))
            if (uses > 1 and not _is_cheap(arg)) or parameter.name in assigned_in(last.value):
                return None
            if uses == 0 and not is_pure(arg):
                return None
            values[parameter.name] = self._as_type(arg, parameter.type)
        value = substitute(last.value, values)
        return self._as_type(value, function.result)

    def _as_type(self, value: Expr, type_: Type) -> Expr:
        own = type_of(value, self._types, self._source.functions, self._source.language)
        if type_.is_pointer or (own is not None and (own.base, own.pointers) == (type_.base, 0)):
            return value
        return Cast(Type(type_.base), value)

    def place(self, function: Function, args: tuple[Expr, ...], line: int, updated: str = "") -> Placed:
        """Raises Unreadable where it cannot be done.

        `updated`: the variable the result is assigned to. Where the function changes a copy of it and
        gives that back, the copy is left out.
        """
        self._check(function)
        body = self._shared_apart(function)
        changed = assigned_in(body)
        own = {name: self.fresh(name) for name in declared_in(body)}
        body = rename(body, own)
        before: list[Stmt] = []
        values: dict[str, Expr] = {}
        for parameter, arg in zip(function.parameters, args, strict=True):
            if not parameter.name:
                continue
            if _goes_in_directly(parameter, arg, function, args, changed, self._types, updated):
                values[parameter.name] = arg
                continue
            fresh = self.fresh(parameter.name)
            values[parameter.name] = Name(fresh)
            const = parameter.type.const if parameter.type.is_pointer else parameter.name not in changed
            type_ = replace(parameter.type, const=const, reference=False, restrict=False)
            before.append(Declare(type_, fresh, arg, line=line))
            self._types[fresh] = type_
        body, value = self._with_result(substitute(body, values), function, line)
        self._types.update(declared_types(replace(function, parameters=()), body))
        return Placed((*before, *body), value)

    def fresh(self, name: str) -> str:
        found, number = name, 2
        while found in self._taken:
            found, number = f"{name}_{number}", number + 1
        self._taken.add(found)
        return found

    def _check(self, function: Function) -> None:
        if any(isinstance(n, Verbatim) and n.names & {"return", "goto"} for n in nodes_in(function.body)):
            raise Unreadable("it leaves from inside text that is not understood")
        again = {p.name for p in function.parameters} & set(declared_in(function.body))
        if again:
            raise Unreadable(f"it declares {min(again)} again, the name of its parameter")

    def _shared_apart(self, function: Function) -> tuple[Stmt, ...]:
        names: dict[str, str] = {}
        for node in nodes_in(function.body):
            if isinstance(node, Declare) and "shared" in node.storage:
                names[node.name] = self._home(function, node)

        def keep(stmt: Stmt) -> Stmt | tuple[Stmt, ...]:
            return () if isinstance(stmt, Declare) and "shared" in stmt.storage else stmt

        return rename(map_statements(function.body, on_stmt=keep), names) if names else function.body

    def _home(self, function: Function, declare: Declare) -> str:
        key = (function.name, declare)
        if key not in self._homes:
            name = self._homes[key] = self.fresh(f"{function.name}_{declare.name}")
            self.shared.append(replace(declare, name=name))
            pointers = declare.type.pointers + (len(declare.dims) or int(declare.is_array))
            self._types[name] = replace(declare.type, pointers=pointers)
        return self._homes[key]

    def _with_result(
        self, body: tuple[Stmt, ...], function: Function, line: int
    ) -> tuple[tuple[Stmt, ...], Expr | None]:
        is_void = function.result == Type("void")
        returns = [node for node in statements_in(body) if isinstance(node, Return)]
        if not returns:
            if not is_void:
                raise Unreadable("it ends without giving its value")
            return body, None
        last = body[-1]
        if len(returns) == 1 and isinstance(last, Return):
            return self._last_value(body[:-1], last, function, line)
        if is_void:
            return without_returns(body, None), None
        name = self.fresh(f"{function.name}_result")
        result = replace(function.result, const=False, reference=False)
        return (Declare(result, name, line=line), *without_returns(body, name)), Name(name)

    def _last_value(
        self, body: tuple[Stmt, ...], last: Return, function: Function, line: int
    ) -> tuple[tuple[Stmt, ...], Expr | None]:
        value = last.value
        if value is None:
            return body, None
        result = replace(function.result, const=False, reference=False, restrict=False)
        if isinstance(value, Name):
            declared = next(
                (n for n in nodes_in(body) if isinstance(n, Declare) and n.name == value.name), None
            )
            known = declared.type if declared is not None else self._types.get(value.name)
            if known is not None and (known.base, known.pointers) == (result.base, result.pointers):
                return body, value
        if result.base == "auto":
            raise Unreadable("the type of its value is not written")
        name = self.fresh(f"{function.name}_result")
        const = result if result.is_pointer else replace(result, const=True)
        return (*body, Declare(const, name, value, line=last.line or line)), Name(name)


def _goes_in_directly(
    parameter: Parameter,
    arg: Expr,
    function: Function,
    args: tuple[Expr, ...],
    changed: frozenset[str],
    types: Types,
    updated: str,
) -> bool:
    if parameter.type.reference and not parameter.type.const:
        if not _is_plain_place(arg):
            raise Unreadable(f"its argument {parameter.name} is changed through a place that is computed")
        return True
    if parameter.name in changed:
        own = types.get(arg.name) if isinstance(arg, Name) else None
        return (
            isinstance(arg, Name)
            and arg.name == updated
            and own is not None
            and (own.base, own.pointers) == (parameter.type.base, parameter.type.pointers)
            and _gives_back(function, parameter.name)
        )
    if isinstance(arg, Number):
        return _same_kind(arg, parameter.type)
    if not isinstance(arg, Name):
        return False
    if arg.name.partition(".")[0] in ("threadIdx", "blockIdx", "blockDim", "gridDim"):
        return parameter.type.base in ("int", "unsigned int")
    known = types.get(arg.name)
    if known is None or (known.base, known.pointers) != (parameter.type.base, parameter.type.pointers):
        return False
    # A name goes in only if nothing the function does can change what it stands for.
    through_reference = any(p.type.reference and not p.type.const for p in function.parameters)
    in_place = any(p.name in changed and a == arg for p, a in zip(function.parameters, args, strict=True))
    return not through_reference and not in_place and arg.name not in assigned_in(Braces(args))


def _same_kind(number: Number, type_: Type) -> bool:
    if isinstance(number.value, int):
        return type_.base in ("int", "bool") and not type_.pointers and number.text.lstrip("-").isdigit()
    return type_.base == "float" and number.text[-1:] in "fF" and not type_.pointers


def _is_plain_place(arg: Expr) -> bool:
    """A variable, or an element of one, whose place does not change while the function runs."""
    return all(
        isinstance(node, Name | Number | Index | Member | Cast | Binary)
        or (isinstance(node, Unary) and node.op in ("&", "-"))
        for node in nodes_in(arg)
    )


def _gives_back(function: Function, name: str) -> bool:
    last = function.body[-1] if function.body else None
    returns = [node for node in statements_in(function.body) if isinstance(node, Return)]
    return len(returns) == 1 and last == returns[0] and returns[0].value == Name(name)


def _is_cheap(arg: Expr) -> bool:
    """So short and free of effects that it may be written twice."""
    nodes = list(nodes_in(arg))
    return len(nodes) <= 2 and all(isinstance(node, Name | Number | Member | Cast) for node in nodes)
