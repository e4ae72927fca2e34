"""Rounds with diagnoses: the best so far is looked at between them, and each search is steered by itself."""

from __future__ import annotations

import pytest

from tests.core.run.test_loop import PROBLEM, FakeLab, Run, both, kinds_of
from tests.core.run.test_rounds import a_run, cost, survey
from tests.core.run.test_steered_loop import diagnosed, steered
from tests.drafts import a_draft
from tunesmith.run.events import Profiled, Settings
from tunesmith.run.prior import best_config, diagnoses_in_view
from tunesmith.search.simple import Focused, Random

ANSWERS = '// [answers]\n// wide_access = "VEC == 4"\n// unroll = "UNROLL >= 30"\n// [launch]'
WIDE = {"VEC": [1, 2, 4], "UNROLL": list(range(1, 60))}
TEXTS = {
    "wide": a_draft(WIDE).replace("// [launch]", ANSWERS),
    "keep": a_draft({**WIDE, "KEEP": [0, 1]}).replace("// [launch]", ANSWERS),
}


def go(ahead: int = 0, **more: object) -> Run:
    settings = Settings(evals=80, steer=True, seed=4, ahead=ahead)
    lab = FakeLab(cost, cost, survey, no_profiles="", diagnosis=diagnosed)
    return a_run(TEXTS, settings, lab, searcher=Focused(Random()), **more)


def test_the_original_is_looked_at_before_anything_is_decided_and_the_best_between_rounds() -> None:
    run = go()
    state = run.go()
    kinds = kinds_of(run)
    assert kinds[:6] == ["Started", "Baseline", "Profiled", "Profiled", "Decided", "Drafted"]
    decisions = [s for s in run.watcher.states if s.under_way and s.under_way.decision == "refactor"]
    for known in decisions:
        if known.draft is None and not known.in_flight:
            subject = best_config(PROBLEM, known)
            assert {p.workload for p in known.profiled if p.config == subject} == {"small", "wide"}
    assert len({(p.config, p.workload) for p in state.profiled}) == len(state.profiled)
    best = best_config(PROBLEM, state)
    assert best.candidate == "2"
    assert set(diagnoses_in_view(PROBLEM, state)) == {"small", "wide"}


def test_each_search_begins_with_a_focus_of_its_own() -> None:
    run = go()
    state = run.go()
    firsts = []
    for place, record in enumerate(run.journal.records):
        if kinds_of(run)[place] == "Decided" and record.event.decision == "search":
            after = [r.event for r in run.journal.records[place:] if r.event in steered(run)]
            firsts.append(after[0])
    assert len(firsts) >= 2
    for first in firsts[:2]:
        assert first.focus.texts == ("VEC == 4",)
    assert firsts[1].focus.of == 2 * firsts[0].focus.of
    assert state.stopped is not None


@both
@pytest.mark.long
def test_killed_after_any_event_it_goes_on_as_if_it_had_not_been(ahead: int) -> None:
    whole = go(ahead)
    whole.go()
    records = whole.journal.records
    for cut in range(1, len(records) + 1, 11):
        again = go(ahead, records=list(records[:cut]), kept=whole.texts)
        again.go()
        assert again.journal.records == records, f"after event {cut}"
        left = sum(isinstance(r.event, Profiled) for r in records[cut:])
        assert len(again.lab.profiled) == left, "nothing is looked at twice"
