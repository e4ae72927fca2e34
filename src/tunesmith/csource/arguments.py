"""How the arguments of a call go into the body that is put in its place: as they stand, or by a copy.

A parameter by value is a copy, unless nothing that runs can tell the two apart. One by reference is another
name for its place; a `const` one is read once, ahead of the body, only where the body stores nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.changes import Changed, Changes
from tunesmith.csource.types import INTEGERS, Types

_NUMBERS = frozenset({*INTEGERS, "float", "double"})


@dataclass(frozen=True)
class Handed:
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
    def _stores(self) -> bool:
        return self.known.stores(self.function)

    @cached_property
    def _touched(self) -> frozenset[str]:
        """Variables of the caller that may change while the function runs."""
        found = set(walk.assigned_in(c.Braces(self.args)))
        if self._stores:
            found |= self.aliased
        found |= self._changed.whole - {parameter.name for parameter in self.function.parameters}
        for parameter, arg in self._pairs:
            if parameter.type.reference and not parameter.type.const:
                found |= walk.names_in(arg) if (root := walk.root(arg)[0]) is None else {root}
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
                raise c.Unreadable(
                    f"its argument {parameter.name} is changed through a place that is computed"
                )
            return True
        if not parameter.type.reference and self.changes(parameter):
            return self._is_its_own_copy(parameter, arg)
        if isinstance(arg, c.Number):
            return _same_kind(arg, parameter.type)
        if not isinstance(arg, c.Name):
            return parameter.type.reference and self._is_another_name(parameter, arg)
        if arg.name.partition(".")[0] in c.INDICES:
            return parameter.type.base in ("int", "unsigned int")
        own = self.types.get(arg.name)
        if own is None or (own.base, own.pointers) != (parameter.type.base, parameter.type.pointers):
            if parameter.type.reference and own is None and self._stores:
                raise c.Unreadable(f"whether its argument {parameter.name} stays as it is cannot be told")
            return False
        in_place = any(not p.type.reference and self.changes(p) and a == arg for p, a in self._pairs)
        if parameter.type.reference:
            return not in_place  # another name for the variable: it sees what becomes of it
        # A name goes in only if nothing the function does can change what it stands for.
        return not in_place and not _among({arg.name}, self._touched)

    def _is_its_own_copy(self, parameter: c.Parameter, arg: c.Expr) -> bool:
        """`v = f(v)`, where f changes its copy of v and gives that back."""
        own = self.types.get(arg.name) if isinstance(arg, c.Name) else None
        if self.updated in self.aliased and self._stores:
            return False
        if own is None or arg != c.Name(self.updated) or not _gives_back(self.function, parameter.name):
            return False
        if (own.base, own.pointers) != (parameter.type.base, parameter.type.pointers):
            return False
        others = [(p, a) for p, a in self._pairs if p is not parameter]
        named = [a for p, a in others if p.type.reference and not (p.type.const and a == arg)]
        if _among({self.updated}, walk.names_in(c.Braces(tuple(named)))):
            return False
        return self.updated not in walk.assigned_in(c.Braces(tuple(a for _, a in others)))

    def _is_another_name(self, parameter: c.Parameter, arg: c.Expr) -> bool:
        """A const reference to an element that may change meanwhile; False: what is read once is the same."""
        if not isinstance(arg, c.Index | c.Member | c.Ternary | c.Assign | c.Unary) or _is_value(arg):
            return False
        own = self.type_of(arg)
        if own is not None and (own.base, own.pointers) != (parameter.type.base, parameter.type.pointers):
            return False  # made for the call
        if not self._stores or not self.known.stores(self.function, apart=self._apart_from(arg)):
            return False
        if own is None or not is_plain_place(arg):
            raise c.Unreadable(f"whether its argument {parameter.name} stays as it is cannot be told")
        return True

    def _apart_from(self, element: c.Expr) -> frozenset[str]:
        """Parameters that are other names for variables which are numbers: no element is one of them."""
        named = walk.names_in(element)
        own = [(p.name, self.types.get(a.name), a.name) for p, a in self._pairs if isinstance(a, c.Name)]
        return frozenset(
            parameter
            for parameter, type_, variable in own
            if type_ is not None
            and not type_.is_pointer
            and type_.base in _NUMBERS
            and not _among({variable}, named | self.aliased)
        )

    def moves(self, parameter: c.Parameter, arg: c.Expr) -> bool:
        """Whether the text of a reference's place may come to another place while the function runs."""
        if not parameter.type.reference or isinstance(arg, c.Name):
            return False
        inside = _which(arg)
        if _among(set().union(*map(walk.names_in, inside)), self._touched):
            return True
        loads = any(isinstance(node, c.Index) for part in inside for node in walk.nodes_in(part))
        return loads and self._stores


def _which(place: c.Expr) -> list[c.Expr]:
    """What says which element a place is."""
    match place:
        case c.Member(base=base, arrow=False):
            return _which(base)
        case c.Index(base=base, index=index):
            return [index, *(_which(base) if isinstance(base, c.Index | c.Member) else [])]
        case c.Name():
            return []
        case c.Cast(value=value):
            return _which(value)
    return [place]


def _among(names: set[str] | frozenset[str], touched: frozenset[str]) -> bool:
    """Whether one is touched, as a whole or as a field of an object: `v.x` is a variable `v_x` by now."""
    return any(
        name == other or name.startswith(f"{other}_") or other.startswith(f"{name}_")
        for name in names
        for other in touched
    )


def _is_value(arg: c.Expr) -> bool:
    return isinstance(arg, c.Unary) and (arg.op not in ("*", "++", "--") or arg.postfix)


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
