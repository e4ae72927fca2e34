"""What loops over a task's elements have in common wherever they run: who starts where, and their bodies.

A body is made ready: cheap divisions, fast forms behind macros, packs for accesses.

Cheaper divisions of a loop's index by what is the same for the whole launch: shifts, or products.

i / d, i % d        d a power of two: i >> shift, i & d - 1
                    i * d below 2^32: the high half of i * ceil(2^32 / d), which is exactly the quotient
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

from tunesmith.csource.nodes import (
    Alternative,
    Binary,
    Call,
    Cast,
    Comment,
    Expr,
    For,
    Index,
    MacroDefinition,
    Name,
    Number,
    Stmt,
    Ternary,
    Type,
    Unary,
)  # fmt: skip
from tunesmith.csource.snippets import Hole, Wording, code, expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import is_integer
from tunesmith.csource.walk import map_expr, map_statements, names_in, nodes_in
from tunesmith.expert.model.kernel import ParameterChoice
from tunesmith.expert.writing.fast_math import FastMath, Inverses, known_types
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
        self._choice: ParameterChoice | None = plan.draft.schedule.get("divide")
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

    def macros(self) -> tuple[Stmt, ...]:
        if not self._names or self._choice is None:
            return ()
        words = {"DIVIDED": self._quotient, "KIND": self._choice.name}

        def both(*values: str) -> tuple[Stmt, ...]:
            names = zip((self._quotient, self._rest), values, strict=True)
            return tuple(
                MacroDefinition(name, expr(value, **words), ("x", "d", "made")) for name, value in names
            )

        products = Alternative(
            expr("KIND == 2", **words),
            both("(int)__umulhi((unsigned)x, made)", "x - DIVIDED(x, d, made) * d"),
            both("x / d", "x % d"),
            comments=(Comment("exact as long as x * d has 32 bits", behind=True),),
        )
        about = "Of an index by what is the same for the whole launch, with what was made of it before."
        said = (Comment(about), Comment("a power of two", behind=True))
        shifts = both("x >> made", "x & d - 1")
        return (Alternative(expr("KIND == 1", **words), shifts, (products,), comments=said),)

    def declare(self) -> tuple[Stmt, ...]:
        """At the top of the kernel."""
        if not self._names or self._choice is None:
            return ()

        def made(text: str) -> tuple[Stmt, ...]:
            return tuple(s for by, own in self._names.items() for s in code(text, own=own, by=by))

        w = Wording({"KIND": self._choice.name})
        products = w.when("KIND == 2", made("const unsigned own = 0xffffffffu / (unsigned)by + 1u;"))
        return w.when("KIND == 1", made("const int own = 31 - __clz(by);"), products)


def division_rules(plan: WritingPlan) -> list[tuple[str, str]]:
    """What the forms rely on, as the template's `require`."""
    choice = plan.draft.schedule.get("divide")
    if choice is None or plan.language == "opencl":
        return []
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
        ("shifts", f"{choice.name} != 1 or {' and '.join(powers)}"),
        ("products", f"{choice.name} != 2 or {' and '.join(products)}"),
    ]


def is_short(loop: For) -> bool:
    """Such a loop is unrolled whole, so that arrays stay in registers."""
    count = counted(loop)
    return count is not None and count[1] <= _SHORT


def unrolled(body: Iterable[Stmt], plan: WritingPlan) -> tuple[Stmt, ...]:
    """Short counted loops unrolled whole; others as the schedule says."""
    choice = plan.draft.schedule.get("unroll")

    def visit(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, For) or stmt.unroll is not None:
            return stmt
        if is_short(stmt):
            return replace(stmt, unroll=0)
        return stmt if choice is None else replace(stmt, unroll=choice.name)

    return map_statements(body, on_stmt=visit)


def repeated(variable: str, count: Hole, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The body so many times, unrolled."""
    text = "#pragma unroll\nfor (int i = 0; i < count; i++) { body; }"
    return code(text, i=variable, count=count, body=body)


def total_of(*terms: Expr) -> Expr:
    return reduce(lambda left, right: Binary("+", left, right), terms)


class ElementLoops:
    """Loops over the elements of a task, which its threads share: the part that GPUs and CPUs have alike."""

    def __init__(self, plan: WritingPlan, fast: FastMath, inside: str) -> None:
        self._plan, self._fast = plan, fast
        self._inside = inside  # whether the task is one; "" where every thread that comes here has one
        # base: where a thread's turn begins; k: which of its packs; here: the index where that one starts.
        own = ("lane", "PIECE", "PIECES", "CHUNK", "base", "k", "here")
        words = {word: plan.names.fresh(word) for word in own}
        knobs = {"LANES": plan.knobs.lanes, "VEC": plan.knobs.vector, "ITEMS": plan.knobs.items}
        self.words = Wording({**words, **{word: knob.name for word, knob in knobs.items()}})
        self.lane, self._item = words["lane"], words["k"]
        self._here, self._base = Name(words["here"]), words["base"]
        self.division = IndexDivision(plan)

    def defines(self) -> tuple[Stmt, ...]:
        """What the loops say at the top of the file."""
        team = "group" if self._plan.language == "opencl" else "block"
        about = f"elements of a task that a {team} takes at once"
        return (self.words.define("CHUNK", "LANES * VEC * ITEMS", about),)

    def _fast_body(self, loop: LoopPlan) -> tuple[tuple[Stmt, ...], Inverses]:
        """The loop's body with fast forms behind macros, and what is to be computed before the loop."""
        varying = frozenset((loop.each.index, *(total.name for total in loop.each.totals)))
        return self._fast.statements(loop.each.body, known_types(self._plan.kernel), varying)

    def _end(self, loop: LoopPlan) -> tuple[tuple[Stmt, ...], Expr]:
        """Where the loop ends: nowhere behind its start, for a thread without a task."""
        stop = loop.each.stop
        if self._inside:
            stop = Ternary(Name(self._inside), stop, loop.each.start)
        elif isinstance(stop, Name | Number) and self._plan.language != "opencl":
            return (), stop
        name = self._plan.names.fresh("end")
        return code("const T end = stop;", T=self._plan.index_type(loop), end=name, stop=stop), Name(name)

    def _first(self, loop: LoopPlan, own: Expr, per_block: Expr, type_: str) -> Expr:
        """Where a thread starts: its place in the block, behind the blocks before it."""
        start = () if loop.each.start == Number("0", 0) else (loop.each.start,)
        return total_of(*start, *self._blocks_before(per_block, type_), own)

    def _blocks_before(self, per_block: Expr, type_: str) -> tuple[Expr, ...]:
        before = self.words.expr("(T)PIECE * per_block", T=type_, per_block=per_block)
        return (before,) if self._plan.is_spread else ()

    def _over(
        self, type_: str, first: Expr, end: Expr, per_block: Expr, body: Sequence[Stmt], variable: str = ""
    ) -> For:
        """A thread's turns."""
        step = self.words.expr("(T)PIECES * per_block", T=type_, per_block=per_block)
        (loop,) = code(
            "for (T base = first; base < end; base += step) { body; }",
            T=type_, base=variable or self._base, first=first, end=end,
            step=step if self._plan.is_spread else per_block, body=body,
        )  # fmt: skip
        assert isinstance(loop, For)
        return loop

    def _rest(self, loop: LoopPlan, end: Expr, type_: str) -> Expr:
        """Where a thread starts on what the whole vectors leave of the range, one element at a time."""
        start, lanes = loop.each.start, self.words.expr("LANES")
        text = "end - end % VEC" if start == Number("0", 0) else "end - (end - start) % VEC"
        whole = self.words.expr(text, end=end, start=start)
        return total_of(whole, *self._blocks_before(lanes, type_), Name(self.lane))

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

    def _address(self, pack: Pack, loop: LoopPlan) -> Expr:
        return Unary("&", self._place(pack, loop, self._here))
