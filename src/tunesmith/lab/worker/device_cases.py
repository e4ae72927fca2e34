"""Cases that live on the device: inputs laid out once, kernels run on them, outputs judged where they are.

For backends whose session has an inspector. What it finds right is right; what it does not is read back and
judged again on the host, whose words are the verdict.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tunesmith.backends import messages as m
from tunesmith.backends.messages import ExpectedArray, StoreCase
from tunesmith.backends.port import (
    Comparison,
    Difference,
    Executable,
    Inspector,
    LaunchCall,
    Memory,
    Overseeing,
    Pointer,
    Session,
    scramble_local_memory,
)
from tunesmith.lab import memory as guards
from tunesmith.lab import references
from tunesmith.lab.memory import (
    PHASE,
    RIGHT,
    CaseLayout,
    GuardedLayout,
    RunEvidence,
    Verdict,
    as_array,
    check_integrity,
    layouts_of,
)
from tunesmith.lab.references import CONTESTED_ROWS, UserCodeFailed
from tunesmith.lab.values import (
    Array,
    Arrays,
    CaseRules,
    ExpectedValues,
    errors_of,
    establish_expected,
    wrong_values,
)
from tunesmith.problem import compare
from tunesmith.problem.cases import COMPARABLE_ITEMS
from tunesmith.problem.compare import ErrorStats, Stretch, is_free, key_arrays
from tunesmith.problem.device import Device
from tunesmith.problem.inputs import draw_block, swap_moves
from tunesmith.problem.plan import BufferPlan, OutputErrors, Plan, Status
from tunesmith.problem.problem import element_type


@dataclass
class CaseMemory:
    """Memory that cases use in turn, and copies of their own."""

    _session: Session
    _device: Device
    _arenas: dict[str, Memory] = field(default_factory=dict)
    _layouts: tuple[CaseLayout, ...] = ()  # of the case at hand
    _numbers: dict[str, int] = field(default_factory=dict)  # of its arrays
    turn: int = 0  # at which of its places the arrays are

    def begin(self, plan: Plan, seed: int) -> None:
        """Another case, or another kernel's arrays in the same."""
        self._layouts = layouts_of(plan.buffers, self._device, seed)
        self._numbers = {b.name: number for number, b in enumerate(plan.buffers)}
        self.turn = 0

    @property
    def turns(self) -> range:
        return range(len(self._layouts))

    def give_back(self) -> bool:
        """Release what cases use in turn, and whether there was any."""
        had = bool(self._arenas)
        for memory in self._arenas.values():
            self._session.release(memory)
        self._arenas.clear()
        return had

    def arena(self, name: str, nbytes: int) -> Memory:
        """Memory that every case uses in its turn."""
        memory = self._arenas.get(name)
        if memory is None or memory.nbytes < nbytes:
            if memory is not None:
                del self._arenas[name]
                self._session.release(memory)
            memory = self._arenas[name] = self._session.allocate(max(nbytes, 1))
        return memory

    def layout(self, b: BufferPlan, turn: int | None = None) -> GuardedLayout:
        return self._layouts[self.turn if turn is None else turn].parts[self._numbers[b.name]]

    def work(self, b: BufferPlan, turn: int | None = None) -> Pointer:
        part = self.layout(b, turn)
        return Pointer(self._block(part, turn), part.place, part.nbytes)

    def zones(self, b: BufferPlan, turn: int | None = None) -> tuple[Pointer, Pointer]:
        """Around that memory."""
        part = self.layout(b, turn)
        memory, end, (before, after) = self._block(part, turn), part.place + part.nbytes, part.zone_sizes
        return Pointer(memory, part.start, before), Pointer(memory, end, after)

    def _block(self, part: GuardedLayout, turn: int | None) -> Memory:
        turn = self.turn if turn is None else turn
        return self.arena(f"work {turn} {part.block}", self._layouts[turn].blocks[part.block])

    def first(self, b: BufferPlan, which: str = "first") -> Pointer:
        """Where the first run's output waits for the second; "stale": that of one that found an earlier's."""
        phase = self.layout(b, 0).place % PHASE
        return Pointer(self.arena(f"{which} {b.name}", phase + b.nbytes), phase, b.nbytes)

    def stale(self, b: BufferPlan) -> Pointer:
        return self.first(b, "stale")

    def copy_place(self, b: BufferPlan) -> Pointer:
        phase = self.layout(b, 0).place % PHASE
        return Pointer(self._session.allocate(phase + max(b.nbytes, 1)), phase, b.nbytes)

    def read(self, pointer: Pointer) -> bytes:
        return self._session.read(pointer.memory, pointer.offset, pointer.nbytes)


# Outputs of which no part can be judged alone are brought to the host of the same worker, and judged there
# as the host judges: kernels cannot reach its memory.
Stored = Mapping[str, tuple[ExpectedArray, Pointer]]


@dataclass(frozen=True)
class WholeOutputs:
    """What the outputs of a stored case are held to."""

    request: StoreCase
    expected: ExpectedValues
    fault: str | None = None  # why the original itself is wrong

    @classmethod
    def of_original(
        cls, request: StoreCase, memory: CaseMemory, expected: Stored, pristine: Mapping[str, Pointer]
    ) -> WholeOutputs:
        plan = request.plan
        referred = {name: spec.view(memory.read(place)) for name, (spec, place) in expected.items()}
        keys = {n: as_array(plan.buffer(n), memory.read(pristine[n])) for n in key_arrays(plan)}
        rows = np.asarray(request.rows, dtype=np.intp) if request.rows else None
        bare = ExpectedValues(rows=rows, sampled=frozenset(request.sampled), inputs=keys)
        rules = CaseRules(request.odd, request.may_fail)
        ask, outputs = partial(_ask_user_function, request, plan), _read_outputs(plan, memory)
        return cls(request, *establish_expected(plan, outputs, referred, bare, rules, ask))

    def wrong(
        self, plan: Plan, memory: CaseMemory, compares_errors: bool
    ) -> tuple[str | None, tuple[int, ...]]:
        """Why what a kernel's first run gave is, and the rows to ask the reference for."""
        name = self.request.draw.distribution
        rules = CaseRules(self.request.odd, self.request.may_fail, compares_errors, distribution=name)
        ask = partial(self._ask_of_other, plan)
        return wrong_values(plan, _read_outputs(plan, memory), self.expected, rules, ask)

    def errors(self, plan: Plan, memory: CaseMemory) -> tuple[OutputErrors, ...]:
        return errors_of(plan, _read_outputs(plan, memory), self.expected)

    def _ask_of_other(self, plan: Plan, output: str, got: Arrays, wanted: Arrays) -> str | None:
        try:
            return _ask_user_function(self.request, plan, output, got, wanted)
        except UserCodeFailed as error:
            return f"{output} cannot be compared: {error}"


def _read_outputs(plan: Plan, memory: CaseMemory) -> dict[str, Array]:
    return {b.name: as_array(b, memory.read(memory.first(b))) for b in plan.compared()}


def _ask_user_function(
    request: StoreCase, plan: Plan, output: str, got: Arrays, wanted: Arrays
) -> str | None:
    function = dict(request.functions)[output]
    reason = references.run_compare_function(function, plan, request.draw, output, got, wanted)
    return f"{output}: {reason}" if reason else None


# What the device is not sure of the host looks at.
SPAN = 1 << 12  # elements that the host looks at, where one of them may be unlike
SPANS = 1 << 8  # so many at most


def is_like(inspector: Inspector, b: BufferPlan, got: Pointer, other: Pointer) -> bool:
    """Surely within the rule; where this is not sure the host looks at every element."""
    different = inspector.differing(got, other).count
    if not different:
        return True
    if b.extent != b.count or b.packed > 1 or _too_many(b, different):
        return False
    return _are_near(inspector, b, got, other)


def _too_many(b: BufferPlan, different: int) -> bool:
    return b.compare == "codes" and different > max(1, b.count // 100)


def _are_near(inspector: Inspector, b: BufferPlan, got: Pointer, other: Pointer) -> bool:
    """Every element, by itself."""
    if b.compare == "codes":
        # Neighbours, seen from either: across a power of two the step below is the smaller one.
        pairs = ((got, other), (other, got))
        return not any(inspector.compare(g, b.type, e, b.type, guards.NEIGHBOURS).wrong for g, e in pairs)
    if b.compare == "close" and element_type(b.type).kind == "float":
        return not inspector.compare(got, b.type, other, b.type, guards.original_rule(b)).wrong
    return not inspector.differing(got, other).count


def unlike_spans(
    inspector: Inspector, b: BufferPlan, got: Pointer, other: Pointer
) -> tuple[list[tuple[int, int]], bool]:
    """Where elements may be unlike, by halving: first element and end of each; and whether these are all."""
    found: list[tuple[int, int]] = []
    if _too_many(b, inspector.differing(got, other).count):
        return found, False
    waiting = [(0, b.count)]
    while waiting and len(found) < SPANS:
        first, end = waiting.pop()
        part = first * b.itemsize, (end - first) * b.itemsize
        if first == end or _are_near(inspector, b, got.part(*part), other.part(*part)):
            continue
        if end - first <= SPAN:
            found.append((first, end))
            continue
        middle = first + max(SPAN, (end - first) // 2 // SPAN * SPAN)
        waiting += [(middle, end), (first, middle)]
    return found, not waiting


@dataclass
class StoredCase:
    request: m.StoreCase
    pristine: dict[str, Pointer] = field(default_factory=dict)  # of everything a kernel reads
    expected: dict[str, tuple[m.ExpectedArray, Pointer]] = field(default_factory=dict)
    original: dict[str, Pointer] = field(default_factory=dict)  # where others are compared with it
    errors: dict[str, ErrorStats] = field(default_factory=dict)
    linked: frozenset[str] = frozenset()  # made by the user's function
    whole: WholeOutputs | None = None  # where outputs are judged all together, on the host
    waits: bool = True  # the original, where it may begin before its predecessor has ended

    @property
    def pointers(self) -> list[Pointer]:
        return [*self.pristine.values(), *(p for _, p in self.expected.values()), *self.original.values()]

    @property
    def nbytes(self) -> int:
        return sum(p.memory.nbytes for p in self.pointers)


OVERSEEN = 1 << 16  # bytes of an input


@dataclass
class DeviceRuns:
    session: Session
    inspector: Inspector
    memory: CaseMemory
    busy: float = 0.0  # seconds of the last launches
    changed: str = ""  # the input that was not what it was while the last of them ran

    def run_twice(self, stored: StoredCase, plan: Plan, executable: Executable) -> float:
        calls = self._begin_at(0, plan, executable)
        # Once on other inputs first: what that leaves behind the next run finds, and must not use.
        self.copy_inputs(stored, plan)
        self.prepare(stored, plan, guards.OTHER_PATTERN)
        self._swap_inputs(stored, plan)
        self.session.run(calls)
        self.copy_inputs(stored, plan)
        self.prepare(stored, plan, guards.PATTERN, leaving=("output", "workspace"))
        self.session.run(calls)
        for b in plan.compared():
            self.session.copy(self.memory.stale(b), self.memory.work(b))
        self.prepare(stored, plan, guards.PATTERN)
        scramble_local_memory(self.session)
        before = time.perf_counter()
        self.session.run(calls)
        self.busy = time.perf_counter() - before
        for b in plan.compared():
            self.session.copy(self.memory.first(b), self.memory.work(b))
        # And once more elsewhere, where there is room.
        if len(self.memory.turns) > 1:
            calls = self._begin_at(1, plan, executable)
            self.copy_inputs(stored, plan)
        self.prepare(stored, plan, guards.OTHER_PATTERN)
        scramble_local_memory(self.session)
        before = time.perf_counter()
        self._launch_overseen(stored, plan, calls)
        seconds = time.perf_counter() - before
        self.busy += seconds
        return seconds

    def _launch_overseen(self, stored: StoredCase, plan: Plan, calls: Sequence[LaunchCall]) -> None:
        """While another kernel reads the inputs, of each as much as it reads again and again."""
        self.changed, read = "", [b for b in plan.buffers if b.role == "input" and b.nbytes]
        if not read or not isinstance(self.session, Overseeing):
            self.session.run(calls)
            return
        parts = [min(b.nbytes, OVERSEEN) for b in read]
        pairs = [
            (self.memory.work(b).part(0, part), stored.pristine[b.name].part(0, part))
            for b, part in zip(read, parts, strict=True)
        ]
        found = self.session.run_overseen(calls, pairs)
        self.changed = "" if found is None else read[found].name

    def _begin_at(self, turn: int, plan: Plan, executable: Executable) -> list[LaunchCall]:
        self.memory.turn = turn
        pointers: dict[str, Pointer] = {}
        for number, b in enumerate(plan.buffers):
            work = self.memory.work(b)
            for zone in self.memory.zones(b):
                self.inspector.fill(zone, guards.zone_pattern(number))
            pointers[b.name] = Pointer(work.memory, work.offset, max(work.nbytes, 1))
        return guards.bind_calls(plan, executable, pointers)

    def copy_inputs(self, stored: StoredCase, plan: Plan) -> None:
        for b in plan.buffers:
            if b.role == "input":
                self.session.copy(self.memory.work(b), stored.pristine[b.name])

    def _swap_inputs(self, stored: StoredCase, plan: Plan) -> None:
        """Let a few stretches of the inputs change places."""
        for b in plan.buffers:
            if b.role not in ("input", "inout") or b.name in stored.linked:
                continue
            work, pristine, size = self.memory.work(b), stored.pristine[b.name], b.itemsize
            for to, source, count in swap_moves(b, stored.request.draw.seed):
                part = pristine.part(source * size, count * size)
                self.session.copy(work.part(to * size, count * size), part)

    def prepare(self, stored: StoredCase, plan: Plan, pattern: bytes, leaving: Sequence[str] = ()) -> None:
        for b in plan.buffers:
            work = self.memory.work(b)
            if b.role in leaving and b.init is None:
                continue
            if b.role == "inout":
                self.session.copy(work, stored.pristine[b.name])
            elif b.role != "input" and b.init is None and b.extent == b.count:
                self.inspector.fill(work, pattern)
            elif b.role != "input" and b.nbytes:
                self.session.write(work.memory, work.offset, guards.initial_payload(b, pattern))


MEMORY_SHARE = 0.25
LATE_BYTES = 4 << 20  # of an array that arrives late


def _may_begin_early(plan: Plan) -> bool:
    return any(launch.pdl for launch in plan.launches)


class StoredCases:
    def __init__(self, session: Session, inspector: Inspector, device: Device) -> None:
        self._session = session
        self._inspector = inspector
        self._device = device
        self._cases: OrderedDict[str, StoredCase] = OrderedDict()
        self._memory = CaseMemory(session, device)
        self._runs = DeviceRuns(session, inspector, self._memory)

    def store(self, request: m.StoreCase, blobs: Sequence[bytes], executable: Executable) -> m.Judged:
        self._forget(request.case)
        stored = StoredCase(request)
        self._memory.begin(request.plan, request.draw.seed)
        self._cases[request.case] = stored  # at once, so that it is given back whatever happens
        try:
            digests = self._lay_out(stored, blobs)
            verdict, seconds, damage = self._judge_original(stored, executable)
        except BaseException:
            self._forget(request.case)
            raise
        if not verdict.ok:
            self._forget(request.case)
        self._make_room(request.case)
        return m.Judged(verdict.status, verdict.detail, seconds, self._runs.busy, digests, damage)

    def check(self, request: m.CheckCase, executable: Executable) -> m.Judged | None:
        """None: there is no such case, or no longer."""
        stored = self._cases.get(request.case)
        if stored is None:
            return None
        self._cases.move_to_end(request.case)
        self._memory.begin(request.plan, stored.request.draw.seed)
        seconds = self._runs.run_twice(stored, request.plan, executable)
        verdict, damage = self._integrity(stored, request.plan)
        if verdict.ok and self._runs.changed:
            words = f"it changes the input {self._runs.changed} while it runs, and puts it back"
            verdict = Verdict(Status.WRONG, words)
        contested: tuple[int, ...] = ()
        errors: tuple[OutputErrors, ...] = ()
        if verdict.ok and stored.waits and _may_begin_early(request.plan):
            verdict = self._waits(stored, request.plan, executable)
        if verdict.ok:
            errors = self._wanted_errors(stored, request)
            verdict, contested = self._values(stored, request.plan, request.compares_errors)
        status, detail, busy = verdict.status, verdict.detail, self._runs.busy
        return m.Judged(status, detail, seconds, busy, damage=damage, contested=contested, errors=errors)

    def outputs(self, plan: Plan) -> tuple[bytes, ...]:
        """What the last check's first run gave."""
        return tuple(self._memory.read(self._memory.first(b)) for b in plan.compared())

    def judge_outputs(self, request: m.JudgeOutputs, blobs: Sequence[bytes]) -> m.Judged | None:
        """The same for what a kernel gave elsewhere. None: there is no such case."""
        stored = self._cases.get(request.case)
        if stored is None:
            return None
        self._memory.begin(request.plan, stored.request.draw.seed)
        for b, blob in zip(request.plan.compared(), blobs, strict=True):
            first = self._memory.first(b)
            self._session.write(first.memory, first.offset, blob)
        errors = self._wanted_errors(stored, request)
        verdict, contested = self._values(stored, request.plan, request.compares_errors)
        return m.Judged(verdict.status, verdict.detail, contested=contested, errors=errors)

    def _wanted_errors(
        self, stored: StoredCase, request: m.CheckCase | m.JudgeOutputs
    ) -> tuple[OutputErrors, ...]:
        """Before anything is compared with the original, which may overwrite what it has no say in."""
        if stored.whole is not None:
            return stored.whole.errors(request.plan, self._memory) if request.tells_errors else ()
        compared = [b for b in request.plan.compared() if request.tells_errors and b.name in stored.errors]
        return tuple(
            compare.output_errors(b.name, self._errors(stored, b), stored.errors[b.name]) for b in compared
        )

    def _values(
        self, stored: StoredCase, plan: Plan, compares_errors: bool
    ) -> tuple[Verdict, tuple[int, ...]]:
        if stored.whole is not None:
            reason, contested = stored.whole.wrong(plan, self._memory, compares_errors)
            return (Verdict(Status.WRONG, reason), contested) if reason else (RIGHT, ())
        for b in plan.compared():
            comparable = compares_errors and b.count >= COMPARABLE_ITEMS
            reason, contested = self._compare_output(stored, b, comparable)
            if reason:
                return Verdict(Status.WRONG, reason), contested
        return RIGHT, ()

    def give_back(self) -> bool:
        """Release all memory, and whether there was any; the lab will hear that its cases are forgotten."""
        had = bool(self._cases)
        for case in list(self._cases):
            self._forget(case)
        return self._memory.give_back() or had

    def _forget(self, case: str) -> None:
        stored = self._cases.pop(case, None)
        for pointer in stored.pointers if stored else ():
            self._session.release(pointer.memory)

    def _make_room(self, newest: str) -> None:
        room = int(self._device.limits.memory * MEMORY_SHARE)
        while len(self._cases) > 1 and sum(k.nbytes for k in self._cases.values()) > room:
            oldest = next(iter(self._cases))
            if oldest == newest:
                return
            self._forget(oldest)

    def _lay_out(self, stored: StoredCase, blobs: Sequence[bytes]) -> tuple[tuple[str, str], ...]:
        request = stored.request
        digests = []
        expected, sent = blobs[: len(request.expected)], blobs[len(request.expected) :]
        made = dict(zip(request.inputs, sent, strict=True))
        if not made:
            called = references.linked_inputs(request.plan, request.draw)
            made = {name: array.tobytes() for name, array in called.items()}
        stored.linked = frozenset(made)
        for name, data in made.items():
            stored.pristine[name] = place = self._memory.copy_place(request.plan.buffer(name))
            self._session.write(place.memory, place.offset, data)
            digests.append((name, guards.memory_digest(data)))
        for b in request.plan.buffers:
            if b.role in ("input", "inout") and b.name not in stored.pristine:
                stored.pristine[b.name] = self._memory.copy_place(b)
                self._draw(b, request.draw, stored.pristine[b.name])
        for spec, blob in zip(request.expected, expected, strict=True):
            place = Pointer(self._session.allocate(max(len(blob), 1)), 0, len(blob))
            stored.expected[spec.name] = (spec, place)
            self._session.write(place.memory, 0, blob)
        return tuple(digests)

    def _draw(self, b: BufferPlan, draw: m.Draw, place: Pointer) -> None:
        """A block drawn on the host, repeated on the device just as the host would repeat it."""
        if draw.place is not None:
            self._session.write(place.memory, place.offset, references.draw_memory(b, draw).tobytes())
            return
        block = draw_block(b, draw.distribution, draw.seed)
        data = block.values.tobytes()
        source = self._memory.arena("block", len(data))
        self._session.write(source, 0, data)
        self._inspector.spread(place, Pointer(source, 0, len(data)), b.itemsize, block.roll, block.negate)

    def _waits(self, stored: StoredCase, plan: Plan, executable: Executable) -> Verdict:
        """Whether a kernel that may begin before its predecessor has ended waits for what that writes."""
        pointers = {b.name: self._memory.work(b) for b in plan.buffers}
        calls = guards.bind_calls(plan, executable, pointers)
        late = [b for b in plan.buffers if b.name in stored.pristine and 0 < b.nbytes <= LATE_BYTES]
        for b in late:
            self._runs.copy_inputs(stored, plan)
            self._runs.prepare(stored, plan, guards.PATTERN)
            self._inspector.fill(self._memory.work(b), guards.PATTERN)
            self._inspector.copy_late(self._memory.work(b), stored.pristine[b.name])
            self._session.run(calls)
            for out in plan.compared():
                if not is_like(self._inspector, out, self._memory.work(out), self._memory.first(out)):
                    words = f"with pdl it uses {b.name} before the kernel that writes it has ended"
                    return Verdict(Status.WRONG, f"{words}: wait first (griddepcontrol.wait)")
        self._runs.copy_inputs(stored, plan)
        return RIGHT

    def _judge_original(self, stored: StoredCase, executable: Executable) -> tuple[Verdict, float, bool]:
        request = stored.request
        seconds = self._runs.run_twice(stored, request.plan, executable)
        verdict, damage = self._integrity(stored, request.plan)
        if not verdict.ok:
            return verdict, seconds, damage
        if is_free(request.plan):
            stored.whole = WholeOutputs.of_original(request, self._memory, stored.expected, stored.pristine)
            if reason := stored.whole.fault:
                return Verdict(Status.WRONG, reason), seconds, False
        for b in () if stored.whole is not None else request.plan.compared():
            if b.name in stored.expected:
                reason = self._against_reference(stored, b, None)
                if reason and not (request.may_fail or request.odd):
                    return Verdict(Status.WRONG, reason), seconds, False
                stored.errors[b.name] = self._errors(stored, b)
            if request.odd or b.name in request.sampled or b.name not in stored.expected:
                stored.original[b.name] = place = self._memory.copy_place(b)
                self._session.copy(place, self._memory.first(b))
        if _may_begin_early(request.plan):
            stored.waits = self._waits(stored, request.plan, executable).ok
        return RIGHT, seconds, False

    def _integrity(self, stored: StoredCase, plan: Plan) -> tuple[Verdict, bool]:
        if self._is_intact(stored, plan):
            return RIGHT, False

        def differing(b: BufferPlan) -> Difference:
            return self._inspector.differing(self._memory.work(b), self._memory.first(b))

        evidence = RunEvidence(
            self._find_zone_damage,
            lambda b: any(
                self._inspector.differing(self._memory.work(b, turn), stored.pristine[b.name]).count
                for turn in self._memory.turns
            ),
            lambda b: b.extent != b.count and self._gaps_hit(stored, b),
            lambda b: bool(differing(b).count),
            lambda b: self._count_unwritten(b, self._memory.first(b), differing(b)),
            lambda b: bool(self._inspector.differing(self._memory.stale(b), self._memory.first(b)).count),
        )
        return check_integrity(plan, stored.request.deterministic, evidence)

    def _is_intact(self, stored: StoredCase, plan: Plan) -> bool:
        """All at once, which saves most of what asking costs. What is not all right is asked for singly."""
        memory, compared = self._memory, plan.compared()
        everywhere = [(turn, n, b) for turn in memory.turns for n, b in enumerate(plan.buffers)]
        zones = [(z, guards.zone_pattern(n)) for turn, n, b in everywhere for z in memory.zones(b, turn)]
        read = [(turn, b) for turn, _, b in everywhere if b.role == "input"]
        inputs = [(memory.work(b, turn), stored.pristine[b.name]) for turn, b in read]
        runs = [(which(b), memory.first(b)) for b in compared for which in (memory.work, memory.stale)]
        return all(b.extent == b.count for b in compared) and self._inspector.are_like(
            [*zones, *inputs, *runs]
        )

    def _count_unwritten(self, b: BufferPlan, first: Pointer, different: Difference) -> int:
        """Elements never written differ between the runs, which were poisoned differently."""
        if not b.in_c_order or b.packed > 1:
            return guards.count_poisoned(b, self._memory.read(first))
        start = different.first - different.first % guards.POISON_PERIOD
        end = min(b.nbytes, different.last + guards.POISON_PERIOD - different.last % guards.POISON_PERIOD)
        count = (end - start) // b.itemsize
        part = replace(b, shape=(count,), strides=(1,), extent=count)
        return guards.count_poisoned(part, self._memory.read(first.part(start, end - start)))

    def _find_zone_damage(self, b: BufferPlan, number: int) -> str:
        pattern = guards.zone_pattern(number)
        for turn in self._memory.turns:
            zones = self._memory.zones(b, turn)
            if any(self._inspector.unlike(zone, pattern).count for zone in zones):
                now, part = tuple(map(self._memory.read, zones)), self._memory.layout(b, turn)
                hit = guards.describe_damage((now[0], now[1]), guards.intact_zones(part, number), b.itemsize)
                return hit or "the guard zone changed"
        return ""

    def _gaps_hit(self, stored: StoredCase, b: BufferPlan) -> bool:
        place = stored.pristine.get(b.name)
        before = guards.gaps_digest(b, self._memory.read(place)) if place is not None else None
        return guards.gaps_damaged(b, self._memory.read(self._memory.first(b)), before)

    def _compare_output(
        self, stored: StoredCase, b: BufferPlan, comparable: bool
    ) -> tuple[str | None, tuple[int, ...]]:
        """The reason it is wrong; where it is so by the original alone, the rows to ask the reference for."""
        if stored.request.odd:
            return self._like_either(stored, b), ()
        if b.name in stored.expected:
            reason = self._against_reference(stored, b, stored.errors.get(b.name) if comparable else None)
            if reason:
                return reason, ()
        if b.name in stored.original:
            return self._against_original(stored, b)
        return None, ()

    def _against_reference(
        self, stored: StoredCase, b: BufferPlan, original: ErrorStats | None
    ) -> str | None:
        found = self._found_right(stored, b, original)
        if found is not None and guards.rms_holds(found, original):
            return None
        return compare.judge_output(b, *self._on_host(stored, b), original)

    def _errors(self, stored: StoredCase, b: BufferPlan) -> ErrorStats:
        found = self._found_right(stored, b, None)
        if found is not None:
            return ErrorStats(found.max_error, compare.root_mean_square(found.squared_error, found.count))
        return compare.error_stats(*self._on_host(stored, b), b)

    def _found_right(
        self, stored: StoredCase, b: BufferPlan, original: ErrorStats | None
    ) -> Comparison | None:
        """What the device finds where every element is right by it; None where the host must tell."""
        spec, place = stored.expected[b.name]
        rule = guards.reference_rule(b, original)
        if rule is None or not guards.is_comparable(b, spec.dtype):
            return None
        found = self._inspector.compare(self._rows(stored, b), b.type, place, spec.dtype, rule)
        return None if found.wrong else found

    def _against_original(self, stored: StoredCase, b: BufferPlan) -> tuple[str | None, tuple[int, ...]]:
        first, place = self._memory.first(b), stored.original[b.name]
        if is_like(self._inspector, b, first, place):
            return None, ()
        rows = stored.request.rows if b.name in stored.request.sampled else ()
        found = self._where_unlike(b, first, place, rows) if b.in_c_order and b.packed == 1 else None
        if found is not None:
            return found
        got, other = (guards.as_array(b, self._memory.read(where)) for where in (first, place))
        return compare.judge_other_rows(b, got, other, rows, CONTESTED_ROWS)

    def _where_unlike(
        self, b: BufferPlan, first: Pointer, place: Pointer, rows: tuple[int, ...]
    ) -> tuple[str | None, tuple[int, ...]] | None:
        """The same by the stretches that are not surely like the original's; None: all must be read."""
        spans, is_all = unlike_spans(self._inspector, b, first, place)

        def values(pointer: Pointer, start: int, end: int) -> NDArray[np.generic]:
            part = pointer.part(start * b.itemsize, (end - start) * b.itemsize)
            return np.frombuffer(self._memory.read(part), dtype=element_type(b.type).memory)

        stretches = [Stretch(s, values(first, s, end), values(place, s, end)) for s, end in spans]
        reason, contested = compare.judge_stretches(b, stretches, rows, CONTESTED_ROWS)
        if is_all:
            return reason, contested
        # Without rows that the reference may yet be asked for it is wrong, whatever the rest is like.
        return (f"{reason}, at least", ()) if reason and not contested else None

    def _like_either(self, stored: StoredCase, b: BufferPlan) -> str | None:
        """Odd values: like the original's or the reference's; codes only the host can tell from ties."""
        first, place = self._memory.first(b), stored.original[b.name]
        if b.compare != "codes" and is_like(self._inspector, b, first, place):
            return None
        got, other = (guards.as_array(b, self._memory.read(where)) for where in (first, place))
        expected = self._on_host(stored, b)[1] if b.name in stored.expected else None
        return compare.judge_odd(b, got, expected, other, distribution=stored.request.draw.distribution)

    def _rows(self, stored: StoredCase, b: BufferPlan) -> Pointer:
        """The output, or the rows of it that the reference was asked for, one after the other."""
        first, rows = self._memory.first(b), stored.request.rows
        if not rows or b.name not in stored.request.sampled:
            return first
        size = first.nbytes // b.shape[0]
        memory = self._memory.arena("rows", size * len(rows))
        for number, row in enumerate(rows):
            self._session.copy(Pointer(memory, number * size, size), first.part(row * size, size))
        return Pointer(memory, 0, size * len(rows))

    def _on_host(self, stored: StoredCase, b: BufferPlan) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
        spec, place = stored.expected[b.name]
        rows = stored.request.rows if b.name in stored.request.sampled else ()
        if rows and b.in_c_order and b.packed == 1:
            data = self._memory.read(self._rows(stored, b))
            got = np.frombuffer(data, dtype=element_type(b.type).memory).reshape(spec.shape)
        else:
            got = guards.as_array(b, self._memory.read(self._memory.first(b)))
            got = got[list(rows)] if rows else got
        return got, spec.view(self._memory.read(place))
