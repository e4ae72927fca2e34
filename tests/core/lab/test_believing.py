"""Times that are believed when what timed launches left is right, looked at over several requests where one
cannot hold what they send."""

from __future__ import annotations

import math
import random
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import pytest

from tests.core.lab.kept_scenarios import TWICE, X, out_of
from tests.core.lab.labs import scale_problem
from tests.core.lab.oracles import SECONDS, Judges, a_case
from tests.core.lab.python_kernels import Argument, Kernel, PythonBackend, PythonSession, then
from tests.core.lab.test_looks import ELSEWHERE, OFF, POLICY, TOO_MUCH
from tunesmith.backends.messages import Timed, TimingPolicy
from tunesmith.backends.port import LaunchCall
from tunesmith.lab import measure, memory, validate_timing
from tunesmith.lab.build import BuiltCode
from tunesmith.lab.measure import Ready, TrialTimer
from tunesmith.lab.memory import Verdict
from tunesmith.lab.runner import Race, RaceRun, Runner
from tunesmith.lab.validate_timing import SampleJudge
from tunesmith.lab.worker import device_cases
from tunesmith.problem.device import Clock, Device
from tunesmith.problem.plan import Plan, Status
from tunesmith.problem.problem import Problem
from tunesmith.run.outcome import Result

BESIDE = 4096  # bytes: inputs, and what follows arrays, at which the host looks too


def without_inspector(backend: PythonBackend, device: Device) -> PythonSession:
    """One that leaves judging to the host."""
    session = PythonSession(device, backend._kernels)
    session.inspector = None  # type: ignore[assignment]
    return session


@pytest.fixture(autouse=True)
def _first_stretch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_cases, "SPAN", 16)
    monkeypatch.setattr(device_cases, "SPANS", 1)


@dataclass
class Own:
    """The original, at any sizes."""

    judges: Judges

    def planned(self, sizes: Mapping[str, int]) -> tuple[BuiltCode, Plan]:
        return self.judges.code("original"), self.judges.plan(a_case(**sizes))


@pytest.mark.parametrize(
    ("original", "candidate", "status", "asked"),
    [
        (TWICE, TWICE, Status.OK, [False]),
        (then(TWICE, TOO_MUCH), TWICE, Status.OK, [False, True]),
        (TWICE, then(TWICE, TOO_MUCH), Status.WRONG, [False, False]),  # laid out anew, it is wrong again
        (then(TWICE, OFF), then(TWICE, ELSEWHERE), Status.WRONG, [False, True, False, True]),
    ],
    ids=["alike", "right elsewhere", "wrong", "wrong where it was not looked at first"],
)
def test_a_time_is_believed_when_all_that_is_unlike_is_right(
    original: Kernel, candidate: Kernel, status: Status, asked: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert raced(original, candidate, POLICY, monkeypatch) == (status, asked)


def raced(
    original: Kernel,
    candidate: Kernel,
    policy: TimingPolicy,
    monkeypatch: pytest.MonkeyPatch,
    fresh: int | None = None,
) -> tuple[Status, list[bool]]:
    """What becomes of it, and whether each race asked for all."""
    result, races = raced_with(original, candidate, policy, monkeypatch, fresh)
    return result.status, [race.sends_all for race in races]


def raced_with(
    original: Kernel,
    candidate: Kernel,
    policy: TimingPolicy,
    monkeypatch: pytest.MonkeyPatch,
    fresh: int | None = None,
    problem: Problem | None = None,
    seconds: float | None = None,
) -> tuple[Result, list[Race]]:
    judges = Judges(problem or scale_problem(), {"original": original, "candidate": candidate})
    workload, runner, races = judges.problem.workloads[0], judges.runner(), list[Race]()
    monkeypatch.setattr(
        runner, "time", lambda race, end: races.append(race) or Runner.time(runner, race, end)
    )
    judge = SampleJudge(judges.problem, judges.references, judges.runner(), lambda _: SECONDS)
    timer = TrialTimer(judges.problem, judges.gpu, runner, Own(judges), judge, 1, None, seconds)  # type: ignore[arg-type]
    timer.expect(workload, 1e-3)
    ready = Ready(workload, judges.code("candidate"), judges.plan(a_case(**workload.as_dict())))
    return timer.against_original(ready, policy, fresh), races


FEW_LOOKS = replace(POLICY, rounds=5, min_rounds=5, looks=4)
MANY_LOOKS = replace(POLICY, rounds=15, min_rounds=15, looks=12)


@pytest.mark.parametrize("most", [1 << 31, 1 << 14])
def test_what_is_wrong_now_and_then_is_looked_at_as_often_as_ever(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is unlike the original in its first stretch always, and right there; elsewhere it is often wrong."""
    monkeypatch.setattr(memory, "MAX_SENT", most)
    chance = random.Random(5)

    def often_wrong(out: Argument, x: Argument, *rest: Argument) -> None:
        TWICE(out, x, *rest)
        if chance.random() < 0.6:
            ELSEWHERE(out, x)

    for _ in range(8):  # one look would have let four in ten through
        status, asked = raced(then(TWICE, OFF), often_wrong, MANY_LOOKS, monkeypatch, fresh=7)
        assert status is Status.WRONG
        assert asked[0] is False
    right, asked = raced(then(TWICE, TOO_MUCH), TWICE, MANY_LOOKS, monkeypatch, fresh=7)
    assert right is Status.OK
    assert asked == [False, True] if most > 1 << 14 else len(asked) > 2


def counting_launches(is_wrong: Callable[[int], bool]) -> Kernel:
    """Wrong at those launches, by their number; in a request here two come before the rounds of one each."""
    launches = count()

    def kernel(out: Argument, x: Argument, *rest: Argument) -> None:
        TWICE(out, x, *rest)
        if is_wrong(next(launches)):
            ELSEWHERE(out, x)

    return kernel


ONE_A_REQUEST = 1 << 12  # bytes: of a look here


def test_the_time_of_looks_over_several_requests_is_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that counts launches knows which request is the last: to be fast there alone is no use."""
    monkeypatch.setattr(memory, "MAX_SENT", ONE_A_REQUEST)
    each, fast = 2 + FEW_LOOKS.rounds, [False]

    def candidate(out: Argument, x: Argument, *rest: Argument) -> None:
        TWICE(out, x, *rest)
        fast[0] = next(launches) >= (1 + 3) * each

    def seconds_of(session: PythonSession, calls: Sequence[LaunchCall]) -> float:
        fast[0] = False
        session.run(calls[:1])
        return (6e-6 if fast[0] else 1e-5) * len(calls)

    launches = count()
    monkeypatch.setattr(PythonSession, "seconds_of", seconds_of)
    result, races = raced_with(then(TWICE, TOO_MUCH), candidate, FEW_LOOKS, monkeypatch, fresh=7)
    assert result.timing is not None, result.detail
    assert [race.policy.looks for race in races] == [4] + [1] * 4
    assert next(launches) == (1 + 4) * each
    assert result.timing.samples == (1e-5,) * 3 * 5 + (6e-6,) * 5
    assert result.timing.paired == (1e-5,) * 4 * 5
    assert result.timing.seconds == 1e-5


def test_one_that_is_wrong_in_most_launches_of_some_requests_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To be fast in half of what counts it must be: then no look sees it once in a hundred thousand times."""
    monkeypatch.setattr(memory, "MAX_SENT", ONE_A_REQUEST)
    each = 2 + MANY_LOOKS.rounds
    often = counting_launches(lambda number: number >= each and number % each >= 7)
    assert raced(then(TWICE, OFF), often, MANY_LOOKS, monkeypatch, fresh=7)[0] is Status.WRONG


@pytest.mark.parametrize(
    ("looks", "nbytes", "expected"),
    [
        (12, 1 << 20, [12]),
        (12, 0, [12]),
        (12, 1 << 29, [4, 4, 4]),
        (12, (1 << 29) - 1, [4, 4, 4]),
        (4, 1 << 30, [2, 2]),
        (12, 429496729, [4, 4, 4]),  # five would fit: the last request would have two
        (3, 1 << 40, [1, 1, 1]),
        (1, 1 << 40, [1]),
    ],
)
def test_looks_are_spread_evenly(looks: int, nbytes: int, expected: list[int]) -> None:
    assert validate_timing.spread_looks(looks, nbytes) == expected


def test_requests_are_one_measurement() -> None:
    first = Timed(((1.0, 2.0), (3.0, 4.0)), 2, 5.0, clocks=(Clock("SM", 1, 2),))
    then_ = Timed(((5.0,), (6.0,)), 1, 7.0, clocks=(Clock("SM", 3, 4),))
    both = Timed(((1.0, 2.0, 5.0), (3.0, 4.0, 6.0)), 3, 12.0, clocks=(Clock("SM", 3, 4),))
    assert validate_timing.merge_timed([first, then_]) == both


def test_what_a_request_has_sent_is_gone_before_the_next_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_SENT", ONE_A_REQUEST)
    kept, time = list[weakref.ref[RaceRun]](), Runner.time

    def asked(runner: Runner, race: Race, deadline: float) -> RaceRun | Verdict:
        assert not any(one() for one in kept[1:]), "but for the first, which is small"
        found = time(runner, race, deadline)
        assert isinstance(found, RaceRun)
        kept.append(weakref.ref(found))
        return found

    monkeypatch.setattr(Runner, "time", asked)
    assert raced(then(TWICE, TOO_MUCH), TWICE, FEW_LOOKS, monkeypatch, fresh=7)[0] is Status.OK
    assert len(kept) == 5


def test_no_round_is_safe_from_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even those after the fewest that there may be."""
    policy = replace(MANY_LOOKS, rounds=31)
    late = counting_launches(lambda number: number >= 2 + policy.min_rounds)
    # One in three hundred thousand would escape.
    assert raced(TWICE, late, policy, monkeypatch, fresh=7)[0] is Status.WRONG


def test_what_an_earlier_kernel_has_spoilt_beyond_the_first_places_convicts_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until the worker is another: then it is gone, and the kernel is right."""
    spoilt = [True]

    def candidate(out: Argument, x: Argument, *rest: Argument) -> None:
        TWICE(out, x, *rest)
        if spoilt[0]:
            ELSEWHERE(out, x)

    restart = Runner.restart
    monkeypatch.setattr(Runner, "restart", lambda self: (spoilt.__setitem__(0, False), restart(self)))
    found = raced(then(TWICE, OFF), candidate, POLICY, monkeypatch)
    assert found == (Status.OK, [False, True, False, True])


ANY_ORDER = (out_of("float32", 'order = "any"'),)


def backwards(out: Argument, x: Argument, rows: int, d: int) -> None:
    out.of("float32")[:] = (2 * x.of("float32")).reshape(rows, d)[:, ::-1].reshape(-1)


@pytest.mark.parametrize("judges", ["device", "host"])
@pytest.mark.parametrize(
    ("candidate", "status"),
    [(backwards, Status.OK), (then(backwards, OFF), Status.WRONG)],
    ids=["right", "off"],
)
def test_what_must_be_sent_whole_is_asked_for_as_often_as_a_request_can_hold(
    candidate: Kernel, status: Status, judges: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it travels before, when it would be too much."""
    if judges == "host":
        monkeypatch.setattr(PythonBackend, "open", without_inspector)
    some, few = [], replace(FEW_LOOKS, looks=2)
    take = Runner.time
    monkeypatch.setattr(Runner, "time", lambda *a: some.append(take(*a)) or some[-1])
    for most, requests in ((4 * ONE_A_REQUEST, 1), (ONE_A_REQUEST, 3)):
        monkeypatch.setattr(memory, "MAX_SENT", most)
        some.clear()
        result, races = raced_with(TWICE, candidate, few, monkeypatch, 7, scale_problem(*ANY_ORDER))
        assert result.status is status, result.detail
        assert len(races) <= requests
        assert status is Status.WRONG or len(races) == requests
        assert all(sum(map(len, run.blobs)) <= most + BESIDE for run in some)


@pytest.mark.parametrize("policy", ["long", "again"])
def test_deadlines_allow_for_what_is_sent_whole_at_once(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A right kernel that is looked at for longer has done nothing wrong."""
    given, take = list[float](), Runner.time
    monkeypatch.setattr(measure, "DATA_RATE", 1e3)
    monkeypatch.setattr(Runner, "time", lambda own, race, end: given.append(end) or take(own, race, end))
    spent = []
    for problem in (scale_problem(), scale_problem(*ANY_ORDER)):
        given.clear()
        fresh = 7 if policy == "long" else None
        raced_with(TWICE, then(TWICE, OFF), FEW_LOOKS, monkeypatch, fresh, problem)
        spent.append(given[-1])
    looks = FEW_LOOKS.looks if policy == "long" else FEW_LOOKS.min_rounds
    assert spent[1] - spent[0] == pytest.approx(looks * ONE_A_REQUEST / 1e3)


@pytest.mark.parametrize(
    ("busy", "seconds", "asked", "left"),
    [(0, None, 1, ""), (2, None, 3, ""), (99, None, 5, "they compute"), (99, 30.0, 2, "they compute")],
)
def test_a_quiet_device_is_waited_for(
    busy: int, seconds: float | None, asked: int, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time all of it is judged; what stays disturbed says so. No longer than a tenth of the run."""
    sleeps, real = list[float](), Runner.time

    def time(runner: Runner, race: Race, end: float) -> RaceRun | Verdict:
        found = real(runner, race, end)
        is_busy = len(sleeps) < busy
        return replace(found, timed=replace(found.timed, disturbance="they compute" if is_busy else ""))

    monkeypatch.setattr(Runner, "time", time)
    monkeypatch.setattr(measure.time, "sleep", sleeps.append)
    monkeypatch.setattr(measure, "PATIENCE", 60.0)
    policy = replace(POLICY, max_seconds=1.0)
    result, races = raced_with(TWICE, TWICE, policy, monkeypatch, fresh=7, seconds=seconds)
    assert (len(races), result.timing.disturbance) == (asked, left)
    most = min(measure.QUIET_SECONDS, (seconds or math.inf) / 10)
    assert sum(sleeps) + 2 * policy.max_seconds * len(sleeps) <= most


@pytest.mark.parametrize(("type", "seeds"), [("float32*", 1), ("int32*", 4)])
def test_several_draws_are_timed_where_time_may_depend_on_them(
    type: str, seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row offsets, indices and lengths are as wide; the looks and rounds are as many as ever, or more."""
    problem = scale_problem((X, X.replace("float32*", type)))
    policy = replace(MANY_LOOKS, rounds=22)
    for fresh in (None, 7):  # in each sitting its own
        result, races = raced_with(TWICE, TWICE, policy, monkeypatch, fresh, problem)
        assert len({race.draw.seed for race in races}) == len(races) == seeds
        assert sum(race.policy.looks for race in races) >= policy.looks
        assert result.timing is not None, result.detail
        assert len(result.timing.draws) == seeds
        assert sum(result.timing.draws) == len(result.timing.samples) >= policy.rounds
