"""A profile with what was computed from it: what every rule of the diagnosis looks at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tunesmith.core.profile.costs import PassCosts
from tunesmith.core.profile.facts import Counters, Experiments, Instructions, LaunchFacts, Profile
from tunesmith.core.profile.findings import Bound, Finding, Kind, Source
from tunesmith.core.profile.remedies import Remedy
from tunesmith.core.profile.roofline import Roofline

# How sure a finding is, by where it comes from: what hardware counted was seen; code was read, and what was
# read may not be what runs most.
SEEN, KNOWN, READ, GUESSED = 0.9, 0.8, 0.65, 0.35
NO_DIFFERENCE = 0.15  # share of the time: less of it goes with data in the cache, and memory is not to blame


@dataclass(frozen=True)
class _KindFacts:
    """What a kind of finding means: what bounds the kernel, what helps, the likeliest first, and of a symptom
    what it follows from: where one of these is found, it is not told beside it."""

    bound: Bound
    remedies: tuple[Remedy, ...]
    causes: tuple[Kind, ...] = ()


K, B, R = Kind, Bound, Remedy  # short, for this table alone
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
    profile: Profile
    costs: PassCosts | None
    roofline: Roofline

    @property
    def launch(self) -> LaunchFacts | None:
        return self.profile.launch

    @property
    def code(self) -> Instructions | None:
        return self.profile.static.instructions

    @property
    def counters(self) -> Counters:
        return self.profile.counters or Counters()

    @property
    def experiments(self) -> Experiments:
        return self.profile.experiments

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
        warm, cold = self.experiments.warm, self.experiments.cold
        if warm is None or not cold or cold <= 0 or not math.isfinite(warm / cold) or not self.fits_cache:
            return None
        return max(0.0, 1 - warm / cold)

    @property
    def half_share(self) -> float | None:
        """What half the grid takes of the whole's time."""
        half, whole = self.experiments.half_grid, self.experiments.whole_grid
        if half is None or not whole or whole <= 0 or half <= 0 or not math.isfinite(half / whole):
            return None
        return half / whole

    @property
    def launch_share(self) -> float | None:
        """What as many empty launches take of the time; above 1 where that was measured less well."""
        ceilings, seconds = self.profile.ceilings, self.profile.seconds
        floor = ceilings.launch if ceilings.graph_launch is None else ceilings.graph_launch
        if not floor or not seconds or floor <= 0 or seconds <= 0:
            return None
        return self.profile.launches * floor / seconds

    def busy_elsewhere(self, confidence: float) -> float:
        """Confidence in a fault that keeps multiprocessors busy: more where the cache makes no difference."""
        share = self.cached_share
        return confidence if share is None else confidence + (0.1 if share < NO_DIFFERENCE else -0.1)


def finding(
    kind: Kind,
    gain: float,
    confidence: float,
    source: Source,
    evidence: Sequence[str],
    remedies: Iterable[Remedy] = (),
) -> Finding:
    """`remedies` where they are not the usual ones of the kind."""
    about = ABOUT[kind]
    chosen = tuple(remedies) or about.remedies
    return Finding(kind, _share(gain), _share(confidence), tuple(evidence), chosen, source, about.bound)


def _share(value: float) -> float:
    return min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0


def source_of(counter: float | None) -> Source:
    """Where a finding comes from that this counter confirms, if it is known."""
    return "static" if counter is None else "counters"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"
