"""What builds alone tell where the device is absent, and what of it holds on the device that is found."""

from __future__ import annotations

from dataclasses import replace

from tests.samples import DEVICE, HOPPER, TEMPLATE, a_device, a_problem, a_template, config, records, started
from tunesmith.problem.device import Device, Resources
from tunesmith.problem.plan import Status
from tunesmith.problem.template import Template, builds_of
from tunesmith.run.events import Admitted, Attached, Settings, Surveyed, SurveyedBuild
from tunesmith.run.outcome import Result, judge_build
from tunesmith.run.ports import Tried
from tunesmith.run.report import Span, Spilling, build_report, still_unable, survey_report
from tunesmith.run.scores import score_configs
from tunesmith.run.state import State, fold_records
from tunesmith.space.configset import Config

PROBLEM = a_problem()
PLAIN = a_template(PROBLEM)
BAKING = a_template(
    PROBLEM,
    TEMPLATE.replace("// [require]", '// [defines]\n// D = "d if VEC == 4 else 0"\n// [require]').replace(
        "BLOCK * VEC; }", "BLOCK * VEC + D; }"
    ),
)
GPU = Device("fake", "0", "a device", "a platform", "1.0", "simulated", replace(HOPPER, sms=16, shared=49152))
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
        found = judge_build(PROBLEM, built, device, resources)
        digests = (built.variant.digest, "code")
        builds.append(SurveyedBuild(names, *digests, resources, found.occupancy, found.launches))
        refused += found.refused
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
        for device, registers, occupancy in ((GPU, 32, 100), (GPU, 128, 25), (DEVICE, 32, None)):
            found = judge_build(PROBLEM, built, device, fits(registers))
            assert (found.refused, found.occupancy) == ((), occupancy)
        found = judge_build(PROBLEM, built, GPU, fits(255, shared=1 << 20))
        assert [(r.workload, r.status) for r in found.refused] == [
            ("small", Status.OVER_LIMITS),
            ("wide", Status.OVER_LIMITS),
        ]
        assert "bytes of shared memory per block" in found.refused[0].detail
        assert found.occupancy is None

    def test_what_is_launched_is_distinguished(self) -> None:
        def launches(template: Template, chosen: Config, device: Device = GPU) -> list[str]:
            return [
                judge_build(PROBLEM, b, device, fits()).launches for b in builds_of(PROBLEM, template, chosen)
            ]

        assert launches(PLAIN, config(64, 2)) == launches(PLAIN, config(64, 2))
        # As many elements a group in total, but in groups of another size, or the other way round.
        assert launches(PLAIN, config(64, 2)) != launches(PLAIN, config(128, 1))
        assert launches(PLAIN, config(64, 1)) != launches(PLAIN, config(64, 2))
        small, wide = launches(BAKING, config(64, 4))
        assert small != wide

    def test_one_that_runs_at_fewer_workloads_launches_otherwise(self) -> None:
        (built,) = builds_of(PROBLEM, PLAIN, config(32))
        here, there = (
            judge_build(PROBLEM, built, GPU, fits()),
            judge_build(PROBLEM, built, a_device(max_grid=(200, 1, 1)), fits()),
        )
        assert [r.workload for r in there.refused] == ["wide"]
        assert here.refused == ()
        assert here.launches != there.launches


class TestFeatures:
    """What a model is told of a build."""

    def test_the_most_of_each_and_the_least_occupancy(self) -> None:
        found = survey(config(256), fits(128, spills=16, shared=512), GPU)
        assert found.features == (128.0, 16.0, 512.0, 8.0, 25.0)
        builds = (
            SurveyedBuild(("small",), "a", "code", fits(32, spills=64), 50),
            SurveyedBuild(("wide",), "b", "code", fits(64, spills=0, shared=9), 100),
        )
        assert Surveyed(config(64), builds).features == (64.0, 64.0, 9.0, 8.0, 50.0)

    def test_of_what_is_unknown_or_does_not_build(self) -> None:
        unknown = Surveyed(config(64), (SurveyedBuild(("small", "wide"), "a", "code", Resources()),))
        assert unknown.features == (0.0, 0.0, 0.0, 0.0, -1.0)
        assert survey(config(64), None).features == unknown.features


class TestOnTheDeviceFound:
    def test_the_same_verdict_holds(self) -> None:
        bad = [
            survey(config(64), None),
            survey(config(128), fits(shared=1 << 20)),
            survey(config(256), fits()),
        ]
        assert still_unable(PROBLEM, lambda _config: PLAIN, bad, GPU) == (config(64), config(128))

    def test_a_larger_device_takes_what_the_assumed_one_did_not(self) -> None:
        bad = [survey(config(64), None), survey(config(128), fits(shared=1 << 20))]
        assert still_unable(PROBLEM, lambda _config: PLAIN, bad, a_device(shared=1 << 21)) == (config(64),)

    def test_nothing_is_assumed_of_what_is_rendered_differently_now(self) -> None:
        bad = survey(config(64), None)
        changed = replace(bad, builds=(replace(bad.builds[0], source_digest="another"),))
        assert still_unable(PROBLEM, lambda _config: PLAIN, [changed], GPU) == ()

    def test_an_accident_of_the_machine_that_built_is_no_verdict(self) -> None:
        bad = [survey(config(block), None) for block in (32, 64, 128)]
        for place, detail in ((0, "the compiler crashed: SIGKILL"), (2, "the compiler took more than 60 s")):
            refused = tuple(replace(result, detail=detail) for result in bad[place].refused)
            bad[place] = replace(bad[place], refused=refused)
        accidents = ("the compiler crashed", "the compiler took more than")
        assert still_unable(PROBLEM, lambda _config: PLAIN, bad, GPU, accidents) == (config(64),)

    def test_of_baked_sizes_each_build_counts(self) -> None:
        found = survey(config(64, 4), fits(), template=BAKING)
        small, wide = found.builds
        half = replace(
            found,
            builds=(SurveyedBuild(small.workloads, small.source_digest), wide),
            refused=(Result("small", Status.BUILD_FAILED),),
        )
        assert not half.unable
        assert still_unable(
            PROBLEM, lambda _config: BAKING, [half, survey(config(32, 4), None, template=BAKING)], GPU
        ) == (config(32, 4),)


def state_of(*found: Surveyed, attached: Attached | None = None, evals: int | None = None) -> State:
    begun = replace(started(Settings(evals=evals)), device=ABSENT, compiler="nvrtc 13.4")
    more = [attached] if attached else []
    return fold_records(records([begun, Admitted("t", 12, 12), *found, *more]))


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
        assert report.survey.planned == 12
        assert report.compiler == "nvrtc 13.4"
        assert report.evaluations == {}, "nothing has been tried"
        assert [(f.config["BLOCK"], f.status) for f in report.failures] == [
            (256, "build_failed"),
            (32, "over_limits"),
        ]

    def test_afterwards_the_unable_are_reported_and_need_no_trial(self) -> None:
        unable = still_unable(PROBLEM, lambda _config: PLAIN, FOUND, GPU)
        state = state_of(*FOUND, attached=Attached(GPU, "nvrtc 13.4", 8, unable))
        report = build_report(PROBLEM, state)
        assert report.survey is None
        assert report.evaluations == {}, "nothing has been measured"
        assert report.built == 2
        assert [(p.rule, p.count, p.reason) for p in report.pruned] == [("cannot_run", 2, "error: no")]
        assert {f.status for f in report.failures} == {"build_failed", "over_limits"}
        assert state.statuses() == {"build_failed": 1, "over_limits": 1}
        assert score_configs(PROBLEM, state) == (
            Tried(config(256), None, (None, None)),
            Tried(config(32, 2), None, (None, None)),
        )

    def test_of_a_survey_that_has_not_begun(self) -> None:
        report = survey_report(state_of())
        assert (report.planned, report.statuses, report.spans, report.spilling) == (12, {}, {}, ())
