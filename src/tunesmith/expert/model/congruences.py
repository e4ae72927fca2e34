"""Tests of alignment and of remainders that the contract decides: `(uintptr_t)row % 16 == 0`, `n & 3`.

Kernels of libraries ask whether wide accesses are allowed, and have a slower way beside. A forward walk knows
of every integer which power of two divides it, and what is left over; of a pointer the same in bytes. That
starts from `align` and `multiple_of` of the problem file and survives whatever wraps around: 2^32 is a
multiple of all of them. Numbers that are constants are known themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import is_function, is_pure
from tunesmith.csource.fold import fold_statements
from tunesmith.csource.printing import print_expr
from tunesmith.csource.types import INTEGERS, byte_size, integer, is_integer
from tunesmith.expert.model.facts import Fact
from tunesmith.expert.model.translate import divisor, parameter_values
from tunesmith.problem.problem import Problem
from tunesmith.space import grammar as size

_MOST = 1 << 16  # nobody asks for more
_LARGEST = 1 << 31  # constants beyond it may have another sign
_QUESTIONS = frozenset({"==", "!=", "&&", "||"})


@dataclass(frozen=True)
class Residue:
    """A number that is `rest` more than a multiple of `of`, a power of two; `of` 0: the number itself.

    `step`: bytes of what a pointer points to, 0 for an integer.
    """

    of: int
    rest: int
    step: int = 0

    @property
    def is_number(self) -> bool:
        return self.of == 0


_ANY = Residue(1, 0)
Known = dict[str, tuple[c.Type, Residue]]


def with_promised(function: c.Function, source: c.Source, problem: Problem) -> tuple[c.Function, list[Fact]]:
    """Without the branches that alignments and multiples of the contract rule out."""
    work = _ResidueWalk(function.body)
    body = work.block(function.body, work.in_sight({**_constants(source), **_given(function, problem)}))
    if not work.facts:
        return function, []
    return replace(function, body=fold_statements(body)), list(dict.fromkeys(work.facts))


def _constants(source: c.Source) -> Known:
    numbers = {name: value for name, value in source.constants if isinstance(value, c.Number)}
    return {name: (c.Type("auto"), _number(one.value)) for name, one in numbers.items()}


def _given(function: c.Function, problem: Problem) -> Known:
    """What the contract says of the kernel's parameters."""
    values = parameter_values(problem, tuple(p.name for p in function.parameters))
    steps = {r.name: gcd(*r.one_of) if r.one_of else r.multiple_of for r in problem.contract.sizes}
    arguments = {argument.name: argument for argument in problem.arguments}
    args = problem.launches[0].args if problem.launches else ()
    found: Known = {}
    for parameter in function.parameters:
        value = values.get(parameter.name)
        if value is not None and is_integer(parameter.type):
            one = (
                _number(value.value)
                if isinstance(value, size.Num)
                else Residue(_twos(divisor(value, steps)), 0)
            )
            found[parameter.name] = parameter.type, _as_type(parameter.type, one)
    for parameter, arg in zip(function.parameters, args, strict=False):
        argument = arguments.get(arg)
        own = byte_size(parameter.type.base)
        if argument is not None and argument.is_array and parameter.type.pointers == 1 and own:
            start = Residue(_twos(argument.align or argument.element.bytes), 0, own)
            found[parameter.name] = parameter.type, start
    return found


class _ResidueWalk:
    def __init__(self, body: tuple[c.Stmt, ...]) -> None:
        self.facts: list[Fact] = []
        self._out_of_sight = _out_of_sight(body)

    def in_sight(self, known: Known) -> Known:
        return {name: one for name, one in known.items() if name not in self._out_of_sight}

    def block(self, stmts: Sequence[c.Stmt], known: Known) -> tuple[c.Stmt, ...]:
        return tuple([self._statement(stmt, known) for stmt in stmts])

    def _statement(self, stmt: c.Stmt, known: Known) -> c.Stmt:
        """`known` is what holds before the statement, and then behind it."""
        match stmt:
            case c.Declare():
                stmt = replace(
                    stmt, init=None if stmt.init is None else self._asked(stmt.init, known, stmt.line)
                )
                self._forget(known, stmt)
                value = _ANY if stmt.init is None or stmt.is_array else self._value(stmt.init, known)
                self._keep(known, stmt.name, stmt.type, value)
                return stmt
            case c.Evaluate(
                expr=c.Assign(op="=" | "+=" as op, target=c.Name(name=name) as target, value=right)
            ) if name in known and not walk.assigned_in(right):
                value = self._value(right if op == "=" else c.Binary("+", target, right), known)
                stmt = replace(stmt, expr=self._asked(stmt.expr, known, stmt.line))
                known[name] = known[name][0], _as_type(known[name][0], value)
                return stmt
            case c.If():
                test = self._asked(stmt.condition, known, stmt.line, is_test=True)
                then, otherwise = (self.block(side, dict(known)) for side in (stmt.then, stmt.otherwise))
                self._forget(known, stmt)
                return replace(stmt, condition=test, then=then, otherwise=otherwise)
            case c.For():
                inside = dict(known)
                self._forget(inside, stmt)
                for part in stmt.init:
                    inside.pop(part.name if isinstance(part, c.Declare) else "", None)
                self._forget(known, stmt)
                return replace(stmt, body=self.block(stmt.body, inside))
            case c.While():
                self._forget(known, stmt)
                return replace(stmt, body=self.block(stmt.body, dict(known)))
            case c.Scope():
                inside = dict(known)
                stmt = replace(stmt, body=self.block(stmt.body, inside))
                self._forget(known, stmt)
                return stmt
            case c.Evaluate():
                stmt = replace(stmt, expr=self._asked(stmt.expr, known, stmt.line))
        self._forget(known, stmt)
        return stmt

    def _keep(self, known: Known, name: str, type_: c.Type, value: Residue) -> None:
        known.pop(name, None)
        if name not in self._out_of_sight and not type_.reference:
            known[name] = type_, _as_type(type_, value)

    def _forget(self, known: Known, part: walk.Part) -> None:
        for name in walk.assigned_in(part) & known.keys():
            known[name] = known[name][0], _ANY

    def _asked(self, expr: c.Expr, known: Known, line: int, is_test: bool = False) -> c.Expr:
        """With 0 or 1 for the questions that have one answer; a name alone is one where it is a test."""
        changed = walk.assigned_in(expr)

        def answer(node: c.Expr) -> c.Expr:
            is_question = isinstance(node, c.Binary) and node.op in _QUESTIONS
            is_flag = is_test and isinstance(node, c.Name) and node.name in known and node == expr
            if (not is_question and not is_flag) or walk.names_in(node) & changed:
                return node
            found = self._value(node, known)
            if not found.is_number or found.step or not is_pure(node):
                return node
            if any(isinstance(part, c.Name) for part in walk.nodes_in(node)):
                said = f"'{print_expr(node)}' {'holds' if found.rest else 'does not hold'}"
                self.facts.append(Fact(said, "the contract's word", f"line {line}: align and multiple_of"))
            return integer(int(bool(found.rest)))

        return walk.map_expr(expr, answer)

    def _value(self, expr: c.Expr, known: Known, depth: int = 0) -> Residue:
        if depth > c.MAX_DEPTH:
            raise c.TooDeep

        def inner(part: c.Expr) -> Residue:
            return self._value(part, known, depth + 1)

        match expr:
            case c.Number(value=int(value)):
                return _number(value)
            case c.Name(name=name):
                return known[name][1] if name in known else _LITERALS.get(name, _ANY)
            case c.SizeOf(type=type_):
                own = 8 if type_.pointers else byte_size(type_.base)
                return _ANY if own is None else _number(own)
            case c.Cast(type=type_, value=value):
                return _as_type(type_, inner(value))
            case c.Unary(op="!", operand=operand):
                found = inner(operand)
                return _number(int(not found.rest)) if found.is_number else _ANY
            case c.Unary(op="&", operand=c.Index(base=base, index=index)):
                return _sum(inner(base), inner(index))
            case c.Binary(op=op, left=left, right=right):
                return _computed(op, inner(left), inner(right))
        return _ANY


_LITERALS = {"true": Residue(0, 1), "false": Residue(0, 0)}


def _as_type(type_: c.Type, value: Residue) -> Residue:
    """As a variable of the type holds it."""
    if type_.base == "auto":
        return value if not type_.pointers or value.step else _ANY
    if type_.pointers:
        own = byte_size(type_.base) if type_.pointers == 1 else None
        return replace(value, step=own) if own and value.step else _ANY
    if type_.base == "bool":
        return _number(int(bool(value.rest))) if value.is_number and not value.step else _ANY
    if not is_integer(type_):
        return _ANY
    wide = INTEGERS[type_.base][0] >= (8 if value.step else 4)  # of a pointer: all of its bits
    return replace(value, step=0) if wide or (value.is_number and value.rest < 128) else _ANY


def _computed(op: str, left: Residue, right: Residue) -> Residue:
    numbers = left.is_number and right.is_number and not left.step and not right.step
    a, b = left.rest, right.rest
    match op:
        case "+":
            return _sum(left, right)
        case "-" if not right.step:
            by = max(left.step, 1)
            return _residue(gcd(left.of, by * right.of), a - by * b, left.step)
        case "==" | "!=" if left.step == right.step == 0:
            common = gcd(left.of, right.of)
            if numbers:
                return _number(int((a == b) == (op == "==")))
            return _number(int(op == "!=")) if common > 1 and (a - b) % common else _ANY
        case "&&":
            sides = [one for one in (left, right) if one.is_number]
            if any(not one.rest for one in sides):
                return _number(0)
            return _number(1) if len(sides) == 2 else _ANY
        case "||":
            sides = [one for one in (left, right) if one.is_number]
            if any(one.rest for one in sides):
                return _number(1)
            return _number(0) if len(sides) == 2 else _ANY
    if left.step or right.step:
        return _ANY
    match op:
        case "*":
            return _residue(gcd(left.of * right.of, left.of * b, right.of * a), a * b)
        case "<<" if right.is_number and b < 32:
            return _residue(left.of << b, a << b)
        case "/" | ">>" if right.is_number and (by := b if op == "/" else 1 << min(b, 32)) > 0:
            whole = left.of % by == 0 and a % by == 0
            return _residue(left.of // by, a // by) if whole or left.is_number else _ANY
        case "%" if right.is_number and b > 0 and _twos(b) == b:
            if left.is_number:
                return _number(a % b)
            # The sign of what is left over is that of the number: only 0 has none.
            return _number(0) if left.of % b == 0 and a % b == 0 else _ANY
        case "&":
            for value, mask in ((left, right), (right, left)):
                if mask.is_number and mask.rest & (mask.rest + 1) == 0 and value.of % (mask.rest + 1) == 0:
                    return _number(value.rest & mask.rest)
    return _ANY


def _sum(left: Residue, right: Residue) -> Residue:
    if right.step:
        left, right = right, left
    if right.step:
        return _ANY
    by = max(left.step, 1)
    return _residue(gcd(left.of, by * right.of), left.rest + by * right.rest, left.step)


def _residue(of: int, rest: int, step: int = 0) -> Residue:
    if of == 0:
        return replace(_number(rest), step=step)
    of = min(_twos(of), _MOST)
    return Residue(of, rest % of, step)


def _number(value: int | float) -> Residue:
    return Residue(0, int(value)) if isinstance(value, int) and 0 <= value < _LARGEST else _ANY


def _twos(value: int) -> int:
    """The power of two in it."""
    return value & -value if value else 1


def _out_of_sight(body: tuple[c.Stmt, ...]) -> frozenset[str]:
    """Variables that may change without an assignment: what others refer to, or calls may be given."""
    found: set[str] = set()
    for node in walk.nodes_in(body):
        if isinstance(node, c.Declare) and node.type.reference and node.init is not None:
            found |= walk.names_in(node.init)
        elif isinstance(node, c.Unary) and node.op == "&" and isinstance(node.operand, c.Name):
            found.add(node.operand.name)
        elif isinstance(node, c.Call) and not is_function(node.function):
            found |= {arg.name for arg in node.args if isinstance(arg, c.Name)}
        elif isinstance(node, c.Opaque | c.Verbatim):
            found |= node.names
    return frozenset(found)
