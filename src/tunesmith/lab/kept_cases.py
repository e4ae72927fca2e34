"""Cases that live on the device: inputs laid out once, kernels run on them, outputs judged where they are.

For backends whose session has an inspector. What it finds right is right; what it does not is read back and
judged again on the host, whose words are the verdict.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tunesmith.backends.port import Difference, Executable, Inspector, Pointer, Session
from tunesmith.core import messages as m
from tunesmith.core.checks.cases import COMPARABLE_ITEMS
from tunesmith.core.checks.compare import (
    ErrorStats,
    error_stats,
    judge,
    judge_other_rows,
)
from tunesmith.core.checks.draws import draw_block
from tunesmith.core.device import Device
from tunesmith.core.digest import digest_of
from tunesmith.core.dtypes import element_type
from tunesmith.core.outcome import Status
from tunesmith.core.plan import BufferPlan, Plan
from tunesmith.lab import guards, reference
from tunesmith.lab.calls import bind_calls, initial_payload
from tunesmith.lab.kept_memory import KeptMemory
from tunesmith.lab.number_rules import (
    NEIGHBOURS,
    is_comparable,
    original_rule,
    reference_rule,
    rms,
    rms_holds,
)
from tunesmith.lab.outputs import POISON_PERIOD, as_array, count_poisoned, gaps_damaged, unwritten_words
from tunesmith.lab.references import CONTESTED_ROWS
from tunesmith.lab.verdicts import RIGHT, Verdict

MEMORY_SHARE = 0.25


@dataclass
class _Kept:
    request: m.KeepCase
    pristine: dict[str, Pointer] = field(default_factory=dict)  # of everything a kernel reads
    expected: dict[str, tuple[m.ExpectedArray, Pointer]] = field(default_factory=dict)
    original: dict[str, Pointer] = field(default_factory=dict)  # where others are compared with it
    errors: dict[str, ErrorStats] = field(default_factory=dict)

    @property
    def pointers(self) -> list[Pointer]:
        return [*self.pristine.values(), *(p for _, p in self.expected.values()), *self.original.values()]

    @property
    def nbytes(self) -> int:
        return sum(p.memory.nbytes for p in self.pointers)


class KeptCases:
    def __init__(self, session: Session, inspector: Inspector, device: Device) -> None:
        self._session = session
        self._inspector = inspector
        self._device = device
        self._cases: OrderedDict[str, _Kept] = OrderedDict()
        self._memory = KeptMemory(session, device)
        self._busy = 0.0

    def keep(self, request: m.KeepCase, blobs: Sequence[bytes], executable: Executable) -> m.Judged:
        self._forget(request.case)
        kept = _Kept(request)
        self._cases[request.case] = kept  # at once, so that it is given back whatever happens
        try:
            digests = self._lay_out(kept, blobs)
            verdict, seconds, damage = self._judge_original(kept, executable)
        except BaseException:
            self._forget(request.case)
            raise
        if not verdict.ok:
            self._forget(request.case)
        self._make_room(request.case)
        return m.Judged(verdict.status, verdict.detail, seconds, self._busy, digests, damage)

    def check(self, request: m.CheckCase, executable: Executable) -> m.Judged | None:
        """None: there is no such case, or no longer."""
        kept = self._cases.get(request.case)
        if kept is None:
            return None
        self._cases.move_to_end(request.case)
        seconds = self._run_twice(kept, request.plan, executable)
        verdict, damage = self._integrity(kept, request.plan)
        contested: tuple[int, ...] = ()
        if verdict.ok:
            for b in request.plan.compared():
                comparable = request.compares_errors and b.count >= COMPARABLE_ITEMS
                reason, contested = self._compare(kept, b, comparable)
                if reason:
                    verdict = Verdict(Status.WRONG, reason)
                    break
        return m.Judged(
            verdict.status, verdict.detail, seconds, self._busy, damage=damage, contested=contested
        )

    def give_back(self) -> bool:
        """Release all memory, and whether there was any; the lab will hear that its cases are forgotten."""
        had = bool(self._cases)
        for case in list(self._cases):
            self._forget(case)
        return self._memory.give_back() or had

    # -- memory -------------------------------------------------------------------------------------

    def _forget(self, case: str) -> None:
        kept = self._cases.pop(case, None)
        for pointer in kept.pointers if kept else ():
            self._session.release(pointer.memory)

    def _make_room(self, newest: str) -> None:
        room = int(self._device.limits.memory * MEMORY_SHARE)
        while len(self._cases) > 1 and sum(k.nbytes for k in self._cases.values()) > room:
            oldest = next(iter(self._cases))
            if oldest == newest:
                return
            self._forget(oldest)

    # -- laying out ---------------------------------------------------------------------------------

    def _lay_out(self, kept: _Kept, blobs: Sequence[bytes]) -> tuple[tuple[str, str], ...]:
        request = kept.request
        digests = []
        for name, array in reference.linked_inputs(request.plan, request.draw).items():
            kept.pristine[name] = place = self._memory.copy_place(request.plan.buffer(name))
            data = array.tobytes()
            self._session.write(place.memory, place.offset, data)
            digests.append((name, digest_of(data)))
        for b in request.plan.buffers:
            if b.role in ("input", "inout") and b.name not in kept.pristine:
                kept.pristine[b.name] = self._memory.copy_place(b)
                self._draw(b, request.draw, kept.pristine[b.name])
        for spec, blob in zip(request.expected, blobs, strict=True):
            place = Pointer(self._session.allocate(max(len(blob), 1)), 0, len(blob))
            kept.expected[spec.name] = (spec, place)
            self._session.write(place.memory, 0, blob)
        return tuple(digests)

    def _draw(self, b: BufferPlan, draw: m.Draw, place: Pointer) -> None:
        """A block drawn on the host, repeated on the device just as the host would repeat it."""
        block = draw_block(b, draw.distribution, draw.seed)
        data = block.values.tobytes()
        source = self._memory.arena("block", len(data))
        self._session.write(source, 0, data)
        self._inspector.spread(place, Pointer(source, 0, len(data)), b.itemsize, block.roll, block.negate)

    # -- running ------------------------------------------------------------------------------------

    def _run_twice(self, kept: _Kept, plan: Plan, executable: Executable) -> float:
        pointers: dict[str, Pointer] = {}
        for number, b in enumerate(plan.buffers):
            layout, work = self._memory.layout(b), self._memory.work(b)
            end = layout.offset + layout.nbytes
            pattern = guards.zone_pattern(number)
            self._inspector.fill(Pointer(work.memory, 0, layout.offset), pattern)
            self._inspector.fill(Pointer(work.memory, end, layout.total - end), pattern)
            if b.role == "input":
                self._session.copy(work, kept.pristine[b.name])
            pointers[b.name] = Pointer(work.memory, work.offset, max(work.nbytes, 1))
        calls = bind_calls(plan, executable, pointers)
        self._prepare(kept, plan, guards.PATTERN)
        before = time.perf_counter()
        self._session.run(calls)
        self._busy = time.perf_counter() - before
        for b in plan.compared():
            self._session.copy(self._memory.first(b), self._memory.work(b))
        self._prepare(kept, plan, guards.OTHER_PATTERN)
        before = time.perf_counter()
        self._session.run(calls)
        seconds = time.perf_counter() - before
        self._busy += seconds
        return seconds

    def _prepare(self, kept: _Kept, plan: Plan, pattern: bytes) -> None:
        for b in plan.buffers:
            work = self._memory.work(b)
            if b.role == "inout":
                self._session.copy(work, kept.pristine[b.name])
            elif b.role != "input" and b.init is None and b.extent == b.count:
                self._inspector.fill(work, pattern)
            elif b.role != "input" and b.nbytes:
                self._session.write(work.memory, work.offset, initial_payload(b, pattern))

    # -- judging ------------------------------------------------------------------------------------

    def _judge_original(self, kept: _Kept, executable: Executable) -> tuple[Verdict, float, bool]:
        request = kept.request
        seconds = self._run_twice(kept, request.plan, executable)
        verdict, damage = self._integrity(kept, request.plan)
        if not verdict.ok:
            return verdict, seconds, damage
        for b in request.plan.compared():
            if b.name in kept.expected:
                reason = self._against_reference(kept, b, None)
                if reason and not request.may_fail:
                    return Verdict(Status.WRONG, reason), seconds, False
                kept.errors[b.name] = self._errors(kept, b)
            if b.name in request.sampled or b.name not in kept.expected:
                kept.original[b.name] = place = self._memory.copy_place(b)
                self._session.copy(place, self._memory.first(b))
        return RIGHT, seconds, False

    def _integrity(self, kept: _Kept, plan: Plan) -> tuple[Verdict, bool]:
        """Everything but the values, and whether memory outside the arrays was hit."""
        for number, b in enumerate(plan.buffers):
            damage = self._damage(b, number)
            if damage:
                return Verdict(Status.WRONG, f"it writes outside {b.name}: {damage}"), True
        for b in plan.buffers:
            if (
                b.role == "input"
                and self._inspector.differing(self._memory.work(b), kept.pristine[b.name]).count
            ):
                return Verdict(Status.WRONG, f"it changes the input {b.name}"), False
        for b in plan.compared():
            first = self._memory.first(b)
            if b.extent != b.count and self._gaps_hit(kept, b):
                return Verdict(Status.WRONG, f"it writes between the rows of {b.name}"), False
            different = self._inspector.differing(self._memory.work(b), first)
            if not different.count:
                continue
            deterministic = kept.request.deterministic
            # A byte may equal its poison by chance: where runs may differ, its value is judged and no more.
            by_chance = b.itemsize == 1 and not deterministic
            unwritten = 0 if by_chance else self._poisoned(b, first, different)
            if unwritten:
                return Verdict(Status.WRONG, unwritten_words(b, unwritten)), False
            if deterministic:
                words = f"two runs on the same inputs give different {b.name}"
                return Verdict(Status.UNSTABLE, words), False
        return RIGHT, False

    def _poisoned(self, b: BufferPlan, first: Pointer, different: Difference) -> int:
        """Elements never written differ between the runs, which were poisoned differently."""
        if not b.in_c_order or b.packed > 1:
            return count_poisoned(b, self._memory.read(first))
        start = different.first - different.first % POISON_PERIOD
        end = min(b.nbytes, different.last + POISON_PERIOD - different.last % POISON_PERIOD)
        count = (end - start) // b.itemsize
        part = replace(b, shape=(count,), strides=(1,), extent=count)
        return count_poisoned(part, self._memory.read(first.part(start, end - start)))

    def _damage(self, b: BufferPlan, number: int) -> str:
        layout, work = self._memory.layout(b), self._memory.work(b)
        end = layout.offset + layout.nbytes
        pattern = guards.zone_pattern(number)
        zones = (Pointer(work.memory, 0, layout.offset), Pointer(work.memory, end, layout.total - end))
        if not any(self._inspector.unlike(zone, pattern).count for zone in zones):
            return ""
        now = (self._memory.read(zones[0]), self._memory.read(zones[1]))
        return guards.damage(now, guards.zones(layout, number), b.itemsize) or "the guard zone changed"

    def _gaps_hit(self, kept: _Kept, b: BufferPlan) -> bool:
        place = kept.pristine.get(b.name)
        before = guards.gaps_digest(b, self._memory.read(place)) if place is not None else None
        return gaps_damaged(b, self._memory.read(self._memory.first(b)), before)

    def _compare(self, kept: _Kept, b: BufferPlan, comparable: bool) -> tuple[str | None, tuple[int, ...]]:
        """The reason it is wrong; where it is so by the original alone, the rows to ask the reference for."""
        if b.name in kept.expected:
            reason = self._against_reference(kept, b, kept.errors.get(b.name) if comparable else None)
            if reason:
                return reason, ()
        if b.name in kept.original:
            return self._against_original(kept, b)
        return None, ()

    def _against_reference(self, kept: _Kept, b: BufferPlan, original: ErrorStats | None) -> str | None:
        spec, place = kept.expected[b.name]
        rule = reference_rule(b, original)
        if rule is not None and is_comparable(b, spec):
            got = self._rows(kept, b)
            found = self._inspector.compare(got, b.type, place, spec.dtype, rule)
            if not found.wrong and rms_holds(found, original):
                return None
        return judge(b, *self._on_host(kept, b), original)

    def _errors(self, kept: _Kept, b: BufferPlan) -> ErrorStats:
        spec, place = kept.expected[b.name]
        rule = reference_rule(b, None)
        if rule is not None and is_comparable(b, spec):
            found = self._inspector.compare(self._rows(kept, b), b.type, place, spec.dtype, rule)
            if not found.wrong:
                return ErrorStats(found.max_error, rms(found.squared_error, found.count))
        return error_stats(*self._on_host(kept, b), b)

    def _against_original(self, kept: _Kept, b: BufferPlan) -> tuple[str | None, tuple[int, ...]]:
        first, place = self._memory.first(b), kept.original[b.name]
        if self._is_like(b, first, place):
            return None, ()
        rows = kept.request.rows if b.name in kept.request.sampled else ()
        if rows and b.in_c_order and b.packed == 1:
            # What the reference has judged the original has no say in.
            size = first.nbytes // b.shape[0]
            for row in rows:
                self._session.copy(first.part(row * size, size), place.part(row * size, size))
            if self._is_like(b, first, place):
                return None, ()
        got, other = as_array(b, self._memory.read(first)), as_array(b, self._memory.read(place))
        return judge_other_rows(b, got, other, rows, CONTESTED_ROWS)

    def _is_like(self, b: BufferPlan, first: Pointer, place: Pointer) -> bool:
        """Surely within the rule; where this is not sure the host looks at every element."""
        different = self._inspector.differing(first, place).count
        if not different:
            return True
        element = element_type(b.type)
        if b.extent != b.count or element.packed > 1:
            return False
        if b.compare == "codes":
            # Neighbours, seen from either: across a power of two the step below is the smaller one.
            few = different <= max(1, b.count // 100)
            pairs = ((first, place), (place, first)) if few else ()
            found = [self._inspector.compare(g, b.type, e, b.type, NEIGHBOURS) for g, e in pairs]
            return few and not any(comparison.wrong for comparison in found)
        if b.compare == "close" and element.kind == "float":
            return not self._inspector.compare(first, b.type, place, b.type, original_rule(b)).wrong
        return False

    def _rows(self, kept: _Kept, b: BufferPlan) -> Pointer:
        """The output, or the rows of it that the reference was asked for, one after the other."""
        first, rows = self._memory.first(b), kept.request.rows
        if not rows or b.name not in kept.request.sampled:
            return first
        size = first.nbytes // b.shape[0]
        memory = self._memory.arena("rows", size * len(rows))
        for number, row in enumerate(rows):
            self._session.copy(Pointer(memory, number * size, size), first.part(row * size, size))
        return Pointer(memory, 0, size * len(rows))

    def _on_host(self, kept: _Kept, b: BufferPlan) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
        spec, place = kept.expected[b.name]
        got = as_array(b, self._memory.read(self._memory.first(b)))
        if kept.request.rows and b.name in kept.request.sampled:
            got = got[list(kept.request.rows)]
        return got, np.frombuffer(self._memory.read(place), dtype=spec.dtype).reshape(spec.shape)
