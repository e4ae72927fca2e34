"""Profiles on the simulated device, whose times are known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from tests.core.lab.in_process import Log, spawner
from tests.core.lab.labs import device_of, fake_kernel, plan_at, scale_problem, template_text
from tests.wording import says
from tunesmith.backends import make_backend
from tunesmith.backends.messages import (
    ClustersHeld,
    CountClusters,
    Counted,
    CountLaunches,
    LaunchOnce,
    TimeRuns,
)
from tunesmith.backends.port import Counting, LaunchCall, NoCounting
from tunesmith.base.errors import BadInput
from tunesmith.lab.build import Builders
from tunesmith.lab.profile import (
    Profiler,
    ProfileSession,
    ProfileSubject,
    clusters_held,
    half_grid,
    launch_prefixes,
    launch_shares,
    main_launch,
    main_place,
)
from tunesmith.lab.runner import Runner
from tunesmith.lab.worker.requests import RequestHandler
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Plan
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import original_variant
from tunesmith.problem.template_file import parse_template
from tunesmith.profiles.diagnose import diagnose_profile
from tunesmith.profiles.facts import (
    Ceilings,
    Counters,
    Instructions,
    LaunchFacts,
    LaunchPart,
    Mix,
    Point,
    Profile,
    StaticFacts,
)
from tunesmith.run.events import Profiled
from tunesmith.space.configset import Config

CEILINGS = Ceilings(copy=(Point(1 << 10, 1e-6), Point(1 << 20, 1e-5)))
BLOCKS = """
[params]
BLOCK = [32, 64, 128, 512]
OTHER = [0, 1]
[default]
BLOCK = 64
OTHER = 0
[launch]
grid = ["rows"]
block = ["BLOCK"]
"""


@dataclass
class Recorder:
    """Counts nothing, and remembers what was timed before it was asked."""

    log: Log
    asked: list[tuple[CountLaunches, int]] = field(default_factory=list)

    def count(self, what: CountLaunches, binary: bytes) -> Counted:
        assert binary
        self.asked.append((what, len(self.log.of(TimeRuns))))
        return Counted(Counters(dram=0.5))


@contextmanager
def profiler(
    problem: Problem, counting: Counting | None = None, log: Log | None = None, device: Device | None = None
) -> Iterator[Profiler]:
    device = device or device_of("fake")
    spawn = spawner("fake", log or Log(), None)
    builders = Builders(lambda: spawn("build"), device, 1)  # type: ignore[arg-type,return-value]
    runner = None if device.absent else Runner(spawn("device"), device)  # type: ignore[arg-type]
    none = counting or NoCounting("nobody counts here")
    read = (Instructions(Mix(total=7), Mix(total=5)), "")
    try:
        yield Profiler(problem, device, builders, runner, none, lambda _b, _e: read, ceilings=CEILINGS)
    finally:
        builders.close()


def test_a_profile_has_everything_that_can_be_known() -> None:
    problem = scale_problem()
    with profiler(problem) as own:
        looked = own.profile(ProfileSubject(), problem.workloads[0])
    found = looked.profile
    assert (found.kernel, found.workload) == ("original", "small")
    assert found.seconds == pytest.approx(20512e-9)
    assert (found.work.read, found.work.written) == (2048, 2048)
    assert found.static.resources.registers == 32
    assert found.static.instructions is not None
    assert found.static.doubles is False
    assert (found.launch.blocks, found.launch.threads) == (16, 64)
    assert found.launch.idle_threads == pytest.approx(0.5)
    tried = found.experiments
    assert [tried.warm, tried.cold, tried.whole_grid, tried.half_grid] == pytest.approx([found.seconds] * 4)
    assert tried.blocks == ()
    assert any("other blocks were not tried" in note for note in looked.notes)
    assert found.counters is None
    assert found.no_counters == "nobody counts here"
    assert found.ceilings is CEILINGS


def test_counting_comes_after_all_timing_and_is_in_no_time() -> None:
    log = Log()
    problem, recorder = scale_problem(), Recorder(log)
    with profiler(problem, recorder, log) as own:
        found = own.profile(ProfileSubject(), problem.workloads[0]).profile
    assert found.counters == Counters(dram=0.5)
    assert found.seconds == pytest.approx(20512e-9)
    ((what, timed_before),) = recorder.asked
    assert timed_before == len(log.of(TimeRuns)) == 3
    assert not log.of(LaunchOnce)
    assert what.launch.warm is False
    assert what.launch.contender.plan.launches[0].entry == "scale"


def _clustered(plan: Plan) -> Plan:
    own = plan.launches[0]
    return replace(plan, launches=(replace(own, cluster=(4, 1, 1)), own))


def test_clusters_are_counted_by_a_session_that_can_and_by_no_other() -> None:
    plan = _clustered(plan_at(scale_problem()))

    class Counts:
        def active_clusters(self, call: LaunchCall) -> int | None:
            assert call.cluster == (4, 1, 1)
            return 33

    bench = RequestHandler(make_backend("fake"))
    bench._executables = {"code": object()}
    for session, known in ((Counts(), (33, None)), (object(), (None, None))):
        bench._session = session  # type: ignore[assignment]
        assert bench.handle(CountClusters("code", plan), ()) == (ClustersHeld(known), ())


def test_where_the_driver_does_not_say_clusters_are_computed_or_unknown() -> None:
    problem = scale_problem()
    with profiler(problem) as own:
        code = own._builders.build(original_variant(problem), "the kernel", "")
        assert clusters_held(own._runner, code, _clustered(plan_at(problem))) == (None, None)
        assert clusters_held(None, code, _clustered(plan_at(problem))) == (None, None)
        found = own._launch_facts(code, plan_at(problem), _clustered(plan_at(problem)).launches[0], None)
    assert found.cluster == 4
    says(found.cluster_words, "clusters of 4 blocks")


def test_half_the_grid_is_the_first_half_of_the_blocks() -> None:
    problem = scale_problem()
    plan = plan_at(problem)
    halved = half_grid(plan)
    assert halved.launches[0].grid == (8, 1, 1)
    one = replace(plan, launches=(replace(plan.launches[0], grid=(1, 1, 1)), *plan.launches))
    assert half_grid(one) is None  # every launch must have several
    for grid, half in (((1, 9, 1), (1, 5, 1)), ((4, 6, 1), (4, 3, 1)), ((2, 1, 3), (2, 1, 2))):
        deep = half_grid(replace(plan, launches=(replace(plan.launches[0], grid=grid),)))
        assert deep.launches[0].grid == half
    for word in ({"cooperative": True}, {"cluster": (2, 1, 1)}):
        waits = replace(plan, launches=(replace(plan.launches[0], **word),))  # type: ignore[arg-type]
        assert half_grid(waits) is None


def test_of_several_launches_the_largest_is_looked_at() -> None:
    plan = plan_at(scale_problem())
    small = replace(plan.launches[0], grid=(2, 1, 1), entry="small")
    assert main_launch(replace(plan, launches=(small, *plan.launches))).entry == "scale"


def test_other_blocks_are_those_the_template_has() -> None:
    problem = scale_problem()
    code = "int other = BLOCK + OTHER;\n" + fake_kernel(time="1000 + 10 * BLOCK")
    template = parse_template(template_text(BLOCKS, code), path="t.fake", problem=problem)
    subject = ProfileSubject(template, template.default)
    assert [config["BLOCK"] for config in subject.other_blocks()] == [32, 128]
    with profiler(problem) as own:
        found = own.profile(subject, problem.workloads[0]).profile
    assert [(b.threads, round(b.seconds * 1e9)) for b in found.experiments.blocks] == [
        (32, 1320),
        (64, 1640),
        (128, 2280),
    ]
    assert ProfileSubject(template, template.default.replace("BLOCK", 512)).other_blocks() == ()


def test_a_kernel_that_cannot_run_is_reported_not_raised() -> None:
    problem = scale_problem(('block = ["64"]', 'block = ["4096"]'))
    with profiler(problem) as own:
        looked = own.profile(ProfileSubject(), problem.workloads[0])
        assert own.refusal(ProfileSubject(), problem.workloads[0]) == looked.profile.cannot_run
    assert looked.profile.seconds is None
    assert "4096" in looked.profile.cannot_run
    assert looked.notes == ()
    with profiler(scale_problem()) as own:
        assert own.refusal(ProfileSubject(), problem.workloads[0]) == ""


def test_a_kernel_that_fails_at_its_launch_is_reported_not_raised() -> None:
    problem = scale_problem(kernel=fake_kernel(args="out, x, rows"))
    recorder = Recorder(Log())
    with profiler(problem, recorder) as own:
        looked = own.profile(ProfileSubject(), problem.workloads[0])
    assert looked.profile.seconds is None
    says(looked.notes[0], "original at small", "not be timed", "crashed", "3 arguments")
    assert not recorder.asked


def test_a_kernel_that_does_not_build_is_bad_input() -> None:
    problem = scale_problem(kernel=fake_kernel(fault="1"))
    with profiler(problem) as own, pytest.raises(BadInput) as error:
        own.profile(ProfileSubject(), problem.workloads[0])
    assert "the kernel does not compile" in str(error.value)
    assert error.value.hint


def test_where_the_device_is_absent_the_build_alone_tells() -> None:
    problem, absent = scale_problem(), replace(device_of("fake"), absent=True)
    with profiler(problem, device=absent) as own:
        found = own.profile(ProfileSubject(), problem.workloads[0]).profile
    assert found.seconds is None
    assert found.static.resources.registers == 32
    assert found.launch is not None
    assert found.no_counters == "the device is not here"


def test_a_warm_workload_is_timed_warm_and_compared_with_cold() -> None:
    log = Log()
    problem = scale_problem(
        ("small = { rows = 16, d = 32 }", 'small = { rows = 16, d = 32, cache = "warm" }')
    )
    with profiler(problem, log=log) as own:
        found = own.profile(ProfileSubject(), problem.workloads[0]).profile
    assert found.warm
    assert found.experiments.warm is not None
    assert found.experiments.cold is not None
    assert [served.request.warm for served in log.of(TimeRuns)] == [True, False, True]  # type: ignore[union-attr]


TWO = (
    '[launch]\ngrid = ["rows"]\nblock = ["64"]',
    '[[launch]]\nentry = "scale"\ngrid = ["2"]\nblock = ["64"]\nargs = ["out", "x", "rows", "d"]\n'
    '[[launch]]\nentry = "scale"\ngrid = ["rows"]\nblock = ["64"]\nargs = ["out", "x", "rows", "d"]',
)


def test_prefixes_are_all_but_the_whole() -> None:
    plan = plan_at(scale_problem())
    (one,) = plan.launches
    three = replace(plan, launches=tuple(replace(one, entry=name) for name in "abc"))
    assert [[g.entry for g in p.launches] for p in launch_prefixes(three)] == [["a"], ["a", "b"]]
    assert launch_prefixes(plan) == ()


@pytest.mark.parametrize(
    ("first_ones", "whole", "expected"),
    [
        ([1.0], 4.0, [0.25, 0.75]),
        ([1.0, 3.0], 4.0, [0.25, 0.5, 0.25]),
        ([2.0], 1.9, [1.0, 0.0]),
        ([], 3.0, [1.0]),
    ],
)
def test_shares_are_what_each_adds(first_ones: list[float], whole: float, expected: list[float]) -> None:
    assert launch_shares(first_ones, whole) == pytest.approx(expected)


def test_a_profile_covers_every_launch() -> None:
    problem = scale_problem(TWO)
    recorder = Recorder(Log())
    with profiler(problem, recorder) as own:
        found = own.profile(ProfileSubject(), problem.workloads[0]).profile
    assert [part.launch.blocks for part in found.parts] == [2, 16]
    assert [part.share for part in found.parts] == pytest.approx([0.5, 0.5])
    assert found.static.resources.registers == 32
    with profiler(problem, recorder) as own:
        known = own.known(ProfileSubject(), problem.workloads[0], 1e-5).profile
    assert [part.share for part in known.parts] == [None, None]
    assert known.launch.blocks == 16, "the one with the most threads"
    assert main_place(plan_at(problem).launches) == 1
    main = found.parts.index(found.main) if found.main else None
    assert [what.main for what, _ in recorder.asked] == [main, 1], "counters are those of the launch told of"


def facts(blocks: int) -> LaunchFacts:
    return LaunchFacts((blocks, 1, 1), (64, 1, 1), 64, blocks, 132)


def a_profile(*shares_: float | None) -> Profile:
    parts = tuple(
        LaunchPart(f"k{i}", StaticFacts(), facts(10 * (i + 1)), share) for i, share in enumerate(shares_)
    )
    main = max(parts, key=lambda part: part.share or 0.0)
    return Profile("k", "w", static=main.static, launch=main.launch, parts=parts)


def test_the_diagnosis_names_the_launch_that_costs_most() -> None:
    diagnosis = diagnose_profile(a_profile(0.2, 0.7, 0.1))
    assert diagnosis.launch == "k1"
    says(diagnosis.notes[0], "3 launches", "k1 takes most", "k0 20 %", "k1 70 %", "k2 10 %")
    assert diagnosis.summary.startswith("in k1, ")
    unknown = diagnose_profile(a_profile(None, None))
    says(unknown.notes[0], "2 launches", "not known")
    single = diagnose_profile(Profile("k", "w", launch=facts(16)))
    assert (single.launch, single.summary.startswith("in ")) == ("", False)


PROBLEM = scale_problem()
CODE = "int other = BLOCK + OTHER;\n" + fake_kernel(time="1000 + 10 * BLOCK")
TEMPLATE = parse_template(template_text(BLOCKS, CODE), path="t.fake", problem=PROBLEM)


class Kept:
    def __init__(self, ceilings: Ceilings | None = CEILINGS, notes: tuple[str, ...] = ()) -> None:
        self.ceilings = ceilings
        self.notes = notes
        self.asked = 0

    def get(self, device: Device) -> tuple[Ceilings, tuple[str, ...]] | None:
        self.asked += 1
        return None if self.ceilings is None else (self.ceilings, self.notes)

    def put(self, device: Device, ceilings: Ceilings, notes: tuple[str, ...] = ()) -> None:
        raise AssertionError("a simulated device has none to keep")


def nothing_read(_binary: bytes, _entry: str) -> tuple[Instructions | None, str]:
    return None, "there is no machine code"


class Watching:
    def __init__(self, cache: Kept, counting: Counting | None = None) -> None:
        self.log = Log()
        device = device_of("fake")
        spawn = spawner("fake", self.log, None)
        self.builders = Builders(lambda: spawn("build"), device, 1)  # type: ignore[arg-type,return-value]
        self.runner = Runner(spawn("device"), device)  # type: ignore[arg-type]
        none = counting or NoCounting("nobody counts here")
        self.said: list[str] = []
        self.onlooker = ProfileSession(PROBLEM, device, none, nothing_read, cache, 0, self.said.append)

    def look(self, config: Config | None, seconds: float = 1e-4) -> Profiled:
        name = PROBLEM.workloads[0].name
        subject = ProfileSubject(TEMPLATE if config is not None else None, config)
        return self.onlooker.look(self.builders, self.runner, subject, name, seconds)


@pytest.mark.parametrize("config", [None, TEMPLATE.default], ids=["original", "configuration"])
def test_it_is_what_the_known_time_means_and_nothing_is_timed(config: Config | None) -> None:
    cache = Kept()
    watching = Watching(cache)
    once, twice = watching.look(config, 1e-4), watching.look(config, 2e-4)
    assert once.config == config
    assert twice.diagnosis.distance == pytest.approx(2 * (once.diagnosis.distance or 0))
    assert watching.log.of(TimeRuns) == []
    assert cache.asked == 1, "once for all of a run"


def test_ceilings_are_there_before_the_first_look_and_their_notes_go_along() -> None:
    cache = Kept(notes=("fp16 was not measured",))
    watching = Watching(cache)
    watching.onlooker.prepare(watching.builders, watching.runner)
    assert cache.asked == 1
    looks = [watching.look(None), watching.look(TEMPLATE.default)]
    assert cache.asked == 1
    assert all("fp16 was not measured" in looked.notes for looked in looks)


def test_ceilings_that_cannot_be_measured_do_not_end_the_run() -> None:
    class Broken(Kept):
        def get(self, device: Device) -> tuple[Ceilings, tuple[str, ...]] | None:
            raise RuntimeError("the disk\nis gone")

    watching = Watching(Broken())
    watching.onlooker.prepare(watching.builders, watching.runner)
    assert watching.said == ["ceilings were not measured: RuntimeError: the disk"]
    assert watching.look(None).notes == ("RuntimeError: the disk",)


def test_counters_are_taken_where_someone_counts() -> None:
    recorder = Recorder(Log())
    looked = Watching(Kept(), recorder).look(None)
    assert len(recorder.asked) == 1
    assert not any("no hardware counters" in note for note in looked.diagnosis.notes)


def test_whatever_goes_wrong_is_a_note() -> None:
    class Broken:
        def count(self, what: object, binary: bytes) -> object:
            raise RuntimeError("the profiler\nfell over")

    looked = Watching(Kept(), Broken()).look(None)  # type: ignore[arg-type]
    assert looked == Profiled(None, PROBLEM.workloads[0].name, None, ("RuntimeError: the profiler",))


def test_without_cached_ceilings_they_are_measured() -> None:
    looked = Watching(Kept(None)).look(None)
    assert looked.diagnosis.ceiling != "launch", "there are no kernels to measure a simulated device with"
