"""How objects come to be: `Q q;`, `Q q(x);`, `Q q{x, y};`, `Q q[2] = {...}`, fields of objects that are made.

As the language has it: a constructor that is written sets all fields in the order in which they are declared,
by its list or by the values that stand behind them; an object without one is set field by field, what its
list leaves out to the value behind the field or to 0. Without a list a field without a value stays unset.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from tunesmith.csource import nodes as c
from tunesmith.csource.fold import fold, int_value
from tunesmith.csource.instances import Instance, RecordField
from tunesmith.csource.overloads import Overloads
from tunesmith.csource.parse_records import THIS
from tunesmith.csource.places import Places
from tunesmith.csource.records import BITS, Instances
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import integer

_FEW = 8  # elements that are set one by one
Before = list[c.Stmt]  # what must be done ahead of a statement
Items = tuple[c.Expr, ...] | None  # values of a list; None: there is none


class ObjectReader(Protocol):
    """Who reads expressions that objects are in."""

    def type(self, expr: c.Expr) -> c.Type | None: ...

    def expr(self, expr: c.Expr, before: Before, line: int) -> c.Expr: ...

    def converted(self, value: c.Expr, type_: c.Type, before: Before, line: int) -> c.Expr: ...


class Construction:
    def __init__(
        self,
        reader: ObjectReader,
        instances: Instances,
        overloads: Overloads,
        places: Places,
        types: dict[str, c.Type],
        fresh: Callable[[str], str],
    ) -> None:
        self._reader, self._instances, self._overloads = reader, instances, overloads
        self._places, self._types, self._fresh = places, types, fresh
        self.unset: set[str] = set()  # variables that hold what a function gives back: set by nobody else
        self.second: dict[str, c.Expr] = {}  # names of references -> the objects that they are
        self.made: set[str] = set()  # variables that are set right behind their declarations

    # -- variables ------------------------------------------------------------------------------------

    def declared(self, stmt: c.Declare, instance: Instance, items: Items) -> tuple[c.Stmt, ...]:
        """A variable, or an array, that is made from a list; `stmt` has no value."""
        if stmt.storage in ("shared", "dynamic shared"):
            if items is not None:
                raise c.Unreadable(f"the object '{stmt.name}' in shared memory is set by a list", stmt.line)
            return (stmt,)
        if stmt.storage == "static":
            raise c.Unreadable(f"the object '{stmt.name}' is not one of this call alone", stmt.line)
        if items is None and (stmt.name in self.unset or not self.needed(instance)):
            return (stmt,)
        extents = [int_value(fold(dim)) for dim in stmt.dims]
        if len(extents) > 1 or None in extents:
            reason = f"the objects of the array '{stmt.name}' are made by a constructor"
            raise c.Unreadable(f"{reason}, and how many there are is not known", stmt.line)
        stmt = replace(stmt, type=replace(stmt.type, const=False), storage="")
        self._types[stmt.name] = replace(stmt.type, pointers=len(extents))
        self.made.add(stmt.name)
        if instance.only is None:
            self._places.take_apart(stmt.name, instance, len(extents))
        before: Before = [stmt]
        count = extents[0] if extents and extents[0] is not None else 0
        items = None if items is None else tuple(self._lowered(item, before, stmt.line) for item in items)
        self._set(c.Name(stmt.name), stmt.type, count, items, before, stmt.line)
        return tuple(before)

    def needed(self, instance: Instance) -> bool:
        """Whether something happens when one is declared without a value."""
        if self._overloads.constructor(instance, (), self._reader.type, instance.record.line) is not None:
            return True
        return any(
            field.init is not None or (field.inner is not None and self.needed(field.inner))
            for field in instance.fields
        )

    def field(self, base: c.Expr, name: str, items: Items, before: Before, line: int) -> None:
        """A field of an object that is being made."""
        instance = self._instances.of(self._reader.type(base))
        found = instance.place(name) if instance is not None else None
        if instance is None or found is None:
            raise c.Unreadable(f"what the field {name} is made of is not known", line)
        field = found[0]
        items = None if items is None else tuple(self._lowered(item, before, line) for item in items)
        place = self._places.field(base, instance, name, line)
        self._set(place, field.type, field.count, items, before, line)

    def _lowered(self, item: c.Expr, before: Before, line: int) -> c.Expr:
        return self._reader.expr(item, before, line)

    # -- values ---------------------------------------------------------------------------------------

    def value(
        self, instance: Instance, args: tuple[c.Expr, ...], before: Before, line: int, implicit: bool = False
    ) -> c.Expr:
        """An object by itself: an expression, or a variable that is made ahead of the statement."""
        if len(args) == 1 and self._instances.of(self._reader.type(args[0])) is instance:
            return args[0]
        found = self._overloads.constructor(instance, args, self._reader.type, line, implicit)
        only = instance.only
        if found is not None and self._overloads.made[found[0]].result != c.Type("void"):
            return c.Call(*found)  # an expression that makes it
        if found is None and only is not None and len(args) <= 1:
            return c.Cast(c.Type(instance.name, space=BITS), self._only(instance, only, args, before, line))
        name = "".join(sign if sign.isalnum() else " " for sign in instance.name).split()[0]
        made = c.Declare(c.Type(instance.name), self._fresh(f"{name}_made"), line=line)
        self._types[made.name] = made.type
        self.made.add(made.name)
        if only is None:
            self._places.take_apart(made.name, instance)
        before.append(made)
        self._set(c.Name(made.name), made.type, 0, args, before, line)
        return c.Name(made.name)

    def _only(
        self, instance: Instance, only: RecordField, args: tuple[c.Expr, ...], before: Before, line: int
    ) -> c.Expr:
        """The value of the one field of an object without constructors."""
        items = args
        if not args and isinstance(default := self._instances.default(instance, only), c.Braces):
            items = tuple(self._lowered(item, before, line) for item in default.items)
        if only.inner is not None:
            return self.value(only.inner, items, before, line)
        value = items[0] if items else integer(0)
        own = self._instances.of(self._reader.type(value))
        return value if own is None else self._reader.converted(value, only.type, before, line)

    # -- setting what is there --------------------------------------------------------------------------

    def _set(self, place: c.Expr, type_: c.Type, count: int, items: Items, before: Before, line: int) -> None:
        """`items` are read by now. None: only what happens without a list."""
        instance = self._instances.of(type_)
        if count:
            self._elements(place, type_, count, items, before, line)
        elif instance is not None:
            self._object(place, instance, items, before, line)
        elif items is not None:
            if len(items) > 1:
                raise c.Unreadable("a number is set to several values", line)
            self._assign(place, items[0] if items else integer(0), type_, before, line)

    def _assign(self, place: c.Expr, value: c.Expr, type_: c.Type, before: Before, line: int) -> None:
        while isinstance(value, c.Braces) and value.type is None and len(value.items) <= 1:
            value = value.items[0] if value.items else integer(0)
        own = self._instances.of(self._reader.type(value))
        value = value if own is None else self._reader.converted(value, type_, before, line)
        before.append(c.Evaluate(c.Assign("=", place, value), line=line))

    def _elements(
        self, place: c.Expr, type_: c.Type, count: int, items: Items, before: Before, line: int
    ) -> None:
        if items is None:
            instance = self._instances.of(type_)
            if instance is None or not self.needed(instance):
                return
        given = deque(items or ())
        at = 0
        while given and at < count:
            self._next(c.Index(place, integer(at)), type_, 0, given, before, line)
            at += 1
        if given:
            raise c.Unreadable("an array is set by a list that is too long", line)
        rest: Items = None if items is None else ()

        def others(index: c.Expr) -> tuple[c.Stmt, ...]:
            inside: Before = []
            self._set(c.Index(place, index), type_, 0, rest, inside, line)
            return tuple(inside)

        if count - at > _FEW:
            before.append(self._places.loop(at, count, others, line))
            return
        for index in range(at, count):
            before.extend(others(integer(index)))

    def _object(self, place: c.Expr, instance: Instance, items: Items, before: Before, line: int) -> None:
        of = self._reader.type
        if items is not None and len(items) == 1 and self._instances.of(of(items[0])) is instance:
            before.append(c.Evaluate(c.Assign("=", place, items[0]), line=line))
            return
        found = self._overloads.constructor(instance, items or (), of, line)
        if found is not None:
            name, args = found
            if self._overloads.made[name].result != c.Type("void"):
                before.append(c.Evaluate(c.Assign("=", place, c.Call(name, args)), line=line))
            else:
                before.append(c.Evaluate(c.Call(name, (place, *args)), line=line))
            return
        if instance.record.is_union and items:
            raise c.Unreadable(f"{instance.name} is a union, set by a list", line)
        only = instance.only
        if only is not None and items is not None and len(items) <= 1:
            value = self._only(instance, only, items, before, line)
            made = c.Cast(c.Type(instance.name, space=BITS), value)
            before.append(c.Evaluate(c.Assign("=", place, made), line=line))
            return
        given = deque(items or ())
        self._fields(place, instance, None if items is None else given, before, line)
        if given:
            raise c.Unreadable(f"{instance.name} is set by a list that is too long", line)

    def _fields(
        self, place: c.Expr, instance: Instance, given: deque[c.Expr] | None, before: Before, line: int
    ) -> None:
        """Field by field from what is left of a list; without one, the values behind the fields."""
        storage = instance.storage
        for field in instance.fields if storage is None else (storage,):
            where = self._places.field(place, instance, field.name, line)
            default = self._instances.default(instance, field)
            behind: Items = None
            if default is not None and not given:
                own = default.items if isinstance(default, c.Braces) else (default,)
                behind = tuple(self._lowered(substitute(item, {THIS: place}), before, line) for item in own)
            if given:
                self._next(where, field.type, field.count, given, before, line)
            else:
                empty: Items = None if given is None else ()
                self._set(where, field.type, field.count, empty if behind is None else behind, before, line)

    def _next(
        self,
        place: c.Expr,
        type_: c.Type,
        count: int,
        given: deque[c.Expr],
        before: Before,
        line: int,
    ) -> None:
        """What comes next in a list; it may leave out braces around arrays and plain objects."""
        first, instance = given[0], self._instances.of(type_)
        if isinstance(first, c.Braces) and first.type is None:
            given.popleft()
            self._set(place, type_, count, first.items, before, line)
        elif count:
            at = 0
            while given and at < count:
                self._next(c.Index(place, integer(at)), type_, 0, given, before, line)
                at += 1
            for index in range(at, count):
                self._set(c.Index(place, integer(index)), type_, 0, (), before, line)
        elif instance is None or instance.only is not None or self._is_made_of(instance, first):
            self._set(place, type_, 0, (given.popleft(),), before, line)
        else:
            self._fields(place, instance, given, before, line)

    def _is_made_of(self, instance: Instance, value: c.Expr) -> bool:
        """Whether one value makes the object: it is one, or there are constructors."""
        own = instance.record.name.rpartition("::")[2]
        is_one = self._instances.of(self._reader.type(value)) is instance
        return is_one or any(method.name == own for method in instance.record.methods)

    # -- second names ---------------------------------------------------------------------------------

    def referred(self, stmt: c.Declare, init: c.Expr, before: Before) -> tuple[c.Stmt, ...]:
        """`P &r = p[k]`: another name for an object that is a variable, or a variable for one made here."""
        value, fresh = self._lowered(init, before, stmt.line), replace(stmt.type, reference=False)
        match value:
            case c.Name(name=name) if name in self._places.parts:
                self.second[stmt.name] = value
                return ()
            case c.Index(base=c.Name(name=name), index=index) if name in self._places.parts:
                kept, at = self._index(index, stmt.name, stmt.line)
                self.second[stmt.name] = replace(value, index=at)
                return kept
            case c.Call() | c.Braces() | c.Cast() if stmt.type.const:
                if not isinstance(value, c.Call) or self._is_given(value):
                    self._types[stmt.name] = fresh
                    done = self._reader.converted(value, fresh, before, stmt.line)
                    return (replace(stmt, type=fresh, init=done),)
        raise c.Unreadable(f"'{stmt.name}' is another name for an object", stmt.line)

    def _index(self, index: c.Expr, name: str, line: int) -> tuple[tuple[c.Stmt, ...], c.Expr]:
        """An index as it is now: the number, or a variable that keeps it."""
        own = self._reader.type(index)
        if isinstance(index, c.Number):
            return (), index
        if own is None or own.is_pointer:
            raise c.Unreadable(f"'{name}' is another name for an object", line)
        kept = self._fresh(f"{name}_index")
        self._types[kept] = c.Type(own.base, const=True)
        return (c.Declare(self._types[kept], kept, index, line=line),), c.Name(kept)

    def kept(self, value: c.Expr, instance: Instance, before: Before, line: int) -> c.Expr:
        """An object that a function gives back, in a variable; any other as it is."""
        if not isinstance(value, c.Call) or instance.only is not None or not self._is_given(value):
            return value
        name = self._fresh("given")
        self._types[name] = c.Type(instance.name)
        self._places.take_apart(name, instance)
        before.append(c.Declare(c.Type(instance.name), name, value, line=line))
        return c.Name(name)

    def _is_given(self, call: c.Call) -> bool:
        """Whether what a function of the file gives back is no reference."""
        made = self._overloads.made.get(call.function)
        functions = self._overloads.source.functions
        own = [made] if made is not None else [f for f in functions if f.name == call.function]
        return bool(own) and not any(f.result.reference for f in own)
