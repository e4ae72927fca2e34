"""Cases kept on the device: what they find, what they cost, and that the host would have found the same."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.core.lab.kept_scenarios import SCENARIOS, TWICE, Scenario, add, idle, past_end, scribble, varying
from tests.core.lab.labs import scale_problem
from tests.core.lab.oracles import SECONDS, Judges, Keeper, a_case
from tests.core.lab.python_kernels import Argument, Array, Kernel, PythonBackend, elementwise, then
from tests.core.problem.test_recorded import recorded_file, with_case
from tunesmith.backends.messages import (
    Contender,
    Draw,
    Failed,
    Judged,
    Load,
    Reply,
    Timed,
    TimeRuns,
    TimingPolicy,
)
from tunesmith.backends.port import LaunchFailed, OutOfMemory
from tunesmith.lab import memory as guards
from tunesmith.lab import references
from tunesmith.lab.judge.cases import CaseOracle
from tunesmith.lab.memory import Examined, Verdict
from tunesmith.lab.references import draw_inputs, draw_of
from tunesmith.lab.worker.device_cases import MEMORY_SHARE
from tunesmith.lab.worker.requests import RequestHandler
from tunesmith.problem.cases import Case
from tunesmith.problem.plan import Status


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.few(5)
def test_device_and_host_judge_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words, too: what is wrong for the device is looked at by the host, in the worker."""
    scenario = prepared(name, monkeypatch)
    judges, case = scenario.judges, scenario.case
    host, device = judges.on_the_host(), judges.on_the_device()
    established = host.establish(case), device.establish(case)
    if scenario.original_status is not Status.OK:
        assert established[0] == established[1]
        assert isinstance(established[0], Verdict)
        assert established[0].status is scenario.original_status
        return
    assert all(isinstance(seconds, float) for seconds in established), established
    plan = judges.plan(case)
    for candidate, (_, status) in scenario.candidates.items():
        code = judges.code(candidate)
        verdict = host.examine(code, [Examined(case, plan, SECONDS)])
        assert (candidate, verdict.status) == (candidate, status), verdict.detail
        found = device.examine(code, [Examined(case, plan, SECONDS)])
        assert (candidate, found) == (candidate, verdict)


def test_odd_values_are_held_to_the_original_on_host_and_device() -> None:
    """An original that makes 1 of what is not a number may be followed, or the reference; not a third way."""

    def made(instead: float) -> Kernel:
        def kernel(out: Argument, x: Argument, *_: object) -> None:
            with np.errstate(over="ignore"):
                values = 2 * x.of("float32")
            out.of("float32")[:] = np.where(np.isnan(values), np.float32(instead), values)

        return kernel

    kernels = {"original": made(1.0), "like": made(1.0), "right": made(np.nan), "other": made(0.0)}
    judges, case = Judges(scale_problem(), kernels), a_case(distribution="special", errors=False)
    plan = judges.plan(case)
    for oracle in (judges.on_the_host(), judges.on_the_device()):
        assert isinstance(oracle.establish(case), float)
        found = {
            name: oracle.examine(judges.code(name), [Examined(case, plan, SECONDS)]).status
            for name in ("like", "right", "other")
        }
        assert found == {"like": Status.OK, "right": Status.OK, "other": Status.WRONG}


@pytest.mark.parametrize(
    "name",
    [
        *("plain", "in_place", "no_reference", "sampled_rows", "int8_codes", "exact_integers"),
        *("close_integers", "overflow", "float16", "bfloat16", "float8_e4m3", "float8_e5m2"),
    ],
)
def test_what_is_right_never_leaves_the_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = prepared(name, monkeypatch)
    keeper = Keeper(scenario.judges)
    keeper.keep(scenario.case)
    assert verdict_of(keeper, "right", scenario.case) is Status.OK
    assert keeper.session.bytes_read == 0


class TestWhatAKernelSees:
    """The same as when the host lays it out."""

    @pytest.mark.parametrize("distribution", ["normal", "spikes", "ones"])
    def test_inputs_are_those_the_reference_sees(self, distribution: str) -> None:
        seen: list[Array] = []
        keeper = a_keeper(lambda out, x, *_: seen.append(x.of("float32").copy()))
        case = a_case(distribution=distribution)
        keeper.keep(case)
        drawn = draw_inputs(keeper.judges.plan(case), draw_of(keeper.judges.problem, case))
        assert len(seen) == 4
        for array in seen[1:]:
            np.testing.assert_array_equal(array, drawn["x"])
        assert np.array_equal(np.sort(seen[0]), np.sort(drawn["x"])), "a few have changed places"
        assert np.array_equal(seen[0], drawn["x"]) == (distribution == "ones")

    def test_outputs_are_poisoned_another_way_each_time(self) -> None:
        seen: list[bytes] = []
        keeper = a_keeper(lambda out, x, *_: seen.append(out.around(0, out.nbytes).tobytes()))
        keeper.keep(a_case())
        size = keeper.judges.plan(a_case()).buffer("out").nbytes
        one, other = (
            guards.repeat_pattern(guards.PATTERN, size),
            guards.repeat_pattern(guards.OTHER_PATTERN, size),
        )
        assert seen == [other, other, one, other], "the second time what the first left"

    def test_in_place_arrays_are_fresh_in_each_run_and_after(self) -> None:
        scenario = SCENARIOS["in_place"]
        keeper = Keeper(scenario.judges)
        assert keeper.keep(scenario.case).status is Status.OK
        for _ in range(3):
            assert verdict_of(keeper, "right", scenario.case) is Status.OK

    def test_arrays_start_where_the_guards_say_at_odd_and_even_places(self) -> None:
        places: list[int] = []
        keeper = a_keeper(lambda out, x, *_: places.extend((out.pointer.offset, x.pointer.offset)))
        for seed in range(8):
            keeper.keep(replace(a_case(), seed=seed))
        align = keeper.judges.gpu.limits.alignment
        assert {place % (2 * align) for place in places} == {0, align}


class TestMemory:
    def test_a_case_that_was_never_stored(self) -> None:
        assert a_keeper(TWICE).check("right", a_case()) is None

    def test_an_original_that_fails_is_not_stored(self) -> None:
        for original in (idle, then(TWICE, add(1, 5)), past_end, varying(1.0)):
            keeper = a_keeper(original)
            judged = keeper.keep(a_case())
            assert judged.status in (Status.WRONG, Status.UNSTABLE)
            assert judged.damage == (original is past_end)
            assert keeper.check("right", a_case()) is None

    def test_everything_is_given_back(self) -> None:
        keeper = a_keeper(TWICE)
        for number, case in enumerate((a_case(), a_case(rows=3), a_case(d=64), a_case())):
            assert keeper.keep(case, f"case {number % 3}").status is Status.OK
            assert verdict_of(keeper, "right", case, f"case {number % 3}") is Status.OK
        assert keeper.session.allocated > 0
        keeper.kept.give_back()
        assert keeper.session.allocated == 0
        assert keeper.check("right", a_case(), "case 0") is None
        assert keeper.keep(a_case()).status is Status.OK
        assert verdict_of(keeper, "right", a_case()) is Status.OK

    def test_keeping_a_case_again_takes_no_more_room(self) -> None:
        keeper = a_keeper(TWICE)
        keeper.keep(a_case())
        before = keeper.session.allocated
        for _ in range(3):
            keeper.keep(a_case())
            assert keeper.session.allocated == before

    def test_the_case_used_longest_ago_makes_room(self) -> None:
        keeper, case = a_keeper(TWICE, memory=1 << 20), a_case(rows=64, d=64)
        size = 4 * 64 * 64 + 8 * 64 * 64  # inputs and reference; a quarter of the memory holds five
        assert 5 * size < (1 << 20) / 4 < 6 * size
        for number in range(5):
            keeper.keep(case, str(number))
        assert verdict_of(keeper, "right", case, "0") is Status.OK  # and so 1 is the oldest
        keeper.keep(case, "5")
        held = [keeper.check("right", case, str(number)) is not None for number in range(6)]
        assert held == [True, False, True, True, True, True]

    def test_a_case_larger_than_its_share_is_stored_alone(self) -> None:
        keeper = a_keeper(TWICE, memory=900_000)
        keeper.keep(a_case(), "small")
        assert keeper.keep(a_case(rows=300, d=64), "large").status is Status.OK
        assert keeper.check("right", a_case(), "small") is None
        assert verdict_of(keeper, "right", a_case(rows=300, d=64), "large") is Status.OK
        assert verdict_of(keeper, "wrong", a_case(rows=300, d=64), "large") is Status.WRONG

    @pytest.mark.parametrize("room", range(1000, 600_000, 23_456))
    def test_no_room_leaves_nothing_behind(self, room: int) -> None:
        """Wherever it runs out: the next small case finds everything in order."""
        keeper = a_keeper(TWICE, memory=room)
        with pytest.raises(OutOfMemory):
            keeper.keep(a_case(rows=128, d=128))
        assert keeper.check("right", a_case(rows=128, d=128)) is None
        keeper.kept.give_back()
        assert keeper.session.allocated == 0

    def test_a_launch_that_fails_leaves_nothing_behind(self) -> None:
        def fails(*_: object) -> None:
            raise LaunchFailed("it had to be")

        keeper = a_keeper(fails)
        with pytest.raises(LaunchFailed):
            keeper.keep(a_case())
        assert keeper.check("right", a_case()) is None
        keeper.kept.give_back()
        assert keeper.session.allocated == 0


class TestRoom:
    """One memory for cases and for timing, on one bench: each gives way to the other."""

    CASE = a_case(rows=64, d=64)

    SIZE = 4 * 64 * 64  # of an array
    KEPT = 3 * SIZE  # of a case: its input, and the reference as doubles

    @pytest.fixture
    def bench(self) -> RequestHandler:
        return self.bench_with(500_000)

    def bench_with(self, memory: int) -> RequestHandler:
        self.judges = Judges(scale_problem(), {"original": TWICE, "right": TWICE}, memory)
        bench = RequestHandler(PythonBackend(self.judges.kernels))
        for name in ("original", "right"):
            bench.handle(Load(self.judges.code(name).unit, name, self.judges.gpu), (b"",))
        return bench

    def keep(self, bench: RequestHandler, name: str = "case") -> Reply:
        return bench.handle(*self.judges.keep_request(self.CASE, name))[0]

    def check(self, bench: RequestHandler, name: str = "case") -> Reply:
        return bench.handle(self.judges.check_request("right", self.CASE, name), ())[0]

    def time(self, bench: RequestHandler) -> Reply:
        plan, policy = self.judges.plan(self.CASE), TimingPolicy(1, 1, 1e-4, 1.0)
        return bench.handle(TimeRuns((Contender("right", plan),), Draw("normal", 1), policy, False), ())[0]

    def refused(self, bench: RequestHandler) -> int:
        """How often there was no room since this was asked."""
        session = bench._session
        refused, session.refused = session.refused, 0
        return refused

    def test_timing_gives_way_to_a_case(self, bench: RequestHandler) -> None:
        assert isinstance(self.time(bench), Timed)
        assert self.refused(bench) == 0
        reply = self.keep(bench)
        assert reply.status is Status.OK
        assert self.refused(bench) > 0, "else this shows nothing"

    def test_cases_give_way_to_timing_and_are_forgotten(self, bench: RequestHandler) -> None:
        self.keep(bench)
        assert self.refused(bench) == 0
        assert isinstance(self.time(bench), Timed)
        assert self.refused(bench) > 0, "else this shows nothing"
        reply = self.check(bench)
        assert reply.what == "forgotten"
        assert isinstance(self.keep(bench), Judged)
        assert isinstance(self.check(bench), Judged)

    def test_older_cases_give_way_when_nothing_else_can(self) -> None:
        """Their share holds them all, but beside what others have taken there is no room for one more."""
        count = 3
        memory = math.ceil((count + 1) * self.KEPT / MEMORY_SHARE)
        bench = self.bench_with(memory)
        for number in range(count):
            assert isinstance(self.keep(bench, str(number)), Judged)
        assert all(isinstance(self.check(bench, str(number)), Judged) for number in range(count))
        taken = bench._session.allocate(memory - bench._session.allocated - self.KEPT // 2)
        assert self.refused(bench) == 0
        reply = self.keep(bench, "last")
        assert reply.status is Status.OK
        assert self.refused(bench) > 0, "else this shows nothing"
        assert isinstance(self.check(bench, "last"), Judged)
        assert isinstance(self.check(bench, "0"), Failed)
        bench._session.release(taken)

    def test_where_there_is_none_at_all_that_is_said(self, bench: RequestHandler) -> None:
        bench._session.allocate(400_000)
        reply = self.keep(bench)
        assert reply.what == "memory"


def test_only_writes_outside_are_damage() -> None:
    scenario = SCENARIOS["plain"]
    keeper = Keeper(scenario.judges)
    keeper.keep(scenario.case)
    outside = {"past_end", "far_past_end", "before_start", "beside_x"}
    for name in scenario.candidates:
        judged = keeper.check(name, scenario.case)
        assert judged.damage == (name in outside)
        assert 0 < judged.seconds < judged.busy


def test_nothing_to_write_is_right() -> None:
    keeper, empty = a_keeper(idle), a_case(rows=3, d=0)
    assert keeper.keep(empty).status is Status.OK
    assert verdict_of(keeper, "original", empty) is Status.OK
    assert verdict_of(keeper, "scribbles", empty) is Status.WRONG


def prepared(name: str, monkeypatch: pytest.MonkeyPatch) -> Scenario:
    scenario = SCENARIOS[name]
    if scenario.rows:
        monkeypatch.setattr(references, "SAMPLED_ABOVE", 1)
        monkeypatch.setattr(references, "SAMPLED_ROWS", scenario.rows)
    if "float8" in name or "bfloat" in name:
        pytest.importorskip("ml_dtypes")
    return scenario


def a_keeper(original: Kernel, memory: int = 1 << 28) -> Keeper:
    kernels = {"original": original, "right": TWICE, "wrong": then(TWICE, add(1, 3))}
    kernels["scribbles"] = then(idle, scribble(0))
    return Keeper(Judges(scale_problem(), kernels, memory))


def verdict_of(keeper: Keeper, kernel: str, case: Case, name: str = "case") -> Status:
    judged = keeper.check(kernel, case, name)
    return judged.status


PLACE = 11
REAL = np.linspace(1, 2, 24 * 32, dtype=np.float32).reshape(24, 32)
REAL[0, PLACE] = 12345.0  # which no tester draws


def spoils_real_data(out: Argument, _: Argument) -> None:
    values = out.of("float32")
    if values[PLACE] == 2 * 12345.0:
        values[PLACE] += 1.0


def judged(oracle: CaseOracle, judges: Judges, case: Case, kernel: str) -> Verdict:
    found: Verdict = oracle.examine(judges.code(kernel), [Examined(case, judges.plan(case), SECONDS)])  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("where", ["on_the_host", "on_the_device"])
def test_a_kernel_is_held_to_what_was_recorded(where: str) -> None:
    problem = with_case(recorded_file(x=REAL))
    kernels = {
        "original": TWICE,
        "same": TWICE,
        "close": then(TWICE, add(1e-7, 3)),  # an original without any error makes no rule of that
        "wrong": then(TWICE, spoils_real_data),
    }
    judges = Judges(problem, kernels)
    (one,) = problem.recorded
    case = Case(one.sizes, one.distribution, 0, "full", compares_errors=False)
    oracle = getattr(judges, where)()
    assert isinstance(oracle.establish(case), float)
    assert judged(oracle, judges, case, "same").ok
    assert judged(oracle, judges, case, "close").ok
    verdict = judged(oracle, judges, case, "wrong")
    assert verdict.status is Status.WRONG
    assert "inputs: recorded recorded_5" in verdict.detail


@pytest.mark.parametrize("where", ["on_the_host", "on_the_device"])
def test_an_original_that_gives_something_else_is_wrong(where: str) -> None:
    problem = with_case(recorded_file(x=REAL))
    judges = Judges(problem, {"original": elementwise(lambda x: 3 * x)})
    (one,) = problem.recorded
    case = Case(one.sizes, one.distribution, 0, "full", compares_errors=False)
    found = getattr(judges, where)().establish(case)
    assert found.status is Status.WRONG
