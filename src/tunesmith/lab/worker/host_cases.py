"""A case where the host fills and reads: a kernel is run on it several times, and what it left is reported.

Nothing is judged here, because kernels may be native code in this very process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from statistics import median

from tunesmith.backends import messages as m
from tunesmith.backends.port import (
    Executable,
    Memory,
    Pointer,
    Scrambling,
    Session,
    Shielding,
    scramble_local_memory,
)
from tunesmith.lab import memory as guards
from tunesmith.lab import references
from tunesmith.lab.memory import CaseLayout, GuardedLayout, bind_calls, initial_payload, is_fenced, layouts_of
from tunesmith.lab.worker.output_sampling import CHANCE
from tunesmith.problem.device import Device
from tunesmith.problem.inputs import swap_moves
from tunesmith.problem.plan import BufferPlan, Plan

WRITTEN_WHOLE = 1 << 18  # bytes; of larger arrays only what changes
STATEFUL = ("input", "output", "workspace")  # what stays as it is between two calls
REMEMBERING = ("input", "workspace")
VISITS = 5  # more to the same workspace, where nothing is timed and so nobody looks at timed launches


@dataclass(frozen=True)
class _GuardedBuffer:
    number: int
    plan: BufferPlan
    memory: Memory
    layout: GuardedLayout
    zones: tuple[bytes, bytes]

    @property
    def pointer(self) -> Pointer:
        return Pointer(self.memory, self.layout.place, max(self.layout.nbytes, 1))


@dataclass
class _PlacedArrays:
    """The arrays of a case where one of its layouts puts them."""

    session: Session
    layout: CaseLayout
    buffers: list[_GuardedBuffer]
    shields: bool

    def launcher(self, request: m.RunCase, executable: Executable) -> Callable[[], None]:
        calls = bind_calls(request.plan, executable, {b.plan.name: b.pointer for b in self.buffers})

        def launch() -> None:
            with self._shield_memory():
                self.session.run(calls)

        return launch

    def _shield_memory(self) -> AbstractContextManager[None]:
        if not (self.shields and is_fenced(self.layout) and isinstance(self.session, Shielding)):
            return nullcontext()
        spans = []
        for b in self.buffers:
            begin, end = b.layout.start, b.layout.start + b.layout.total
            low, high = (begin, begin) if b.plan.role == "input" else b.layout.fenced_pages
            spans += [Pointer(b.memory, begin, low - begin), Pointer(b.memory, high, end - high)]
        return self.session.shielded(spans)

    def release(self) -> None:
        for memory in {id(b.memory): b.memory for b in self.buffers}.values():
            self.session.release(memory)


def _place_arrays(
    session: Session, plan: Plan, layout: CaseLayout, inputs: dict[str, bytes], shields: bool
) -> _PlacedArrays:
    memories: list[Memory] = []
    try:
        memories.extend(session.allocate(nbytes) for nbytes in layout.blocks)
    except BaseException:
        for memory in memories:
            session.release(memory)
        raise
    place = _PlacedArrays(session, layout, [], shields)
    for number, (item, part) in enumerate(zip(plan.buffers, layout.parts, strict=True)):
        memory = memories[part.block]
        before, after = zones = guards.intact_zones(part, number)
        place.buffers.append(_GuardedBuffer(number, item, memory, part, zones))
        session.write(memory, part.start, before)
        session.write(memory, part.place + part.nbytes, after)
        if item.name in inputs and item.nbytes:
            session.write(memory, part.place, inputs[item.name])
    return place


def run_case(
    session: Session, device: Device, request: m.RunCase, executable: Executable
) -> tuple[m.Ran, tuple[bytes, ...]]:
    plan = request.plan
    linked = references.linked_inputs(plan, request.draw)
    arrays = references.draw_inputs(plan, request.draw, linked)
    inputs = {name: array.tobytes() for name, array in arrays.items()}
    places: list[_PlacedArrays] = []
    try:
        layouts = layouts_of(plan.buffers, device, request.draw.seed)
        places.extend(_place_arrays(session, plan, layout, inputs, request.shields) for layout in layouts)
        buffers, launch = places[0].buffers, places[0].launcher(request, executable)
        visits = VISITS if device.untimed and any(b.role == "workspace" for b in plan.buffers) else 0

        # Once on other inputs first: what that leaves behind the next run finds, and must not use.
        drawn = [b for b in buffers if b.plan.name in inputs and b.plan.name not in linked]
        _reset_buffers(session, buffers, inputs, guards.OTHER_PATTERN)
        for b in drawn:
            _swap_stretches(session, b, inputs[b.plan.name], request.draw.seed)
        launch()
        written = [b for b in buffers if b.plan.role in ("output", "inout")]
        others = {b.plan.name: _read_payload(session, b) for b in written}
        for b in drawn:
            _swap_stretches(session, b, inputs[b.plan.name], request.draw.seed, back=True)
        _reset_buffers(session, buffers, inputs, guards.PATTERN, STATEFUL)
        launch()
        stale = {b.plan.name: _read_payload(session, b) for b in written}
        visit = (session, launch, buffers, inputs, drawn, request.draw.seed)
        again, forgot = _run_visits(*visit, visits)
        _reset_buffers(session, buffers, inputs, guards.PATTERN)
        scramble_local_memory(session)
        launch()
        first = {b.plan.name: _read_payload(session, b) for b in written}
        stateless = {name: data == first[name] for name, data in stale.items()}
        if visits:
            seen = ((forgot, others), *((one, first) for one in again))
            stateless |= {n: same and all(a[n] == b[n] for a, b in seen) for n, same in stateless.items()}
        stale.clear()
        # And once more elsewhere, where there is room.
        last = places[-1]
        _reset_buffers(session, last.buffers, inputs, guards.OTHER_PATTERN)
        launch = last.launcher(request, executable)
        scramble_local_memory(session)
        start = time.perf_counter()
        launch()
        seconds = time.perf_counter() - start
        known = {b.plan.name: inputs[b.plan.name] for b in buffers if b.plan.role == "input"} | first
        everywhere = zip(*(place.buffers for place in places), strict=True)
        reports = tuple(_report_buffer(session, at, known, stateless) for at in everywhere)
    finally:
        for place in places:
            place.release()
    return m.Ran(reports, seconds), tuple(first[b.name] for b in plan.compared())


def _swap_stretches(session: Session, b: _GuardedBuffer, data: bytes, seed: int, back: bool = False) -> None:
    """Let a few stretches of an input change places, or go back to theirs."""
    size = b.plan.itemsize
    whole = bytearray(data if len(data) <= WRITTEN_WHOLE else b"")
    for to, source, count in swap_moves(b.plan, seed, back):
        part = data[source * size : (source + count) * size]
        if whole:
            whole[to * size : (to + count) * size] = part
        else:
            session.write(b.memory, b.layout.place + to * size, part)
    if whole:
        session.write(b.memory, b.layout.place, bytes(whole))


def _run_visits(
    session: Session,
    launch: Callable[[], None],
    buffers: list[_GuardedBuffer],
    inputs: dict[str, bytes],
    drawn: Sequence[_GuardedBuffer],
    seed: int,
    visits: int,
) -> tuple[list[dict[str, bytes]], dict[str, bytes]]:
    """What further calls with the same workspaces leave, on the same inputs; and one more on the others."""
    again: list[dict[str, bytes]] = []
    for number in range(visits + 1 if visits else 0):
        _reset_buffers(session, buffers, inputs, guards.PATTERN, REMEMBERING)
        is_other = number == visits
        for b in drawn if is_other else ():
            _swap_stretches(session, b, inputs[b.plan.name], seed)
        launch()
        written = [b for b in buffers if b.plan.role in ("output", "inout")]
        again.append({b.plan.name: _read_payload(session, b) for b in written})
        for b in drawn if is_other else ():
            _swap_stretches(session, b, inputs[b.plan.name], seed, back=True)
    return again[:-1], again[-1] if again else {}


def _reset_buffers(
    session: Session,
    buffers: list[_GuardedBuffer],
    inputs: dict[str, bytes],
    pattern: bytes,
    leaving: Sequence[str] = ("input",),
) -> None:
    for b in buffers:
        if b.plan.nbytes and (b.plan.init is not None or b.plan.role not in leaving):
            given = inputs.get(b.plan.name)
            payload = initial_payload(b.plan, pattern) if given is None else given
            session.write(b.memory, b.layout.place, payload)


def _read_payload(session: Session, b: _GuardedBuffer) -> bytes:
    return session.read(b.memory, b.layout.place, b.layout.nbytes) if b.layout.nbytes else b""


def _report_buffer(
    session: Session, places: Sequence[_GuardedBuffer], known: dict[str, bytes], stateless: dict[str, bool]
) -> m.BufferReport:
    """Of one array, wherever it was."""
    last, digests, hits = places[-1], list[bytes](), list[str]()
    for b in places:
        part = b.layout
        end = part.place + part.nbytes
        now = (
            session.read(b.memory, part.start, part.offset),
            session.read(b.memory, end, part.start + part.total - end),
        )
        hits += [guards.describe_damage(now, b.zones, b.plan.itemsize)] if now != b.zones else []
        digests.append(guards.memory_digest(*now).encode())
    name, role = last.plan.name, last.plan.role
    zones, hit = guards.memory_digest(*digests), next(filter(None, hits), "")
    if name not in known:
        return m.BufferReport(name, zones, damage=hit)
    first = known[name]
    if role != "input":
        same = _read_payload(session, last) == first
        return m.BufferReport(name, zones, repeats=same, stateless=stateless[name], damage=hit)
    given = guards.memory_digest(first)
    found = next((data for b in places if (data := _read_payload(session, b)) != first), None)
    return m.BufferReport(
        name, zones, given, given if found is None else guards.memory_digest(found), damage=hit
    )


# Whether a kernel takes less time where local memory still holds what its own last launch has left there.
# Its results may be right, because it recognises what it finds; but where a program runs another kernel in
# between nothing is left: the time that was measured is no program's. Which of the two comes first in a pair
# is drawn. To a kernel that does not care both are alike: of the shortest launches each is the one or the
# other by a coin's toss, and that of the first 23 three at most come after the kernel that fills local
# memory happens once in 4096 times.
FEWEST, PAIRS = 5, 60  # of launches: to be believed, and to be turned away
NEEDED, MISSED = 20, 3  # that are shorter, than all but so many of the others
MARGIN = 1.25  # by so much


def tell_left_over(session: Session, sample: Callable[[], float]) -> str:
    """The reason not to believe its times, or nothing. `sample` gives the seconds of one launch."""
    if not isinstance(session, Scrambling):
        return ""
    kept: list[float] = []
    fresh: list[float] = []
    while len(kept) < PAIRS:
        for is_local in CHANCE.sample((True, False), 2):
            # After another kernel that fills local memory, or that fills as much elsewhere.
            session.scramble(is_local, is_patient=True)
            (fresh if is_local else kept).append(sample())
        quarter = len(kept) // 4
        if len(kept) >= FEWEST and sorted(fresh)[quarter] <= MARGIN * sorted(kept)[quarter]:
            return ""
    if sum(MARGIN * seconds < sorted(fresh)[MISSED] for seconds in kept) < NEEDED:
        return ""
    return (
        f"it takes {median(kept) * 1e6:.3g} µs where local memory holds what its last launch left there, and "
        f"{median(fresh) * 1e6:.3g} µs where another kernel has run since: nobody promises what it holds"
    )
