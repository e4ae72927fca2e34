"""Where a case's arrays lie on the device."""

from __future__ import annotations

from dataclasses import dataclass, field

from tunesmith.backends.port import Memory, Pointer, Session
from tunesmith.lab.layouts import PHASE, CaseLayout, GuardedLayout, layouts_of
from tunesmith.problem.device import Device
from tunesmith.problem.plan import BufferPlan, Plan


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
        """Where the first run's output waits for the second."""
        phase = self.layout(b, 0).place % PHASE
        return Pointer(self.arena(f"{which} {b.name}", phase + b.nbytes), phase, b.nbytes)

    def stale(self, b: BufferPlan) -> Pointer:
        """Where the output of a run that found an earlier one's waits."""
        return self.first(b, "stale")

    def copy_place(self, b: BufferPlan) -> Pointer:
        phase = self.layout(b, 0).place % PHASE
        return Pointer(self._session.allocate(phase + max(b.nbytes, 1)), phase, b.nbytes)

    def read(self, pointer: Pointer) -> bytes:
        return self._session.read(pointer.memory, pointer.offset, pointer.nbytes)
