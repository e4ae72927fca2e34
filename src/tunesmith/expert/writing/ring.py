"""Loops whose chunks are copied into a ring of shared memory ahead of their turn, asynchronously (sm_80).

A thread copies what it will read itself and waits for its own copies, so that no barrier is needed. The words
of a block's threads lie side by side, each in a place that is one thread's in every loop of the kernel:

region of a kind of packs    [stage][item][which of the loop's packs][word of the pack][thread]
    where `bulk` brings it   [team][stage][which of the loop's packs][byte of the chunk]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tunesmith.csource.nodes import Binary, Call, Evaluate, Expr, MacroDefinition, Name, Stmt
from tunesmith.csource.snippets import Wording
from tunesmith.csource.types import byte_size, integer
from tunesmith.csource.walk import assigned_in, calls_in, declared_in, names_in
from tunesmith.expert.model.kernel import Each, Let, Repeat, Step, When
from tunesmith.expert.writing.fast_math import FastMath
from tunesmith.expert.writing.gpu_loops import Body, GpuLoops
from tunesmith.expert.writing.packs import Pack
from tunesmith.expert.writing.plan import Group, LoopPlan, WritingPlan
from tunesmith.expert.writing.team_totals import TeamTotals

LEAST_CAPABILITY = 80
_SMALLEST = 4  # bytes of a copy; the others are of 8 and 16


@dataclass(frozen=True)
class RingKind:
    """Packs that are as long and as wide whatever VEC is."""

    bytes: int  # of one index
    aligned: int  # bytes, of which VEC times as many divide a pack's place
    limit: int  # bytes at whose multiples its array starts


def ringed(plan: WritingPlan, loop: LoopPlan) -> tuple[Pack, ...]:
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


def kinds(plan: WritingPlan) -> dict[RingKind, int]:
    """Of all loops, with the most packs that one loop has of each."""
    found: dict[RingKind, int] = {}
    for loop in plan.all_loops:
        counts = Counter(kind for pack in loop.packs if (kind := kind_of(pack, plan)) and ringed(plan, loop))
        for kind, count in counts.items():
            found[kind] = max(count, found.get(kind, 0))
    return found


def ring_bytes(plan: WritingPlan) -> str | None:
    """Of a block's shared memory, as text of the template file; None where there is no ring."""
    choice, own = plan.draft.schedule.get("ring"), kinds(plan)
    if choice is None or not own:
        return None
    knobs = (plan.knobs.items, plan.knobs.lanes, plan.knobs.tasks, plan.knobs.vector)
    one = " * ".join([choice.name, *(knob.size_text for knob in knobs if knob.size_text != "1")])
    return " + ".join(f"round_up({one} * {kind.bytes * count}, 16)" for kind, count in own.items())


def ring_rules(plan: WritingPlan) -> list[tuple[str, str]]:
    """What copies rely on, as the template's `require`."""
    choice, own = plan.draft.schedule.get("ring"), kinds(plan)
    if choice is None or not own:
        return []
    none, vec = f"{choice.name} == 0", plan.knobs.vector.size_text
    rules = [("copies_ahead", f"{none} or device.capability >= {LEAST_CAPABILITY}")]
    sizes = sorted({kind.aligned for kind in own if kind.aligned % _SMALLEST})
    if sizes:
        whole = " and ".join(f"{vec} * {size} % {_SMALLEST} == 0" for size in sizes)
        rules.append(("whole_copies", f"{none} or {whole}"))
    if plan.is_flat:
        # Else there is one turn; and copies look ahead by more than the range is long, perhaps beyond an int.
        rules.append(("ring_goes_on", f"{none} or {plan.knobs.persistent.name} > 0"))
    schedule = plan.draft.schedule
    if "blocking" in schedule:
        rules.append(("ring_or_blocked", f"{none} or {schedule['blocking'].name} == 1"))
    others = [word for word in ("keep", "split", "beside") if word in schedule]
    return rules + [(f"ring_or_{word}", f"{none} or {schedule[word].name} == 0") for word in others]


def followers(steps: Sequence[Step]) -> Iterator[tuple[int, tuple[Each, frozenset[str]]]]:
    """By id of a loop: the next one of its list of steps, and names that may get a value in between.

    None where anything but definitions lies between the two.
    """
    last: Each | None = None
    changed: frozenset[str] = frozenset()
    for step in steps:
        match step:
            case Each():
                if last is not None:
                    yield id(last), (step, changed)
                last, changed = step, frozenset()
            case Let(body=body):
                by_reference = {a.name for call in calls_in(body) for a in call.args if isinstance(a, Name)}
                changed |= {*declared_in(body), *assigned_in(body), *by_reference}
            case When(then=then, otherwise=otherwise):
                last = None
                yield from followers(then)
                yield from followers(otherwise)
            case Repeat(body=inner):
                last = None
                yield from followers(inner)
            case _:
                last = None


class RingLoops(GpuLoops):
    """Every loop as it is, and with its packs through a ring where the schedule has one."""

    def __init__(self, plan: WritingPlan, fast: FastMath, totals: TeamTotals, inside: str, pack: str) -> None:
        super().__init__(plan, fast, totals, inside, pack)
        choice = plan.draft.schedule.get("ring")
        self.ring = list(kinds(plan)) if choice is not None else []
        if choice is None or not self.ring:
            return
        own = ("ring", "ahead", "RING_BYTES", "RING_THREADS", "copy_word", "commit_copies", "wait_copies")
        words = {word: plan.names.fresh(word) for word in own}
        self._turn_ahead = plan.names.fresh("s")
        self._regions = [plan.names.fresh(f"RING_{number}") for number in range(len(self.ring))]
        self._stage: dict[int, str] = {}  # by id of a loop: the stage whose turn it is
        self._ends: dict[int, Expr] = {}  # of loops whose first chunks are under way before their time
        self._next = dict(followers(plan.kernel.steps))
        knobs = {"STAGES": choice.name, "TASKS": plan.knobs.tasks.name}
        self.words = Wording({**self.words.words, **words, **knobs})

    def defines(self) -> tuple[Stmt, ...]:
        found = list(super().defines())
        if not self.ring:
            return tuple(found)
        found.append(self.words.define("RING_THREADS", "LANES * TASKS", "that have places in the ring"))
        before: Expr = integer(0)
        names = [*self._regions[1:], str(self.words.words["RING_BYTES"])]
        for (kind, count), name in zip(kinds(self._plan).items(), names, strict=True):
            text = "(STAGES * ITEMS * RING_THREADS * VEC * n + 15) / 16 * 16"
            own = self.words.expr(text, n=integer(kind.bytes * count))
            before = own if before == integer(0) else Binary("+", before, own)
            found.append(MacroDefinition(name, before))
            before = Name(name)
        return tuple(found)

    def declare(self) -> tuple[Stmt, ...]:
        """At the top of the kernel."""
        if not self.ring:
            return ()
        text = "extern __shared__ __align__(16) unsigned char ring[];"
        return self.words.when("STAGES", self.words.code(text), said="chunks on their way")

    # -- a loop: chunks are under way before it, and each turn sends for another ------------------------

    def _packed(self, loop: LoopPlan, body: Body, end: Expr) -> tuple[Stmt, ...]:
        packs = ringed(self._plan, loop) if self.ring else ()
        if not packs:
            return super()._packed(loop, body, end)
        before = () if id(loop.each) in self._stage else self._first_chunks(loop, packs, end)
        return (*before, *super()._packed(loop, body, end))

    def _first_chunks(self, loop: LoopPlan, packs: Sequence[Pack], end: Expr) -> tuple[Stmt, ...]:
        w, type_ = self.words, self._plan.index_type(loop)
        stage = self._stage[id(loop.each)] = self._plan.names.fresh("stage")
        first = self._first(loop, w.expr("lane * VEC"), w.expr("CHUNK"), type_)
        sent = self._sent(loop, packs, end, Name(self._turn_ahead))
        start = w.code(
            """int stage = 0;
            #pragma unroll
            for (int s = 0; s < STAGES; s++) {
                const T ahead = first + s * step;
                sent;
                commit_copies();
            }""",
            T=type_, stage=stage, s=self._turn_ahead, first=first, step=self._step(type_), sent=sent,
        )  # fmt: skip
        return w.when("STAGES", start, said="the first chunks")

    def _before_totals(self, each: Each) -> tuple[Stmt, ...]:
        """The first chunks of the next loop, where these do not depend on the totals."""
        found = self._next.get(id(each)) if self.ring and each.totals else None
        if found is None:
            return ()
        loop, changing = self._plan.loop(found[0]), found[1] | {total.name for total in each.totals}
        packs = ringed(self._plan, loop)
        used = {name for pack in packs for name in pack.names}
        used |= names_in(loop.each.start) | names_in(loop.each.stop)
        if not packs or used & changing:
            return ()
        before, end = super()._end(loop)
        self._ends[id(loop.each)] = end
        return (*before, *self._first_chunks(loop, packs, end))

    def _end(self, loop: LoopPlan) -> tuple[tuple[Stmt, ...], Expr]:
        known = self._ends.get(id(loop.each)) if self.ring else None
        return super()._end(loop) if known is None else ((), known)

    def _loads(
        self, loop: LoopPlan, packs: Sequence[Pack], end: Expr, group: Group | None
    ) -> tuple[Stmt, ...]:
        direct = super()._loads(loop, packs, end, group)
        own = ringed(self._plan, loop) if self.ring else ()
        if not own:
            return direct
        w, type_, stage = self.words, self._plan.index_type(loop), self._stage[id(loop.each)]
        rest = super()._loads(loop, [pack for pack in packs if pack not in own], end, group)
        taken = [self._method(loop, pack, "take", *self._where(loop, pack, Name(stage))) for pack in own]
        turn = w.code(
            """wait_copies();
            taken;
            const T ahead = base + STAGES * step;
            sent;
            commit_copies();
            stage = stage + 1 < STAGES ? stage + 1 : 0;""",
            T=type_, stage=stage, step=self._step(type_), sent=self._sent(loop, own, end, Name(stage)),
            taken=self._of_one_task(loop, self._over_whole(loop, end, "ITEMS", taken)),
        )  # fmt: skip
        return w.when("STAGES", (*rest, *turn), direct)

    def _step(self, type_: str) -> Expr:
        return self.words.expr("(T)PIECES * CHUNK" if self._plan.is_spread else "CHUNK", T=type_)

    def _sent(self, loop: LoopPlan, packs: Sequence[Pack], end: Expr, stage: Expr) -> tuple[Stmt, ...]:
        """Copies of the chunk at `ahead`, as far as it lies in the range."""
        copies = list[Stmt]()
        for pack in packs:
            where, once = self._where(loop, pack, stage), Name("true" if self._is_once(pack) else "false")
            args = (*where, self._address(pack, loop), once)
            copies.append(Evaluate(Call(f"{self._pack_type(pack)}::copy", args)))
        whole = self._over_whole(loop, end, "ITEMS", copies, self.words.expr("ahead"))
        return self._of_one_task(loop, whole)

    def _of_one_task(self, loop: LoopPlan, stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """A team that copies ahead takes one task at a time, which may be the first of one."""
        return self._blocking.over(stmts, self._own_packs(loop), guarded=False)

    def _where(self, loop: LoopPlan, pack: Pack, stage: Expr) -> tuple[Expr, Expr]:
        """The region of its kind, and its place there."""
        kind = kind_of(pack, self._plan)
        assert kind is not None
        alike = [p for p in ringed(self._plan, loop) if kind_of(p, self._plan) == kind]
        place = self.words.expr("stage * ITEMS + k", stage=stage)
        if (most := kinds(self._plan)[kind]) > 1:
            place = Binary("*", place, integer(most))
        if own := alike.index(pack):
            place = Binary("+", place, integer(own))
        return self._region(kind), place

    def _region(self, kind: RingKind) -> Expr:
        number, ring = self.ring.index(kind), self.words.expr("ring")
        return Binary("+", ring, Name(self._regions[number])) if number else ring

    # -- what the loops call --------------------------------------------------------------------------

    def copies(self) -> tuple[str, str]:
        """What is defined before the packs' type, and in it; nothing where there is no ring."""
        choice = self._plan.draft.schedule.get("ring")
        if choice is None or not self.ring:
            return "", ""
        names = {word: str(self.words.words[word]) for word in ("copy_word", "commit_copies", "wait_copies")}
        names |= {"RING_THREADS": str(self.words.words["RING_THREADS"]), "STAGES": choice.name}
        names |= {"LANES": self._plan.knobs.lanes.name}
        waits = "\n".join(
            f"#{'if' if not number else 'elif'} {choice.name} == {value}\n"
            f'    asm volatile("cp.async.wait_group {value - 1};" ::: "memory");'
            for number, value in enumerate(value for value in choice.values if value)
        )
        texts = (_BEFORE.replace("@WAITS@", waits + "\n#endif" if waits else ""), _METHODS)
        for name, word in names.items():
            texts = texts[0].replace(f"@{name}@", word), texts[1].replace(f"@{name}@", word)
        return texts


_BEFORE = """\
#if @STAGES@
// A copy into shared memory that goes on by itself; past L1 where nobody else wants the bytes.
template <typename W>
__device__ __forceinline__ void @copy_word@(W *to, const W *from, bool once)
{
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(to);
    static_assert(sizeof(W) == 4 || sizeof(W) == 8 || sizeof(W) == 16, "no copy has this size");
    if (sizeof(W) == 16 && once)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from) : "memory");
    else if (sizeof(W) == 16)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from) : "memory");
    else if (sizeof(W) == 8)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"(at), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at), "l"(from) : "memory");
}

__device__ __forceinline__ void @commit_copies@() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// For the oldest of the chunks under way.
__device__ __forceinline__ void @wait_copies@()
{
@WAITS@
}
#endif

"""
_METHODS = """
#if @STAGES@
    // Its first word in a ring: those of a block's threads lie side by side.
    __device__ __forceinline__ static word *slot(unsigned char *ring, int place)
    {
        const int thread = threadIdx.y * @LANES@ + threadIdx.x;
        return reinterpret_cast<word *>(ring) + place * (BYTES / WIDTH * @RING_THREADS@) + thread;
    }

    __device__ __forceinline__ static void copy(unsigned char *ring, int place, const T *from, bool once)
    {
        const word *words = reinterpret_cast<const word *>(from);
#pragma unroll
        for (int w = 0; w < BYTES / WIDTH; w++)
            @copy_word@(slot(ring, place) + w * @RING_THREADS@, words + w, once);
    }

    __device__ __forceinline__ void take(unsigned char *ring, int place)
    {
#pragma unroll
        for (int w = 0; w < BYTES / WIDTH; w++)
            reinterpret_cast<word *>(at)[w] = slot(ring, place)[w * @RING_THREADS@];
    }
#endif
"""
