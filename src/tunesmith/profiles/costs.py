"""What a pass over a kernel's hot code keeps a multiprocessor busy with, in cycles a warp. Static and rough.

It serves to rank findings and to tell what does not matter; no time is predicted with it. A fault's stake is
the share by which a pass would cost less without it. Rates are those of NVIDIA's programming guide
("Throughput of Native Arithmetic Instructions") and tuning guides.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tunesmith.problem.template import Remedy
from tunesmith.profiles import facts as f
from tunesmith.profiles.facts import Counters
from tunesmith.profiles.roofline import Roofline, best_bandwidth

WARP = 32
SECTOR = 32  # bytes; what memory moves at least
BANKS = 32  # of shared memory, 4 bytes wide each
CLOCK = 1.5e9  # cycles a second; data-center GPUs run at 1.4 to 2.0 GHz
LATENCY = 0.5e-6 * CLOCK  # cycles until a load from device memory arrives on a busy GPU
_ISSUED = 4  # warp instructions a cycle
_SPECIAL = 16  # results a cycle: special functions, and conversions by the same unit
_FP64 = {60: 32, 70: 32, 80: 32, 90: 64, 100: 64}  # results a cycle; other chips have 2
_L2 = 64  # bytes a cycle to one multiprocessor
_L1 = 128 << 10  # bytes of local memory that L1 may hold beside other data
_DRAM = 20.0  # bytes a cycle and multiprocessor where nothing is known: 4 TB/s over 132 at 1.5 GHz
PER_DIVISION = 20  # instructions in 32 bits; 12 where the reciprocal was kept, 40 and more in 64 bits
_FP64_COMPANY = 2  # a double needs about as many instructions again, to move its halves and constants

FaultName = Literal[
    "spills", "uncoalesced", "narrow", "conflicts", "fp64", "division", "split", "special",
    "few_warps", "flight",
]  # fmt: skip
_WIDE = 16  # bytes a thread that an access could have
_ENOUGH = 64  # bytes in flight a thread that unrolling can reach


@dataclass(frozen=True)
class PassCosts:
    """What there is to know the costs from, the launch as well."""

    mix: f.Mix
    accesses: tuple[f.MemoryAccess, ...]
    instructions: f.Instructions
    launch: f.LaunchFacts | None
    dram_bytes_per_cycle: float
    fp64_per_cycle: int
    stack: int  # bytes a thread
    llc: int

    def stake(self, fault: FaultName) -> float:
        """0 to 1: how much less a pass would cost without the fault."""
        present = self.pass_cost()
        return max(0.0, 1 - self.pass_cost(fault) / present) if present > 0 else 0.0

    def pass_cost(self, without: FaultName | None = None) -> float:
        """Units overlap, though not perfectly: somewhere between the largest and the sum."""
        return math.hypot(*self.unit_cycles(without).values())

    def unit_cycles(self, without: FaultName | None = None) -> dict[str, float]:
        """For a warp's pass, by unit."""
        units = {
            "issuing instructions": self._issue_cycles,
            "double precision": self._fp64_cycles,
            "special functions": self._special_cycles,
            "shared memory and L1": self._shared_cycles,
            "L2": self._l2_cycles,
            "device memory": self._dram_cycles,
            "waiting for loads": self._latency_cycles,
        }
        return {name: cycles(without) for name, cycles in units.items()}

    @property
    def waiting(self) -> float:
        """0 to 1: how much of a pass is waiting for loads."""
        whole = self.pass_cost()
        return (self._latency_cycles(None) / whole) ** 2 if whole > 0 else 0.0

    @property
    def split(self) -> int:
        return self.instructions.split_by_lane + self.instructions.split_by_data

    @property
    def loaded(self) -> int:
        """Global bytes a thread loads in a pass."""
        return sum(a.width * a.count for a in self.accesses if is_global(a) and a.direction == "load")

    def _issue_cycles(self, without: FaultName | None) -> float:
        count = float(self.mix.total)
        if without == "fp64":
            count -= _FP64_COMPANY * self.mix.fp64 + self.mix.slow_conversion
        elif without == "division":
            count -= PER_DIVISION * self.mix.division
        elif without == "split":
            count -= self.split
        elif without == "spills":
            count -= self.mix.local
        elif without == "narrow":
            count /= _WIDE / self._width()
        return max(0.0, count) / _ISSUED

    def _fp64_cycles(self, without: FaultName | None) -> float:
        return 0.0 if without == "fp64" else self.mix.fp64 * WARP / self.fp64_per_cycle

    def _special_cycles(self, without: FaultName | None) -> float:
        if without in ("special", "fp64"):
            return 0.0
        count = self.mix.special + self.mix.slow_conversion
        if without == "division":
            count -= 3 * self.mix.division  # to floating point, reciprocal, and back
        return max(0, count) * WARP / _SPECIAL

    def _shared_cycles(self, without: FaultName | None) -> float:
        waves = 0.0
        for access in self.accesses:
            if access.space == "shared":
                ways = 1 if without == "conflicts" else bank_ways(access)
                waves += access.count * ways * max(1, access.width // 4)
            elif is_global(access):
                waves += access.count * max(1, access.width // 4)
        if without == "narrow":
            waves /= _WIDE / self._width()
        return waves + (0 if without == "spills" else self.mix.local)

    def _l2_cycles(self, without: FaultName | None) -> float:
        moved = 0.0
        for access in self.accesses:
            if is_global(access):
                touched = ideal_sectors(access) if without == "uncoalesced" else touched_sectors(access)
                moved += access.count * SECTOR * touched
        return (moved + self._local_beyond(_L1, without)) / _L2

    def _dram_cycles(self, without: FaultName | None) -> float:
        moving = [a for a in self.accesses if is_global(a) and a.pattern != "uniform"]
        moved = sum(a.count * a.width * WARP for a in moving)
        per_sm = self.llc // self.launch.sms if self.launch is not None and self.launch.sms > 0 else 0
        beyond = self._local_beyond(max(_L1, per_sm), without) if per_sm else 0.0
        return (moved + beyond) / self.dram_bytes_per_cycle

    def _latency_cycles(self, without: FaultName | None) -> float:
        """A warp's loads that wait for each other, spread over the warps that take turns."""
        flight = self.instructions.bytes_in_flight
        if not self.loaded or not flight or self.launch is None or not self.launch.resident_threads:
            return 0.0
        threads = self.launch.resident_threads
        rounds = float(math.ceil(self.loaded / flight))
        if without == "few_warps":
            threads = max(threads, 2048)
        elif without == "flight":
            rounds = min(rounds, self.loaded / _ENOUGH)
        elif without == "narrow":
            rounds = rounds / (_WIDE / self._width())
        return rounds * LATENCY / max(1.0, threads / WARP)

    def _local_beyond(self, room: int, without: FaultName | None) -> float:
        """Bytes a warp moves through a level of memory that its multiprocessor's stacks do not fit into."""
        if without == "spills" or not self.mix.local:
            return 0.0
        threads = self.launch.resident_threads if self.launch is not None else None
        return self.mix.local * 4.0 * WARP if self.stack * (threads or 2048) > room else 0.0

    def _width(self) -> float:
        """The mean width of global accesses, at most 16 bytes."""
        widths = [(a.width, a.count) for a in self.accesses if is_global(a)]
        count = sum(n for _, n in widths)
        return min(float(_WIDE), max(1.0, sum(w * n for w, n in widths) / count)) if count else float(_WIDE)


def costs_of(profile: f.Profile) -> PassCosts | None:
    """None where the code is not known. Its scope is the hot code, or all where that touches no memory."""
    code = profile.static.instructions
    if code is None:
        return None
    hot = tuple(a for a in code.accesses if a.hot)
    in_loop = any(is_global(a) for a in hot)
    limits = profile.limits
    bandwidth = best_bandwidth(profile.ceilings) or (limits.pin_bandwidth if limits is not None else None)
    sms = limits.sms if limits is not None else 0
    per_cycle = bandwidth / sms / CLOCK if bandwidth and sms > 0 else _DRAM
    return PassCosts(
        mix=code.hot if in_loop else code.all,
        accesses=hot if in_loop else code.accesses,
        instructions=code,
        launch=profile.launch,
        dram_bytes_per_cycle=per_cycle if per_cycle > 0 else _DRAM,
        fp64_per_cycle=_FP64.get(limits.capability, 2) if limits is not None else 32,
        stack=max(0, profile.static.resources.private or 0),
        llc=max(0, limits.llc) if limits is not None else 0,
    )


def is_global(access: f.MemoryAccess) -> bool:
    return access.space == "global" and access.direction != "atomic"


def ideal_sectors(access: f.MemoryAccess) -> int:
    """Sectors of a request whose threads lie side by side."""
    return max(1, access.width * WARP // SECTOR)


def touched_sectors(access: f.MemoryAccess) -> int:
    """Sectors that the threads of one warp touch; the fewest possible where the pattern is not known."""
    if access.pattern == "uniform":
        return max(1, access.width // SECTOR)
    if access.pattern == "far":
        return WARP * max(1, access.width // SECTOR)
    if access.pattern == "unknown" or access.stride is None:
        return ideal_sectors(access)
    step, last = abs(access.stride), max(0, access.width - 1)
    return len({(step * lane + byte) // SECTOR for lane in range(WARP) for byte in (0, last)})


def bank_ways(access: f.MemoryAccess) -> int:
    """How often shared memory must be asked for one request; 1 where the pattern is not known. Eight bytes a
    thread are served half a warp at a time, sixteen a quarter."""
    if access.pattern != "strided" or access.stride is None:
        return 1
    lanes = WARP // max(1, min(4, access.width // 4))
    wide, step = range(max(1, min(8, access.width // 4))), abs(access.stride)
    words = {(step * lane + 4 * k) // 4 for lane in range(lanes) for k in wide}
    return max(Counter(word % BANKS for word in words).values(), default=1)


# How sure a finding is, by where it comes from: what hardware counted was seen; code was read, and what was
# read may not be what runs most.
SEEN, KNOWN, READ, GUESSED = 0.9, 0.8, 0.65, 0.35
NO_DIFFERENCE = 0.15  # share of the time: less of it goes with data in the cache, and memory is not to blame


@dataclass(frozen=True)
class _KindFacts:
    """What a kind of finding means: what bounds the kernel, what helps, the likeliest first, and of a symptom
    what it follows from: where one of these is found, it is not told beside it."""

    bound: f.Bound
    remedies: tuple[Remedy, ...]
    causes: tuple[f.Kind, ...] = ()


K, B, R = f.Kind, f.Bound, Remedy  # short, for this table alone
ABOUT = {
    K.TOO_FEW_BLOCKS: _KindFacts(B.OCCUPANCY, (R.SPLIT_ROWS, R.MORE_BLOCKS, R.BLOCK_SIZE, R.ITEMS_IN_FLIGHT)),
    K.TAIL: _KindFacts(B.TAIL, (R.PERSISTENT_GRID, R.SPLIT_ROWS, R.BLOCK_SIZE, R.LESS_SHARED)),
    K.IDLE_THREADS: _KindFacts(B.OCCUPANCY, (R.BLOCK_SIZE, R.ROWS_PER_BLOCK)),
    K.SPILLS: _KindFacts(B.SPILLS, (R.REGISTER_CAP, R.LAUNCH_BOUNDS, R.BLOCK_SIZE)),
    K.LOCAL_ARRAYS: _KindFacts(B.SPILLS, (R.UNROLL, R.BAKE_SIZES)),
    K.UNCOALESCED: _KindFacts(B.PARTIAL_SECTORS, (R.COALESCE, R.STAGE_IN_SHARED, R.WIDE_ACCESS)),
    K.NARROW_ACCESS: _KindFacts(B.LATENCY, (R.WIDE_ACCESS, R.ITEMS_IN_FLIGHT, R.UNROLL)),
    K.BANK_CONFLICTS: _KindFacts(B.BANK_CONFLICTS, (R.PAD_SHARED, R.SHUFFLE_REDUCTION, R.ROW_IN_REGISTERS)),
    K.FP64: _KindFacts(B.COMPUTE, (R.FP32_LITERALS, R.FAST_INTRINSICS, R.COMPILER_FLAGS)),
    K.INTEGER_DIVISION: _KindFacts(B.COMPUTE, (R.CHEAP_DIVISION, R.BAKE_SIZES, R.HOIST_INVARIANTS)),
    K.SPECIAL_FUNCTIONS: _KindFacts(B.COMPUTE,
        (R.FAST_INTRINSICS, R.HARDWARE_CONVERSIONS, R.RECIPROCAL, R.COMPILER_FLAGS),
        (K.FP64, K.INTEGER_DIVISION)),
    K.DIVERGENCE: _KindFacts(B.SERIALISATION, (R.REGROUP_BRANCHES, R.HOIST_INVARIANTS, R.ROWS_PER_BLOCK),
        (K.SERIAL_THREAD,)),
    K.SERIAL_THREAD: _KindFacts(B.SERIALISATION, (R.SHARE_SERIAL_WORK, R.SHUFFLE_REDUCTION, R.WARP_PER_ROW)),
    K.ATOMICS: _KindFacts(B.SERIALISATION, (R.AGGREGATE_ATOMICS,)),
    K.LAUNCH: _KindFacts(B.LAUNCH, (R.FEWER_LAUNCHES,)),
    K.BLOCK_SIZE: _KindFacts(B.OCCUPANCY, (R.BLOCK_SIZE,), (K.TOO_FEW_BLOCKS, K.TAIL, K.IDLE_THREADS)),
    K.LOW_OCCUPANCY: _KindFacts(B.OCCUPANCY, (), (K.TOO_FEW_BLOCKS,)),
    K.UNEVEN_BLOCKS: _KindFacts(B.SERIALISATION, (R.SPLIT_ROWS, R.SHARE_SERIAL_WORK, R.PERSISTENT_GRID),
        (K.TOO_FEW_BLOCKS, K.TAIL, K.SERIAL_THREAD, K.ATOMICS)),
    K.EXTRA_TRAFFIC: _KindFacts(B.BANDWIDTH, (R.ROW_IN_REGISTERS, R.STAGE_IN_SHARED, R.CACHE_HINTS),
        (K.UNCOALESCED, K.SPILLS, K.LOCAL_ARRAYS)),
    K.MEMORY: _KindFacts(B.BANDWIDTH, (R.ITEMS_IN_FLIGHT, R.WIDE_ACCESS, R.ROW_IN_REGISTERS, R.CACHE_HINTS),
        (K.UNCOALESCED, K.NARROW_ACCESS, K.SPILLS, K.LOCAL_ARRAYS, K.EXTRA_TRAFFIC, K.LATENCY,
        K.LOW_OCCUPANCY, K.TOO_FEW_BLOCKS, K.SERIAL_THREAD, K.TAIL)),
    K.BARRIERS: _KindFacts(B.SERIALISATION,
        (R.SHUFFLE_REDUCTION, R.WARP_PER_ROW, R.ROWS_PER_BLOCK, R.BLOCK_SIZE),
        (K.SERIAL_THREAD, K.BANK_CONFLICTS)),
    K.COMPUTE: _KindFacts(B.COMPUTE,
        (R.HOIST_INVARIANTS, R.UNROLL, R.FAST_INTRINSICS, R.WIDE_ACCESS, R.COMPILER_FLAGS),
        (K.FP64, K.INTEGER_DIVISION, K.SPECIAL_FUNCTIONS, K.DIVERGENCE, K.SPILLS, K.LOCAL_ARRAYS,
        K.BANK_CONFLICTS, K.UNCOALESCED, K.NARROW_ACCESS, K.SERIAL_THREAD, K.ATOMICS, K.TAIL,
        K.IDLE_THREADS)),
    K.LATENCY: _KindFacts(B.LATENCY, (R.ITEMS_IN_FLIGHT, R.WIDE_ACCESS, R.UNROLL, R.BLOCK_SIZE),
        (K.TOO_FEW_BLOCKS, K.LOW_OCCUPANCY, K.NARROW_ACCESS, K.SERIAL_THREAD, K.UNCOALESCED, K.SPILLS,
        K.LOCAL_ARRAYS, K.TAIL)),
}  # fmt: skip


@dataclass(frozen=True)
class RuleInput:
    profile: f.Profile
    costs: PassCosts | None
    roofline: Roofline

    @property
    def launch(self) -> f.LaunchFacts | None:
        return self.profile.launch

    @property
    def code(self) -> f.Instructions | None:
        return self.profile.static.instructions

    @property
    def counters(self) -> Counters:
        return self.profile.counters or Counters()

    @property
    def strides_hold(self) -> bool:
        """Whether neighbours in a warp are neighbours in x, which is what code was read for."""
        if self.launch is None:
            return True
        return self.launch.block[0] % 32 == 0 or self.launch.block[0] == self.launch.threads

    @property
    def fits_cache(self) -> bool:
        """Whether the last-level cache can hold what the kernel touches: else nothing is ever warm."""
        limits, work = self.profile.limits, self.profile.work
        room = self.profile.ceilings.cache_bytes or (limits.llc if limits is not None else 0)
        return work is not None and 0 < work.bytes <= room

    @property
    def cached_share(self) -> float | None:
        """The share of the time that goes when the data is in the cache; None where it cannot be there."""
        warm, cold = self.profile.experiments.warm, self.profile.experiments.cold
        if warm is None or not cold or cold <= 0 or not math.isfinite(warm / cold) or not self.fits_cache:
            return None
        return max(0.0, 1 - warm / cold)

    @property
    def half_share(self) -> float | None:
        """What half the grid takes of the whole's time."""
        half, whole = self.profile.experiments.half_grid, self.profile.experiments.whole_grid
        if half is None or not whole or whole <= 0 or half <= 0 or not math.isfinite(half / whole):
            return None
        return half / whole

    @property
    def launch_share(self) -> float | None:
        """What as many empty launches take of the time; above 1 where that was measured less well."""
        floor, seconds = self.profile.ceilings.least_launch, self.profile.seconds
        if not floor or not seconds or floor <= 0 or seconds <= 0:
            return None
        return self.profile.launches * floor / seconds

    def busy_elsewhere(self, confidence: float) -> float:
        """Confidence in a fault that keeps multiprocessors busy: more where the cache makes no difference."""
        share = self.cached_share
        return confidence if share is None else confidence + (0.1 if share < NO_DIFFERENCE else -0.1)


def make_finding(
    kind: f.Kind,
    gain: float,
    confidence: float,
    source: f.Source,
    evidence: Sequence[str],
    remedies: Iterable[Remedy] = (),
    *,
    least: float = -math.inf,
) -> f.Finding | None:
    """None where the gain is less than `least`. `remedies` where they are not the usual ones of the kind."""
    if gain < least:
        return None
    about = ABOUT[kind]
    chosen = tuple(remedies) or about.remedies
    return f.Finding(
        kind, _clamp_share(gain), _clamp_share(confidence), tuple(evidence), chosen, source, about.bound
    )


def _clamp_share(value: float) -> float:
    return min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0


def source_of(counter: float | None) -> f.Source:
    """Where a finding comes from that this counter confirms, if it is known."""
    return "static" if counter is None else "counters"


def format_percent(share: float) -> str:
    return f"{100 * share:.0f} %"
