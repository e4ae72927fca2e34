"""Where the arrays of a case lie on the device: memory that cases use in turn, and copies of their own."""

from __future__ import annotations

from tunesmith.backends.port import Memory, Pointer, Session
from tunesmith.core.device import Device
from tunesmith.core.plan import BufferPlan
from tunesmith.lab import guards

PHASE = 64  # copies keep an array's place within so many bytes, so that whole vectors can be compared


class KeptMemory:
    def __init__(self, session: Session, device: Device) -> None:
        self._session = session
        self._device = device
        self._arenas: dict[str, Memory] = {}

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
        return guards.guarded(b.nbytes, max(b.align, self._device.limits.alignment))

    def work(self, b: BufferPlan) -> Pointer:
        layout = self.layout(b)
        return Pointer(self.arena(f"work {b.name}", layout.total), layout.offset, layout.nbytes)

    def first(self, b: BufferPlan) -> Pointer:
        """Where the first run's output waits for the second."""
        phase = self.layout(b).offset % PHASE
        return Pointer(self.arena(f"first {b.name}", phase + b.nbytes), phase, b.nbytes)

    def copy_place(self, b: BufferPlan) -> Pointer:
        phase = self.layout(b).offset % PHASE
        return Pointer(self._session.allocate(phase + max(b.nbytes, 1)), phase, b.nbytes)

    def read(self, pointer: Pointer) -> bytes:
        return self._session.read(pointer.memory, pointer.offset, pointer.nbytes)
