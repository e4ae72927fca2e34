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
from tunesmith.lab.profile import Profiler, ProfileSubject, clusters_held, half_grid, main_launch
from tunesmith.lab.runner import Runner
from tunesmith.lab.worker.requests import Bench
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Plan
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import original_variant
from tunesmith.problem.template_file import parse_template
from tunesmith.profiles.facts import Ceilings, Counters, Instructions, Mix, Point

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

    bench = Bench(make_backend("fake"))
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
