"""Where a case's arrays lie on the device."""

from __future__ import annotations

from dataclasses import dataclass, field

from tunesmith.backends.port import Memory, Pointer, Session
from tunesmith.lab import memory as guards
from tunesmith.problem.device import Device
from tunesmith.problem.plan import BufferPlan

PHASE = 64  # copies keep an array's place within so many bytes, so that whole vectors can be compared


@dataclass
class CaseMemory:
    """Memory that cases use in turn, and copies of their own."""

    _session: Session
    _device: Device
    _arenas: dict[str, Memory] = field(default_factory=dict)
    seed: int = 0  # of the case at hand

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

    def layout(self, b: BufferPlan) -> guards.GuardedLayout:
        return guards.layout_of(b, self._device.limits.alignment, self.seed)

    def work(self, b: BufferPlan) -> Pointer:
        layout = self.layout(b)
        return Pointer(self.arena(f"work {b.name}", layout.total), layout.offset, layout.nbytes)

    def zones(self, b: BufferPlan) -> tuple[Pointer, Pointer]:
        """Around that memory."""
        layout, memory = self.layout(b), self.work(b).memory
        end = layout.offset + layout.nbytes
        return Pointer(memory, 0, layout.offset), Pointer(memory, end, layout.total - end)

    def first(self, b: BufferPlan, which: str = "first") -> Pointer:
        """Where the first run's output waits for the second."""
        phase = self.layout(b).offset % PHASE
        return Pointer(self.arena(f"{which} {b.name}", phase + b.nbytes), phase, b.nbytes)

    def stale(self, b: BufferPlan) -> Pointer:
        """Where the output of a run that found an earlier one's waits."""
        return self.first(b, "stale")

    def copy_place(self, b: BufferPlan) -> Pointer:
        phase = self.layout(b).offset % PHASE
        return Pointer(self._session.allocate(phase + max(b.nbytes, 1)), phase, b.nbytes)

    def read(self, pointer: Pointer) -> bytes:
        return self._session.read(pointer.memory, pointer.offset, pointer.nbytes)
