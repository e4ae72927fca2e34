"""Totals printed: over the threads of a task, and over the lanes of an OpenCL vector."""

from __future__ import annotations

from collections import Counter

from tunesmith.expert.model.kernel import Total
from tunesmith.expert.writing.naming import CodeLines
from tunesmith.expert.writing.plan import LoopPlan, WritingPlan
from tunesmith.expert.writing.rules import has_nested_totals

_NEUTRAL = {"+": "0", "*": "1", "^": "0", "|": "0"}


def joined(total: Total, left: str, right: str) -> str:
    if total.combine:
        return f"{total.combine}({left}, {right})"
    if total.operator in ("max", "min"):
        return f"{right} {'>' if total.operator == 'max' else '<'} {left} ? {right} : {left}"
    return f"{left} {total.operator} {right}"


class TeamTotals:
    """`mates`: the mask of the threads of a warp that share a task."""

    def __init__(self, plan: WritingPlan) -> None:
        fresh = plan.names.fresh
        self._plan = plan
        self._lanes, self._tasks = plan.knobs.lanes.name, plan.knobs.tasks.name
        self._team, self._warps, self._ways = fresh("TEAM"), fresh("WARPS"), fresh("WAYS")
        self._turn, self._step = fresh("turn"), fresh("step")
        self._mates = fresh("mates")
        self._slots: dict[str, int] = {}
        for loop in plan.all_loops:
            for base, count in Counter(total.type.base for total in loop.each.totals).items():
                self._slots[base] = max(self._slots.get(base, 0), count)
        self._arrays = {base: fresh(f"{base.strip('_').replace(' ', '_')}_of_warp") for base in self._slots}
        self._is_hip = plan.language == "hip"

    def defines(self) -> list[str]:
        if not self._slots or self._plan.knobs.lanes.most == 1:
            return []
        lanes, warps = self._lanes, self._warps
        ways = f"({warps} > 16 ? 32 : {warps} > 8 ? 16 : {warps} > 4 ? 8 : {warps} > 2 ? 4 : 2)"
        return [
            f"#define {self._team} ({lanes} < 32 ? {lanes} : 32)  // threads of a task in one warp",
            f"#define {warps} ({lanes} / 32)  // to a task, where it has more than one",
            f"#define {self._ways} {ways}  // a power of two not below that",
        ]

    def declare(self, out: CodeLines) -> None:
        """At the top of the kernel."""
        if not self._slots or self._plan.knobs.lanes.most == 1:
            return
        if self._plan.knobs.lanes.most > 32:
            out.add(f"#if {self._lanes} > 32")
            for base, slots in self._slots.items():
                array = self._arrays[base]
                out.add(f"__shared__ {base} {array}[2][{slots}][{self._tasks}][{self._warps}];")
            out.add(f"int {self._turn} = 0;  // while totals are read, the next ones are written elsewhere")
            out.add("#endif")
        if not self._is_hip and self._plan.knobs.lanes.least < 32:
            lanes = self._lanes
            # Where all threads of a warp come, whatever their tasks, it need not find out who does.
            whole = f"{lanes} * {self._tasks} % 32 == 0"
            if has_nested_totals(self._plan.kernel.steps):
                whole = f"{lanes} >= 32"
            out.add(f"const unsigned {self._mates} = {whole} ? 0xffffffffu")
            out.add(f"    : ((1u << {lanes} % 32) - 1u) << threadIdx.y * {lanes} % 32;")

    def reduce(self, totals: tuple[Total, ...], out: CodeLines) -> None:
        """Every thread of the block comes here, also those that have no element."""
        if not totals or self._plan.knobs.lanes.most == 1:
            return
        self._shuffle(totals, self._team, out)
        if self._plan.knobs.lanes.most <= 32:
            return
        places = self._places(totals)
        out.add(f"#if {self._lanes} > 32")
        with out.block("if (threadIdx.x % 32 == 0)"):
            for total, place in places:
                out.add(f"{place}[threadIdx.x / 32] = {total.name};")
        out.add("__syncthreads();")
        for total, place in places:
            here = f"threadIdx.x % {self._ways}"
            neutral = _NEUTRAL.get(total.operator)
            other = f"({total.type.base}){neutral}" if neutral is not None else f"{place}[0]"
            out.add(f"{total.name} = {here} < {self._warps} ? {place}[{here}] : {other};")
        self._shuffle(totals, self._ways, out)
        out.add(f"{self._turn} ^= 1;")
        out.add("#endif")

    def _places(self, totals: tuple[Total, ...]) -> list[tuple[Total, str]]:
        used: Counter[str] = Counter()
        found = []
        for total in totals:
            base = total.type.base
            slot = used[base]
            used[base] += 1
            found.append((total, f"{self._arrays[base]}[{self._turn}][{slot}][threadIdx.y]"))
        return found

    def _shuffle(self, totals: tuple[Total, ...], width: str, out: CodeLines) -> None:
        step, mask = self._step, self._mates if self._plan.knobs.lanes.least < 32 else "0xffffffffu"
        out.add("#pragma unroll")
        with out.block(f"for (int {step} = {width} / 2; {step} > 0; {step} /= 2)"):
            for total in totals:
                other = f"__shfl_xor_sync({mask}, {total.name}, {step})"
                if self._is_hip:
                    other = f"__shfl_xor({total.name}, {step}, 32)"
                if total.combine or total.operator not in ("max", "min"):
                    out.add(f"{total.name} = {joined(total, total.name, other)};")
                else:  # the shuffle must not stand twice, nor behind a condition
                    out.add(f"const {total.type.base} {total.name}_other = {other};")
                    out.add(f"{total.name} = {joined(total, total.name, f'{total.name}_other')};")


class CpuTotals:
    """Totals over the work-items of a task, through local memory."""

    def __init__(self, plan: WritingPlan) -> None:
        fresh = plan.names.fresh
        self._plan = plan
        totals = [total for loop in plan.all_loops for total in loop.each.totals]
        self._arrays = {total.name: (fresh(f"{total.name}_of_item"), total.type.base) for total in totals}
        self._turn, self._count, self._away = fresh("turn"), fresh("count"), fresh("away")

    def defines(self) -> list[str]:
        return []

    def declare(self, out: CodeLines) -> None:
        if self._arrays and self._plan.knobs.lanes.most > 1:
            lanes, tasks = self._plan.knobs.lanes.name, self._plan.knobs.tasks.name
            out.add(f"#if {lanes} > 1")
            for array, base in self._arrays.values():
                out.add(f"__local {base} {array}[2][{tasks}][{lanes}];")
            out.add(f"int {self._turn} = 0;  // while totals are read, the next ones are written elsewhere")
            out.add("#endif")

    def reduce(self, loop: LoopPlan, lane: str, out: CodeLines) -> None:
        lanes = self._plan.knobs.lanes
        if not loop.each.totals or lanes.most == 1:
            return
        out.add(f"#if {lanes.name} > 1")
        places = []
        for total in loop.each.totals:
            array = self._arrays[total.name][0]
            places.append((total, f"{array}[{self._turn}][get_local_id(1)]"))
            out.add(f"{places[-1][1]}[{lane}] = {total.name};")
        count, away = self._count, self._away
        # In pairs as far apart as can be: the fewest roundings, and the order of a tree written by hand.
        with out.block(f"for (int {count} = {lanes.name}; {count} > 1; {count} = ({count} + 1) / 2)"):
            out.add("barrier(CLK_LOCAL_MEM_FENCE);", f"const int {away} = ({count} + 1) / 2;")
            with out.block(f"if ({lane} + {away} < {count})"):
                for total, place in places:
                    other = self._plan.names.fresh(f"{total.name}_away")
                    out.add(f"const {total.type.base} {other} = {place}[{lane} + {away}];")
                    out.add(f"{total.name} = {joined(total, total.name, other)};")
                    out.add(f"{place}[{lane}] = {total.name};")
        out.add("barrier(CLK_LOCAL_MEM_FENCE);")
        for total, place in places:
            out.add(f"{total.name} = {place}[0];")
        out.add(f"{self._turn} ^= 1;", "#endif")


_WORDS = {"+": "sum", "*": "product"}


class Folds:
    """The lanes of an OpenCL vector joined to one value, as functions: half with half, down to one.

    Halves are values. Lanes taken from memory (a union, or a pointer to the vector) would be shorter to
    print, but PoCL 3.0 loses them: in a group with barriers it runs a loop over lanes in step for all
    work-items, and an address of private memory that was computed before the loop is then the last
    work-item's for all of them.
    """

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

    def text(self) -> list[str]:
        return [self._function(name, total) for name, total in self._made.values()]

    def _function(self, name: str, total: Total) -> str:
        knob = self._plan.knobs.vector
        lines = [f"float {name}({self._vec} x)", "{"]
        wider = "x"  # what the next halves are taken of
        for width in (8, 4, 2):
            if width >= knob.most:
                continue
            halves = joined(total, f"{wider}.lo", f"{wider}.hi")
            lines += [f"#if {knob.name} > {width}", f"    const float{width} x{width} = {halves};"]
            if width in knob.values:
                lines += [f"#elif {knob.name} == {width}", f"    const float{width} x{width} = x;"]
            lines.append("#endif")
            wider = f"x{width}"
        halves = joined(total, f"{wider}.lo", f"{wider}.hi")
        lines += [f"#if {knob.name} > 1", f"    return {halves};", "#else", "    return x;", "#endif", "}"]
        return "\n".join(lines)
