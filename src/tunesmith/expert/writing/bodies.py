"""A loop's body made ready for printing: cheap divisions, fast forms behind macros, packs for accesses.

Cheaper divisions of a loop's index by what is the same for the whole launch: shifts, or products.

i / d, i % d        d a power of two: i >> shift, i & d - 1
                    i * d below 2^32: the high half of i * ceil(2^32 / d), which is exactly the quotient
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tunesmith.csource.nodes import Binary, Call, Cast, Expr, For, Index, Name, Number, Stmt, Type, Verbatim
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import is_integer
from tunesmith.csource.walk import map_expr, map_statements, names_in, nodes_in
from tunesmith.expert.model.kernel import Each, Let, Once, ParameterChoice, Repeat, all_steps
from tunesmith.expert.writing.fast_math import FastMath, declared_types
from tunesmith.expert.writing.packs import replacements, rewrite
from tunesmith.expert.writing.plan import LoopPlan, WritingPlan
from tunesmith.expert.writing.sites import counted

_WORDS = 4294967296  # 2^32
_OF_ONE_WORD = frozenset(("int", "unsigned int", "unsigned"))


@dataclass(frozen=True)
class Divided:
    """A loop's index by a divisor."""

    loop: LoopPlan
    by: Expr


def divided(plan: WritingPlan) -> tuple[Divided, ...]:
    """Divisors that only the call knows, of indices in one word; each once for a loop."""
    known = {p.name for p in plan.kernel.function.parameters if is_integer(p.type)}
    found: dict[tuple[int, Expr], Divided] = {}
    for loop in plan.all_loops:
        from_zero = isinstance(loop.each.start, Number) and loop.each.start.value == 0
        if not from_zero or loop.each.type not in _OF_ONE_WORD or plan.sizes.node(loop.extent) is None:
            continue
        for node in _divisions(loop.each.body, Name(loop.each.index)):
            by = node.right
            if names_in(by) and names_in(by) <= known and plan.sizes.node(by) is not None:
                found[(id(loop), by)] = Divided(loop, by)
    return tuple(found.values())


def _divisions(body: tuple[Stmt, ...], index: Expr) -> Iterator[Binary]:
    for node in nodes_in(body):
        if isinstance(node, Binary) and node.op in ("/", "%") and _bare(node.left) == index:
            yield node


def _bare(expr: Expr) -> Expr:
    while isinstance(expr, Cast) and is_integer(expr.type) and expr.type.base in _OF_ONE_WORD:
        expr = expr.value
    return expr


class IndexDivision:
    """Nothing where the schedule has no such choice."""

    def __init__(self, plan: WritingPlan) -> None:
        self._plan = plan
        self._choice: ParameterChoice | None = plan.draft.schedule.divide
        self._names: dict[Expr, str] = {}
        if self._choice is not None and plan.language != "opencl":
            for one in divided(plan):
                if one.by not in self._names:
                    self._names[one.by] = plan.names.fresh("divisor")
            self._quotient, self._rest = plan.names.fresh("DIVIDED"), plan.names.fresh("REMAINDER")

    def in_expr(self, expr: Expr, index: Expr) -> Expr:
        """With the quotients and remainders of this index by known divisors in their cheaper forms."""
        if not self._names:
            return expr

        def visit(node: Expr) -> Expr:
            match node:
                case Binary(op="/" | "%" as op, left=left, right=by) if by in self._names:
                    if _bare(left) == index:
                        function = self._quotient if op == "/" else self._rest
                        return Call(function, (left, by, Name(self._names[by])))
            return node

        return map_expr(expr, visit)

    def in_statements(self, stmts: tuple[Stmt, ...], index: Expr) -> tuple[Stmt, ...]:
        return map_statements(stmts, lambda expr: self.in_expr(expr, index)) if self._names else stmts

    def macros(self) -> list[str]:
        if not self._names or self._choice is None:
            return []
        quotient, rest, name = self._quotient, self._rest, self._choice.name
        return [
            "// Of an index by what is the same for the whole launch, with what was made of it before.",
            f"#if {name} == 1  // a power of two",
            f"#define {quotient}(x, d, made) ((x) >> (made))",
            f"#define {rest}(x, d, made) ((x) & ((d) - 1))",
            f"#elif {name} == 2  // exact as long as x * d has 32 bits",
            f"#define {quotient}(x, d, made) ((int)__umulhi((unsigned)(x), made))",
            f"#define {rest}(x, d, made) ((x) - {quotient}(x, d, made) * (d))",
            "#else",
            f"#define {quotient}(x, d, made) ((x) / (d))",
            f"#define {rest}(x, d, made) ((x) % (d))",
            "#endif",
        ]

    def lines(self) -> list[str]:
        """At the top of the kernel."""
        if not self._names or self._choice is None:
            return []
        name = self._choice.name
        made = [(f"({print_expr(by)})", own) for by, own in self._names.items()]
        return [
            f"#if {name} == 1",
            *(f"const int {own} = 31 - __clz({by});" for by, own in made),
            f"#elif {name} == 2",
            *(f"const unsigned {own} = 0xffffffffu / (unsigned){by} + 1u;" for by, own in made),
            "#endif",
        ]


def division_rules(plan: WritingPlan) -> list[tuple[str, str]]:
    """What the forms rely on, as the template's `require`."""
    choice = plan.draft.schedule.divide
    if choice is None or plan.language == "opencl":
        return []
    powers: dict[str, None] = {}
    products: dict[str, None] = {}
    for one in divided(plan):
        by, extent = plan.sizes.text(one.by), plan.sizes.text(one.loop.extent)
        powers[f"is_pow2({by})"] = None
        products[f"{by} > 1 and ({extent}) * ({by}) < {_WORDS}"] = None
    if not powers:
        return []
    return [
        ("shifts", f"{choice.name} != 1 or {' and '.join(powers)}"),
        ("products", f"{choice.name} != 2 or {' and '.join(products)}"),
    ]


@dataclass(frozen=True)
class Body:
    """A loop's body made ready for printing: fast forms behind macros, packs for accesses, partial totals."""

    plain: tuple[Stmt, ...]  # for one index, as in the source
    packed: tuple[Stmt, ...]  # for one lane of a pack
    inverses: tuple[tuple[str, Expr], ...]  # reciprocals to compute before the loop


def known_types(plan: WritingPlan) -> dict[str, Type | None]:
    """Of everything a body may name, as far as the model tells."""
    found: dict[str, Type | None] = {p.name: p.type for p in plan.kernel.function.parameters}
    found.update({task.name: Type(task.type) for task in plan.kernel.tasks})
    found.update({task.count: Type("unsigned int") for task in plan.kernel.tasks if task.count})
    found.update({kept.name: Type(kept.type.base, 1) for kept in plan.kernel.kept})
    for step in all_steps(plan.kernel.steps):
        if isinstance(step, Each | Let | Once):
            found.update(declared_types(step.body))
        if isinstance(step, Each | Repeat):
            found[step.index] = Type(step.type)
        if isinstance(step, Each):
            found.update({total.name: total.type for total in step.totals})
    return found


def prepare(
    loop: LoopPlan,
    plan: WritingPlan,
    fast: FastMath,
    lane: str,
    item: str,
    parts: dict[str, str],
    chains: str,
) -> Body:
    """`parts`: a total -> the array of its partial values, of which a lane takes one."""
    each = loop.each
    varying = frozenset((each.index, *(total.name for total in each.totals)))
    body, inverses = fast.statements(each.body, known_types(plan), varying)
    body = unrolled(body, plan)
    packs = {pack.key: Index(Name(loop.names[pack.key]), Name(item)) for pack in loop.packs}
    packed = rewrite(body, replacements(loop.packs, dict(packs), Name(lane)))
    if parts:
        mine = Binary("%", Name(lane), Name(chains))
        body = substitute(body, {name: Index(Name(a), Number("0", 0)) for name, a in parts.items()})
        packed = substitute(packed, {name: Index(Name(a), mine) for name, a in parts.items()})
    return Body(body, packed, inverses)


def unrolled(body: Iterable[Stmt], plan: WritingPlan) -> tuple[Stmt, ...]:
    """Short counted loops unrolled whole, so that arrays stay in registers; others as the schedule says."""
    choice = plan.draft.schedule.unroll

    def visit(stmt: Stmt) -> Stmt | tuple[Stmt, ...]:
        if not isinstance(stmt, For) or stmt.unroll is not None:
            return stmt
        count = counted(stmt)
        if count is not None and count[1] <= 16:
            return replace(stmt, unroll=0)
        if choice is not None:
            return Verbatim(f"#pragma unroll {choice.name}"), stmt
        return stmt

    return map_statements(body, on_stmt=visit)
