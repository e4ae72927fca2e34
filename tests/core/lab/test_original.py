"""The kernel as it comes: what is said when it is wrong already, and by what it is judged."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.lab.labs import device_of, fake_kernel, fault_template, lab, scale_problem
from tunesmith.base.errors import BadInput, KernelWrong, TunesmithError
from tunesmith.lab import measure, references
from tunesmith.lab.measure import original_failed
from tunesmith.lab.memory import Verdict
from tunesmith.problem.cases import Case
from tunesmith.problem.device import Device
from tunesmith.problem.plan import ExtraCase, Status
from tunesmith.problem.problem import Problem
from tunesmith.run.events import Extended

WORKLOAD = "small = { rows = 16, d = 32 }"


def check(problem: Problem, scratch: Path | None = None, device: Device | None = None) -> int:
    with lab(problem, baseline=False, scratch=scratch, device=device) as harness:
        return harness.lab.check()


def failure(problem: Problem, scratch: Path | None = None, device: Device | None = None) -> TunesmithError:
    with pytest.raises(TunesmithError) as caught:
        check(problem, scratch, device)
    return caught.value


class TestWrongAlready:
    @pytest.mark.parametrize(("distribution", "told"), [("wide", True), ("normal", False)])
    def test_what_wide_inputs_are_and_how_to_say_that_callers_are_tamer(
        self, distribution: str, told: bool
    ) -> None:
        case = Case((("rows", 1), ("d", 8)), distribution, 0, "full")
        error = original_failed(scale_problem(), Verdict(Status.WRONG, "off"), case)
        assert ("from 1e-3 to 1e3" in (error.hint or "")) == told
        assert ('values = "normal"' in (error.hint or "")) == told

    @pytest.mark.parametrize(
        ("fault", "words", "hint"),
        [
            (
                "2",
                r"the kernel is wrong already at rows=\d+, d=\d+: out\[.*\] is .*, expected ",
                "mend the kernel",
            ),
            (
                "7",
                r"the kernel is wrong already at .*: it writes outside out: 4 bytes past its end",
                "mend the kernel",
            ),
            (
                "10",
                r"the kernel is wrong already at .*: 8 of 8 elements of out are never written, or computed "
                r"from what was there before: is it inout\?",
                "mend the kernel",
            ),
            (
                "6",
                r"the kernel is not deterministic at .*: two runs on the same inputs",
                "deterministic = false",
            ),
        ],
    )
    def test_says_how_and_where(self, fault: str, words: str, hint: str) -> None:
        error = failure(scale_problem(kernel=fake_kernel(fault=fault)))
        assert isinstance(error, KernelWrong)
        assert error.exit_code == 3
        assert re.search(words, error.message)
        assert hint in (error.hint or "")
        assert error.where == "kernel.fake"

    @pytest.mark.parametrize(
        ("fault", "words"),
        [
            ("3", r"the kernel crashes at rows=1, d=8: killed by SIGABRT"),
            ("4", r"the kernel crashes at rows=1, d=8: killed by SIGSEGV"),
            ("5", r"the kernel does not finish at rows=1, d=8: no answer within 1\.0 s"),
        ],
    )
    @pytest.mark.few(1)
    def test_also_when_it_takes_its_process_along(
        self, fault: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(measure, "ORIGINAL_SECONDS", 1.0)
        error = failure(scale_problem(kernel=fake_kernel(fault=fault)), tmp_path)
        assert isinstance(error, KernelWrong)
        assert re.search(words, error.message)

    def test_only_at_an_edge_of_the_contract(self) -> None:
        """The workload itself is fine."""
        error = failure(scale_problem(kernel=fake_kernel(fault="2 if rows % 2 == 1 and d > 40 else 0")))
        assert isinstance(error, KernelWrong)
        assert re.search(r"rows=\d*[13579], d=(48|56|64)", error.message)

    def test_only_at_the_workload(self) -> None:
        problem = scale_problem(
            (WORKLOAD, "small = { rows = 19, d = 24 }"),
            kernel=fake_kernel(fault="2 if rows == 19 and d == 24 else 0"),
        )
        assert "rows=19, d=24" in failure(problem).message

    def test_a_right_one_counts_its_cases(self) -> None:
        assert check(scale_problem()) > 10

    @pytest.mark.long
    def test_loud_is_not_wrong(self, tmp_path: Path) -> None:
        assert check(scale_problem(kernel=fake_kernel(fault="8 if rows > 60 else 0")), tmp_path) > 10

    def test_it_does_not_compile(self) -> None:
        error = failure(scale_problem(kernel=fake_kernel(fault="1")))
        assert isinstance(error, BadInput)
        assert "the kernel does not compile:\nkernel.fake:1: error" in error.message
        assert error.where == "kernel.fake"

    def test_an_array_larger_than_any_may_be(self) -> None:
        problem = scale_problem(("max = 64 }\nd", "max = 4096 }\nd"))
        error = failure(problem, device=with_memory(1 << 23, largest=400_000))
        assert isinstance(error, BadInput)
        assert re.search(
            r"cannot be launched at .*: array out needs \d+ bytes, the device allows 400000", error.message
        )

    def test_more_arrays_than_there_is_memory_for(self) -> None:
        error = failure(scale_problem(), device=with_memory(80000, largest=1 << 16))
        assert isinstance(error, BadInput)
        assert re.search(
            r"the kernel cannot run here at rows=\d+, d=\d+: \d+ bytes wanted, \d+ free", error.message
        )
        assert "smaller sizes" in (error.hint or "")

    def test_a_launch_no_device_can_do(self) -> None:
        error = failure(scale_problem(('block = ["64"]', 'block = ["2048"]')))
        assert isinstance(error, BadInput)
        assert "2048 threads per block, the device allows 1024" in error.message

    def test_a_scalar_that_does_not_fit_its_type(self) -> None:
        """Read at the workloads alone the file is fine; an edge of its contract overflows the argument."""
        problem = scale_problem(
            ('type = "int32"\nvalue = "d"', 'type = "int8"\nvalue = "4 * d"'),
            ("max = 64, mul", "max = 24, mul"),
            (WORKLOAD, "small = { rows = 16, d = 24 }"),
        )
        assert check(problem) > 10
        problem = scale_problem(
            ('type = "int32"\nvalue = "d"', 'type = "int8"\nvalue = "4 * d"'),
            (WORKLOAD, "small = { rows = 16, d = 24 }"),
        )
        error = failure(problem)
        assert isinstance(error, BadInput)
        assert re.search(
            r"cannot be launched at .*d=(32|40|48|56|64).*: d = \d+ does not fit int8", error.message
        )


def with_memory(total: int, largest: int) -> Device:
    device = device_of("fake")
    return replace(device, limits=replace(device.limits, memory=total, max_allocation=largest))


class TestPermissions:
    def test_not_deterministic_by_intent(self) -> None:
        varies = fake_kernel(fault="6")
        problem = scale_problem(("atol = 1e-6", "atol = 1e-3\ndeterministic = false"), kernel=varies)
        with lab(problem, fault_template()) as harness:
            assert harness.result(KIND=0).status is Status.OK
            assert harness.result("long", KIND=0).status is Status.OK
            assert harness.result(KIND=2).status is Status.WRONG

    def test_baseline_may_fail(self) -> None:
        """Candidates still answer to the reference: the original's error opens no door."""
        problem = scale_problem(
            ("atol = 1e-6", "atol = 1e-6\nbaseline_may_fail = true"), kernel=fake_kernel(fault="2")
        )
        with lab(problem, fault_template()) as harness:
            assert harness.result("long", KIND=0).status is Status.OK
            assert harness.result("long", KIND=2).status is Status.WRONG

    def test_baseline_may_fail_also_where_rows_are_sampled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A right candidate differs from a wrong original, and is not to be blamed for that."""
        monkeypatch.setattr(references, "SAMPLED_ABOVE", 1 << 10)
        problem = scale_problem(
            ("atol = 1e-6", 'atol = 1e-6\nbaseline_may_fail = true\nindependent = "rows"'),
            kernel=fake_kernel(fault="2"),
        )
        with lab(problem, fault_template()) as harness:
            assert harness.result("long", KIND=0).status is Status.OK
            assert harness.result("long", KIND=2).status is Status.WRONG

    def test_baseline_may_fail_excuses_no_crash(self) -> None:
        problem = scale_problem(
            ("atol = 1e-6", "atol = 1e-6\nbaseline_may_fail = true"), kernel=fake_kernel(fault="7")
        )
        assert isinstance(failure(problem), KernelWrong)


class TestWithoutReference:
    @pytest.fixture
    def problem(self) -> Problem:
        return scale_problem(reference=None)

    def test_the_original_is_the_judge(self, problem: Problem) -> None:
        with lab(problem, fault_template(), baseline=False) as harness:
            assert harness.lab.baseline().judged_by == "original"
            assert harness.result("long", KIND=0).status is Status.OK
            result = harness.result(KIND=2)
            assert result.status is Status.WRONG
            assert "off by 1" in result.detail
            assert harness.result(KIND=7).status is Status.WRONG
            assert harness.result(KIND=10).status is Status.WRONG

    def test_another_computation_does_not_match(self, problem: Problem) -> None:
        with lab(problem, fault_template("0", op="copy")) as harness:
            assert harness.result().status is Status.WRONG

    def test_with_one_the_reference_is(self) -> None:
        with lab(scale_problem(), baseline=False) as harness:
            assert harness.lab.baseline().judged_by == "reference"

    def test_an_original_that_writes_nothing_is_found_out_all_the_same(self) -> None:
        error = failure(scale_problem(reference=None, kernel=fake_kernel(fault="10")))
        assert "never written" in error.message


class TestBaseline:
    def test_times_every_workload(self) -> None:
        problem = scale_problem((WORKLOAD, f'{WORKLOAD}\nwarm = {{ rows = 8, d = 64, cache = "warm" }}'))
        with lab(problem, baseline=False) as harness:
            outcome = harness.lab.baseline().outcome
        assert [r.workload for r in outcome.results] == ["small", "warm"]
        times = [r.timing.seconds for r in outcome.results if r.timing]
        assert times == pytest.approx([20512e-9, 20512e-9])
        assert outcome.trial.config is None
        assert len({r.key for r in outcome.results}) == 2

    def test_progress_is_reported(self) -> None:
        said: list[str] = []
        with lab(scale_problem(), baseline=False, progress=said.append) as harness:
            harness.lab.baseline()
        assert said[0].startswith("checking the original, case 1 of ")
        assert said[-1] == "timing the original at small"


RIGHT = ExtraCase((("rows", 11), ("d", 40)), "uniform", "between everything")
FAILS = ExtraCase((("rows", 13), ("d", 40)), "normal", "an unlucky number")


def test_what_the_original_fails_is_left_out() -> None:
    problem = scale_problem(kernel=fake_kernel(fault="2 if rows == 13 and d == 40 else 0"))
    with lab(problem) as harness:
        found = harness.lab.extend(Extended((RIGHT, FAILS), ((FAILS, "was there before"),)))
    assert found.cases == (RIGHT,)
    before, after = found.aside
    assert before == (FAILS, "was there before")
    assert after[0] == FAILS
    assert after[1].startswith("the original itself is wrong there: ")


def test_a_finalist_has_to_pass_what_was_added() -> None:
    template = fault_template("2 if KIND == 1 and rows == 11 and d == 40 else 0")
    with lab(scale_problem(), template) as harness:
        assert harness.result("long", KIND=1).status is Status.OK
    with lab(scale_problem(), template) as harness:
        harness.lab.extend(Extended((RIGHT,)))
        assert harness.result("long", KIND=0).status is Status.OK
        result = harness.result("long", KIND=1)
    assert result.status is Status.WRONG
    assert "rows=11, d=40" in result.detail


@pytest.mark.long
def test_the_winner_has_to_pass_it_again_with_other_values() -> None:
    template = fault_template("2 if KIND == 1 and rows == 11 and d == 40 else 0")
    with lab(scale_problem(), template) as harness:
        plain = harness.lab.verify(harness.trial("long", KIND=1))
        assert plain.outcome.status is Status.OK
    with lab(scale_problem(), template) as harness:
        harness.lab.extend(Extended((RIGHT,)))
        right = harness.lab.verify(harness.trial("long", KIND=0))
        wrong = harness.lab.verify(harness.trial("long", KIND=1))
    assert right.outcome.status is Status.OK
    assert right.cases > plain.cases
    assert wrong.outcome.status is Status.WRONG
    assert "rows=11, d=40" in wrong.outcome.results[0].detail
