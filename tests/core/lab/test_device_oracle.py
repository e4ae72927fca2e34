"""The lab on a device that judges for itself: cases are kept there, and told again when they are lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import astuple, replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from tests.core.lab.kept_scenarios import TWICE, add
from tests.core.lab.labs import Harness, fake_kernel, fault_template, lab, scale_problem
from tests.core.lab.numpy_inspector import InspectingBackend
from tests.core.lab.oracles import SECONDS, Judges, a_case
from tests.core.lab.python_kernels import Argument, Kernel, then
from tests.core.lab.test_candidates import WORDS, kind
from tunesmith.backends.messages import (
    CheckCase,
    CheckCases,
    Judged,
    Open,
    Refer,
    RunCase,
    StoreCase,
    TimeRuns,
)
from tunesmith.backends.port import LaunchFailed
from tunesmith.base.errors import BadInput, KernelWrong
from tunesmith.lab import references
from tunesmith.lab.judge import cases as oracles
from tunesmith.lab.memory import Examined, Verdict
from tunesmith.lab.worker import device_cases
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem


def a_lab(problem: Problem | None = None, *args: Any, **kwargs: Any) -> AbstractContextManager[Harness]:
    device = kwargs.pop("device", InspectingBackend().devices()[0])
    return lab(problem or scale_problem(), *args, backend=InspectingBackend, device=device, **kwargs)


class TestLab:
    @pytest.fixture(scope="class")
    @classmethod
    def harness(cls) -> Iterator[Harness]:
        with a_lab(None, fault_template()) as made:
            yield made

    def test_no_array_is_sent_back(self, harness: Harness) -> None:
        assert harness.result("long").status is Status.OK
        assert harness.log.of(RunCase) == []
        assert sum(len(s.request.checks) for s in harness.log.of(CheckCases)) > 10

    def test_the_original_is_stored_and_timed(self, harness: Harness) -> None:
        stored = [s for s in harness.log.of(StoreCase) if s.request.code_digest]
        assert {s.reply.status for s in stored} == {Status.OK}  # type: ignore[union-attr]
        assert harness.result().timing is not None

    @pytest.mark.parametrize(("fault", "status", "words"), WORDS)
    def test_a_fault_has_its_word(self, harness: Harness, fault: str, status: Status, words: str) -> None:
        harness.log.clear()
        result = harness.result(KIND=kind(fault))
        assert (result.status, result.timing) == (status, None)
        assert re.search(words, result.detail)
        assert harness.log.of(TimeRuns) == [], "nothing wrong is ever timed"
        asked = [type(s.request) for s in harness.log.served]
        if "writes outside" in words or status is Status.UNSTABLE:
            assert asked[-1] is CheckCases, "nothing that is kept explains it"
            return
        assert asked[-1] is CheckCase, "the original is asked whether what is kept was spoilt"
        assert harness.log.served[-1].reply.status is Status.OK

    def test_a_verified_kernel_is_judged_by_a_fresh_worker(self, harness: Harness) -> None:
        before = harness.log.served[-1].generation
        verified = harness.lab.verify(harness.trial("long"))
        assert verified.outcome.results[0].status is Status.OK
        assert verified.cases > 5
        assert harness.log.of(CheckCases)[-1].generation > before
        assert all(error.array == "out" for case in verified.seen for error in case.errors)
        assert [len(case.errors) for case in verified.seen] == [1] * verified.cases

    def test_time_in_kernels_is_counted(self, harness: Harness) -> None:
        assert harness.outcome().busy >= 0
        assert harness.lab._runner.busy > 0


class TestOriginal:
    @pytest.mark.parametrize(
        ("fault", "words"),
        [
            ("2", r"the kernel is wrong already at rows=\d+, d=\d+: out\[.*\] is .*, expected "),
            ("7", r"the kernel is wrong already at .*: it writes outside out: 4 bytes past its end"),
            ("10", r"the kernel is wrong already at .*: 8 of 8 elements of out are never written"),
            ("6", r"the kernel is not deterministic at .*: two runs on the same inputs"),
        ],
    )
    def test_a_wrong_one_is_refused(self, fault: str, words: str) -> None:
        with (
            a_lab(scale_problem(kernel=fake_kernel(fault=fault)), baseline=False) as harness,
            pytest.raises(KernelWrong, match=words),
        ):
            harness.lab.check()

    def test_linked_inputs_that_vary_are_refused(self) -> None:
        varies = (
            "import os\ndef make(rng, rows, d):\n    return {'x': rng.random((rows, d)) + os.urandom(1)[0]}\n"
        )
        with (
            a_lab(scale_problem(inputs=varies), baseline=False) as harness,
            pytest.raises(BadInput, match="gives x other values when it is called again"),
        ):
            harness.lab.check()


class TestWorkers:
    """Oracles by themselves, on kernels that reach further than they should."""

    def judges(self, **kernels: Kernel) -> Judges:
        return Judges(scale_problem(), {"original": TWICE, "right": TWICE, **kernels})

    def examine(self, judges: Judges, oracle: oracles.DeviceOracle, name: str) -> Verdict:
        return oracle.examine(judges.code(name), [Examined(a_case(), judges.plan(a_case()), SECONDS)])

    def counts(self, judges: Judges) -> tuple[int, int, int]:
        """Cases kept, checks, and questions to the reference."""
        counted = tuple(len(judges.log.of(request)) for request in (StoreCase, CheckCase, Refer))
        judges.log.clear()
        return counted  # type: ignore[return-value]

    def test_a_right_one_is_judged_once_and_the_case_stored_once(self) -> None:
        judges = self.judges()
        oracle = judges.on_the_device()
        for _ in range(3):
            assert isinstance(oracle.establish(a_case()), float)
            assert self.examine(judges, oracle, "right").ok
        assert self.counts(judges) == (1, 3, 1)

    def test_a_new_worker_is_sent_everything_again(self) -> None:
        judges = self.judges()
        runner = judges.runner()
        oracle = judges.on_the_device(runner)
        oracle.establish(a_case())
        runner.restart()
        assert isinstance(oracle.establish(a_case()), float)
        assert self.examine(judges, oracle, "right").ok
        assert self.counts(judges) == (2, 1, 1), "the reference is not asked again"

    def test_also_when_it_is_new_between_two_questions(self) -> None:
        judges = self.judges()
        runner = judges.runner()
        oracle = judges.on_the_device(runner)
        oracle.establish(a_case())
        runner.restart()
        assert self.examine(judges, oracle, "right").ok
        assert self.counts(judges) == (2, 2, 1)

    def test_for_a_wrong_one_the_original_vouches(self) -> None:
        judges = self.judges(wrong=then(TWICE, add(1, 3)))
        oracle = judges.on_the_device()
        oracle.establish(a_case())
        assert self.examine(judges, oracle, "wrong").status is Status.WRONG
        assert self.counts(judges) == (1, 2, 1), "kept once; it and the original checked"
        assert {s.generation for s in judges.log.served} <= {1}, "no worker has to go for it"

    def test_one_that_writes_outside_takes_its_worker_along(self) -> None:
        judges = self.judges(past=then(TWICE, lambda out, _: out.around(out.nbytes, 4).fill(1)))
        oracle = judges.on_the_device()
        oracle.establish(a_case())
        assert "writes outside out" in self.examine(judges, oracle, "past").detail
        generations = [s.generation for s in judges.log.of(CheckCase)]
        assert generations == [1], "guard zones are anew every time: no second look is needed"
        assert self.examine(judges, oracle, "right").ok
        assert judges.log.served[-1].generation == 2

    @pytest.mark.parametrize("what", ["pristine", "expected"])
    def test_what_another_kernel_has_spoilt_is_not_held_against_the_next(self, what: str) -> None:
        """It reaches the arrays kept for later without touching a guard, gives the right answer, and goes."""

        def spoil(out: Argument, x: Argument, *_: object) -> None:
            TWICE(out, x)
            stored = next(iter(oracle_memory()))
            place = stored.pristine["x"] if what == "pristine" else stored.expected["out"][1]
            Argument(place).of("uint8")[:8] = 0x41

        judges = self.judges(spoil=spoil)
        runner = judges.runner()
        oracle = judges.on_the_device(runner)

        def oracle_memory() -> Any:
            bench = runner._worker._bench  # type: ignore[attr-defined]
            return bench._cases._cases.values()

        oracle.establish(a_case())
        self.examine(judges, oracle, "spoil")
        judges.log.clear()
        assert self.examine(judges, oracle, "right").ok
        replies = [s.reply for s in judges.log.of(CheckCase) if isinstance(s.reply, Judged)]
        assert [r.status for r in replies] == [Status.WRONG, Status.WRONG, Status.OK], "it, the original, it"
        generations = [s.generation for s in judges.log.of(CheckCase)]
        assert generations[0] == generations[1] < generations[-1], "who knows what else was spoilt"

    def test_one_that_is_wrong_now_and_then_is_wrong(self) -> None:
        """A race shows in some runs: that a second look finds nothing proves nothing."""
        turns = iter([0, 0, 0, 1] + 20 * [0])  # the second of the first two runs that are judged is off
        judges = self.judges(racy=then(TWICE, lambda out, _: out.of("float32").__iadd__(next(turns))))
        oracle = judges.on_the_device()
        oracle.establish(a_case())
        assert self.examine(judges, oracle, "racy").status is Status.UNSTABLE
        turns = iter([1, 1, 1, 1] + 20 * [0])  # all, alike
        assert self.examine(judges, oracle, "racy").status is Status.WRONG

    def test_references_beyond_their_share_of_memory_are_asked_for_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(references, "KNOWN_BYTES", 10_000)  # one case of 24 * 32 float64
        judges = self.judges()
        runner = judges.runner()
        oracle = judges.on_the_device(runner)
        for case in (a_case(), a_case(distribution="wide")):
            oracle.establish(case)
        self.counts(judges)
        runner.restart()
        for case in (a_case(), a_case(distribution="wide")):
            assert isinstance(oracle.establish(case), float)
        assert self.counts(judges) == (2, 0, 2)

    def test_several_cases_go_in_one_request(self) -> None:
        judges = self.judges()
        oracle = judges.on_the_device()
        several = self.several(judges)
        for item in several:
            oracle.establish(item.case)
        judges.log.clear()
        assert oracle.examine(judges.code("right"), several).ok
        assert [len(s.request.checks) for s in judges.log.of(CheckCases)] == [len(several)]
        assert judges.log.of(CheckCase) == []

    def test_errors_are_told_alike_where_they_are_asked_for(self) -> None:
        def a_little(out: Argument, _x: Argument) -> None:
            values = out.of("float32")
            values[:1] = np.nextafter(values[:1], np.float32(9))

        off = then(TWICE, a_little)
        judges = self.judges(off=off)
        several, told = self.several(judges), []
        for oracle in (judges.on_the_host(), judges.on_the_device()):
            oracle.examine(judges.code("off"), several)
            assert oracle.errors is None, "nobody asked"
            oracle.errors = {}
            oracle.examine(judges.code("off"), several)
            told.append(oracle.errors)
        host, device = told
        assert list(host) == list(device) == [item.case for item in several]
        for case, (found,) in host.items():
            (same,) = device[case]
            assert (found.array, same.array) == ("out", "out")
            assert found.max_error is not None
            assert 0 < found.max_error < 1e-5
            assert found.rms_error is not None
            assert 0 < found.rms_error < found.max_error
            for one, other in zip(astuple(found)[1:], astuple(same)[1:], strict=True):
                assert one == pytest.approx(other, rel=1e-6, abs=1e-12)
            assert found.original_max_error == found.original_rms_error == 0.0

    def test_of_several_the_first_wrong_one_is_reported(self) -> None:
        """By both oracles alike, and nobody looks at those after it."""
        fails = then(
            TWICE, lambda out, x: add(1, 0)(out, x) if out.nbytes in (4 * 8 * 16, 4 * 8 * 24) else None
        )
        judges = self.judges(fails=fails)
        several = self.several(judges)
        verdict = judges.on_the_host().examine(judges.code("fails"), several)
        judges.log.clear()
        assert judges.on_the_device().examine(judges.code("fails"), several) == verdict
        assert "at rows=8, d=16 (inputs: normal): out[0, 0]" in verdict.detail
        assert [dict(s.request.plan.sizes)["d"] for s in judges.log.of(CheckCase)][-2:] == [16, 16]

    def test_several_that_were_forgotten_are_stored_again(self) -> None:
        judges = self.judges()
        runner = judges.runner()
        oracle = judges.on_the_device(runner)
        several = self.several(judges)
        for item in several:
            oracle.establish(item.case)
        runner.restart()
        assert oracle.examine(judges.code("right"), several).ok
        assert self.counts(judges) == (2 * len(several), 2 * len(several), len(several))

    def test_cases_that_gave_way_to_others_are_stored_again_when_judged_apart(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A device has room for so many, and the kernel is as right as before."""
        judges = self.judges(wrong=then(TWICE, add(1, 0)))
        runs, apart = judges.on_the_device(), judges.on_the_device()
        several = self.several(judges)
        monkeypatch.setattr(device_cases, "MEMORY_SHARE", 3000 / judges.gpu.limits.memory)
        for item in several:
            runs.establish(item.case)
            apart.establish(item.case)
        judges.log.clear()
        assert runs.examine_apart(judges.code("right"), several, apart).ok
        assert len(judges.log.of(StoreCase)) > len(several), "few gave way"
        assert runs.examine_apart(judges.code("wrong"), several, apart).status is Status.WRONG

    def test_a_renewed_worker_is_another_with_the_device_open(self) -> None:
        """All that the last one knew is sent again, and nothing that it did is left."""
        judges = self.judges()
        runner = judges.runner(spare=True)
        oracle = judges.on_the_device(runner)
        oracle.establish(a_case())
        before = runner.generation
        with ThreadPoolExecutor(1) as thread:
            runner.prepare_spare(thread)
            runner.wait_for_spare()
        assert len(judges.log.of(Open)) == 1
        assert runner.generation == before
        runner.renew()
        assert runner.generation != before
        assert isinstance(oracle.establish(a_case()), float)
        assert self.examine(judges, oracle, "right").ok
        assert self.counts(judges) == (2, 1, 1)
        runner.renew()  # with no spare prepared the worker itself starts again
        assert self.examine(judges, oracle, "right").ok

    def test_at_a_verification_linked_inputs_are_made_once(self) -> None:
        """And sent to all who need them, the same that each would have made."""
        inputs = "import numpy as np\ndef make(rng, rows, d):\n    return {'x': rng.normal(size=(rows, d))}\n"
        judges = Judges(scale_problem(inputs=inputs), {"original": TWICE, "right": TWICE})
        sent = []
        for level in ("full", "verify"):
            case = replace(a_case(), level=level)
            oracle = judges.on_the_device()
            assert isinstance(oracle.establish(case), float)
            assert oracle.examine(judges.code("right"), [Examined(case, judges.plan(case), SECONDS)]).ok
            (stored,) = judges.log.of(StoreCase)
            sent.append((stored.request.inputs, stored.reply.input_digests))
            judges.log.clear()
        (none, made), (names, given) = sent
        assert (none, names) == ((), ("x",))
        assert made == given
        assert made

    def several(self, judges: Judges) -> list[Examined]:
        cases = [a_case(rows=8, d=d) for d in (8, 16, 24, 32)]
        return [Examined(case, judges.plan(case), SECONDS) for case in cases]

    def test_an_original_that_crashes_once_is_asked_of_a_fresh_worker(self) -> None:
        """It may have been an earlier kernel's doing."""
        launches = count()

        def fails_at_first(*args: Argument) -> None:
            if next(launches) == 0:
                raise LaunchFailed("an illegal access before this one")
            TWICE(*args)

        judges = Judges(scale_problem(), {"original": fails_at_first})
        assert isinstance(judges.on_the_device().establish(a_case()), float)
        assert [s.generation for s in judges.log.of(StoreCase)] == [1, 2]

    def test_a_wrong_original_is_asked_once(self) -> None:
        judges = Judges(scale_problem(), {"original": then(TWICE, add(np.float32(1), 0))})
        oracle = judges.on_the_device()
        first = oracle.establish(a_case())
        assert isinstance(first, Verdict)
        assert oracle.establish(a_case()) == first
        assert self.counts(judges) == (1, 0, 1)
