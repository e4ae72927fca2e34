"""The loop on a lab that never leaves memory: what it does, and that being killed changes nothing."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from tests.samples import DEVICE, a_problem, a_template, baseline, built, log_of, started
from tests.wording import says
from tunesmith.base.text import digest_of, format_count
from tunesmith.problem.plan import Status
from tunesmith.problem.template import Template
from tunesmith.profiles.facts import Diagnosis
from tunesmith.run import events as ev
from tunesmith.run.budget import PER_SPARE_ALONE
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Settings, Stopped, Surveyed
from tunesmith.run.loop import Loop
from tunesmith.run.outcome import Outcome, Result, Timing, Trial
from tunesmith.run.ports import (
    Author,
    Delivery,
    Inbox,
    Planner,
    Power,
    Prior,
    Proposal,
    Searcher,
    SearchView,
    SizedCall,
)
from tunesmith.run.race import Winners, verified_choice
from tunesmith.run.scores import BUILDS, CONVINCED, LEAST, LITTLE, USUAL_NOISE
from tunesmith.run.stages import SENTINEL_EVERY, World
from tunesmith.run.state import State
from tunesmith.run.talk import ModelDialogue, refuse_old_stops
from tunesmith.search.simple import Exhaustive, Random
from tunesmith.session.roles import GivenTemplate, Silent
from tunesmith.space.configset import Config

PROBLEM = a_problem()
TEXT = """\
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
__constant int use[] = {BLOCK, VEC, UNROLL};
"""
TEMPLATE = a_template(PROBLEM, TEXT)
LARGE = a_template(PROBLEM, TEXT.replace("[1, 2, 3, 4, 5]", str(list(range(1, 21)))))
CONFIGS = TEMPLATE.space.configs([w.as_dict() for w in PROBLEM.workloads], DEVICE.limits.names())
ORIGINAL = {"small": 10.0, "wide": 20.0}

Cost = Callable[[Config, str], float | Status]
Survey = Callable[[Config], Surveyed]


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


def survey(chosen: Config) -> Surveyed:
    """What `cost` finds too large does not fit; the fourth round of unrolling is optimised away."""
    block, vec, unroll = chosen.as_dict().values()
    refused = dict.fromkeys(ORIGINAL, Status.OVER_LIMITS) if block == 256 and vec == 8 else None
    code = f"{block} {vec} {4 if unroll == 5 else unroll}" if vec < 8 else None
    return built(chosen, code, refused=refused, occupancy=100)


class Climber:
    """Like a good searcher: neighbours of the best so far, and a guess of what they may add."""

    name = "climber"

    def ask(self, view: SearchView, n: int) -> Proposal:
        tried = sorted((t for t in view.tried if t.score is not None), key=lambda t: -(t.score or 0.0))
        near = [
            c
            for t in tried[:3]
            for param in view.space.params
            for value in param.neighbours(t.config[param.name])
            if (c := t.config.replace(param.name, value)) in view.open
        ]
        found = dict.fromkeys(c for c in (*view.untried_first, *near) if c not in view.seen)
        if view.pool is not None:
            found |= dict.fromkeys(c for c in view.pool if c not in view.seen)
        chosen = tuple(found)[: view.room(n)]
        left = replace(view, in_flight=(*view.in_flight, *chosen))
        more = Random().ask(left, view.room(n) - len(chosen)).configs
        return Proposal((*chosen, *more), 1.0 / (1 + len(view.seen)))


@dataclass
class FakeLab:
    """Outcomes from a cost function, in the order of submission, each trial once."""

    cost: Cost = cost
    verdict: Cost = cost  # what verification finds
    survey: Survey = survey  # what a build tells
    dies_after: int | None = None  # outcomes and builds until it is killed
    admitted: list[Template] = field(default_factory=list)
    baselines: int = 0
    queue: deque[Trial] = field(default_factory=deque)
    evaluated: list[Trial] = field(default_factory=list)
    proven: list[Trial] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)  # trials in the queue at each collect
    to_build: deque[Trial] = field(default_factory=deque)
    built_ones: list[Trial] = field(default_factory=list)
    closed: bool = False
    no_profiles: str = "there is nothing to profile in memory"
    diagnosis: Callable[[Config | None, str], Diagnosis | None] = lambda _config, _workload: None
    profiled: list[tuple[Config | None, str, float]] = field(default_factory=list)

    def profile(self, config: Config | None, workload: str, seconds: float) -> ev.Profiled:
        assert not self.queue, "nothing is looked at while anything is measured"
        self.profiled.append((config, workload, seconds))
        return ev.Profiled(config, workload, self.diagnosis(config, workload))

    def baseline(self) -> ev.Baseline:
        self.baselines += 1
        return baseline(ORIGINAL)

    def admit(self, template: Template) -> None:
        self.admitted.append(template)

    def build(self, trial: Trial) -> None:
        assert (trial.effort, trial.purpose) == ("build", "search")
        assert trial.template in [t.digest for t in self.admitted]
        self.to_build.append(trial)

    def built(self) -> Surveyed:
        if self.dies_after is not None and len(self.evaluated) + len(self.built_ones) == self.dies_after:
            raise KeyboardInterrupt
        self.built_ones.append(self.to_build.popleft())
        chosen = self.built_ones[-1].config
        assert chosen is not None, "the original has been built by its baseline"
        return self.survey(chosen)

    def drop_builds(self) -> None:
        self.to_build.clear()

    def submit(self, trial: Trial) -> None:
        assert trial.effort != "build"
        assert trial.config is None or trial.template in [t.digest for t in self.admitted]
        self.queue.append(trial)

    def collect(self) -> Outcome:
        if self.dies_after is not None and len(self.evaluated) + len(self.built_ones) == self.dies_after:
            raise KeyboardInterrupt
        self.waiting.append(len(self.queue))
        trial = self.queue.popleft()
        self.evaluated.append(trial)
        return self._outcome(trial, self.cost)

    def verify(self, trial: Trial, _later: Sequence[Trial] = ()) -> ev.Verified:
        self.proven.append(trial)
        return ev.Verified(self._outcome(trial, self.verdict), cases=5)

    @property
    def lacks(self) -> dict[Power, str]:
        return {"profile": self.no_profiles, "serve": "nothing is called here"}

    def serve(self, _delivery: Delivery, _calls: Sequence[SizedCall]) -> ev.Served:
        raise AssertionError("nothing is called here")

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

    def __init__(self, records: Sequence[ev.Recorded]) -> None:
        self.records = list(records)

    def read(self) -> Iterator[ev.Recorded]:
        return iter(list(self.records))

    def append(self, event: ev.Event) -> ev.Recorded:
        at = self.records[-1].at + 1.0 if self.records else 0.0
        self.records.append(ev.Recorded(len(self.records), at, event))
        return self.records[-1]


@dataclass
class Watcher:
    states: list[State] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def event(self, record: ev.Recorded, state: State) -> None:
        self.states.append(state)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def say(self, text: str) -> None:
        self.notes.append(text)


@dataclass
class MemoryTexts:
    kept: dict[str, str] = field(default_factory=dict)

    def put(self, text: str) -> str:
        self.kept[digest_of(text)] = text
        return digest_of(text)

    def get(self, digest: str) -> str:
        return self.kept[digest]


class EmptyInbox:
    def waiting(self) -> Sequence[ev.RunInstruction]:
        return ()

    def drop(self, id: str) -> None: ...


@dataclass
class Run:
    settings: Settings = field(default_factory=lambda: Settings(evals=40))
    searcher: Searcher = field(default_factory=Exhaustive)
    planner: Planner = field(default_factory=GivenTemplate)
    lab: FakeLab = field(default_factory=FakeLab)
    records: Sequence[ev.Recorded] = ()
    watcher: Watcher = field(default_factory=Watcher)
    template: Template | None = TEMPLATE
    author: Author = field(default_factory=lambda: Silent("the template is given"))
    texts: MemoryTexts = field(default_factory=MemoryTexts)
    heeds_words: bool = True

    def __post_init__(self) -> None:
        self.journal = MemoryJournal(self.records or [ev.Recorded(0, 0.0, started(self.settings))])

    def talk(self, templates: Templates) -> ModelDialogue:
        return ModelDialogue(PROBLEM, templates, self.planner, self.author)

    def make_inbox(self) -> Inbox:
        return EmptyInbox()

    def go(self) -> State:
        templates = Templates(PROBLEM, DEVICE, self.template, self.texts)
        log, self.inbox = log_of(self.journal, self.watcher), self.make_inbox()
        refuse_old_stops(log, self.inbox)
        world = World(PROBLEM, templates, self.lab, self.searcher, self.talk(templates), self.inbox)
        world.heeds_words = self.heeds_words
        return Loop(world, log).run()


def events(run: Run, kind: type[ev.Event]) -> list[ev.Event]:
    return [record.event for record in run.journal.records if isinstance(record.event, kind)]


def delivered(state: State) -> Winners:
    return verified_choice(PROBLEM, state)


AHEAD = 12
WHOLE = Settings(evals=None)
SEARCHERS = [Exhaustive(), Random(), Climber()]

both = pytest.mark.parametrize("ahead", [0, AHEAD])
each_searcher = pytest.mark.parametrize("searcher", SEARCHERS, ids=lambda s: s.name)


@both
@each_searcher
def test_a_whole_run_finds_the_best(searcher: Searcher, ahead: int) -> None:
    run = Run(replace(WHOLE, ahead=ahead, prune=False), searcher)
    state = run.go()
    assert state.stopped == Stopped("every configuration has been tried")
    assert len(state.searched) == len(CONFIGS) == 80
    assert {o.trial.config for o in state.searched} == set(CONFIGS)
    choice = delivered(state)
    assert choice.general == BEST
    assert [(p.config, p.speedup.value) for p in choice.picks] == [(BEST, 4.0), (BEST, 4.0)]
    assert [trial.config for trial in run.lab.proven] == [BEST]
    assert run.lab.baselines == 1
    assert not run.lab.queue
    assert not run.lab.to_build
    assert state == run.watcher.states[-1]


def kinds_of(run: Run) -> list[str]:
    return [type(record.event).__name__ for record in run.journal.records]


def test_events_come_in_the_order_of_the_story() -> None:
    run = Run(Settings(evals=6, finalists=1))
    run.go()
    kinds = kinds_of(run)
    assert kinds == [
        *("Started", "Baseline", "Admitted", "Decided"),
        *("Asked", "Asked"),  # the first, and one that waits behind it
        *["Measured", "Asked"] * 4,  # each makes room for another
        *["Measured"] * 2,
        *("Searched", "Decided"),
        *("Asked", *["Measured"] * 3),  # a heat: the best in general, and at the workloads
        *("Verified", "Stopped"),
    ]
    asked = [[t.id for t in e.trials] for e in events(run, ev.Asked)]
    assert asked == [[0], [1], [2], [3], [4], [5], [6, 7, 8]]
    admitted = run.watcher.states[-1].admitted
    assert (admitted.template, admitted.feasible, admitted.combinations) == (TEMPLATE.digest, 80, 80)
    assert [r.number for r in run.journal.records] == list(range(len(kinds)))


@both
@each_searcher
@pytest.mark.few(1)
def test_a_run_killed_after_any_event_goes_on_as_if_it_had_not_been(searcher: Searcher, ahead: int) -> None:
    def special(chosen: Config, workload: str) -> float | Status:
        """Another one is best at small, and the best of all does not survive verification."""
        found = cost(chosen, workload)
        return found / 3 if isinstance(found, float) and workload == "small" and chosen["VEC"] == 1 else found

    def hard(chosen: Config, workload: str) -> float | Status:
        return Status.WRONG if chosen == winner else special(chosen, workload)

    settings = Settings(evals=26, ahead=ahead, seed=5)
    winner = Run(settings, searcher, lab=FakeLab(special)).go().verified[0].outcome.trial.config
    whole = Run(settings, searcher, lab=FakeLab(special, hard))
    whole.go()
    records = whole.journal.records
    assert len(events(whole, ev.Verified)) >= 2
    assert bool(events(whole, ev.Pruned)) == bool(events(whole, Surveyed)) == bool(ahead)
    for cut in range(1, len(records) + 1):
        again = Run(settings, searcher, lab=FakeLab(special, hard), records=records[:cut])
        again.go()
        assert again.journal.records == records, f"after event {cut}"
        prefix = [record.event for record in records[:cut]]
        measured = {event.outcome.trial.id for event in prefix if isinstance(event, ev.Measured)}
        assert measured.isdisjoint(trial.id for trial in again.lab.evaluated)
        surveyed = {event.config for event in prefix if isinstance(event, Surveyed)}
        assert surveyed.isdisjoint(trial.config for trial in again.lab.built_ones)
        assert len(again.lab.evaluated) == len(events(whole, ev.Measured)) - len(measured)
        assert len(again.lab.proven) == len(events(whole, ev.Verified)) - sum(
            isinstance(e, ev.Verified) for e in prefix
        )
        assert again.lab.baselines == (0 if cut > 1 else 1)


@pytest.mark.parametrize("ahead", [8, 12, 16])
@each_searcher
@pytest.mark.few(1)
def test_being_killed_between_two_verdicts_changes_nothing(searcher: Searcher, ahead: int) -> None:
    """Where most of what is built cannot run, the pool is soon smaller than a batch."""

    def half(chosen: Config) -> Surveyed:
        refused = dict.fromkeys(ORIGINAL, Status.OVER_LIMITS) if chosen["UNROLL"] > 2 else {}
        return built(chosen, refused=refused)

    settings = Settings(evals=12, ahead=ahead, seed=3)
    whole = Run(settings, searcher, lab=FakeLab(survey=half))
    whole.go()
    records = whole.journal.records
    assert len(events(whole, ev.Pruned)) > 5
    for cut in range(1, len(records) + 1):
        again = Run(settings, searcher, lab=FakeLab(survey=half), records=records[:cut])
        again.go()
        assert again.journal.records == records, f"after event {cut}"


@both
def test_a_lab_that_is_interrupted_loses_only_what_was_in_flight(ahead: int) -> None:
    settings = Settings(evals=40, ahead=ahead)
    whole = Run(settings, Random())
    whole.go()
    for lived in (0, 1, 17, 41):
        killed = Run(settings, Random(), lab=FakeLab(dies_after=lived))
        with pytest.raises(KeyboardInterrupt):
            killed.go()
        resumed = Run(settings, Random(), records=killed.journal.records)
        resumed.go()
        assert resumed.journal.records == whole.journal.records


@both
@pytest.mark.parametrize("evals", [1, 15, 16, 17, 40])
def test_the_budget_of_evaluations(evals: int, ahead: int) -> None:
    run = Run(Settings(evals=evals, ahead=ahead), Random())
    state = run.go()
    assert len(state.searched) == evals
    assert state.stopped == Stopped(f"the budget of {format_count(evals, 'evaluation')} is used up")
    assert len(run.lab.built_ones) <= BUILDS * evals


@both
def test_the_budget_of_time(ahead: int) -> None:
    run = Run(Settings(seconds=30.0, ahead=ahead), Random())
    state = run.go()
    says(state.stopped, "budget", "30 seconds", "used up")
    asked = [
        r
        for r in run.journal.records
        if isinstance(r.event, ev.Asked) and r.event.trials[0].purpose == "search"
    ]
    assert 25 <= asked[-1].at <= 31  # the last are asked when the time is almost up
    measured = [t for r in asked for t in r.event.trials if t.effort == "short"]
    assert len(state.searched) == len(measured)  # what was in flight still counts
    assert state.finalists()


@both
def test_time_goes_on_where_it_stopped(ahead: int) -> None:
    settings = Settings(seconds=30.0, ahead=ahead)
    whole = Run(settings, Random())
    whole.go()
    resumed = Run(settings, Random(), records=whole.journal.records[:25])
    resumed.go()
    assert resumed.journal.records == whole.journal.records


@both
@pytest.mark.few(2)
@pytest.mark.parametrize("width", [2, 4, 5])
def test_the_device_has_work_and_no_more_than_the_width_is_in_flight(width: int, ahead: int) -> None:
    settings = Settings(evals=4 * PER_SPARE_ALONE + 14, width=width, ahead=ahead, prune=False)
    run = Run(settings, template=LARGE)
    run.go()
    searching = [state for state in run.watcher.states if state.searching]
    sentinel = 1
    assert width <= max(len(state.in_flight) for state in searching) <= width + sentinel
    early = [len(state.in_flight) for state in searching if len(state.searched) < 2 * PER_SPARE_ALONE]
    assert max(early) <= 2 + sentinel, "as long as little is known, one waits behind the one that is measured"
    assert min(run.lab.waiting[:60]) >= 2, "asked for more before the lab runs out of work"


@both
def test_with_a_width_of_one_nothing_waits(ahead: int) -> None:
    run = Run(Settings(evals=30, width=1, ahead=ahead))
    assert len(run.go().searched) == 30
    alone = [
        n for n, trial in zip(run.lab.waiting, run.lab.evaluated, strict=True) if trial.purpose == "search"
    ]
    assert Counter(alone) == {1: 29, 2: 1}, "a sentinel waits behind one of them"


@both
def test_the_original_is_timed_again_every_so_often(ahead: int) -> None:
    state = Run(Settings(evals=80, ahead=ahead, prune=False)).go()
    measured = [trial for trial in state.asked if trial.effort != "build"]
    purposes = [trial.purpose for trial in measured if trial.purpose != "finalist"]
    places = [i for i, purpose in enumerate(purposes) if purpose == "sentinel"]
    assert SENTINEL_EVERY == 16
    assert places == [16, 33, 50, 67]
    sentinels = [trial for trial in state.asked if trial.purpose == "sentinel"]
    assert all(t.config is None and t.template == "" and t.effort == "short" for t in sentinels)


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
    raced = [outcome.trial.config for outcome in state.finalists()]
    assert len(proven) == len(set(proven)) > 1
    assert set(proven) == set(raced), "all that had a place, and those that got one of these"
    assert delivered(state).configs() == ()
    assert state.stopped is not None


def test_a_finalist_that_fails_the_long_look_is_not_verified() -> None:
    class Strict(FakeLab):
        def _outcome(self, trial: Trial, cost: Cost) -> Outcome:
            is_wrong = trial.purpose == "finalist" and trial.config == BEST
            return super()._outcome(trial, (lambda *_: Status.WRONG) if is_wrong else cost)

    run = Run(WHOLE, lab=Strict())
    state = run.go()
    assert BEST not in [trial.config for trial in run.lab.proven]
    assert delivered(state).general in (SECOND, config(128, 4, 4))


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.OK])
@both
def test_a_run_where_everything_fails_ends_like_any_other(ahead: int, status: Status) -> None:
    settings = Settings(evals=20, ahead=ahead, prune=False)
    run = Run(settings, Climber(), lab=FakeLab(lambda chosen, workload: status))
    state = run.go()
    says(state.stopped, "budget", "20 evaluations", "used up")
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


def test_a_planner_may_finish_without_a_search() -> None:
    class Done:
        def decide(self, state: State) -> ev.Decided:
            return ev.Decided("finish", "seen enough")

    state = Run(planner=Done()).go()
    assert state.stopped == Stopped("seen enough")
    assert not state.asked


class Watched(Exhaustive):
    def __init__(self) -> None:
        self.views: list[SearchView] = []

    def ask(self, view: SearchView, n: int) -> Proposal:
        self.views.append(view)
        return super().ask(view, n)


def test_a_searcher_sees_what_was_tried_and_what_is_in_flight() -> None:
    searcher = Watched()
    run = Run(Settings(evals=30), searcher)
    run.go()
    assert len({view.seed for view in searcher.views}) == len(searcher.views)
    for number, view in enumerate(searcher.views):
        assert view.budget_left == 30 - number
        assert len(view.tried) + len(view.in_flight) == number
        assert view.default == TEMPLATE.default
        assert view.pool is None
        assert view.open is view.configs
        assert view.weights == (1.0, 3.0)
        assert view.turn == view.asked == number
        for tried in view.tried:
            found = [cost(tried.config, name) for name in ORIGINAL]
            assert (tried.score is not None) == any(isinstance(value, float) for value in found)
            expected = [
                None if isinstance(value, Status) else math.log(ORIGINAL[name] / value)
                for name, value in zip(ORIGINAL, found, strict=True)
            ]
            assert list(tried.at) == pytest.approx(expected)


def test_a_searcher_sees_what_earlier_runs_found() -> None:
    prior = ev.Primed("rows=8 on another device", ((BEST, 0.5), (SECOND, None)))
    settings, searcher = Settings(evals=8), Watched()
    begun = [ev.Recorded(0, 0.0, started(settings)), ev.Recorded(1, 1.0, prior)]
    Run(settings, searcher, records=begun).go()
    assert {view.priors for view in searcher.views} == {(Prior(prior.name, prior.rows),)}


def test_a_searcher_that_gives_up_ends_the_search() -> None:
    class Lazy(Exhaustive):
        def ask(self, view: SearchView, n: int) -> Proposal:
            return super().ask(view, n) if len(view.seen) < 6 else Proposal(())

    state = Run(WHOLE, Lazy()).go()
    assert len(state.searched) == 6
    assert state.stopped == Stopped("the search proposes nothing more")


def trials(run: Run, effort: str) -> list[Trial]:
    return [t for t in run.watcher.states[-1].asked if t.effort == effort and t.purpose == "search"]


def test_the_story_of_a_run_that_builds_ahead() -> None:
    run = Run(Settings(evals=4, ahead=4, finalists=1))
    run.go()
    kinds = kinds_of(run)
    assert kinds[:11] == [
        *("Started", "Baseline", "Admitted", "Decided"),
        *("Asked", *["Surveyed"] * 4),  # nothing is measured before there is something to choose from
        *("Asked", "Asked"),  # the first, and one that waits behind it
    ]
    last = len(kinds) - 1 - kinds[::-1].index("Searched")
    assert kinds[:last].count("Measured") == 4
    assert kinds[last:] == ["Searched", "Decided", "Asked", *["Measured"] * 3, "Verified", "Stopped"]
    build, *others, _ = events(run, ev.Asked)
    assert [t.effort for t in build.trials] == ["build"] * 4
    assert build.trials[0].config == TEMPLATE.default, "the author's own guess"
    measured = [t.config for one in others for t in one.trials if t.effort == "short"]
    assert measured[0] == TEMPLATE.default
    assert set(measured) <= {t.config for one in (build, *others) for t in one.trials if t.effort == "build"}


@each_searcher
def test_only_what_is_built_is_measured_and_nothing_is_built_twice(searcher: Searcher) -> None:
    run = Run(Settings(evals=30, ahead=AHEAD), searcher)
    run.go()
    known: set[Config | None] = set()
    for record in run.journal.records:
        match record.event:
            case Surveyed(config=chosen):
                assert chosen not in known
                known.add(chosen)
            case ev.Asked(asked) if asked[0].effort == "short" and asked[0].purpose == "search":
                assert known.issuperset(t.config for t in asked)
    counts = Counter(t.config for t in trials(run, "build"))
    assert set(counts.values()) == {1}
    pruned = {e.config for e in events(run, ev.Pruned)}
    assert pruned.isdisjoint(t.config for t in trials(run, "short"))


def test_builders_have_work_while_the_device_measures_and_no_more_is_built_than_asked_for() -> None:
    run = Run(Settings(evals=40, ahead=AHEAD), Random())
    run.go()
    searching = [s for s in run.watcher.states if s.searching and s.decided]
    assert max(len(s.pool) + len(s.building) for s in searching) == AHEAD
    measured = [s for s in searching if s.searched and len(s.searched) < 20]
    assert sum(bool(s.building) for s in measured) > len(measured) / 2
    sizes = [len(e.trials) for e in events(run, ev.Asked) if e.trials[0].effort == "build"]
    assert min(sizes) >= AHEAD // 2, "an order costs the searcher thought: many at once"


def test_a_searcher_is_asked_what_to_build_of_everything_and_what_to_measure_of_what_is_built() -> None:
    searcher = Watched()
    Run(Settings(evals=20, ahead=AHEAD), searcher).go()
    builds = [view for view in searcher.views if view.pool is None]
    batches = [view for view in searcher.views if view.pool is not None]
    assert len(builds) > 1
    assert len(batches) >= 5
    for view in builds:
        assert view.budget_left is None, "the budget is one of measurements"
        assert set(view.static) <= view.seen, "what is built is not to be built again"
    for number, view in enumerate(batches):
        assert view.budget_left == 20 - number
        assert view.pool is not None
        assert view.seen.isdisjoint(view.pool)
        assert view.static.keys() >= set(view.pool)
        assert all(len(numbers) == 5 for numbers in view.static.values())


@pytest.mark.parametrize(
    ("prune", "rules"),
    # 5 of 256 × 8 do not fit; of the others with less than 8 a vector, 5 rounds are the same as 4.
    [(True, {"cannot_run": 5, "same_code": 12}), (False, {})],
)
def test_what_its_build_condemns_is_not_measured_and_reported_with_the_reason(
    prune: bool, rules: dict[str, int]
) -> None:
    run = Run(replace(WHOLE, ahead=AHEAD, prune=prune))
    state = run.go()
    assert Counter(e.rule for e in events(run, ev.Pruned)) == rules
    assert len(state.searched) == 80 - sum(rules.values())
    assert state.statuses()["over_limits"] == 5
    accounted = {o.trial.config for o in state.searched} | {p.config for p in state.pruned}
    assert accounted == set(CONFIGS)
    assert delivered(state).general == BEST


def spilling(chosen: Config) -> Surveyed:
    """The more it unrolls, the more it spills; large groups leave little room for others."""
    unroll, block = chosen["UNROLL"], chosen["BLOCK"]
    return built(chosen, spills=64 * (unroll - 1), occupancy=100 if block < 256 else 12)


def slow_where_it_spills(chosen: Config, workload: str) -> float | Status:
    return ORIGINAL[workload] * (0.5 + 0.3 * (chosen["UNROLL"] - 1) + 0.01 * chosen["VEC"])


def test_bad_kinds_are_left_out_once_several_of_them_have_been_seen() -> None:
    lab = FakeLab(slow_where_it_spills, slow_where_it_spills, spilling)
    state = Run(replace(WHOLE, ahead=AHEAD), Random(), lab=lab).go()
    assert {p.rule for p in state.pruned} == {"spills"}
    spilled = [o for o in state.searched if o.trial.config and o.trial.config["UNROLL"] > 1]
    assert len(spilled) >= 4, "witnesses"
    assert len(state.pruned) + len(state.searched) == 80
    general = delivered(state).general
    assert (general["VEC"], general["UNROLL"]) == (1, 1)


def test_where_some_builds_fail_nothing_else_is_lost() -> None:
    def fragile(chosen: Config) -> Surveyed:
        bad = chosen["UNROLL"] % 2 == 0
        return built(chosen, refused=dict.fromkeys(ORIGINAL, Status.BUILD_FAILED) if bad else None)

    for prune in (True, False):
        run = Run(replace(WHOLE, ahead=AHEAD, prune=prune), lab=FakeLab(survey=fragile))
        state = run.go()
        assert len(state.searched) == (48 if prune else 80)
        assert state.stopped == Stopped("every configuration has been tried")
        assert delivered(state).general == BEST


def unbuildable(chosen: Config) -> Surveyed:
    return built(chosen, refused=dict.fromkeys(ORIGINAL, Status.BUILD_FAILED))


def test_where_no_build_works_the_run_ends() -> None:
    state = Run(replace(WHOLE, ahead=AHEAD), lab=FakeLab(survey=unbuildable)).go()
    assert state.stopped == Stopped("every configuration has been tried")
    assert state.statuses() == {"build_failed": 80}
    assert state.searched == ()
    assert delivered(state).configs() == ()


@pytest.mark.parametrize("evals", [1, 3, 5])
def test_builds_have_a_budget_of_their_own(evals: int) -> None:
    run = Run(Settings(evals=evals, ahead=AHEAD), Random(), lab=FakeLab(survey=unbuildable))
    state = run.go()
    assert len(run.lab.built_ones) == len(state.surveyed) == BUILDS * evals < len(CONFIGS)
    assert state.searched == ()
    assert state.stopped not in (None, Stopped("every configuration has been tried"))


def test_builds_are_no_evaluations_and_no_reason_for_a_sentinel() -> None:
    run = Run(Settings(evals=16, ahead=30))
    state = run.go()
    assert len(trials(run, "build")) > 16
    assert len(state.searched) == 16
    assert len(state.sentinels) == 1


def test_a_run_that_goes_on_with_its_finals_builds_nothing_for_the_search() -> None:
    whole = Run(Settings(evals=20, ahead=AHEAD), Random())
    state = whole.go()
    assert [s for s in whole.watcher.states if s.searching][-1].building, "ordered, and never waited for"
    assert not state.building
    finish = next(r.number for r in whole.journal.records if r.event == state.decided[-1])
    for cut in (finish + 1, finish + 3, len(whole.journal.records)):
        again = Run(Settings(evals=20, ahead=AHEAD), Random(), records=whole.journal.records[:cut])
        again.go()
        assert again.journal.records == whole.journal.records
        assert not again.lab.to_build


def small_template(count: int) -> Template:
    text = TEXT.replace("[32, 64, 128, 256]", str([32 << n for n in range(count)]))
    text = text.replace("[1, 2, 4, 8]", "[1]").replace("[1, 2, 3, 4, 5]", "[1]")
    return a_template(PROBLEM, text.replace("// BLOCK = 64", "// BLOCK = 32"))


@both
@each_searcher
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.few(8)
def test_a_space_smaller_than_a_batch(count: int, searcher: Searcher, ahead: int) -> None:
    for evals in (None, 2, 100):
        run = Run(Settings(evals=evals, ahead=ahead), searcher, template=small_template(count))
        state = run.go()
        assert len(state.searched) == min(count, evals or count)
        used_up = evals is not None and evals <= count
        reason = (
            f"the budget of {evals} evaluations is used up"
            if used_up
            else "every configuration has been tried"
        )
        assert state.stopped == Stopped(reason)
        assert delivered(state).general is not None


@pytest.mark.parametrize("ahead", [1, 2, 3, 5])
def test_a_pool_smaller_than_a_batch(ahead: int) -> None:
    """Fewer than a batch are measured rather than none, whether there is no room for more or no more."""
    state = Run(replace(WHOLE, ahead=ahead)).go()
    assert len(state.searched) == 63
    assert state.stopped == Stopped("every configuration has been tried")


def test_where_almost_all_are_twins_the_few_are_measured() -> None:
    lab = FakeLab(survey=lambda chosen: built(chosen, f"{chosen['VEC']}"))
    state = Run(replace(WHOLE, ahead=AHEAD), lab=lab).go()
    assert len(state.searched) == 4
    assert len(state.pruned) == 76


class Expecting(Random):
    """Expects these gains, one each time it is asked what is to be tried, the last of them for ever."""

    def __init__(self, *gains: float | None) -> None:
        self.gains = gains
        self.asked = 0

    def ask(self, view: SearchView, n: int) -> Proposal:
        gain = self.gains[min(self.asked, len(self.gains) - 1)]
        self.asked += view.pool is None
        return Proposal(super().ask(view, n).configs, gain)


def alike(**more: Survey) -> FakeLab:
    return FakeLab(cost=lambda _chosen, workload: ORIGINAL[workload] / 2, **more)


@both
def test_a_search_that_expects_nothing_more_is_ended_and_says_why(ahead: int) -> None:
    state = Run(replace(WHOLE, ahead=ahead, prune=False), Expecting(0.0005), lab=alike()).go()
    says(state.stopped, "expected to gain 0.05%", "can see", f"{USUAL_NOISE:.2%}")
    assert LEAST <= len(state.searched) <= LEAST + 12, "no more than were in flight"
    assert state.finalists()


def test_what_cannot_run_makes_no_search_longer() -> None:
    """20 of 80 cannot: they were no evaluations, and nothing was found after them for that."""
    refused = dict.fromkeys(ORIGINAL, Status.OVER_LIMITS)
    lab = alike(survey=lambda c: built(c, str(c), refused=refused if c["VEC"] == 8 else None))
    state = Run(replace(WHOLE, ahead=AHEAD), Expecting(0.0005), lab=lab).go()
    assert state.unable
    assert LEAST <= len(state.searched) <= LEAST + 12, "no more than were in flight"


@both
def test_as_long_as_something_is_found_nobody_is_believed(ahead: int) -> None:
    class Rising(Exhaustive):
        """Goes from the worst to the best, and expects nothing of it."""

        def ask(self, view: SearchView, n: int) -> Proposal:
            return Proposal(super().ask(view, n).configs, 0.0)

    order = {chosen: place for place, chosen in enumerate(CONFIGS)}
    better = FakeLab(cost=lambda chosen, workload: ORIGINAL[workload] / (2 + order[chosen] / 10))
    assert len(Run(replace(WHOLE, ahead=ahead, prune=False), Rising(), lab=better).go().searched) == 80


def test_a_small_space_is_tried_whole() -> None:
    few = a_template(PROBLEM, TEXT.replace("[1, 2, 3, 4, 5]", "[1, 2, 3, 4]"))
    assert len(Run(WHOLE, Expecting(0.0), lab=alike(), template=few).go().searched) == LITTLE == 64


@both
@pytest.mark.parametrize("gains", [(None,), (0.0, None), (USUAL_NOISE / 2,), (0.5,)])
def test_one_that_has_no_idea_or_some_hope_goes_on(gains: tuple[float | None, ...], ahead: int) -> None:
    state = Run(replace(WHOLE, ahead=ahead, prune=False), Expecting(*gains)).go()
    assert state.stopped == Stopped("every configuration has been tried")
    assert len(state.searched) == 80


@pytest.mark.parametrize("third", [0.5, None])
def test_one_batch_without_hope_convinces_nobody(third: float | None) -> None:
    assert CONVINCED == 3
    assert len(Run(WHOLE, Expecting(*[0.0, 0.0, third] * 27), lab=alike()).go().searched) == 80


def test_the_noisier_the_measurements_the_sooner_it_is_enough() -> None:
    class Noisy(FakeLab):
        def collect(self) -> Outcome:
            found = super().collect()
            factor = 1.2 if found.trial.purpose == "sentinel" and found.trial.id % 2 else 1.0
            return scaled(found, factor)

    def scaled(found: Outcome, factor: float) -> Outcome:
        timed = [(r, r.timing) for r in found.results]
        times = [replace(t, samples=tuple(s * factor for s in t.samples)) if t else None for _, t in timed]
        results = (replace(r, timing=time) for (r, _), time in zip(timed, times, strict=True))
        return replace(found, results=tuple(results))

    hopeful = Expecting(0.02)
    assert len(Run(WHOLE, hopeful).go().searched) == 80
    state = Run(WHOLE, hopeful, lab=Noisy()).go()
    assert len(state.searched) < 80
    says(state.stopped, "expected to gain 2.00%", "can see", "18.23%")


def test_a_given_kernel_without_parameters_is_measured_and_raced() -> None:
    text = '// /// tunesmith\n// [launch]\n// grid = ["rows"]\n// block = ["64"]\n// ///\nint x;\n'
    alone = a_template(PROBLEM, text)
    lab = FakeLab(lambda _config, workload: ORIGINAL[workload] / 2)
    lab.verdict = lab.cost
    for ahead in (0, AHEAD):
        run = Run(Settings(ahead=ahead), lab=replace(lab), template=alone)
        state = run.go()
        says(state.stopped, "no parameters", "nothing to search")
        assert [t.purpose for t in state.asked] == ["search", "sentinel", "finalist"]
        assert delivered(state).general == Config(())
