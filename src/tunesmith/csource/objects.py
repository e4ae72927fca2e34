"""Records in a function's statements: methods, operators, constructors and conversions as calls of functions;
then variables of a record as variables of its fields.

A record with one field is that field: `bf16 x` becomes `unsigned short x`. Any other is taken apart: `vec v`
with `T data[8]` becomes `T v_data[8]`. Pointers to records become pointers to their elements. Between the
steps calls are put in place (`inline`), so that what a method does is seen as statements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.callees import has_open_result, resolve
from tunesmith.csource.const_calls import differing
from tunesmith.csource.construction import Construction
from tunesmith.csource.effects import is_function
from tunesmith.csource.instances import Instance
from tunesmith.csource.overloads import Overloads
from tunesmith.csource.places import Places, check_once, declared_at_once, shorter
from tunesmith.csource.records import BITS, CONSTRUCTED, Instances
from tunesmith.csource.simplify import declared_where_set
from tunesmith.csource.types import INTEGERS, integer, type_of

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
        self._types = types
        self._names = {record.name for record in source.records}
        self.differing = differing(source.records)  # methods that ask whether their object is const

    @property
    def active(self) -> bool:
        return bool(self.instances)

    def type(self, expr: c.Expr) -> c.Type | None:
        made = self.overloads.made
        if isinstance(expr, c.Call) and expr.function not in made and has_open_result(expr, self.source):
            function = resolve(expr, self._types, self.source)
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

    # -- statements before calls are put in place -----------------------------------------------------

    def prepared(self, stmt: c.Stmt) -> tuple[c.Stmt, ...]:
        """The statement with calls for all that is called by a sign; what must come before it is ahead."""
        before: list[c.Stmt] = []

        def inside(expr: c.Expr) -> c.Expr:
            return self.expr(expr, before, stmt.line)

        def head(expr: c.Expr) -> c.Expr:
            return self._alone(expr, "in the head of a loop", stmt.line)

        match stmt:
            case c.Declare():
                made = self._declared(stmt, before)
                return (*before, *made)
            case c.Evaluate(expr=c.Call(args=args, of=c.Member() as at) as one) if (
                one.function == CONSTRUCTED
            ):
                items = args[0].items if args and isinstance(args[0], c.Braces) else None
                self.construction.field(inside(at.base), at.field, items, before, stmt.line)
                return tuple(before)
            case c.For() if any(isinstance(p, c.Declare) and self._makes(p) for p in stmt.init):
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

    def _makes(self, stmt: c.Declare) -> bool:
        """Whether a declaration makes an object."""
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
                if type_.reference and self.instances.of(found) is not None:
                    assert found is not None, "it is a record"
                    return self.construction.referred(
                        replace(stmt, type=replace(type_, base=found.base)), init, before
                    )
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

    # -- expressions ----------------------------------------------------------------------------------

    def expr(self, expr: c.Expr, before: list[c.Stmt], line: int) -> c.Expr:
        def always(part: c.Expr) -> c.Expr:
            return self.expr(part, before, line)

        def sometimes(part: c.Expr) -> c.Expr:
            return self._alone(part, "under a condition or behind a comma inside an expression", line)

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

    def _alone(self, expr: c.Expr, where: str, line: int) -> c.Expr:
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
                behind = c.Index(base, integer(0)) if arrow else base  # p->v is p[0].v
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
        own = self.overloads.of_library_name(call, self.type)
        if own:
            return replace(call, function=own)
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
        target, own = self.instances.of(cast.type), self.record(value)
        if target is None and own is None:
            return value if self._is_plain_copy(cast.type, value) else cast
        if cast.type.reference:
            raise c.Unreadable("an object is cast to a reference", line)
        return self.converted(value, cast.type, before, line, explicit=True)

    def _is_plain_copy(self, type_: c.Type, value: c.Expr) -> bool:
        """Whether a structure of fields alone is made from another one."""
        own = self.type(value)
        return own is not None and not own.pointers and own.base == type_.base and own.base in self._names

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
            own = self.overloads.operator("=", (type_, self.type(value)), lambda _type: True)
            if own:
                return c.Call(own, (target, value))
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

    # -- conversions ----------------------------------------------------------------------------------

    def _as_number(self, value: c.Expr, before: list[c.Stmt], line: int) -> c.Expr:
        instance = self.record(value)
        if instance is None:
            return value
        found = self.overloads.conversion(instance, None)
        if found is None:
            raise c.Unreadable(f"how a {instance.name} becomes a number is not known", line)
        return c.Call(found, (value,))

    def _as_test(self, value: c.Expr, line: int) -> c.Expr:
        return value if (own := self.record(value)) is None else self.overloads.tested(own, value, line)

    def converted(
        self, value: c.Expr, type_: c.Type, before: list[c.Stmt], line: int, explicit: bool = False
    ) -> c.Expr:
        """The value as one of the type, by constructors and conversions."""
        target, own = self.instances.of(type_), self.record(value)
        if target is own or type_.is_pointer:
            return value
        if target is not None:
            if own is not None:
                found = self.overloads.conversion(own, target.name)
                if found is not None:
                    return c.Call(found, (value,))
            return self.construction.value(target, (value,), before, line, implicit=not explicit)
        assert own is not None
        found = self.overloads.conversion(own, type_.base, explicit=explicit)
        if found is None:
            raise c.Unreadable(f"how a {own.name} becomes a {type_.base} is not known", line)
        done = c.Call(found, (value,))
        result = self.overloads.made[found].result
        return done if result.base == type_.base else c.Cast(c.Type(type_.base), done)

    # -- statements after calls are put in place -------------------------------------------------------

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
                return declared_at_once(done, self._copied(c.Name(name), stmt.init, instance, stmt.line))
            case c.Evaluate(expr=c.Assign(op="=", target=target, value=value)) if (
                instance := self.record(target)
            ) is not None and instance.only is None:
                return self._copied(target, value, instance, stmt.line)
            case c.Evaluate(expr=c.Name() | c.Index() as expr) if self.record(expr) is not None:
                return ()  # what an operator gives back, and nobody takes
        return (stmt,)

    def _copied(self, target: c.Expr, value: c.Expr, instance: Instance, line: int) -> tuple[c.Stmt, ...]:
        if isinstance(value, c.Ternary):
            yes, no = (self._copied(target, part, instance, line) for part in (value.yes, value.no))
            return (c.If(value.condition, yes, no, line=line),)
        if self.record(value) is not instance:
            raise c.Unreadable(f"how a {instance.name} is set here is not understood", line)
        return self.places.copied(target, value, instance, line)

    # -- the whole function -----------------------------------------------------------------------------

    def lowered(self, function: c.Function) -> c.Function:
        """With no record left: those of one field are that field, in values and behind pointers."""
        self._check(function)
        body = walk.map_nodes(function.body, self._without_bits)
        body = walk.map_types(body, self._as_field)
        made = self.construction.made | self.places.names_of(self.construction.made)
        body = declared_where_set(walk.map_nodes(body, self._without_cast), made)
        parameters = tuple(replace(p, type=self._as_field(p.type)) for p in function.parameters)
        return replace(function, parameters=parameters, body=walk.map_nodes(body, shorter))

    def used_whole(self, function: c.Function) -> bool:
        """Whether something is left that takes an object, and not its fields."""
        try:
            self._check(function)
        except c.Unreadable:
            return True
        return False

    def _check(self, function: c.Function) -> None:
        objects = {
            name
            for name, type_ in self._types.items()
            if not type_.is_pointer and self.instances.named(type_.base) is not None
        }
        for stmt in walk.statements_in(function.body):
            parts = [part for part in walk.children(stmt) if isinstance(part, c.Expr)]
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
        own, base = self.type(node.value), self.instances.value(instance.only.type.base)
        of = "" if own is None or own.pointers else self.instances.value(own.base)
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
