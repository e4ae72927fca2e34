"""Records in a function's statements: methods, operators, constructors and conversions as calls of functions;
then variables of a record as variables of its fields.

A record with one field is that field: `bf16 x` becomes `unsigned short x`. Any other is taken apart: `vec v`
with `T data[8]` becomes `T v_data[8]`. Pointers to records become pointers to their elements. Between the
steps calls are put in place (`inline`), so that what a method does is seen as statements.

Long, because the life of an object is one subject: made, used, copied.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import effects_of, is_function
from tunesmith.source.fold import fold_expr, int_value
from tunesmith.source.reader.overloads import Overloads
from tunesmith.source.reader.parse import THIS
from tunesmith.source.reader.records import (
    BITS,
    CONSTRUCTED,
    Instance,
    Instances,
    RecordField,
    find_const_overloads,
)
from tunesmith.source.reader.templates import has_open_result, resolve_call
from tunesmith.source.substitution import declared_where_set, substitute
from tunesmith.source.types import INTEGERS, integer_literal, type_of

# -- Where the fields of an object lie: in variables of their own, or in memory behind a pointer.


_Type = Callable[[c.Expr], c.Type | None]
Sets = tuple[c.Stmt, ...]  # statements that set something


class Places:
    def __init__(
        self, instances: Instances, types: dict[str, c.Type], type_of: _Type, fresh: Callable[[str], str]
    ) -> None:
        self.parts: set[str] = set()  # variables that are several by now
        self._named: dict[tuple[str, str], str] = {}  # variable and field -> what holds it
        self._fresh = fresh
        self._flat: dict[str, c.Type] = {}  # pointers to elements -> what the source says they point to
        self._instances, self._types, self._type = instances, types, type_of

    def name(self, name: c.Name) -> c.Expr:
        known = self._flat.get(name.name)
        return name if known is None else c.Cast(known, name)

    def _pointed(self, type_: c.Type | None) -> Instance | None:
        """The record that a pointer points to, unless it is no more than its only field."""
        if type_ is None or type_.pointers != 1:
            return None
        instance = self._instances.named(type_.base)
        return None if instance is None or instance.only is not None else instance

    def flat_type(self, name: str, type_: c.Type) -> c.Type:
        """The type of a pointer variable here: elements in place of records."""
        instance = self._pointed(type_)
        if instance is None:
            return type_
        element = instance.element
        if element is None:
            fault = f"'{name}' points to a {instance.name}, whose fields are of several types or lie apart"
            raise c.Unreadable(fault)
        done = replace(type_, base=element[0])
        self._flat[name] = c.Type(type_.base, 1, type_.const)
        self._types[name] = done
        return done

    def pointer_variable(self, stmt: c.Declare) -> c.Declare:
        instance = self._pointed(self._instances.type(stmt.type))
        if instance is None or stmt.dims:
            return stmt
        init = None if stmt.init is None else self.flat(stmt.init, instance)
        return replace(stmt, type=self.flat_type(stmt.name, self._instances.type(stmt.type)), init=init)

    def pointer_cast(self, cast: c.Cast, line: int) -> c.Expr:
        """A cast of a pointer to records, or of an object's address, to that of other things."""
        value = cast.value
        if isinstance(value, c.Unary) and value.op == "&":
            instance = self._instances.of(self._type(value.operand))
            if instance is not None and instance.only is None:
                first = self._all_of(value.operand, instance, line)
                return c.Cast(cast.type, first)
        pointed = self._pointed(self._type(value))
        if pointed is not None and self._pointed(cast.type) is None:
            return c.Cast(cast.type, self.flat(value, pointed))
        return cast

    def _all_of(self, place: c.Expr, instance: Instance, line: int) -> c.Expr:
        field = instance.storage or (instance.fields[0] if len(instance.fields) == 1 else None)
        if field is None:
            raise c.Unreadable(f"the address of a {instance.name} is taken", line)
        inside = self.field(place, instance, field.name, line)
        return inside if field.count else c.Unary("&", inside)

    def flat(self, pointer: c.Expr, instance: Instance) -> c.Expr:
        """A pointer to records as one to their elements."""
        element = instance.element
        if element is None:
            raise c.Unreadable(f"the fields of {instance.name} are of several types or lie apart")
        base, count = element
        match pointer:
            case c.Cast(type=type_, value=value) if self._pointed(type_) is instance:
                source = self._type(value)
                if self._pointed(source) is instance:
                    return self.flat(value, instance)
                same = source is not None and (source.base, source.pointers) == (base, 1)
                return value if same else c.Cast(c.Type(base, 1, type_.const), value)
            case c.Binary(op="+" | "-" as op, left=left, right=right):
                if self._pointed(self._type(left)) is not instance:
                    left, right = right, left
                return c.Binary(op, self.flat(left, instance), _scale_index(right, count))
            case c.Unary(op="&", operand=c.Index(base=inner, index=index)):
                return c.Binary("+", self.flat(inner, instance), _scale_index(index, count))
        return c.Cast(c.Type(base, 1), pointer)

    def field(self, place: c.Expr, instance: Instance, name: str, line: int) -> c.Expr:
        found = instance.place(name)
        if found is None:
            raise c.Unreadable(f"{instance.name} has no field {name} that is known", line)
        field, before = found
        if instance.only is not None:
            return c.Cast(replace(field.type, space=BITS), place)
        storage = instance.storage
        if storage is not None and field != storage:
            whole = self.field(place, instance, storage.name, line)
            address = whole if storage.count else c.Unary("&", whole)
            pointer = c.Cast(c.Type(field.type.base, 1), address)
            return pointer if field.count else c.Index(pointer, integer_literal(0))
        part = self._part(place, name)
        if part is not None:
            return part
        match place:
            case c.Index(base=base, index=index) if self._pointed(self._type(base)) is instance:
                flat, element = self.flat(base, instance), instance.element
                assert element is not None, "or it would not be flat"
                start = _offset_index(_scale_index(index, element[1]), before)
                if field.is_object:
                    inner = c.Cast(c.Type(field.type.base, 1), c.Binary("+", flat, start))
                    return inner if field.count else c.Index(inner, integer_literal(0))
                return c.Binary("+", flat, start) if field.count else c.Index(flat, start)
        raise c.Unreadable(f"where the object of {instance.name}::{name} lies is not followed", line)

    def _part(self, place: c.Expr, field: str) -> c.Expr | None:
        """The field of an object that is a variable, or an element of one."""
        match place:
            case c.Name(name=variable) if variable in self.parts:
                return c.Name(self._named[variable, field])
            case c.Index(base=base, index=index):
                inner = self._part(base, field)
                return None if inner is None else c.Index(inner, index)
        return None

    def take_apart(self, name: str, instance: Instance, dims: int = 0) -> None:
        """From here on a variable, or an array of `dims` dimensions, is one variable for each field."""
        if name in self.parts:
            return
        self.parts.add(name)
        self._types[name] = c.Type(instance.name, dims)
        storage = instance.storage
        for field in instance.fields if storage is None else (storage,):
            part = self._named[name, field.name] = self._fresh(f"{name}_{field.name}")
            depth = dims + bool(field.count)
            self._types[part] = replace(field.type, pointers=field.type.pointers + depth)
            if field.inner is not None and field.is_object:
                self.take_apart(part, field.inner, depth)

    def names_of(self, variables: set[str]) -> set[str]:
        """The variables that hold the fields of these, and of objects in them."""
        inside = {part for (name, _), part in self._named.items() if name in variables}
        return inside | self.names_of(inside) if inside else inside

    def split(self, stmt: c.Declare, instance: Instance) -> tuple[c.Stmt, ...]:
        """A variable for each field."""
        if stmt.type.reference or stmt.storage in ("static", "dynamic shared"):
            raise c.Unreadable(f"the object '{stmt.name}' is not one of this call alone", stmt.line)
        self.take_apart(stmt.name, instance, len(stmt.dims))
        storage = instance.storage
        done: list[c.Stmt] = []
        for field in instance.fields if storage is None else (storage,):
            part = c.Declare(
                replace(field.type, const=False),
                self._named[stmt.name, field.name],
                None,
                (*stmt.dims, *((integer_literal(field.count),) if field.count else ())),
                stmt.storage,
                stmt.align,
                line=stmt.line,
                comments=stmt.comments if not done else (),
            )
            inner = field.inner if field.is_object else None
            done += (part,) if inner is None else self.split(part, inner)
        return tuple(done)

    def copied(self, target: c.Expr, value: c.Expr, instance: Instance, line: int) -> tuple[c.Stmt, ...]:
        """Field by field; what is copied onto itself is left out."""
        if target == value:
            return ()
        if self._moves(target, value):
            raise c.Unreadable("an object is copied from or to a place that the copy itself changes", line)
        storage = instance.storage
        done: list[c.Stmt] = []
        for field in instance.fields if storage is None else (storage,):
            left, right = (self.field(part, instance, field.name, line) for part in (target, value))
            if not field.count:
                done += self._set(left, right, field, line)
                continue

            def set_element(
                at: c.Expr, to: c.Expr = left, of: c.Expr = right, field: RecordField = field
            ) -> Sets:
                return self._set(c.Index(to, at), c.Index(of, at), field, line)

            done.append(self.loop(0, field.count, set_element, line))
        return tuple(done)

    def _moves(self, target: c.Expr, value: c.Expr) -> bool:
        """Whether which objects these are may change once the first field is set."""
        name = walk.root_variable(target)[0]
        variables = set() if name is None else {name, *self.names_of({name})}
        indices = [n.index for one in (target, value) for n in walk.nodes_in(one) if isinstance(n, c.Index)]
        return any(walk.names_in(index) & variables for index in indices)

    def _set(self, left: c.Expr, right: c.Expr, field: RecordField, line: int) -> tuple[c.Stmt, ...]:
        if field.inner is not None and field.is_object:
            return self.copied(left, right, field.inner, line)
        return (c.Evaluate(c.Assign("=", left, right), line=line),)

    def loop(self, start: int, stop: int, body: Callable[[c.Expr], Sets], line: int) -> c.Stmt:
        """The same for elements from `start` to before `stop`."""
        index = self._fresh("part")
        self._types[index] = c.Type("int")
        return c.For(
            (c.Declare(c.Type("int"), index, integer_literal(start), line=line),),
            c.Binary("<", c.Name(index), integer_literal(stop)),
            (c.Unary("++", c.Name(index)),),
            body(c.Name(index)),
            unroll=0,
            line=line,
        )


def _scale_index(index: c.Expr, count: int) -> c.Expr:
    return index if count == 1 else fold_expr(c.Binary("*", index, integer_literal(count)))


def _offset_index(index: c.Expr, count: int) -> c.Expr:
    return index if count == 0 else fold_expr(c.Binary("+", index, integer_literal(count)))


def declared_at_once(declares: tuple[c.Stmt, ...], sets: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """`float v_x; v_x = a;` as one declaration; the values name none of the variables."""
    assigns = (s.expr for s in sets if isinstance(s, c.Evaluate) and isinstance(s.expr, c.Assign))
    values = {assign.target: assign.value for assign in assigns}
    done: list[c.Stmt] = []
    for stmt in declares:
        value = values.get(c.Name(stmt.name)) if isinstance(stmt, c.Declare) else None
        done.append(replace(stmt, init=value) if isinstance(stmt, c.Declare) and value is not None else stmt)
    return (*done, *(stmt for stmt in sets if not isinstance(stmt, c.Evaluate)))


def shorten_address(node: c.Expr) -> c.Expr:
    """*(T *)&a[i] as *(T *)(a + i): the same place, as it is read elsewhere."""
    match node:
        case c.Index(
            base=c.Cast(type=type_, value=c.Unary(op="&", operand=c.Index(base=base, index=index))),
            index=c.Number(value=0) as zero,
        ):
            return c.Index(c.Cast(type_, c.Binary("+", base, index)), zero)
    return node


def check_once(place: c.Expr, instance: Instance | None, line: int) -> c.Expr:
    """The place of an object: of several fields, it is said once for each."""
    if instance is not None and instance.only is None and _does_something(place):
        raise c.Unreadable("an object is taken from a place whose index changes with it", line)
    return place


def _does_something(place: c.Expr) -> bool:
    """Whether saying it twice does more than once: `p[k++]`, `p[atomicAdd(n, 1)]`. Calls of the file's own
    functions are put in place, once."""
    for node in walk.nodes_in(place):
        if isinstance(node, c.Assign) or (isinstance(node, c.Unary) and node.op in ("++", "--")):
            return True
        if isinstance(node, c.Call) and is_function(node.function) and not effects_of(node).may_repeat:
            return True
    return False


# -- How objects come to be: `Q q;`, `Q q(x);`, `Q q{x, y};`, `Q q[2] = {...}`, fields of objects.
#
# A constructor that is written sets all fields in the order in which they are declared, by its list or by the
# values that stand behind them; an object without one is set field by field, what its list leaves out to the
# value behind the field or to 0. Without a list a field without a value stays unset.


_FEW = 8  # elements that are set one by one
Before = list[c.Stmt]  # what must be done ahead of a statement
Items = tuple[c.Expr, ...] | None  # values of a list; None: there is none


class Construction:
    def __init__(
        self,
        reader: Objects,
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
        extents = [int_value(fold_expr(dim)) for dim in stmt.dims]
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
        items = None if items is None else tuple(self._reader.expr(item, before, stmt.line) for item in items)
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
        items = None if items is None else tuple(self._reader.expr(item, before, line) for item in items)
        place = self._places.field(base, instance, name, line)
        self._set(place, field.type, field.count, items, before, line)

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
            items = tuple(self._reader.expr(item, before, line) for item in default.items)
        if only.inner is not None:
            return self.value(only.inner, items, before, line)
        value = items[0] if items else integer_literal(0)
        made = self._instances.of(self._reader.type(value))
        return value if made is None else self._reader.converted(value, only.type, before, line)

    def _set(self, place: c.Expr, type_: c.Type, count: int, items: Items, before: Before, line: int) -> None:
        """`items` are read by now. None: only what happens without a list."""
        instance = self._instances.of(type_)
        if count:
            self._elements(place, type_, count, items, before, line)
        elif instance is not None:
            self._construct_object(place, instance, items, before, line)
        elif items is not None:
            if len(items) > 1:
                raise c.Unreadable("a number is set to several values", line)
            self._assign(place, items[0] if items else integer_literal(0), type_, before, line)

    def _assign(self, place: c.Expr, value: c.Expr, type_: c.Type, before: Before, line: int) -> None:
        while isinstance(value, c.Braces) and value.type is None and len(value.items) <= 1:
            value = value.items[0] if value.items else integer_literal(0)
        made = self._instances.of(self._reader.type(value))
        value = value if made is None else self._reader.converted(value, type_, before, line)
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
            self._next(c.Index(place, integer_literal(at)), type_, 0, given, before, line)
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
            before.extend(others(integer_literal(index)))

    def _construct_object(
        self, place: c.Expr, instance: Instance, items: Items, before: Before, line: int
    ) -> None:
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
                items = default.items if isinstance(default, c.Braces) else (default,)
                here = (substitute(item, {THIS: place}) for item in items)
                behind = tuple(self._reader.expr(item, before, line) for item in here)
            if given:
                self._next(where, field.type, field.count, given, before, line)
            else:
                empty: Items = None if given is None else ()
                self._set(where, field.type, field.count, empty if behind is None else behind, before, line)

    def _next(
        self, place: c.Expr, type_: c.Type, count: int, given: deque[c.Expr], before: Before, line: int
    ) -> None:
        """What comes next in a list; it may leave out braces around arrays and plain objects."""
        first, instance = given[0], self._instances.of(type_)
        if isinstance(first, c.Braces) and first.type is None:
            given.popleft()
            self._set(place, type_, count, first.items, before, line)
        elif count:
            at = 0
            while given and at < count:
                self._next(c.Index(place, integer_literal(at)), type_, 0, given, before, line)
                at += 1
            for index in range(at, count):
                self._set(c.Index(place, integer_literal(index)), type_, 0, (), before, line)
        elif instance is None or instance.only is not None or self._is_made_of(instance, first):
            self._set(place, type_, 0, (given.popleft(),), before, line)
        else:
            self._fields(place, instance, given, before, line)

    def _is_made_of(self, instance: Instance, value: c.Expr) -> bool:
        """Whether one value makes the object: it is one, or there are constructors."""
        constructor = instance.record.name.rpartition("::")[2]
        is_one = self._instances.of(self._reader.type(value)) is instance
        return is_one or any(method.name == constructor for method in instance.record.methods)

    def referred(self, stmt: c.Declare, init: c.Expr, before: Before) -> tuple[c.Stmt, ...]:
        """`P &r = p[k]`: another name for an object that is a variable, or a variable for one made here."""
        value, fresh = self._reader.expr(init, before, stmt.line), replace(stmt.type, reference=False)
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
        type_ = self._reader.type(index)
        if isinstance(index, c.Number):
            return (), index
        if type_ is None or type_.is_pointer:
            raise c.Unreadable(f"'{name}' is another name for an object", line)
        kept = self._fresh(f"{name}_index")
        self._types[kept] = c.Type(type_.base, const=True)
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
        called = [made] if made is not None else [f for f in functions if f.name == call.function]
        return bool(called) and not any(f.result.reference for f in called)


_WORD = re.compile(r"[A-Za-z_]\w*")
_COMPOUND = frozenset({"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})


class Objects:
    """`types`: of the kernel's variables, shared with whoever puts calls in place; `fresh`: new names."""

    def __init__(self, source: c.Source, types: dict[str, c.Type], fresh: Callable[[str], str]) -> None:
        self.instances = Instances(source)
        self.overloads = Overloads(source, self.instances)
        self.places = Places(self.instances, types, self.type, fresh)
        self.construction = Construction(self, self.instances, self.overloads, self.places, types, fresh)
        self.source = self.overloads.source
        self.active = bool(self.instances)
        self._types = types
        self._names = {record.name for record in source.records}
        self.differing = find_const_overloads(source.records)  # methods that ask if their object is const

    def type(self, expr: c.Expr) -> c.Type | None:
        made = self.overloads.made
        if isinstance(expr, c.Call) and expr.function not in made and has_open_result(expr, self.source):
            function = resolve_call(expr, self._types, self.source)
            return None if isinstance(function, str) else self.instances.type(function.result)
        known = (*self.source.functions, *made.values())
        return type_of(expr, self._types, known, self.source.language)

    def record(self, expr: c.Expr) -> Instance | None:
        return self.instances.of(self.type(expr))

    def concerns(self, call: c.Call) -> bool:
        """Whether a call takes or gives an object, or is of a template for one: it cannot stay a call."""
        if call.function in self.overloads.made:
            return True
        if any(word in self._names for text in call.template_args for word in _WORD.findall(text)):
            return True
        return any(self.record(part) is not None for part in (call, *call.args))

    def prepared(self, stmt: c.Stmt) -> tuple[c.Stmt, ...]:
        """The statement with calls for all that is called by a sign; what must come before it is ahead."""
        before: list[c.Stmt] = []

        def inside(expr: c.Expr) -> c.Expr:
            return self.expr(expr, before, stmt.line)

        def head(expr: c.Expr) -> c.Expr:
            return self._lower_without_objects(expr, "in the head of a loop", stmt.line)

        match stmt:
            case c.Declare():
                made = self._declared(stmt, before)
                return (*before, *made)
            case c.Evaluate(expr=c.Call(function=name, args=args, of=c.Member() as at)) if (
                name == CONSTRUCTED
            ):
                items = args[0].items if args and isinstance(args[0], c.Braces) else None
                self.construction.field(inside(at.base), at.field, items, before, stmt.line)
                return tuple(before)
            case c.For(init=init) if any(map(self._is_object_declaration, init)):
                first = tuple(part for one in stmt.init for part in self.prepared(one))
                return (*first, *self.prepared(replace(stmt, init=())))
            case c.For():
                done: c.Stmt = replace(
                    stmt,
                    init=tuple([walk.map_simple(part, inside) for part in stmt.init]),
                    condition=stmt.condition and self._as_test(head(stmt.condition), stmt.line),
                    step=tuple([head(step) for step in stmt.step]),
                )
            case c.While() | c.If():
                read = inside if isinstance(stmt, c.If) else head
                done = replace(stmt, condition=self._as_test(read(stmt.condition), stmt.line))
            case c.Evaluate(expr=expr):
                done = replace(stmt, expr=inside(expr))
            case _:
                done = stmt
        return (*before, done)

    def _is_object_declaration(self, stmt: c.Declare | c.Evaluate) -> bool:
        if not isinstance(stmt, c.Declare):
            return False
        type_ = self.instances.type(stmt.type)
        made = self.instances.made_by(stmt.init) if type_.base == "auto" and stmt.init is not None else None
        return made is not None or self.instances.of(type_) is not None

    def _declared(self, stmt: c.Declare, before: list[c.Stmt]) -> tuple[c.Stmt, ...]:
        type_ = self.instances.type(stmt.type)
        init = stmt.init
        made = None if init is None else self.instances.made_by(init)
        if type_.base == "auto" and made is not None and not type_.reference:
            type_ = replace(type_, base=made[0].name)
        instance = self.instances.of(type_)
        if instance is None:
            if isinstance(init, c.Braces) and init.type is None and type_.base in self._names:
                init = init if stmt.dims else replace(init, type=c.Type(type_.base))
            init = None if init is None else self.expr(init, before, stmt.line)
            dims = tuple([self.expr(dim, before, stmt.line) for dim in stmt.dims])
            if type_.base == "auto" and init is not None and not stmt.dims:
                found = self.type(init)
                if found is not None and type_.reference and self.instances.of(found) is not None:
                    named = replace(stmt, type=replace(type_, base=found.base))
                    return self.construction.referred(named, init, before)
                if found is not None and self.instances.named(found.base) is not None:
                    const = type_.const if not found.is_pointer else found.const
                    type_ = replace(found, const=const, reference=type_.reference, restrict=False)
                    self._types[stmt.name] = type_
            elif init is not None and self.record(init) is not None:
                init = self.converted(init, type_, before, stmt.line)
            return (replace(stmt, type=type_, init=init, dims=dims),)
        if type_.reference and init is not None:
            return self.construction.referred(replace(stmt, type=type_), init, before)
        self._types[stmt.name] = replace(type_, pointers=len(stmt.dims))
        alone = replace(stmt, type=type_, init=None)
        if init is None:
            return self.construction.declared(alone, instance, None)
        if isinstance(init, c.Braces) and init.type is None:
            made = instance, init.items
        if stmt.dims and (made is None or not isinstance(init, c.Braces)):
            raise c.Unreadable(f"how the array '{stmt.name}' is set is not understood", stmt.line)
        if made is not None and made[0] is instance and (instance.only is None or stmt.dims):
            return self.construction.declared(alone, instance, made[1])
        if isinstance(init, c.Braces):
            init = replace(init, type=c.Type(instance.name))
        value = self.converted(self.expr(init, before, stmt.line), type_, before, stmt.line)
        return (replace(stmt, type=type_, init=value),)

    def expr(self, expr: c.Expr, before: list[c.Stmt], line: int) -> c.Expr:
        def always(part: c.Expr) -> c.Expr:
            return self.expr(part, before, line)

        def sometimes(part: c.Expr) -> c.Expr:
            where = "under a condition or behind a comma inside an expression"
            return self._lower_without_objects(part, where, line)

        match expr:
            case c.Ternary(condition=condition, yes=yes, no=no):
                expr = c.Ternary(self._as_test(always(condition), line), sometimes(yes), sometimes(no))
            case c.Binary(op="&&" | "||" as op, left=left, right=right):
                expr = c.Binary(op, self._as_test(always(left), line), self._as_test(sometimes(right), line))
            case c.Binary(op=",", left=left, right=right):
                expr = c.Binary(",", always(left), sometimes(right))
            case c.Cast(type=type_, value=value) if type_.space == BITS:
                return replace(expr, value=always(value))
            case c.Name() | c.Number() | c.Opaque() | c.SizeOf():
                if isinstance(expr, c.Name):
                    return self.construction.second.get(expr.name) or self.places.name(expr)
                return expr
            case _:
                expr = walk.map_below(expr, always)
        return self._node(expr, before, line)

    def _lower_without_objects(self, expr: c.Expr, where: str, line: int) -> c.Expr:
        found: list[c.Stmt] = []
        done = self.expr(expr, found, line)
        if found:
            raise c.Unreadable(f"an object is made {where}", line)
        return done

    def _node(self, expr: c.Expr, before: list[c.Stmt], line: int) -> c.Expr:
        match expr:
            case c.Call(of=of) if of is not None:
                return self._method(expr, of, before, line)
            case c.Call():
                return self._call(expr, before, line)
            case c.Member(base=base, field=field, arrow=arrow):
                behind = c.Index(base, integer_literal(0)) if arrow else base  # p->v is p[0].v
                instance = self.record(behind)
                if instance is None:
                    return expr
                if field in instance.constants:
                    return instance.constants[field]
                place = check_once(behind, instance, line) if arrow else base
                place = self.construction.kept(place, instance, before, line)
                return self.places.field(place, instance, field, line)
            case c.Index(base=base, index=index):
                if self.record(base) is None:
                    return check_once(expr, self.record(expr), line)
                return self._operator("[]", (base, index), line)
            case c.Cast(type=type_, value=value):
                return self._cast(replace(expr, type=self.instances.type(type_)), value, before, line)
            case c.Braces(items=items, type=type_) if type_ is not None:
                instance = self.instances.of(self.instances.type(type_))
                if instance is None:
                    return items[0] if len(items) == 1 and self._is_plain_copy(type_, items[0]) else expr
                return self.construction.value(instance, items, before, line)
            case c.Binary(op=op, left=left, right=right) if op not in (",", "&&", "||"):
                return self._binary(expr, left, right, before, line)
            case c.Unary(op=op, operand=operand) if op != "&" and self.record(operand) is not None:
                if expr.postfix:
                    raise c.Unreadable(f"{op} behind an object is not understood", line)
                return self._operator(op, (operand,), line)
            case c.Assign(op=op, target=target, value=value):
                return self._assigned(expr, target, value, before, line)
            case c.Ternary(yes=yes, no=no):
                return self._chosen(expr, yes, no, before, line)
        return expr

    def _method(self, call: c.Call, of: c.Expr, before: list[c.Stmt], line: int) -> c.Expr:
        instance, (name, mark, how) = self.record(of), call.function.partition("#")
        if instance is None:
            is_index = name == "operator[]" and mark and len(call.args) == 1
            return c.Index(of, call.args[0]) if is_index else replace(call, function=name)
        of = self.construction.kept(of, instance, before, line)
        function, args = self.overloads.method(instance, name, (of, *call.args), self.type, line, mark + how)
        return c.Call(function, args, call.template_args)

    def _call(self, call: c.Call, before: list[c.Stmt], line: int) -> c.Expr:
        if call.function in self.overloads.made:
            return call
        made = self.instances.made_by(call)
        if made is not None:
            return self.construction.value(*made, before, line)
        owner, separator, name = call.function.rpartition("::")
        instance = self.instances.named(owner) if separator else None
        if instance is not None:
            function, args = self.overloads.static(instance, name, call.args, self.type, line)
            return c.Call(function, args, call.template_args)
        overload = self.overloads.of_library_name(call, self.type)
        if overload:
            return replace(call, function=overload)
        functions = [f for f in self.source.functions if f.name == call.function and not f.is_kernel]
        fitting = [f for f in functions if len(f.parameters) == len(call.args)]
        if len(fitting) == 1 and not fitting[0].template:
            wanted = [self.instances.type(p.type) for p in fitting[0].parameters]
            pairs = zip(call.args, wanted, strict=True)
            return replace(call, args=tuple(self.converted(a, type_, before, line) for a, type_ in pairs))
        if not functions and is_function(call.function):
            return replace(call, args=tuple(self._as_number(arg, before, line) for arg in call.args))
        return call

    def _cast(self, cast: c.Cast, value: c.Expr, before: list[c.Stmt], line: int) -> c.Expr:
        if cast.type.is_pointer:
            same = isinstance(value, c.Cast) and value.type == cast.type
            return value if same else self.places.pointer_cast(cast, line)
        target, source = self.instances.of(cast.type), self.record(value)
        if target is None and source is None:
            return value if self._is_plain_copy(cast.type, value) else cast
        if cast.type.reference:
            raise c.Unreadable("an object is cast to a reference", line)
        return self.converted(value, cast.type, before, line, explicit=True)

    def _is_plain_copy(self, type_: c.Type, value: c.Expr) -> bool:
        """Whether a structure of fields alone is made from another one."""
        source = self.type(value)
        same = source is not None and (source.base, source.pointers) == (type_.base, 0)
        return same and type_.base in self._names

    def _binary(self, expr: c.Binary, left: c.Expr, right: c.Expr, before: list[c.Stmt], line: int) -> c.Expr:
        if self.record(left) is None and self.record(right) is None:
            return expr
        types = (self.type(left), self.type(right))
        found = self.overloads.operator(expr.op, types, self.converts_to_number)
        if found:
            return c.Call(found, (left, right))
        return c.Binary(expr.op, self._as_number(left, before, line), self._as_number(right, before, line))

    def converts_to_number(self, type_: c.Type | None) -> bool:
        instance = self.instances.of(type_)
        return instance is not None and self.overloads.conversion(instance, None) is not None

    def _operator(self, op: str, args: tuple[c.Expr, ...], line: int) -> c.Expr:
        found = self.overloads.operator(op, tuple(self.type(arg) for arg in args), lambda _type: False)
        if not found:
            raise c.Unreadable(f"what {op} does with an object is not known", line)
        return c.Call(found, args)

    def _assigned(
        self, expr: c.Assign, target: c.Expr, value: c.Expr, before: list[c.Stmt], line: int
    ) -> c.Expr:
        instance = self.record(target)
        if expr.op in _COMPOUND and instance is not None:
            return self._operator(expr.op, (target, value), line)
        type_ = self.type(target)
        if instance is not None and self.record(value) is not instance:
            overload = self.overloads.operator("=", (type_, self.type(value)), lambda _type: True)
            if overload:
                return c.Call(overload, (target, value))
        if type_ is None or (instance is None and self.record(value) is None):
            return expr
        if isinstance(value, c.Braces) and value.type is None and instance is not None:
            return replace(expr, value=self.construction.value(instance, value.items, before, line))
        return replace(expr, value=self.converted(value, type_, before, line))

    def _chosen(self, expr: c.Ternary, yes: c.Expr, no: c.Expr, before: list[c.Stmt], line: int) -> c.Expr:
        first, second = self.record(yes), self.record(no)
        if first is second:
            return expr
        return replace(expr, yes=self._as_number(yes, before, line), no=self._as_number(no, before, line))

    def _as_number(self, value: c.Expr, before: list[c.Stmt], line: int) -> c.Expr:
        instance = self.record(value)
        if instance is None:
            return value
        found = self.overloads.conversion(instance, None)
        if found is None:
            raise c.Unreadable(f"how a {instance.name} becomes a number is not known", line)
        return c.Call(found, (value,))

    def _as_test(self, value: c.Expr, line: int) -> c.Expr:
        instance = self.record(value)
        return value if instance is None else self.overloads.tested(instance, value, line)

    def converted(
        self, value: c.Expr, type_: c.Type, before: list[c.Stmt], line: int, explicit: bool = False
    ) -> c.Expr:
        """The value as one of the type, by constructors and conversions."""
        target, source = self.instances.of(type_), self.record(value)
        if target is source or type_.is_pointer:
            return value
        if target is not None:
            if source is not None:
                found = self.overloads.conversion(source, target.name)
                if found is not None:
                    return c.Call(found, (value,))
            return self.construction.value(target, (value,), before, line, implicit=not explicit)
        assert source is not None
        found = self.overloads.conversion(source, type_.base, explicit=explicit)
        if found is None:
            raise c.Unreadable(f"how a {source.name} becomes a {type_.base} is not known", line)
        done = c.Call(found, (value,))
        result = self.overloads.made[found].result
        return done if result.base == type_.base else c.Cast(c.Type(type_.base), done)

    def finished(self, stmt: c.Stmt) -> tuple[c.Stmt, ...]:
        """Variables of a record as those of its fields, and what is done to them as a whole."""
        match stmt:
            case c.Declare(type=type_) if type_.is_pointer:
                return (self.places.pointer_variable(stmt),)
            case c.Declare(type=type_, name=name) if (instance := self.instances.of(type_)) is not None:
                self._types.setdefault(name, type_)
                if instance.only is not None:
                    return (stmt,)
                done = self.places.split(stmt, instance)
                if stmt.init is None:
                    return done
                return declared_at_once(done, self._copy_object(c.Name(name), stmt.init, instance, stmt.line))
            case c.Evaluate(expr=c.Assign(op="=", target=target, value=value)) if (
                instance := self.record(target)
            ) is not None and instance.only is None:
                return self._copy_object(target, value, instance, stmt.line)
            case c.Evaluate(expr=c.Name() | c.Index() as expr) if self.record(expr) is not None:
                return ()  # what an operator gives back, and nobody takes
        return (stmt,)

    def _copy_object(
        self, target: c.Expr, value: c.Expr, instance: Instance, line: int
    ) -> tuple[c.Stmt, ...]:
        if isinstance(value, c.Ternary):
            yes, no = (self._copy_object(target, part, instance, line) for part in (value.yes, value.no))
            return (c.If(value.condition, yes, no, line=line),)
        if self.record(value) is not instance:
            raise c.Unreadable(f"how a {instance.name} is set here is not understood", line)
        return self.places.copied(target, value, instance, line)

    def lowered(self, function: c.Function) -> c.Function:
        """With no record left: those of one field are that field, in values and behind pointers."""
        self._check(function)
        body = walk.map_nodes(function.body, self._without_bits)
        body = walk.map_types(body, self._as_field)
        made = self.construction.made | self.places.names_of(self.construction.made)
        body = declared_where_set(walk.map_nodes(body, self._without_cast), made)
        parameters = tuple(replace(p, type=self._as_field(p.type)) for p in function.parameters)
        return replace(function, parameters=parameters, body=walk.map_nodes(body, shorten_address))

    def used_whole(self, function: c.Function) -> bool:
        """Whether something is left that takes an object, and not its fields."""
        try:
            self._check(function)
        except c.Unreadable:
            return True
        return False

    def _check(self, function: c.Function) -> None:
        objects = {name for name, type_ in self._types.items() if self.instances.of(type_) is not None}
        for stmt in walk.statements_in(function.body):
            parts = [part for part in walk.child_nodes(stmt) if isinstance(part, c.Expr)]
            for used in (used for part in parts for used in walk.expressions_in(part)):
                if isinstance(used, c.Call) and any(self.record(arg) is not None for arg in used.args):
                    name = used.function.partition("#")[0]
                    raise c.Unreadable(f"an object is handed to {name}, which stays a call", stmt.line)
                if isinstance(used, c.Name) and used.name in objects and used.name in self.places.parts:
                    raise c.Unreadable(f"the object '{used.name}' is used as a whole", stmt.line)
            for node in (stmt, *walk.nodes_in(c.Braces(tuple(parts)))):
                named = node.names & objects if isinstance(node, c.Opaque | c.Verbatim) else ()
                for name in sorted(named):
                    raise c.Unreadable(f"the object '{name}' is used in what is not understood", stmt.line)

    def _without_bits(self, node: c.Expr) -> c.Expr:
        if not isinstance(node, c.Cast) or node.type.space != BITS:
            return node
        instance = self.instances.of(replace(node.type, space=""))
        if instance is None or instance.only is None:
            return node.value
        type_, base = self.type(node.value), self.instances.value(instance.only.type.base)
        of = "" if type_ is None or type_.pointers else self.instances.value(type_.base)
        if of and (of == base or INTEGERS.get(of, 0) == INTEGERS.get(base)):
            return node.value
        return c.Cast(c.Type(base), node.value)

    def _without_cast(self, node: c.Expr) -> c.Expr:
        """`(float)v_x` of what is a float: a method's result, before it was told what its fields are."""
        if not isinstance(node, c.Cast) or node.type != c.Type("float"):
            return node
        return node.value if self.type(node.value) in (c.Type("float"), c.Type("float", const=True)) else node

    def _as_field(self, type_: c.Type) -> c.Type:
        instance = self.instances.named(type_.base)
        if instance is None:
            return type_
        if instance.only is not None:
            return replace(type_, base=self.instances.value(instance.name))
        raise c.Unreadable(f"a {instance.name} is used as a whole")
