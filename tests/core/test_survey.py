"""What builds alone tell where the device is absent, and what of it holds on the device that is found."""

from __future__ import annotations

from dataclasses import replace

from tests.samples import DEVICE, TEMPLATE, a_device, a_problem, a_template, config, records, started
from tunesmith.core.choose import scores
from tunesmith.core.device import Device, Resources
from tunesmith.core.events import Admitted, Attached, Settings, Surveyed, SurveyedBuild
from tunesmith.core.outcome import Result, Status
from tunesmith.core.report import build_report
from tunesmith.core.space import Config
from tunesmith.core.state import State, fold
from tunesmith.core.survey import Span, Spilling, judge, still_unable, survey_report
from tunesmith.core.template import builds_of

PROBLEM = a_problem()
PLAIN = a_template(PROBLEM)
BAKING = a_template(
    PROBLEM,
    TEMPLATE.replace("// [require]", '// [defines]\n// D = "d if VEC == 4 else 0"\n// [require]').replace(
        "BLOCK * VEC; }", "BLOCK * VEC + D; }"
    ),
)
GPU = a_device(
    capability=90,
    registers_per_block=65536,
    registers_per_sm=65536,
    shared_per_sm=233472,
    shared_reserved=1024,
    threads_per_sm=2048,
    blocks_per_sm=32,
)
ABSENT = replace(GPU, absent=True)


def survey(
    chosen: Config | None, resources: Resources | None, device: Device = ABSENT, template=PLAIN
) -> Surveyed:
    """As a lab would; without resources it does not build."""
    builds, refused = [], []
    for built in builds_of(PROBLEM, template, chosen):
        names = tuple(w.name for w in built.workloads)
        if resources is None:
            builds.append(SurveyedBuild(names, built.variant.digest))
            refused += [Result(name, Status.BUILD_FAILED, detail="error: no") for name in names]
            continue
        broken, occupancy = judge(PROBLEM, built, device, resources)
        builds.append(SurveyedBuild(names, built.variant.digest, "code", resources, occupancy))
        refused += broken
    return Surveyed(chosen, tuple(builds), tuple(refused))


def fits(registers: int = 32, spills: int = 0, shared: int = 0) -> Resources:
    return Resources(registers=registers, shared=shared, spills=spills, private=8)


class TestBuilds:
    def test_one_serves_all_workloads_unless_sizes_are_baked_in(self) -> None:
        (plain,) = builds_of(PROBLEM, PLAIN, config(64, 4))
        assert [w.name for w in plain.workloads] == ["small", "wide"]
        assert [[w.name for w in b.workloads] for b in builds_of(PROBLEM, BAKING, config(64, 4))] == [
            ["small"],
            ["wide"],
        ]
        assert len(builds_of(PROBLEM, BAKING, config(64, 1))) == 1

    def test_the_original(self) -> None:
        (own,) = builds_of(PROBLEM, PLAIN, None)
        assert own.variant.config is None

    def test_limits_and_occupancy(self) -> None:
        (built,) = builds_of(PROBLEM, PLAIN, config(256))
        assert judge(PROBLEM, built, GPU, fits(32)) == ((), 100)
        assert judge(PROBLEM, built, GPU, fits(128)) == ((), 25)
        assert judge(PROBLEM, built, DEVICE, fits(32)) == ((), None)
        refused, occupancy = judge(PROBLEM, built, GPU, fits(255, shared=1 << 20))
        assert [(r.workload, r.status) for r in refused] == [
            ("small", Status.OVER_LIMITS),
            ("wide", Status.OVER_LIMITS),
        ]
        assert "bytes of shared memory per block" in refused[0].detail
        assert occupancy is None


class TestOnTheDeviceFound:
    def test_the_same_verdict_holds(self) -> None:
        bad = [
            survey(config(64), None),
            survey(config(128), fits(shared=1 << 20)),
            survey(config(256), fits()),
        ]
        assert still_unable(PROBLEM, PLAIN, bad, GPU) == (config(64), config(128))

    def test_a_larger_device_takes_what_the_assumed_one_did_not(self) -> None:
        bad = [survey(config(64), None), survey(config(128), fits(shared=1 << 20))]
        assert still_unable(PROBLEM, PLAIN, bad, a_device(shared=1 << 21)) == (config(64),)

    def test_nothing_is_assumed_of_what_is_rendered_differently_now(self) -> None:
        bad = survey(config(64), None)
        changed = replace(bad, builds=(replace(bad.builds[0], source_digest="another"),))
        assert still_unable(PROBLEM, PLAIN, [changed], GPU) == ()

    def test_an_accident_of_the_machine_that_built_is_no_verdict(self) -> None:
        bad = [survey(config(block), None) for block in (32, 64, 128)]
        for place, detail in ((0, "the compiler crashed: SIGKILL"), (2, "the compiler took more than 60 s")):
            refused = tuple(replace(result, detail=detail) for result in bad[place].refused)
            bad[place] = replace(bad[place], refused=refused)
        accidents = ("the compiler crashed", "the compiler took more than")
        assert still_unable(PROBLEM, PLAIN, bad, GPU, accidents) == (config(64),)

    def test_of_baked_sizes_each_build_counts(self) -> None:
        found = survey(config(64, 4), fits(), template=BAKING)
        small, wide = found.builds
        half = replace(
            found,
            builds=(SurveyedBuild(small.workloads, small.source_digest), wide),
            refused=(Result("small", Status.BUILD_FAILED),),
        )
        assert not half.unable
        assert still_unable(PROBLEM, BAKING, [half, survey(config(32, 4), None, template=BAKING)], GPU) == (
            config(32, 4),
        )


def state_of(*found: Surveyed, attached: Attached | None = None, evals: int | None = None) -> State:
    begun = replace(started(Settings(evals=evals)), device=ABSENT, compiler="nvrtc 13.4")
    more = [attached] if attached else []
    return fold(records([begun, Admitted("t", 12, 12), *found, *more]))


FOUND = (
    survey(None, fits(40)),
    survey(config(32), fits(32)),
    survey(config(64), fits(48, spills=16)),
    survey(config(128), fits(255, spills=80)),
    survey(config(256), None),
    survey(config(32, 2), fits(shared=1 << 20)),
)


class TestReport:
    def test_counts_ranges_and_what_spills(self) -> None:
        report = survey_report(state_of(*FOUND, evals=5))
        assert report.planned == 5
        assert report.statuses == {"ok": 3, "build_failed": 1, "over_limits": 1}
        assert report.spans["registers"] == Span(40, 32, 48, 255)
        assert report.spans["spills"] == Span(0, 0, 16, 80)
        assert report.spans["occupancy"].original == 75
        assert report.spans["private"] == Span(8, 8, 8, 8)
        assert list(report.spans) == ["registers", "shared", "spills", "private", "occupancy"]
        assert report.spilling == (Spilling(config(128).as_dict(), 80), Spilling(config(64).as_dict(), 16))

    def test_is_part_of_the_report_while_the_device_is_absent(self) -> None:
        report = build_report(PROBLEM, state_of(*FOUND))
        assert report.survey is not None
        assert report.survey.planned == 12
        assert report.compiler == "nvrtc 13.4"
        assert report.evaluations == {}, "nothing has been tried"
        assert [(f.config["BLOCK"], f.status) for f in report.failures] == [
            (256, "build_failed"),
            (32, "over_limits"),
        ]

    def test_afterwards_the_unable_count_as_tried(self) -> None:
        unable = still_unable(PROBLEM, PLAIN, FOUND, GPU)
        state = state_of(*FOUND, attached=Attached(GPU, "nvrtc 13.4", 8, unable))
        report = build_report(PROBLEM, state)
        assert report.survey is None
        assert report.evaluations == {"build_failed": 1, "over_limits": 1}
        assert len(report.failures) == 2
        assert scores(PROBLEM, state) == ((config(256), None), (config(32, 2), None))

    def test_of_a_survey_that_has_not_begun(self) -> None:
        report = survey_report(state_of())
        assert (report.planned, report.statuses, report.spans, report.spilling) == (12, {}, {}, ())
