"""Several labs as one: who gets which trial, what a lost device leaves behind, and turns at a card."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import pytest

from tests.samples import DEVICE, config
from tunesmith.base.errors import DeviceMissing, TunesmithError
from tunesmith.lab.build import Builders, BuiltCode
from tunesmith.lab.memory import Verdict
from tunesmith.lab.pool import REFUSALS, BuildHost, DeviceLab, LabPool, SpreadBuilders
from tunesmith.problem.device import Resources
from tunesmith.problem.plan import Status
from tunesmith.run.events import Enlisted, LeftOut
from tunesmith.run.outcome import Outcome, Purpose, Result, Trial

SECONDS = 20.0


class StubLab:
    """A device that does what it is told; `gate` holds it up."""

    def __init__(self, name: str, do: Callable[[Trial], None] = lambda _trial: None) -> None:
        self.name, self.do, self.turn = name, do, nullcontext()
        self.seen: list[int] = []
        self.lacks: dict[str, str] = {}

    def evaluate(self, trial: Trial) -> Outcome:
        self.seen.append(trial.id)
        self.do(trial)
        return Outcome(trial, (Result("small", Status.OK),), device=self.name)

    def verify(self, trial: Trial, _later: object = ()) -> Outcome:
        return self.evaluate(trial)

    def start_builds(self, trial: Trial) -> None: ...
    def share_gate(self, first: object) -> None: ...
    def add_cases(self, cases: object) -> None: ...
    def close(self) -> None: ...


def trial(number: int, purpose: Purpose = "search") -> Trial:
    chosen = None if purpose == "sentinel" else config(64)
    return Trial(number, chosen, ("small",), "short", purpose)


@pytest.fixture
def pool() -> Iterator[Callable[..., LabPool]]:
    made: list[LabPool] = []

    def make(*labs: StubLab, lost: Sequence[LeftOut] = ()) -> LabPool:
        builders: Any = StubLab("builders")
        made.append(LabPool(labs, builders, lost))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.close()


def collected(pool: LabPool, count: int) -> list[Outcome]:
    found = []
    while len(found) < count:
        one = pool.collect()
        assert one is not None
        found.append(one)
    return found


Make = Callable[..., LabPool]


def test_who_is_free_gets_the_next_and_outcomes_come_as_they_are_ready(pool: Make) -> None:
    held = threading.Event()
    slow, quick = StubLab("slow", lambda _t: bool(held.wait(SECONDS))), StubLab("quick")  # type: ignore[arg-type, return-value]
    own = pool(slow, quick)
    own.submit(trial(0, "sentinel"), "slow")
    for number in range(1, 5):
        own.submit(trial(number))
    first = collected(own, 4)
    assert {one.device for one in first} == {"quick"}
    held.set()
    assert [one.trial.id for one in collected(own, 1)] == [0]


def test_finalists_are_timed_by_the_first_alone_and_by_the_next_where_it_is_left_out(pool: Make) -> None:
    own = pool(StubLab("a"), StubLab("b"))
    for number in range(6):
        own.submit(trial(number, "finalist"))
    assert {one.device for one in collected(own, 6)} == {"a"}
    own.leave_out("a")
    own.submit(trial(6, "finalist"))
    own.submit(trial(7))
    assert {one.device for one in collected(own, 2)} == {"b"}


def lost(_trial: Trial) -> None:
    raise DeviceMissing("worker 'a' cannot be reached\nno route")


def test_what_a_lost_device_was_asked_others_are_asked(pool: Make) -> None:
    own = pool(StubLab("a", lost), StubLab("b"))
    own.submit(trial(0, "sentinel"), "a")
    own.submit(trial(1))
    found: list[Outcome] = []
    told: list[LeftOut | Enlisted] = []
    while len(found) < 1 or not told:
        one = own.collect()
        found += [one] if one is not None else []
        told += [gone] if (gone := own.changed()) is not None else []
    assert told == [LeftOut("a", "worker 'a' cannot be reached", lost=True)]
    assert [(one.trial.id, one.device) for one in found] == [(1, "b")], "the original is not asked of another"
    assert own.changed() is None


def test_a_device_that_joins_is_told_before_anything_it_measures(pool: Make) -> None:
    own = pool(StubLab("a"))
    own.submit(trial(0))
    assert [one.device for one in collected(own, 1)] == ["a"]
    new = StubLab("b")
    assert own.join(new)  # type: ignore[arg-type]
    assert not own.join(StubLab("b")), "it is there already"  # type: ignore[arg-type]
    own.submit(trial(1, "sentinel"), "b")
    assert own.collect() is None
    assert own.changed() == Enlisted(("a", "b"))
    assert own.changed() is None
    assert [one.device for one in collected(own, 1)] == ["b"]


def test_who_joins_and_is_lost_at_once_has_joined_first(pool: Make) -> None:
    own = pool(StubLab("a"))
    assert own.join(StubLab("b"))  # type: ignore[arg-type]
    assert own.join(StubLab("c", lost))  # type: ignore[arg-type]
    own.submit(trial(0, "sentinel"), "c")
    gone = LeftOut("c", "worker 'a' cannot be reached", lost=True)
    with own._changed:
        assert own._changed.wait_for(lambda: gone in own._news, SECONDS)
    assert [own.changed() for _ in range(3)] == [Enlisted(("a", "b", "c")), gone, None]


def test_one_that_could_not_be_had_is_told_first(pool: Make) -> None:
    gone = LeftOut("b", "it is gone", lost=True)
    own = LabPool([StubLab("a")], StubLab("builders"), [gone])  # type: ignore[list-item, arg-type]
    own.submit(trial(0))
    assert own.collect() is None
    assert own.changed() == gone
    own.leave_out("b")
    assert [one.device for one in collected(own, 1)] == ["a"]
    own.close()


def test_an_original_that_was_asked_of_nobody_is_measured_by_another(pool: Make) -> None:
    """As of a run that had one device when it was killed."""
    own = pool(StubLab("a", lost), StubLab("b", lambda _t: time.sleep(0.01)))
    for number in range(3):
        own.submit(trial(number, "sentinel"))
    found: list[Outcome] = []
    while len(found) < 3:
        one = own.collect()
        found += [one] if one is not None else []
        own.changed()
    assert {(one.trial.id, one.device) for one in found} == {(0, "b"), (1, "b"), (2, "b")}


def test_what_one_that_could_not_be_had_is_asked_goes_with_it(pool: Make) -> None:
    """It is in force by the journal, which has a question for it."""
    own = pool(StubLab("a"), lost=[LeftOut("b", "gone", lost=True)])
    own.submit(trial(1, "sentinel"), "b")
    assert own.collect() is None
    assert own.changed() == LeftOut("b", "gone", lost=True)
    own.leave_out("b")
    own.submit(trial(2))
    assert [o.trial.id for o in collected(own, 1)] == [2]


def test_where_the_last_is_left_out_the_one_lost_before_is_missed(pool: Make) -> None:
    """It was lost after we had decided who is better left out."""
    own = pool(StubLab("a"), StubLab("b", lost))
    own.submit(trial(0, "sentinel"), "b")
    with own._changed:
        assert own._changed.wait_for(lambda: own._news, SECONDS)
    own.leave_out("a")
    assert own.changed() is None, "the journal still has it in force, as the last"
    with pytest.raises(DeviceMissing, match="cannot be reached"):
        own.collect()
    with pytest.raises(DeviceMissing, match="no device"):
        own.verify(trial(1, "finalist"))


def test_the_last_device_is_missed_and_not_left_out(pool: Make) -> None:
    own = pool(StubLab("a", lost))
    own.submit(trial(0))
    with pytest.raises(DeviceMissing, match="cannot be reached"):
        own.collect()
    assert own.changed() is None


def test_what_one_device_does_the_next_does_where_it_is_lost(pool: Make) -> None:
    own = pool(StubLab("a", lost), StubLab("b"))
    found: Any = own.verify(trial(3, "finalist"))
    assert found.device == "b"
    gone = own.changed()
    assert (gone.device, gone.lost) == ("a", True)


def test_a_fault_of_ours_is_not_a_lost_device(pool: Make) -> None:
    def broken(_trial: Trial) -> None:
        raise ZeroDivisionError

    own = pool(StubLab("a", broken), StubLab("b", broken))
    own.submit(trial(0))
    with pytest.raises(ZeroDivisionError):
        own.collect()


def test_two_workers_of_one_card_take_turns() -> None:
    """`turn` is held for all that a trial has to do with the device, and for no build."""
    inside: list[int] = []

    class Lab(DeviceLab):
        def __init__(self, turn: threading.Lock) -> None:
            self.turn = turn

        def _start_builds(self, trial: Trial) -> list[Any]:
            return []

        def _evaluate(self, trial: Trial) -> Outcome:
            inside.append(1)
            assert len(inside) == 1, "another is at the card"
            time.sleep(0.005)
            inside.pop()
            return Outcome(trial, (Result("small", Status.OK),))

    turn = threading.Lock()
    faults: list[BaseException] = []

    def work() -> None:
        try:
            for number in range(5):
                Lab(turn).evaluate(trial(number))
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


UNIT: Any = None
CODE = BuiltCode(UNIT, b"", "", Resources(), 0.0)


class TestBuildsAnywhere:
    @pytest.fixture
    def built(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
        """Which hosts built, one entry for each build; a gone one is missing."""
        by: list[str] = []

        def asked(_self: Builders, worker: Any, unit: object) -> Verdict | BuiltCode:
            if worker.host in gone:
                raise DeviceMissing("gone")
            if worker.host in self.failing:
                by.append(worker.host)
                raise TunesmithError("a worker failed inside Tunesmith: IndexError")
            by.append(worker.host)
            is_refused = worker.host in self.refusing or unit in self.refusing
            return Verdict(Status.BUILD_FAILED, f"{worker.host}: no") if is_refused else CODE

        gone = self.gone = set[str]()
        self.refusing: set[object] = set()
        self.failing: set[str] = set()
        self.said: list[str] = []
        self.made: list[SpreadBuilders] = []
        monkeypatch.setattr(Builders, "_ask_worker", asked)
        yield by
        for one in self.made:
            one.close()

    def builders(self, only_build: tuple[str, ...] = (), **counts: int) -> SpreadBuilders:
        class Worker:
            def __init__(self, host: str) -> None:
                self.host = host

            def kill(self) -> None: ...

            def close(self) -> None: ...

        def host(name: str, count: int) -> BuildHost:
            spawn: Any = lambda: Worker(name)  # noqa: E731
            gone = lambda: "gone" if name in self.gone else ""  # noqa: E731
            return BuildHost(spawn, gone, count, name, name not in only_build)

        hosts = [host(name, count) for name, count in counts.items()]
        self.made.append(SpreadBuilders(hosts, DEVICE, say=self.said.append))
        return self.made[-1]

    def test_each_host_has_as_many_workers_as_it_may(self, built: list[str]) -> None:
        own = self.builders(here=1, there=2)
        workers: list[Any] = [own._spawn() for _ in range(3)]
        assert sorted(worker.host for worker in workers) == ["here", "there", "there"]

    def test_what_a_lost_host_was_building_another_builds(self, built: list[str]) -> None:
        own = self.builders(here=1, there=1)
        for _ in range(3):
            own._build_unit(UNIT)
        self.gone.add("there")
        built.clear()
        for _ in range(4):
            assert own._build_unit(UNIT) is CODE
        assert set(built) == {"here"}
        self.gone.add("here")
        with pytest.raises(DeviceMissing):
            own._build_unit(UNIT)

    def test_what_one_that_only_builds_refuses_is_built_where_a_device_is(self, built: list[str]) -> None:
        """A few times; then it builds no more, and that is said."""
        own = self.builders(("there",), there=1, here=1)
        self.refusing.add("there")
        for _ in range(20):
            assert own._build_unit(UNIT) is CODE
        assert built.count("there") == REFUSALS
        assert self.said == ["worker 'there' refuses what builds elsewhere (there: no); it builds no more"]

    def test_one_that_only_builds_and_cannot_be_asked_ends_no_run(self, built: list[str]) -> None:
        own = self.builders(("there",), there=1, here=1)
        self.failing.add("there")
        for _ in range(20):
            assert own._build_unit(UNIT) is CODE
        assert built.count("there") == REFUSALS
        own = self.builders(there=1, here=1)
        with pytest.raises(TunesmithError):
            own._build_unit(UNIT)

    def test_a_judge_that_is_lost_with_its_machine_costs_no_build(self, built: list[str]) -> None:
        """Nor does one that was idle when it was lost."""
        own = self.builders(("there",), there=1, here=2, beyond=2)
        self.refusing.add("there")
        assert own._judge is not None
        judges: list[Any] = [own._judge._take_worker() for _ in range(4)]
        assert {one.host for one in judges} == {"here", "beyond"}
        for one in judges:
            own._judge._idle.put(one)
        self.gone.add("here")
        for _ in range(REFUSALS):
            assert own._build_unit(UNIT) is CODE
        assert built == REFUSALS * ["there", "beyond"]
        self.gone.add("beyond")
        refused = own._judged(own._hosts[0], Verdict(Status.BUILD_FAILED, "no"), UNIT)
        assert isinstance(refused, Verdict)

    def test_what_all_refuse_is_refused_and_held_against_nobody(self, built: list[str]) -> None:
        own = self.builders(("there",), there=1, here=1)
        bad: Any = "bad"
        self.refusing.add("bad")
        found = [own._build_unit(bad) for _ in range(20)]
        assert {one.detail for one in found if isinstance(one, Verdict)} == {"here: no"}
        assert built.count("there") > REFUSALS
        assert self.said == []
        self.gone.add("here")
        refused = own._build_unit(bad)
        assert refused.detail == "there: no", "there is nobody else to ask"

    def test_a_host_that_fails_without_being_gone_is_not_tried_for_ever(
        self, built: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        own = self.builders(here=1, there=1)
        tries: list[int] = []

        def fail(*_own: object) -> Verdict:
            tries.append(1)
            assert len(tries) < 9, "it does not end"
            raise DeviceMissing("no")

        monkeypatch.setattr(Builders, "_ask_worker", fail)
        with pytest.raises(DeviceMissing):
            own._build_unit(UNIT)
        assert len(tries) == 2
