"""Methods that do one thing to an object that is const and another to one that is not: which one is called.

What is const is told by the text of a function: its parameters, the object of a const method, its variables.
Once the function is put in place, the caller's object, which may be changed, stands there. So calls are
marked before: `v.f()` of a const v is `v.f#const()`; where it is not told, `v.f#unclear()`, which is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk

CONST, UNCLEAR = "#const", "#unclear"


def differing(records: Iterable[c.Record]) -> frozenset[str]:
    """Names of methods of which a record has two that differ in more than `const`."""
    found: set[str] = set()
    for record in records:
        bodies: dict[tuple[str, tuple[c.Type, ...]], set[tuple[c.Stmt, ...]]] = {}
        for method in record.methods:
            types = tuple(replace(p.type, const=False) for p in method.parameters)
            plain = walk.map_types(method.body, lambda type_: replace(type_, const=False))
            bodies.setdefault((method.name, types), set()).add(plain)
        found |= {name for (name, _), each in bodies.items() if len(each) > 1}
    return frozenset(found)


def marked(function: c.Function, names: frozenset[str], source: c.Source) -> c.Function:
    """The function with calls of these methods marked."""
    return _ConstMarking(function, names, source).done() if names else function


class _ConstMarking:
    def __init__(self, function: c.Function, names: frozenset[str], source: c.Source) -> None:
        self._function, self._names = function, names
        records = source.records
        self._records = {record.name for record in records}
        self._open = {f.name for f in source.functions if _takes_either(f)}
        fields = [field for record in records for field in record.fields]
        self._special = {f.name for f in fields if f.type.const or f.type.is_pointer}
        self._arrays = {f.name for f in fields if f.is_array}
        self._types: dict[str, list[c.Type]] = {}
        for parameter in function.parameters:
            own = self._types.setdefault(parameter.name, [])
            own.append(parameter.type)
            if (
                is_lambda(function.name) and parameter.type.reference
            ):  # what it captures is as const as it was
                own.append(replace(parameter.type, const=not parameter.type.const))
        for node in walk.nodes_in(function.body):
            if isinstance(node, c.Declare):
                type_ = replace(node.type, pointers=node.type.pointers + (len(node.dims) or node.is_array))
                self._types.setdefault(node.name, []).append(type_)
                if type_.reference and type_.base == "auto":  # as const as what it refers to
                    self._types[node.name].append(replace(type_, const=not type_.const))

    def done(self) -> c.Function:
        for call in walk.calls_in(self._function.body):
            if call.of is not None or not (call.function in self._open or is_lambda(call.function)):
                continue
            objects = [arg for arg in call.args if self._may_be_object(arg)]
            if any(self._of(arg) is not False for arg in objects):
                name = "a lambda" if is_lambda(call.function) else call.function
                raise c.Unreadable(f"whether an object that {name} takes is const is not followed")
        return replace(self._function, body=walk.map_nodes(self._function.body, self._node))

    def _node(self, node: c.Expr) -> c.Expr:
        match node:
            case c.Call(function=name, of=of) if of is not None and name in self._names:
                return replace(node, function=name + self._mark(of))
            case c.Index(base=base, index=index) if "operator[]" in self._names:
                mark = "" if self._is_array(base) else self._mark(base)
                return c.Call(f"operator[]{mark}", (index,), of=base) if mark else node
        return node

    def _is_array(self, base: c.Expr) -> bool:
        types = self._types.get(base.name, []) if isinstance(base, c.Name) else []
        return bool(types) and all(type_.is_pointer for type_ in types)

    def _may_be_object(self, arg: c.Expr) -> bool:
        name = walk.root(arg)[0] if isinstance(arg, c.Name | c.Member | c.Index) else None
        bases = {type_.base.split("<")[0] for type_ in self._types.get(name or "", ())}
        return name is not None and (not bases or bool(bases & (self._records | {"auto"})))

    def _mark(self, of: c.Expr) -> str:
        known = self._of(of)
        return UNCLEAR if known is None else CONST if known else ""

    def _of(self, place: c.Expr) -> bool | None:
        """Whether an object is const; None: not told."""
        match place:
            case c.Name(name=name):
                known = {type_.const for type_ in self._types.get(name, ())}
                return known.pop() if len(known) == 1 else None
            case c.Member(base=base, field=field):
                return None if field in self._special else self._of(base)
            case c.Index(base=c.Name(name=name) as base):
                if any(type_.base == "auto" for type_ in self._types.get(name, ())):
                    return None  # a pointer to what may be const
                return self._of(base)
            case c.Index(base=c.Member(field=field) as base) if field in self._arrays:
                return self._of(base)
            case c.Braces():
                return False
            case c.Cast(type=type_) if not type_.reference and not type_.is_pointer:
                return False
        return None


def is_lambda(name: str) -> bool:
    return name.startswith("lambda_")


def _takes_either(function: c.Function) -> bool:
    """A template whose argument may be a reference to what is const and to what is not."""
    own = {parameter.name for parameter in function.template} | {"auto"}
    return any(p.type.reference and not p.type.const and p.type.base in own for p in function.parameters)
