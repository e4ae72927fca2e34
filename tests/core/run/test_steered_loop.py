"""The loop with diagnoses: what is looked at and when, that it steers, is undone, survives being killed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.run.test_loop import (
    BEST,
    ORIGINAL,
    PROBLEM,
    TEMPLATE,
    Climber,
    FakeLab,
    Run,
    cost,
    kinds_of,
)
from tests.samples import a_template
from tests.thoroughness import THOROUGH
from tests.wording import says
from tunesmith.problem.plan import Status
from tunesmith.problem.template import Remedy
from tunesmith.profiles.facts import Bound, Diagnosis, Finding, Kind
from tunesmith.run.events import Asked, Measured, Profiled, Settings, Steered
from tunesmith.run.prior import NO_ANSWERS
from tunesmith.run.report import build_report
from tunesmith.run.state import State, fold_records
from tunesmith.search.default import Default
from tunesmith.search.simple import Focused, Random
from tunesmith.space.configset import Config

ANSWERED = a_template(
    PROBLEM,
    TEMPLATE.source.replace(
        "// [launch]", '// [answers]\n// wide_access = "VEC == 4"\n// unroll = "UNROLL <= 2"\n// [launch]'
    ),
)
STEER = Settings(evals=60, steer=True, seed=3)


def finding(kind: Kind, gain: float, *remedies: Remedy) -> Finding:
    return Finding(kind, gain, 0.5, ("8 of 8 are narrow",), remedies, "static", Bound.LATENCY)


NARROW = finding(Kind.NARROW_ACCESS, 0.6, Remedy.WIDE_ACCESS)
SLOW = finding(Kind.LATENCY, 0.6, Remedy.UNROLL)


def diagnosed(chosen: Config | None, workload: str) -> Diagnosis:
    """The original loads narrowly; whatever is better waits for its loads."""
    found = NARROW if chosen is None else SLOW
    return Diagnosis(
        found.bound, "so it is", 0.5, (found,), distance=4.0 if chosen is None else 1.2, floor=2.5
    )


def a_lab(**more: object) -> FakeLab:
    return FakeLab(no_profiles="", diagnosis=diagnosed, **more)


def run_of(settings: Settings = STEER, lab: FakeLab | None = None, **more: object) -> Run:
    more = {"searcher": Focused(Random()), "template": ANSWERED, **more}
    return Run(settings, lab=lab or a_lab(), **more)


def steered(run: Run) -> list[Steered]:
    return [r.event for r in run.journal.records if isinstance(r.event, Steered)]


def asked_first(state: State, count: int) -> list[Config]:
    found = [t.config for t in state.asked if t.purpose == "search" and t.config is not None]
    return found[:count]


def test_the_original_is_looked_at_before_anything_is_tried() -> None:
    run = run_of()
    state = run.go()
    assert kinds_of(run)[:8] == [
        *("Started", "Baseline", "Admitted", "Decided"),
        *("Profiled", "Profiled", "Steered", "Asked"),
    ]
    assert run.lab.profiled[:2] == [(None, "small", 10.0), (None, "wide", 20.0)]
    first = steered(run)[0]
    assert (first.focus.texts, first.focus.inside, first.focus.of) == (("VEC == 4",), 20, 80)
    says(first.reason, "original", "narrow_access", "8 of 8", "every workload", "wide_access")
    inside = [c["VEC"] == 4 for c in asked_first(state, 17)[1:]]
    assert sum(inside) == 14


def test_the_best_so_far_is_looked_at_once_and_may_move_the_focus() -> None:
    run = run_of()
    run.go()
    subjects = [chosen for chosen, _, _ in run.lab.profiled]
    later = next(i for i, chosen in enumerate(subjects) if chosen is not None)
    assert later == 2
    assert subjects[2] == subjects[3] is not None
    kinds = kinds_of(run)
    at = [i for i, kind in enumerate(kinds) if kind == "Profiled"][2]
    assert kinds[:at].count("Measured") >= STEER.evals / 3
    by_diagnosis = [s for s in steered(run) if s.profiled == 4]
    assert len(by_diagnosis) == 1
    assert "the best so far" in by_diagnosis[0].reason


def test_what_is_under_way_is_measured_before_anything_is_looked_at() -> None:
    """The lab of these tests refuses to profile while anything waits in its queue."""
    run = run_of(replace(STEER, width=16))
    run.go()
    assert len(run.lab.profiled) >= 4


@pytest.mark.parametrize("ahead", [0, 12])
@pytest.mark.parametrize("inner", [Random(), Climber(), Default()], ids=lambda s: s.name)
@pytest.mark.few(1)
def test_killed_after_any_event_it_goes_on_as_if_it_had_not_been(inner: object, ahead: int) -> None:
    settings = Settings(evals=30, ahead=ahead, steer=True, seed=5)
    more = {"searcher": Focused(inner)}
    whole = run_of(settings, **more)
    whole.go()
    records = whole.journal.records
    assert len(steered(whole)) >= 2
    every = 1 if getattr(inner, "name", "") == "random" and THOROUGH else 7
    for cut in range(1, len(records) + 1, every):
        again = run_of(settings, records=records[:cut], **more)
        again.go()
        assert again.journal.records == records, f"after event {cut}"
        left = sum(isinstance(r.event, Profiled) for r in records[cut:])
        assert len(again.lab.profiled) == left, "nothing is looked at twice"


def misled(chosen: Config, workload: str) -> float | Status:
    """What the diagnosis points at is slow."""
    return cost(chosen, workload) if chosen["VEC"] != 4 else ORIGINAL[workload]


def test_a_wrong_focus_is_undone_with_the_reason_and_not_taken_up_again() -> None:
    run = run_of(lab=a_lab(cost=misled, verdict=misled))
    state = run.go()
    undone = [s for s in steered(run) if "wide_access" in s.dropped]
    assert len(undone) == 1
    assert "without VEC == 4, is" in undone[0].reason or "no better than outside" in undone[0].reason
    after = steered(run)[steered(run).index(undone[0]) :]
    assert all("VEC == 4" not in (s.focus.texts if s.focus else ()) for s in after)
    found = {o.trial.config for o in state.searched}
    assert len(found) == 60
    best = state.verified[0].outcome.trial.config
    assert best["VEC"] != 4


def test_when_a_focus_is_undone_the_next_builds_are_asked_for_everywhere() -> None:
    """What was built for it stays in the pool, and does not keep others out."""
    ahead = 16
    run = run_of(replace(STEER, ahead=ahead), lab=a_lab(cost=misled, verdict=misled))
    run.go()
    records = run.journal.records
    undone = next(r.number for r in records if isinstance(r.event, Steered) and r.event.dropped)
    before = fold_records(records[: undone + 1])
    focus = before.prior_changes[-2].event.focus
    waiting = [s.config for s in before.pool] + [t.config for t in before.building]
    assert len(waiting) > ahead // 2, "else builds would have been asked for anyway"
    following = [r.event for r in records[undone + 1 :] if isinstance(r.event, Asked)]
    first_builds = next(i for i, e in enumerate(following) if e.trials[0].effort == "build")
    assert first_builds <= 1, "after one batch at most, not when half of the pool has been measured"
    asked = [t.config for t in following[first_builds].trials]
    assert len(asked) == ahead
    assert any(not focus.holds(c) for c in asked if c is not None)


def test_a_second_look_that_changes_nothing_is_reported_as_such() -> None:
    lab = FakeLab(no_profiles="", diagnosis=lambda _config, workload: diagnosed(None, workload))
    run = run_of(replace(STEER, evals=48), lab=lab)  # looks again when part of the focus is still open
    state = run.go()
    unmoved = [c.event for c in state.prior_changes if not c.moved and c.event.focus]
    assert [s.reason for s in unmoved if "nothing more that the template answers" in s.reason]
    report = build_report(PROBLEM, state, template_of=lambda _config: ANSWERED)
    assert [s.moved for s in report.steering] == [c.moved for c in state.prior_changes]


def test_without_leave_nothing_is_looked_at() -> None:
    run = run_of(replace(STEER, steer=False))
    run.go()
    assert (run.lab.profiled, steered(run)) == ([], [])
    assert run.watcher.notes[0].startswith("verifying")


def test_a_lab_that_can_profile_nothing_is_reported_once() -> None:
    run = run_of(lab=FakeLab())
    state = run.go()
    (note,) = [note for note in run.watcher.notes if "no prior" in note]
    says(note, "nothing to profile", "in memory")
    assert (state.profiled, state.prior_changes) == ((), ())
    unsteered = Run(replace(STEER, steer=False), searcher=Focused(Random()), template=ANSWERED)
    assert [o.trial.config for o in unsteered.go().searched] == [o.trial.config for o in state.searched]


def test_a_template_without_answers_is_profiled_and_not_steered() -> None:
    run = run_of(template=TEMPLATE)
    state = run.go()
    assert [s.reason for s in steered(run)][:1] == [NO_ANSWERS]
    assert state.focus is None


def test_to_have_looked_changes_nothing_where_nothing_follows() -> None:
    looked = run_of(template=TEMPLATE).go()
    unlooked = run_of(replace(STEER, steer=False), template=TEMPLATE).go()
    assert len(looked.profiled) >= 2
    assert [t.config for t in looked.asked] == [t.config for t in unlooked.asked]


def test_a_profile_that_fails_is_a_note_and_the_run_goes_on() -> None:
    lab = FakeLab(no_profiles="", diagnosis=lambda _config, _workload: None)
    run = run_of(lab=lab)
    state = run.go()
    assert state.stopped is not None
    assert "the original could not be profiled" in steered(run)[0].reason
    assert steered(run)[0].focus is None


def test_a_journal_from_before_there_was_steering_goes_on_without_it() -> None:
    old = Run(Settings(evals=20), searcher=Focused(Random()), template=ANSWERED)
    old.go()
    begun = [r for r in old.journal.records if not isinstance(r.event, Measured)][:5]
    run = run_of(STEER, records=old.journal.records[: begun[-1].number + 1])
    run.journal.records[0] = replace(
        run.journal.records[0], event=replace(run.journal.records[0].event, settings=STEER)
    )
    state = run.go()
    assert state.profiled == (), "something had been tried already"


def test_the_report_tells_bounds_before_and_after_and_every_step() -> None:
    run = run_of()
    state = run.go()
    report = build_report(PROBLEM, state, template_of=lambda _config: ANSWERED)
    assert [(b.workload, b.bound, b.distance) for b in report.bounds] == [
        ("small", "latency", 4.0),
        ("wide", "latency", 4.0),
    ]
    assert [w.config for w in report.workloads] == [BEST.as_dict()] * 2
    assert [b.tuned_distance for b in report.bounds] == [w.tuned_us * 1e-6 / 2.5 for w in report.workloads]
    assert report.steering[0].focus == "VEC == 4"
    assert (report.steering[0].after, report.steering[0].inside) == (0, 20)
    assert [s.reason for s in report.steering] == [s.reason for s in steered(run)]
    assert (BEST, "small") in {(chosen, name) for chosen, name, _ in run.lab.profiled}
