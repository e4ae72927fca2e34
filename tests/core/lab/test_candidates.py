"""What becomes of a candidate kernel: every way to go wrong has its word, and nothing wrong has a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.core.lab.labs import Harness, device_of, fault_template, lab, scale_problem
from tests.wording import says
from tunesmith.backends import fake, port
from tunesmith.backends.fake import FAULTS
from tunesmith.backends.messages import TimeRuns
from tunesmith.base.errors import DeviceMissing
from tunesmith.lab import references
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Plan, Status
from tunesmith.run.outcome import Result

LARGE = "[contract]\nrows = { min = 1, max = 1024 }\nd = { min = 8, max = 1024, multiple_of = 8 }"
CONTRACT = "[contract]\nrows = { min = 1, max = 64 }\nd = { min = 8, max = 64, multiple_of = 8 }"


WORDS = (
    ("wrong", Status.WRONG, r"at rows=1, d=8 \(inputs: normal\): out\[0, 7\] is .*, expected .*: off by 1"),
    ("unstable", Status.UNSTABLE, r"two runs on the same inputs give different out"),
    ("past_end", Status.WRONG, r"writes outside out: 4 bytes past its end, the nearest 0 away"),
    ("garbage", Status.UNSTABLE, r"two runs on the same inputs give different out"),
    ("idle", Status.WRONG, r"8 of 8 elements of out are never written"),
)


def kind(fault: str) -> int:
    return FAULTS.index(fault)


@pytest.fixture(scope="module")
def harmless() -> Iterator[Harness]:
    with lab(scale_problem(), fault_template()) as harness:
        yield harness


@pytest.fixture(scope="module")
def deadly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    scratch = tmp_path_factory.mktemp("scratch")
    with lab(scale_problem(), fault_template(), scratch=scratch) as harness:
        yield harness


class TestHarmless:
    """Faults that leave the process alive."""

    def test_a_right_one_is_timed(self, harmless: Harness) -> None:
        result = harmless.result()
        assert result.status is Status.OK
        assert result.timing.seconds == pytest.approx(10512e-9)
        assert result.timing.paired == ()

    def test_a_finalist_is_timed_against_the_original(self, harmless: Harness) -> None:
        timing = harmless.result("long").timing
        assert len(timing.ratios) == len(timing.samples) >= 9
        assert timing.ratios[0] == pytest.approx(20512 / 10512)

    @pytest.mark.parametrize(
        ("fault", "status", "words"),
        [("build", Status.BUILD_FAILED, r"template\.fake:1: error: .* written not to compile"), *WORDS],
    )
    def test_a_fault_has_its_word(self, harmless: Harness, fault: str, status: Status, words: str) -> None:
        harmless.log.clear()
        result = harmless.result(KIND=kind(fault))
        assert (result.status, result.timing) == (status, None)
        assert re.search(words, result.detail)
        assert harmless.log.of(TimeRuns) == [], "nothing wrong is ever timed"

    def test_a_verdict_is_reached_once(self, harmless: Harness) -> None:
        assert harmless.result(KIND=kind("wrong")).status is Status.WRONG
        harmless.log.clear()
        assert harmless.result(KIND=kind("wrong")).status is Status.WRONG
        assert harmless.sizes_run() == []


class TestDeadly:
    """Faults that take the process along, in real workers."""

    @pytest.mark.parametrize(
        ("fault", "status", "words"),
        [
            ("abort", Status.CRASHED, "killed by SIGABRT"),
            ("segfault", Status.CRASHED, "killed by SIGSEGV"),
            ("hang", Status.TIMED_OUT, r"no answer within 1\.\d s"),
        ],
    )
    @pytest.mark.few(1)
    def test_only_the_suspect_is_charged(
        self, deadly: Harness, fault: str, status: Status, words: str
    ) -> None:
        for name in (fault, "none"):
            deadly.lab.submit(deadly.trial(KIND=kind(name)))
        bad, good = deadly.lab.collect(), deadly.lab.collect()
        assert bad.results[0].status is status
        assert re.search(words, bad.results[0].detail)
        assert good.results[0].status is Status.OK
        assert good.results[0].timing is not None

    def test_a_loud_one_is_none_the_worse(self, deadly: Harness) -> None:
        assert deadly.result(KIND=kind("print")).timing is not None

    @pytest.mark.long
    def test_a_crash_while_it_is_timed(self, tmp_path: Path) -> None:
        """It passes the smoke check, which is small, and dies at the workload."""
        problem = scale_problem((CONTRACT, LARGE), ("rows = 16, d = 32", "rows = 1024, d = 512"))
        faults = "3 if KIND == 1 and rows * d > 300000 else 0"
        with lab(problem, fault_template(faults), scratch=tmp_path) as harness:
            result = harness.result(KIND=1)
            assert (result.status, result.timing) == (Status.CRASHED, None)
            assert "SIGABRT" in result.detail
            assert harness.result(KIND=2).status is Status.OK
            assert harness.result("long", KIND=1).status is Status.CRASHED


def test_a_driver_that_fails_a_launch_is_not_trusted_again() -> None:
    """The session may be unusable after an illegal access: the next candidate gets a fresh one."""
    with lab(scale_problem(), fault_template("0", op="unheard of")) as harness:
        before = harness.log.served[-1].generation
        result = harness.result()
        assert result.status is Status.CRASHED
        assert "unheard of" in result.detail
        assert harness.result(KIND=3).status is Status.CRASHED
        assert {s.generation for s in harness.log.served if s.purpose == "device"} == {before, before + 1}


def test_a_kernel_that_wrote_outside_leaves_no_process_behind() -> None:
    """What it may have hit beyond the guards is anyone's guess, so nobody else runs there."""
    with lab(scale_problem(), fault_template()) as harness:
        before = [s for s in harness.log.served if s.purpose == "device"][-1].generation
        assert harness.result(KIND=kind("past_end")).status is Status.WRONG
        assert harness.result().status is Status.OK
        ours = [s for s in harness.log.served if s.purpose == "device"]
        assert ours[-1].generation == before + 1


def test_large_sizes_are_seen_by_the_full_check_of_a_finalist() -> None:
    problem = scale_problem((CONTRACT, LARGE))
    template = fault_template(
        "2 if KIND == 1 and rows * d > 300000 else (7 if KIND == 2 and rows > 1000 and d > 1000 else 0)"
    )
    with lab(problem, template) as harness:
        for value in (1, 2):
            assert harness.result("short", KIND=value).status is Status.OK, "the smoke check is small"
            assert harness.result("long", KIND=value).status is Status.WRONG
        assert harness.result("long").status is Status.OK


def test_an_input_that_is_changed() -> None:
    """The candidate adds 1 to x, and would be found out by x alone: it never writes out."""
    template = fault_template(
        op="increment", args="x, out, rows, d", launch='args = ["x", "out", "rows", "d"]'
    )
    with lab(scale_problem(), template) as harness:
        result = harness.result()
    assert result.status is Status.WRONG
    assert "it changes the input x" in result.detail


def test_garbage_from_an_operator_that_may_vary_is_wrong() -> None:
    problem = scale_problem(("atol = 1e-6", "atol = 1e-6\ndeterministic = false"))
    with lab(problem, fault_template()) as harness:
        assert harness.result(KIND=kind("garbage")).status is Status.WRONG
        assert harness.result(KIND=kind("unstable")).status is Status.WRONG, "beyond the tolerance"
        assert harness.result(KIND=kind("idle")).status is Status.WRONG
        assert harness.result().status is Status.OK


class TestTooFast:
    """4096 bytes at 1 GB/s take 4.096 µs."""

    def results(self, cache: str, time: str, pins: float = 1e9) -> list[Result]:
        device = device_of("fake")
        device = replace(device, limits=replace(device.limits, pin_bandwidth=pins))
        problem = scale_problem(("d = 32 }", f"d = 32{cache} }}"))
        with lab(problem, fault_template("0", time=time), device=device) as harness:
            verified = harness.lab.verify(harness.trial("long")).outcome.results[0]
            return [harness.result(), harness.result("long"), verified]

    def test_is_suspect_at_every_effort(self) -> None:
        for result in self.results("", "4000"):
            assert (result.status, result.timing) == (Status.SUSPECT, None)
            says(result.detail, "4 µs for 4096 bytes", "faster")

    def test_just_above_the_pins_is_not(self) -> None:
        assert [r.status for r in self.results("", "4200")] == [Status.OK] * 3

    @pytest.mark.long
    def test_where_the_original_is_too_fast_as_well_not_all_arrays_move(self) -> None:
        assert [r.status for r in self.results("", "4000", pins=1e7)] == [Status.OK] * 3

    def test_a_warm_cache_has_no_pins(self) -> None:
        assert [r.status for r in self.results(', cache = "warm"', "4000")] == [Status.OK] * 3


class TestRules:
    """What a template itself says about where it may run."""

    def test_requirements_device_limits_and_what_a_build_uses(self) -> None:
        extra = """
[require]
enough_rows = "KIND != 1 or rows >= 100"
not_on_this_device = "KIND != 2 or device.sms > 100"
registers = "KIND != 3 or resources.registers < 32"
"""
        launch_block = 'block = ["4096 if KIND == 4 else 64"]'
        template = fault_template("0", extra=extra).replace('block = ["64"]', launch_block)
        with lab(scale_problem(), template) as harness:
            expected = {0: "ok", 1: "infeasible", 2: "infeasible", 3: "over_limits", 4: "over_limits"}
            assert {k: str(harness.result(KIND=k).status) for k in expected} == expected
            assert "4096 threads per block, the device allows 1024" in harness.result(KIND=4).detail

    def test_a_domain_without_any_legal_size(self) -> None:
        extra = '[require]\nonly_here = "KIND == 0 or rows * d == 16 * 32 + 1"'
        with lab(scale_problem(), fault_template("0", extra=extra)) as harness:
            assert harness.result(KIND=1).status is Status.INFEASIBLE

    def test_only_its_own_domain_is_tested(self) -> None:
        """Wrong where the template says it must not run is not wrong."""
        extra = '[require]\neven = "d % 16 == 0"'
        with lab(scale_problem(), fault_template("2 if d % 16 != 0 else 0", extra=extra)) as harness:
            harness.log.clear()
            assert harness.result("long").status is Status.OK
            assert harness.sizes_run()
            assert all(sizes["d"] % 16 == 0 for sizes in harness.sizes_run())

    def test_one_workload_may_fail_alone(self) -> None:
        problem = scale_problem(("small = {", "tiny = { rows = 1, d = 8 }\nsmall = {"))
        extra = '[require]\nrows = "rows > 1"'
        with lab(problem, fault_template("0", extra=extra)) as harness:
            outcome = harness.outcome()
            assert [(r.workload, str(r.status)) for r in outcome.results] == [
                ("tiny", "infeasible"),
                ("small", "ok"),
            ]
            assert outcome.status is Status.OK


class TestSampling:
    """Large cases of row-independent operators: a reference for some rows, the original for the others."""

    WIDE = (("atol = 1e-6", 'atol = 1e-6\nindependent = "rows"'), ("max = 64 }\nd", "max = 512 }\nd"))

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(references, "SAMPLED_ABOVE", 1 << 12)

    def test_the_reference_sees_sampled_rows_only(self) -> None:
        reference = (
            "def scale(x, rows):\n    assert rows == len(x)\n    assert x.size <= 4096\n    return 2.0 * x\n"
        )
        with lab(
            scale_problem(*self.WIDE, reference=reference), fault_template("0"), baseline=False
        ) as harness:
            harness.lab.check()
            assert max(s["rows"] * s["d"] for s in harness.sizes_run()) > 4096

    def test_an_error_in_a_row_that_was_not_sampled_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(references.References, "_rows", only_first_rows)
        template = fault_template("2 if KIND == 1 and rows * d > 4096 else 0")  # the last element of all
        with lab(scale_problem(*self.WIDE), template) as harness:
            result = harness.result("long", KIND=1)
            assert result.status is Status.WRONG
            assert "off by 1" in result.detail
            assert harness.result("long").status is Status.OK

    def test_rows_are_drawn_per_case_with_both_ends(self) -> None:
        problem = scale_problem(*self.WIDE)
        with lab(problem, baseline=False) as harness:
            harness.lab.check()
            sampled = [
                s.request.rows for s in harness.log.served if s.purpose == "reference" and s.request.rows
            ]
            totals = [
                dict(s.request.plan.sizes)["rows"]
                for s in harness.log.served
                if s.purpose == "reference" and s.request.rows
            ]
        assert len(sampled) >= 3
        assert all(
            rows[0] == 0 and rows[-1] == total - 1 for rows, total in zip(sampled, totals, strict=True)
        )
        assert all(len(rows) <= references.SAMPLED_ROWS + 2 for rows in sampled)
        assert len(set(sampled)) > 1


def only_first_rows(_: references.References, plan: Plan, seed: int) -> NDArray[np.intp] | None:
    return np.array([0, 1]) if max(b.count for b in plan.buffers) > references.SAMPLED_ABOVE else None


class Vanishing(fake.FakeBackend):
    """Opened once by each of the two processes; after a crash it is not there again."""

    opened = 0

    def open(self, device: Device) -> port.Session:
        Vanishing.opened += 1
        if Vanishing.opened > 2:
            raise port.Unsupported("the driver sees no device")
        return super().open(device)


class Lost(fake.FakeSession):
    def run(self, *_given: object, **_named: object) -> float:
        raise port.DeviceLost("uncorrectable error")


class Losing(fake.FakeBackend):
    def open(self, device: Device) -> port.Session:
        return Lost(device)


@pytest.mark.parametrize(("backend", "said"), [(Losing, "uncorrectable"), (Vanishing, "sees no device")])
def test_ends_what_is_under_way(backend: Callable[[], port.Backend], said: str) -> None:
    Vanishing.opened = 0
    with lab(scale_problem(), fault_template(), backend=backend, baseline=backend is Vanishing) as harness:
        if backend is Vanishing:
            harness.lab._runner.restart()
        with pytest.raises(DeviceMissing, match=said):
            harness.outcome(KIND=0) if backend is Vanishing else harness.lab.baseline()
