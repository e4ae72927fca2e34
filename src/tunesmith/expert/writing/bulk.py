"""Runs of bytes that the copy engine brings into shared memory, a whole chunk of a team at once (sm_90).

A barrier for every stage of a team counts the bytes that come. No thread waits until a stage may be filled
again: whoever is the last of its team to have read it sends for the next chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunesmith.csource.nodes import Alternative, Binary, Cast, Expr, For, Name, Stmt, Type
from tunesmith.csource.snippets import Wording
from tunesmith.csource.types import integer
from tunesmith.expert.model.affine import stride
from tunesmith.expert.writing.buffers import Copy, LoopPlan
from tunesmith.expert.writing.fast_math import FastMath
from tunesmith.expert.writing.gpu_loops import GpuLoops
from tunesmith.expert.writing.nest import LoopAxis
from tunesmith.expert.writing.packs import Pack
from tunesmith.expert.writing.parts import part
from tunesmith.expert.writing.plan import WritingPlan
from tunesmith.expert.writing.ring import RingKind, RingLoops, kind_of, kinds, ringed

BULK_CAPABILITY = 90
_PIECE = 16  # bytes that divide a run's place and length
WARP = 32


def bulked(plan: WritingPlan, loop: LoopPlan) -> tuple[Pack, ...]:
    """The packs of a loop whose chunks lie in one piece, and can start at multiples of 16 bytes."""
    found = []
    for pack in ringed(plan, loop):
        kind = kind_of(pack, plan)
        ways = [stride(part, loop.each.index) for part in (pack.index, pack.offset) if part is not None]
        whole = kind and any(vec * kind.aligned % _PIECE == 0 for vec in plan.knobs.vector.values)
        if kind and whole and kind.limit % _PIECE == 0 and all(way and not way.within for way in ways):
            found.append(pack)
    return tuple(found)


def bulk_rules(plan: WritingPlan) -> list[tuple[str, str]]:
    """What runs rely on, as the template's `require`."""
    stages, bulk = plan.knobs.ring, plan.knobs.bulk
    packs = [pack for loop in plan.all_loops for pack in bulked(plan, loop)]
    if not stages.is_parameter or not bulk.is_parameter or not packs:
        return []
    none, vec = f"{bulk.name} == 0", plan.knobs.vector.size_text
    rules = [("bulk_copies", f"{none} or {stages.name} > 0 and device.capability >= {BULK_CAPABILITY}")]
    rules.append(("bulk_by_warps", f"{none} or {plan.knobs.lanes.size_text} % {WARP} == 0"))
    sizes = {kind.aligned for pack in packs if (kind := kind_of(pack, plan)) and kind.aligned % _PIECE}
    if sizes:
        whole = " and ".join(f"{vec} * {size} % {_PIECE} == 0" for size in sorted(sizes))
        rules.append(("bulk_pieces", f"{none} or {whole}"))
    return rules


class BulkLoops(RingLoops):
    """Every loop as it is, and with runs in place of its threads' own copies where the schedule has them."""

    def __init__(self, plan: WritingPlan, fast: FastMath) -> None:
        super().__init__(plan, fast)
        self._is_bulk = plan.knobs.bulk.is_parameter and bool(self.ring)
        self._whole: dict[int, Expr] = {}  # by number of a loop: where its last pack ends
        team = Name("threadIdx.y") if plan.knobs.tasks.most > 1 else integer(0)
        self.words = Wording({**self.words.words, "team": team})

    def declare(self) -> tuple[Stmt, ...]:
        found, w = super().declare(), self.words
        own = w.when("BULK", w.code(_DECLARE), said="for each team's stages") if self._is_bulk else ()
        return (*found, *own)

    def copies(self) -> tuple[str, str]:
        before, methods = super().copies()
        if not self._is_bulk:
            return before, methods
        given = {word: self._plan.word(word) for word in ("BULK", "STAGES", "LANES")}
        return before + part("gpu_packs.cuh", "bulk", **given), methods

    def _runs(self, loop: LoopPlan) -> tuple[Pack, ...]:
        return bulked(self._plan, loop) if self._is_bulk else ()

    def _first_chunks(self, loop: LoopPlan, packs: Sequence[Pack], end: Expr) -> tuple[Stmt, ...]:
        found = super()._first_chunks(loop, packs, end)
        if not self._runs(loop):
            return self.words.when("!BULK" if self._is_bulk else "", found)
        w, type_, each = self.words, self._plan.index_type(loop), loop.each
        done = [*w.code("int stage = 0;", stage=self._stage[each.number])]
        whole = end
        if loop.tail:
            name, text = self._plan.names.fresh("whole"), "const T whole = end - (end - start) % VEC;"
            done += w.code(text, T=type_, whole=name, end=end, start=each.start)
            whole = Name(name)
        self._whole[each.number] = whole
        turn, begin = self._turn_ahead, self._first(loop, integer(0), w.expr("CHUNK"), type_)
        later = w.expr("s * step", s=turn, step=self._step(type_))
        ahead = self._first(loop, later, w.expr("CHUNK"), type_)
        sent = self._sent_runs(loop, Name(turn))
        done += w.code(_FIRST, T=type_, s=turn, begin=begin, ahead=ahead, whole=whole, sent=sent)
        return w.when("BULK", done, found, said="the first chunks")

    def _loads(self, loop: LoopPlan, copies: Sequence[Copy], end: Expr) -> tuple[Stmt, ...]:
        found, runs = super()._loads(loop, copies, end), self._runs(loop)
        if not self._is_bulk or not self._ringed(loop):
            return found
        rest = GpuLoops._loads(self, loop, [copy for copy in copies if copy.pack not in runs], end)
        return self.words.when("BULK", (*rest, *(self._turn_of_runs(loop, end) if runs else ())), found)

    def _turn_of_runs(self, loop: LoopPlan, end: Expr) -> tuple[Stmt, ...]:
        w, type_, stage = self.words, self._plan.index_type(loop), self._stage[loop.each.number]
        taken = list[Stmt]()
        for pack in self._runs(loop):
            text = "(k * LANES + lane) * VEC" if pack.width == 1 else "(k * LANES + lane) * (VEC * n)"
            place = w.expr(text, n=integer(pack.width))
            base = (pack.element or self._plan.arrays[pack.array]).base
            run = Cast(Type(base, 1, const=True), self._run(loop, pack, Name(stage)))
            taken.append(self._method(loop, pack, "load", Binary("+", run, place)))
        return w.code(
            _TURN, T=type_, stage=stage, step=self._step(type_), whole=self._whole[loop.each.number],
            taken=self._of_one_task(self._items(loop, end, "ITEMS").over(taken)),
            sent=self._sent_runs(loop, Name(stage)),
        )  # fmt: skip

    def _sent_runs(self, loop: LoopPlan, stage: Expr) -> tuple[Stmt, ...]:
        """The chunk at `here`, as far as it goes."""
        w, runs, size = self.words, list[Stmt](), 0
        for pack in self._runs(loop):
            own = self._ring_kind(pack).bytes
            text = "send_run(to, source, count * own, &arrived[team][stage]);"
            to, source = self._run(loop, pack, stage), self._address(pack, loop)
            runs += w.code(text, to=to, source=source, own=integer(own), stage=stage)
            size += own
        whole = self._whole[loop.each.number]
        return self._of_one_task(w.code(_SENT, whole=whole, size=integer(size), runs=runs, stage=stage))

    def _run(self, loop: LoopPlan, pack: Pack, stage: Expr) -> Expr:
        """Where the pack's chunk lies."""
        kind, w = self._ring_kind(pack), self.words
        place = w.expr("team * STAGES + stage" if self._plan.knobs.tasks.most > 1 else "stage", stage=stage)
        if (most := kinds(self._plan)[kind]) > 1:
            which = [p for p in self._runs(loop) if self._ring_kind(p) == kind].index(pack)
            text = "place * most + which" if which else "place * most"
            place = w.expr(text, place=place, most=integer(most), which=integer(which))
        return w.expr(
            "region + place * (CHUNK * n)", region=self._region(kind), place=place, n=integer(kind.bytes)
        )

    def _ring_kind(self, pack: Pack) -> RingKind:
        kind = kind_of(pack, self._plan)
        assert kind is not None
        return kind

    def _head(self, loop: LoopPlan, turns: LoopAxis, own: Sequence[Stmt]) -> Stmt:
        """With runs all threads of a team take equally many turns."""
        each, whole = super()._head(loop, turns, own), self._whole.get(loop.each.number)
        if whole is None or not isinstance(each, For):  # loops side by side have no ring
            return each
        more = self.words.expr("base - lane * VEC < whole", whole=whole)
        return Alternative(self.words.expr("BULK"), (replace(each, condition=more),), (each,))


_DECLARE = """__shared__ unsigned long long arrived[TASKS][STAGES];
__shared__ unsigned int come[TASKS][STAGES + 1];
unsigned int phases = 0;
if (lane == 0)
    make_barriers(arrived[team], come[team]);
__syncthreads();"""

_FIRST = """if (begin < whole && last_of_team(&come[team][STAGES])) {
    #pragma unroll
    for (int s = 0; s < STAGES; s++) {
        const T here = ahead;
        if (here < whole) { sent; }
    }
}"""

_TURN = """await_run(&arrived[team][stage], phases >> stage & 1u);
phases ^= 1u << stage;
taken;
const T here = base - lane * VEC + STAGES * step;
if (here < whole && last_of_team(&come[team][stage])) { sent; }
stage = stage + 1 < STAGES ? stage + 1 : 0;"""

_SENT = """const int count = (int)(whole - here < CHUNK ? whole - here : CHUNK);
expect_bytes(&arrived[team][stage], count * size);
runs;"""
