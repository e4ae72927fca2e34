"""Recorded cases: small files beside a problem, held against their digests and against the problem."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from tests.core.lab.labs import scale_problem
from tests.samples import DEVICE
from tunesmith.base.errors import BadInput
from tunesmith.problem import problem as recorded
from tunesmith.problem.cases import full_cases, smoke_cases, verify_cases
from tunesmith.problem.problem import Problem, RecordedCase, read_recorded, recorded_array, recorded_text
from tunesmith.problem.template import original_variant
from tunesmith.run.events import Baseline
from tunesmith.run.outcome import Outcome, Trial
from tunesmith.run.report import judged_by
from tunesmith.run.state import State

X = np.arange(6 * 8, dtype=np.float32).reshape(6, 8)


def recorded_file(factor: float = 2.0, x: np.ndarray = X) -> str:
    rows, d = x.shape
    arrays = (
        recorded_array("x", "before", "float32", x),
        recorded_array("out", "after", "float32", (factor * x).astype(np.float32)),
    )
    found = recorded_text("launch 5", (("d", d), ("rows", rows)), arrays)
    assert found is not None
    return found


def with_case(text: str, *changes: tuple[str, str], reference: str | None = None) -> Problem:
    name = 'name = "scale"'
    return scale_problem(
        (name, f'{name}\nrecorded = ["recorded_5.json"]'),
        *changes,
        reference=reference,
        more={"recorded_5.json": text},
    )


def test_a_case_is_read_and_tested_besides_the_others() -> None:
    problem = with_case(recorded_file())
    (case,) = problem.recorded
    assert (case.name, case.sizes) == ("recorded_5", (("rows", 6), ("d", 8)))
    assert problem.recorded_case("recorded recorded_5") is case
    assert problem.recorded_case("normal") is None
    variant = original_variant(problem)
    for cases in (
        full_cases(problem, variant, DEVICE, 1),
        verify_cases(problem, variant, DEVICE, 1, ()),
    ):
        (found,) = [one for one in cases if one.distribution == case.distribution]
        assert (found.sizes, found.compares_errors, found.is_odd) == (case.sizes, False, False)
    small = smoke_cases(problem, variant, DEVICE, 1)
    assert not any(one.distribution == case.distribution for one in small)


def test_reports_say_so() -> None:
    state = replace(State(), baseline=Baseline(Outcome(cast(Trial, None), ()), "original"))
    rules = "close within rtol 1e-06 and atol 1e-06"
    said = judged_by(scale_problem(reference=None), state)
    assert said == f"matches the original (there is no reference): {rules}"
    said = judged_by(with_case(recorded_file()), state)
    assert said == f"matches the original and what was recorded of a program (there is no reference): {rules}"


def test_another_file_is_another_problem() -> None:
    one, other = with_case(recorded_file()), with_case(recorded_file(factor=3.0))
    assert one.digest != other.digest
    assert "base64" not in repr(one)  # digests stand for data
    assert len(repr(one)) - len(repr(with_case(recorded_file(x=X[:2])))) < 20


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda file: file.update(format=2), "it has format 2"),
        (lambda file: file["sizes"].pop(), "its sizes are d, the contract's rows, d"),
        (lambda file: file["sizes"].__setitem__(0, ["d", 7]), "outside the contract"),
        (lambda file: file["arrays"].pop(), "each once; not so out after"),
        (lambda file: file["arrays"][0].update(when="after"), "each once; not so x before"),
        (
            lambda file: file["arrays"][0].update(shape=[8, 6]),
            r"of shape \(8, 6\), the problem has float32 of",
        ),
        (lambda file: file["arrays"][0].update(type="int32"), "x is int32 of shape"),
        (lambda file: file["arrays"][0].update(sha256="0" * 64), "the contents of x are not those"),
        (lambda file: file["arrays"][0].update(data="AAAA"), "the contents of x are not those"),
        (lambda file: file["arrays"][0].update(data="not base64!"), "the contents of x are not those"),
        (lambda file: file.pop("arrays"), "not a recorded case"),
    ],
)
def test_what_does_not_fit_is_refused(change: Callable[[Any], object], words: str) -> None:
    file = json.loads(recorded_file())
    change(file)
    with pytest.raises(BadInput, match=words):
        with_case(json.dumps(file))


def test_files_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    text = recorded_file()
    monkeypatch.setattr(recorded, "MAX_TEXT", len(text) - 1)
    with pytest.raises(BadInput, match="at most"):
        with_case(text)
    problem = scale_problem(reference=None)
    monkeypatch.setattr(recorded, "MAX_TEXT", len(text))
    monkeypatch.setattr(recorded, "MAX_BYTES", 2 * X.nbytes - 1)
    said = read_recorded("recorded_5.json", text, problem.arguments, problem.contract)
    assert said == "its arrays have more than 0 MiB"
    assert recorded_text("", (), [recorded_array("x", "before", "float32", np.concatenate([X, X]))]) is None


def test_its_functions_give_the_arrays_of_every_type() -> None:
    import ml_dtypes

    half = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    arrays = (
        recorded_array("x", "before", "bfloat16", half.view(np.uint16)),
        recorded_array("i", "before", "int32", np.array([7, -1], np.int32)),
        recorded_array("out", "after", "float16", np.array([0.25, np.nan], np.float16)),
    )
    case = RecordedCase("one", (("n", 2),), "", arrays)
    made: dict[str, Any] = {}
    exec(case.inputs.text, made)
    given = made[case.inputs.function]()
    assert given["x"].tolist() == [1.5, -2.0]
    assert (given["i"].tolist(), given["i"].dtype) == ([7, -1], np.int32)
    exec(case.results.text, made)
    assert np.isnan(made[case.results.function]()["out"][1])
