"""A kernel's statements in a form that is easy to read further.

One name is one variable, pointers and indices are written out, structures taken apart.

    const float *row = input + token * d;  ... row[i]      ->  input[token * d + i]
    const int half = rot_dim / 2;          ... i % half    ->  i % (rot_dim / 2)
    const int lane = threadIdx.x % 32;                     ->  stays a name, listed in `ids`

A variable is written out where it is set once and is index arithmetic: no loads, no floating point. What it
would lose in width comes back as a cast. A load inside pointer arithmetic gets a variable of its own.

Shared memory declared as bytes, or as anything, but used as one type throughout: read as that type.

extern __shared__ char raw[];  float *row = (float *)raw;      ->  raw is an array of floats
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tunesmith.expert.read.accesses import fold_accesses, place_of, pointed_at
from tunesmith.expert.read.integers import BUILTINS, as_integer, expand_terms, from_terms, number_node
from tunesmith.expert.read.model import OutOfReach
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import function_effects
from tunesmith.source.substitution import substitute
from tunesmith.source.types import byte_size, is_integer

_MOVED = "moved "  # stands before the name of a pointer of which it is not known where it points
_LARGEST = 600  # nodes of one expression, written out
_INTEGER_CALLS = frozenset(
    {"min", "max", "abs", "__umulhi", "__mulhi", "umin", "umax"}
)  # of integers, integers
assert all(function_effects(name).any_thread for name in _INTEGER_CALLS)


@dataclass(frozen=True)
class Id:
    """A variable that says which thread or block this is: `expr` over built-in indices and parameters.

    `short` is the same as the source has it, over other such variables too."""

    name: str
    type: c.Type
    expr: c.Expr
    short: c.Expr
    line: int = 0


@dataclass(frozen=True)
class Normal:
    body: tuple[c.Stmt, ...]
    types: Mapping[str, c.Type]  # of parameters and variables
    arrays: Mapping[str, c.Type]  # pointer parameters -> pointer type
    shared: Mapping[str, c.Declare]  # arrays and scalars in shared memory
    ids: Mapping[str, Id] = field(default_factory=dict)
    functions: tuple[c.Function, ...] = ()  # of the file

    @property
    def definitions(self) -> dict[str, c.Expr]:
        return {name: id_.expr for name, id_ in self.ids.items()}

    @property
    def names(self) -> set[str]:
        return {*self.types, *self.ids, *walk.declared_in(self.body)}


def normal_form(
    body: tuple[c.Stmt, ...], function: c.Function, shared_parameters: frozenset[str], language: str
) -> Normal:
    """`body` has unique names (see `tidy`). `shared_parameters`: pointers to OpenCL local memory."""
    return _Normaliser(body, function, shared_parameters, language).run(body)


class _Normaliser:
    def __init__(
        self, body: tuple[c.Stmt, ...], function: c.Function, shared_parameters: frozenset[str], language: str
    ) -> None:
        self._parameters = frozenset(p.name for p in function.parameters)
        index = c.Type("size_t" if language == "opencl" else "unsigned int")
        self._types: dict[str, c.Type] = dict.fromkeys(BUILTINS, index)
        self._types |= {p.name: p.type for p in function.parameters}
        pointers = [p for p in function.parameters if p.type.is_pointer]
        self._arrays = {p.name: p.type for p in pointers if p.name not in shared_parameters}
        self._shared: dict[str, c.Declare] = {
            p.name: c.Declare(c.Type(p.type.base), p.name, storage="dynamic shared")
            for p in function.parameters
            if p.name in shared_parameters
        }
        self._pointers = dict(self._arrays)
        for name, declare in self._shared.items():
            self._pointers[name] = replace(declare.type, pointers=1)
        declares = [node for node in walk.nodes_in(body) if isinstance(node, c.Declare)]
        fixed = {declare.name for declare in declares if declare.type.const and not declare.type.pointers}
        self._changing = walk.assigned_in(body) - _loop_names(body) - fixed
        self._ids: dict[str, Id] = {}
        self._taken = set(self._types)
        for declare in declares:
            self._taken.add(declare.name)
            self._types[declare.name] = declare.type
            if declare.storage in ("shared", "dynamic shared"):
                self._shared[declare.name] = declare
                if len(declare.dims) <= 1:
                    self._pointers[declare.name] = c.Type(declare.type.base, declare.type.pointers + 1)

    def run(self, body: tuple[c.Stmt, ...]) -> Normal:
        return Normal(self.block(body, {}, 0), self._types, self._arrays, self._shared, self._ids)

    def block(
        self, stmts: Sequence[c.Stmt], env: dict[str, c.Expr], depth: int, after: Sequence[c.Stmt] = ()
    ) -> tuple[c.Stmt, ...]:
        """`after`: what follows behind the block, where its pointers are still known."""
        if depth > 100:
            raise OutOfReach("its statements are nested more than 100 deep")
        done: list[c.Stmt] = []
        for at, stmt in enumerate(stmts):
            done += self.statement(stmt, env, depth, (*stmts[at + 1 :], *after))
        return tuple(done)

    def statement(
        self, stmt: c.Stmt, env: dict[str, c.Expr], depth: int, rest: Sequence[c.Stmt]
    ) -> list[c.Stmt]:
        """`rest`: what may follow where the statement's pointers are known."""
        match stmt:
            case c.Declare(storage="shared" | "dynamic shared"):
                return []
            case c.Declare():
                return self.declare(stmt, env, rest)
            case c.Evaluate(
                expr=c.Assign(op="=" | "+=" | "-=" as op, target=c.Name(name=name), value=value)
            ) if name in self._types and self._types[name].is_pointer:
                moved = value if op == "=" else c.Binary(op[0], c.Name(name), value)
                pointer, saved = self._kept(self.written_out(moved, env, stmt.line), name, rest, stmt.line)
                env[name] = pointer
                return saved
            case c.Evaluate():
                return [replace(stmt, expr=self.written_out(stmt.expr, env, stmt.line))]
            case c.If() | c.For() | c.While():
                lost: dict[str, c.Expr] = {name: c.Name(_MOVED + name) for name in self._moved_in(stmt)}
                inside = env if isinstance(stmt, c.If) else env | lost  # a turn begins where another ended
                changed = walk.map_parts(
                    stmt,
                    lambda expr: self.written_out(expr, inside, stmt.line),
                    lambda body: self.block(body, dict(inside), depth + 1),
                )
                env.update(lost)
                return [changed]
            case c.Scope(body=body):
                return list(self.block(body, env, depth, rest))
            case c.Return(value=None) | c.Jump():
                return [stmt]
            case c.Return():
                raise OutOfReach.at(stmt.line, "a kernel returns a value")
        return list(substitute((stmt,), env))

    def _moved_in(self, stmt: c.Stmt) -> set[str]:
        """Pointers of before the statement that are set inside it."""
        moved = {n for n in walk.assigned_in(stmt) if n in self._types and self._types[n].is_pointer}
        return moved - set(walk.declared_in(stmt))

    def _kept(
        self, pointer: c.Expr, name: str, rest: Sequence[c.Stmt], line: int
    ) -> tuple[c.Expr, list[c.Stmt]]:
        """The pointer with what it is computed from as it is now, where that changes while it is in use."""
        pointer, saved = self.without_loads(pointer, line)
        now: dict[str, c.Expr] = {}
        for variable in sorted(walk.names_in(pointer) & self._changing - {*self._pointers}):
            if _is_used_after_reassignment(name, variable, rest):
                fresh = walk.fresh_name(f"{variable}_then", self._taken)
                self._types[fresh] = replace(self._types[variable], const=False)
                saved.append(
                    c.Declare(replace(self._types[variable], const=True), fresh, c.Name(variable), line=line)
                )
                now[variable] = c.Name(fresh)
        return substitute(pointer, now) if now else pointer, saved

    def declare(self, stmt: c.Declare, env: dict[str, c.Expr], rest: Sequence[c.Stmt]) -> list[c.Stmt]:
        if stmt.init is None or stmt.is_array:
            dims = tuple(self.written_out(dim, env, stmt.line) for dim in stmt.dims)
            init = None if stmt.init is None else self.written_out(stmt.init, env, stmt.line)
            return [replace(stmt, dims=dims, init=init)]
        init = self.written_out(stmt.init, env, stmt.line)
        once = stmt.type.const or stmt.name not in self._changing
        if stmt.type.is_pointer:
            if self._is_followed(init):
                env[stmt.name], saved = self._kept(init, stmt.name, rest, stmt.line)
                return saved
            if self._is_local_address(init):
                return [replace(stmt, init=init)]
            raise OutOfReach.at(
                stmt.line, f"the pointer '{stmt.name}' is computed in a way that is not followed"
            )
        if once and is_integer(stmt.type) and all(map(self._is_index_part, walk.expressions_in(init))):
            names, ids = walk.names_in(init), {*BUILTINS, *self._ids}
            is_id = names & ids and names <= ids | (self._parameters - self._changing)
            if is_id and stmt.type.base != "bool":
                expr = substitute(init, {name: id_.expr for name, id_ in self._ids.items()})
                short, whole = (as_integer(stmt.type, one, self._types) for one in (init, expr))
                self._ids[stmt.name] = Id(stmt.name, stmt.type, whole, short, stmt.line)
            else:
                env[stmt.name] = as_integer(stmt.type, init, self._types)
            return []
        return [replace(stmt, init=init)]

    def _is_followed(self, pointer: c.Expr) -> bool:
        """Whether it points into an array, or to a row of a 2-D one in shared memory."""
        row = pointer
        while isinstance(row, c.Cast):
            row = row.value
        is_row = isinstance(row, c.Index) and isinstance(row.base, c.Name) and row.base.name in self._shared
        return is_row or pointed_at(pointer, self._pointers) is not None

    def _is_local_address(self, init: c.Expr) -> bool:
        while isinstance(init, c.Cast):
            init = init.value
        if isinstance(init, c.Unary) and init.op == "&":
            return True
        return isinstance(init, c.Name) and init.name in self._types and init.name not in self._pointers

    def without_loads(self, pointer: c.Expr, line: int) -> tuple[c.Expr, list[c.Stmt]]:
        """Loads in the arithmetic of a pointer get a variable of their own."""
        hoisted: list[c.Stmt] = []
        if not self._is_followed(pointer):
            return pointer, hoisted

        def named(node: c.Expr) -> c.Expr:
            if not isinstance(node, c.Index) or not isinstance(node.base, c.Name):
                return node
            array = node.base.name
            if array not in self._arrays:
                return node
            name = walk.fresh_name(f"{array}_at", self._taken)
            self._types[name] = c.Type(self._arrays[array].base)
            hoisted.append(c.Declare(c.Type(self._arrays[array].base, const=True), name, node, line=line))
            return c.Name(name)

        # Only what is added: `&a[i]` is itself an address.
        match pointer:
            case c.Unary(op="&", operand=c.Index(base=base, index=index)):
                return c.Unary("&", c.Index(base, walk.map_expr(index, named))), hoisted
        return walk.map_expr(pointer, named), hoisted

    def _is_index_part(self, node: c.Expr) -> bool:
        match node:
            case c.Number(value=value):
                return isinstance(value, int)
            case c.Name(name=name):
                known = self._types.get(name)
                return name in BUILTINS or (
                    known is not None and is_integer(known) and name not in self._changing
                )
            case c.Unary(op=op):
                return op in ("-", "+", "!", "~")
            case c.Binary(op=op):
                return op != ","
            case c.Cast(type=type_):
                return is_integer(type_)
            case c.Call(function=function):
                return function in _INTEGER_CALLS
        return isinstance(node, c.SizeOf | c.Ternary)

    def written_out(self, expr: c.Expr, env: Mapping[str, c.Expr], line: int) -> c.Expr:
        for name in walk.assigned_in(expr) & {*env, *self._pointers}:
            if name in self._types and self._types[name].is_pointer and not _only_addressed(expr, name):
                raise OutOfReach.at(line, f"the pointer '{name}' moves")
        result = fold_accesses(substitute(expr, env) if env else expr, self._pointers)
        if lost := [name for name in walk.names_in(result) if name.startswith(_MOVED)]:
            raise OutOfReach.at(line, f"the pointer '{lost[0].removeprefix(_MOVED)}' moves")
        if sum(1 for _ in walk.nodes_in(result)) > _LARGEST:
            raise OutOfReach.at(line, "an expression grows too large with its names written out")
        return result


def _is_used_after_reassignment(pointer: str, name: str, rest: Sequence[c.Stmt]) -> bool:
    """Whether the pointer is used once `name` is set again, as far as the order of the text tells."""
    is_set = False
    for stmt in rest:
        uses = pointer in walk.names_in(stmt)
        if uses and is_set:
            return True
        if name in walk.assigned_in(stmt):
            branches = (stmt.then, stmt.otherwise) if isinstance(stmt, c.If) else None
            used = (_is_used_after_reassignment(pointer, name, branch) for branch in branches or ())
            if uses and (branches is None or any(used)):
                return True
            is_set = True
    return False


def _only_addressed(expr: c.Expr, name: str) -> bool:
    """Whether nothing is done to it but that its address is taken."""
    return not any(
        (isinstance(node, c.Assign) and node.target == c.Name(name))
        or (isinstance(node, c.Unary) and node.op in ("++", "--") and node.operand == c.Name(name))
        for node in walk.nodes_in(expr)
    )


def _loop_names(body: Sequence[c.Stmt]) -> frozenset[str]:
    """Indices of `for` loops that nothing but their own loop's head changes."""
    counts: Counter[str] = Counter()
    heads: set[str] = set()
    for node in walk.nodes_in(body):
        if isinstance(node, c.Assign) and isinstance(node.target, c.Name):
            counts[node.target.name] += 1
        elif isinstance(node, c.Unary) and node.op in ("++", "--", "&") and isinstance(node.operand, c.Name):
            counts[node.operand.name] += 1
        elif isinstance(node, c.For) and len(node.init) == 1 and isinstance(node.init[0], c.Declare):
            index = node.init[0].name
            once = sum(index in walk.assigned_in(step) for step in node.step) == 1
            heads = heads | {index} if once else heads - {index}
    return frozenset(name for name in heads if counts[name] == 1)


def with_used_types(normal: Normal) -> Normal:
    found = {
        name: type_
        for name, declare in normal.shared.items()
        if len(declare.dims) <= 1 and (type_ := _used_as(normal.body, declare)) is not None
    }
    if not found:
        return normal
    sizes = {name: byte_size(normal.shared[name].type.base) or 1 for name in found}

    def retyped(node: c.Expr) -> c.Expr:
        if not isinstance(node, c.Index):
            return node
        place = place_of(node)
        if place is None or place.array not in found:
            return node
        moved = _in_units(place.offset, sizes[place.array], byte_size(found[place.array].base) or 1)
        index = place.index if moved is None or moved == number_node(0) else c.Binary("+", moved, place.index)
        return c.Index(c.Name(place.array), index)

    body = walk.map_nodes(normal.body, retyped)
    retyped_arrays = {
        name: replace(normal.shared[name], type=type_, dims=(), storage="dynamic shared")
        for name, type_ in found.items()
    }
    return replace(normal, body=body, shared={**normal.shared, **retyped_arrays})


def _used_as(body: Sequence[c.Stmt], declare: c.Declare) -> c.Type | None:
    """The one type that every access reads the array as; None where that is its own or there are several."""
    seen: dict[str, c.Type] = {}
    declared_bytes = byte_size(declare.type.base)
    uses = accesses = 0
    for node in walk.nodes_in(body):
        if node == c.Name(declare.name):
            uses += 1
        place = place_of(node) if isinstance(node, c.Index) else None
        if place is None or place.array != declare.name:
            continue
        accesses += 1
        if place.as_type is None or declared_bytes is None:
            return None
        size = byte_size(place.as_type.base)
        if size is None or _in_units(place.offset, declared_bytes, size) is None:
            return None
        seen[place.as_type.base] = c.Type(place.as_type.base)
    return next(iter(seen.values())) if len(seen) == 1 and uses == accesses else None


def _in_units(offset: c.Expr | None, unit: int, size: int) -> c.Expr | None:
    """An offset in elements of the declared type, in units of the type used; None where that is not whole."""
    if offset is None:
        return number_node(0)
    found = {key: count * unit for key, count in expand_terms(offset).items()}
    if any(count % size for count in found.values()):
        return None
    return from_terms({key: count // size for key, count in found.items()})
