"""Several templates of a round: asked for together, judged in their order, searched by successive halving."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from tests.drafts import a_draft
from tests.run.test_loop import PROBLEM, FakeLab, delivered, events, kinds_of
from tests.run.test_rounds import WIDE, cost, survey
from tests.run.test_talking import TalkingRun, a_run, model_of, said
from tests.talkers import Said, Scripted, file, plan, plans
from tests.wording import says
from tunesmith.deliver.display import event_line
from tunesmith.deliver.report import report_markdown
from tunesmith.errors import WaitingForModel
from tunesmith.problem.plan import Status
from tunesmith.run.candidates import Templates
from tunesmith.run.dialogue import NoReply, Pending, Reply, Request
from tunesmith.run.events import (
    Asked,
    Decided,
    Declined,
    Drafted,
    Event,
    Measured,
    Pruned,
    Recorded,
    Rejected,
    Replied,
    Requested,
    Settings,
    Stopped,
    Unanswered,
)
from tunesmith.run.halving import rungs
from tunesmith.run.plausible import fault_of
from tunesmith.run.report import build_report
from tunesmith.run.rounds import round_reports, rounds
from tunesmith.run.state import State, apply, fold
from tunesmith.space.params import Config

MANY = list(range(1, 80))
NARROW = a_draft({"VEC": [1], "UNROLL": MANY})
MIDDLE = a_draft({"VEC": [2], "UNROLL": MANY})
BROAD = a_draft({"VEC": [4], "UNROLL": MANY})
KEPT = a_draft({"VEC": [4], "UNROLL": MANY, "KEEP": [1]})
THREE = Settings(evals=160, rounds=2, drafts=3)

# The third draft is no template at first; the second proves wrong, and its mended text is right. The second
# round has two plans, of which nobody writes the first.
STORY: dict[int, Sequence[Said]] = {
    1: [plans("Narrow.", "Middle.", "Broad.")],
    2: [NoReply("busy", wait=3.0), file(NARROW)],
    3: [file(a_draft({"FAST": [7], "UNROLL": MANY}))],
    4: ["I would rather talk about it."],
    5: [file(BROAD)],
    6: [file(MIDDLE)],
    7: [plans("Split.", "Keep the row.")],
    8: [NoReply("gone", lasts=True)],
    9: [file(KEPT)],
}


def wrong_where_fast(chosen: Config, workload: str) -> float | Status:
    return Status.WRONG if chosen.as_dict().get("FAST") == 7 else cost(chosen, workload)


def a_lab() -> FakeLab:
    return FakeLab(wrong_where_fast, wrong_where_fast, survey)


def told(settings: Settings = THREE, **more: object) -> TalkingRun:
    return a_run(STORY, settings=settings, lab=a_lab(), **more)  # type: ignore[arg-type]


def decisions(run: TalkingRun, kind: str) -> list[Decided]:
    return [e for e in events(run, Decided) if isinstance(e, Decided) and e.decision == kind]


# -- a whole run ---------------------------------------------------------------------------------------------


def test_the_order_in_which_several_are_asked_for_written_and_judged() -> None:
    run = told()
    state = run.go()
    asked = [e.request for e in events(run, Requested) if isinstance(e, Requested)]
    assert [(r.number, r.role, r.branch) for r in asked] == [
        (1, "planner", 0),
        *((2, "author", 0), (3, "author", 1), (4, "author", 2)),
        (5, "author", 2),  # what cannot be read goes back before the gate looks at any
        (6, "author", 1),
        (7, "planner", 0),
        *((8, "author", 0), (9, "author", 1)),
    ]
    kinds = [k for k in kinds_of(run) if k in ("Requested", "Replied", "Unanswered", "Drafted", "Rejected")]
    assert kinds[2:14] == [
        *("Requested", "Requested", "Requested"),
        *("Unanswered", "Replied", "Replied", "Replied"),
        *("Drafted", "Drafted", "Requested", "Replied", "Drafted"),
    ]
    assert [(c.id, c.branch, c.parent, c.status) for c in state.candidates] == [
        ("1", 0, "", "searched"),
        ("2", 1, "", "rejected"),
        ("3", 2, "", "searched"),
        ("4", 1, "2", "searched"),
        ("5", 1, "3", "searched"),
    ]
    assert delivered(state).general is not None
    assert delivered(state).general.candidate == "5"  # type: ignore[union-attr]
    assert run.pauses == [3.0]


def test_the_better_half_goes_on_with_what_is_left_of_the_round() -> None:
    run = told()
    state = run.go()
    first = [d for d in decisions(run, "search") if d.candidate in "134"]
    # Half of 160 for the round, over three rungs: 8 evaluations each, 13 each of two, and the rest.
    assert [(d.candidate, d.evals) for d in first] == [
        *(("1", 8), ("4", 8), ("3", 8)),
        *(("3", 13), ("4", 13)),
        ("3", 30),
    ]
    spent = sum(state.asked.count(("search", c)) for c in "134")
    assert spent == 80
    (alone,) = [d for d in decisions(run, "search") if d.candidate == "5"]
    assert alone.evals == 80, "the last round has all that is left"


@pytest.mark.parametrize(
    ("count", "evals", "found"),
    [
        (1, 100, (1,)),
        (2, 100, (2, 1)),
        (3, 100, (3, 2, 1)),
        (3, 60, (3, 1)),
        (4, 1000, (4, 2, 1)),
        (5, None, (5, 3, 2, 1)),
        (8, 100, (8, 1)),
    ],
)
def test_rungs(count: int, evals: int | None, found: tuple[int, ...]) -> None:
    assert rungs(count, evals) == found


def test_without_a_budget_each_is_searched_to_its_end() -> None:
    run = told(replace(THREE, evals=None))
    run.go()
    assert [(d.candidate, d.evals) for d in decisions(run, "search")] == [
        *(("1", None), ("4", None), ("3", None)),
        ("5", None),
    ]


def test_seconds_are_shared_alike() -> None:
    run = told(replace(THREE, evals=None, seconds=1e6))
    run.go()
    found = [(d.candidate, d.seconds) for d in decisions(run, "search") if d.candidate in "134"]
    assert [own for own, _ in found[:3]] == ["1", "4", "3"]
    assert found[0][1] == pytest.approx(5e5 / 9, rel=0.01)


def test_what_the_others_showed_is_told_to_the_next_round() -> None:
    run = told()
    state = run.go()
    later = said(run, 8)  # seven requests and an attempt that failed
    for line in ("Draft 1 of 3, side by side:", "What to change: Narrow.", "What to change: Broad."):
        assert line in later.splitlines()
    says(later, "Result after 10 evaluations: left behind: 8.90×, template 3 of the same round has 17.80×")
    says(later, "Result after 53 evaluations: kept: 17.80×")
    says(later, "up to 3 templates", "side by side")
    assert '"plans"' in later
    first, second = rounds(PROBLEM, state)
    assert [len(b.drafts) for b in first.branches] == [1, 2, 1]
    assert first.last is not None
    assert first.last.id == "3"
    assert first.tried == sum(b.tried for b in first.branches)
    assert second.branches[0].declined == "the author did not answer: gone"
    report, _ = round_reports(PROBLEM, state)
    says(report.branches[0].verdict, "left behind", "template 3 of the same round has")
    assert [b.kept for b in report.branches] == [False, False, True]
    assert report.has("4")
    assert not report.has("5")


def test_what_an_author_is_told_of_the_others() -> None:
    run = told()
    run.go()
    second = said(run, 4)  # the plan, the first author twice
    says(second, "What to change: Middle.")
    says(second, "Draft 2 of 3", "side by side")
    says(second, "another goes by: Narrow.")
    says(second, "another goes by: Broad.")
    says(second, "3 templates share 80 evaluations", "better half goes on")
    alone = a_run({1: [plan()], 2: [file(a_draft(WIDE))], 3: [plan("stop")]})
    alone.go()
    assert "side by side" not in said(alone, 1) + said(alone, 2)


# -- plans ---------------------------------------------------------------------------------------------------


def test_too_many_plans_go_back_and_fewer_are_fine() -> None:
    script = {1: [plans("a", "b", "c")], 2: [plans("a")], 3: [file(a_draft(WIDE))], 4: [plan("stop")]}
    run = a_run(script, settings=Settings(evals=60, rounds=4, drafts=2))
    state = run.go()
    says(said(run, 2), "`plans` has 3 plans", "room for 2")
    assert [c.status for c in state.candidates] == ["searched"]


def test_one_plan_beside_the_list_is_one_plan() -> None:
    run = a_run({1: [plan()], 2: [file(a_draft(WIDE))], 3: [plan("stop")]}, settings=replace(THREE, drafts=2))
    state = run.go()
    assert [len(d.plans) for d in decisions(run, "refactor")] == [1]
    assert [c.status for c in state.candidates] == ["searched"]


def test_plans_by_moves_and_in_words_go_together() -> None:
    both = [{"why": "a", "moves": ["wide"]}, {"why": "b", "what": "Keep the row."}]
    first = json.dumps({"decision": "refactor", "why": "two ways", "plans": both})
    run = a_run({1: [first], 2: [file(KEPT)], 3: [plan("stop")]}, settings=replace(THREE, drafts=2))
    state = run.go()
    drafted = [e for e in events(run, Drafted) if isinstance(e, Drafted)]
    assert [(d.candidate, d.branch, d.author) for d in drafted] == [("1", 0, ""), ("2", 1, "scripted")]
    assert [c.status for c in state.candidates] == ["searched", "searched"]
    unknown = json.dumps({"decision": "refactor", "why": "x", "plans": [{"why": "a", "moves": ["split"]}]})
    run = a_run({1: [unknown], 2: [plan("stop")]}, settings=replace(THREE, drafts=2))
    run.go()
    says(said(run, 2), "'split'", "not apply")


def test_where_the_expert_plans_each_draft_is_a_try_at_its_plan() -> None:
    run = a_run({1: [file(NARROW)], 2: [file(BROAD)]}, ("author",), replace(THREE, drafts=2))
    state = run.go()
    says(said(run, 2), "1 other by this plan", "way of your own")
    assert [c.branch for c in state.candidates] == [0, 1]
    assert delivered(state).general is not None


def test_two_that_are_the_same_are_one() -> None:
    run = a_run({1: [file(BROAD)], 2: [file(BROAD)]}, ("author",), replace(THREE, drafts=2))
    state = run.go()
    (rejected,) = events(run, Rejected)
    assert isinstance(rejected, Rejected)
    assert (rejected.candidate, rejected.same_as, rejected.again) == ("2", "1", False)
    assert [c.status for c in state.candidates] == ["searched", "rejected"]


def test_money_that_ends_between_two_attempts_closes_the_branches_that_need_more() -> None:
    run = told(replace(THREE, dollars=1.0))
    state = run.go()
    declined = [e for e in events(run, Declined) if isinstance(e, Declined)]
    assert [(d.branch, d.reason) for d in declined] == [
        (2, "the budget of $1 is used up"),
        (1, "the budget of $1 is used up"),
    ]
    assert state.stopped == Stopped("the budget of $1 is used up")


# -- side by side --------------------------------------------------------------------------------------------


@dataclass
class Meeting(Scripted):
    """Answers authors only when all of a wave have been asked, the last one first."""

    at_once: bool = False
    together: int = 3
    gate: threading.Condition = field(default_factory=threading.Condition)
    here: list[int] = field(default_factory=list)

    def reply(self, request: Request) -> Reply | Pending | NoReply:
        if request.role == "author":
            with self.gate:
                self.here.append(request.number)
                self.gate.notify_all()
                assert self.gate.wait_for(lambda: len(self.here) >= self.together, timeout=20)
                later = {n for n in self.here if n > request.number}
                self.gate.wait_for(lambda: later <= set(self.tried), timeout=20)
                found = super().reply(request)
                self.gate.notify_all()
                return found
        return super().reply(request)


def test_hosted_models_are_asked_at_the_same_time_and_the_order_of_replies_changes_nothing() -> None:
    script: Mapping[int, Sequence[Said]] = {
        1: [plans("Narrow.", "Middle.", "Broad.")],
        2: [file(NARROW)],
        3: [file(MIDDLE)],
        4: [file(BROAD)],
        5: [plan("stop")],
    }
    one = a_run(script, settings=THREE)
    other = a_run(script, settings=THREE)
    other.models = dict.fromkeys(other.models, Meeting(script))
    first, second = one.go(), other.go()
    replies = [e.number for e in events(other, Replied) if isinstance(e, Replied)]
    assert sorted(replies) == [1, 2, 3, 4, 5]
    assert replies[1:4] == [4, 3, 2], "the last was the first to answer"
    strip = {"events", "elapsed"}
    for name in State.__dataclass_fields__:
        if name not in strip:
            assert getattr(first, name) == getattr(second, name), name


def test_what_is_missing_is_named_all_at_once_and_replies_come_in_any_order() -> None:
    script: dict[int, Sequence[Said]] = dict(STORY)
    script |= {2: [Pending("box/2")], 3: [file(MIDDLE)], 4: [Pending("box/4", "there is 4.md")]}
    run = a_run(script, settings=THREE)
    with pytest.raises(WaitingForModel) as caught:
        run.go()
    says(str(caught.value), "request 2 is missing", "box/2", "request 4 is missing", "box/4; there is 4.md")
    assert caught.value.awaits == "box/2"
    assert kinds_of(run)[-4:] == ["Requested", "Requested", "Requested", "Replied"]
    assert [e.request.number for e in fold(run.journal.records).open_requests] == [2, 4]


# -- several models ------------------------------------------------------------------------------------------


def test_each_draft_has_its_own_model() -> None:
    class TwoAuthors(TalkingRun):
        def talk(self, templates):  # type: ignore[no-untyped-def]
            talk = super().talk(templates)
            talk.conversation.authors = (self.models["author"], second)
            return replace(talk, writer=replace(talk.writer, others=("scripted", "second")))

    second = Scripted({3: [file(BROAD)]}, "second")
    script = {
        1: [plans("Narrow.", "Broad.", "Middle.")],
        2: [file(NARROW)],
        4: [file(MIDDLE)],
        5: [plan("stop")],
    }
    run = a_run(script, settings=THREE, kind=TwoAuthors)
    run.go()
    assert [r.number for r in second.asked] == [3]
    drafted = [e for e in events(run, Drafted) if isinstance(e, Drafted)]
    assert [d.author for d in drafted] == ["scripted", "second", "scripted"]


# -- killed, and orders that cannot have been ----------------------------------------------------------------


SEARCHING = (Asked, Measured, Pruned)


@pytest.mark.parametrize("wholly", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.long
def test_a_run_with_several_drafts_killed_after_any_event_goes_on_and_asks_nothing_twice(
    wholly: bool,
) -> None:
    small = replace(THREE, evals=60)
    whole = told(small)
    state, records = whole.go(), whole.journal.records
    assert {"Unanswered", "Declined", "Rejected"} <= set(kinds_of(whole))
    cuts = [r.number + 1 for r in records if wholly or not isinstance(r.event, SEARCHING)]
    assert len(cuts) > 30
    for cut in cuts:
        again = told(small, records=list(records[:cut]), kept=whole.texts)
        assert again.go() == state
        assert again.journal.records == records, f"after event {cut}"
        answered = sum(isinstance(r.event, (Replied, Unanswered)) for r in records[:cut])
        assert len(model_of(again).asked) == len(model_of(whole).asked) - answered, "never asked twice"


def test_every_order_that_happens_is_plausible_and_others_are_not() -> None:
    whole = told()
    whole.go()
    state = fold(whole.journal.records[:1])
    for record in whole.journal.records[1:]:
        assert fault_of(state, record) is None, record
        state = apply(state, record)

    def before(kind: type[Event], nth: int = 0) -> tuple[State, Recorded]:
        found = [r for r in whole.journal.records if isinstance(r.event, kind)][nth]
        return fold(whole.journal.records[: found.number]), found

    def fault(state: State, event: Event) -> str:
        return fault_of(state, Recorded(state.events, state.elapsed, event)) or ""

    at, first = before(Drafted)
    assert isinstance(first.event, Drafted)
    assert not fault(at, replace(first.event, branch=1)), "whoever is written first: replies are all there"
    says(fault(at, replace(first.event, branch=5)), "nothing is to be written of branch 5")
    early, _ = before(Replied, 1)
    says(fault(early, first.event), "author of branch 0 has not answered")
    asked = next(e for e in events(whole, Requested) if isinstance(e, Requested) and e.request.number == 4)
    after, _ = before(Replied, 2)
    says(
        fault(after, replace(asked, request=replace(asked.request, number=5))), "before request 3 is answered"
    )
    says(
        fault(early, replace(asked, request=replace(asked.request, number=5))), "before request 2 is answered"
    )
    gate, rejected = before(Rejected)
    assert not fault(gate, rejected.event)
    says(fault(gate, replace(rejected.event, candidate="3")), "not the turn of template '3'")  # type: ignore[type-var]
    written, _ = before(Drafted, 2)
    says(fault(written, Rejected("1", "it is wrong")), "not the turn of template '1'")
    decided, event = before(Decided)
    assert isinstance(event.event, Decided)
    more = replace(event.event, plans=(*event.event.plans, *event.event.plans))
    says(fault(decided, more), "at most 3 plans")


# -- what people see -----------------------------------------------------------------------------------------


def test_progress_and_report_tell_the_drafts_apart() -> None:
    run = told()
    state = run.go()
    at, lines = State(), []
    for record in run.journal.records:
        at = apply(at, record)
        if (line := event_line(record.event, at)) is not None:
            lines.append(line.text)
    says(lines, "round 1, 3 drafts side by side: several ways")
    says(lines, "template 3 is written, draft 3 of 3: by scripted")
    says(lines, "no template, draft 1 of 2: the author did not answer: gone")
    says(lines, "round 1, rung 2 of 3, 2 of 3 templates: template 4")
    report = build_report(PROBLEM, state, templates=Templates(PROBLEM, state.device, None, run.texts))
    page = report_markdown(report)
    says(page, "1, draft 1", "left behind: 8.90×, template 3 of the same round has 17.80×")
    says(page, "2, draft 1", "no template: the author did not answer: gone")
    says(page, "2, draft 2", "kept")
    says(page, "Round 1. Draft 1 of 3, side by side. because of Narrow.")
    says(page, "Draft 2 of 3, side by side. because of Middle.")
