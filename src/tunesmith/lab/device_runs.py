"""A kernel run several times on a case that lies on the device."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tunesmith.backends import messages as m
from tunesmith.backends.abilities import Overseeing, scramble
from tunesmith.backends.port import Executable, Inspector, LaunchCall, Pointer, Session
from tunesmith.lab import memory as guards
from tunesmith.lab.case_memory import CaseMemory
from tunesmith.lab.whole_outputs import WholeOutputs
from tunesmith.problem.compare import ErrorStats
from tunesmith.problem.plan import Plan
from tunesmith.problem.slots import moves


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
        self._swap(stored, plan)
        self.session.run(calls)
        self.copy_inputs(stored, plan)
        self.prepare(stored, plan, guards.PATTERN, leaving=("output", "workspace"))
        self.session.run(calls)
        for b in plan.compared():
            self.session.copy(self.memory.stale(b), self.memory.work(b))
        self.prepare(stored, plan, guards.PATTERN)
        scramble(self.session)
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
        scramble(self.session)
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

    def _swap(self, stored: StoredCase, plan: Plan) -> None:
        """Let a few stretches of the inputs change places."""
        for b in plan.buffers:
            if b.role not in ("input", "inout") or b.name in stored.linked:
                continue
            work, pristine, size = self.memory.work(b), stored.pristine[b.name], b.itemsize
            for to, source, count in moves(b, stored.request.draw.seed):
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
