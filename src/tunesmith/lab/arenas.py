"""Memory that timed launches rotate through: laid out once, filled with numbers, kept between requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tunesmith.backends.port import Memory, OutOfMemory, Pointer, Session
from tunesmith.core.checks.draws import BLOCK, draw_array
from tunesmith.core.device import Device
from tunesmith.core.messages import Draw
from tunesmith.core.plan import BufferPlan, Plan
from tunesmith.core.problem import PythonFunction
from tunesmith.lab import reference
from tunesmith.lab.guards import initial_payload

UNKNOWN_CACHE = 64 << 20  # rotate as if the last-level cache were this large when the device does not say
MEMORY_SHARE = 0.6
LINE = 256  # bytes; slots of a GPU's arrays share no cache line
RESTORED_SLOTS = 16  # a chain over arrays that are restored after it is no longer than the rotation


@dataclass
class Arena:
    """The memory one argument rotates through, and of one that is restored a second that stays as it was."""

    memory: Memory
    nbytes: int
    source: Memory | None


class Arenas:
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
            self._drop(key)

    def restore(self, b: BufferPlan, arena: Arena, slots: Sequence[int]) -> None:
        """Give an in-place array its values back, at slots that lie side by side."""
        assert arena.source is not None
        stride = self.stride(b)
        place, nbytes = slots[0] * stride, len(slots) * stride
        self._session.copy(Pointer(arena.memory, place, nbytes), Pointer(arena.source, place, nbytes))

    def _drop(self, key: tuple[str, str]) -> None:
        arena = self._arenas.pop(key)
        self._session.release(arena.memory)
        if arena.source is not None:
            self._session.release(arena.source)

    def slots(self, buffers: Sequence[BufferPlan], warm: bool, rotation: float) -> int:
        """How many copies of the arrays it takes to leave the cache cold, as far as there is room."""
        if warm:
            return 1
        fewest = RESTORED_SLOTS if any(map(needs_restoring, buffers)) and self._device.inspects else 2
        strides = [self.stride(b) for b in buffers]
        limits = self._device.limits
        # What a kernel does not touch pushes nothing out of the cache.
        touched = max(1, sum(min(b.touched, s) for b, s in zip(buffers, strides, strict=True)))
        wanted = math.ceil(rotation * (limits.llc or UNKNOWN_CACHE) / touched)
        twice = sum(stride for b, stride in zip(buffers, strides, strict=True) if needs_restoring(b))
        room = int(limits.memory * MEMORY_SHARE) // max(1, sum(strides) + twice)
        room = min([room, *(limits.max_allocation // s for s in strides if s)])
        return max(1, min(max(wanted, fewest), room))

    def stride(self, b: BufferPlan) -> int:
        # Neighbours in one cache line would warm each other's.
        align = max(b.align, self._device.limits.alignment, LINE if self._device.inspects else 1)
        return max(1, -(-b.nbytes // align)) * align

    def _lay_out(self, buffers: Sequence[BufferPlan], slots: int, plan: Plan, draw: Draw) -> dict[str, Arena]:
        made: dict[str, bytes] | None = None  # by the user's function: asked only when there is need
        if draw.inputs is not None and draw.inputs not in self._linked:
            made = _made(plan, draw)
            self._linked[draw.inputs] = frozenset(made)
        linked = self._linked[draw.inputs] if draw.inputs is not None else frozenset()
        arenas: dict[str, Arena] = {}
        for b in buffers:
            needed = slots * self.stride(b)
            # Drawn numbers are right for any size; linked or promised ones only for their own.
            is_fixed = b.name in linked or b.init is not None
            content = repr((b, plan.sizes, draw) if is_fixed else (b.type, b.values, b.range, draw))
            key = (b.name, content)
            arena = self._arenas.get(key)
            if arena is not None and arena.nbytes < needed:
                self._drop(key)
                arena = None
            if arena is None:
                data: bytes | None = None
                if b.name in linked:
                    made = made or _made(plan, draw)
                    data = made[b.name]
                elif b.init is not None:
                    data = initial_payload(b, b"\0")
                arena = self._arenas[key] = self._fill(b, needed, draw, data)
            arenas[b.name] = arena
        return arenas

    def _fill(self, b: BufferPlan, nbytes: int, draw: Draw, fixed: bytes | None) -> Arena:
        """An arena filled from `fixed`, the same at every slot, or else with drawn numbers, on and on."""
        data = self._draw_block(b, nbytes, draw) if fixed is None else fixed
        taken: list[Memory] = []
        try:
            for size in (nbytes, len(data), nbytes if needs_restoring(b) else 0):
                memory = self._session.allocate(max(1, size))
                taken.append(memory)
        except OutOfMemory:
            for memory in taken:
                self._session.release(memory)
            raise
        memory, block, source = taken
        if data:
            self._session.write(block, 0, data)
            self._repeat(b, Pointer(memory, 0, nbytes), Pointer(block, 0, len(data)), fixed is not None)
        self._session.release(block)
        if not needs_restoring(b):
            self._session.release(source)
            return Arena(memory, nbytes, None)
        self._session.copy(Pointer(source, 0, nbytes), Pointer(memory, 0, nbytes))
        return Arena(memory, nbytes, source)

    def _repeat(self, b: BufferPlan, to: Pointer, block: Pointer, aligned: bool) -> None:
        memory, size = to.memory, block.nbytes
        if aligned:
            for offset in range(0, to.nbytes, self.stride(b)):
                self._session.copy(Pointer(memory, offset, size), block)
            return
        position = shift = 0
        while position < to.nbytes:
            length = min(size - shift, to.nbytes - position)
            self._session.copy(Pointer(memory, position, length), Pointer(block.memory, shift, length))
            position += length
            # An odd shift each time round: slots hold the same distribution, never the same numbers.
            shift = (shift + 7919 * b.itemsize) % (size // 2 + 1) // b.itemsize * b.itemsize

    def _draw_block(self, b: BufferPlan, nbytes: int, draw: Draw) -> bytes:
        count = b.packed * min(BLOCK, -(-nbytes // b.itemsize))
        flat = replace(b, shape=(count,), strides=(1,), extent=count)
        return draw_array(flat, draw.distribution, draw.seed).tobytes()


def needs_restoring(b: BufferPlan) -> bool:
    return b.role == "inout" or b.init is not None


def _made(plan: Plan, draw: Draw) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in reference.linked_inputs(plan, draw).items()}
