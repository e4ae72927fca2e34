"""Where the fields of an object lie: in variables of their own, or in memory behind a pointer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource.fold import fold
from tunesmith.csource.records import BITS, Instance, Instances, RecordField
from tunesmith.csource.types import integer

_Type = Callable[[c.Expr], c.Type | None]


class Places:
    def __init__(self, instances: Instances, types: dict[str, c.Type], type_of: _Type) -> None:
        self.parts: set[str] = set()  # variables that are several by now
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
            raise c.Unreadable(f"'{name}' points to a {instance.name}, whose fields are of several types")
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
            raise c.Unreadable(f"the fields of {instance.name} are of several types")
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
        match place:
            case c.Name(name=variable) if variable in self.parts:
                return c.Name(f"{variable}_{name}")
            case c.Index(base=c.Name(name=variable), index=index) if variable in self.parts:
                return c.Index(c.Name(f"{variable}_{name}"), index)
            case c.Index(base=base, index=index) if self._pointed(self._type(base)) is instance:
                flat, element = self.flat(base, instance), instance.element
                assert element is not None, "or it would not be flat"
                start = _plus(_times(index, element[1]), before)
                return c.Binary("+", flat, start) if field.count else c.Index(flat, start)
        raise c.Unreadable(f"where the object of {instance.name}::{name} lies is not followed", line)

    def split(self, stmt: c.Declare, instance: Instance) -> tuple[c.Stmt, ...]:
        """A variable for each field."""
        if stmt.type.reference or stmt.storage in ("static", "dynamic shared"):
            raise c.Unreadable(f"the object '{stmt.name}' is not one of this call alone", stmt.line)
        self.parts.add(stmt.name)
        known = replace(stmt.type, pointers=stmt.type.pointers + len(stmt.dims), const=False)
        self._types[stmt.name] = known
        storage = instance.storage
        done: list[c.Stmt] = []
        for field in instance.fields if storage is None else (storage,):
            dims = (*stmt.dims, *((integer(field.count),) if field.count else ()))
            name = f"{stmt.name}_{field.name}"
            self._types[name] = replace(field.type, pointers=field.type.pointers + len(dims))
            first = not done
            done.append(
                c.Declare(
                    replace(field.type, const=False),
                    name,
                    field.init if stmt.init is None else None,
                    dims,
                    stmt.storage,
                    stmt.align,
                    line=stmt.line,
                    comments=stmt.comments if first else (),
                )
            )
        return tuple(done)

    def copied(
        self, target: c.Expr, value: c.Expr, instance: Instance, line: int, fresh: Callable[[str], str]
    ) -> tuple[c.Stmt, ...]:
        """Field by field; what is copied onto itself is left out."""
        if target == value:
            return ()
        storage = instance.storage
        done: list[c.Stmt] = []
        for field in instance.fields if storage is None else (storage,):
            left, right = (self.field(part, instance, field.name, line) for part in (target, value))
            if not field.count:
                done.append(c.Evaluate(c.Assign("=", left, right), line=line))
                continue
            done.append(self._loop(left, right, field, line, fresh))
        return tuple(done)

    def _loop(
        self, left: c.Expr, right: c.Expr, field: RecordField, line: int, fresh: Callable[[str], str]
    ) -> c.Stmt:
        index = fresh("part")
        self._types[index] = c.Type("int")
        body = c.Evaluate(
            c.Assign("=", c.Index(left, c.Name(index)), c.Index(right, c.Name(index))), line=line
        )
        return c.For(
            (c.Declare(c.Type("int"), index, integer(0), line=line),),
            c.Binary("<", c.Name(index), integer(field.count)),
            (c.Unary("++", c.Name(index)),),
            (body,),
            unroll=0,
            line=line,
        )

    def aggregate(
        self, made: c.Expr, instance: Instance, items: tuple[c.Expr, ...], line: int
    ) -> Iterator[tuple[c.Expr, c.Expr]]:
        """{a, b, c}: the fields in order, those without a value 0."""
        if instance.record.is_union:
            raise c.Unreadable(f"{instance.name} is a union, set by a list", line)
        given = list(items)
        self.parts.add(made.name if isinstance(made, c.Name) else "")
        for field in instance.fields:
            place = self.field(made, instance, field.name, line)
            if not field.count:
                yield place, given.pop(0) if given else integer(0)
                continue
            if given and isinstance(given[0], c.Braces) and given[0].type is None:
                inner = list(given.pop(0).items)  # type: ignore[union-attr]
            else:
                inner, given = given[: field.count], given[field.count :]
            for at in range(field.count):
                yield c.Index(place, integer(at)), inner[at] if at < len(inner) else integer(0)
        if given:
            raise c.Unreadable(f"{instance.name} is set by a list that is too long", line)


def _times(index: c.Expr, count: int) -> c.Expr:
    return index if count == 1 else fold(c.Binary("*", index, integer(count)))


def _plus(index: c.Expr, count: int) -> c.Expr:
    return index if count == 0 else fold(c.Binary("+", index, integer(count)))
