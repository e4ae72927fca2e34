"""Statements before they are read: exits as branches, structures taken apart, every variable its own name.

Variables of a structure as one variable for each field: `float2 sum` becomes `sum_x` and `sum_y`.

Done where all that happens to a variable can be said field by field: fields are used, and the whole is set to
another such variable, to an element of such an array, to `make_float2(a, b)` or `{a, b}`. Arrays in shared
memory are taken apart in the same way. What is loaded from memory as a whole stays whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tunesmith.expert.read.accesses import is_atomic
from tunesmith.expert.read.model import OutOfReach
from tunesmith.expert.read.rules.loops import plain_head, with_scratch_in_loops, with_sums_over_loops
from tunesmith.expert.read.rules.pointers import (
    with_arrays_for_pointers,
    with_branches_for_pointers,
    with_numbers_for_pointers,
)
from tunesmith.expert.read.rules.totals import is_set_first
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.substitution import substitute, with_unique_names
from tunesmith.source.types import is_integer

Fields = tuple[tuple[str, str], ...]  # (field, type) in order

_VECTORS = {
    f"{base}{count}": tuple("xyzw"[:count])
    for base in ("float", "double", "int", "uint")
    for count in (2, 3, 4)
}
_ELEMENTS = {"float": "float", "double": "double", "int": "int", "uint": "unsigned int"}
_STRUCT = re.compile(r"\bstruct\s+(?:__\w+__\s*(?:\([^)]*\))?\s*)*(\w+)\s*\{([^{}()]*)\}")
_FIELD = re.compile(r"^\s*((?:[A-Za-z_]\w*\s+)+)([\w\s,]+)$")


def collect_structures(source: c.Source) -> dict[str, Fields]:
    """Plain structures of the file and the language's small vectors."""
    found: dict[str, Fields] = {
        name: tuple((field, _ELEMENTS[name[:-1]]) for field in fields) for name, fields in _VECTORS.items()
    }
    for text in source.preamble:
        for name, inside in _STRUCT.findall(text):
            lines = [_FIELD.match(line.strip()) for line in inside.split(";") if line.strip()]
            if None in lines:
                continue  # it has more than plain fields
            found[name] = tuple(
                (field.strip(), match[1].strip())
                for match in lines
                if match is not None
                for field in match[2].split(",")
            )
    return found


def without_structures(body: tuple[c.Stmt, ...], known: dict[str, Fields]) -> tuple[c.Stmt, ...]:
    declared = {node.name: node for node in walk.nodes_in(body) if isinstance(node, c.Declare)}
    heads = {part.name for node in walk.nodes_in(body) if isinstance(node, c.For) for part in node.init
             if isinstance(part, c.Declare)}  # fmt: skip
    kinds = {(False, ""), (True, "shared")}
    if sum(declare.storage == "dynamic shared" for declare in declared.values()) == 1:
        kinds.add((False, "dynamic shared"))  # several are one memory by different names
    split = {
        name: known[declare.type.base]
        for name, declare in declared.items()
        if declare.type.base in known
        and not declare.type.is_pointer
        and not declare.type.reference
        and len(declare.dims) <= 1
        and (bool(declare.dims), declare.storage) in kinds
        and name not in heads
    }
    taken = walk.names_in(body) | declared.keys()
    split = {
        name: fields
        for name, fields in split.items()
        if not any(f"{name}_{field}" in taken for field, _ in fields)
    }
    while split:
        bad = set(_used_whole(body, split))
        if not bad:
            break
        split = {name: fields for name, fields in split.items() if name not in bad}
    return _Splitting(split).done(body) if split else body


def _used_whole(body: tuple[c.Stmt, ...], split: dict[str, Fields]) -> Iterator[str]:
    """Variables with a use that cannot be said field by field."""
    said: set[int] = set()  # nodes that are said field by field: parents come before children

    def named(part: c.Expr) -> str:
        return _structure_variable(part, split)

    for node in walk.nodes_in(body):
        pairs: list[tuple[str, c.Expr]] = []
        inside: list[c.Expr | c.Stmt] = []
        match node:
            case c.Declare(name=name, init=init) if name in split and init is not None:
                pairs.append((name, init))
            case c.Evaluate(expr=c.Assign(op="=", target=target, value=value)) if named(target):
                pairs.append((named(target), value))
                said.add(id(node.expr))
            case c.Call(function=function, args=args) if is_atomic(function):
                said |= {id(arg) for arg in args}
                inside += args
            case _ if id(node) in said:
                pass
            case c.Unary(op="&", operand=c.Member(base=base, arrow=False)) if named(base):
                inside.append(base)  # from there a pointer may go on to the other fields
            case c.Member(base=base, arrow=False) if named(base):
                inside += [base.index] if isinstance(base, c.Index) else []
            case c.Index(base=c.Name(name=name), index=index) if name in split:
                inside.append(index)
            case c.Opaque() | c.Verbatim():
                yield from (name for name in node.names if name in split)
            case c.Name():
                pass
            case _:
                inside += walk.child_nodes(node)
        yield from (whole for part in inside if isinstance(part, c.Expr) and (whole := named(part)))
        for name, value in pairs:
            if _values_by_field(value, split[name], split) is None:
                yield name
                yield from (other for other in walk.names_in(value) if other in split)
            said |= {id(part) for part in _iterate_ternaries(value)}


def _iterate_ternaries(value: c.Expr) -> Iterator[c.Expr]:
    if isinstance(value, c.Ternary):
        yield value
        yield from _iterate_ternaries(value.yes)
        yield from _iterate_ternaries(value.no)


def _structure_variable(expr: c.Expr, split: dict[str, Fields]) -> str:
    """The variable that an expression is, or an element of; "" for any other."""
    match expr:
        case c.Name(name=name) if name in split:
            return name
        case c.Index(base=c.Name(name=name)) if name in split:
            return name
    return ""


def _values_by_field(value: c.Expr, fields: Fields, split: dict[str, Fields]) -> tuple[c.Expr, ...] | None:
    """The value field by field; None where it is a whole."""
    name = _structure_variable(value, split)
    if name:
        return (
            tuple(_field_expression(value, field) for field, _ in fields) if split[name] == fields else None
        )
    match value:
        case c.Braces(items=items) if len(items) <= len(fields):
            return (*items, *[c.Number("0", 0)] * (len(fields) - len(items)))
        case c.Call(function=function, args=args) if function.startswith("make_") and len(args) == len(
            fields
        ):
            return args
        case c.Ternary(condition=condition, yes=yes, no=no):
            first, second = _values_by_field(yes, fields, split), _values_by_field(no, fields, split)
            if first is None or second is None:
                return None
            return tuple(c.Ternary(condition, a, b) for a, b in zip(first, second, strict=True))
    return None


def _field_expression(whole: c.Expr, field: str) -> c.Expr:
    match whole:
        case c.Name(name=name):
            return c.Name(f"{name}_{field}")
        case c.Index(base=c.Name(name=name), index=index):
            return c.Index(c.Name(f"{name}_{field}"), index)
    raise AssertionError(whole)


class _Splitting:
    def __init__(self, split: dict[str, Fields]) -> None:
        self._split = split
        self._count = 0

    def done(self, body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        return walk.map_nodes(walk.map_statements(body, None, self._statement), self._member)

    def _member(self, node: c.Expr) -> c.Expr:
        if isinstance(node, c.Member) and not node.arrow and _structure_variable(node.base, self._split):
            return _field_expression(node.base, node.field)
        return node

    def _statement(self, stmt: c.Stmt) -> c.Stmt | Iterable[c.Stmt]:
        if isinstance(stmt, c.Declare) and stmt.name in self._split:
            fields = self._split[stmt.name]
            parts: tuple[c.Expr | None, ...] = (None,) * len(fields)
            if stmt.init is not None:
                parts = _values_by_field(stmt.init, fields, self._split) or parts
            return [
                replace(
                    stmt, type=c.Type(type_, const=stmt.type.const), name=f"{stmt.name}_{field}", init=part
                )
                for (field, type_), part in zip(fields, parts, strict=True)
            ]
        if isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Assign):
            return self._assigned(stmt, stmt.expr)
        return stmt

    def _assigned(self, stmt: c.Evaluate, assign: c.Assign) -> Iterable[c.Stmt]:
        name = _structure_variable(assign.target, self._split)
        if not name:
            return (stmt,)
        fields = self._split[name]
        parts = _values_by_field(assign.value, fields, self._split) or ()
        before: list[c.Stmt] = []
        if len(parts) > 1 and name in walk.names_in(assign.value) and assign.target != assign.value:
            # A later part may read a field that an earlier one sets.
            self._count += 1
            for (field, type_), part in zip(fields, parts, strict=True):
                fresh = f"{name}_{field}_new_{self._count}"
                before.append(c.Declare(c.Type(type_), fresh, part, line=stmt.line))
            parts = tuple(c.Name(declare.name) for declare in before if isinstance(declare, c.Declare))
        return [
            *before,
            *(
                c.Evaluate(c.Assign("=", _field_expression(assign.target, field), part), stmt.line)
                for (field, _), part in zip(fields, parts, strict=True)
            ),
        ]


def remove_early_exits(stmts: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
    """The statements with no `return` and no `continue` of their own left; loops inside keep theirs."""
    try:
        return walk.without_exits(stmts, may_copy=True)
    except c.Unreadable as stop:
        raise (OutOfReach.at(stop.line, stop.reason) if stop.line else OutOfReach(stop.reason)) from None


def check_no_return(body: Sequence[c.Stmt]) -> None:
    """A thread that returns from a loop leaves all of its later turns as well: no turn stands by itself."""
    for stmt in walk.statements_in(body):
        if isinstance(stmt, c.Return):
            raise OutOfReach.at(stmt.line, "a thread returns from inside a loop that is shared out")


def _simplify_row_address(node: c.Expr) -> c.Expr:
    """`&s[g][0]` is the row s[g]."""
    match node:
        case c.Unary(op="&", operand=c.Index(base=c.Index(base=c.Name()) as row, index=c.Number(value=0))):
            return row
    return node


def _expand_mul24(node: c.Expr) -> c.Expr:
    """OpenCL leaves open what mad24 and mul24 give beyond 24 bits: the plain product is as good as any."""
    match node:
        case c.Call(function="mul24", args=(left, right)):
            return c.Binary("*", left, right)
        case c.Call(function="mad24", args=(left, right, more)):
            return c.Binary("+", c.Binary("*", left, right), more)
    return node


def tidy_statements(
    body: tuple[c.Stmt, ...], source: c.Source, parameters: Sequence[c.Parameter]
) -> tuple[c.Stmt, ...]:
    if source.language == "opencl":
        body = walk.map_nodes(body, _expand_mul24)
    types = {p.name: p.type for p in parameters}
    unique = with_unique_names(walk.map_nodes(body, _simplify_row_address), {p.name for p in parameters})
    joined = with_scratch_in_loops(with_branches_for_pointers(_join_declare_and_assign(unique), parameters))
    shaped = with_numbers_for_pointers(_with_loops(joined), parameters, source.language)
    summed = with_sums_over_loops(with_arrays_for_pointers(shaped), types)
    return without_structures(summed, collect_structures(source))


def _join_declare_and_assign(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """`int i; i = f();` becomes one declaration where that is the only assignment, in every block."""
    assigns = [node.target for node in walk.nodes_in(body) if isinstance(node, c.Assign)]
    writes = Counter(target.name for target in assigns if isinstance(target, c.Name))
    open_: dict[str, c.Declare] = {}
    done: list[c.Stmt] = []
    for stmt in body:
        stmt = walk.map_blocks(stmt, _join_declare_and_assign)
        plain = isinstance(stmt, c.Declare) and stmt.init is None and not stmt.is_array and not stmt.storage
        if plain and isinstance(stmt, c.Declare) and writes.get(stmt.name) == 1:
            open_[stmt.name] = stmt
        if isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Assign) and stmt.expr.op == "=":
            target = stmt.expr.target
            if isinstance(target, c.Name) and target.name in open_:
                declare = open_.pop(target.name)
                done.remove(declare)
                done.append(replace(declare, init=stmt.expr.value, line=stmt.line))
                continue
        for name in walk.names_in(stmt):
            open_.pop(name, None)
        done.append(stmt)
    return tuple(done)


def _with_loops(stmts: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
    """Loops that declare their own index, where they are written with `while` or an index from before."""
    done: list[c.Stmt] = []
    for at, stmt in enumerate(stmts):
        stmt = walk.map_blocks(stmt, _with_loops)
        later = stmts[at + 1 :]
        if isinstance(stmt, c.While) and not stmt.after:
            stmt = _as_for(stmt)
        if isinstance(stmt, c.For):
            hoisted, stmt = plain_head(stmt)
            done += hoisted
        if isinstance(stmt, c.For) and (not stmt.init or isinstance(stmt.init[0], c.Evaluate)):
            stmt = _with_own_index(stmt, done, later)
        done.append(stmt)
    return tuple(done)


def _as_for(loop: c.While) -> c.Stmt:
    if not loop.body or not isinstance(loop.body[-1], c.Evaluate):
        return loop
    if any(isinstance(node, c.Jump) and node.word == "continue" for node in walk.nodes_in(loop.body)):
        return loop
    step = loop.body[-1].expr
    changed = walk.assigned_in(step)
    if (
        not _only_counts(step)
        or walk.names_in(step) & set(walk.declared_in(loop.body[:-1]))  # not known in a loop's head
        or len(changed) != 1
        or changed & walk.assigned_in(loop.body[:-1])
        or not changed <= walk.names_in(loop.condition)
    ):
        return loop
    return c.For((), loop.condition, (step,), loop.body[:-1], line=loop.line)


def _only_counts(step: c.Expr) -> bool:
    """`i++`, `i += n`: a statement of the body that also stores stays there."""
    match step:
        case c.Unary("++" | "--", c.Name()):
            return True
        case c.Assign(target=c.Name(), value=value):
            return not walk.assigned_in(value)
    return False


def _with_own_index(loop: c.For, before: list[c.Stmt], later: Sequence[c.Stmt]) -> c.For:
    """Takes the index's start from before the loop, where nothing else needs it."""
    if loop.init:
        part = loop.init[0]
        if len(loop.init) != 1 or not isinstance(part, c.Evaluate) or not isinstance(part.expr, c.Assign):
            return loop
        target = part.expr.target
        if not isinstance(target, c.Name) or part.expr.op != "=" or not is_set_first(later, target.name):
            return loop
        declared = [s for s in before if isinstance(s, c.Declare) and s.name == target.name]
        if len(declared) != 1 or target.name in walk.names_in(part.expr.value):
            return loop
        fresh = f"{target.name}_in_{loop.line}"
        named = substitute((replace(loop, init=()),), {target.name: c.Name(fresh)})[0]
        assert isinstance(named, c.For)
        return replace(named, init=(c.Declare(declared[0].type, fresh, part.expr.value, line=loop.line),))
    counted = [name for step in loop.step for name in walk.assigned_in(step)]
    if len(counted) != 1 or any(counted[0] in walk.names_in(stmt) for stmt in later):
        return loop
    for at in range(len(before) - 1, -1, -1):
        stmt = before[at]
        if isinstance(stmt, c.Declare) and stmt.name == counted[0] and stmt.init is not None:
            del before[at]
            return replace(loop, init=(replace(stmt, type=replace(stmt.type, const=False)),))
        if counted[0] in walk.names_in(stmt) or isinstance(stmt, c.If | c.For | c.While):
            return loop
    return loop


def with_versions(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """`x = a; ... x = b; ...` of an integer at the top level of a kernel with barriers: two variables."""
    if not any(call.function == "__syncthreads" for call in walk.calls_in(body)):
        return body
    writes = Counter(
        node.target.name
        for node in walk.nodes_in(body)
        if isinstance(node, c.Assign) and isinstance(node.target, c.Name)
    )
    others = Counter(
        node.operand.name
        for node in walk.nodes_in(body)
        if isinstance(node, c.Unary) and node.op in ("++", "--", "&") and isinstance(node.operand, c.Name)
    )
    declared = {s.name: s for s in body if isinstance(s, c.Declare) and is_integer(s.type) and not s.is_array}
    plain = Counter(_set_again(stmt) for stmt in body)
    again = {name for name in declared if writes[name] and plain[name] == writes[name] and not others[name]}
    taken = set(walk.declared_in(body)) | set(walk.names_in(body))
    done: list[c.Stmt] = []
    rest = list(body)
    while rest:
        stmt = rest.pop(0)
        name = _set_again(stmt)
        if name in again and isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Assign):
            fresh = walk.fresh_name(name, taken)
            again.add(fresh)
            declared[fresh] = replace(
                declared[name], name=fresh, init=stmt.expr.value, line=stmt.line, comments=()
            )
            rest = list(substitute(rest, {name: c.Name(fresh)}))
            stmt = declared[fresh]
        done.append(stmt)
    return tuple(done)


def _set_again(stmt: c.Stmt) -> str:
    match stmt:
        case c.Evaluate(expr=c.Assign(op="=", target=c.Name(name=name))):
            return name
    return ""
