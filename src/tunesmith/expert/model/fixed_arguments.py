"""Conditions that the problem's own arguments decide: null pointers, modes and switches that callers fix.

A published kernel does several jobs, `if (bias != nullptr)`, `mode == 2 ? *scale : 1.0f`. What a condition
asks of arguments with one value in the problem file alone is answered, and whether an array is there; the
arguments stay where they are computed with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import is_pure
from tunesmith.csource.fold import fold, fold_statements, int_value
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import integer
from tunesmith.expert.model.facts import Fact
from tunesmith.expert.model.translate import parameter_values
from tunesmith.problem.problem import Problem
from tunesmith.space import grammar as size

_NOTHING = (c.Name("nullptr"), c.Name("NULL"))
_LITERALS = {"true": 1, "false": 0}
_ASKS = frozenset({"==", "!=", "<", ">", "<=", ">=", "&&", "||"})


def fixed_values(problem: Problem, function: c.Function) -> dict[str, int]:
    """Parameters of the kernel that are one number in every call; a null pointer is 0."""
    known = parameter_values(problem, tuple(p.name for p in function.parameters))
    changed = walk.assigned_in(function.body)
    found: dict[str, int] = {}
    for parameter in function.parameters:
        match known.get(parameter.name):
            case size.Num(value=value) if parameter.name not in changed:
                if not parameter.type.pointers or value == 0:
                    found[parameter.name] = value
    return found


def given_arrays(problem: Problem, function: c.Function) -> frozenset[str]:
    """Pointers of the kernel that are arrays of the problem: these are never null."""
    given = {argument.name for argument in problem.arguments if argument.is_array}
    args = problem.launches[0].args if problem.launches else ()
    pairs = zip(function.parameters, args, strict=False)
    return frozenset(p.name for p, arg in pairs if arg in given and p.type.pointers == 1)


def with_decided(
    function: c.Function, fixed: Mapping[str, int], arrays: frozenset[str]
) -> tuple[c.Function, tuple[str, ...]]:
    """Without the branches that the fixed arguments rule out; the names that had a say."""
    changed = walk.assigned_in(function.body)
    function = _with_arrays(function, arrays - changed)
    values: dict[str, c.Expr] = {name: integer(value) for name, value in fixed.items()}
    used: dict[str, frozenset[str]] = {name: frozenset({name}) for name in fixed}
    for declare in (node for node in walk.nodes_in(function.body) if isinstance(node, c.Declare)):
        if declare.name in values:  # another one of that name
            return function, ()
        init = declare.init
        if declare.type.pointers and init in _NOTHING and declare.name not in changed:
            values[declare.name], used[declare.name] = integer(0), frozenset()
        if init is None or declare.is_array or declare.type.pointers or declare.name in changed:
            continue
        is_flag = declare.type.base in ("bool", "auto") and _is_question(init)
        number = _answer(init, values) if is_flag else None
        if number is None and declare.type.base == "bool" and declare.type.const:
            number = _LITERALS.get(init.name) if isinstance(init, c.Name) else int_value(init)
        if number is not None:
            values[declare.name] = integer(number)
            used[declare.name] = frozenset().union(*(used[n] for n in walk.names_in(init) if n in used))
    said: set[str] = set()

    def asked(node: c.Expr) -> c.Expr:
        number = _answer(node, values) if _is_question(node) else None
        if number is None:
            return _settled(node)
        said.update(*(used[name] for name in walk.names_in(node) if name in used))
        return integer(number)

    def condition(expr: c.Expr) -> c.Expr:
        if isinstance(expr, c.Name) and expr.name in values:
            said.update(used[expr.name])
            return values[expr.name]
        return expr

    def heads(stmt: c.Stmt) -> c.Stmt:
        return replace(stmt, condition=condition(stmt.condition)) if isinstance(stmt, c.If) else stmt

    def choices(node: c.Expr) -> c.Expr:
        if isinstance(node, c.Ternary):
            return replace(node, condition=condition(node.condition))
        return asked(node)

    body = walk.map_statements(walk.map_nodes(function.body, choices), on_stmt=heads)
    if body == function.body:
        return function, ()
    return replace(function, body=_without_null(fold_statements(body))), tuple(sorted(said))


def _without_null(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """Without pointers to nothing that nothing uses: what a helper was given and did not need."""
    counts = Counter(node.name for node in walk.nodes_in(body) if isinstance(node, c.Name))

    def stmt(one: c.Stmt) -> c.Stmt | tuple[c.Stmt, ...]:
        match one:
            case c.Declare(type=type_, init=c.Name("nullptr" | "NULL"), dims=()) if type_.pointers:
                return one if counts[one.name] else ()
        return one

    return walk.map_statements(body, on_stmt=stmt)


def _with_arrays(function: c.Function, arrays: frozenset[str]) -> c.Function:
    """`bias != nullptr` of an array that is there."""

    def asked(node: c.Expr) -> c.Expr:
        match node:
            case c.Binary("==" | "!=" as op, c.Name(name=name), c.Name(name="nullptr" | "NULL")):
                return integer(int(op == "!=")) if name in arrays else node
        return node

    body = walk.map_nodes(function.body, asked)
    return function if body == function.body else replace(function, body=fold_statements(body))


def _settled(node: c.Expr) -> c.Expr:
    """`n > 3 && 0`: what stands before it need not be asked, where asking does nothing."""
    match node:
        case c.Binary("&&" | "||" as op, left, c.Number(value=value)) if is_pure(left):
            if bool(value) == (op == "||"):
                return integer(int(op == "||"))
    return node


def _is_question(node: c.Expr) -> bool:
    return (isinstance(node, c.Binary) and node.op in _ASKS) or (isinstance(node, c.Unary) and node.op == "!")


def _is_sure(node: c.Expr) -> bool:
    return all(
        isinstance(one, c.Name | c.Number)
        or (isinstance(one, c.Binary) and one.op in (*_ASKS, "&", "|", "%", "/", ">>"))
        or (isinstance(one, c.Unary) and one.op == "!")
        for one in walk.nodes_in(node)
    )


def _answer(node: c.Expr, values: Mapping[str, c.Expr]) -> int | None:
    """Of a question that names fixed arguments and nothing else."""
    names = walk.names_in(node) - {"nullptr", "NULL"}
    if not names or not names <= values.keys():
        return None
    # Whatever their types are, non-negative numbers stay so in these.
    if any(isinstance(v, c.Number) and v.value < 0 for v in values.values()) or not _is_sure(node):
        return None
    null = integer(0)
    return int_value(fold(substitute(node, {**values, "nullptr": null, "NULL": null})))


def facts_of_fixed(names: tuple[str, ...], fixed: Mapping[str, int]) -> tuple[Fact, ...]:
    return tuple(
        Fact(f"'{name}' is {fixed[name]} in every call", "the contract's word", "value of the argument")
        for name in names
    )
