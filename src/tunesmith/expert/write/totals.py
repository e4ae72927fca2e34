"""Totals as code: over the threads of a task, and over the lanes of an OpenCL vector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import replace

from tunesmith.expert.read.model import Total
from tunesmith.expert.write.buffers import LoopPlan
from tunesmith.expert.write.given import Knob, has_nested_totals
from tunesmith.expert.write.plan import WritingPlan
from tunesmith.source import tree as c
from tunesmith.source.snippets import parse_snippet
from tunesmith.source.types import integer_literal

_NEUTRAL = {"+": 0, "*": 1, "^": 0, "|": 0}


def combine_totals(total: Total, left: c.Expr, right: c.Expr) -> c.Expr:
    if total.combine:
        joined = c.Call(total.combine, (left, right))
        is_float = total.combine.lstrip("_").endswith("f") and total.type.base not in ("float", "double")
        return c.Cast(c.Type(total.type.base), joined) if is_float else joined
    if total.operator in ("max", "min"):
        first = c.Binary(">" if total.operator == "max" else "<", right, left)
        return c.Ternary(first, right, left)
    return c.Binary(total.operator, left, right)


def assign_to_name(name: str, value: c.Expr) -> c.Stmt:
    return c.Evaluate(c.Assign("=", c.Name(name), value))


def start_total(total: Total, scope: Container[str]) -> tuple[c.Stmt, ...]:
    """What a thread's share begins with; the total is declared unless it is in scope."""
    if total.name in scope:
        return (assign_to_name(total.name, total.start),)
    return (c.Declare(c.Type(total.type.base), total.name, total.start),)


_TURN = "int turn = 0;  // while totals are read, the next ones are written elsewhere"


class TeamTotals:
    """`mates`: the mask of the threads of a warp that share a task."""

    def __init__(self, plan: WritingPlan) -> None:
        self._plan = plan
        self._w, self._blocking = plan.words, plan.blocking
        self._slots: dict[str, int] = {}
        for loop in plan.all_loops:
            for base, count in Counter(total.type.base for total in loop.each.totals).items():
                self._slots[base] = max(self._slots.get(base, 0), count)
        fresh = plan.names.fresh
        self._arrays = {base: fresh(f"{base.strip('_').replace(' ', '_')}_of_warp") for base in self._slots}
        self._is_hip = plan.language == "hip"

    def defines(self) -> tuple[c.Stmt, ...]:
        ways = "WARPS > 16 ? 32 : WARPS > 8 ? 16 : WARPS > 4 ? 8 : WARPS > 2 ? 4 : 2"
        return (
            self._w.define("TEAM", "LANES < 32 ? LANES : 32", "threads of a task in one warp"),
            self._w.define("WARPS", "LANES / 32", "to a task, where it has more than one"),
            self._w.define("WAYS", ways, "a power of two not below that"),
        )

    def declare(self) -> tuple[c.Stmt, ...]:
        """At the top of the kernel."""
        lanes, done = self._plan.knobs.lanes, list[c.Stmt]()
        if not self._slots or lanes.most == 1:
            return ()
        if lanes.most > 32:
            text = "__shared__ T array[2][slots][TASKS][WARPS];"
            for base, slots in self._slots.items():
                done += self._w.code(text, T=base, array=self._arrays[base], slots=self._shared_places(slots))
            done = [*self._w.when("LANES > 32", [*done, *self._w.code(_TURN)])]
        if not self._is_hip and lanes.least < 32:
            # Where all threads of a warp come, whatever their tasks, it need not find out who does.
            nested = has_nested_totals(self._plan.kernel.steps)
            whole = "LANES >= 32" if nested else "LANES * TASKS % 32 == 0"
            some = "((1u << LANES % 32) - 1u) << threadIdx.y * LANES % 32"
            done += self._w.code(f"const unsigned mates = {whole} ? 0xffffffffu : {some};")
        return tuple(done)

    def reduce(self, totals: tuple[Total, ...]) -> tuple[c.Stmt, ...]:
        """Every thread of the block comes here, also those that have no element."""
        if not totals or self._plan.knobs.lanes.most == 1:
            return ()
        in_warp = self._shuffle_reduction(totals, "TEAM")
        if self._plan.knobs.lanes.most <= 32:
            return in_warp
        put, taken, used = list[c.Stmt](), list[c.Stmt](), Counter[str]()
        for total in totals:
            base, neutral = total.type.base, _NEUTRAL.get(total.operator)
            array, slot = self._arrays[base], self._slot(used[base])
            place = self._w.expr("array[turn][slot][threadIdx.y]", array=array, slot=slot)
            used[base] += 1
            put += parse_snippet("place[threadIdx.x / 32] = own;", place=place, own=total.name)
            other = (
                c.Index(place, integer_literal(0))
                if neutral is None
                else c.Cast(total.type, integer_literal(neutral))
            )
            text = "own = threadIdx.x % WAYS < WARPS ? place[threadIdx.x % WAYS] : other;"
            taken += self._w.code(text, own=total.name, place=place, other=other)
        text = "if (threadIdx.x % 32 == 0) { put; } __syncthreads(); taken; again; turn ^= 1;"
        put, taken = (list(self._blocking.over(part, guarded=False)) for part in (put, taken))
        over_warps = self._w.code(text, put=put, taken=taken, again=self._shuffle_reduction(totals, "WAYS"))
        return (*in_warp, *self._w.when("LANES > 32", over_warps))

    def _shuffle_reduction(self, totals: tuple[Total, ...], width: str) -> tuple[c.Stmt, ...]:
        body: list[c.Stmt] = []
        mask = "mates" if self._plan.knobs.lanes.least < 32 else "0xffffffffu"
        for total in totals:
            variable = c.Name(total.name)
            text = "__shfl_xor(own, step, 32)" if self._is_hip else f"__shfl_xor_sync({mask}, own, step)"
            other = self._w.expr(text, own=variable)
            if not total.combine and total.operator in ("max", "min"):
                # The shuffle must not stand twice, nor behind a condition.
                given = f"{variable.name}_other"
                body += parse_snippet("const T given = other;", T=total.type.base, given=given, other=other)
                other = c.Name(given)
            body.append(assign_to_name(variable.name, combine_totals(total, variable, other)))
        loop = f"#pragma unroll\nfor (int step = {width} / 2; step > 0; step /= 2) {{ body; }}"
        return self._w.code(loop, body=self._blocking.over(body, guarded=False))

    def _shared_places(self, slots: int) -> c.Expr:
        if self._blocking.task is None:
            return integer_literal(slots)
        return self._blocking.words.expr("slots * BLOCKED", slots=integer_literal(slots))

    def _slot(self, number: int) -> c.Expr:
        if self._blocking.task is None:
            return integer_literal(number)
        return self._blocking.words.expr(
            "number * BLOCKED + r" if number else "r", number=integer_literal(number)
        )


class CpuTotals:
    """Totals over the work-items of a task, through local memory."""

    def __init__(self, plan: WritingPlan) -> None:
        fresh, self._plan, self._w = plan.names.fresh, plan, plan.words
        totals = [total for loop in plan.all_loops for total in loop.each.totals]
        self._arrays = {total.name: (fresh(f"{total.name}_of_item"), total.type.base) for total in totals}

    def defines(self) -> tuple[c.Stmt, ...]:
        return ()

    def declare(self) -> tuple[c.Stmt, ...]:
        if not self._arrays or self._plan.knobs.lanes.most == 1:
            return ()
        text, done = "__shared__ T array[2][TASKS][LANES];", list[c.Stmt]()
        for array, base in self._arrays.values():
            done += self._w.code(text, T=base, array=array)
        return self._w.when("LANES > 1", [*done, *self._w.code(_TURN)])

    def reduce(self, loop: LoopPlan, lane: str) -> tuple[c.Stmt, ...]:
        totals = loop.each.totals
        if not totals or self._plan.knobs.lanes.most == 1:
            return ()
        put, met, taken = list[c.Stmt](), list[c.Stmt](), list[c.Stmt]()
        for total in totals:
            name, far = total.name, self._plan.names.fresh(f"{total.name}_away")
            place = self._w.expr("array[turn][threadIdx.y]", array=self._arrays[name][0])
            put += parse_snippet("place[lane] = own;", place=place, lane=lane, own=name)
            pair = combine_totals(total, c.Name(name), c.Name(far))
            text = "const T far = place[lane + away]; own = pair; place[lane] = own;"
            met += self._w.code(text, T=total.type.base, far=far, place=place, lane=lane, own=name, pair=pair)
            taken.append(assign_to_name(name, c.Index(place, integer_literal(0))))
        # In pairs as far apart as can be: the fewest roundings, and the order of a tree written by hand.
        text = """put;
            for (int count = LANES; count > 1; count = (count + 1) / 2) {
                __syncthreads();
                const int away = (count + 1) / 2;
                if (lane + away < count) { met; }
            }
            __syncthreads();
            taken;
            turn ^= 1;"""
        return self._w.when("LANES > 1", self._w.code(text, put=put, met=met, taken=taken, lane=lane))


_WORDS = {"+": "sum", "*": "product"}


class Folds:
    """The lanes of an OpenCL vector joined to one value, as functions: half with half, down to one.

    Halves are values. Lanes taken from memory (a union, or a pointer to the vector) would be shorter to
    print, but PoCL 3.0 loses them: in a group with barriers it runs a loop over lanes in step for all
    work-items, and an address of private memory that was computed before the loop is then the last
    work-item's for all of them."""

    def __init__(self, plan: WritingPlan, vec: str) -> None:
        self._plan, self._vec = plan, vec
        self._made: dict[tuple[str, str], tuple[str, Total]] = {}

    def name(self, total: Total) -> str:
        """The function for totals of this kind."""
        key = (total.operator, total.combine)
        if key not in self._made:
            word = _WORDS.get(total.operator, total.operator)
            self._made[key] = (self._plan.names.fresh(f"{word}_of_lanes"), total)
        return self._made[key][0]

    def functions(self) -> tuple[c.Function, ...]:
        return tuple(self._reduction(name, total) for name, total in self._made.values())

    def _reduction(self, name: str, total: Total) -> c.Function:
        knob = self._plan.knobs.vector
        body: list[c.Stmt] = []
        wider = "x"  # what the next halves are taken of

        def halves() -> c.Expr:
            whole = c.Name(wider)
            return combine_totals(total, c.Member(whole, "lo"), c.Member(whole, "hi"))

        for width in (8, 4, 2):
            if width >= knob.most:
                continue
            half = c.Declare(c.Type(f"float{width}", const=True), f"x{width}", halves())
            same = c.Alternative(_compare_knob(knob, "==", width), (replace(half, init=c.Name("x")),))
            known = (same,) if width in knob.values else ()
            body.append(c.Alternative(_compare_knob(knob, ">", width), (half,), known))
            wider = half.name
        whole = (c.Return(c.Name("x")),)
        body.append(c.Alternative(_compare_knob(knob, ">", 1), (c.Return(halves()),), whole))
        return c.Function(name, (c.Parameter(c.Type(self._vec), "x"),), tuple(body), c.Type("float"))


def _compare_knob(knob: Knob, op: str, value: int) -> c.Expr:
    return c.Binary(op, c.Name(knob.name), integer_literal(value))
