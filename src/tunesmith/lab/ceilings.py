"""What a device can do at best, measured with kernels of our own and the stopwatch that times everyone's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from tunesmith import backends
from tunesmith.backends.messages import Draw, TimingPolicy
from tunesmith.backends.port import CeilingKernels
from tunesmith.lab import measuring
from tunesmith.lab.builders import Builders, BuiltCode
from tunesmith.lab.memory import Verdict
from tunesmith.lab.runner import Race, Runner
from tunesmith.problem.device import Device
from tunesmith.problem.plan import BufferPlan, Geometry, Plan, ScalarPlan
from tunesmith.problem.problem import Launch, Role
from tunesmith.problem.template import Variant
from tunesmith.profiles.facts import Ceilings, Point
from tunesmith.profiles.roofline import contradictions, possible
from tunesmith.run.outcome import median

SMALLEST, LARGEST, STEP = 1 << 16, 1 << 30, 4
LARGEST_ON_HOST = 1 << 26
MEMORY_SHARE = 0.1  # of the device's memory that the largest arrays may take
ITEM_BYTES = 16  # bytes a thread moves at a time
# Vectors a thread takes, and threads in a block.
GPU_WAYS = ((1, 256), (1, 1024), (4, 256), (4, 1024))
HOST_WAYS = ((1, 1024), (256, 16))
ROUNDS, ROUNDS_ON_HOST = 4096, 1024  # steps of a chain of multiply-adds
BLOCKS_PER_UNIT, BLOCK = 8, 256
CACHE_SHARES = (8, 4)  # parts of the cache that are moved to see how fast it is
# Recorded chains agree within a per cent; what shares its cores with the host needs longer ones.
RECORDED = TimingPolicy(rounds=9, min_rounds=5, chain_seconds=0.001, max_seconds=0.2)
QUEUED = TimingPolicy(rounds=7, min_rounds=3, chain_seconds=0.01, max_seconds=0.3)
DRAW = Draw("normal", 1)


MeasuredCeilings = tuple[Ceilings, tuple[str, ...]]  # with notes: what could not be measured, and why


def measure(
    device: Device,
    builders: Builders,
    runner: Runner,
    *,
    progress: Callable[[str], None] = lambda _text: None,
) -> MeasuredCeilings:
    source = backends.kind(device.backend).ceilings
    if source is None:
        why = f"there are no kernels for {device.backend} to measure ceilings with"
        return Ceilings(), (why,)
    return _Measuring(device, builders, runner, source, progress).all()


def variant_of(backend: str, file: str, entries: Sequence[str]) -> Variant:
    """A source of the backend's own kernels."""
    launches = tuple(Launch(entry, (), (), ()) for entry in entries)
    language = backends.kind(backend).languages[0].name
    return Variant(file, backends.ceilings_text(backend, file), language, (), launches, ())


class CeilingsStore(Protocol):
    """Where ceilings are stored between runs."""

    def get(self, device: Device) -> MeasuredCeilings | None: ...
    def put(self, device: Device, ceilings: Ceilings, notes: tuple[str, ...] = ()) -> None: ...


def known_or_measured(
    stored: CeilingsStore | None,
    device: Device,
    builders: Builders,
    runner: Callable[[], Runner],
    progress: Callable[[str], None],
    *,
    again: bool = False,
    today: Callable[[], str] = lambda: datetime.now(UTC).date().isoformat(),
) -> MeasuredCeilings:
    """`stored` None: nothing is read or written. One that failed half-way is measured again the next time;
    with `again` all are."""
    known = stored.get(device) if stored is not None and not again else None
    if known is None:
        measured, notes = measure(device, builders, runner(), progress=progress)
        known = replace(measured, measured_on=today()), notes
        if stored is not None and measured.copy and measured.read:
            stored.put(device, *known)
    # As it was measured is what is stored: what is made of it may change.
    ceilings = possible(known[0])
    said = contradictions(known[0], ceilings)
    return ceilings, (*known[1], *([said] if said else []))


@dataclass
class _Measuring:
    _device: Device
    _builders: Builders
    _runner: Runner
    _source: CeilingKernels
    _progress: Callable[[str], None]
    _notes: list[str] = field(default_factory=list)

    def all(self) -> MeasuredCeilings:
        moving = [f"{what}{items}" for what in ("copy", "read") for items in self._source.items]
        code = self._build(self._source.file, (*moving, "empty", "fp32"))
        half = self._build(self._source.half, ("fp16",))
        if isinstance(code, Verdict):
            why = f"the kernels for ceilings do not build: {code.first_line}"
            return Ceilings(), (why,)
        # The largest first: what is laid out for them serves the others too.
        sizes = sizes_for(self._device)[::-1]
        read = [p for nbytes in sizes if (p := self._moving(code, "read", nbytes))]
        copy = [p for nbytes in sizes if (p := self._moving(code, "copy", nbytes))]
        cache, llc = None, self._device.limits.llc
        if llc:
            warm = [self._moving(code, "copy", _whole(llc // part), warm=True) for part in CACHE_SHARES]
            cache = max((p.bytes / p.seconds for p in warm if p), default=None)
        launch = self._empty(code, plain=True)
        recorded = self._empty(code, plain=False) if self._device.inspects else None
        fp16 = None
        if isinstance(half, Verdict):
            self._notes.append("fp16 was not measured: this device or its compiler does not have it")
        else:
            fp16 = self._rate(half, "fp16")
        ceilings = Ceilings(
            copy=tuple(copy[::-1]),
            read=tuple(read[::-1]),
            launch=launch,
            graph_launch=recorded,
            fp32=self._rate(code, "fp32"),
            fp16=fp16,
            cache_bytes=llc or None,
            cache_bandwidth=cache,
        )
        return ceilings, tuple(dict.fromkeys(self._notes))

    def _build(self, name: str, entries: Sequence[str]) -> BuiltCode | Verdict:
        self._progress("measuring what the device can do at best: building")
        return self._builders.start(variant_of(self._device.backend, name, entries)).result()

    def _moving(self, code: BuiltCode, what: str, nbytes: int, warm: bool = False) -> Point | None:
        """The fastest of a few ways to move that many bytes."""
        self._progress(f"measuring what the device can do at best: {what}, {nbytes >> 10} KiB")
        plans = [
            moving_plan(what, nbytes, items, min(block, self._device.limits.max_threads))
            for items, block in (HOST_WAYS if self._device.is_host else GPU_WAYS)
            if items in self._source.items
        ]
        seconds = self._fastest(code, plans, f"{what} of {nbytes} bytes", warm=warm)
        return Point(nbytes, seconds) if seconds else None

    def _empty(self, code: BuiltCode, *, plain: bool) -> float | None:
        self._progress("measuring what the device can do at best: launches")
        geometry = Geometry("empty", (1, 1, 1), (1, 1, 1), 0, ())
        plan = Plan((), (), (), (), (), (geometry,))
        return self._fastest(code, [plan], "a launch", warm=True, plain=plain)

    def _rate(self, code: BuiltCode, kind: str) -> float | None:
        self._progress(f"measuring what the device can do at best: {kind}")
        rounds = ROUNDS_ON_HOST if self._device.is_host else ROUNDS
        blocks = BLOCKS_PER_UNIT * self._device.limits.sms
        block = min(BLOCK, self._device.limits.max_threads)
        factors = (ScalarPlan(name, "float32", 0.5) for name in ("a", "b"))
        scalars = (*factors, ScalarPlan("rounds", "int32", rounds))
        names = ("out", "a", "b", "rounds")
        geometry = Geometry(kind, (blocks, 1, 1), (block, 1, 1), 0, names)
        plan = Plan((), (_array("out", "output", ITEM_BYTES),), scalars, (), (), (geometry,))
        seconds = self._fastest(code, [plan], f"the {kind} rate", warm=True)
        operations = 2.0 * self._source.lanes[kind] * rounds * blocks * block
        return operations / seconds if seconds else None

    def _fastest(
        self, code: BuiltCode, plans: Sequence[Plan], what: str, *, warm: bool = False, plain: bool = False
    ) -> float | None:
        policy = RECORDED if self._device.inspects else QUEUED
        race = Race(tuple((code, plan) for plan in plans), DRAW, policy, warm, plain)
        deadline = measuring.baseline_deadline(self._device, max(plan.nbytes for plan in plans))
        run = self._runner.time(race, deadline)
        if isinstance(run, Verdict):
            self._notes.append(f"{what} was not measured: {run.status}, {run.first_line}")
            return None
        # On a CPU others take their share of most samples: the best one is the device's own.
        best = min if self._device.is_host else median
        return min(best(samples) for samples in run.timed.samples)


def sizes_for(device: Device) -> list[int]:
    """Bytes to move, from small to large, as far as memory and patience go."""
    largest = min(LARGEST_ON_HOST if device.is_host else LARGEST, int(MEMORY_SHARE * device.limits.memory))
    largest = min(largest, device.limits.max_allocation)
    found = [SMALLEST]
    while found[-1] * STEP <= largest:
        found.append(found[-1] * STEP)
    return found


def moving_plan(what: str, nbytes: int, items: int, block: int) -> Plan:
    """A copy moves half of the bytes in and half out, a read all of them in."""
    copies = what == "copy"
    each = _whole(nbytes) // 2 if copies else _whole(nbytes)
    vectors = each // ITEM_BYTES
    grid = -(-vectors // (block * items))
    out = _array("out", "output", each if copies else ITEM_BYTES)
    geometry = Geometry(f"{what}{items}", (grid, 1, 1), (block, 1, 1), 0, ("out", "in", "n"))
    arrays = (out, _array("in", "input", each))
    return Plan((("n", vectors),), arrays, (ScalarPlan("n", "int64", vectors),), (), (), (geometry,))


def _whole(nbytes: int) -> int:
    return max(2 * ITEM_BYTES, nbytes // (2 * ITEM_BYTES) * (2 * ITEM_BYTES))


def _array(name: str, role: Role, nbytes: int) -> BufferPlan:
    count = nbytes // 4
    return BufferPlan(
        name=name,
        type="float32",
        role=role,
        shape=(count,),
        strides=(1,),
        extent=count,
        align=ITEM_BYTES,
        values=None,
        range=None,
        init=None,
        rtol=0.0,
        atol=0.0,
        compare="close",
        itemsize=4,
    )


def why_no_profiles(kinds_own: str, device: Device, ceilings: CeilingsStore | None) -> str:
    """Why a search there begins without a profile; empty: it has one. `kinds_own` is its backend's word."""
    # On a CPU machine code is not read, and to measure ceilings takes longer than many a search.
    if not kinds_own and device.is_host and (ceilings is None or ceilings.get(device) is None):
        return f"the ceilings of {device.name} are not known; tunesmith profile measures them"
    return kinds_own
