"""What a body may change of the variables that it names: by assignment, by reference, by a method, in part.

`walk.assigned_in` sees assignments alone. Here a call counts as well, by the declarations of all functions
and methods of that name; a name that no table knows may change whatever it is handed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import Effects, effects_of, function_effects, is_function

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
            for place in self._targets(node):
                found |= set(self._places(place, False))
            for place in self._operated(node):
                found |= set(self._places(place, True))
            if isinstance(node, c.Opaque | c.Verbatim):
                found |= {(name, False) for name in node.names}
        found |= {*self._decayed(nodes), *self._addressed(nodes)}
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
        own = {d.name for d in declared if not d.type.reference and (d.is_array or not d.type.is_pointer)}
        own -= {d.name for d in declared if d.storage}
        parameters = {p.name: p for p in function.parameters}
        copies = {n for n, p in parameters.items() if not p.type.reference and not p.type.is_pointer}
        copies |= apart
        changed = self.of(body)
        pointers = {n for n, p in parameters.items() if not p.type.reference} | {d.name for d in declared}
        if (changed.whole - own - copies - pointers) or (changed.through - own - copies):
            return True
        if any(d.storage for d in declared):
            return True
        seen |= {function.name}
        for node in walk.nodes_in(body):
            for name, kind in _called(node):
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
        found = {name for name, through in self._addressed(nodes) if not through}
        for node in nodes:
            if isinstance(node, c.Declare) and node.type.reference and node.init is not None:
                found |= {name for name, through in self._places(node.init, False) if not through}
        return frozenset(found)

    # -- what is written --------------------------------------------------------------------------------

    def _targets(self, node: c.Expr | c.Stmt) -> Iterator[c.Expr]:
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

    def _operated(self, node: c.Expr | c.Stmt) -> Iterator[c.Expr]:
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
            yield from (
                arg for arg, p in zip(operands, function.parameters, strict=False) if _is_open(p.type)
            )

    def _found(self, name: str, kind: str) -> list[c.Function]:
        last = name.partition("#")[0].rpartition("::")[2]
        if kind == "method":
            return self._methods.get(last, [])
        own = self._functions.get(name, [])
        return own or self._methods.get(last, [])  # a constructor, a static method, one of this object

    def _may_change(self, name: str, known: list[c.Function], at: int, of: c.Expr | None) -> bool:
        for function in known:
            first = int(bool(function.parameters) and function.parameters[0].name == "this")
            types = [parameter.type for parameter in function.parameters][first:]
            if at >= len(types) or _is_open(types[at]):
                return True
        if known:
            return False
        return of is not None or self._is_unknown(name) or _assigns(name)

    def _is_unknown(self, name: str) -> bool:
        return not is_function(name) and bool(effects_of(c.Call(name))) and name not in self._records

    def _changes_object(self, method: c.Function) -> bool:
        """Its fields are names that it does not declare; whoever calls it may still write what it returns."""
        first = method.parameters[0].type if method.parameters else None
        if first is None or method.parameters[0].name != "this" or first.const:
            return False
        if method.name not in self._known:
            self._known[method.name] = True  # as long as it is not known: methods that call each other
            self._known[method.name] = any(
                self._changes_this(m) for m in self._methods[method.name] if not _is_const(m)
            )
        return self._known[method.name]

    def _changes_this(self, method: c.Function) -> bool:
        own = {p.name for p in method.parameters if p.name != "this"} | set(walk.declared_in(method.body))
        if self.of(method.body).all - own:
            return True
        calls = [call.function for call in walk.calls_in(method.body) if call.of is None]
        return any(self._changes_object(m) for name in calls for m in self._methods.get(name, ()))

    # -- where it lies ----------------------------------------------------------------------------------

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

    def _addressed(self, nodes: Iterable[c.Expr | c.Stmt]) -> Iterator[tuple[str, bool]]:
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

    def _decayed(self, nodes: Iterable[c.Expr | c.Stmt]) -> Iterator[tuple[str, bool]]:
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


def _assigns(name: str) -> bool:
    return is_function(name) and bool(function_effects(name) & Effects.ASSIGNS)


def _is_const(method: c.Function) -> bool:
    return bool(method.parameters) and method.parameters[0].type.const


def _called(node: c.Expr | c.Stmt) -> Iterator[tuple[str, str]]:
    match node:
        case c.Call(function=name, of=of):
            yield name, "method" if of is not None else "function"
        case c.Binary(op=op) | c.Unary(op=op) | c.Assign(op=op):
            yield f"operator{op}", "function"
        case c.Index():
            yield "operator[]", "method"
