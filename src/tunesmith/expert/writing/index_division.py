"""Cheaper divisions of a loop's index by what is the same for the whole launch: shifts, or products.

i / d, i % d        d a power of two: i >> shift, i & d - 1
                    i * d below 2^32: the high half of i * ceil(2^32 / d), which is exactly the quotient
"""

from __future__ import annotations

from collections.abc import Iterator

from tunesmith.csource import nodes as c
from tunesmith.csource.snippets import Wording, code
from tunesmith.csource.types import is_integer
from tunesmith.csource.walk import map_expr, names_in, nodes_in
from tunesmith.expert.writing.buffers import LoopPlan
from tunesmith.expert.writing.parts import part
from tunesmith.expert.writing.plan import WritingPlan
from tunesmith.expert.writing.sites import starts_at_zero

_WORDS = 4294967296  # 2^32
_OF_ONE_WORD = frozenset(("int", "unsigned int", "unsigned"))


def divided(plan: WritingPlan) -> Iterator[tuple[LoopPlan, c.Expr]]:
    """Loops with divisors of their index that only the call knows; of indices in one word.

    None where the schedule has no other forms of such quotients.
    """
    if not plan.knobs.divide.is_parameter or plan.language == "opencl":
        return
    known = {p.name for p in plan.kernel.function.parameters if is_integer(p.type)}
    for loop in plan.all_loops:
        in_one_word = starts_at_zero(loop.each) and loop.each.type in _OF_ONE_WORD
        if not in_one_word or plan.sizes.node(loop.extent) is None:
            continue
        for node in nodes_in(loop.each.body):
            match node:
                case c.Binary(op="/" | "%", left=left, right=by) if _bare(left) == c.Name(loop.each.index):
                    if names_in(by) and names_in(by) <= known and plan.sizes.node(by) is not None:
                        yield loop, by


def _bare(expr: c.Expr) -> c.Expr:
    while isinstance(expr, c.Cast) and is_integer(expr.type) and expr.type.base in _OF_ONE_WORD:
        expr = expr.value
    return expr


class IndexDivision:
    """Nothing where the schedule has no such choice."""

    def __init__(self, plan: WritingPlan) -> None:
        self._kind, self._names = plan.knobs.divide, dict[c.Expr, str]()
        self._quotient, self._rest = plan.word("DIVIDED"), plan.word("REMAINDER")
        for _, by in divided(plan):
            if by not in self._names:
                self._names[by] = plan.names.fresh("divisor")

    def in_expr(self, expr: c.Expr, index: c.Expr) -> c.Expr:
        """With the quotients and remainders of this index by known divisors in their cheaper forms."""
        if not self._names:
            return expr

        def visit(node: c.Expr) -> c.Expr:
            match node:
                case c.Binary(op="/" | "%" as op, left=left, right=by) if by in self._names:
                    if _bare(left) == index:
                        function = self._quotient if op == "/" else self._rest
                        return c.Call(function, (left, by, c.Name(self._names[by])))
            return node

        return map_expr(expr, visit)

    @property
    def functions(self) -> dict[str, str]:
        """Its macros, with the operators that they are."""
        return {self._quotient: "/", self._rest: "%"} if self._names else {}

    def macros(self) -> str:
        words = {"KIND": self._kind.name, "QUOTIENT": self._quotient, "REST": self._rest}
        return part("divisions.h", "of an index", **words) if self._names else ""

    def declare(self) -> tuple[c.Stmt, ...]:
        """At the top of the kernel."""
        if not self._names:
            return ()

        def made(text: str) -> tuple[c.Stmt, ...]:
            return tuple(s for by, own in self._names.items() for s in code(text, own=own, by=by))

        w = Wording({"KIND": self._kind.name})
        products = w.when("KIND == 2", made("const unsigned own = 0xffffffffu / (unsigned)by + 1u;"))
        return w.when("KIND == 1", made("const int own = 31 - __clz(by);"), products)


def division_rules(plan: WritingPlan) -> list[tuple[str, str]]:
    """What the forms rely on, as the template's `require`."""
    kind = plan.knobs.divide.name
    powers: dict[str, None] = {}
    extents: dict[str, dict[str, None]] = {}  # divisor -> lengths of loops that divide by it
    for loop, divisor in divided(plan):
        by, extent = plan.sizes.text(divisor), plan.sizes.text(loop.extent)
        powers[f"is_pow2({by})"] = None
        extents.setdefault(str(by), {})[str(extent)] = None
    if not powers:
        return []
    longest = {by: next(iter(t)) if len(t) == 1 else f"max({', '.join(t)})" for by, t in extents.items()}
    products = [f"{by} > 1 and ({extent}) * ({by}) < {_WORDS}" for by, extent in longest.items()]
    return [
        ("shifts", f"{kind} != 1 or {' and '.join(powers)}"),
        ("products", f"{kind} != 2 or {' and '.join(products)}"),
    ]
