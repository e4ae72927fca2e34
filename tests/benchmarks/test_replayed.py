"""A search over a recorded run: the real loop, looked-up times, and an end when it is close enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from benchmarks.replayed import MemoryJournal, NoTexts, Reached, RecordedLab, Run, Silence
from tests.core.run.test_loop import CONFIGS, ORIGINAL, PROBLEM, cost
from tests.core.run.test_steered_loop import ANSWERED, diagnosed
from tests.samples import DEVICE, baseline, built, log_of, outcome, started, state_of
from tunesmith.lab.profile import Looked, ProfileSubject
from tunesmith.problem.plan import Status
from tunesmith.profiles.facts import Ceilings, Profile
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Event, Profiled, Settings, Steered
from tunesmith.run.loop import Loop
from tunesmith.run.scores import score_configs
from tunesmith.run.stages import World
from tunesmith.run.talk import ModelDialogue
from tunesmith.search import load_searcher
from tunesmith.session.roles import planner_and_author
from tunesmith.space.configset import Config

WITHIN = -math.log(0.97)


def a_run() -> Run:
    events: list[Event | Any] = []
    for number, chosen in enumerate(CONFIGS):
        found = {name: cost(chosen, name) for name in ORIGINAL}
        events += [built(chosen), outcome(number, chosen, found)]
    events.append(outcome(999, None, ORIGINAL, "sentinel"))
    state = state_of(*events, original=ORIGINAL)
    tried = {t.config: t for t in score_configs(PROBLEM, state)}
    return Run("it", PROBLEM, ANSWERED, state, Ceilings(), tried)


RUN = a_run()


@dataclass
class Diagnosing:
    """A profiler that has seen it all, and counts what it is asked."""

    asked: list[tuple[Config | None, str, float]] = field(default_factory=list)

    def known(self, subject: ProfileSubject, workload: Any, seconds: float) -> Looked:
        self.asked.append((subject.config, workload.name, seconds))
        return Looked(Profile("k", workload.name, seconds=seconds))


def search(
    steer: bool, seed: int, within: float = WITHIN
) -> tuple[RecordedLab, MemoryJournal, Reached | None]:
    settings = Settings("random", seed=seed, steer=steer)
    known = {
        (chosen, name): Profiled(chosen, name, diagnosed(chosen, name))
        for chosen in (None, *CONFIGS)
        for name in ORIGINAL
    }
    lab = RecordedLab(RUN, Diagnosing(), known, within)  # type: ignore[arg-type]
    journal = MemoryJournal(RUN, settings)
    templates = Templates(PROBLEM, DEVICE, ANSWERED, NoTexts())
    talk = ModelDialogue(PROBLEM, templates, *planner_and_author(PROBLEM, templates))
    world = World(PROBLEM, templates, lab, load_searcher(settings.search), talk, heeds_words=False)
    loop = Loop(world, log_of(journal, Silence()))
    try:
        loop.run()
    except Reached as why:
        return lab, journal, why
    return lab, journal, None


def test_a_search_ends_with_the_first_that_is_close_enough() -> None:
    lab, _, why = search(steer=False, seed=1)
    assert why.args == ()
    close = [RUN.close(chosen, WITHIN) for chosen in lab.asked]
    assert close == [False] * (len(close) - 1) + [True]


def test_a_search_that_never_comes_close_ends_by_itself() -> None:
    lab, _, why = search(steer=False, seed=1, within=-1.0)
    assert why.args
    assert len(lab.asked) == len(CONFIGS)


def test_steering_where_the_best_is_needs_fewer() -> None:
    """The focus is VEC == 4, where the best lies."""
    counts = {steer: [len(search(steer, seed)[0].asked) for seed in range(12)] for steer in (False, True)}
    assert sum(counts[True]) < 0.7 * sum(counts[False])
    _, journal, _ = search(steer=True, seed=0)
    moves = [r.event for r in journal.records if isinstance(r.event, Steered)]
    assert moves[0].focus.texts == ("VEC == 4",)


def test_profiles_are_made_once_with_the_recorded_time() -> None:
    profiler = Diagnosing()
    lab = RecordedLab(RUN, profiler, {}, WITHIN)  # type: ignore[arg-type]
    chosen = next(c for c in CONFIGS if not isinstance(cost(c, "small"), Status))
    for _ in range(2):
        assert lab.profile(chosen, "small", 1.0).config == chosen
        assert lab.profile(None, "wide", 1.0).diagnosis is not None
    assert profiler.asked == [
        (chosen, "small", pytest.approx(cost(chosen, "small"))),
        (None, "wide", pytest.approx(ORIGINAL["wide"])),
    ]


def test_the_best_is_the_best_of_all() -> None:
    assert RUN.best == max(t.score for t in RUN.tried.values() if t.score is not None)
    assert sum(RUN.close(chosen, 0.0) for chosen in RUN.tried) == 1
    assert replace(RUN, state=state_of(baseline(ORIGINAL), original=ORIGINAL)).device == started().device
