"""What the contract decides of a kernel's text: conditions, arguments, sizes, and the compilers that read it.

Kernels of libraries ask whether wide accesses are allowed, and have a slower way beside. A forward walk knows
of every integer which power of two divides it, and what is left over; of a pointer the same in bytes. That
starts from `align` and `multiple_of` of the problem file and survives whatever wraps around: 2^32 is a
multiple of all of them. Numbers that are constants are known themselves.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import gcd

from tunesmith.expert.read.integers import expand_terms, known_divisor, parameter_values
from tunesmith.expert.read.model import Fact, KernelModel, NotReadable
from tunesmith.problem.problem import Argument, Kernel, Problem, SizeRule
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import is_function, is_pure
from tunesmith.source.fold import fold_expr, fold_statements, int_value
from tunesmith.source.preprocess import Predefined, assume_predefined
from tunesmith.source.printing import print_expr
from tunesmith.source.reader.parse import read_source_tree
from tunesmith.source.reader.templates import sizes_of_entry
from tunesmith.source.substitution import substitute
from tunesmith.source.types import INTEGERS, byte_size, integer_literal, is_integer
from tunesmith.source.walk import declared_in, map_nodes
from tunesmith.space import expr as size
from tunesmith.space.expr import Node, parse_expr

_MAX = 1 << 16  # nobody asks for more
_LARGEST = 1 << 31  # constants beyond it may have another sign
_QUESTIONS = frozenset({"==", "!=", "&&", "||"})


@dataclass(frozen=True)
class Residue:
    """A number that is `rest` more than a multiple of `of`, a power of two; `of` 0: the number itself.

    `step`: bytes of what a pointer points to, 0 for an integer."""

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
    known = {**_source_constants(source), **_contract_residues(function, problem)}
    body = work.block(function.body, {n: one for n, one in known.items() if n not in work.out_of_sight})
    if not work.facts:
        return function, []
    return replace(function, body=fold_statements(body)), list(dict.fromkeys(work.facts))


def _source_constants(source: c.Source) -> Known:
    numbers = {name: value for name, value in source.constants if isinstance(value, c.Number)}
    return {name: (c.Type("auto"), _number_residue(one.value)) for name, one in numbers.items()}


def _contract_residues(function: c.Function, problem: Problem) -> Known:
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
                _number_residue(value.value)
                if isinstance(value, size.Num)
                else Residue(_largest_power_of_two(known_divisor(value, steps)), 0)
            )
            found[parameter.name] = parameter.type, _as_type(parameter.type, one)
    for parameter, arg in zip(function.parameters, args, strict=False):
        argument = arguments.get(arg)
        element_bytes = byte_size(parameter.type.base)
        if argument is not None and argument.is_array and parameter.type.pointers == 1 and element_bytes:
            start = Residue(_largest_power_of_two(argument.align or argument.element.bytes), 0, element_bytes)
            found[parameter.name] = parameter.type, start
    return found


class _ResidueWalk:
    def __init__(self, body: tuple[c.Stmt, ...]) -> None:
        self.facts: list[Fact] = []
        self.out_of_sight = _out_of_sight(body)

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
            case c.For() | c.While():
                self._forget(known, stmt)
                declared = walk.declared_in(stmt.init) if isinstance(stmt, c.For) else ()
                inside = {name: one for name, one in known.items() if name not in declared}
                return replace(stmt, body=self.block(stmt.body, inside))
            case c.Scope():
                body = self.block(stmt.body, dict(known))
                self._forget(known, stmt)
                return replace(stmt, body=body)
            case c.Evaluate():
                stmt = replace(stmt, expr=self._asked(stmt.expr, known, stmt.line))
        self._forget(known, stmt)
        return stmt

    def _keep(self, known: Known, name: str, type_: c.Type, value: Residue) -> None:
        known.pop(name, None)
        if name not in self.out_of_sight and not type_.reference:
            known[name] = type_, _as_type(type_, value)

    def _forget(self, known: Known, part: walk.Part) -> None:
        for name in walk.assigned_in(part) & known.keys():
            known[name] = known[name][0], _ANY

    def _asked(self, expr: c.Expr, known: Known, line: int, is_test: bool = False) -> c.Expr:
        """With 0 or 1 for the questions that have one answer; a name alone is one where it is a test."""
        changed = walk.assigned_in(expr)

        def decided(node: c.Expr) -> c.Expr:
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
            return integer_literal(int(bool(found.rest)))

        return walk.map_expr(expr, decided)

    def _value(self, expr: c.Expr, known: Known, depth: int = 0) -> Residue:
        if depth > c.MAX_DEPTH:
            raise c.TooDeep

        def inner(part: c.Expr) -> Residue:
            return self._value(part, known, depth + 1)

        match expr:
            case c.Number(value=int(value)):
                return _number_residue(value)
            case c.Name(name=name):
                return known[name][1] if name in known else _RESIDUES_OF_LITERALS.get(name, _ANY)
            case c.SizeOf(type=type_):
                type_bytes = 8 if type_.pointers else byte_size(type_.base)
                return _ANY if type_bytes is None else _number_residue(type_bytes)
            case c.Cast(type=type_, value=value):
                return _as_type(type_, inner(value))
            case c.Unary(op="!", operand=operand):
                found = inner(operand)
                return _number_residue(int(not found.rest)) if found.is_number else _ANY
            case c.Unary(op="&", operand=c.Index(base=base, index=index)):
                return _add_residues(inner(base), inner(index))
            case c.Binary(op=op, left=left, right=right):
                return _binary_residue(op, inner(left), inner(right))
        return _ANY


_RESIDUES_OF_LITERALS = {"true": Residue(0, 1), "false": Residue(0, 0)}


def _as_type(type_: c.Type, value: Residue) -> Residue:
    """As a variable of the type holds it."""
    if type_.base == "auto":
        return value if not type_.pointers or value.step else _ANY
    if type_.pointers:
        element_bytes = byte_size(type_.base) if type_.pointers == 1 else None
        return replace(value, step=element_bytes) if element_bytes and value.step else _ANY
    if type_.base == "bool":
        return _number_residue(int(bool(value.rest))) if value.is_number and not value.step else _ANY
    if not is_integer(type_):
        return _ANY
    wide = INTEGERS[type_.base][0] >= (8 if value.step else 4)  # of a pointer: all of its bits
    return replace(value, step=0) if wide or (value.is_number and value.rest < 128) else _ANY


def _binary_residue(op: str, left: Residue, right: Residue) -> Residue:
    numbers = left.is_number and right.is_number and not left.step and not right.step
    a, b = left.rest, right.rest
    match op:
        case "+":
            return _add_residues(left, right)
        case "-" if not right.step:
            by = max(left.step, 1)
            return _make_residue(gcd(left.of, by * right.of), a - by * b, left.step)
        case "==" | "!=" if left.step == right.step == 0:
            common = gcd(left.of, right.of)
            if numbers:
                return _number_residue(int((a == b) == (op == "==")))
            return _number_residue(int(op == "!=")) if common > 1 and (a - b) % common else _ANY
        case "&&" | "||":
            sides, decides = [bool(one.rest) for one in (left, right) if one.is_number], op == "||"
            if decides in sides or len(sides) == 2:
                return _number_residue(int(decides in sides) if decides else int(False not in sides))
            return _ANY
    if left.step or right.step:
        return _ANY
    match op:
        case "*":
            return _make_residue(gcd(left.of * right.of, left.of * b, right.of * a), a * b)
        case "<<" if right.is_number and b < 32:
            return _make_residue(left.of << b, a << b)
        case "/" | ">>" if right.is_number and (by := b if op == "/" else 1 << min(b, 32)) > 0:
            whole = left.of % by == 0 and a % by == 0
            return _make_residue(left.of // by, a // by) if whole or left.is_number else _ANY
        case "%" if right.is_number and b > 0 and _largest_power_of_two(b) == b:
            if left.is_number:
                return _number_residue(a % b)
            # The sign of what is left over is that of the number: only 0 has none.
            return _number_residue(0) if left.of % b == 0 and a % b == 0 else _ANY
        case "&":
            for value, mask in ((left, right), (right, left)):
                if mask.is_number and mask.rest & (mask.rest + 1) == 0 and value.of % (mask.rest + 1) == 0:
                    return _number_residue(value.rest & mask.rest)
    return _ANY


def _add_residues(left: Residue, right: Residue) -> Residue:
    if right.step:
        left, right = right, left
    if right.step:
        return _ANY
    by = max(left.step, 1)
    return _make_residue(gcd(left.of, by * right.of), left.rest + by * right.rest, left.step)


def _make_residue(of: int, rest: int, step: int = 0) -> Residue:
    if of == 0:
        return replace(_number_residue(rest), step=step)
    of = min(_largest_power_of_two(of), _MAX)
    return Residue(of, rest % of, step)


def _number_residue(value: int | float) -> Residue:
    return Residue(0, int(value)) if isinstance(value, int) and 0 <= value < _LARGEST else _ANY


def _largest_power_of_two(value: int) -> int:
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


# -- Conditions that the problem's own arguments decide: null pointers, modes and switches that callers
# fix.
#
# A published kernel does several jobs, `if (bias != nullptr)`, `mode == 2 ? *scale : 1.0f`. What a condition
# asks of arguments with one value in the problem file alone is answered, and whether an array is there; the
# arguments stay where they are computed with.


_NOTHING = (c.Name("nullptr"), c.Name("NULL"))
_VALUES_OF_LITERALS = {"true": 1, "false": 0}
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
    decided = _decided_variables(function, fixed, changed)
    if decided is None:
        return function, ()
    values, used = decided
    said: set[str] = set()

    def asked(node: c.Expr) -> c.Expr:
        number = _evaluate_question(node, values) if _is_question(node) else None
        if number is None:
            return _fold_logic(node)
        said.update(*(used[name] for name in walk.names_in(node) if name in used))
        return integer_literal(number)

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


def _decided_variables(
    function: c.Function, fixed: Mapping[str, int], changed: frozenset[str]
) -> tuple[dict[str, c.Expr], dict[str, frozenset[str]]] | None:
    """Names with one value, and the arguments that had a say in it; None where two have one name."""
    values: dict[str, c.Expr] = {name: integer_literal(value) for name, value in fixed.items()}
    used: dict[str, frozenset[str]] = {name: frozenset({name}) for name in fixed}
    for declare in (node for node in walk.nodes_in(function.body) if isinstance(node, c.Declare)):
        if declare.name in values:
            return None
        init = declare.init
        if declare.type.pointers and init in _NOTHING and declare.name not in changed:
            values[declare.name], used[declare.name] = integer_literal(0), frozenset()
        if init is None or declare.is_array or declare.type.pointers or declare.name in changed:
            continue
        is_flag = declare.type.base in ("bool", "auto") and _is_question(init)
        number = _evaluate_question(init, values) if is_flag else None
        if number is None and declare.type.base == "bool" and declare.type.const:
            number = _VALUES_OF_LITERALS.get(init.name) if isinstance(init, c.Name) else int_value(init)
        if number is not None:
            values[declare.name] = integer_literal(number)
            used[declare.name] = frozenset().union(*(used[n] for n in walk.names_in(init) if n in used))
    return values, used


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
                return integer_literal(int(op == "!=")) if name in arrays else node
        return node

    body = walk.map_nodes(function.body, asked)
    return function if body == function.body else replace(function, body=fold_statements(body))


def _fold_logic(node: c.Expr) -> c.Expr:
    """`n > 3 && 0`: what stands before it need not be asked, where asking does nothing."""
    match node:
        case c.Binary("&&" | "||" as op, left, c.Number(value=value)) if is_pure(left):
            if bool(value) == (op == "||"):
                return integer_literal(int(op == "||"))
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


def _evaluate_question(node: c.Expr, values: Mapping[str, c.Expr]) -> int | None:
    """Of a question that names fixed arguments and nothing else."""
    names = walk.names_in(node) - {"nullptr", "NULL"}
    if not names or not names <= values.keys():
        return None
    # Whatever their types are, non-negative numbers stay so in these.
    if any(isinstance(v, c.Number) and v.value < 0 for v in values.values()) or not _is_sure(node):
        return None
    null = integer_literal(0)
    return int_value(fold_expr(substitute(node, {**values, "nullptr": null, "NULL": null})))


def facts_of_fixed(names: tuple[str, ...], fixed: Mapping[str, int]) -> tuple[Fact, ...]:
    return tuple(
        Fact(f"'{name}' is {fixed[name]} in every call", "the contract's word", "value of the argument")
        for name in names
    )


# -- What the contract's ranges say of index arithmetic: sums that are never below zero, whatever the
# sizes are.
#
# An expression is a polynomial over sizes and indices. Indices, and quotients of sizes, are put at the end of
# their range that makes the whole smallest; sizes are counted from their least value on. If nothing is taken
# away then, it is never negative. What is not understood is a symbol without a range, and proves nothing.


_Sum = dict[tuple[str, ...], Fraction]  # names that are multiplied -> how often that is added
_Range = tuple[_Sum, _Sum]
_MAX_TERMS = 200
_DEEPEST = 40


def _add_sums(left: _Sum, right: _Sum, times: Fraction | int = 1) -> _Sum:
    found = dict(left)
    for key, count in right.items():
        found[key] = found.get(key, Fraction(0)) + count * times
    return {key: count for key, count in found.items() if count}


def _multiply_sums(left: _Sum, right: _Sum) -> _Sum:
    found: _Sum = {}
    for key, count in left.items():
        for other, more in right.items():
            found = _add_sums(found, {tuple(sorted((*key, *other))): count * more})
    return found


def _constant_sum(value: int | Fraction) -> _Sum:
    return {(): Fraction(value)} if value else {}


@dataclass
class SizeBounds:
    """`parameters`: the kernel's integers over sizes; `ranges`: indices as first and last value."""

    rules: tuple[SizeRule, ...]
    parameters: Mapping[str, Node]
    ranges: Mapping[str, tuple[c.Expr, c.Expr]]
    _quotients: dict[str, _Range] = field(default_factory=dict)

    def never_negative(self, expr: c.Expr) -> bool:
        return self._holds(self._of(expr), 0)

    def _of(self, expr: c.Expr) -> _Sum:
        found: _Sum = {}
        for key, count in expand_terms(expr).items():
            product = _constant_sum(count)
            for factor in key:
                product = _multiply_sums(product, self._factor_sum(factor))
            found = _add_sums(found, product)
        return found

    def _factor_sum(self, factor: c.Expr) -> _Sum:
        if isinstance(factor, c.Name) and factor.name not in self.ranges and factor.name in self.parameters:
            return self._node(self.parameters[factor.name])
        match factor:
            # C cuts off towards 0, which is down of what is never below it.
            case c.Binary("/", left, c.Number(value=int(by))) if by > 0 and self.never_negative(left):
                name, exact = (
                    print_expr(factor),
                    _multiply_sums(self._of(left), _constant_sum(Fraction(1, by))),
                )
                self._quotients[name] = (_add_sums(exact, _constant_sum(Fraction(1 - by, by))), exact)
                return {(name,): Fraction(1)}
        return {(f"{factor.name} here" if isinstance(factor, c.Name) else print_expr(factor),): Fraction(1)}

    def _node(self, node: Node) -> _Sum:
        match node:
            case size.Num(value):
                return _constant_sum(value)
            case size.Variable(name):
                return {(name,): Fraction(1)}
            case size.Neg(operand):
                return _add_sums({}, self._node(operand), -1)
            case size.Arithmetic("+" | "-" as op, left, right):
                return _add_sums(self._node(left), self._node(right), 1 if op == "+" else -1)
            case size.Arithmetic("*", left, right):
                return _multiply_sums(self._node(left), self._node(right))
            case size.Arithmetic("//", left, size.Num(by)) if by > 0:
                return self._quotient(node, left, by, Fraction(1 - by, by), Fraction(0))
            case size.FunctionCall("ceildiv", (left, size.Num(by))) if by > 0:
                return self._quotient(node, left, by, Fraction(0), Fraction(by - 1, by))
        return {(size.unparse(node) + " ?",): Fraction(1)}

    def _quotient(self, node: Node, whole: Node, by: int, low: Fraction, high: Fraction) -> _Sum:
        name, exact = size.unparse(node), _multiply_sums(self._node(whole), _constant_sum(Fraction(1, by)))
        self._quotients[name] = (_add_sums(exact, _constant_sum(low)), _add_sums(exact, _constant_sum(high)))
        return {(name,): Fraction(1)}

    def _holds(self, found: _Sum, depth: int) -> bool:
        if depth > _DEEPEST or len(found) > _MAX_TERMS:
            return False
        used = {name for key in found for name in key}
        for name, (first, last) in self.ranges.items():
            if f"{name} here" in used:
                return self._at_its_end(found, f"{name} here", (self._of(first), self._of(last)), depth)
        for name, range_ in self._quotients.items():
            if name in used:
                return self._at_its_end(found, name, range_, depth)
        least = {
            rule.name: min(rule.one_of)
            if rule.one_of
            else -(-rule.min // rule.multiple_of) * rule.multiple_of
            for rule in self.rules
        }
        shifted: _Sum = {}
        for key, count in found.items():
            product = _constant_sum(count)
            for name in key:
                if least.get(name, -1) < 0:
                    return False
                product = _multiply_sums(
                    product, _add_sums({(name,): Fraction(1)}, _constant_sum(least[name]))
                )
            shifted = _add_sums(shifted, product)
        return all(count >= 0 for count in shifted.values())

    def _at_its_end(self, found: _Sum, name: str, range_: _Range, depth: int) -> bool:
        """The same with a name put at that end of its range which makes the sum smallest."""
        factor: _Sum = {}
        rest: _Sum = {}
        for key, count in found.items():
            if key.count(name) > 1:
                return False
            if name in key:
                factor = _add_sums(factor, {tuple(other for other in key if other != name): count})
            else:
                rest[key] = count
        low, high = range_
        if self._holds(factor, depth + 1):
            return self._holds(_add_sums(rest, _multiply_sums(factor, low)), depth + 1)
        if self._holds(_add_sums({}, factor, -1), depth + 1):
            return self._holds(_add_sums(rest, _multiply_sums(factor, high)), depth + 1)
        return False


# -- Template arguments that follow a size, `kernel<{head_dim}>`: read as one more parameter of the
# kernel.
#
# Such a parameter has the template's own name for it and the size for its value. No launch passes it: the
# writer declares it as a constant of the build. A size that the contract allows one value of is that number:
# types may then depend on it, `vec<T, HEAD_DIM>`. Where they do and the contract allows several values, the
# kernel is read at the one that all workloads have, and its template says so (`require`).


_MARK = "entry."  # no name of an argument has a dot


Pinned = tuple[tuple[str, int], ...]  # sizes, and the one value that a kernel is read at


def with_entry_sizes(problem: Problem, pinned: Pinned = ()) -> Problem:
    """The problem with an argument for each size that the entry of its one launch inserts."""
    if len(problem.launches) != 1 or any(is_of_entry(argument.name) for argument in problem.arguments):
        return problem
    problem = _pin_sizes(problem, dict(pinned))
    launch = replace(problem.launches[0], entry=_with_numbers(problem, problem.launches[0].entry))
    problem = replace(problem, launches=(launch,))
    sizes = [name for name in sizes_of_entry(launch.entry) if name in problem.size_names]
    added = [
        Argument(f"{_MARK}{n}", "int32", "scalar", value=parse_expr(name)) for n, name in enumerate(sizes)
    ]
    launch = replace(launch, args=(*launch.args, *(argument.name for argument in added)))
    return replace(problem, arguments=(*problem.arguments, *added), launches=(launch,))


def read_at_sizes(
    problem: Problem, read: Callable[[Problem], KernelModel | NotReadable]
) -> KernelModel | NotReadable:
    """The kernel for all sizes; where it is read for none but a number, for the one that workloads have."""
    found = read(with_entry_sizes(problem))
    pinned = sizes_to_pin(problem) if isinstance(found, NotReadable) else ()
    only = read(with_entry_sizes(problem, pinned)) if pinned else found
    if isinstance(only, NotReadable) or not pinned:
        return found
    sizes = " and ".join(f"{name} = {value}" for name, value in pinned)
    note = f"its types depend on a size of its entry: it is read for {sizes} alone"
    return replace(only, pinned=pinned, notes=(*only.notes, note))


def sizes_to_pin(problem: Problem) -> Pinned:
    """The sizes in the entry, where each has one value in all workloads; () where some have several."""
    entry = problem.launches[0].entry if len(problem.launches) == 1 else ""
    names = [name for name in sizes_of_entry(entry) if name in problem.size_names]
    values = {name: {workload.as_dict()[name] for workload in problem.workloads} for name in names}
    if any(len(found) != 1 for found in values.values()):
        return ()
    return tuple((name, found.pop()) for name, found in values.items())


def _pin_sizes(problem: Problem, pinned: dict[str, int]) -> Problem:
    """With one value for each of these sizes: what is proved then holds where a template asks for them."""
    rules = tuple(
        replace(rule, min=pinned[rule.name], max=pinned[rule.name], multiple_of=1, one_of=())
        if rule.name in pinned
        else rule
        for rule in problem.contract.sizes
    )
    return replace(problem, contract=replace(problem.contract, sizes=rules)) if pinned else problem


def _with_numbers(problem: Problem, entry: str) -> str:
    for rule in problem.contract.sizes:
        least, most = rule.span
        if least == most:
            entry = re.sub(rf"\{{\s*{rule.name}\s*\}}", str(least), entry)
    return entry


def is_of_entry(argument: str) -> bool:
    return argument.startswith(_MARK)


WORD = "warpSize"
ASSUMED = {"cuda": 32, "hip": 64}


def with_wave_size(function: c.Function, kernel: Kernel) -> c.Function:
    """Unless the kernel calls something of its own by that name."""
    assumed = ASSUMED.get(kernel.language)
    local_names = {*declared_in(function.body), *(parameter.name for parameter in function.parameters)}
    if assumed is None or WORD in local_names:
        return function
    lanes = kernel.wave or assumed
    number = c.Number(str(lanes), lanes)
    body = map_nodes(function.body, lambda e: number if isinstance(e, c.Name) and e.name == WORD else e)
    return replace(function, body=body)


def is_same(one: KernelModel, other: KernelModel | NotReadable) -> bool:
    """Whether two readings are of the same kernel, with what it calls, whatever is noted of them."""
    if isinstance(other, NotReadable):
        return False
    called = [_callee_texts(model.function, model.source) for model in (one, other)]
    plain = replace(other, source=one.source, function=one.function, notes=one.notes)
    return called[0] == called[1] and plain == one


def _callee_texts(function: c.Function, source: c.Source) -> tuple[str, ...]:
    """The text of all that a function calls in the file."""
    found, pending = dict[str, str](), [function]
    while pending:
        for call in walk.calls_in(pending.pop().body):
            callees = [f for f in source.functions if f.name == call.function and f.text not in found]
            found |= {f.text: f.name for f in callees}
            pending += callees
    return tuple(sorted(found))


Reader = Callable[[c.Source, Predefined], KernelModel | NotReadable]


def language_of(word: str) -> c.Language:
    return "opencl" if word == "opencl" else "hip" if word == "hip" else "cuda"


def one_kernel(kernel: Kernel, read: Reader) -> KernelModel | NotReadable:
    """With a note for every condition that what a compiler defines has decided."""
    states = kernel.predefined or (assume_predefined(kernel.language),)
    given = (kernel.text, language_of(kernel.language), kernel.defines, kernel.headers)
    done: list[tuple[Predefined, c.Source, KernelModel | NotReadable]] = []
    for state in states:
        source = read_source_tree(*given, predefined=state)
        alike = (m for _, s, m in done if not s.asks_toolkit and replace(s, decided=source.decided) == source)
        done.append((state, source, next(alike, None) or read(source, state)))
    _, source, first = done[0]
    if isinstance(first, NotReadable):
        return first
    for state, _, other in done[1:]:
        if not is_same(first, other):
            words = f"it is another kernel to {states[0].said_by} than to {state.said_by}"
            return NotReadable(source, None, f"{words}: say which is meant by `compiler` in [kernel]")
    said: dict[str, list[str]] = {}
    for state, source, model in done:
        for words in (model.source if source.asks_toolkit else source).decided:
            said.setdefault(words, []).append(state.said_by)
    notes = (f"{words} ({'; '.join(whose)})" for words, whose in said.items())
    return replace(first, notes=(*first.notes, *notes))
