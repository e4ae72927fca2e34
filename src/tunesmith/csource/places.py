"""Where the fields of an object lie: in variables of their own, or in memory behind a pointer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import effects_of, is_function
from tunesmith.csource.fold import fold
from tunesmith.csource.instances import Instance, RecordField
from tunesmith.csource.records import BITS, Instances
from tunesmith.csource.types import integer

_Type = Callable[[c.Expr], c.Type | None]


class Places:
    def __init__(
        self,
        instances: Instances,
        types: dict[str, c.Type],
        type_of: _Type,
        fresh: Callable[[str], str],
    ) -> None:
        self.parts: set[str] = set()  # variables that are several by now
        self._named: dict[tuple[str, str], str] = {}  # variable and field -> what holds it
        self._fresh = fresh
        self._flat: dict[str, c.Type] = {}  # pointers to elements -> what the source says they point to
        self._instances, self._types, self._type = instances, types, type_of

    # -- pointers -------------------------------------------------------------------------------------

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
            raise c.Unreadable(
                f"'{name}' points to a {instance.name}, whose fields are of several types or lie apart"
            )
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
        own = self._pointed(self._type(value))
        if own is not None and self._pointed(cast.type) is None:
            return c.Cast(cast.type, self.flat(value, own))
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
                own = self._type(value)
                if self._pointed(own) is instance:
                    return self.flat(value, instance)
                same = own is not None and (own.base, own.pointers) == (base, 1)
                return value if same else c.Cast(c.Type(base, 1, type_.const), value)
            case c.Binary(op="+" | "-" as op, left=left, right=right):
                if self._pointed(self._type(left)) is not instance:
                    left, right = right, left
                return c.Binary(op, self.flat(left, instance), _times(right, count))
            case c.Unary(op="&", operand=c.Index(base=inner, index=index)):
                return c.Binary("+", self.flat(inner, instance), _times(index, count))
        return c.Cast(c.Type(base, 1), pointer)

    # -- fields ---------------------------------------------------------------------------------------

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
            return pointer if field.count else c.Index(pointer, integer(0))
        part = self._part(place, name)
        if part is not None:
            return part
        match place:
            case c.Index(base=base, index=index) if self._pointed(self._type(base)) is instance:
                flat, element = self.flat(base, instance), instance.element
                assert element is not None, "or it would not be flat"
                start = _plus(_times(index, element[1]), before)
                if field.is_object:
                    inner = c.Cast(c.Type(field.type.base, 1), c.Binary("+", flat, start))
                    return inner if field.count else c.Index(inner, integer(0))
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
                (*stmt.dims, *((integer(field.count),) if field.count else ())),
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
            done.append(
                self.loop(
                    0,
                    field.count,
                    lambda at, to=left, of=right, field=field: self._set(  # type: ignore[misc]
                        c.Index(to, at), c.Index(of, at), field, line
                    ),
                    line,
                )
            )
        return tuple(done)

    def _moves(self, target: c.Expr, value: c.Expr) -> bool:
        """Whether which objects these are may change once the first field is set."""
        name = walk.root(target)[0]
        own = set() if name is None else {name, *self.names_of({name})}
        indices = [n.index for one in (target, value) for n in walk.nodes_in(one) if isinstance(n, c.Index)]
        return any(walk.names_in(index) & own for index in indices)

    def _set(self, left: c.Expr, right: c.Expr, field: RecordField, line: int) -> tuple[c.Stmt, ...]:
        if field.inner is not None and field.is_object:
            return self.copied(left, right, field.inner, line)
        return (c.Evaluate(c.Assign("=", left, right), line=line),)

    def loop(self, start: int, stop: int, body: Callable[[c.Expr], tuple[c.Stmt, ...]], line: int) -> c.Stmt:
        """The same for elements from `start` to before `stop`."""
        index = self._fresh("part")
        self._types[index] = c.Type("int")
        return c.For(
            (c.Declare(c.Type("int"), index, integer(start), line=line),),
            c.Binary("<", c.Name(index), integer(stop)),
            (c.Unary("++", c.Name(index)),),
            body(c.Name(index)),
            unroll=0,
            line=line,
        )


def _times(index: c.Expr, count: int) -> c.Expr:
    return index if count == 1 else fold(c.Binary("*", index, integer(count)))


def _plus(index: c.Expr, count: int) -> c.Expr:
    return index if count == 0 else fold(c.Binary("+", index, integer(count)))


def declared_at_once(declares: tuple[c.Stmt, ...], sets: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """`float v_x; v_x = a;` as one declaration; the values name none of the variables."""
    values = {
        stmt.expr.target: stmt.expr.value
        for stmt in sets
        if isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Assign)
    }
    done: list[c.Stmt] = []
    for stmt in declares:
        value = values.get(c.Name(stmt.name)) if isinstance(stmt, c.Declare) else None
        done.append(replace(stmt, init=value) if isinstance(stmt, c.Declare) and value is not None else stmt)
    return (*done, *(stmt for stmt in sets if not isinstance(stmt, c.Evaluate)))


def shorter(node: c.Expr) -> c.Expr:
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
