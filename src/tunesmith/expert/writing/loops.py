"""What loops over a task's elements have in common wherever they run: who starts where, and their bodies.

A body is made ready for printing: cheap divisions, fast forms behind macros, packs for accesses.

Cheaper divisions of a loop's index by what is the same for the whole launch: shifts, or products.

i / d, i % d        d a power of two: i >> shift, i & d - 1
                    i * d below 2^32: the high half of i * ceil(2^32 / d), which is exactly the quotient
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tunesmith.csource.nodes import Binary, Call, Cast, Expr, For, Index, Name, Number, Stmt, Type, Verbatim
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import is_integer
from tunesmith.csource.walk import map_expr, map_statements, names_in, nodes_in
from tunesmith.expert.model.kernel import ParameterChoice
from tunesmith.expert.writing.fast_math import FastMath, Inverses, known_types
from tunesmith.expert.writing.naming import CodeLines, grouped
from tunesmith.expert.writing.packs import Pack
from tunesmith.expert.writing.plan import LoopPlan, WritingPlan
from tunesmith.expert.writing.sites import counted, starts_at_zero

_WORDS = 4294967296  # 2^32
_SHORT = 16  # turns
_OF_ONE_WORD = frozenset(("int", "unsigned int", "unsigned"))


def divided(plan: WritingPlan) -> Iterator[tuple[LoopPlan, Expr]]:
    """Loops with divisors of their index that only the call knows; of indices in one word."""
    known = {p.name for p in plan.kernel.function.parameters if is_integer(p.type)}
    for loop in plan.all_loops:
        in_one_word = starts_at_zero(loop.each) and loop.each.type in _OF_ONE_WORD
        if not in_one_word or plan.sizes.node(loop.extent) is None:
            continue
        for node in nodes_in(loop.each.body):
            match node:
                case Binary(op="/" | "%", left=left, right=by) if _bare(left) == Name(loop.each.index):
                    if names_in(by) and names_in(by) <= known and plan.sizes.node(by) is not None:
                        yield loop, by


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
            for _, by in divided(plan):
                if by not in self._names:
                    self._names[by] = plan.names.fresh("divisor")
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
    for loop, divisor in divided(plan):
        by, extent = plan.sizes.text(divisor), plan.sizes.text(loop.extent)
        powers[f"is_pow2({by})"] = None
        products[f"{by} > 1 and ({extent}) * ({by}) < {_WORDS}"] = None
    if not powers:
        return []
    return [
        ("shifts", f"{choice.name} != 1 or {' and '.join(powers)}"),
        ("products", f"{choice.name} != 2 or {' and '.join(products)}"),
    ]


def is_short(loop: For) -> bool:
    """Such a loop is unrolled whole, so that arrays stay in registers."""
    count = counted(loop)
    return count is not None and count[1] <= _SHORT


def unrolled(body: Iterable[Stmt], plan: WritingPlan) -> tuple[Stmt, ...]:
    """Short counted loops unrolled whole; others as the schedule says."""
    choice = plan.draft.schedule.unroll

    def visit(stmt: Stmt) -> Stmt | tuple[Stmt, ...]:
        if not isinstance(stmt, For) or stmt.unroll is not None:
            return stmt
        if is_short(stmt):
            return replace(stmt, unroll=0)
        if choice is not None:
            return Verbatim(f"#pragma unroll {choice.name}"), stmt
        return stmt

    return map_statements(body, on_stmt=visit)


class ElementLoops:
    """Loops over the elements of a task, which its threads share: the part that GPUs and CPUs have alike."""

    def __init__(self, plan: WritingPlan, fast: FastMath, inside: str) -> None:
        fresh = plan.names.fresh
        self._plan, self._fast = plan, fast
        self._inside = inside  # whether the task is one; "" where every thread that comes here has one
        self.lane, self.piece, self.pieces = fresh("lane"), fresh("PIECE"), fresh("PIECES")
        self.chunk = fresh("CHUNK")
        # Where a thread's turn begins; which of its packs, and the index where that one starts.
        self._base, self._item, self._here = fresh("base"), fresh("k"), fresh("here")
        self.division = IndexDivision(plan)

    def defines(self) -> list[str]:
        """What the loops say at the top of the file."""
        knobs, team = self._plan.knobs, "group" if self._plan.language == "opencl" else "block"
        chunk = f"{knobs.lanes.name} * {knobs.vector.name} * {knobs.items.name}"
        return [f"#define {self.chunk} ({chunk})  // elements of a task that a {team} takes at once"]

    def _text(self, expr: Expr) -> str:
        return print_expr(expr, self._plan.language)

    def _fast_body(self, loop: LoopPlan) -> tuple[tuple[Stmt, ...], Inverses]:
        """The loop's body with fast forms behind macros, and what is to be computed before the loop."""
        varying = frozenset((loop.each.index, *(total.name for total in loop.each.totals)))
        return self._fast.statements(loop.each.body, known_types(self._plan.kernel), varying)

    def _start(self, loop: LoopPlan) -> str:
        """As a term of a sum; nothing where the loop starts at 0."""
        return "" if loop.each.start == Number("0", 0) else grouped(self._text(loop.each.start))

    def _end(self, loop: LoopPlan, out: CodeLines) -> str:
        """A name for where the loop ends: nowhere behind its start, for a thread without a task."""
        stop = self._text(loop.each.stop)
        if self._inside:
            stop = f"{self._inside} ? {stop} : {self._text(loop.each.start)}"
        elif isinstance(loop.each.stop, Name | Number) and self._plan.language != "opencl":
            return stop
        name = self._plan.names.fresh("end")
        out.add(f"const {self._plan.index_type(loop)} {name} = {stop};")
        return name

    def _first(self, loop: LoopPlan, per_thread: str, per_block: str, type_: str) -> str:
        """Where a thread starts: its place in the block, behind the blocks before it."""
        start, own = self._start(loop), self._in_grid(per_thread, per_block, type_)
        return f"{start} + {own}" if start else own

    def _in_grid(self, per_thread: str, per_block: str, type_: str) -> str:
        own = self.lane if per_thread == "1" else f"{self.lane} * {per_thread}"
        return f"({type_}){self.piece} * {grouped(per_block)} + {own}" if self._plan.is_spread else own

    def _step(self, per_block: str, type_: str) -> str:
        return f"({type_}){self.pieces} * {grouped(per_block)}" if self._plan.is_spread else per_block

    def _head(self, type_: str, first: str, end: str, step: str, variable: str = "") -> str:
        base = variable or self._base
        return f"for ({type_} {base} = {first}; {base} < {end}; {base} += {step})"

    def _rest(self, loop: LoopPlan, end: str, type_: str) -> str:
        """Where a thread starts on what the whole vectors leave of the range, one element at a time."""
        start, vec = self._start(loop), self._plan.knobs.vector.name
        left = f"({end} - {start}) % {vec}" if start else f"{end} % {vec}"
        return f"{end} - {left} + {self._in_grid('1', self._plan.knobs.lanes.name, type_)}"

    def _place(self, pack: Pack, loop: LoopPlan, here: Expr) -> Index:
        """The pack's first element, where `here` is the first index of the pack."""
        if loop.each.type != self._plan.index_type(loop):
            here = Cast(Type(loop.each.type), here)
        index = {loop.each.index: here}
        bare = here.value if isinstance(here, Cast) else here
        base: Expr = Name(pack.array)
        if pack.offset is not None:
            base = Binary("+", base, self.division.in_expr(substitute(pack.offset, index), bare))
        if pack.element is not None:
            own = self._plan.arrays.get(pack.array, Type(""))
            base = Cast(Type(pack.element.base, 1, own.const, space=own.space), base)
        return Index(base, self.division.in_expr(substitute(pack.index, index), bare))

    def _address(self, pack: Pack, loop: LoopPlan) -> str:
        return f"&{self._text(self._place(pack, loop, Name(self._here)))}"
