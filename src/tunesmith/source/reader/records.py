"""Records of a file with their template arguments filled in: fields, layout, methods; types that name them.

vec_t<half, 16 / sizeof(half)>   ->  vec_t<__half, 8>, the specialisation that fits it, its fields
typename traits<T>::type         ->  the type that the record calls so
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.fold import fold_expr, int_value
from tunesmith.source.reader.parse import THIS, read_expression
from tunesmith.source.reader.templates import (
    Meaning,
    file_meaning,
    plain_type,
    specialise_function,
    template_meaning,
)
from tunesmith.source.substitution import substitute
from tunesmith.source.text import identifiers_in
from tunesmith.source.types import byte_size, canonical_type_name, integer_literal, of_type, split_arguments

# -- A record with its template arguments filled in: what its fields are, and where they lie.


@dataclass(frozen=True)
class RecordField:
    name: str
    type: c.Type
    count: int = 0  # elements of an array; 0: it is none
    init: c.Expr | None = None  # as the source has it
    inner: Instance | None = None  # the record that it is one of

    @property
    def size(self) -> int | None:
        one = byte_size(self.type.base) if self.inner is None else self.inner.size
        one = 8 if self.type.is_pointer else one
        return None if one is None else one * (self.count or 1)

    @property
    def is_object(self) -> bool:
        """Whether it has fields of its own, and is not just the one that it holds."""
        return self.inner is not None and self.inner.only is None

    @property
    def element(self) -> tuple[str, int] | None:
        """The one type that it is made of, and how many of it."""
        if self.type.is_pointer:
            return None
        one = self.inner.element if self.inner is not None and self.is_object else (self.type.base, 1)
        return None if one is None else (one[0], one[1] * (self.count or 1))


@dataclass(frozen=True)
class Instance:
    """A record for certain template arguments."""

    name: str  # "vec_t<__half, 8>"
    record: c.Record
    fields: tuple[RecordField, ...]
    meaning: Meaning
    constants: Mapping[str, c.Expr]
    has_gaps: bool = False  # by its alignment it is longer than its fields, or may be

    @property
    def only(self) -> RecordField | None:
        """The field that is all of it, where that is a single value."""
        alone = self.fields[0] if len(self.fields) == 1 else None
        if alone is None or alone.count or alone.type.is_pointer or alone.is_object or self.has_gaps:
            return None
        return alone

    @property
    def storage(self) -> RecordField | None:
        """Of a union: the field whose bytes are all of it."""
        if not self.record.is_union:
            return None
        sizes = [field.size for field in self.fields]
        if not sizes or any(size is None for size in sizes):
            return None
        most = max(size or 0 for size in sizes)
        whole = [field for field in self.fields if field.size == most]
        return next((field for field in whole if not field.count), whole[0])

    @property
    def element(self) -> tuple[str, int] | None:
        """The one type that all fields have, and how many of it there are; None where they differ."""
        if self.has_gaps:
            return None
        if self.record.is_union:
            storage = self.storage
            return None if storage is None else (storage.type.base, storage.count or 1)
        parts = [field.element for field in self.fields]
        bases = {part[0] for part in parts if part is not None}
        if len(bases) != 1 or None in parts:
            return None
        return bases.pop(), sum(part[1] for part in parts if part is not None)

    def place(self, name: str) -> tuple[RecordField, int] | None:
        """A field, and how many elements stand before it where all are of one type."""
        before = 0
        for field in self.fields:
            if field.name == name:
                return field, 0 if self.record.is_union else before
            before += field.element[1] if field.element is not None else 1
        return None

    @property
    def size(self) -> int | None:
        storage = self.storage
        if storage is not None:
            return storage.size
        sizes = [field.size for field in self.fields]
        if self.element is None or None in sizes:
            return None  # there may be gaps
        return sum(size or 0 for size in sizes)


CONSTRUCTED = "#constructed"  # a call that stands for: this field is made from these values
BITS = "bits"  # the address space of a cast that means: the record as its only field, or back
_MAX_INSTANCES = 200


class Instances:
    def __init__(self, source: c.Source) -> None:
        self._source = source
        self._names = {record.name for record in source.records}
        self._inner = {f.type.base.split("<")[0] for record in source.records for f in record.fields}
        self._defaults: dict[tuple[str, str], c.Expr] = {}
        self._found: dict[str, Instance | None] = {}
        self._texts: dict[str, str] = {}
        self._file = file_meaning(source)

    def __bool__(self) -> bool:
        return bool(self._names)

    def of(self, type_: c.Type | None) -> Instance | None:
        """Of a value of the type; None for what is no record, or one that is left as it is."""
        return None if type_ is None or type_.is_pointer else self.named(type_.base)

    def named(self, base: str) -> Instance | None:
        if base not in self._found:
            if base.split("<")[0] not in self._names:
                return None
            if len(self._found) > _MAX_INSTANCES:
                raise c.Unreadable("too many records are made from templates")
            self._found[base] = None  # one that contains itself
            self._found[base] = self._made(base)
        return self._found[base]

    def made_by(self, init: c.Expr) -> tuple[Instance, tuple[c.Expr, ...]] | None:
        """The record that an expression makes an object of, and from what."""
        match init:
            case c.Cast(type=type_, value=value) if type_.space != BITS:
                instance = self.of(self.type(type_))
                return None if instance is None else (instance, (value,))
            case c.Braces(type=maybe, items=items) if maybe is not None:
                instance = self.of(self.type(maybe))
                return None if instance is None else (instance, items)
            case c.Call(of=None) if init.function in self._names:
                text = init.function + (f"<{', '.join(init.template_args)}>" if init.template_args else "")
                instance = self.named(self.text(text))
                return None if instance is None else (instance, init.args)
        return None

    def type(self, type_: c.Type) -> c.Type:
        base = self.text(type_.base)
        if base == type_.base:
            return type_
        found = plain_type(base, self._source.language)
        return replace(
            type_, base=found.base, pointers=type_.pointers + found.pointers, const=type_.const or found.const
        )

    def text(self, text: str) -> str:
        """A type with its arguments computed, and `record::name` resolved."""
        if "<" not in text and "::" not in text:
            return text
        if text not in self._texts:
            self._texts[text] = self._settled(text.removeprefix("typename ").strip(), 0)
        return self._texts[text]

    def _settled(self, text: str, depth: int) -> str:
        if depth > 20:
            return text
        head, bracket, rest = text.partition("<")
        if not bracket:
            owner, separator, member = text.rpartition("::")
            return self._member(owner, member, depth) if separator and owner in self._names else text
        end = _find_closing_angle(rest)
        inside, behind = rest[:end], rest[end + 1 :]
        if head.strip() not in self._names:
            return text
        args = tuple(split_arguments(inside))
        settled = f"{head.strip()}<{', '.join(self._argument(a, depth) for a in self._all(head, args))}>"
        return self._member(settled, behind[2:], depth) if behind.startswith("::") else settled + behind

    def _all(self, name: str, args: tuple[str, ...]) -> tuple[str, ...]:
        """With the defaults of the template's parameters."""
        primary = next((r for r in self._source.records if r.name == name and not r.specialises), None)
        if primary is None or len(args) >= len(primary.template):
            return args
        defaults = [parameter.default for parameter in primary.template[len(args) :]]
        return (*args, *defaults) if all(defaults) else args

    def _argument(self, text: str, depth: int) -> str:
        text = self._file.type_text(text)
        if text.isdigit():
            return text
        if "<" in text and text.split("<")[0].strip() in self._names:
            return self._settled(text, depth + 1)
        known = canonical_type_name(text, self._source.language)
        if known in self._names or byte_size(known) is not None or known.endswith("*"):
            return known
        try:
            value = int_value(fold_expr(read_expression(text)))
        except c.Unreadable:
            return known
        return known if value is None else str(value)

    def _member(self, owner: str, member: str, depth: int) -> str:
        instance = self.named(owner)
        if instance is None or not member:
            return f"{owner}::{member}" if member else owner
        for name, text in instance.record.aliases:
            if name == member:
                return self._settled(instance.meaning.type_text(text), depth + 1)
        return f"{owner}::{member}"

    def _made(self, base: str) -> Instance | None:
        head, _, rest = base.partition("<")
        args = tuple(split_arguments(rest.removesuffix(">")))
        found = self._chosen(head, args)
        if found is None:
            return None
        record, bound = found
        if record.unread:
            raise c.Unreadable(f"the structure {head} is not understood: {record.unread}", record.line)
        if any(_is_custom_copy(record, method) for method in record.methods):
            raise c.Unreadable(f"the structure {head} says itself how it is copied", record.line)
        meaning = template_meaning(record.template, bound, self._source)
        for name, text in record.aliases:
            type_ = plain_type(self.text(meaning.type_text(text)), "cuda")
            meaning = meaning.with_template({name: type_}, {})
        constants: dict[str, c.Expr] = {}
        for name, value in record.constants:
            typed = walk.map_types_in(value, meaning.type)
            folded = fold_expr(substitute(typed, {**meaning.values, **constants}))
            if isinstance(folded, c.Cast) and isinstance(folded.value, c.Number):
                folded = of_type(folded.value, folded.type)
            if isinstance(folded, c.Number):
                constants[name] = folded
        meaning = meaning.with_template({}, constants)
        fields = tuple(self._field(declare, meaning, record.is_union) for declare in record.fields)
        if not record.methods and not record.is_union and self._is_plain(record, fields):
            return None
        made = Instance(base, record, fields, meaning, constants)
        return replace(made, has_gaps=self._has_gaps(made))

    def _has_gaps(self, instance: Instance) -> bool:
        """Whether what it says of alignment may make it longer than its fields are."""
        record, offset, asked = instance.record, 0, list[tuple[int | None, int | None]]()
        for declare, field in zip(record.fields, instance.fields, strict=True):
            if declare.align is not None:
                asked.append((self._number(declare.align, instance.meaning), offset))
            offset += field.size or 0
        total = instance.size
        if record.align is not None:
            asked.append((self._number(record.align, instance.meaning), 0))
        return any(not by or total is None or total % by or (start or 0) % by for by, start in asked)

    def _number(self, value: c.Expr, meaning: Meaning) -> int | None:
        found = self._plain_default(value, meaning)
        return None if found is None else int_value(fold_expr(found))

    def _is_plain(self, record: c.Record, fields: tuple[RecordField, ...]) -> bool:
        """Fields and nothing else: left to whoever takes plain structures apart."""
        named = any(p.type.base == record.name for op in self._source.operators for p in op.parameters)
        more = any(field.inner is not None or field.count or field.init is not None for field in fields)
        return bool(fields) and not named and not more and record.name not in self._inner

    def _field(self, declare: c.Declare, meaning: Meaning, in_union: bool) -> RecordField:
        type_ = self.type(meaning.type(declare.type))
        count = 0
        if declare.dims:
            known = int_value(fold_expr(substitute(declare.dims[0], meaning.values)))
            if known is None or len(declare.dims) > 1 or known <= 0:
                raise c.Unreadable(f"the extent of the field {declare.name} is not known", declare.line)
            count = known
        inner: Instance | None = None
        if byte_size(type_.base) is None and not type_.is_pointer:
            inner = self.named(type_.base)
            if inner is None or (in_union and inner.only is None):
                raise c.Unreadable(f"the field {declare.name} is a {type_.base}", declare.line)
        return RecordField(declare.name, type_, count, declare.init, inner)

    def value(self, base: str) -> str:
        """The type that a record with one field comes to; any other is itself."""
        instance = self.named(base)
        while instance is not None and instance.only is not None:
            base, instance = instance.only.type.base, instance.only.inner
        return base

    def default(self, instance: Instance, field: RecordField) -> c.Expr | None:
        """The value that a field has unless a constructor says another; its object is THIS."""
        key = instance.name, field.name
        if field.init is not None and key not in self._defaults:
            this = c.Parameter(c.Type(instance.name, reference=True), THIS)
            given = c.Function("", (this,), (c.Return(as_list(field.init)),), c.Type("auto"))
            last = self._method(instance, given).body[-1]
            assert isinstance(last, c.Return) and last.value is not None, "nothing else was there"
            self._defaults[key] = last.value
        return self._defaults.get(key)

    def _chosen(
        self, name: str, args: tuple[str, ...]
    ) -> tuple[c.Record, tuple[tuple[str, str], ...]] | None:
        """The record that is meant and what its template's names stand for: the closest specialisation."""
        fits: list[tuple[int, c.Record, dict[str, str]]] = []
        for record in self._source.records:
            if record.name != name:
                continue
            if not record.specialises:
                names = [parameter.name for parameter in record.template]
                if len(names) == len(args):
                    fits.append((1000, record, dict(zip(names, args, strict=True))))
                continue
            bound = self._fitted(record, args)
            if bound is not None:
                fits.append((len(bound), record, bound))
        if not fits:
            return None
        least = min(rank for rank, _, _ in fits)
        best = [(record, bound) for rank, record, bound in fits if rank == least]
        if len(best) != 1:
            raise c.Unreadable(f"which {name}<{', '.join(args)}> is meant is not clear")
        record, bound = best[0]
        return record, tuple((p.name, bound[p.name]) for p in record.template)

    def _fitted(self, record: c.Record, args: tuple[str, ...]) -> dict[str, str] | None:
        names = {parameter.name for parameter in record.template}
        if len(record.specialises) != len(args):
            return None
        bound: dict[str, str] = {}
        for pattern, arg in zip(record.specialises, args, strict=True):
            if pattern in names:
                if bound.setdefault(pattern, arg) != arg:
                    return None
            elif names.intersection(identifiers_in(pattern)):
                if _may_fit(pattern, arg, names):
                    raise c.Unreadable(f"whether {record.name} is written for {arg} is not looked for")
                return None
            elif self._argument(pattern, 0) != arg:
                return None
        return bound if set(bound) == names else None

    def methods(self, instance: Instance, name: str) -> tuple[c.Function, ...]:
        """Those of a name, with the object as their first parameter unless they are static."""
        plain = name if name.startswith("operator<") else name.partition("<")[0]
        return tuple(self._method(instance, each) for each in instance.record.methods if each.name == plain)

    def _method(self, instance: Instance, method: c.Function) -> c.Function:
        fields = {field.name for field in instance.fields}
        parameters = {parameter.name for parameter in method.parameters}
        members: dict[str, c.Expr] = {name: c.Member(c.Name(THIS), name) for name in fields - parameters}
        names = {other.name for other in instance.record.methods} - {instance.record.name}
        arranged = self._order_field_inits(instance, method)
        if _keeps_this(arranged):
            raise c.Unreadable(f"{method.name} of {instance.name} uses its object's address", method.line)
        written = walk.map_nodes(arranged, lambda node: _of_this(node, names))
        body = substitute(written, members)

        def itself(type_: c.Type) -> c.Type:  # within a record its name alone means itself
            return replace(type_, base=instance.name) if type_.base == instance.record.name else type_

        body = walk.map_types(body, itself)
        parts = tuple(replace(p, type=itself(p.type)) for p in method.parameters)
        hidden = {parameter.name for parameter in method.template}
        meaning = replace(
            instance.meaning,
            types={name: type_ for name, type_ in instance.meaning.types.items() if name not in hidden},
            values={name: value for name, value in instance.meaning.values.items() if name not in hidden},
        )
        plain = replace(method, body=body, parameters=parts, result=itself(method.result), template=())
        done = specialise_function(plain, meaning)
        defaults = (self._plain_default(parameter.default, meaning) for parameter in method.parameters)
        pairs = zip(done.parameters, defaults, strict=True)
        filled = tuple(replace(parameter, default=default) for parameter, default in pairs)
        return self.settled(replace(done, parameters=filled, template=method.template))

    def _plain_default(self, value: c.Expr | None, meaning: Meaning) -> c.Expr | None:
        """An argument that may be left out; None where what it names may be something else at the call."""
        if value is None:
            return None
        given = c.Function("", (), (c.Return(value),), c.Type("auto"))
        last = self.settled(specialise_function(given, meaning)).body[-1]
        found = last.value if isinstance(last, c.Return) else None
        return None if found is None or walk.names_in(found) else found

    def _order_field_inits(self, instance: Instance, method: c.Function) -> tuple[c.Stmt, ...]:
        """A constructor's body, with all fields set first in the order in which they are declared."""
        if method.name != instance.record.name.rpartition("::")[2]:
            return method.body
        given: dict[str, c.Evaluate] = {}
        for stmt in method.body[: method.sets]:
            if not isinstance(stmt, c.Evaluate) or not isinstance(stmt.expr, c.Assign):
                return method.body  # another constructor sets them
            if isinstance(stmt.expr.target, c.Member):
                given[stmt.expr.target.field] = stmt
        done: list[c.Stmt] = []
        for field in instance.fields:
            listed = given.pop(field.name, None)
            value = listed.expr.value if listed is not None and isinstance(listed.expr, c.Assign) else None
            if value is None and not instance.record.is_union:
                value = self.default(instance, field)
            items = value.items if isinstance(value, c.Braces) else None
            place, line = c.Member(c.Name(THIS), field.name), method.line if listed is None else listed.line
            if field.inner is not None or field.count:
                args = () if items is None else (c.Braces(items),)
                done.append(c.Evaluate(c.Call(CONSTRUCTED, args, of=place), line=line))
            elif items is not None:
                if len(items) > 1:
                    raise c.Unreadable(f"the field {field.name} is set to several values", line)
                one = items[0] if items else integer_literal(0)
                done.append(c.Evaluate(c.Assign("=", place, one), line=line))
        if given:
            raise c.Unreadable(f"{min(given)} is set, which is no field of {instance.name}", method.line)
        return (*done, *method.body[method.sets :])

    def settled(self, function: c.Function) -> c.Function:
        """The function with its types as they are called here."""
        parameters = tuple(replace(p, type=self.type(p.type)) for p in function.parameters)
        body = walk.map_nodes(walk.map_types(function.body, self.type), self._named)
        return replace(function, parameters=parameters, body=body, result=self.type(function.result))

    def _named(self, node: c.Expr) -> c.Expr:
        """`vec_t<T, 8>::size` as its value; `vec_t<T, 8>::load(p)` under the record's settled name."""
        text = node.text if isinstance(node, c.Opaque) else node.name if isinstance(node, c.Name) else ""
        if isinstance(node, c.SizeOf):
            instance = self.of(node.type)
            size = instance.size if instance is not None else None
            return node if size is None else c.Number(str(size), size)
        if isinstance(node, c.Call) and node.of is None and "::" in node.function:
            owner, _, name = node.function.rpartition("::")
            return replace(node, function=f"{self.text(owner)}::{name}") if "<" in owner else node
        owner, separator, name = text.rpartition("::")
        if separator and all(ch.isalnum() or ch in "_<>:, *" for ch in text):
            instance = self.named(self.text(owner))
            if instance is not None and name in instance.constants:
                return instance.constants[name]
        return node


def _keeps_this(body: tuple[c.Stmt, ...]) -> bool:
    """Whether `this` stands anywhere but in `this->field`, `this->method()` and `*this`."""
    nodes = list(walk.nodes_in(body))
    plain = sum(node == c.Name("this") for node in nodes)
    for node in nodes:
        match node:
            case (
                c.Member(base=c.Name(name="this")) | c.Call(of=c.Name(name="this"))
                | c.Index(base=c.Name(name="this"), index=c.Number(value=0))
            ):  # fmt: skip
                plain -= 1
    return plain > 0


def _of_this(node: c.Expr, methods: set[str]) -> c.Expr:
    match node:
        case c.Member(base=c.Name(name="this"), field=field, arrow=True):
            return c.Member(c.Name(THIS), field)
        case c.Index(base=c.Name(name="this"), index=c.Number(value=0)):
            return c.Name(THIS)
        case c.Call(function=function, of=None) if function in methods:
            return replace(node, of=c.Name(THIS))
    return node


def _is_custom_copy(record: c.Record, method: c.Function) -> bool:
    """Whether it is a constructor or an assignment from another of the kind that does more than copy."""
    constructor = record.name.rpartition("::")[2]
    if method.name not in (constructor, "operator=") or len(method.parameters) < 2:
        return False
    other, *more = method.parameters[1:]
    if other.type.base.split("<")[0] != record.name or other.type.is_pointer or method.template:
        return False
    if any(parameter.default is None for parameter in more):
        return False
    set_ = [_simplify_field_init(stmt.expr) for stmt in method.body if isinstance(stmt, c.Evaluate)]
    fields = {field.name for field in record.fields}
    plain = {c.Assign("=", c.Name(name), c.Member(c.Name(other.name), name)) for name in fields}
    rest = [stmt for stmt in method.body if not isinstance(stmt, c.Evaluate | c.Return)]
    return set(set_) != plain or bool(rest)


def _simplify_field_init(expr: c.Expr) -> c.Expr:
    """`this->a = {x}`, as lists of initialisers are read, as `a = x`."""
    match expr:
        case c.Assign("=", c.Member(base=c.Name(name="this"), field=field, arrow=True), value):
            if isinstance(value, c.Braces) and len(value.items) == 1:
                value = value.items[0]
            return c.Assign("=", c.Name(field), value)
    return expr


def as_list(value: c.Expr) -> c.Braces:
    return value if isinstance(value, c.Braces) and value.type is None else c.Braces((value,))


def _may_fit(pattern: str, arg: str, names: set[str]) -> bool:
    """Whether `vec<T, 4>` or `T *` may stand for an argument."""
    words = re.findall(r"\w+|[^\w\s]", pattern)
    signs = [r".+" if word in names else re.escape(word) for word in words]
    return re.fullmatch(r"\s*".join(signs), arg) is not None


def _find_closing_angle(text: str) -> int:
    depth = 1
    for at, sign in enumerate(text):
        depth += (sign == "<") - (sign == ">")
        if depth == 0:
            return at
    return len(text)


# -- Methods that do one thing to an object that is const and another to one that is not: which is called.
#
# The text of a function tells what is const: its parameters, the object of a const method, its variables.
# Once it is put in place, the caller's object, which may be changed, stands there. So calls are marked:
# `v.f()` of a const v is `v.f#const()`; where it is not told, `v.f#unclear()`, which is refused.


CONST, UNCLEAR = "#const", "#unclear"


def find_const_overloads(records: Iterable[c.Record]) -> frozenset[str]:
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


def mark_const_calls(function: c.Function, names: frozenset[str], source: c.Source) -> c.Function:
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
            types = self._types.setdefault(parameter.name, [])
            types.append(parameter.type)
            if is_lambda(function.name) and parameter.type.reference:  # as const as what it captures
                types.append(replace(parameter.type, const=not parameter.type.const))
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
        name = walk.root_variable(arg)[0] if isinstance(arg, c.Name | c.Member | c.Index) else None
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
    generic = {parameter.name for parameter in function.template} | {"auto"}
    return any(p.type.reference and not p.type.const and p.type.base in generic for p in function.parameters)
