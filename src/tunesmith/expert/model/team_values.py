"""What a variable holds while a team's cooperation is played through: numbers, expressions, parts of totals.

`Int`     a number, known in every thread; `expr` says it in terms of parameters and tasks, None where it
          depends on the thread
`Sym`     an expression that is the same for the whole team
`PartialTotal`    what some threads have of one or more totals; bits of `mask` are threads
`Share`   what one thread has of an expression over elements, before it is joined with others
`Which`   the comparison of two values of which one is a part: good for choosing the larger one, no more
`Poison`  nothing that may be used: why, and from which line
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tunesmith.csource.nodes import Binary, Call, Cast, Expr, Name, Number, Unary
from tunesmith.expert.model.affine import number
from tunesmith.expert.model.kernel import Operator


@dataclass(frozen=True, slots=True)
class Int:
    value: int
    expr: Expr | None = None
    launch: bool = False  # it comes from the shape of the launch: tests of it are settled, not kept
    sized: bool = False  # a parameter of the kernel is in it: another size, another number


@dataclass(frozen=True, slots=True)
class Sym:
    expr: Expr


@dataclass(frozen=True, slots=True)
class PartialTotal:
    operator: Operator
    parts: tuple[tuple[str, int], ...]  # total -> threads whose share is in it


@dataclass(frozen=True, slots=True)
class Which:
    op: str
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class Poison:
    reason: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """The value of an expression over elements in one thread, on its way to others; no total yet."""

    expr: Expr
    mask: int


Value = Int | Sym | PartialTotal | Share | Which | Poison


Threads = tuple[int, ...]


@dataclass
class Vec:
    """A value for every thread: one for all, or a list by thread number."""

    one: Value | None = None
    many: list[Value] = field(default_factory=list)

    def at(self, thread: int) -> Value:
        return self.many[thread] if self.one is None else self.one


_IDENTITY: dict[Operator, tuple[float, ...]] = {
    "+": (0,), "*": (1,), "|": (0,), "^": (0,), "&": (-1, 0xFFFFFFFF),
}  # fmt: skip
INFINITIES = ("INFINITY", "CUDART_INF_F", "CUDART_INF", "HUGE_VALF", "HUGE_VAL")


def expr_of(value: Value | None) -> Expr | None:
    """The value as an expression that holds for the whole team."""
    return value.expr if isinstance(value, Int | Sym) else None


def is_neutral(operator: Operator, value: Value, start: Expr | None) -> bool:
    """Whether the value changes nothing: an identity, or for maxima and minima what they start from."""
    expr = expr_of(value)
    if expr is None:
        return isinstance(value, Int) and value.value in _IDENTITY.get(operator, ())
    if operator in ("max", "min"):
        return expr == start or is_identity(operator, expr)
    return is_identity(operator, expr)


def is_identity(operator: Operator, expr: Expr) -> bool:
    """Whether an expression is plainly the operator's identity."""
    while isinstance(expr, Cast):
        expr = expr.value
    if operator in ("max", "min"):
        return _infinity(expr) == (-1 if operator == "max" else 1)
    if isinstance(expr, Unary) and expr.op == "-" and isinstance(expr.operand, Number):
        return expr.operand.value in (0, 0.0) and operator == "+"
    if isinstance(expr, Call) and expr.function in ("__float2half", "__float2bfloat16", "__int2half_rn"):
        return len(expr.args) == 1 and is_identity(operator, expr.args[0])
    return isinstance(expr, Number) and expr.value in _IDENTITY.get(operator, ())


def _infinity(expr: Expr) -> int:
    """1 and -1 for the infinities, as kernels write them; 0 for anything else."""
    match expr:
        case Unary(op="-", operand=operand):
            return -_infinity(operand)
        case Name(name=name) if name in INFINITIES:
            return 1
        case Call(function="__int_as_float" | "__uint_as_float" | "as_float", args=(Number(value=bits),)):
            return {0x7F800000: 1, 0xFF800000: -1}.get(int(bits), 0)
        case Number(value=value) if isinstance(value, float) and value in (float("inf"), float("-inf")):
            return 1 if value > 0 else -1
        case Binary(op="/", left=left, right=Number(value=0.0)):
            if isinstance(left, Number):
                return 1 if left.value > 0 else -1
            if isinstance(left, Unary) and left.op == "-":
                return -1
    return 0


def joined(operator: Operator, left: PartialTotal, right: PartialTotal) -> PartialTotal | Poison:
    """Two parts as one; for sums no thread's share may be in both."""
    found = dict(left.parts)
    for name, mask in right.parts:
        mine = found.get(name, 0)
        if mine & mask and operator not in ("max", "min", "&", "|"):
            return Poison("counts the share of some threads twice")
        found[name] = mine | mask
    return PartialTotal(operator, tuple(found.items()))


ZERO = Int(0, number(0))
ONE = Int(1, number(1))


def one_value(vec: Vec, active: Iterable[int]) -> Value | None:
    """The value that all these threads share; None where they differ."""
    if vec.one is not None:
        return vec.one
    found = [vec.many[thread] for thread in active]
    if not found:
        return None
    first = found[0]
    said = expr_of(first)
    for value in found[1:]:
        # Numbers may differ where what they stand for is the same: the index of a task, in different teams.
        if value is not first and value != first and (said is None or expr_of(value) != said):
            return None
    return first


def blame(vec: Vec, active: Iterable[int]) -> str:
    """Why the threads do not share a value, in words."""
    found = [vec.at(thread) for thread in active]
    for value in found:
        if isinstance(value, Poison):
            return value.reason
    for value in found:
        if isinstance(value, PartialTotal):
            names = ", ".join(f"'{name}'" for name, _ in value.parts)
            return f"not every thread's share of {names} is in it"
    return "it differs from thread to thread"
