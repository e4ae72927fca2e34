"""A profile of one kernel at one workload: what its build tells, its time, experiments, and counters.

Counting happens after all timing, in a process of its own: none of it lands in a time. Experiments run the
same code under other conditions; their results are thrown away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from tunesmith import backends
from tunesmith.backends import port
from tunesmith.backends.messages import (
    ClustersHeld,
    Contender,
    CountClusters,
    Counted,
    CountLaunches,
    Draw,
    LaunchOnce,
    Load,
    TimingPolicy,
)
from tunesmith.backends.port import CeilingKernels, Counting
from tunesmith.base.text import seed_of
from tunesmith.lab import measure as measuring
from tunesmith.lab.build import Builders, BuiltCode
from tunesmith.lab.memory import Verdict
from tunesmith.lab.runner import LOAD_SECONDS, Race, Runner
from tunesmith.problem.device import Device
from tunesmith.problem.plan import BufferPlan, CannotRun, Geometry, Plan, ScalarPlan, plan_launch
from tunesmith.problem.problem import Launch, Problem, Role, Workload
from tunesmith.problem.template import Template, Variant, original_variant
from tunesmith.profiles import facts as f
from tunesmith.profiles.diagnose import diagnose_profile
from tunesmith.profiles.facts import (
    Ceilings,
    Experiments,
    LaunchFacts,
    LaunchPart,
    Point,
    Profile,
    launch_facts,
)
from tunesmith.profiles.roofline import correct_ceilings, describe_corrections, work_of
from tunesmith.run.events import Profiled
from tunesmith.run.outcome import median
from tunesmith.space.configset import Config

if TYPE_CHECKING:
    from tunesmith.backends.port import ReadInstructions


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


def measure_ceilings(
    device: Device,
    builders: Builders,
    runner: Runner,
    *,
    progress: Callable[[str], None] = lambda _text: None,
) -> MeasuredCeilings:
    source = backends.find_backend_kind(device.backend).ceilings
    if source is None:
        why = f"there are no kernels for {device.backend} to measure ceilings with"
        return Ceilings(), (why,)
    return _Measuring(device, builders, runner, source, progress).all()


def variant_of(backend: str, file: str, entries: Sequence[str]) -> Variant:
    """A source of the backend's own kernels."""
    launches = tuple(Launch(entry, (), (), ()) for entry in entries)
    language = backends.find_backend_kind(backend).languages[0].name
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
        measured, notes = measure_ceilings(device, builders, runner(), progress=progress)
        known = replace(measured, measured_on=today()), notes
        if stored is not None and measured.copy and measured.read:
            stored.put(device, *known)
    # As it was measured is what is stored: what is made of it may change.
    ceilings = correct_ceilings(known[0])
    said = describe_corrections(known[0], ceilings)
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
        read = [p for nbytes in sizes if (p := self._measure_moving(code, "read", nbytes))]
        copy = [p for nbytes in sizes if (p := self._measure_moving(code, "copy", nbytes))]
        cache, llc = None, self._device.limits.llc
        if llc:
            warm = [
                self._measure_moving(code, "copy", _round_to_items(llc // part), warm=True)
                for part in CACHE_SHARES
            ]
            cache = max((p.bytes / p.seconds for p in warm if p), default=None)
        launch = self._measure_empty_launch(code, plain=True)
        recorded = self._measure_empty_launch(code, plain=False) if self._device.inspects else None
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

    def _measure_moving(self, code: BuiltCode, what: str, nbytes: int, warm: bool = False) -> Point | None:
        """The fastest of a few ways to move that many bytes."""
        self._progress(f"measuring what the device can do at best: {what}, {nbytes >> 10} KiB")
        plans = [
            moving_plan(what, nbytes, items, min(block, self._device.limits.max_threads))
            for items, block in (HOST_WAYS if self._device.is_host else GPU_WAYS)
            if items in self._source.items
        ]
        seconds = self._time_fastest(code, plans, f"{what} of {nbytes} bytes", warm=warm)
        return Point(nbytes, seconds) if seconds else None

    def _measure_empty_launch(self, code: BuiltCode, *, plain: bool) -> float | None:
        self._progress("measuring what the device can do at best: launches")
        geometry = Geometry("empty", (1, 1, 1), (1, 1, 1), 0, ())
        plan = Plan((), (), (), (), (), (geometry,))
        return self._time_fastest(code, [plan], "a launch", warm=True, plain=plain)

    def _rate(self, code: BuiltCode, kind: str) -> float | None:
        self._progress(f"measuring what the device can do at best: {kind}")
        rounds = ROUNDS_ON_HOST if self._device.is_host else ROUNDS
        blocks = BLOCKS_PER_UNIT * self._device.limits.sms
        block = min(BLOCK, self._device.limits.max_threads)
        factors = (ScalarPlan(name, "float32", 0.5) for name in ("a", "b"))
        scalars = (*factors, ScalarPlan("rounds", "int32", rounds))
        names = ("out", "a", "b", "rounds")
        geometry = Geometry(kind, (blocks, 1, 1), (block, 1, 1), 0, names)
        plan = Plan((), (_array_plan("out", "output", ITEM_BYTES),), scalars, (), (), (geometry,))
        seconds = self._time_fastest(code, [plan], f"the {kind} rate", warm=True)
        operations = 2.0 * self._source.lanes[kind] * rounds * blocks * block
        return operations / seconds if seconds else None

    def _time_fastest(
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
    each = _round_to_items(nbytes) // 2 if copies else _round_to_items(nbytes)
    vectors = each // ITEM_BYTES
    grid = -(-vectors // (block * items))
    out = _array_plan("out", "output", each if copies else ITEM_BYTES)
    geometry = Geometry(f"{what}{items}", (grid, 1, 1), (block, 1, 1), 0, ("out", "in", "n"))
    arrays = (out, _array_plan("in", "input", each))
    return Plan((("n", vectors),), arrays, (ScalarPlan("n", "int64", vectors),), (), (), (geometry,))


def _round_to_items(nbytes: int) -> int:
    return max(2 * ITEM_BYTES, nbytes // (2 * ITEM_BYTES) * (2 * ITEM_BYTES))


def _array_plan(name: str, role: Role, nbytes: int) -> BufferPlan:
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


@dataclass(frozen=True)
class ProfileSubject:
    """What is looked at: the original, or a configuration of a template."""

    template: Template | None = None
    config: Config | None = None

    @property
    def name(self) -> str:
        return "original" if self.config is None else str(self.config)

    def variant(self, problem: Problem, workload: Workload, device: Device) -> Variant:
        sizes = workload.as_dict()
        if self.template is None or self.config is None:
            return original_variant(problem, sizes)
        return self.template.on(device).render(problem, self.config, sizes)

    def other_blocks(self) -> tuple[Config, ...]:
        """The same with half and twice as many threads in a block, where one parameter decides that and has
        such a value. Without a template it would take editing: a kernel may rely on its block."""
        if self.template is None or self.config is None:
            return ()
        values = self.config.as_dict()
        used = {n for launch in self.template.launches for e in launch.block for n in e.names if n in values}
        if len(used) != 1:
            return ()
        (name,) = used
        known = next(p.values for p in self.template.space.params if p.name == name)
        wanted = [values[name] // 2, 2 * values[name]]
        return tuple(self.config.replace(name, v) for v in wanted if v in known and v != values[name])


@dataclass(frozen=True)
class Looked:
    """A profile, and what was not found out and why."""

    profile: Profile
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Prepared:
    profile: Profile
    code: BuiltCode
    plan: Plan


def clusters_held(runner: Runner | None, code: BuiltCode, plan: Plan) -> tuple[int | None, ...]:
    """How many of each launch's clusters run at once, by the driver; None where it has none or does not
    say."""
    unknown = (None,) * len(plan.launches)
    if runner is None or not any(g.cluster for g in plan.launches):
        return unknown
    asked = CountClusters(code.code_digest, plan)
    reply = runner.ask_loaded(ClustersHeld, [code], asked, LOAD_SECONDS)
    known = () if isinstance(reply, Verdict) else reply[0].most
    return known if len(known) == len(unknown) else unknown


@dataclass
class Profiler:
    """`runner` None: the device is not here, and only what a build tells is known."""

    _problem: Problem
    _device: Device
    _builders: Builders
    _runner: Runner | None
    _counting: port.Counting
    _instructions: ReadInstructions
    _: KW_ONLY
    ceilings: f.Ceilings
    seed: int = 0
    progress: Callable[[str], None] = lambda _text: None

    def known(self, subject: ProfileSubject, workload: Workload, seconds: float) -> Looked:
        """Without timing anything: it is known how long it takes. Counters are taken where there are any."""
        found = self._built(subject, workload)
        if isinstance(found, Looked):
            return found
        counted = self._count_launches(found.profile, found.code, found.plan, workload)
        profile = replace(found.profile, seconds=seconds, counters=counted.counters)
        return Looked(replace(profile, no_counters=counted.why_not))

    def profile(self, subject: ProfileSubject, workload: Workload) -> Looked:
        found = self._built(subject, workload)
        if isinstance(found, Looked):
            return found
        if self._runner is None:
            return Looked(replace(found.profile, no_counters="the device is not here"))
        profile, code, plan = found.profile, found.code, found.plan
        where, warm = f"{subject.name} at {workload.name}", workload.cache == "warm"
        self.progress(f"timing {where}")
        timed = self._time(code, (plan,), warm)
        if isinstance(timed, Verdict):
            said = f"{where} could not be timed: {timed.status}, {timed.first_line}"
            return Looked(replace(profile, no_counters="the kernel does not run through"), (said,))
        seconds = timed[0]
        self.progress(f"experiments with {where}")
        experiments, notes = self._run_experiments(subject, workload, code, plan, seconds)
        profile, unknown = self._weigh_launches(profile, code, plan, warm)
        notes = (*notes, *unknown)
        if not isinstance(self._counting, port.NoCounting):
            self.progress(f"counting {where}")
        counted = self._count_launches(profile, code, plan, workload)
        if counted.left_out:
            few = ", ".join(counted.left_out[:3]) + (", ..." if len(counted.left_out) > 3 else "")
            notes = (*notes, f"{len(counted.left_out)} metrics are unknown to the profiler here: {few}")
        profile = replace(profile, seconds=seconds, experiments=experiments)
        return Looked(replace(profile, counters=counted.counters, no_counters=counted.why_not), notes)

    def _built(self, subject: ProfileSubject, workload: Workload) -> _Prepared | Looked:
        """What its build and its launch tell; `Looked` where it cannot run."""
        self.progress(f"building {subject.name} at {workload.name}")
        found = Profile(
            kernel=subject.name,
            workload=workload.name,
            warm=workload.cache == "warm",
            limits=self._device.limits,
            work=necessary_work(self._problem, workload),
            ceilings=self.ceilings,
        )
        variant = subject.variant(self._problem, workload, self._device)
        what = "the kernel" if variant.config is None else f"the template, at {variant.config},"
        code = self._builders.build(variant, what, "mend the source, or choose another configuration")
        plan = self._plan(variant, workload, code)
        if isinstance(plan, CannotRun):
            return Looked(replace(found, cannot_run=plan.reason))
        held = clusters_held(self._runner, code, plan)
        parts = tuple(
            LaunchPart(
                g.entry, self._static_facts(code, g.entry), self._launch_facts(code, plan, g, clusters)
            )
            for g, clusters in zip(plan.launches, held, strict=True)
        )
        main = parts[main_place(plan.launches)]
        several = parts if len(parts) > 1 else ()
        found = replace(found, static=main.static, launch=main.launch, parts=several)
        return _Prepared(found, code, plan)

    def refusal(self, subject: ProfileSubject, workload: Workload) -> str:
        """Why it cannot run there, by its build; empty where it can."""
        found = self._built(subject, workload)
        return found.profile.cannot_run if isinstance(found, Looked) else ""

    def _count_launches(self, found: Profile, code: BuiltCode, plan: Plan, workload: Workload) -> Counted:
        main = found.parts.index(found.main) if found.main is not None else 0
        load = Load(code.unit, code.code_digest, self._device)
        launch = LaunchOnce(Contender(code.code_digest, plan), self._draw(), workload.cache == "warm")
        return self._counting.count(CountLaunches(load, launch, main), code.binary)

    def _plan(self, variant: Variant, workload: Workload, code: BuiltCode) -> Plan | CannotRun:
        return plan_launch(self._problem, variant, workload.as_dict(), self._device, code.resources)

    def _static_facts(self, code: BuiltCode, entry: str) -> f.StaticFacts:
        instructions, why_not = self._instructions(code.binary, entry)
        doubles = any(a.type == "float64" for a in self._problem.arguments)
        return f.StaticFacts(code.resources.of(entry), instructions, why_not, doubles)

    def _launch_facts(self, code: BuiltCode, plan: Plan, main: Geometry, clusters: int | None) -> LaunchFacts:
        local = sum(item.nbytes for item in plan.locals if item.name in main.args)
        items = max((b.count for b in plan.buffers if b.role != "workspace"), default=0)
        threads = math.prod(main.grid) * math.prod(main.block)
        elements = items if 0 < items <= threads else None  # else a thread has several, and none is too many
        uses = code.resources.of(main.entry)
        return launch_facts(main, self._device.limits, uses, local, elements, clusters)

    def _run_experiments(
        self, subject: ProfileSubject, workload: Workload, code: BuiltCode, plan: Plan, seconds: float
    ) -> tuple[Experiments, tuple[str, ...]]:
        notes: list[str] = []
        warm = workload.cache == "warm"
        other = self._time(code, (plan,), not warm)
        both = {"warm" if warm else "cold": seconds}
        if isinstance(other, Verdict):
            notes.append(f"{'cold' if warm else 'warm'} it was not timed: {other.first_line}")
        else:
            both["cold" if warm else "warm"] = other[0]
        whole = half = None
        halved = half_grid(plan)
        if halved is not None:
            grids = self._time(code, (plan, halved), warm)
            if isinstance(grids, Verdict):
                notes.append(f"half the grid was not timed: {grids.first_line}")
            else:
                whole, half = grids
        blocks = self._blocks(subject, workload)
        if subject.template is None:
            notes.append("other blocks were not tried on the original: that would take editing it")
        elif blocks:
            present = f.BlockTime(math.prod(main_launch(plan).block), seconds)
            blocks = tuple(sorted((*blocks, present), key=lambda b: b.threads))
        return Experiments(both.get("warm"), both.get("cold"), whole, half, blocks), tuple(notes)

    def _weigh_launches(
        self, found: Profile, code: BuiltCode, plan: Plan, warm: bool
    ) -> tuple[Profile, tuple[str, ...]]:
        """Of several launches what each takes; the one that takes most is the one to tell of."""
        if not found.parts:
            return found, ()
        timed = self._time(code, (*launch_prefixes(plan), plan), warm)
        if isinstance(timed, Verdict):
            return found, (f"its launches were not timed one by one: {timed.first_line}",)
        pairs = zip(found.parts, launch_shares(timed[:-1], timed[-1]), strict=True)
        parts = tuple(replace(part, share=share) for part, share in pairs)
        main = max(parts, key=lambda part: part.share or 0.0)
        return replace(found, parts=parts, static=main.static, launch=main.launch), ()

    def _blocks(self, subject: ProfileSubject, workload: Workload) -> tuple[f.BlockTime, ...]:
        found: list[f.BlockTime] = []
        for config in subject.other_blocks():
            variant = replace(subject, config=config).variant(self._problem, workload, self._device)
            code = self._builders.start(variant).result()
            if isinstance(code, Verdict):
                continue
            plan = self._plan(variant, workload, code)
            if isinstance(plan, CannotRun):
                continue
            timed = self._time(code, (plan,), workload.cache == "warm")
            if not isinstance(timed, Verdict):
                found.append(f.BlockTime(math.prod(main_launch(plan).block), timed[0]))
        return tuple(found)

    def _time(self, code: BuiltCode, plans: Sequence[Plan], warm: bool) -> list[float] | Verdict:
        assert self._runner is not None
        policy = measuring.policies_of(self._device).baseline
        race = Race(tuple((code, plan) for plan in plans), self._draw(), policy, warm)
        deadline = measuring.baseline_deadline(self._device, plans[0].nbytes)
        if self._problem.inputs is not None:
            deadline += measuring.INPUT_SECONDS
        run = self._runner.time(race, deadline)
        return run if isinstance(run, Verdict) else [median(samples) for samples in run.timed.samples]

    def _draw(self) -> Draw:
        return Draw("normal", seed_of(self.seed, "timing"), self._problem.inputs)


def necessary_work(problem: Problem, workload: Workload) -> f.WorkNeeded:
    sizes = workload.as_dict()
    stated = {kind: float(expr.evaluate(sizes)) for kind, expr in problem.operations}
    return work_of(problem, sizes, f.Operations(**stated))


def main_launch(plan: Plan) -> Geometry:
    return plan.launches[main_place(plan.launches)]


def half_grid(plan: Plan) -> Plan | None:
    """The first half of the blocks alone, by the last axis that has several; None where a launch has but one
    block, or its blocks wait for others."""
    if any(math.prod(g.grid) < 2 or g.cooperative or g.cluster for g in plan.launches):
        return None
    return replace(plan, launches=tuple(replace(g, grid=_halve_dims(g.grid)) for g in plan.launches))


def _halve_dims(grid: tuple[int, int, int]) -> tuple[int, int, int]:
    x, y, z = grid
    if z > 1:
        return x, y, -(-z // 2)
    return (x, -(-y // 2), z) if y > 1 else (-(-x // 2), y, z)


def launch_prefixes(plan: Plan) -> tuple[Plan, ...]:
    """The first launch, the first two, and so on, without all of them. Each finds what those before it have
    written, which a launch by itself would not."""
    return tuple(replace(plan, launches=plan.launches[:count]) for count in range(1, len(plan.launches)))


def launch_shares(first_ones: Sequence[float], whole: float) -> tuple[float, ...]:
    """Of the whole time, by how much longer each makes what is before it; noise is no negative share."""
    ends = [*first_ones, whole]
    each = [max(0.0, end - begin) for begin, end in zip([0.0, *first_ones], ends, strict=True)]
    total = sum(each)
    return tuple(seconds / total if total > 0 else 1 / len(each) for seconds in each)


def main_place(launches: Sequence[Geometry]) -> int:
    """Which has the most threads: as long as nobody knows, the one that costs most."""
    threads = [math.prod(g.grid) * math.prod(g.block) for g in launches]
    return threads.index(max(threads))


@dataclass
class ProfileSession:
    """Nothing is measured but ceilings, once for a device, and counters where the user wants them."""

    problem: Problem
    device: Device
    counting: Counting
    instructions: ReadInstructions
    saved: CeilingsStore | None
    seed: int
    progress: Callable[[str], None]
    _profiler: Profiler | None = field(default=None, init=False)
    _notes: tuple[str, ...] = field(default=(), init=False)  # of the ceilings

    def prepare(self, builders: Builders, runner: Runner) -> None:
        """Measure what has to be, before anyone's clock runs. After what goes wrong the first look tries
        again."""
        try:
            self._ready(builders, runner)
        except Exception as error:  # see `look`
            self.progress(f"ceilings were not measured: {_describe_error(error)}")

    def look(
        self, builders: Builders, runner: Runner, subject: ProfileSubject, workload: str, seconds: float
    ) -> Profiled:
        """Whatever goes wrong here is a note: a run needs no profile to go on."""
        config = subject.config
        try:
            profiler = self._ready(builders, runner)
            looked = profiler.known(subject, self.problem.workload(workload), seconds)
        except Exception as error:  # also what nobody thought of: profilers and disassemblers are not ours
            return Profiled(config, workload, None, (_describe_error(error),))
        return Profiled(config, workload, diagnose_profile(looked.profile), (*looked.notes, *self._notes))

    def _ready(self, builders: Builders, runner: Runner) -> Profiler:
        if self._profiler is not None:
            return self._profiler
        where = (self.saved, self.device, builders)
        found, self._notes = known_or_measured(*where, lambda: runner, self.progress)
        parts = (self.problem, self.device, builders, runner, self.counting, self.instructions)
        self._profiler = Profiler(*parts, ceilings=found, seed=self.seed, progress=self.progress)
        return self._profiler


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]
