"""The loop on a lab that never leaves memory: what it does, and that being killed changes nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from tests.samples import DEVICE, a_problem, a_template, outcome, started
from tunesmith.core.choose import Choice, verified_choice
from tunesmith.core.events import (
    Asked,
    Baseline,
    Decided,
    Event,
    Measured,
    Recorded,
    Settings,
    Stopped,
    Verified,
)
from tunesmith.core.outcome import Outcome, Result, Status, Timing, Trial
from tunesmith.core.ports import Planner, Searcher, SearchView
from tunesmith.core.space import Config
from tunesmith.core.state import State
from tunesmith.core.template import Template
from tunesmith.expert.planner import GivenTemplate
from tunesmith.loop import SENTINEL_EVERY, Loop
from tunesmith.search.exhaustive import Exhaustive
from tunesmith.search.random import Random
from tunesmith.search.refine import Refine

PROBLEM = a_problem()
TEMPLATE = a_template(
    PROBLEM,
    """\
// /// tunesmith
// [params]
// BLOCK = [32, 64, 128, 256]
// VEC = [1, 2, 4, 8]
// UNROLL = [1, 2, 3, 4, 5]
// [default]
// BLOCK = 64
// VEC = 1
// UNROLL = 1
// [launch]
// grid = ["ceildiv(rows * d, BLOCK * VEC)"]
// block = ["BLOCK"]
// ///
int use[] = {BLOCK, VEC, UNROLL};
""",
)
CONFIGS = TEMPLATE.space.configs([w.as_dict() for w in PROBLEM.workloads], DEVICE.limits.names())
ORIGINAL = {"small": 10.0, "wide": 20.0}

Cost = Callable[[Config, str], float | Status]


def config(block: int, vec: int, unroll: int) -> Config:
    return Config.of({"BLOCK": block, "VEC": vec, "UNROLL": unroll})


BEST = config(128, 4, 3)
SECOND = config(128, 4, 2)


def cost(chosen: Config, workload: str) -> float | Status:
    """Best at 128, 4, 3; some fail in various ways."""
    block, vec, unroll = chosen.as_dict().values()
    if block == 256 and vec == 8:
        return Status.OVER_LIMITS
    if vec == 8 and unroll == 5:
        return Status.WRONG if workload == "small" else Status.INFEASIBLE
    if block == 32 and unroll == 4 and workload == "wide":
        return Status.CRASHED
    return ORIGINAL[workload] / 4 * (1 + abs(block - 128) / 128 + abs(vec - 4) / 4 + abs(unroll - 3) / 30)


@dataclass
class FakeLab:
    """Outcomes from a cost function, in the order of submission, each trial once."""

    cost: Cost = cost
    verdict: Cost = cost  # what verification finds
    dies_after: int | None = None  # outcomes until it is killed
    admitted: list[Template] = field(default_factory=list)
    baselines: int = 0
    queue: deque[Trial] = field(default_factory=deque)
    evaluated: list[Trial] = field(default_factory=list)
    proven: list[Trial] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)  # trials in the queue at each collect
    closed: bool = False

    def baseline(self) -> Baseline:
        self.baselines += 1
        return Baseline(outcome(-1, None, ORIGINAL, "sentinel"), "reference")

    def admit(self, template: Template) -> None:
        self.admitted.append(template)

    def submit(self, trial: Trial) -> None:
        assert trial.config is None or trial.template == self.admitted[-1].digest
        self.queue.append(trial)

    def collect(self) -> Outcome:
        if self.dies_after is not None and len(self.evaluated) == self.dies_after:
            raise KeyboardInterrupt
        self.waiting.append(len(self.queue))
        trial = self.queue.popleft()
        self.evaluated.append(trial)
        return self._outcome(trial, self.cost)

    def verify(self, trial: Trial) -> Verified:
        self.proven.append(trial)
        return Verified(self._outcome(trial, self.verdict), cases=5)

    def close(self) -> None:
        self.closed = True

    def _outcome(self, trial: Trial, cost: Cost) -> Outcome:
        results = []
        for name in trial.workloads:
            seconds = ORIGINAL[name] if trial.config is None else cost(trial.config, name)
            if isinstance(seconds, Status):
                results.append(Result(name, seconds, detail="so it is"))
                continue
            paired = (ORIGINAL[name],) * 8 if trial.effort == "long" else ()
            timing = Timing((seconds,) * (8 if paired else 3), paired)
            results.append(Result(name, Status.OK, timing, key=f"{trial.config} at {name}"))
        return Outcome(trial, tuple(results), str(trial.config), str(trial.config))


class MemoryJournal:
    """On its clock every event takes a second."""

    def __init__(self, records: Sequence[Recorded]) -> None:
        self.records = list(records)

    def read(self) -> Iterator[Recorded]:
        return iter(list(self.records))

    def append(self, event: Event) -> Recorded:
        at = self.records[-1].at + 1.0 if self.records else 0.0
        self.records.append(Recorded(len(self.records), at, event))
        return self.records[-1]


@dataclass
class Watcher:
    states: list[State] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def event(self, record: Recorded, state: State) -> None:
        self.states.append(state)

    def note(self, text: str) -> None:
        self.notes.append(text)


@dataclass
class Run:
    settings: Settings = field(default_factory=lambda: Settings(evals=40, width=5))
    searcher: Searcher = field(default_factory=Exhaustive)
    planner: Planner = field(default_factory=GivenTemplate)
    lab: FakeLab = field(default_factory=FakeLab)
    records: Sequence[Recorded] = ()
    watcher: Watcher = field(default_factory=Watcher)

    def __post_init__(self) -> None:
        self.journal = MemoryJournal(self.records or [Recorded(0, 0.0, started(self.settings))])

    def go(self) -> State:
        return Loop(
            PROBLEM,
            TEMPLATE,
            CONFIGS,
            self.settings,
            self.lab,
            self.searcher,
            self.planner,
            self.journal,
            self.watcher,
        ).run()


def events(run: Run, kind: type[Event]) -> list[Event]:
    return [record.event for record in run.journal.records if isinstance(record.event, kind)]


def delivered(state: State) -> Choice:
    return verified_choice(PROBLEM, state)


WHOLE = Settings(evals=None, width=5)


@pytest.mark.parametrize("searcher", [Exhaustive(), Random(), Refine()])
def test_a_whole_run_finds_the_best(searcher: Searcher) -> None:
    run = Run(WHOLE, searcher)
    state = run.go()
    assert state.stopped == Stopped("every configuration has been tried")
    assert len(state.searched()) == len(CONFIGS) == 80
    choice = delivered(state)
    assert choice.general == BEST
    assert [(p.config, p.speedup.value) for p in choice.picks] == [(BEST, 4.0), (BEST, 4.0)]
    assert [trial.config for trial in run.lab.proven] == [BEST]
    assert run.lab.baselines == 1
    assert not run.lab.queue
    assert state == run.watcher.states[-1]


def test_events_come_in_the_order_of_the_story() -> None:
    run = Run(Settings(evals=3, width=2, finalists=1))
    run.go()
    kinds = [type(record.event).__name__ for record in run.journal.records]
    assert kinds == [
        *("Started", "Baseline", "Admitted", "Decided"),
        *("Asked", "Asked", "Measured", "Asked", "Measured", "Measured"),
        "Decided",
        *("Asked", "Asked", "Measured", "Measured"),  # the best, and the second at each workload
        *("Verified", "Stopped"),
    ]
    admitted = run.watcher.states[-1].admitted
    assert admitted is not None
    assert (admitted.template, admitted.feasible, admitted.combinations) == (TEMPLATE.digest, 80, 80)
    assert [r.number for r in run.journal.records] == list(range(len(kinds)))


# -- being killed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("searcher", [Exhaustive(), Random(), Refine()], ids=lambda s: s.name)
def test_a_run_killed_after_any_event_goes_on_as_if_it_had_not_been(searcher: Searcher) -> None:
    def special(chosen: Config, workload: str) -> float | Status:
        """Another one is best at small, and the best of all does not survive verification."""
        found = cost(chosen, workload)
        return found / 3 if isinstance(found, float) and workload == "small" and chosen["VEC"] == 1 else found

    def hard(chosen: Config, workload: str) -> float | Status:
        return Status.WRONG if chosen == winner else special(chosen, workload)

    settings = Settings(evals=26, width=3, seed=5)
    winner = Run(settings, searcher, lab=FakeLab(special)).go().verified[0].outcome.trial.config
    whole = Run(settings, searcher, lab=FakeLab(special, hard))
    whole.go()
    records = whole.journal.records
    assert len(events(whole, Verified)) >= 2
    for cut in range(1, len(records) + 1):
        again = Run(settings, searcher, lab=FakeLab(special, hard), records=records[:cut])
        again.go()
        assert again.journal.records == records, f"after event {cut}"
        prefix = [record.event for record in records[:cut]]
        measured = {event.outcome.trial.id for event in prefix if isinstance(event, Measured)}
        assert measured.isdisjoint(trial.id for trial in again.lab.evaluated)
        assert len(again.lab.evaluated) == len(events(whole, Measured)) - len(measured)
        assert len(again.lab.proven) == len(events(whole, Verified)) - sum(
            isinstance(e, Verified) for e in prefix
        )
        assert again.lab.baselines == (0 if cut > 1 else 1)


def test_a_lab_that_is_interrupted_loses_only_what_was_in_flight() -> None:
    whole = Run(searcher=Random())
    whole.go()
    for lived in (0, 1, 17, 41):
        killed = Run(searcher=Random(), lab=FakeLab(dies_after=lived))
        with pytest.raises(KeyboardInterrupt):
            killed.go()
        resumed = Run(searcher=Random(), records=killed.journal.records)
        resumed.go()
        assert resumed.journal.records == whole.journal.records


def test_a_finished_run_is_left_alone() -> None:
    whole = Run()
    state = whole.go()
    again = Run(records=whole.journal.records)
    assert again.go() == state
    assert again.journal.records == whole.journal.records
    assert not again.lab.evaluated
    assert not again.lab.proven


# -- budgets, width, sentinels ----------------------------------------------------------------------------


@pytest.mark.parametrize("evals", [1, 15, 16, 17, 40])
def test_the_budget_of_evaluations(evals: int) -> None:
    run = Run(Settings(evals=evals, width=4), Random())
    state = run.go()
    assert len(state.searched()) == evals
    assert state.stopped == Stopped(f"the budget of {evals} evaluations is used up")


def test_the_budget_of_time() -> None:
    run = Run(Settings(seconds=30.0, width=4), Random())
    state = run.go()
    assert state.stopped == Stopped("the budget of 30 seconds is used up")
    asked = [
        r for r in run.journal.records if isinstance(r.event, Asked) and r.event.trial.purpose == "search"
    ]
    assert 28 <= asked[-1].at <= 32  # the last is asked at the moment the time is up
    assert len(state.searched()) == len(asked)  # what was in flight still counts
    assert state.finalists()


def test_time_goes_on_where_it_stopped() -> None:
    whole = Run(Settings(seconds=30.0, width=4), Random())
    whole.go()
    resumed = Run(Settings(seconds=30.0, width=4), Random(), records=whole.journal.records[:25])
    resumed.go()
    assert resumed.journal.records == whole.journal.records


@pytest.mark.parametrize("width", [1, 4, 20])
def test_as_many_in_flight_as_the_width(width: int) -> None:
    run = Run(Settings(evals=50, width=width))
    run.go()
    searching = [state for state in run.watcher.states if state.searching]
    assert max(len(state.in_flight) for state in searching) == width
    assert run.lab.waiting[:30] == [width] * 30  # the lab always has something to build ahead


@pytest.mark.parametrize("width", [1, 5])
def test_the_original_is_timed_again_every_so_often(width: int) -> None:
    run = Run(Settings(evals=80, width=width))
    state = run.go()
    purposes = [trial.purpose for trial in state.asked if trial.purpose != "finalist"]
    places = [i for i, purpose in enumerate(purposes) if purpose == "sentinel"]
    assert SENTINEL_EVERY == 16
    assert places == [16, 33, 50, 67]
    sentinels = [trial for trial in state.asked if trial.purpose == "sentinel"]
    assert all(t.config is None and t.template == "" and t.effort == "short" for t in sentinels)


def test_sentinels_are_not_evaluations() -> None:
    state = Run(Settings(evals=33, width=5)).go()
    assert len(state.searched()) == 33
    assert len(state.sentinels()) == 3  # the baseline among them


# -- failures -------------------------------------------------------------------------------------------


def test_the_next_best_is_delivered_where_the_winner_fails_verification() -> None:
    def hard(chosen: Config, workload: str) -> float | Status:
        return Status.WRONG if chosen == BEST else cost(chosen, workload)

    run = Run(WHOLE, lab=FakeLab(verdict=hard))
    state = run.go()
    assert run.lab.proven[0].config == BEST
    choice = delivered(state)
    assert choice.general is not None
    assert choice.general != BEST
    assert {pick.config for pick in choice.picks} == {choice.general}
    assert choice.picks[0].speedup.value == pytest.approx(4 / (1 + 1 / 30))
    assert state.stopped == Stopped("every configuration has been tried")


def test_where_no_finalist_survives_verification_the_original_stays() -> None:
    run = Run(WHOLE, lab=FakeLab(verdict=lambda chosen, workload: Status.CRASHED))
    state = run.go()
    proven = [trial.config for trial in run.lab.proven]
    assert len(proven) == len(set(proven)) == len(state.finalists()) > 1
    assert delivered(state).configs() == ()
    assert state.stopped is not None


def test_a_finalist_that_fails_the_long_look_is_not_verified() -> None:
    @dataclass
    class Strict(FakeLab):
        def collect(self) -> Outcome:
            found = super().collect()
            if found.trial.purpose == "finalist" and found.trial.config == BEST:
                return replace(found, results=tuple(Result(r.workload, Status.WRONG) for r in found.results))
            return found

    run = Run(WHOLE, lab=Strict())
    state = run.go()
    assert BEST not in [trial.config for trial in run.lab.proven]
    assert delivered(state).general in (SECOND, config(128, 4, 4))


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.OK])
@pytest.mark.parametrize("searcher", [Exhaustive(), Refine()])
def test_a_run_where_everything_fails_ends_like_any_other(searcher: Searcher, status: Status) -> None:
    run = Run(Settings(evals=20, width=4), searcher, lab=FakeLab(lambda chosen, workload: status))
    state = run.go()
    assert state.stopped == Stopped("the budget of 20 evaluations is used up")
    assert state.statuses() == {status.value: 20}
    assert not state.finalists()
    assert not run.lab.proven
    assert delivered(state).configs() == ()
    assert [pick.config for pick in delivered(state).picks] == [None, None]


def test_a_space_that_is_slower_everywhere_leaves_the_original() -> None:
    run = Run(WHOLE, lab=FakeLab(lambda chosen, workload: 2 * ORIGINAL[workload]))
    state = run.go()
    assert state.finalists()
    assert not run.lab.proven
    assert delivered(state).configs() == ()


# -- the partners -----------------------------------------------------------------------------------------


def test_a_planner_may_finish_without_a_search() -> None:
    class Done:
        def decide(self, state: State) -> Decided:
            return Decided("finish", "seen enough")

    run = Run(planner=Done())
    state = run.go()
    assert state.stopped == Stopped("seen enough")
    assert not state.asked


def test_a_searcher_sees_what_was_tried_and_what_is_in_flight() -> None:
    class Watched(Exhaustive):
        def __init__(self) -> None:
            self.views: list[SearchView] = []

        def ask(self, view: SearchView, n: int) -> list[Config]:
            self.views.append(view)
            return super().ask(view, n)

    searcher = Watched()
    run = Run(Settings(evals=30, width=4), searcher)
    run.go()
    assert len({view.seed for view in searcher.views}) == len(searcher.views)
    for number, view in enumerate(searcher.views):
        assert view.budget_left == 30 - number
        assert len(view.tried) + len(view.in_flight) == number
        assert view.default == TEMPLATE.default
        for tried, score in view.tried:
            works = any(isinstance(cost(tried, name), float) for name in ORIGINAL)
            assert (score is not None) == works


def test_a_searcher_that_gives_up_ends_the_search() -> None:
    class Lazy(Exhaustive):
        def ask(self, view: SearchView, n: int) -> list[Config]:
            return super().ask(view, n) if len(view.seen) < 6 else []

    state = Run(WHOLE, Lazy()).go()
    assert len(state.searched()) == 6
    assert state.stopped == Stopped("every configuration has been tried")
