"""The lab as a whole: order, what is done once, what is remembered, and what verification starts from."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import TypeGuard

import pytest

from tests.core.lab.labs import (
    Harness,
    device_of,
    fake_kernel,
    fault_template,
    lab,
    scale_problem,
    template_text,
)
from tests.core.lab.process_list import gone
from tests.core.lab.test_guards import buffer
from tests.wording import says
from tunesmith.backends.messages import Build, Load, RunCase, TimeRuns
from tunesmith.lab import measure
from tunesmith.problem.plan import Plan, Status
from tunesmith.run.events import Surveyed
from tunesmith.run.outcome import Timing, Trial

TWO = ("small = {", 'warm = { rows = 8, d = 64, cache = "warm" }\nsmall = {')


class DictCache:
    def __init__(self) -> None:
        self.timings: dict[str, Timing] = {}

    def get(self, key: str) -> Timing | None:
        return self.timings.get(key)

    def put(self, key: str, timing: Timing) -> None:
        self.timings[key] = timing


class TestOrder:
    @pytest.mark.long
    def test_outcomes_come_as_trials_were_submitted(self, tmp_path: Path) -> None:
        """Whatever fails fast or takes long."""
        with lab(scale_problem(), fault_template(), scratch=tmp_path) as harness:
            trials = [harness.trial(KIND=kind) for kind in (0, 1, 3, 8, 2, 0)]
            for trial in trials:
                harness.lab.submit(trial)
            outcomes = [harness.lab.collect() for _ in trials]
        assert [o.trial for o in outcomes] == trials
        assert [str(o.status) for o in outcomes] == ["ok", "build_failed", "crashed", "ok", "wrong", "ok"]
        assert all(o.seconds > 0 for o in outcomes)

    def test_results_come_in_the_order_of_the_trials_workloads(self) -> None:
        with lab(scale_problem(TWO), fault_template("0")) as harness:
            for names in (("warm", "small"), ("small", "warm"), ("small",)):
                harness.lab.submit(harness.trial(workloads=names))
                assert tuple(r.workload for r in harness.lab.collect().results) == names

    def test_builds_wait_while_the_host_is_measured(self) -> None:
        """On a CPU a build would disturb the measurement; elsewhere builds go on beside it."""
        device = replace(device_of("fake"), kind="cpu")
        with lab(scale_problem(), fault_template("0"), device=device) as harness:
            for kind in range(4):
                harness.lab.submit(harness.trial(KIND=kind))
            for kind in range(4, 9):  # one more whenever one is through, as the loop does
                harness.lab.collect()
                harness.lab.submit(harness.trial(KIND=kind))
            while harness.lab._queue:
                harness.lab.collect()
            kinds = [type(s.request) for s in harness.log.served]
        # The original's build, four for the first batch, then five for those that came meanwhile, in one go.
        builds = [i for i, kind in enumerate(kinds) if kind is Build]
        runs = [i for i, kind in enumerate(kinds) if kind is TimeRuns]
        assert len(builds) == 1 + 4 + 5
        assert builds[1:5] == list(range(builds[1], builds[1] + 4))
        assert sum(builds[4] < i < builds[5] for i in runs) == 4, (
            "the batch is measured before the next is built"
        )

    def test_all_that_is_submitted_is_evaluated_while_the_loop_thinks(self) -> None:
        """Except where the loop thinks on the cores that are measured."""
        for kind, ahead in (("gpu", 4), ("cpu", 1)):
            device = replace(device_of("fake"), kind=kind)
            template = fault_template("0").replace('grid = ["rows"]', 'grid = ["rows + KIND"]')
            with lab(scale_problem(), template, device=device) as harness:
                before = len(harness.log.of(TimeRuns))
                for number in range(4):
                    harness.lab.submit(harness.trial(KIND=number))
                harness.lab.collect()
                if kind == "gpu":
                    harness.lab._evaluations[-1].result()
                assert len(harness.log.of(TimeRuns)) - before == ahead
                rest = [harness.lab.collect() for _ in range(3)]
                assert [o.trial.config["KIND"] for o in rest if o.trial.config] == [1, 2, 3]

    def test_what_was_submitted_knows_what_came_before_it(self) -> None:
        with lab(scale_problem(), fault_template("0")) as harness:
            before = len(harness.log.of(TimeRuns))
            for _ in range(3):
                harness.lab.submit(harness.trial(KIND=0))
            first, *others = [harness.lab.collect().results[0].timing for _ in range(3)]
            assert len(harness.log.of(TimeRuns)) == before + 1
            assert others == [first, first]


class TestBuildingAhead:
    def builds(self, harness: Harness, *kinds: int) -> list[Surveyed]:
        for number in kinds:
            harness.lab.build(harness.trial("build", KIND=number))
        return [harness.lab.built() for _ in kinds]

    def test_answers_come_in_order_and_nothing_runs(self) -> None:
        template = fault_template().replace('block = ["64"]', 'block = ["2048 if KIND == 4 else 64"]')
        with lab(scale_problem(), template) as harness:
            before = len(harness.log.served)
            found = self.builds(harness, 2, 1, 0, 4)
            assert {type(s.request) for s in harness.log.served[before:]} == {Build}
        assert [f.config["KIND"] for f in found if f.config] == [2, 1, 0, 4]
        assert [str(f.status) for f in found] == ["ok", "build_failed", "ok", "over_limits"]
        assert "written not to compile" in found[1].refused[0].detail
        assert "2048 threads per block, the device allows 1024" in found[3].refused[0].detail
        assert found[0].builds[0].code_digest
        assert found[0].builds[0].launches == found[2].builds[0].launches

    def test_what_is_built_ahead_is_not_built_again(self) -> None:
        with lab(scale_problem(), fault_template("0")) as harness:
            (found,) = self.builds(harness, 3)
            before = len(harness.log.of(Build))
            outcome = harness.outcome(KIND=3)
            assert len(harness.log.of(Build)) == before
        assert outcome.status is Status.OK
        assert outcome.code_digest == found.builds[0].code_digest

    def test_builds_and_measurements_do_not_get_into_each_others_order(self) -> None:
        with lab(scale_problem(), fault_template("0")) as harness:
            harness.lab.build(harness.trial("build", KIND=1))
            harness.lab.submit(harness.trial(KIND=0))
            harness.lab.build(harness.trial("build", KIND=2))
            harness.lab.submit(harness.trial(KIND=3))
            built = [harness.lab.built().config for _ in range(2)]
            measured = [harness.lab.collect().trial.config for _ in range(2)]
        assert [c["KIND"] for c in built if c] == [1, 2]
        assert [c["KIND"] for c in measured if c] == [0, 3]

    def test_what_will_be_launched_otherwise_is_distinguished_before_it_runs(self) -> None:
        template = fault_template("0").replace('grid = ["rows"]', 'grid = ["rows + KIND // 2"]')
        with lab(scale_problem(), template) as harness:
            found = self.builds(harness, 0, 1, 2)
        first, alike, other = (f.builds[0].launches for f in found)
        assert first == alike != other


class TestOutOfTheRace:
    """A candidate that is surely behind is looked at once."""

    @pytest.mark.parametrize(
        ("inspects", "best", "limit"),
        [
            (True, None, 1.4),
            (True, 0.5, 0.7),
            (True, 9.0, 5.0),
            (False, None, 3.0),
            (False, 0.5, 1.5),
            (False, 9.0, 5.0),
        ],
    )
    def test_how_slow_it_may_be(self, inspects: bool, best: float | None, limit: float) -> None:
        device = replace(device_of("fake"), inspects=inspects)
        assert measure.give_up(1.0, best, device) == pytest.approx(limit)

    def test_the_best_at_its_workload_sets_the_pace(self) -> None:
        """The original takes 20512 ns at small; the first is much faster, the second three times slower."""
        times = "5000 + 20000 * (KIND // 2)"
        with lab(scale_problem(), fault_template("0", time=times)) as harness:
            usual = measure.policies_of(device_of("fake")).short
            before = len(harness.log.of(TimeRuns))
            counts = []
            for number in (2, 0, 2 + 1, 1):
                timing = harness.result(KIND=number).timing
                counts.append(len(timing.samples))
            limits = [s.request.policy.give_up for s in harness.log.of(TimeRuns)[before:]]
        assert limits[0] == pytest.approx(3 * 20512e-9)
        assert limits[-1] == pytest.approx(3 * 5000e-9)
        assert counts[0] >= usual.min_rounds, "as slow as the original: nobody was faster yet"
        assert counts[1] >= usual.min_rounds
        assert counts[2] == 1, "five times as slow as the best"
        assert counts[3] >= usual.min_rounds


class TestOnce:
    def test_equal_binary_and_launch_are_timed_once(self) -> None:
        with lab(scale_problem(), fault_template("0")) as harness:
            first = harness.result()
            timed = len(harness.log.of(TimeRuns))
            again = harness.result()
            assert len(harness.log.of(TimeRuns)) == timed
            assert (again.timing, again.key) == (first.timing, first.key)
            assert len(harness.log.of(Build)) == 2, "the original and the candidate"

    def test_another_launch_is_timed_again(self) -> None:
        template = fault_template("0").replace('grid = ["rows"]', 'grid = ["rows + KIND"]')
        with lab(scale_problem(), template) as harness:
            keys = {harness.result(KIND=kind).key for kind in (0, 1)}
            assert len(keys) == 2

    def test_finalists_are_always_timed_anew(self) -> None:
        with lab(scale_problem(), fault_template("0")) as harness:
            harness.result()
            before = len(harness.log.of(TimeRuns))
            harness.result("long", purpose="finalist")
            harness.result("long", purpose="finalist")
            races = harness.log.of(TimeRuns)[before:]
            assert [len(r.request.contenders) for r in races] == [2, 2]

    def test_a_sentinel_is_the_original_timed_anew(self) -> None:
        with lab(scale_problem(), fault_template("0")) as harness:
            for number in range(2):
                before = len(harness.log.of(TimeRuns))
                harness.lab.submit(Trial(number, None, ("small",), "short", "sentinel"))
                outcome = harness.lab.collect()
                assert outcome.results[0].timing.seconds == pytest.approx(20512e-9)
                assert len(harness.log.of(TimeRuns)) == before + 1

    def test_a_binary_is_loaded_once(self) -> None:
        with lab(scale_problem(TWO), fault_template("0")) as harness:
            harness.result()
            harness.result("long")
            loads = [s for s in harness.log.of(Load) if s.purpose == "device"]
            digests = [s.request.code_digest for s in loads]
        assert len(digests) == len(set(digests)) == 2


class TestCache:
    def test_serves_a_second_lab_and_only_with_permission(self) -> None:
        cache = DictCache()
        with lab(scale_problem(), fault_template("0"), cache=cache) as harness:
            first = harness.result()
        assert first.timing is not None
        assert cache.timings == {first.key: first.timing}
        with lab(scale_problem(), fault_template("0"), cache=cache) as harness:
            before = len(harness.log.of(TimeRuns))
            second = harness.result()
            assert len(harness.log.of(TimeRuns)) == before
            assert harness.log.of(RunCase), "right before fast, cached or not"
        assert second.timing == replace(first.timing, cached=True)
        with lab(scale_problem(), fault_template("0")) as harness:
            before = len(harness.log.of(TimeRuns))
            third = harness.result()
            assert len(harness.log.of(TimeRuns)) == before + 1
        assert not third.timing.cached

    def test_neither_the_original_nor_finalists_nor_failures(self) -> None:
        cache = DictCache()
        with lab(scale_problem(), fault_template(), cache=cache) as harness:
            harness.lab.submit(Trial(90, None, ("small",), "short", "sentinel"))
            harness.lab.collect()
            harness.result("long", KIND=0)
            harness.result(KIND=2)
            harness.lab.verify(harness.trial("long"))
        assert cache.timings == {}

    def test_a_wrong_candidate_gains_nothing_from_it(self) -> None:
        """The cache says how fast it is, the check comes first."""
        cache = DictCache()
        with lab(scale_problem(), fault_template("0", op="copy"), cache=cache) as harness:
            assert harness.result().status is Status.WRONG
        copy = scale_problem(kernel=fake_kernel(op="copy"), reference="def scale(x):\n    return x\n")
        with lab(copy, fault_template("0", op="copy"), cache=cache) as harness:
            assert harness.result().status is Status.OK
        with lab(scale_problem(), fault_template("0", op="copy"), cache=cache) as harness:
            assert harness.result().status is Status.WRONG

    def test_other_linked_inputs_are_another_measurement(self) -> None:
        """How fast a gather is depends on where it looks."""
        keys = []
        for step in (1, 2):
            inputs = (
                f"import numpy as np\ndef make(rows, d):\n    return {{'x': np.full((rows, d), {step})}}\n"
            )
            with lab(scale_problem(inputs=inputs), fault_template("0")) as harness:
                keys.append(harness.result().key)
        assert len(set(keys)) == 2

    def test_outcomes_of_the_journal_are_known(self) -> None:
        with lab(scale_problem(), fault_template("0"), baseline=False) as harness:
            known = [harness.lab.baseline().outcome, harness.outcome()]
        with lab(scale_problem(), fault_template("0"), baseline=False) as harness:
            for outcome in known:
                harness.lab.remember(outcome)
            assert harness.outcome().results == known[1].results
            assert harness.log.of(TimeRuns) == [], "nothing is timed a second time"


def is_case(request: object) -> TypeGuard[RunCase]:
    """And not what the original gives on data that was timed."""
    return isinstance(request, RunCase) and request.draw.place is None


class TestVerify:
    def test_an_original_that_nobody_has_timed_is_timed_first(self) -> None:
        with lab(scale_problem(), fault_template("0"), baseline=False) as harness:
            verified = harness.lab.verify(harness.trial("long"))
        (result,) = verified.outcome.results
        assert result.status is Status.OK
        assert result.timing.ratios

    @pytest.mark.long
    def test_fresh_processes_seeds_and_sizes(self, tmp_path: Path) -> None:
        with lab(scale_problem(), fault_template("0"), scratch=tmp_path) as harness:
            harness.result("long")
            before = list(harness.log.served)
            harness.log.clear()
            verified = harness.lab.verify(harness.trial("long"))
            after = list(harness.log.served)
        assert verified.outcome.status is Status.OK
        assert len(verified.outcome.results[0].timing.ratios) >= 11
        for purpose in ("device", "build", "judge"):
            old = max(s.generation for s in before if s.purpose == purpose)
            assert {s.generation for s in after if s.purpose == purpose} == {old + 1}
        assert [type(s.request) for s in after].count(Build) == 2, "the original is rebuilt as well"
        cases = [s.request for s in after if is_case(s.request)]
        earlier = [s.request for s in before if is_case(s.request)]
        workload = (("rows", 16), ("d", 32))
        fresh = {r.plan.sizes for r in cases} - {workload}
        assert len(fresh) >= 8
        assert verified.cases == len({(r.plan.sizes, r.draw) for r in cases})
        assert len(fresh - {r.plan.sizes for r in earlier}) >= 8
        assert workload in {r.plan.sizes for r in cases}
        assert not {r.draw.seed for r in cases} & {r.draw.seed for r in earlier}

    @pytest.mark.long
    def test_a_case_that_the_original_fails_judges_nobody(self) -> None:
        """It is wrong at two sizes that only the verification has: others take their places."""
        with lab(scale_problem(), fault_template("0")) as harness:
            harness.result("long")
            known = harness.sizes_run()
            harness.log.clear()
            harness.lab.verify(harness.trial("long"))
            new = [sizes for sizes in harness.sizes_run() if sizes not in known][:2]
        places = " or ".join(f"(rows == {s['rows']} and d == {s['d']})" for s in new)
        for fault in (2, 6):  # wrong, unstable
            own = scale_problem(kernel=fake_kernel(fault=f"{fault} if {places} else 0"))
            with lab(own, fault_template("0")) as harness:
                verified = harness.lab.verify(harness.trial("long"))
            assert verified.outcome.status is Status.OK
            assert {c.sizes for c in verified.replaced} <= {tuple(sizes.items()) for sizes in new}
            assert verified.replaced
            assert all(case.reason for case in verified.replaced)
            assert verified.cases >= 8

    def test_an_original_that_fails_every_case_clears_nobody(self) -> None:
        own = scale_problem(kernel=fake_kernel(fault="2"))
        with lab(own, fault_template("0"), baseline=False) as harness:
            verified = harness.lab.verify(harness.trial("long"))
        assert verified.outcome.status is Status.INFEASIBLE
        says(verified.outcome.results[0].detail, "original itself fails")

    def test_what_is_drawn_follows_from_the_seed_that_is_told(self) -> None:
        seen = []
        for seed in (1, 1, 2):
            with lab(scale_problem(), fault_template("0"), verify_seed=seed) as harness:
                verified = harness.lab.verify(harness.trial("long"))
                seen.append(
                    (
                        verified.seed,
                        [s.request.draw.seed for s in harness.log.of(RunCase) if is_case(s.request)],
                    )
                )
        assert seen[0] == seen[1] != seen[2]
        assert [seed for seed, _ in seen] == [1, 1, 2]

    @pytest.mark.long
    def test_no_values_are_those_of_another_run(self) -> None:
        drawn = []
        for salt in (0, 0, 1, 2):
            with lab(scale_problem(), fault_template("0"), salt=salt) as harness:
                assert harness.result("long").ok
                drawn.append({s.request.draw.seed for s in harness.log.of(RunCase)})
        assert drawn[0] == drawn[1]
        assert not drawn[0] & drawn[2]
        assert not drawn[2] & drawn[3]

    def test_finds_what_all_checks_before_missed(self) -> None:
        """A fault at sizes that no smoke or full case has."""
        problem = scale_problem()
        with lab(problem, fault_template("0")) as harness:
            harness.result("long")
            tried = {(s["rows"], s["d"]) for s in harness.sizes_run()}
        known = " or ".join(f"(rows == {rows} and d == {d})" for rows, d in sorted(tried))
        with lab(problem, fault_template(f"0 if {known} else 2")) as harness:
            assert harness.result("long").status is Status.OK
            verified = harness.lab.verify(harness.trial("long"))
            assert verified.outcome.status is Status.WRONG
            assert verified.outcome.results[0].timing is None

    def test_what_no_longer_builds(self) -> None:
        with lab(scale_problem(), fault_template()) as harness:
            verified = harness.lab.verify(harness.trial("long", KIND=1))
            assert [str(r.status) for r in verified.outcome.results] == ["build_failed"]


class TestBakedSizes:
    BAKED = """
[params]
BAKE = [0, 1]
[default]
BAKE = 0
[defines]
D_CONST = "d if BAKE else 0"
[launch]
grid = ["rows"]
block = ["64"]
"""

    def template(self, fault: str = "0", declaration: str = BAKED) -> str:
        return template_text(
            declaration,
            "int a[BAKE + 1], b[D_CONST + 1];\n" + fake_kernel(fault=fault, time="9000 + D_CONST"),
        )

    def test_one_build_for_each_size(self) -> None:
        with lab(scale_problem(TWO), self.template()) as harness:
            builds = len(harness.log.of(Build))
            harness.result(BAKE=0)
            assert len(harness.log.of(Build)) == builds + 1
            outcome = harness.outcome(BAKE=1)
            assert len(harness.log.of(Build)) == builds + 3
        assert [round(r.timing.seconds * 1e9) for r in outcome.results if r.timing] == [9064, 9032]

    def test_workloads_that_share_a_build_keep_their_places(self) -> None:
        three = (
            "small = {",
            "a = { rows = 4, d = 64 }\nb = { rows = 4, d = 8 }\nc = { rows = 2, d = 64 }\nsmall = {",
        )
        with lab(scale_problem(three), self.template()) as harness:
            outcome = harness.outcome(BAKE=1)
            assert [r.workload for r in outcome.results] == ["a", "b", "c", "small"]

    @pytest.mark.long
    def test_each_build_is_tested_at_its_own_size_alone(self) -> None:
        """Wrong anywhere else is no fault: there it is never launched."""
        with lab(scale_problem(TWO), self.template("2 if D_CONST != 0 and d != D_CONST else 0")) as harness:
            outcome = harness.outcome("long", BAKE=1)
            assert [str(r.status) for r in outcome.results] == ["ok", "ok"]
            assert harness.lab.verify(harness.trial("long", BAKE=1)).outcome.status is Status.OK

    def test_a_define_without_value_is_a_result_not_an_error(self) -> None:
        declaration = self.BAKED.replace('"d if BAKE else 0"', '"d // (BAKE - 1)"')
        with lab(scale_problem(), self.template(declaration=declaration)) as harness:
            result = harness.result(BAKE=1)
            assert result.status is Status.INFEASIBLE
            assert "d // 0" in result.detail


class TestRobustness:
    def test_memory_laid_out_for_timing_makes_room_for_a_check(self) -> None:
        """The finalist's full check at a workload of half the memory comes after it was timed."""
        device = device_of("fake")
        device = replace(device, limits=replace(device.limits, memory=600_000, max_allocation=300_000))
        problem = scale_problem(
            ("rows = 16, d = 32", "rows = 64, d = 64"),
            ("max = 64 }\nd", "max = 200 }\nd"),
            ("rows = 64, d", "rows = 200, d"),
        )
        with lab(problem, fault_template("0"), device=device) as harness:
            assert harness.result().status is Status.OK
            assert harness.result("long").status is Status.OK

    @pytest.mark.long
    def test_workers_killed_while_idle_are_nobodys_fault_and_none_is_left_after_close(
        self, tmp_path: Path
    ) -> None:
        with lab(scale_problem(), fault_template(), scratch=tmp_path) as harness:
            processes = harness.log.processes
            assert sorted(processes) == ["build", "device", "judge", "reference"]
            for worker in processes.values():
                pid = worker.pid
                os.kill(pid, signal.SIGKILL)
                assert gone(pid, reaped_by=worker)
            assert harness.result("long").status is Status.OK
            pids = [worker.pid for worker in processes.values()]
        assert all(gone(pid) for pid in pids)


def plan_of(nbytes: int) -> Plan:
    """One array of so many bytes."""
    return Plan((), (buffer("uint8", (nbytes,)),), (), (), (), ())


class TestDeadlines:
    def test_a_candidate_has_a_hundred_times_the_original_and_a_second_at_least(self) -> None:
        device = device_of("fake")
        assert measure.launch_deadline(0.001, device, 5.0) == 1.0
        assert measure.launch_deadline(0.5, device, 5.0) == 50.0

    def test_and_time_to_finish_compiling_where_the_driver_does_that_late(self) -> None:
        device = replace(device_of("fake"), finishes_compiling_at_launch=True)
        assert measure.launch_deadline(0.001, device, 4.0) > 20.0

    def test_and_time_for_its_data(self) -> None:
        """Drawing, digesting and moving a gigabyte is not the candidate's doing."""
        device = device_of("fake")
        assert measure.case_deadline(0.001, device, 0.0, plan_of(1 << 30)) > 10
        assert measure.case_deadline(0.001, device, 0.0, plan_of(1 << 10)) < 1.1
        gpu = replace(device, inspects=True)
        assert measure.case_deadline(0.001, gpu, 0.0, plan_of(1 << 30)) > 10, "the host may have to judge it"
