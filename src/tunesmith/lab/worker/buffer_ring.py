"""Memory that timed launches rotate through: laid out once, filled with numbers, kept between requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tunesmith.backends.messages import Draw
from tunesmith.backends.port import Memory, OutOfMemory, Pointer, Session
from tunesmith.lab import references
from tunesmith.lab.memory import initial_payload
from tunesmith.problem.device import Device
from tunesmith.problem.inputs import BLOCK, VERSIONS, RepeatedBlock, SlotPlace, block_of, stride_of
from tunesmith.problem.plan import BufferPlan, Plan
from tunesmith.problem.problem import PythonFunction

UNKNOWN_CACHE = 64 << 20  # rotate as if the last-level cache were this large when the device does not say
MEMORY_SHARE = 0.6
CACHE_LINE = 128  # bytes that the least access to a GPU's memory takes of its cache
LINE = 256  # bytes; slots of a GPU's arrays share no cache line
RESTORED_SLOTS = 16  # a chain over arrays that are restored after it is no longer than the rotation


def apart_on(device: Device) -> int:
    """Strides are multiples of it: neighbours in one cache line would warm each other's."""
    return max(device.limits.alignment, LINE if device.inspects else 1)


@dataclass
class Arena:
    """The memory one argument rotates through, and of one that is restored a second that stays as it was."""

    memory: Memory
    nbytes: int
    source: Memory | None
    made: tuple[bytes, ...] = ()  # by the user's function: what its slots hold, in turn


class BufferRing:
    """Filling costs more than timing, so what an earlier request has laid out stays for the next."""

    def __init__(self, session: Session, device: Device) -> None:
        self._session = session
        self._device = device
        self._arenas: dict[tuple[str, str], Arena] = {}  # by argument and what it is filled from
        self._linked: dict[PythonFunction, frozenset[str]] = {}  # arguments that the function makes

    def lay_out(self, buffers: Sequence[BufferPlan], slots: int, plan: Plan, draw: Draw) -> dict[str, Arena]:
        """Memory for every buffer, filled. Arenas of earlier requests may be replaced by larger ones."""
        try:
            return self._lay_out(buffers, slots, plan, draw)
        except OutOfMemory:
            self.give_back()  # what other workloads have left may take the room
            return self._lay_out(buffers, slots, plan, draw)

    def has(self, arenas: dict[str, Arena]) -> bool:
        """Whether they are still there, and not replaced by others since."""
        return all(any(arena is known for known in self._arenas.values()) for arena in arenas.values())

    def give_back(self) -> None:
        """Release all memory; the next request lays out its data anew."""
        for key in list(self._arenas):
            self._release_arena(key)

    def restore(self, b: BufferPlan, arena: Arena, slots: Sequence[int]) -> None:
        """Give an in-place array its values back, at slots that lie side by side."""
        assert arena.source is not None
        stride = self.stride(b)
        place, nbytes = slots[0] * stride, len(slots) * stride
        self._session.copy(Pointer(arena.memory, place, nbytes), Pointer(arena.source, place, nbytes))

    def first_change(self, b: BufferPlan, arena: Arena, draw: Draw) -> int | None:
        """The byte of an input's arena that is the first not to be what was drawn. None: all is, or there is
        no room to tell. Where the device compares for itself."""
        inspector, whole = self._session.inspector, Pointer(arena.memory, 0, arena.nbytes)
        assert inspector is not None
        try:
            fresh = self._session.allocate(max(1, arena.nbytes))
        except OutOfMemory:
            return None
        try:
            self._spread(b, Pointer(fresh, 0, arena.nbytes), block_of(b, draw.distribution, draw.seed))
            found = inspector.differing(whole, Pointer(fresh, 0, arena.nbytes))
        finally:
            self._session.release(fresh)
        return found.first if found.count else None

    def is_linked(self, b: BufferPlan, draw: Draw) -> bool:
        made = draw.inputs is not None and b.name in self._linked.get(draw.inputs, ())
        return made or bool(b.formula)

    def _release_arena(self, key: tuple[str, str]) -> None:
        arena = self._arenas.pop(key)
        self._session.release(arena.memory)
        if arena.source is not None:
            self._session.release(arena.source)

    def slots(self, buffers: Sequence[BufferPlan], warm: bool, rotation: float) -> int:
        """How many copies of the arrays it takes to leave the cache cold, as far as there is room. Two even
        where it shall be warm: the same inputs twice in a row would find their outputs there already."""
        fewest = RESTORED_SLOTS if any(map(needs_restoring, buffers)) and self._device.inspects else 2
        strides = [self.stride(b) for b in buffers]
        limits = self._device.limits
        # What a kernel does not touch pushes nothing out of the cache.
        line = CACHE_LINE if self._device.inspects else 1
        touched = max(1, sum(max(line, min(b.touched, s)) for b, s in zip(buffers, strides, strict=True)))
        wanted = math.ceil(rotation * (limits.llc or UNKNOWN_CACHE) / touched)
        twice = sum(stride for b, stride in zip(buffers, strides, strict=True) if needs_restoring(b))
        room = int(limits.memory * MEMORY_SHARE) // max(1, sum(strides) + twice)
        room = min([room, *(limits.max_allocation // s for s in strides if s)])
        return max(1, min(2 if warm else max(wanted, fewest), room))

    def stride(self, b: BufferPlan) -> int:
        return stride_of(b, apart_on(self._device))

    def _lay_out(self, buffers: Sequence[BufferPlan], slots: int, plan: Plan, draw: Draw) -> dict[str, Arena]:
        made: list[dict[str, bytes]] = []  # by the user's function: asked only when there is need
        if draw.inputs is not None and draw.inputs not in self._linked:
            made = _draw_input_versions(plan, draw)
            self._linked[draw.inputs] = frozenset(made[0])
        arenas: dict[str, Arena] = {}
        for b in buffers:
            needed = slots * self.stride(b)
            # Drawn numbers are right for any size; linked or promised ones only for their own.
            is_linked = self.is_linked(b, draw)
            is_fixed = is_linked or holds_init(b)
            content = repr((b, plan.sizes, draw) if is_fixed else (b.type, b.values, b.range, draw))
            key = (b.name, content)
            arena = self._arenas.get(key)
            if arena is not None and arena.nbytes < needed:
                self._release_arena(key)
                arena = None
            if arena is None:
                made = made or (_draw_input_versions(plan, draw) if is_linked else [])
                fixed = [initial_payload(b, b"\0")] if holds_init(b) else []
                fixed = [one[b.name] for one in made] if is_linked else fixed
                arena = self._arenas[key] = self._fill_arena(b, needed, draw, fixed)
                if is_linked and b.role == "input":
                    arena.made = tuple(fixed)
            arenas[b.name] = arena
        return arenas

    def _fill_arena(self, b: BufferPlan, nbytes: int, draw: Draw, fixed: Sequence[bytes]) -> Arena:
        """An arena filled with drawn numbers, on and on; with `fixed` ones at its slots, in turn."""
        taken: list[Memory] = []
        try:
            taken.append(memory := self._session.allocate(max(1, nbytes)))
            taken.append(source := self._session.allocate(nbytes if needs_restoring(b) else 1))
            self._spread(b, Pointer(memory, 0, nbytes), block_of(b, draw.distribution, draw.seed))
        except OutOfMemory:
            for one in taken:
                self._session.release(one)
            raise
        stride = self.stride(b)
        for number in range(nbytes // stride if fixed else 0):
            data, place = fixed[number % len(fixed)], number * stride
            if number < len(fixed):
                self._session.write(memory, place, data)
            else:  # on the device: a small kernel rotates through many thousand slots
                first = number % len(fixed) * stride
                self._session.copy(Pointer(memory, place, len(data)), Pointer(memory, first, len(data)))
        if not needs_restoring(b):
            self._session.release(source)
            return Arena(memory, nbytes, None)
        self._session.copy(Pointer(source, 0, nbytes), Pointer(memory, 0, nbytes))
        return Arena(memory, nbytes, source)

    def _spread(self, b: BufferPlan, to: Pointer, block: RepeatedBlock) -> None:
        inspector, size = self._session.inspector, b.itemsize
        if inspector is not None and to.nbytes > block.values.nbytes:
            data = block.values.tobytes()
            source = self._session.allocate(len(data))
            self._session.write(source, 0, data)
            inspector.spread(to, Pointer(source, 0, len(data)), size, block.roll, block.negate)
            self._session.read(to.memory, 0, 1)  # so that it has ended
            self._session.release(source)
            return
        for first in range(0, to.nbytes // size, BLOCK):
            part = block.stretch(first, min(BLOCK, to.nbytes // size - first))
            self._session.write(to.memory, first * size, part.view(np.uint8).data)


def needs_restoring(b: BufferPlan) -> bool:
    return b.role == "inout" or holds_init(b)


def holds_init(b: BufferPlan) -> bool:
    """Whether the original's callers fill it too: then nobody's time has that in it."""
    return b.init is not None and not b.is_filled_by_launch


def _draw_input_versions(plan: Plan, draw: Draw) -> list[dict[str, bytes]]:
    """One version of the linked arrays after the other."""
    places = [replace(draw, place=SlotPlace(version, 1)) for version in range(VERSIONS)]
    return [{n: a.tobytes() for n, a in references.linked_inputs(plan, one).items()} for one in places]
