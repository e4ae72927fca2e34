"""What is known of one kernel at one workload. Every part may be missing: None is "nobody could say"."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from tunesmith.problem.device import Limits, Resources, compute_occupancy
from tunesmith.problem.plan import Geometry
from tunesmith.problem.template import Remedy

Stall = Literal["memory", "shared", "barrier", "queue", "math", "branch", "dependency", "other"]

ALL = 1.05  # of a whole, with what counters differ in that are read one after the other


@dataclass(frozen=True)
class Counters:
    """What the hardware counted. Shares are 0 to 1."""

    dram: float | None = None  # share of the peak, over the whole time
    l2: float | None = None
    l1: float | None = None
    issue: float | None = None  # cycles in which an instruction was issued
    sm_active: float | None = None  # of the time, on the average multiprocessor
    occupancy: float | None = None  # achieved
    eligible_warps: float | None = None  # a cycle and scheduler
    threads_per_instruction: float | None = None  # of a warp's 32
    dram_read: float | None = None  # bytes
    dram_written: float | None = None
    l2_hits: float | None = None
    load_sectors: float | None = None  # a request; global memory
    store_sectors: float | None = None
    load_bytes_per_sector: float | None = None  # of 32
    store_bytes_per_sector: float | None = None
    shared_wavefronts: float | None = None  # cycles that shared memory was at work
    shared_conflicts: float | None = None  # of these, for conflicts
    local_sectors: float | None = None  # spills and stack, of the sectors L1 was asked for
    shared_pipe: float | None = None  # share of the peak of the unit behind shared memory and L1
    fma: float | None = None  # pipes: share of their peak
    alu: float | None = None
    fp64: float | None = None
    special: float | None = None
    tensor: float | None = None
    stalls: tuple[tuple[Stall, float], ...] = ()  # share of the time warps waited, by reason

    def stalled(self, reason: Stall) -> float | None:
        return dict(self.stalls).get(reason)


Space = Literal["global", "shared"]
Direction = Literal["load", "store", "atomic"]
# How an address varies over the threads of a warp: the same for all; by a known number of bytes from each to
# the next; by some number that only the run knows, as a row's length; or not in a way that can be told.
Pattern = Literal["uniform", "strided", "far", "unknown"]


@dataclass(frozen=True)
class MemoryAccess:
    """Memory instructions of one kind, as often as the code has them."""

    space: Space
    direction: Direction
    width: int  # bytes for each thread
    pattern: Pattern
    hot: bool
    count: int
    stride: int | None = None  # bytes from a thread to its neighbour, where the pattern is `strided`


@dataclass(frozen=True)
class Mix:
    """Instructions by class, as often as the code has them."""

    total: int = 0
    fp64: int = 0
    fp32: int = 0
    fp16: int = 0
    tensor: int = 0
    multiply: int = 0  # integer multiply-add
    conversion: int = 0
    slow_conversion: int = 0  # of these, by the unit that also does special functions
    special: int = 0  # reciprocal, exponential, sine, ...
    division: int = 0  # of integers: sequences, not instructions
    branch: int = 0
    barrier: int = 0
    shuffle: int = 0
    local_load: int = 0  # of spilled registers and arrays on the stack
    local_store: int = 0

    @property
    def local(self) -> int:
        return self.local_load + self.local_store


@dataclass(frozen=True)
class Instructions:
    """What the machine code of one kernel consists of. Hot is what lies in a loop; where there is none,
    everything. Sizes of regions count instructions."""

    all: Mix
    hot: Mix
    accesses: tuple[MemoryAccess, ...] = ()
    loops: int = 0
    bytes_in_flight: int = 0  # most global bytes a thread has asked for before it needs the first of them
    one_thread: int = 0  # behind a condition that one thread of a warp meets
    one_thread_loop: int = 0  # of these, in a loop of that thread alone
    one_thread_global: int = 0  # global accesses in such loops
    split_by_lane: int = 0  # run in addition, since threads of a warp go several ways by their number
    split_by_data: int = 0  # the same by what they loaded
    reading_loops: int = 0  # that only load from global memory, ahead of one that loads and stores
    loaded_per_stored: float | None = None  # global bytes, in a loop that does both


@dataclass(frozen=True)
class LaunchFacts:
    """A launch against the device it runs on."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    threads: int  # in a block
    blocks: int
    sms: int
    blocks_per_sm: int | None = None  # that fit at once
    occupancy: int | None = None  # per cent of a multiprocessor's threads, were the grid endless
    limited_by: tuple[str, ...] = ()  # registers, shared memory, threads, blocks; those that allow the least
    waves: float | None = None  # grid over what the device holds at once
    last_wave: float | None = None  # share of the last wave that is filled
    resident_threads: int | None = None  # on a busy multiprocessor, by this grid
    idle_lanes: float = 0.0  # share of a block's lanes that have no thread
    idle_threads: float | None = None  # share of all threads beyond the number of elements
    cluster: int = 0  # blocks in one; 0: there are none
    clusters: int | None = None  # that run at once: by the driver, or as many as limits would allow
    is_counted: bool = False  # whether the driver says so

    @property
    def cluster_words(self) -> str:
        """Empty where there are none."""
        if not self.cluster:
            return ""
        what = f"clusters of {self.cluster} blocks"
        if self.clusters is None:
            return f"{what}: how many run at once is not known"
        held, room = self.clusters * self.cluster, (self.blocks_per_sm or 0) * self.sms
        of = f", {held} blocks of the {room} that would fit without them" if room else ""
        if self.is_counted:
            return f"{what}: {self.clusters} run at once by the driver{of}"
        return f"{what}: {self.clusters} at once at most, computed from limits; the driver may hold fewer"


@dataclass(frozen=True)
class Point:
    """Bytes moved, reads and writes together, and how long that takes."""

    bytes: int
    seconds: float


@dataclass(frozen=True)
class Ceilings:
    """What the device was measured to do at best. Rates are operations a second; a multiply-add is two."""

    copy: tuple[Point, ...] = ()  # as much read as written, cold
    read: tuple[Point, ...] = ()  # cold
    launch: float | None = None  # seconds a launch, one after the other
    graph_launch: float | None = None  # the same within a graph
    fp32: float | None = None
    fp16: float | None = None
    fp64: float | None = None
    tensor: float | None = None
    cache_bytes: int | None = None  # last level
    cache_bandwidth: float | None = None
    measured_on: str = ""  # a date; empty where nobody wrote it down

    @property
    def least_launch(self) -> float | None:
        """Kernels are timed in graphs, where they can be."""
        return self.launch if self.graph_launch is None else self.graph_launch


@dataclass(frozen=True)
class Operations:
    """What must be computed, where the user says so; a multiply-add is two."""

    fp32: float | None = None
    fp16: float | None = None
    fp64: float | None = None
    tensor: float | None = None


@dataclass(frozen=True)
class WorkNeeded:
    """What must be done at a workload, whatever the kernel."""

    read: int  # bytes
    written: int
    operations: Operations = Operations()

    @property
    def bytes(self) -> int:
        return self.read + self.written


@dataclass(frozen=True)
class BlockTime:
    threads: int
    seconds: float


@dataclass(frozen=True)
class Experiments:
    """Timings of the same code under other conditions. Seconds."""

    warm: float | None = None  # on data that the cache holds
    cold: float | None = None
    whole_grid: float | None = None
    half_grid: float | None = None  # the first half of the blocks alone
    blocks: tuple[BlockTime, ...] = ()  # other block sizes, where the kernel takes any


@dataclass(frozen=True)
class StaticFacts:
    """What a build tells."""

    resources: Resources = field(default_factory=Resources)
    instructions: Instructions | None = None
    no_instructions: str = ""  # why not, in words
    doubles: bool | None = None  # whether an argument is in double precision


@dataclass(frozen=True)
class LaunchPart:
    """One of an operator's several launches."""

    entry: str
    static: StaticFacts
    launch: LaunchFacts
    share: float | None = None  # of the operator's time


@dataclass(frozen=True)
class Profile:
    """Of several launches `static` and `launch` are those of the one that costs most, as far as is known."""

    kernel: str
    workload: str
    seconds: float | None = None  # measured
    warm: bool = False  # whether on data in the cache
    limits: Limits | None = None
    work: WorkNeeded | None = None
    static: StaticFacts = StaticFacts()
    launch: LaunchFacts | None = None
    ceilings: Ceilings = Ceilings()
    experiments: Experiments = Experiments()
    counters: Counters | None = None
    no_counters: str = ""  # why not, in words
    parts: tuple[LaunchPart, ...] = ()  # in their order, where there are several launches
    cannot_run: str = ""  # why not at this workload, in words

    @property
    def launches(self) -> int:
        """How many there are of the operator's."""
        return max(1, len(self.parts))

    @property
    def main(self) -> LaunchPart | None:
        """Of several launches the one that `static` and `launch` tell of."""
        same = [part for part in self.parts if (part.static, part.launch) == (self.static, self.launch)]
        return max(same, key=lambda part: part.share or 0.0, default=None)


Source = Literal["counters", "static", "experiment", "timing"]


class Bound(StrEnum):
    BANDWIDTH = "bandwidth"
    LATENCY = "latency"
    LAUNCH = "launch"
    COMPUTE = "compute"
    OCCUPANCY = "occupancy"
    TAIL = "tail"
    PARTIAL_SECTORS = "partial sectors"
    BANK_CONFLICTS = "bank conflicts"
    SPILLS = "spills"
    SERIALISATION = "serialisation"
    UNKNOWN = "unknown"


class Kind(StrEnum):
    """Faults, and at the end symptoms, which are told where no fault explains them."""

    TOO_FEW_BLOCKS = "too_few_blocks"
    TAIL = "tail"
    IDLE_THREADS = "idle_threads"
    SPILLS = "spills"
    LOCAL_ARRAYS = "local_arrays"
    UNCOALESCED = "uncoalesced"
    NARROW_ACCESS = "narrow_access"
    BANK_CONFLICTS = "bank_conflicts"
    FP64 = "fp64"
    INTEGER_DIVISION = "integer_division"
    SPECIAL_FUNCTIONS = "special_functions"
    DIVERGENCE = "divergence"
    SERIAL_THREAD = "serial_thread"
    ATOMICS = "atomics"
    LAUNCH = "launch"
    BLOCK_SIZE = "block_size"
    LOW_OCCUPANCY = "low_occupancy"
    UNEVEN_BLOCKS = "uneven_blocks"
    EXTRA_TRAFFIC = "extra_traffic"
    MEMORY = "memory"
    BARRIERS = "barriers"
    COMPUTE = "compute"
    LATENCY = "latency"


@dataclass(frozen=True)
class Finding:
    kind: Kind
    gain: float  # share of the present time that is at stake, 0 to 1: an estimate
    confidence: float  # 0 to 1
    evidence: tuple[str, ...]  # the numbers, in words
    remedies: tuple[Remedy, ...]  # the likeliest first
    source: Source
    bound: Bound

    @property
    def score(self) -> float:
        return self.gain * self.confidence


@dataclass(frozen=True)
class RoofFacts:
    """What must be done at a workload, and the least time of it under each ceiling that is known."""

    moved: int  # bytes
    operations: float = 0.0  # as stated, of all kinds; 0: none are
    floors: tuple[tuple[str, float], ...] = ()  # ceiling and seconds, the highest first


@dataclass(frozen=True)
class Diagnosis:
    bound: Bound
    summary: str  # one sentence
    confidence: float
    findings: tuple[Finding, ...]  # the most worthwhile first
    distance: float | None = None  # time over the floor
    floor: float | None = None  # seconds
    ceiling: str = ""  # what the floor is made of
    notes: tuple[str, ...] = ()  # what was not known, and why
    launch: str = ""  # of several launches the one that the findings are about
    clusters: str = ""  # in words: how many run at once, where a launch has any
    roof: RoofFacts | None = None  # None: nobody knows what must be done

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """Of all findings, in their order, each once."""
        return tuple(dict.fromkeys(r for finding in self.findings for r in finding.remedies))


@dataclass(frozen=True)
class View:
    """One kernel at one workload."""

    profile: Profile
    diagnosis: Diagnosis
    notes: tuple[str, ...] = ()  # what was not found out, and why


@dataclass(frozen=True)
class WorkloadPage:
    name: str
    sizes: dict[str, int]
    warm: bool
    views: tuple[View, ...]  # the original first


@dataclass(frozen=True)
class ProfilePage:
    problem: str
    device: str
    driver: str
    compiler: str
    ceilings: Ceilings
    workloads: tuple[WorkloadPage, ...]
    notes: tuple[str, ...] = ()
    missing: str = ""  # why nothing was measured
    plot: str = ""  # the file with the roofline

    @property
    def no_counters(self) -> tuple[str, ...]:
        """Why there are none, each reason once."""
        reasons = [v.profile.no_counters for w in self.workloads for v in w.views if not v.profile.counters]
        return tuple(dict.fromkeys(reason for reason in reasons if reason))


# What a multiprocessor has, by the names of `Limits`, and what people call it.
_HAS = {
    "registers_per_sm": "registers", "shared_per_sm": "shared memory",
    "threads_per_sm": "threads", "blocks_per_sm": "blocks",
}  # fmt: skip
_PLENTY = 1 << 40  # more than any device has: what still limits then is the one thing that was not raised


def launch_facts(
    geometry: Geometry, limits: Limits, resources: Resources, local: int = 0, elements: int | None = None,
    clusters: int | None = None,
) -> LaunchFacts:  # fmt: skip
    """`resources` are the kernel's own, `local` the bytes of its local arguments; `elements` is the number of
    items there are, where a thread has one at most; `clusters` what the driver says runs at once."""
    threads, blocks = math.prod(geometry.block), math.prod(geometry.grid)
    shared = geometry.shared + local
    held = compute_occupancy(limits, resources, threads, shared)
    lanes = -(-threads // limits.warp) * limits.warp
    facts = LaunchFacts(
        *(geometry.grid, geometry.block, threads, blocks, limits.sms),
        idle_lanes=1 - threads / lanes,
        idle_threads=None if elements is None else max(0.0, 1 - elements / (threads * blocks)),
        cluster=math.prod(geometry.cluster) if geometry.cluster else 0,
        clusters=clusters,
        is_counted=clusters is not None,
    )
    if held is None or held.blocks_per_sm < 1:
        return facts
    if facts.cluster and clusters is None:  # a cluster's blocks share a part of the device, which fits fewer
        facts = replace(facts, clusters=held.blocks_per_sm * limits.sms // facts.cluster)
    waves = blocks / (held.blocks_per_sm * limits.sms)
    return replace(
        facts,
        blocks_per_sm=held.blocks_per_sm,
        occupancy=held.percent,
        limited_by=occupancy_limiters(limits, resources, threads, shared),
        waves=waves,
        last_wave=waves - math.ceil(waves) + 1,
        resident_threads=threads * min(held.blocks_per_sm, -(-blocks // limits.sms)),
    )


def occupancy_limiters(limits: Limits, resources: Resources, threads: int, shared: int) -> tuple[str, ...]:
    """What allows the fewest blocks on a multiprocessor: several where they agree, none if nobody knows."""
    allowed: dict[str, int] = {}
    for limit, words in _HAS.items():
        others = {name: _PLENTY for name in _HAS if name != limit}
        held = compute_occupancy(Limits(**(vars(limits) | others)), resources, threads, shared)
        if held is None or not getattr(limits, limit):
            return ()
        allowed[words] = held.blocks_per_sm
    least = min(allowed.values())
    return tuple(words for words, blocks in allowed.items() if blocks == least)
