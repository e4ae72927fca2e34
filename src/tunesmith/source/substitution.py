"""Names replaced by expressions in a part of the tree, with respect for scopes.

A declaration hides an outer variable of its name; a declaration that would capture a name of a replacement
is itself renamed.

Long, because all ways in which a part of a tree is replaced share their rules of scope.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import Effects, effects_of, function_effects, is_function, is_pure
from tunesmith.source.fold import fold_statements, int_value
from tunesmith.source.printing import print_expr
from tunesmith.source.types import (
    INTEGERS,
    Types,
    byte_size,
    declared_types,
    integer_literal,
    of_type,
    type_of,
)

# -- What a body may change of the variables that it names: by assignment, by reference, by a method, in part.
#
# `walk.assigned_in` sees assignments alone. Here a call counts as well, by the declarations of all functions
# and methods of that name; a name that no table knows may change whatever it is handed.


_SIGNS = frozenset({"-", "+", "!", "~", "*"})
_OTHERS = Effects.WRITES | Effects.ATOMIC | Effects.BARRIER | Effects.FENCE | Effects.UNKNOWN


@dataclass(frozen=True)
class Changed:
    whole: frozenset[str]  # variables themselves, or a part of one
    through: frozenset[str]  # what is reached from one by [], * or ->; an object, if it has such an operator

    def parameter(self, parameter: c.Parameter) -> bool:
        """Whether a parameter that is a copy is changed, not only what it points to."""
        inside = not parameter.type.is_pointer and parameter.name in self.through
        return inside or parameter.name in self.whole

    @property
    def all(self) -> frozenset[str]:
        return self.whole | self.through


class Changes:
    def __init__(self, source: c.Source) -> None:
        self._functions: dict[str, list[c.Function]] = {}
        for function in (*source.functions, *source.operators):
            self._functions.setdefault(function.name, []).append(function)
        self._methods: dict[str, list[c.Function]] = {}
        for method in (method for record in source.records for method in record.methods):
            self._methods.setdefault(method.name, []).append(method)
        fields = [field for record in source.records for field in record.fields]
        self._records = frozenset(record.name.rpartition("::")[2] for record in source.records)
        self._arrays = frozenset(field.name for field in fields if field.is_array)
        others = {field.name for field in fields if field.is_array or not field.type.is_pointer}
        self._pointers = frozenset(field.name for field in fields) - others
        self._known: dict[str, bool] = {}

    def of(self, part: walk.Part) -> Changed:
        nodes = list(walk.nodes_in(part))
        found: set[tuple[str, bool]] = set()
        for node in nodes:
            for place in self._change_targets(node):
                found |= set(self._places(place, False))
            for place in self._operator_targets(node):
                found |= set(self._places(place, True))
            if isinstance(node, c.Opaque | c.Verbatim):
                found |= {(name, False) for name in node.names}
        found |= {*self._decayed_arrays(nodes), *self._addressed_places(nodes)}
        return Changed(
            frozenset(name for name, through in found if not through),
            frozenset(name for name, through in found if through),
        )

    def stores(
        self, function: c.Function, seen: frozenset[str] = frozenset(), apart: frozenset[str] = frozenset()
    ) -> bool:
        """Whether, while it runs, anything may change that is not its own: memory, what it was handed.

        `apart`: parameters that stand for variables which do not count.
        """
        body = function.body
        declared = [node for node in walk.nodes_in(body) if isinstance(node, c.Declare)]
        inside = {d.name for d in declared if not d.type.reference and (d.is_array or not d.type.is_pointer)}
        inside -= {d.name for d in declared if d.storage}
        parameters = {p.name: p for p in function.parameters}
        copies = {n for n, p in parameters.items() if not p.type.reference and not p.type.is_pointer}
        copies |= apart
        changed = self.of(body)
        pointers = {n for n, p in parameters.items() if not p.type.reference} | {d.name for d in declared}
        if (changed.whole - inside - copies - pointers) or (changed.through - inside - copies):
            return True
        if any(d.storage for d in declared):
            return True
        seen |= {function.name}
        for node in walk.nodes_in(body):
            for name, kind in _called_names(node):
                if name in seen:
                    continue
                known = self._found(name, kind)
                if any(self.stores(each, seen) for each in known):
                    return True
                if known or not isinstance(node, c.Call):
                    continue
                known_effects = function_effects(name) if is_function(name) else Effects.NONE
                if self._is_unknown(name) or node.of is not None or known_effects & _OTHERS:
                    return True
        return any(effects_of(node) & _OTHERS for node in walk.nodes_in(body) if isinstance(node, c.Verbatim))

    def addressed(self, part: walk.Part) -> frozenset[str]:
        """Variables that have another name somewhere: a pointer to them, or a reference."""
        nodes = list(walk.nodes_in(part))
        found = {name for name, through in self._addressed_places(nodes) if not through}
        for node in nodes:
            if isinstance(node, c.Declare) and node.type.reference and node.init is not None:
                found |= {name for name, through in self._places(node.init, False) if not through}
        return frozenset(found)

    def _change_targets(self, node: c.Expr | c.Stmt) -> Iterator[c.Expr]:
        """What a node by itself may change."""
        match node:
            case c.Assign(target=target):
                yield target
            case c.Unary(op="++" | "--", operand=operand):
                yield operand
            case c.Declare(type=type_, init=init) if type_.reference and not type_.const and init is not None:
                yield init
            case c.Call(function=name, args=args, of=of):
                known = self._found(name, "method" if of is not None else "function")
                if of is not None and (not known or any(self._changes_object(each) for each in known)):
                    yield of
                yield from (arg for at, arg in enumerate(args) if self._may_change(name, known, at, of))

    def _operator_targets(self, node: c.Expr | c.Stmt) -> Iterator[c.Expr]:
        """Objects that a sign may change; of pointers and numbers it is the language's own."""
        match node:
            case c.Binary(op=op, left=left, right=right):
                yield from self._operands(op, (left, right))
            case c.Unary(op=op, operand=operand) if op in _SIGNS:
                yield from self._operands(op, (operand,))
            case c.Index(base=base, index=index):
                yield from self._operands("[]", (base, index))

    def _operands(self, op: str, operands: tuple[c.Expr, ...]) -> Iterator[c.Expr]:
        if any(self._changes_object(each) for each in self._methods.get(f"operator{op}", ())):
            yield operands[0]
        for function in self._functions.get(f"operator{op}", ()):
            pairs = zip(operands, function.parameters, strict=False)
            yield from (operand for operand, parameter in pairs if _is_open(parameter.type))

    def _found(self, name: str, kind: str) -> list[c.Function]:
        last = name.partition("#")[0].rpartition("::")[2]
        if kind == "method":
            return self._methods.get(last, [])
        functions = self._functions.get(name, [])
        return functions or self._methods.get(last, [])  # a constructor, a static method, one of this object

    def _may_change(self, name: str, known: list[c.Function], at: int, of: c.Expr | None) -> bool:
        for function in known:
            first = int(bool(function.parameters) and function.parameters[0].name == "this")
            types = [parameter.type for parameter in function.parameters][first:]
            if at >= len(types) or _is_open(types[at]):
                return True
        if known:
            return False
        return of is not None or self._is_unknown(name) or _is_assigning_function(name)

    def _is_unknown(self, name: str) -> bool:
        return not is_function(name) and bool(effects_of(c.Call(name))) and name not in self._records

    def _changes_object(self, method: c.Function) -> bool:
        """Its fields are names that it does not declare; whoever calls it may still write what it returns."""
        first = method.parameters[0].type if method.parameters else None
        if first is None or method.parameters[0].name != "this" or first.const:
            return False
        if method.name not in self._known:
            self._known[method.name] = True  # as long as it is not known: methods that call each other
            others = (
                m for m in self._methods[method.name] if not (m.parameters and m.parameters[0].type.const)
            )
            self._known[method.name] = any(map(self._changes_this, others))
        return self._known[method.name]

    def _changes_this(self, method: c.Function) -> bool:
        inside = {p.name for p in method.parameters if p.name != "this"} | set(walk.declared_in(method.body))
        if self.of(method.body).all - inside:
            return True
        calls = [call.function for call in walk.calls_in(method.body) if call.of is None]
        return any(self._changes_object(m) for name in calls for m in self._methods.get(name, ()))

    def _places(self, expr: c.Expr, through: bool) -> Iterator[tuple[str, bool]]:
        """The variables that a place may belong to, and whether it is reached through them."""
        match expr:
            case c.Name(name=name):
                yield name, through
            case c.Index(base=base):
                yield from self._behind(base)
            case c.Unary(op="*", operand=operand):
                yield from self._behind(operand)
            case c.Member(base=base, arrow=arrow):
                yield from self._behind(base) if arrow else self._places(base, through)
            case c.Unary(op="++" | "--" | "&", operand=part) | c.Assign(target=part) | c.Cast(value=part):
                yield from self._places(part, through)
            case c.Ternary(yes=yes, no=no):
                yield from (*self._places(yes, through), *self._places(no, through))
            case c.Binary(op=op, left=left, right=right):
                yield from self._places(right if op == "," else left, through)
            case c.Call(args=args, of=of):  # it may give back a reference to any of them
                for part in args if of is None else (of, *args):
                    yield from self._places(part, through)

    def _behind(self, address: c.Expr) -> Iterator[tuple[str, bool]]:
        while isinstance(address, c.Cast) or (isinstance(address, c.Binary) and address.op in ("+", "-")):
            address = address.value if isinstance(address, c.Cast) else address.left
        if isinstance(address, c.Unary) and address.op == "&":
            yield from self._places(address.operand, False)
        elif not (isinstance(address, c.Member) and address.field in self._pointers):
            yield from self._places(address, True)

    def _addressed_places(self, nodes: Iterable[c.Expr | c.Stmt]) -> Iterator[tuple[str, bool]]:
        """What has its address taken, other than for `((T *)&v)[i]`, which is a place like others."""
        seen: Counter[c.Expr] = Counter()
        for node in nodes:
            match node:
                case c.Unary(op="&"):
                    seen[node] += 1
                case c.Index(base=c.Cast(value=c.Unary(op="&") as inner)):
                    seen[inner] -= 1
        for address, count in seen.items():
            if count > 0:
                yield from self._places(address, False)

    def _decayed_arrays(self, nodes: Iterable[c.Expr | c.Stmt]) -> Iterator[tuple[str, bool]]:
        """Arrays inside objects that are named without an index: a pointer may be made of them."""
        if not self._arrays:
            return
        seen: Counter[c.Expr] = Counter()
        for node in nodes:
            match node:
                case c.Member(field=name) | c.Name(name=name) if name in self._arrays:
                    seen[node] += 1
                case c.Index(base=c.Member() | c.Name() as base):
                    seen[base] -= 1
        for place, count in seen.items():
            if count > 0:
                yield from self._places(place, True)


def _is_open(type_: c.Type) -> bool:
    return type_.reference and not type_.const


def _is_assigning_function(name: str) -> bool:
    return is_function(name) and bool(function_effects(name) & Effects.ASSIGNS)


def _called_names(node: c.Expr | c.Stmt) -> Iterator[tuple[str, str]]:
    match node:
        case c.Call(function=name, of=of):
            yield name, "method" if of is not None else "function"
        case c.Binary(op=op) | c.Unary(op=op) | c.Assign(op=op):
            yield f"operator{op}", "function"
        case c.Index():
            yield "operator[]", "method"


# -- How the arguments of a call go into the body that is put in its place: as they stand, or by a copy.
#
# A parameter by value is a copy, unless nothing that runs can tell the two apart. One by reference is another
# name for its place; a `const` one is read once, ahead of the body, only where the body stores nothing.


_NUMBERS = frozenset({*INTEGERS, "float", "double"})


@dataclass(frozen=True)
class ArgumentPassing:
    """One call. `updated`: the variable its result is assigned to; `aliased`: those with other names."""

    function: c.Function
    args: tuple[c.Expr, ...]
    known: Changes
    types: Types
    type_of: Callable[[c.Expr], c.Type | None]
    updated: str
    aliased: frozenset[str] = frozenset()

    @cached_property
    def _changed(self) -> Changed:
        return self.known.of(self.function.body)

    @cached_property
    def _may_store_elsewhere(self) -> bool:
        return self.known.stores(self.function)

    @cached_property
    def _touched(self) -> frozenset[str]:
        """Variables of the caller that may change while the function runs."""
        found = set(walk.assigned_in(c.Braces(self.args)))
        if self._may_store_elsewhere:
            found |= self.aliased
        found |= self._changed.whole - {parameter.name for parameter in self.function.parameters}
        for parameter, arg in self._pairs:
            if parameter.type.reference and not parameter.type.const:
                found |= walk.names_in(arg) if (root := walk.root_variable(arg)[0]) is None else {root}
            elif self.changes(parameter) and arg == c.Name(self.updated):
                found.add(self.updated)
        return frozenset(found)

    @property
    def _pairs(self) -> list[tuple[c.Parameter, c.Expr]]:
        return list(zip(self.function.parameters, self.args, strict=True))

    def changes(self, parameter: c.Parameter) -> bool:
        return self._changed.parameter(parameter)

    def goes_in_directly(self, parameter: c.Parameter, arg: c.Expr) -> bool:
        """Raises Unreadable where neither that nor a copy would do."""
        if parameter.type.reference and not parameter.type.const:
            if not is_plain_place(arg):
                fault = f"its argument {parameter.name} is changed through a place that is computed"
                raise c.Unreadable(fault)
            return True
        if not parameter.type.reference and self.changes(parameter):
            return self._is_its_own_copy(parameter, arg)
        if isinstance(arg, c.Number):
            return _same_kind(arg, parameter.type)
        if not isinstance(arg, c.Name):
            return parameter.type.reference and self._is_another_name(parameter, arg)
        if arg.name.partition(".")[0] in c.INDICES:
            return parameter.type.base in ("int", "unsigned int")
        known = self.types.get(arg.name)
        if known is None or not _same_shape(known, parameter.type):
            if parameter.type.reference and known is None and self._may_store_elsewhere:
                raise c.Unreadable(f"whether its argument {parameter.name} stays as it is cannot be told")
            return False
        in_place = any(not p.type.reference and self.changes(p) and a == arg for p, a in self._pairs)
        if parameter.type.reference:
            return not in_place  # another name for the variable: it sees what becomes of it
        # A name goes in only if nothing the function does can change what it stands for.
        return not in_place and not _is_any_touched({arg.name}, self._touched)

    def _is_its_own_copy(self, parameter: c.Parameter, arg: c.Expr) -> bool:
        """`v = f(v)`, where f changes its copy of v and gives that back."""
        known = self.types.get(arg.name) if isinstance(arg, c.Name) else None
        if self.updated in self.aliased and self._may_store_elsewhere:
            return False
        if known is None or arg != c.Name(self.updated) or not _gives_back(self.function, parameter.name):
            return False
        if not _same_shape(known, parameter.type):
            return False
        others = [(p, a) for p, a in self._pairs if p is not parameter]
        named = [a for p, a in others if p.type.reference and not (p.type.const and a == arg)]
        if _is_any_touched({self.updated}, walk.names_in(c.Braces(tuple(named)))):
            return False
        return self.updated not in walk.assigned_in(c.Braces(tuple(a for _, a in others)))

    def _is_another_name(self, parameter: c.Parameter, arg: c.Expr) -> bool:
        """A const reference to an element that may change meanwhile; False: what is read once is the same."""
        if not isinstance(arg, c.Index | c.Member | c.Ternary | c.Assign | c.Unary) or _is_value(arg):
            return False
        known = self.type_of(arg)
        if known is not None and not _same_shape(known, parameter.type):
            return False  # made for the call
        if not self._may_store_elsewhere or not self.known.stores(self.function, apart=self._apart_from(arg)):
            return False
        if known is None or not is_plain_place(arg):
            raise c.Unreadable(f"whether its argument {parameter.name} stays as it is cannot be told")
        return True

    def _apart_from(self, element: c.Expr) -> frozenset[str]:
        """Parameters that are other names for variables which are numbers: no element is one of them."""
        named = walk.names_in(element)
        variables = {p.name: a.name for p, a in self._pairs if isinstance(a, c.Name)}
        known = ((p, name, self.types.get(name)) for p, name in variables.items())
        plain = ((p, name) for p, name, t in known if t and not t.is_pointer and t.base in _NUMBERS)
        return frozenset(p for p, name in plain if not _is_any_touched({name}, named | self.aliased))

    def moves(self, parameter: c.Parameter, arg: c.Expr) -> bool:
        """Whether the text of a reference's place may come to another place while the function runs."""
        if not parameter.type.reference or isinstance(arg, c.Name):
            return False
        inside = _element_selectors(arg)
        if _is_any_touched(set().union(*map(walk.names_in, inside)), self._touched):
            return True
        loads = any(isinstance(node, c.Index) for part in inside for node in walk.nodes_in(part))
        return loads and self._may_store_elsewhere


def _element_selectors(place: c.Expr) -> list[c.Expr]:
    """What says which element a place is."""
    match place:
        case c.Member(base=base, arrow=False):
            return _element_selectors(base)
        case c.Index(base=base, index=index):
            return [index, *(_element_selectors(base) if isinstance(base, c.Index | c.Member) else [])]
        case c.Name():
            return []
        case c.Cast(value=value):
            return _element_selectors(value)
    return [place]


def _is_any_touched(names: set[str] | frozenset[str], touched: frozenset[str]) -> bool:
    """Whether one is touched, as a whole or as a field of an object: `v.x` is a variable `v_x` by now."""
    return any(
        name == other or name.startswith(f"{other}_") or other.startswith(f"{name}_")
        for name in names
        for other in touched
    )


def _is_value(arg: c.Expr) -> bool:
    return isinstance(arg, c.Unary) and (arg.op not in ("*", "++", "--") or arg.postfix)


def _same_shape(one: c.Type, other: c.Type) -> bool:
    """Whether they are one type but for qualifiers."""
    return (one.base, one.pointers) == (other.base, other.pointers)


def _same_kind(number: c.Number, type_: c.Type) -> bool:
    if isinstance(number.value, int):
        return type_.base in ("int", "bool") and not type_.pointers and number.text.lstrip("-").isdigit()
    return type_.base == "float" and number.text[-1:] in "fF" and not type_.pointers


def is_plain_place(arg: c.Expr) -> bool:
    """A variable, or an element of one, whose place does not change while the function runs."""
    return all(
        isinstance(node, c.Name | c.Number | c.Index | c.Member | c.Cast | c.Binary)
        or (isinstance(node, c.Unary) and node.op in ("&", "-"))
        for node in walk.nodes_in(arg)
    )


def _gives_back(function: c.Function, name: str) -> bool:
    last = function.body[-1] if function.body else None
    returns = [node for node in walk.statements_in(function.body) if isinstance(node, c.Return)]
    return len(returns) == 1 and last == returns[0] and returns[0].value == c.Name(name)


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


def rename_variables(stmts: Iterable[c.Stmt], names: Mapping[str, str]) -> tuple[c.Stmt, ...]:
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
            return _print_inserted_value(values[whole])
        return _print_inserted_value(values[plain]) + dot + rest if plain in values else whole

    return _WORD.sub(word, text)


def _print_inserted_value(value: c.Expr) -> str:
    return value.name if isinstance(value, c.Name) else f"({print_expr(value)})"


def _in_expr(expr: c.Expr, values: Mapping[str, c.Expr]) -> c.Expr:
    if not values:
        return expr

    def leaf(node: c.Expr) -> c.Expr:
        match node:
            case c.Name(name=name):
                return values.get(name, node)
            case c.Call(template_args=texts) if texts:
                changed = tuple([_strip_word_parens(replace_words(text, values)) for text in texts])
                return replace(node, template_args=changed)
            case c.Opaque(text=text, names=names) if any(name in values for name in names):
                return c.Opaque(replace_words(text, values), _names_after(names, values))
        return node

    return walk.map_expr(expr, leaf)


def _strip_word_parens(text: str) -> str:
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
                return self._substitute_simple(stmt, values)
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
                    lambda part: self._substitute_simple(part, inner),
                )

    def _alternative(self, stmt: c.Alternative, values: dict[str, c.Expr], depth: int) -> c.Stmt:
        """Its branches are no scopes: what either declares hides a variable from there on."""
        seen = [dict(values), dict(values)]
        then, otherwise = self.block(stmt.then, seen[0], depth), self.block(stmt.otherwise, seen[1], depth)
        now = dict(seen[0].items() & seen[1].items())
        if any(not branch.items() <= values.items() for branch in seen):
            raise c.Unreadable("a choice of the preprocessor declares a variable that must be renamed")
        condition = _in_expr(stmt.condition, values)
        values.clear()
        values.update(now)
        inside = self.block(stmt.inside, dict(now), depth)
        return replace(stmt, condition=condition, then=then, otherwise=otherwise, inside=inside)

    def _substitute_simple(
        self, stmt: c.Declare | c.Evaluate, values: dict[str, c.Expr]
    ) -> c.Declare | c.Evaluate:
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
        if not isinstance(last, c.Return) or last.value is None or function.result.reference:
            return None
        values: dict[str, c.Expr] = {}
        nodes = list(walk.nodes_in(last.value))
        decides = (
            isinstance(n, c.Ternary) or (isinstance(n, c.Binary) and n.op in ("&&", "||")) for n in nodes
        )
        sometimes = any(decides)
        changed = self._changes.of(last.value)
        addressed = (walk.root_variable(n.operand) for n in nodes if isinstance(n, c.Unary) and n.op == "&")
        pointed = {name for name, through in addressed if not through}
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
        known = self._type(value)
        integers = known is not None and known.base in INTEGERS and type_.base in INTEGERS
        if known is not None and integers and not known.pointers:
            size, signed = INTEGERS[known.base]
            into, into_signed = INTEGERS[type_.base]
            if size < into or (size == into and signed == into_signed):
                return value  # a negative index would be out of the object either way
        return self._as_type(value, type_)

    def _as_type(self, value: c.Expr, type_: c.Type) -> c.Expr:
        known = self._type(value)
        if type_.is_pointer or (known is not None and (known.base, known.pointers) == (type_.base, 0)):
            return value
        return c.Cast(c.Type(type_.base), value)

    def place(self, function: c.Function, args: tuple[c.Expr, ...], line: int, updated: str = "") -> Placed:
        """Raises Unreadable where it cannot be done.

        `updated`: the variable the result is assigned to. Where the function changes a copy of it and
        gives that back, the copy is left out.
        """
        self._check(function)
        body = self._shared_apart(function)
        handed = ArgumentPassing(
            function, args, self._changes, self._types, self._type, updated, self._aliased
        )
        fresh_names = {name: self.fresh(name) for name in walk.declared_in(body)}
        body = rename_variables(body, fresh_names)
        before: list[c.Stmt] = []
        values: dict[str, c.Expr] = {}
        for parameter, arg in zip(function.parameters, args, strict=True):
            if not parameter.name:
                continue
            if handed.goes_in_directly(parameter, arg):
                arg = self._fixed(arg, line, before) if handed.moves(parameter, arg) else arg
                values[parameter.name] = arg
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
        texts = (node for node in walk.nodes_in(function.body) if isinstance(node, c.Verbatim))
        if any(text.names & {"return", "goto"} for text in texts):
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

        if not names:
            return function.body
        return rename_variables(walk.map_statements(function.body, on_stmt=keep), names)

    def _home(self, function: c.Function, declare: c.Declare) -> str:
        key = (function.name, declare)
        if key not in self._homes:
            name = self._homes[key] = self.fresh(f"{_function_last_word(function.name)}_{declare.name}")
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
        name = self.fresh(f"{_function_last_word(function.name)}_result")
        result = replace(function.result, const=False, reference=False)
        if result.base == "auto":
            result = self._type_of_value(returns[0].value)
        self.results.add(name)
        return (c.Declare(result, name, line=line), *walk.without_exits(body, name)), c.Name(name)

    def _type_of_value(self, value: c.Expr | None) -> c.Type:
        found = None if value is None else self._type(value)
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
            declares = (n for n in walk.nodes_in(body) if isinstance(n, c.Declare))
            declared = (one.type for one in declares if one.name == value.name)
            known = next(declared, self._types.get(value.name))
            if known is not None and _same_shape(known, result):
                return body, value
        if result.base == "auto":
            result = self._type_of_value(value)
        name = self.fresh(f"{_function_last_word(function.name)}_result")
        const = result if result.is_pointer else replace(result, const=True)
        return (*body, c.Declare(const, name, value, line=last.line or line)), c.Name(name)


def _function_last_word(name: str) -> str:
    """The last word of a function's name: `vec<float, 4>::operator+#1` has none but operator."""
    plain = name.partition("#")[0].rpartition("::")[2]
    return re.sub(r"\W+", "", plain) or "value"


def _is_cheap(arg: c.Expr) -> bool:
    """So short and free of effects that it may be written twice."""
    nodes = list(walk.nodes_in(arg))
    return len(nodes) <= 2 and all(isinstance(node, c.Name | c.Number | c.Member | c.Cast) for node in nodes)


# -- What methods put in place leave behind, made plain: loops of one turn, arrays of one or by other names.
#
# uint4 data[1]; for (i = 0; i < 1; ++i) data[i] = p[i]; ... ((half *)data)[j]
#     ->  uint4 data; data = p[0]; ... ((half *)&data)[j]
# float4 data[2]; ... ((float *)data)[j]      where it is never used otherwise
#     ->  float data[8]; ... data[j]


_ZERO = c.Number("0", 0)
_FEW = 4  # turns of a loop that is written out


def simplify_statements(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """Names in the statements are each declared once."""
    body = walk.map_statements(fold_statements(body), on_stmt=_without_few_turns)
    return _with_plain_arrays(fold_statements(body))


def declared_where_set(body: tuple[c.Stmt, ...], names: set[str]) -> tuple[c.Stmt, ...]:
    """`float v_x; ... v_x = a;` as `... float v_x = a;`, where that is the first that is heard of it."""
    done: list[c.Stmt] = []
    stmts = [walk.map_blocks(stmt, lambda inside: declared_where_set(inside, names)) for stmt in body]
    later: dict[int, c.Stmt] = {}
    for at, stmt in enumerate(stmts):
        if at in later:
            done.append(later[at])
            continue
        if (
            isinstance(stmt, c.Declare)
            and stmt.name in names
            and not (stmt.init or stmt.dims or stmt.storage)
        ):
            use = next((n for n in range(at + 1, len(stmts)) if _mentions_name(stmts[n], stmt.name)), None)
            value = None if use is None else _value_set(stmts[use], stmt.name)
            if use is not None and value is not None and use not in later:
                later[use] = replace(stmt, init=value)
                continue
        done.append(stmt)
    return tuple(done)


def _mentions_name(stmt: c.Stmt, name: str) -> bool:
    return name in walk.names_in(stmt) or name in walk.declared_in(stmt)


def _value_set(stmt: c.Stmt, name: str) -> c.Expr | None:
    match stmt:
        case c.Evaluate(expr=c.Assign(op="=", target=c.Name(name=target), value=value)) if target == name:
            return None if name in walk.names_in(value) else value
    return None


def _without_few_turns(stmt: c.Stmt) -> c.Stmt | tuple[c.Stmt, ...]:
    if not isinstance(stmt, c.For) or len(stmt.init) != 1 or len(stmt.step) != 1:
        return stmt
    index, condition = stmt.init[0], stmt.condition
    if not isinstance(index, c.Declare) or index.init is None or not isinstance(condition, c.Binary):
        return stmt
    name = c.Name(index.name)
    start, stop = int_value(index.init), int_value(condition.right)
    counts = stmt.step[0] in (c.Unary("++", name), c.Unary("++", name, postfix=True))
    if start is None or stop is None or condition.op != "<" or condition.left != name or not counts:
        return stmt
    if stop != start + 1 and not (start == 0 < stop <= _FEW and _moves_vectors(stmt)):
        return stmt
    leaves = any(isinstance(node, c.Jump) for node in walk.nodes_in(stmt.body))
    if leaves or index.name in walk.assigned_in(stmt.body):
        return stmt
    if stop == start + 1:
        value = of_type(integer_literal(start), c.Type(index.type.base)) if start else _ZERO
        return walk.prepend_comments(substitute(stmt.body, {index.name: value}), stmt.comments)
    turns = (substitute(stmt.body, {index.name: integer_literal(turn)}) for turn in range(stop))
    return walk.prepend_comments(tuple(part for turn in turns for part in turn), stmt.comments)


def _moves_vectors(loop: c.For) -> bool:
    """A few vectors between an object and memory: `for (i ...) ((float4 *)to)[i] = data[i];`."""
    stmt = loop.body[0] if len(loop.body) == 1 and loop.unroll == 0 else None
    if not isinstance(stmt, c.Evaluate) or not isinstance(stmt.expr, c.Assign) or stmt.expr.op != "=":
        return False
    sides = (stmt.expr.target, stmt.expr.value)
    index = c.Name(loop.init[0].name) if isinstance(loop.init[0], c.Declare) else None
    indexed = all(isinstance(side, c.Index) and side.index == index for side in sides)
    return indexed and any(isinstance(side, c.Index) and isinstance(side.base, c.Cast) for side in sides)


def _with_plain_arrays(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    single: dict[str, str] = {}
    other: dict[str, tuple[str, int]] = {}
    for node in walk.nodes_in(body):
        if not isinstance(node, c.Declare) or len(node.dims) != 1 or node.storage or node.type.is_pointer:
            continue
        count = int_value(node.dims[0])
        uses = list(_array_uses(body, node.name))
        if count is None or node.init is not None or "" in uses:
            continue
        element, kinds = byte_size(node.type.base), set(uses)
        if count == 1:
            single[node.name] = node.type.base
        elif len(kinds) == 1 and element is not None:
            base = kinds.pop()
            size = byte_size(base)
            if base != "[]" and size is not None and (element * count) % size == 0:
                other[node.name] = base, element * count // size
    if not single and not other:
        return body

    def expr(node: c.Expr) -> c.Expr:
        match node:
            case c.Index(base=c.Name(name=name), index=c.Number(value=0)) if name in single:
                return c.Name(name)
            case c.Cast(type=type_, value=c.Name(name=name)) if name in single and type_.is_pointer:
                return c.Cast(type_, c.Unary("&", c.Name(name)))
            case c.Index(base=c.Cast(value=c.Name(name=name)), index=index) if name in other:
                return c.Index(c.Name(name), index)
        return node

    def declared(stmt: c.Stmt) -> c.Stmt:
        if isinstance(stmt, c.Declare) and stmt.name in single:
            return replace(stmt, dims=())
        if isinstance(stmt, c.Declare) and stmt.name in other:
            base, count = other[stmt.name]
            return replace(stmt, type=replace(stmt.type, base=base), dims=(integer_literal(count),))
        return stmt

    return walk.map_statements(body, lambda whole: walk.map_expr(whole, expr), declared)


def _array_uses(body: tuple[c.Stmt, ...], name: str) -> Iterator[str]:
    """How an array is used: "[]" by its index, the type through which it is indexed, "" in any other way.

    One of a single element may only be indexed by 0, or the element is not the array.
    """
    sizes: Mapping[str, int | None] = {
        n.name: int_value(n.dims[0]) for n in walk.nodes_in(body) if isinstance(n, c.Declare) and n.dims
    }
    seen: set[int] = set()
    for node in walk.nodes_in(body):
        match node:
            case c.Index(base=c.Name(name=used), index=index) if used == name:
                seen.add(id(node.base))
                yield "[]" if sizes.get(name) != 1 or index == _ZERO else ""
            case c.Index(base=c.Cast(type=type_, value=c.Name(name=used) as inner)) if used == name:
                seen.add(id(inner))
                yield type_.base if type_.pointers == 1 else ""
            case c.Name(name=used) if used == name and id(node) not in seen:
                yield ""
            case c.Opaque(names=names) | c.Verbatim(names=names) if name in names:
                yield ""
