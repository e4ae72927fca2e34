"""The user's own Python: reference and linked inputs, what they are given and what is said when they fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.core.lab.labs import fake_kernel, fault_template, lab, scale_problem
from tunesmith.backends.messages import Refer, RunCase, TimeRuns
from tunesmith.base.errors import BadInput
from tunesmith.lab import references
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.run.outcome import Effort

INDEX = '[[argument]]\nname = "index"\ntype = "int32*"\nshape = ["rows", "d"]\nrole = "input"\n'
TWO = ("small = {", "narrow = { rows = 16, d = 8 }\nsmall = {")
ARGS = "out, x, rows, d, index"
GATHER_REFERENCE = """
def scale(x, index, d):
    assert index.dtype.name == "int32" and x.dtype.name == "float64"
    assert 0 <= index.min() and index.max() < d, (index, d)
    return 2.0 * x
"""
GATHER_INPUTS = "def make(rng, rows, d):\n    return {'index': rng.integers(0, d, (rows, d))}\n"


def gather_problem(inputs: str = GATHER_INPUTS, reference: str = GATHER_REFERENCE) -> Problem:
    kernel = fake_kernel(args=ARGS, time="20000 + rows")
    return scale_problem(
        ("[launch]", f"{INDEX}[launch]"), TWO, kernel=kernel, inputs=inputs, reference=reference
    )


def failure(problem: Problem, scratch: Path | None = None) -> BadInput:
    with lab(problem, baseline=False, scratch=scratch) as harness, pytest.raises(BadInput) as caught:
        harness.lab.check()
    return caught.value


class TestReference:
    def reference(self, body: str, head: str = "def scale(x, d):") -> BadInput:
        text = "import numpy as np\n" + head + "\n" + "".join(f"    {line}\n" for line in body.splitlines())
        return failure(scale_problem(reference=text))

    def test_raises(self) -> None:
        error = self.reference("y = 2 * x\nreturn y[:, d]")
        assert re.match(r"reference\.py:4: IndexError: index \d+ is out of bounds", error.message)
        assert "mend the function" in (error.hint or "")

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            ("x.T.copy()", r"reference\.py:2: scale returned shape \(8, 1\) for out, expected \(1, 8\)"),
            ("None", r"reference\.py:2: scale returned no array of numbers for out, but None"),
            ("(x, x)", r"reference\.py:2: scale returned 2 arrays, expected 1: out"),
            ("{'y': x}", r"reference\.py:2: scale returned no out, only y"),
            ("[[1.0], [2.0, 3.0]]", r"reference\.py:2: scale returned no array of numbers for out"),
            ("np.full(x.shape, 'one')", r"reference\.py:2: scale returned no array of numbers for out"),
            ("x + 1j", r"reference\.py:2: scale returned no array of numbers for out"),
        ],
    )
    def test_returns_something_else(self, answer: str, words: str) -> None:
        assert re.match(words, self.reference(f"return {answer}").message)

    @pytest.mark.parametrize("answer", ["2 * x", "(2 * x,)", "{'out': 2 * x, 'more': 1}", "(2 * x).tolist()"])
    def test_may_return_it_in_several_ways(self, answer: str) -> None:
        with lab(scale_problem(reference=f"def scale(x):\n    return {answer}\n"), baseline=False) as harness:
            assert harness.lab.check() > 10

    def test_asks_for_names_nobody_knows(self) -> None:
        error = self.reference("return x", "def scale(x, gamma, rows, eps=1.0):")
        assert error.message.startswith("reference.py:2: scale asks for gamma; it may ask for ")
        assert re.search(r"\brows, d, x$", error.message)

    def test_cannot_be_loaded(self) -> None:
        error = failure(scale_problem(reference="import no_such_module\ndef scale(x):\n    return x\n"))
        assert re.match(r"reference\.py:1: ModuleNotFoundError", error.message)

    def test_sees_float64_scalars_and_sizes_and_may_take_all(self) -> None:
        body = """
def scale(**given):
    assert sorted(given) == ["d", "rows", "x"], sorted(given)
    assert given["x"].dtype.name == "float64" and given["x"].shape == (given["rows"], given["d"])
    given["x"][...] *= 2
    return given["x"]
"""
        with lab(scale_problem(reference=body), baseline=False) as harness:
            assert harness.lab.check() > 10

    @pytest.mark.long
    def test_takes_too_long(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(references, "REFERENCE_SECONDS", 1.5)
        text = "import time\ndef scale(x):\n    time.sleep(600)\n"
        error = failure(scale_problem(reference=text), tmp_path)
        assert re.match(r"reference\.py took more than 2 s at rows=1, d=8", error.message)

    def test_ends_its_process(self, tmp_path: Path) -> None:
        text = "import os\ndef scale(x):\n    os._exit(3)\n"
        error = failure(scale_problem(reference=text), tmp_path)
        assert re.match(r"reference\.py ended its process at .*: exit status 3", error.message)


class TestLinkedInputs:
    @pytest.mark.parametrize("effort", ["short", pytest.param("long", marks=pytest.mark.long)])
    def test_are_what_kernel_and_reference_see(self, effort: Effort) -> None:
        """The reference asserts the link; the kernel's inputs must have the digest of the reference's."""
        with lab(gather_problem(), fault_template("0", args=ARGS, time="rows")) as harness:
            assert harness.result(effort).status is Status.OK
            assert all(s.request.draw.inputs for s in (*harness.log.of(RunCase), *harness.log.of(Refer)))
            assert all(s.request.draw.inputs for s in harness.log.of(TimeRuns))

    @pytest.mark.long
    def test_are_the_same_in_two_processes(self, tmp_path: Path) -> None:
        with lab(gather_problem(), baseline=False, scratch=tmp_path) as harness:
            assert harness.lab.check() > 10

    def test_that_differ_from_call_to_call_are_refused(self) -> None:
        head = "from numpy.random import randint\ndef make(rows, d):\n"
        varies = head + "    return {'index': randint(0, 9999, (rows, d))}\n"
        error = failure(gather_problem(varies, "def scale(x):\n    return 2.0 * x\n"))
        assert re.match(r"inputs\.py:2: make gives index other values when it is called again", error.message)
        assert "rng" in (error.hint or "")

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ("return {'index': 1 / 0}", r"inputs\.py:2: ZeroDivisionError"),
            ("return rng", r"inputs\.py:1: make returned Generator, not a dict of arrays"),
            (
                "return {'index': rng.integers(0, d, (rows, d + 1))}",
                r"inputs\.py:1: make gave index shape \(\d+, \d+\), expected \(\d+, \d+\)",
            ),
            (
                "return {'indices': rng.integers(0, d, (rows, d))}",
                r"inputs\.py:1: make gave indices, which is no input: inputs are x, index",
            ),
            (
                "return {'index': [['a'] * d] * rows}",
                r"inputs\.py:1: make gave no array of numbers for index",
            ),
        ],
    )
    def test_that_fail_are_not_the_kernels_fault(self, body: str, words: str) -> None:
        assert re.match(words, failure(gather_problem(f"def make(rng, rows, d):\n    {body}\n")).message)

    @pytest.mark.long
    def test_that_never_end_are_not_the_kernels_fault(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(references, "REFERENCE_SECONDS", 1.5)
        text = "import time\ndef make(d):\n    time.sleep(600)\n"
        assert re.match(
            r"reference\.py or inputs\.py took more than 2 s", failure(gather_problem(text), tmp_path).message
        )
