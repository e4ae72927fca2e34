"""Outputs that are judged as a whole: host and device find the same, also where rows are sampled, and so does
whoever looks at a timed launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.core.lab.kept_scenarios import TIGHT, TWICE, accuracy, out_of
from tests.core.lab.labs import fake_kernel, fault_template, lab, scale_problem
from tests.core.lab.numpy_inspector import InspectingBackend
from tests.core.lab.oracles import SECONDS, Judges, a_case
from tests.core.lab.python_kernels import Argument, Array, Kernel
from tunesmith.backends.fake import FAULTS
from tunesmith.backends.messages import Piece, TimedLook
from tunesmith.lab import references
from tunesmith.lab.memory import Examined
from tunesmith.lab.references import draw_inputs, draw_of
from tunesmith.lab.validate_timing import GARBLED, SampleJudge
from tunesmith.lab.worker.output_sampling import WholeLook
from tunesmith.problem.inputs import SlotPlace
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem

RIGHT, WRONG = Status.OK, Status.WRONG


def rowwise(make: Callable[[Array], Array], type_: str = "float32") -> Kernel:
    """`make` of the input's rows."""

    def kernel(out: Argument, x: Argument, rows: int, d: int) -> None:
        out.of(type_)[:] = make(x.of("float32").reshape(rows, d)).reshape(-1)

    return kernel


def spoilt(change: Callable[[Array], object], row: int = 7) -> Kernel:
    """Twice the input backwards, but for one row, that is changed."""

    def make(x: Array) -> Array:
        values = 2 * x[:, ::-1]
        change(values[row])
        return values

    return rowwise(make)


def repeat(values: Array) -> None:
    values[3] = values[9]  # neighbours may be equal anyway


def nudge(values: Array) -> None:
    values[:2] += 0.5


ANY = (out_of("float32", 'order = "any"'),)
ANY_CANDIDATES = {
    "same": (TWICE, RIGHT),
    "backwards": (rowwise(lambda x: 2 * x[:, ::-1]), RIGHT),
    "sorted": (rowwise(lambda x: np.sort(2 * x, axis=1)), RIGHT),
    "columns": (rowwise(lambda x: 2 * x[::-1]), WRONG),  # rows are not theirs
    "repeats": (spoilt(repeat), WRONG),
    "off": (spoilt(nudge), WRONG),
    "inexact": (rowwise(lambda x: np.sort(2 * x * np.float32(1 + 9e-7), axis=1)), WRONG),  # by the error rule
}

KEYS = (out_of("int32", 'keys = "x"'), (TIGHT, ""))
ARGSORT = "import numpy as np\ndef scale(x):\n    return np.argsort(x, axis=1, kind='stable')\n"
MADE = "def make(rng, rows, d):\n    return {'x': rng.integers(0, 5, (rows, d))}\n"


def last_first(x: Array) -> Array:
    return x.shape[1] - 1 - np.argsort(x[:, ::-1], axis=1, kind="stable")


def of_first(x: Array) -> Array:
    """Of equal ones the same index again and again."""
    order = np.argsort(x, axis=1, kind="stable")
    ranked = np.take_along_axis(x, order, axis=1)
    for row, values in zip(order, ranked, strict=True):
        row[:] = row[np.searchsorted(values, values)]
    return order


KEYS_CANDIDATES = {
    "same": (rowwise(lambda x: np.argsort(x, axis=1, kind="stable"), "int32"), RIGHT),
    "last_first": (rowwise(last_first, "int32"), RIGHT),
    "repeats": (rowwise(of_first, "int32"), WRONG),
    "down": (rowwise(lambda x: np.argsort(-x, axis=1, kind="stable"), "int32"), WRONG),
    "outside": (rowwise(lambda x: np.argsort(x, axis=1, kind="stable") + (x.shape[1] << 8), "int32"), WRONG),
}

OWN = (out_of("float32", 'compare = "checks.py:either"'),)
CHECKS = """
import numpy as np

def either(got, expected, x, d, got_out, atol):
    assert got.shape == x.shape and x.shape[1] == d and np.array_equal(got, got_out)
    if got[0, 0] == 77:
        raise ValueError("it is 77")
    if not (np.allclose(got, expected, atol=atol) or np.allclose(-got, expected, atol=atol)):
        return "neither way"
"""


def with_77(x: Array) -> Array:
    values = 2 * x
    values[0, 0] = 77
    return values


OWN_CANDIDATES = {
    "same": (TWICE, RIGHT),
    "negative": (rowwise(lambda x: -2 * x), RIGHT),
    "absolute": (rowwise(lambda x: np.abs(2 * x)), WRONG),
    "nan": (rowwise(lambda x: np.full_like(x, np.nan)), WRONG),
    "raises": (rowwise(with_77), WRONG),
}


@dataclass(frozen=True)
class OpenScenario:
    problem: Problem
    original: Kernel
    candidates: dict[str, tuple[Kernel, Status]]
    rows: int | None = None  # so many the reference is asked for, at least


def sampled(*changes: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return (*changes, accuracy(TIGHT, 'independent = "rows"'))


ARGSORTED = KEYS_CANDIDATES["same"][0]
SCENARIOS = {
    "any": OpenScenario(scale_problem(*ANY), TWICE, ANY_CANDIDATES),
    "any, no reference": OpenScenario(
        scale_problem(*ANY, reference=None),
        TWICE,
        {name: found for name, found in ANY_CANDIDATES.items() if name != "inexact"},
    ),
    "any, sampled": OpenScenario(
        scale_problem(*sampled(*ANY)),
        TWICE,
        {n: f for n, f in ANY_CANDIDATES.items() if n != "inexact"}
        | {f"row {row}": (spoilt(repeat, row), WRONG) for row in range(24)},
        rows=5,
    ),
    "keys": OpenScenario(scale_problem(*KEYS, reference=ARGSORT, inputs=MADE), ARGSORTED, KEYS_CANDIDATES),
    "keys, no reference": OpenScenario(
        scale_problem(*KEYS, reference=None, inputs=MADE), ARGSORTED, KEYS_CANDIDATES
    ),
    "keys, sampled": OpenScenario(
        scale_problem(KEYS[0], (TIGHT, 'independent = "rows"'), reference=ARGSORT, inputs=MADE),
        ARGSORTED,
        KEYS_CANDIDATES,
        rows=5,
    ),
    "own": OpenScenario(scale_problem(*OWN, checks=CHECKS), TWICE, OWN_CANDIDATES),
    "own, no reference": OpenScenario(
        scale_problem(*OWN, checks=CHECKS, reference=None), TWICE, OWN_CANDIDATES
    ),
    "own, whose rows are never sampled": OpenScenario(
        scale_problem(*sampled(*OWN), checks=CHECKS), TWICE, OWN_CANDIDATES, rows=5
    ),
}


WORDS = {
    ("any", "repeats"): "sorted out[",
    ("keys", "repeats"): "repeats of out[",
    ("keys", "down"): "x at out[",
    ("keys", "outside"): "out outside x[",
    ("own", "absolute"): "out: checks.py: neither way",
    ("own", "raises"): "checks.py:7: ValueError: it is 77",
}


def judges_of(name: str, monkeypatch: pytest.MonkeyPatch) -> Judges:
    scenario = SCENARIOS[name]
    if scenario.rows is not None:
        monkeypatch.setattr(references, "SAMPLED_ABOVE", 100)
        monkeypatch.setattr(references, "SAMPLED_ROWS", scenario.rows)
    kernels = {which: kernel for which, (kernel, _) in scenario.candidates.items()}
    return Judges(scenario.problem, {"original": scenario.original, **kernels})


@pytest.mark.parametrize("name", SCENARIOS)
def test_device_and_host_judge_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    judges, case = judges_of(name, monkeypatch), a_case(errors=SCENARIOS[name].rows is None)
    host, device = judges.on_the_host(), judges.on_the_device()
    assert isinstance(host.establish(case), float)
    assert isinstance(device.establish(case), float)
    examined = [Examined(case, judges.plan(case), SECONDS)]
    for candidate, (_, status) in SCENARIOS[name].candidates.items():
        verdict = host.examine(judges.code(candidate), examined)
        assert (candidate, verdict.status) == (candidate, status), verdict.detail
        assert verdict.ok or WORDS.get((name, candidate), "") in verdict.detail
        assert (candidate, device.examine(judges.code(candidate), examined)) == (candidate, verdict)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_look_at_a_timed_launch_finds_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    judges_of(name, monkeypatch)  # which says how many rows are asked for
    scenario = SCENARIOS[name]
    reasons = looked_at(scenario)
    for candidate, (_, status) in scenario.candidates.items():
        if candidate != "inexact":  # errors are not compared in a look
            reason = reasons[candidate]
            assert (candidate, reason is None) == (candidate, status is RIGHT), reason


def may_fail(problem: Problem) -> Problem:
    return replace(problem, accuracy=replace(problem.accuracy, baseline_may_fail=True))


@pytest.mark.parametrize("fails", [False, True], ids=["", "the original may fail"])
@pytest.mark.parametrize("name", ["any", "keys", "own", "any, no reference"])
def test_a_look_at_what_is_too_large_for_the_reference_is_held_to_the_original(
    name: str, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As such a case is when it is checked, whatever may fail: nothing is right because nobody was asked."""
    monkeypatch.setattr(references, "UNREFERRED_ABOVE", 10)
    scenario = SCENARIOS[name]
    if fails and scenario.problem.accuracy.reference is not None:
        scenario = replace(scenario, problem=may_fail(scenario.problem))
    found = looked_at(scenario)
    for candidate, (_, status) in scenario.candidates.items():
        if candidate != "inexact":
            assert (candidate, found[candidate] is None) == (candidate, status is RIGHT), found[candidate]


def looked_at(scenario: OpenScenario) -> dict[str, str | None]:
    """Why what each candidate leaves is wrong, given what the original does."""
    kernels = {which: kernel for which, (kernel, _) in scenario.candidates.items()}
    judges, case = Judges(scenario.problem, {"original": scenario.original, **kernels}), a_case()
    plan = judges.plan(case)
    memory = draw_inputs(plan, draw_of(judges.problem, case))["x"]
    look = WholeLook(judges.problem, judges.references, case, plan)

    def left(kernel: Kernel) -> dict[str, Array]:
        out = np.zeros((24, 32), dtype=plan.buffer("out").type)
        kernel(_Held(out), _Held(memory), 24, 32)
        return {"out": out}

    given = left(scenario.original)
    return {which: look.wrong(left(kernel), given) for which, kernel in kernels.items()}


@dataclass(frozen=True)
class _Held:
    array: Array

    def of(self, _: str) -> Array:
        return self.array.reshape(-1)


@pytest.mark.parametrize("name", ["any", pytest.param("keys", marks=pytest.mark.long), "own"])
@pytest.mark.few(1)
def test_a_lab_whose_device_judges_for_itself(name: str) -> None:
    """Timed launches too: there it sends nothing of what is alike."""
    problem = {"any": scale_problem(*ANY), "own": scale_problem(*OWN, checks=CHECKS)}.get(name)
    if problem is None:
        x_like = (out_of("int32", 'keys = "x"', "init = 0"), (TIGHT, ""))
        problem = scale_problem(*x_like, reference=None, kernel=fake_kernel(op="copy"))
    device = InspectingBackend().devices()[0]
    kernels = {} if name != "keys" else {"op": "copy"}
    with lab(problem, fault_template(**kernels), backend=InspectingBackend, device=device) as harness:
        found = harness.result("long")
        assert found.ok, found.detail
        wrong = harness.result("short", KIND=FAULTS.index("wrong"))
        assert wrong.status is Status.WRONG, wrong.detail


def test_what_a_device_cannot_tell_apart_the_host_does() -> None:
    """It sends all of an output that is unlike the original's, and the original's."""
    judges, case = Judges(scale_problem(*ANY, reference=None), {"original": TWICE}), a_case()
    plan, draw = judges.plan(case), draw_of(judges.problem, case)
    judge = SampleJudge(judges.problem, judges.references, judges.runner(), lambda _plan: SECONDS)
    own = np.arange(24 * 32, dtype=np.float32).reshape(24, 32)
    spoilt_row = own[:, ::-1].copy()
    spoilt_row[7, 3] = spoilt_row[7, 4]
    pieces = (Piece("out", 0, own.nbytes),)
    look = TimedLook(SlotPlace(0, 1), 0, pieces, pieces)
    for seen, status in ((own[:, ::-1], RIGHT), (spoilt_row, WRONG), (own[::-1], WRONG)):
        blob = seen.tobytes() + own.tobytes()
        found = judge._judge(plan, judges.original(case), draw, look, blob)
        assert found.status is status
    part = replace(look, pieces=(Piece("out", 0, 64),), originals=(Piece("out", 0, 64),))
    assert judge._judge(plan, judges.original(case), draw, part, bytes(128)) == GARBLED, "no part will do"


def test_a_function_that_knows_no_nan_judges_nobody_by_it() -> None:
    kernels = {"original": TWICE, "same": TWICE, "other": rowwise(lambda x: np.clip(x, -9, 9))}
    judges = Judges(scale_problem(*OWN, checks=CHECKS), kernels)
    for distribution, status in (("special", RIGHT), ("extreme", WRONG)):
        case = a_case(distribution=distribution, errors=False)
        for oracle in (judges.on_the_host(), judges.on_the_device()):
            assert isinstance(oracle.establish(case), float)
            examined = [Examined(case, judges.plan(case), SECONDS)]
            assert oracle.examine(judges.code("same"), examined).ok
            assert oracle.examine(judges.code("other"), examined).status is status


def test_odd_values_may_be_the_originals_in_any_order() -> None:
    def made(instead: float, backwards: bool = False) -> Kernel:
        def make(x: Array) -> Array:
            with np.errstate(over="ignore"):
                values = 2 * x
            values = np.where(np.isnan(values), np.float32(instead), values)
            return values[:, ::-1] if backwards else values

        return rowwise(make)

    kernels = {
        "original": made(1.0),
        "like": made(1.0, True),
        "right": made(np.nan, True),
        "other": made(0.0),
    }
    judges, case = Judges(scale_problem(*ANY), kernels), a_case(distribution="special", errors=False)
    for oracle in (judges.on_the_host(), judges.on_the_device()):
        assert isinstance(oracle.establish(case), float)
        found = {
            name: oracle.examine(judges.code(name), [Examined(case, judges.plan(case), SECONDS)]).status
            for name in ("like", "right", "other")
        }
        assert found == {"like": RIGHT, "right": RIGHT, "other": WRONG}
