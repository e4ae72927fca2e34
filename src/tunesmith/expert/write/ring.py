"""Loops whose chunks are copied into a ring of shared memory ahead of their turn, asynchronously (sm_80).

A thread copies what it will read itself and waits for its own copies, so that no barrier is needed. The words
of a block's threads lie side by side, each in a place that is one thread's in every loop of the kernel:

region of a kind of packs    [stage][item][which of the loop's packs][word of the pack][thread]
    where `bulk` brings it   [team][stage][which of the loop's packs][byte of the chunk]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tunesmith.expert.read.integers import index_stride
from tunesmith.expert.read.model import Each, Let, Step, step_lists
from tunesmith.expert.write.buffers import Copy, LoopPlan, is_once
from tunesmith.expert.write.fast_math import FastMath
from tunesmith.expert.write.given import LoopAxis, item_axis, render_template_part
from tunesmith.expert.write.loops import Body, GpuLoops
from tunesmith.expert.write.packs import Pack
from tunesmith.expert.write.plan import WritingPlan
from tunesmith.source import tree as c
from tunesmith.source.snippets import Wording
from tunesmith.source.types import byte_size, integer_literal
from tunesmith.source.walk import assigned_in, calls_in, declared_in, names_in

LEAST_CAPABILITY = 80
_SMALLEST = 4  # bytes of a copy; the others are of 8 and 16


@dataclass(frozen=True)
class RingKind:
    """Packs that are as long and as wide whatever VEC is."""

    bytes: int  # of one index
    aligned: int  # bytes, of which VEC times as many divide a pack's place
    limit: int  # bytes at whose multiples its array starts


def ring_packs(plan: WritingPlan, loop: LoopPlan) -> tuple[Pack, ...]:
    """The packs of a loop that can come through a ring: loads of neighbours that the kernel never writes."""
    once = plan.is_flat and not plan.knobs.persistent.is_parameter  # a block takes one chunk
    if plan.language != "cuda" or once or not loop.is_packed:
        return ()
    return tuple(pack for pack in loop.packs if kind_of(pack, plan) is not None)


def kind_of(pack: Pack, plan: WritingPlan) -> RingKind | None:
    only_read = pack.loads and not pack.stores and pack.array not in plan.written
    if not (only_read and pack.width and pack.array in plan.arrays):
        return None
    size = byte_size((pack.element or plan.arrays[pack.array]).base)
    if size is None:
        return None
    limit = size if pack.element is not None else plan.element_align[pack.array]
    kind = RingKind(size * pack.width, size * (pack.width if pack.unit == pack.width else 1), limit)
    whole = any(vec * kind.aligned % _SMALLEST == 0 for vec in plan.knobs.vector.values)
    return kind if whole and limit >= _SMALLEST else None


def ring_kind_counts(plan: WritingPlan) -> dict[RingKind, int]:
    """Of all loops, with the most packs that one loop has of each."""
    found: dict[RingKind, int] = {}
    for loop in plan.all_loops:
        counts = Counter(kind for pack in ring_packs(plan, loop) if (kind := kind_of(pack, plan)))
        for kind, count in counts.items():
            found[kind] = max(count, found.get(kind, 0))
    return found


def ring_kinds(plan: WritingPlan) -> dict[RingKind, int]:
    """The same where the schedule has a ring."""
    return ring_kind_counts(plan) if plan.knobs.ring.is_parameter else {}


def ring_bytes(plan: WritingPlan) -> str | None:
    """Of a block's shared memory, as text of the template file; None where there is no ring."""
    kinds = ring_kinds(plan)
    if not kinds:
        return None
    knobs = (plan.knobs.items, plan.knobs.lanes, plan.knobs.tasks, plan.knobs.vector)
    one = " * ".join([plan.knobs.ring.name, *(knob.size_text for knob in knobs if knob.size_text != "1")])
    return " + ".join(f"round_up({one} * {kind.bytes * count}, 16)" for kind, count in kinds.items())


def ring_rules(plan: WritingPlan) -> list[tuple[str, str]]:
    """What copies rely on, as the template's `require`."""
    kinds = ring_kinds(plan)
    if not kinds:
        return []
    none, vec = f"{plan.knobs.ring.name} == 0", plan.knobs.vector.size_text
    rules = [("copies_ahead", f"{none} or device.capability >= {LEAST_CAPABILITY}")]
    sizes = sorted({kind.aligned for kind in kinds if kind.aligned % _SMALLEST})
    if sizes:
        whole = " and ".join(f"{vec} * {size} % {_SMALLEST} == 0" for size in sizes)
        rules.append(("whole_copies", f"{none} or {whole}"))
    if plan.is_flat:
        # Else there is one turn; and copies look ahead by more than the range is long, perhaps beyond an int.
        rules.append(("ring_goes_on", f"{none} or {plan.knobs.persistent.name} > 0"))
    knobs = plan.knobs
    others = {"blocked": knobs.blocking, "keep": knobs.keep, "split": knobs.split, "beside": knobs.beside}
    for word, knob in others.items():
        if knob.is_parameter:
            rules.append((f"ring_or_{word}", f"{none} or {knob.name} == {int(word == 'blocked')}"))
    return rules


def following_loops(steps: Sequence[Step]) -> Iterator[tuple[int, tuple[Each, frozenset[str]]]]:
    """By number of a loop: the next one of its list of steps, and names that may get a value in between.

    None where anything but definitions lies between the two."""
    for siblings in step_lists(steps):
        last: Each | None = None
        changed: frozenset[str] = frozenset()
        for step in siblings:
            if isinstance(step, Each):
                if last is not None:
                    yield last.number, (step, changed)
                last, changed = step, frozenset()
            elif isinstance(step, Let):
                given = {a.name for call in calls_in(step.body) for a in call.args if isinstance(a, c.Name)}
                changed |= {*declared_in(step.body), *assigned_in(step.body), *given}
            else:
                last = None


class RingLoops(GpuLoops):
    """Every loop as it is, and with its packs through a ring where the schedule has one."""

    def __init__(self, plan: WritingPlan, fast: FastMath) -> None:
        super().__init__(plan, fast)
        self.ring = list(ring_kinds(plan))
        self._turn_ahead = plan.word("s")
        self._regions = [plan.names.fresh(f"RING_{number}") for number in range(len(self.ring))]
        self._stage: dict[int, str] = {}  # by number of a loop: the stage whose turn it is
        self._ends: dict[int, c.Expr] = {}  # of loops whose first chunks are under way before their time
        self._next = dict(following_loops(plan.kernel.steps))

    def defines(self) -> tuple[c.Stmt, ...]:
        found = list(super().defines())
        if not self.ring:
            return tuple(found)
        found.append(self.words.define("RING_THREADS", "LANES * TASKS", "that have places in the ring"))
        before: c.Expr = integer_literal(0)
        names = [*self._regions[1:], self._plan.word("RING_BYTES")]
        for (kind, count), name in zip(ring_kind_counts(self._plan).items(), names, strict=True):
            text = "(STAGES * ITEMS * RING_THREADS * VEC * n + 15) / 16 * 16"
            bytes_of_kind = self.words.expr(text, n=integer_literal(kind.bytes * count))
            before = bytes_of_kind if before == integer_literal(0) else c.Binary("+", before, bytes_of_kind)
            found.append(c.MacroDefinition(name, before))
            before = c.Name(name)
        return tuple(found)

    def declare(self) -> tuple[c.Stmt, ...]:
        found = super().declare()
        if not self.ring:
            return found
        text = "extern __shared__ __align__(16) unsigned char ring[];"
        return (*found, *self.words.when("STAGES", self.words.code(text), said="chunks on their way"))

    def _packed(self, loop: LoopPlan, body: Body, end: c.Expr) -> tuple[c.Stmt, ...]:
        packs, under_way = self._packs_in_ring(loop), loop.each.number in self._stage
        before = self._first_chunks(loop, packs, end) if packs and not under_way else ()
        return (*before, *super()._packed(loop, body, end))

    def _packs_in_ring(self, loop: LoopPlan) -> tuple[Pack, ...]:
        return ring_packs(self._plan, loop) if self.ring else ()

    def _first_chunks(self, loop: LoopPlan, packs: Sequence[Pack], end: c.Expr) -> tuple[c.Stmt, ...]:
        w, type_ = self.words, self._plan.index_type(loop)
        stage = self._stage[loop.each.number] = self._plan.names.fresh("stage")
        first = self._first(loop, w.expr("lane * VEC"), w.expr("CHUNK"), type_)
        sent = self._sent(loop, packs, end, c.Name(self._turn_ahead))
        ahead = w.code("const T ahead = first + s * step;", T=type_, first=first, step=self._step(type_))
        turns = item_axis(self._turn_ahead, w.expr("STAGES"), ahead).over(
            (*sent, *w.code("commit_copies();"))
        )
        start = (*w.code("int stage = 0;", stage=stage), *turns)
        return w.when("STAGES", start, said="the first chunks")

    def _before_totals(self, each: Each) -> tuple[c.Stmt, ...]:
        """The first chunks of the next loop, where these do not depend on the totals."""
        found = self._next.get(each.number) if each.totals else None
        if found is None:
            return ()
        loop, changing = self._plan.loop(found[0]), found[1] | {total.name for total in each.totals}
        packs = self._packs_in_ring(loop)
        used = {name for pack in packs for name in pack.names}
        used |= names_in(loop.each.start) | names_in(loop.each.stop)
        if not packs or used & changing:
            return ()
        before, end = super()._end(loop)
        self._ends[loop.each.number] = end
        return (*before, *self._first_chunks(loop, packs, end))

    def _end(self, loop: LoopPlan) -> tuple[tuple[c.Stmt, ...], c.Expr]:
        known = self._ends.get(loop.each.number)
        return super()._end(loop) if known is None else ((), known)

    def _loads(self, loop: LoopPlan, copies: Sequence[Copy], end: c.Expr) -> tuple[c.Stmt, ...]:
        direct, in_ring = super()._loads(loop, copies, end), self._packs_in_ring(loop)
        if not in_ring:
            return direct
        w, type_, stage = self.words, self._plan.index_type(loop), self._stage[loop.each.number]
        rest = super()._loads(loop, [copy for copy in copies if copy.pack not in in_ring], end)
        taken = [
            self._pack_method(loop, pack, "take", *self._where(loop, pack, c.Name(stage))) for pack in in_ring
        ]
        turn = w.code(
            """wait_copies();
            taken;
            const T ahead = base + STAGES * step;
            sent;
            commit_copies();
            stage = stage + 1 < STAGES ? stage + 1 : 0;""",
            T=type_, stage=stage, step=self._step(type_), sent=self._sent(loop, in_ring, end, c.Name(stage)),
            taken=self._of_one_task(self._items(loop, end, "ITEMS").over(taken)),
        )  # fmt: skip
        return w.when("STAGES", (*rest, *turn), direct)

    def _step(self, type_: str) -> c.Expr:
        return self.words.expr("(T)PIECES * CHUNK" if self._plan.is_spread else "CHUNK", T=type_)

    def _sent(self, loop: LoopPlan, packs: Sequence[Pack], end: c.Expr, stage: c.Expr) -> tuple[c.Stmt, ...]:
        """Copies of the chunk at `ahead`, as far as it lies in the range."""
        copies = list[c.Stmt]()
        for pack in packs:
            once = c.Name("true" if is_once(pack, self._plan) else "false")
            args = (*self._where(loop, pack, stage), self._address(pack, loop), once)
            copies.append(c.Evaluate(c.Call(f"{self._pack_type(pack)}::copy", args)))
        ahead = self._items(loop, end, "ITEMS", self.words.expr("ahead"))
        return self._of_one_task(ahead.over(copies))

    def _of_one_task(self, stmts: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
        """A team that copies ahead takes one task at a time, which may be the first of one."""
        return self._blocking.over(stmts, guarded=False)

    def _where(self, loop: LoopPlan, pack: Pack, stage: c.Expr) -> tuple[c.Expr, c.Expr]:
        """The region of its kind, and its place there."""
        kind = kind_of(pack, self._plan)
        assert kind is not None
        alike = [p for p in ring_packs(self._plan, loop) if kind_of(p, self._plan) == kind]
        place = self.words.expr("stage * ITEMS + k", stage=stage)
        if (most := ring_kind_counts(self._plan)[kind]) > 1:
            place = c.Binary("*", place, integer_literal(most))
        if behind := alike.index(pack):
            place = c.Binary("+", place, integer_literal(behind))
        return self._region_start(kind), place

    def _region_start(self, kind: RingKind) -> c.Expr:
        number, ring = self.ring.index(kind), self.words.expr("ring")
        return c.Binary("+", ring, c.Name(self._regions[number])) if number else ring

    def copies(self) -> tuple[str, str]:
        choice = self._plan.knobs.ring
        if not self.ring:
            return super().copies()
        waits = "\n".join(
            f"#{'if' if not number else 'elif'} {choice.name} == {value}\n"
            f'    asm volatile("cp.async.wait_group {value - 1};" ::: "memory");'
            for number, value in enumerate(value for value in choice.values if value)
        )
        threads, lanes = self._plan.word("RING_THREADS"), self._plan.knobs.lanes.name
        part = partial(render_template_part, "gpu_packs.cuh", STAGES=choice.name)
        before = part("ring", WAITS=waits + "\n#endif" if waits else "")
        return before, part("ring methods", THREADS=threads, LANES=lanes)


# -- Runs of bytes that the copy engine brings into shared memory, a whole chunk of a team at once
# (sm_90).
#
# A barrier for every stage of a team counts the bytes that come. No thread waits until a stage may be filled
# again: whoever is the last of its team to have read it sends for the next chunk.


BULK_CAPABILITY = 90
_PIECE = 16  # bytes that divide a run's place and length
WARP = 32


def bulk_packs(plan: WritingPlan, loop: LoopPlan) -> tuple[Pack, ...]:
    """The packs of a loop whose chunks lie in one piece, and can start at multiples of 16 bytes."""
    found = []
    for pack in ring_packs(plan, loop):
        kind = kind_of(pack, plan)
        ways = [index_stride(part, loop.each.index) for part in (pack.index, pack.offset) if part is not None]
        whole = kind and any(vec * kind.aligned % _PIECE == 0 for vec in plan.knobs.vector.values)
        if kind and whole and kind.limit % _PIECE == 0 and all(way and not way.within for way in ways):
            found.append(pack)
    return tuple(found)


def bulk_rules(plan: WritingPlan) -> list[tuple[str, str]]:
    """What runs rely on, as the template's `require`."""
    stages, bulk = plan.knobs.ring, plan.knobs.bulk
    packs = [pack for loop in plan.all_loops for pack in bulk_packs(plan, loop)]
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
        self._whole: dict[int, c.Expr] = {}  # by number of a loop: where its last pack ends
        team = c.Name("threadIdx.y") if plan.knobs.tasks.most > 1 else integer_literal(0)
        self.words = Wording({**self.words.words, "team": team})

    def declare(self) -> tuple[c.Stmt, ...]:
        found, w = super().declare(), self.words
        barriers = w.when("BULK", w.code(_DECLARE), said="for each team's stages") if self._is_bulk else ()
        return (*found, *barriers)

    def copies(self) -> tuple[str, str]:
        before, methods = super().copies()
        if not self._is_bulk:
            return before, methods
        given = {word: self._plan.word(word) for word in ("BULK", "STAGES", "LANES")}
        return before + render_template_part("gpu_packs.cuh", "bulk", **given), methods

    def _runs(self, loop: LoopPlan) -> tuple[Pack, ...]:
        return bulk_packs(self._plan, loop) if self._is_bulk else ()

    def _first_chunks(self, loop: LoopPlan, packs: Sequence[Pack], end: c.Expr) -> tuple[c.Stmt, ...]:
        found = super()._first_chunks(loop, packs, end)
        if not self._runs(loop):
            return self.words.when("!BULK" if self._is_bulk else "", found)
        w, type_, each = self.words, self._plan.index_type(loop), loop.each
        done = [*w.code("int stage = 0;", stage=self._stage[each.number])]
        whole = end
        if loop.tail:
            name, text = self._plan.names.fresh("whole"), "const T whole = end - (end - start) % VEC;"
            done += w.code(text, T=type_, whole=name, end=end, start=each.start)
            whole = c.Name(name)
        self._whole[each.number] = whole
        turn, begin = self._turn_ahead, self._first(loop, integer_literal(0), w.expr("CHUNK"), type_)
        later = w.expr("s * step", s=turn, step=self._step(type_))
        ahead = self._first(loop, later, w.expr("CHUNK"), type_)
        sent = self._sent_runs(loop, c.Name(turn))
        done += w.code(_FIRST, T=type_, s=turn, begin=begin, ahead=ahead, whole=whole, sent=sent)
        return w.when("BULK", done, found, said="the first chunks")

    def _loads(self, loop: LoopPlan, copies: Sequence[Copy], end: c.Expr) -> tuple[c.Stmt, ...]:
        found, runs = super()._loads(loop, copies, end), self._runs(loop)
        if not self._is_bulk or not self._packs_in_ring(loop):
            return found
        rest = GpuLoops._loads(self, loop, [copy for copy in copies if copy.pack not in runs], end)
        return self.words.when("BULK", (*rest, *(self._turn_of_runs(loop, end) if runs else ())), found)

    def _turn_of_runs(self, loop: LoopPlan, end: c.Expr) -> tuple[c.Stmt, ...]:
        w, type_, stage = self.words, self._plan.index_type(loop), self._stage[loop.each.number]
        taken = list[c.Stmt]()
        for pack in self._runs(loop):
            text = "(k * LANES + lane) * VEC" if pack.width == 1 else "(k * LANES + lane) * (VEC * n)"
            place = w.expr(text, n=integer_literal(pack.width))
            base = (pack.element or self._plan.arrays[pack.array]).base
            run = c.Cast(c.Type(base, 1, const=True), self._run(loop, pack, c.Name(stage)))
            taken.append(self._pack_method(loop, pack, "load", c.Binary("+", run, place)))
        return w.code(
            _TURN, T=type_, stage=stage, step=self._step(type_), whole=self._whole[loop.each.number],
            taken=self._of_one_task(self._items(loop, end, "ITEMS").over(taken)),
            sent=self._sent_runs(loop, c.Name(stage)),
        )  # fmt: skip

    def _sent_runs(self, loop: LoopPlan, stage: c.Expr) -> tuple[c.Stmt, ...]:
        """The chunk at `here`, as far as it goes."""
        w, runs, size = self.words, list[c.Stmt](), 0
        for pack in self._runs(loop):
            pack_bytes = self._ring_kind(pack).bytes
            text = "send_run(to, source, count * own, &arrived[team][stage]);"
            to, source = self._run(loop, pack, stage), self._address(pack, loop)
            runs += w.code(text, to=to, source=source, own=integer_literal(pack_bytes), stage=stage)
            size += pack_bytes
        whole = self._whole[loop.each.number]
        return self._of_one_task(
            w.code(_SENT, whole=whole, size=integer_literal(size), runs=runs, stage=stage)
        )

    def _run(self, loop: LoopPlan, pack: Pack, stage: c.Expr) -> c.Expr:
        """Where the pack's chunk lies."""
        kind, w = self._ring_kind(pack), self.words
        place = w.expr("team * STAGES + stage" if self._plan.knobs.tasks.most > 1 else "stage", stage=stage)
        if (most := ring_kind_counts(self._plan)[kind]) > 1:
            which = [p for p in self._runs(loop) if self._ring_kind(p) == kind].index(pack)
            text = "place * most + which" if which else "place * most"
            place = w.expr(text, place=place, most=integer_literal(most), which=integer_literal(which))
        region, size = self._region_start(kind), integer_literal(kind.bytes)
        return w.expr("region + place * (CHUNK * n)", region=region, place=place, n=size)

    def _ring_kind(self, pack: Pack) -> RingKind:
        kind = kind_of(pack, self._plan)
        assert kind is not None
        return kind

    def _head(self, loop: LoopPlan, turns: LoopAxis, buffers: Sequence[c.Stmt]) -> c.Stmt:
        """With runs all threads of a team take equally many turns."""
        each, whole = super()._head(loop, turns, buffers), self._whole.get(loop.each.number)
        if whole is None or not isinstance(each, c.For):  # loops side by side have no ring
            return each
        more = self.words.expr("base - lane * VEC < whole", whole=whole)
        return c.Alternative(self.words.expr("BULK"), (replace(each, condition=more),), (each,))


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
