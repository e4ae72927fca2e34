"""Ceilings by a device whose every time is known, and by the real ones that are here."""

from __future__ import annotations

import math
import time
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cuda_here import needs_nvrtc
from tests.opencl_here import needs_opencl
from tests.wording import says
from tunesmith import backends
from tunesmith.backends.fake import FakeBackend
from tunesmith.backends.messages import Timed, Unit
from tunesmith.lab.build import BuiltCode
from tunesmith.lab.memory import Verdict
from tunesmith.lab.profile import (
    ITEM_BYTES,
    MeasuredCeilings,
    known_or_measured,
    measure_ceilings,
    moving_plan,
    sizes_for,
)
from tunesmith.lab.runner import Race, RaceRun
from tunesmith.problem.device import Device, Resources
from tunesmith.problem.plan import Plan, Status
from tunesmith.problem.template import Variant
from tunesmith.profiles.facts import Ceilings
from tunesmith.profiles.roofline import best_bandwidth, correct_ceilings, is_sound
from tunesmith.session import place

LAUNCH, GRAPH, BANDWIDTH, WARM, RATE = 3e-6, 1e-6, 4e12, 8e12, 60e12


@dataclass
class KnownDevice:
    """Builders and runner in one: kernels take as long as their bytes and operations, wide ones less."""

    broken: tuple[str, ...] = ()  # files that do not build, entries that do not run
    raced: list[Race] = field(default_factory=list)

    def start(self, variant: Variant) -> Future[BuiltCode | Verdict]:
        built: Future[BuiltCode | Verdict] = Future()
        if variant.path in self.broken:
            built.set_result(Verdict(Status.BUILD_FAILED, "there is no such header\nsecond line"))
        else:
            unit = Unit(variant.path, variant.source, variant.language, (), variant.entries)
            built.set_result(BuiltCode(unit, b"", variant.digest, Resources(), 0.1))
        return built

    def time(self, race: Race, deadline: float) -> RaceRun | Verdict:
        self.raced.append(race)
        entries = {plan.launches[0].entry for _, plan in race.contenders}
        if entries & set(self.broken):
            return Verdict(Status.CRASHED, "killed by SIGSEGV")
        seconds = [self.seconds(code, plan, race) for code, plan in race.contenders]
        return RaceRun(Timed(tuple((s, s * 1.1, s) for s in seconds)), ())

    def seconds(self, code: BuiltCode, plan: Plan, race: Race) -> float:
        (launch,) = plan.launches
        assert launch.entry in code.unit.entries
        start = LAUNCH if race.plain else GRAPH
        if launch.entry == "empty":
            return start
        if launch.entry.startswith("fp"):
            rounds = {s.name: s.value for s in plan.scalars}["rounds"]
            lanes = {"fp32": 16, "fp16": 32}[launch.entry]
            return 2 * lanes * rounds * math.prod(launch.grid) * math.prod(launch.block) / RATE
        slower = 1.0 if launch.entry.endswith("4") else 1.2
        return start + slower * plan.nbytes / (WARM if race.warm else BANDWIDTH)


def gpu(**limits: int) -> Device:
    device = FakeBackend().devices()[0]
    large = {"memory": 141 << 30, "max_allocation": 141 << 30, "llc": 50 << 20, "sms": 132, **limits}
    return replace(device, backend="cuda", kind="gpu", inspects=True, limits=replace(device.limits, **large))


def measured(device: Device, known: KnownDevice) -> MeasuredCeilings:
    return measure_ceilings(device, known, known)  # type: ignore[arg-type]


def test_what_the_device_does_is_what_is_found() -> None:
    found = measured(gpu(), KnownDevice())
    ceilings = found[0]
    assert found[1] == ()
    assert [p.bytes for p in ceilings.copy] == [4**k << 16 for k in range(8)]
    assert [p.bytes for p in ceilings.read] == [p.bytes for p in ceilings.copy]
    for point in ceilings.copy:
        assert point.seconds == pytest.approx(GRAPH + point.bytes / BANDWIDTH)  # the fastest way counts
    assert ceilings.launch == LAUNCH
    assert ceilings.graph_launch == GRAPH
    assert ceilings.fp32 == pytest.approx(RATE)
    assert ceilings.fp16 == pytest.approx(RATE)
    assert ceilings.cache_bytes == 50 << 20
    assert ceilings.cache_bandwidth is not None
    assert BANDWIDTH < ceilings.cache_bandwidth < WARM


def test_bandwidth_is_measured_cold_and_that_of_the_cache_warm_within_it() -> None:
    known = KnownDevice()
    measured(gpu(), known)
    moving = [r for r in known.raced if r.contenders[0][1].launches[0].entry[:4] in ("copy", "read")]
    for race in moving:
        assert all(p.nbytes <= 50 << 18 for _, p in race.contenders) if race.warm else True
    assert sum(race.warm for race in moving) == 2
    assert len(moving) == 18


def test_a_small_memory_gets_small_arrays() -> None:
    small = gpu(memory=1 << 28, max_allocation=1 << 27)
    assert sizes_for(small)[-1] == 16 << 20
    assert sizes_for(gpu(max_allocation=1 << 20))[-1] == 1 << 20


def test_a_cpu_has_no_graphs_and_smaller_arrays() -> None:
    known = KnownDevice()
    cpu = replace(gpu(), kind="cpu", inspects=False)
    found = measured(cpu, known)[0]
    assert found.graph_launch is None
    assert found.launch is not None
    assert found.copy[-1].bytes == 64 << 20


def test_copies_read_half_and_write_half() -> None:
    plan = moving_plan("copy", 1 << 20, 4, 256)
    assert [b.nbytes for b in plan.buffers] == [1 << 19, 1 << 19]
    assert plan.launches[0].grid == ((1 << 19) // ITEM_BYTES // 1024, 1, 1)
    read = moving_plan("read", 1 << 20, 1, 256)
    assert [b.nbytes for b in read.buffers] == [ITEM_BYTES, 1 << 20]


def test_what_fails_is_left_out_with_a_note() -> None:
    found = measured(gpu(), KnownDevice(broken=("ceilings_fp16.cu", "read4")))
    assert found[0].fp16 is None
    assert found[0].read == ()
    assert len(found[0].copy) == 8
    says(found[1], "fp16", "not measured")
    says(found[1], "read of 65536 bytes", "not measured", "crashed", "SIGSEGV")


def test_kernels_that_do_not_build_are_a_note() -> None:
    found = measured(gpu(), KnownDevice(broken=("ceilings.cu",)))
    assert found[0].copy == ()
    (note,) = found[1]
    says(note, "do not build", "no such header")


def test_other_backends_say_that_they_have_none() -> None:
    found = measured(replace(gpu(), backend="fake"), KnownDevice())
    (note,) = found[1]
    says(note, "no kernels for fake", "ceilings")


# -- kept between runs ------------------------------------------------------------------------------------


@dataclass
class Kept:
    ceilings: Ceilings | None = None
    notes: tuple[str, ...] = ()
    puts: int = 0

    def get(self, device: Device) -> tuple[Ceilings, tuple[str, ...]] | None:
        return None if self.ceilings is None else (self.ceilings, self.notes)

    def put(self, device: Device, ceilings: Ceilings, notes: tuple[str, ...] = ()) -> None:
        self.ceilings, self.notes, self.puts = ceilings, notes, self.puts + 1


@dataclass
class BusyDevice(KnownDevice):
    """Others work there too: copies of 4 MiB, all reads and the cache are interrupted."""

    def seconds(self, code: BuiltCode, plan: Plan, race: Race) -> float:
        own = super().seconds(code, plan, race)
        entry = plan.launches[0].entry
        is_cache = race.warm and entry.startswith("copy")
        if is_cache or entry.startswith("read") or (entry.startswith("copy") and plan.nbytes == 4 << 20):
            return 50 * own
        return own


def obtained(cache: Kept, known: KnownDevice, **how: object) -> tuple[Ceilings, tuple[str, ...]]:
    how = {"today": lambda: "2026-11-15", **how}
    return known_or_measured(cache, gpu(), known, lambda: known, lambda _text: None, **how)  # type: ignore[arg-type]


def test_what_a_busy_machine_measured_is_made_possible_and_that_is_said() -> None:
    cache = Kept()
    found, notes = obtained(cache, BusyDevice())
    assert all(a.seconds <= b.seconds for a, b in pairwise(found.copy))
    assert all(r.seconds <= c.seconds for r, c in zip(found.read, found.copy, strict=True))
    assert found.cache_bandwidth is not None
    assert found.cache_bandwidth >= (best_bandwidth(found) or 0.0)
    assert any("copies of 4096 KiB, reads of 8 sizes" in note and "--remeasure" in note for note in notes)
    again, same_notes = obtained(cache, KnownDevice())  # what was cached before is corrected as well
    assert (again, same_notes) == (found, notes)


def test_ceilings_are_measured_once_and_again_when_asked_to() -> None:
    kept, known = Kept(), KnownDevice()
    found, notes = obtained(kept, known)
    assert found.measured_on == "2026-11-15"
    assert notes == ()
    raced = len(known.raced)
    assert obtained(kept, known)[0] == found
    assert (len(known.raced), kept.puts) == (raced, 1)
    later, _ = obtained(kept, known, again=True, today=lambda: "2026-12-24")
    assert (len(known.raced), kept.puts) == (2 * raced, 2)
    assert later == replace(found, measured_on="2026-12-24")
    assert kept.ceilings.measured_on == "2026-12-24"


def real(spec: str, folder: Path) -> tuple[MeasuredCeilings, Device, float]:
    device = place.pick_device(place.list_devices(place.WorkerSite(spec, folder)), None)
    builders = place.make_builders(place.WorkerSite(spec, folder), device, 1, "")
    runner = place.make_runner(place.WorkerSite(spec, folder), device)
    started = time.monotonic()
    try:
        return measure_ceilings(device, builders, runner), device, time.monotonic() - started
    finally:
        builders.close()
        runner.close()


@needs_nvrtc
def test_the_cuda_kernels_build_with_wide_accesses() -> None:
    from tunesmith.backends.cuda.compile import build_cubin
    from tunesmith.backends.cuda.devices import absent_device
    from tunesmith.lab.build import unit_of
    from tunesmith.lab.profile import variant_of

    device, source = absent_device("H200"), backends.find_backend_kind("cuda").ceilings
    assert device is not None
    entries = ("copy1", "copy4", "read1", "read4", "empty", "fp32")
    binary = build_cubin(unit_of(variant_of("cuda", source.file, entries), "nvrtc"), device)
    assert binary.resources.spills in (0, None)
    read = backends.instructions_reader("cuda")
    for entry, vectors in (("copy1", 1), ("copy4", 4), ("read1", 1), ("read4", 4)):
        code, why_not = read(binary.data, entry)
        assert code is not None, why_not
        widths = {
            direction: sum(a.count for a in code.accesses if a.direction == direction and a.width == 16)
            for direction in ("load", "store")
        }
        assert widths["load"] >= vectors, entry
        if entry.startswith("copy"):
            assert widths["store"] >= vectors, entry
            assert all(a.width == 16 for a in code.accesses if a.space == "global"), entry
    build_cubin(unit_of(variant_of("cuda", source.half, ("fp16",)), "nvrtc"), device)


@needs_opencl
@pytest.mark.slow
@pytest.mark.long
def test_a_cpu_by_its_own_kernels(tmp_path: Path) -> None:
    found, device, _ = real("opencl", tmp_path)
    assert is_sound(found[0])
    ceilings = correct_ceilings(found[0])
    assert len(ceilings.copy) == len(ceilings.read) == len(sizes_for(device))
    for points in (ceilings.copy, ceilings.read):
        assert all(a.seconds <= b.seconds for a, b in pairwise(points))
        assert points[-1].seconds > 4 * points[0].seconds  # of a thousand times the bytes
    assert all(r.seconds <= c.seconds for r, c in zip(ceilings.read, ceilings.copy, strict=True))
    largest = ceilings.copy[-1]
    assert 1e8 < largest.bytes / largest.seconds < 1e12  # bytes a second: no CPU's memory is outside it
    if ceilings.cache_bandwidth is not None:
        assert ceilings.cache_bandwidth >= (best_bandwidth(ceilings) or 0.0)
    assert ceilings.launch is not None
    assert 0 < ceilings.launch < 0.01
    assert ceilings.fp32 is not None
    assert ceilings.fp32 > 1e8


@pytest.mark.gpu
def test_a_gpu_by_its_own_kernels(tmp_path: Path) -> None:
    found, device, seconds = real("cuda", tmp_path)
    ceilings, pins = found[0], device.limits.pin_bandwidth
    assert seconds < 10
    assert found[1] == ()
    assert len(ceilings.copy) == 8
    assert pins
    for points in (ceilings.copy, ceilings.read):
        assert 0.6 * pins < points[-1].bytes / points[-1].seconds < pins
        assert all(a.seconds < b.seconds for a, b in pairwise(points[2:]))
    assert ceilings.graph_launch is not None
    assert ceilings.launch is not None
    assert 0 < ceilings.graph_launch < ceilings.launch < 20e-6
    assert ceilings.fp32 is not None
    assert ceilings.fp16 is not None
    assert 1e12 < ceilings.fp32 < ceilings.fp16
    assert ceilings.cache_bandwidth is not None
    assert ceilings.cache_bandwidth > ceilings.copy[-1].bytes / ceilings.copy[-1].seconds
