"""Runs whose templates are written as they go: rounds, the gate, repair; being killed changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from tests.core.run.test_loop import (
    ORIGINAL,
    PROBLEM,
    FakeLab,
    MemoryTexts,
    Run,
    both,
    delivered,
    events,
    kinds_of,
)
from tests.drafts import Scripted, a_draft
from tests.samples import built, started
from tests.wording import says
from tunesmith.expert.planning import ExpertPlanner, InOrder
from tunesmith.problem.plan import Status
from tunesmith.problem.template_file import parse_template
from tunesmith.run import events as ev
from tunesmith.run.ports import SearchView
from tunesmith.run.rounds import leading_candidate, round_outcomes, round_reports
from tunesmith.run.state import State
from tunesmith.run.talk import REPAIRS
from tunesmith.search.default import Default
from tunesmith.search.models import FIRST, is_following
from tunesmith.search.simple import Exhaustive, Random
from tunesmith.space.configset import Config

WIDE = {"VEC": [1, 2, 4], "UNROLL": [1, 2, 3, 4]}
DEEP = {"VEC": [1, 2, 4], "UNROLL": [1, 2, 3, 4], "KEEP": [0, 1]}


def cost(chosen: Config, workload: str) -> float | Status:
    """Wider is faster, keeping is twice as fast, hinting does nothing."""
    values = {"VEC": 1, "UNROLL": 1, "KEEP": 0, "FAST": 0} | chosen.as_dict()
    speed = values["VEC"] ** 0.5 * (1 + 0.1 * values["UNROLL"]) * (1 + values["KEEP"])
    return ORIGINAL[workload] / speed


def survey(chosen: Config) -> ev.Surveyed:
    return built(chosen, f"code of {chosen.label}")


def a_run(
    texts: Mapping[str, object],
    settings: ev.Settings | None = None,
    lab: FakeLab | None = None,
    records: list[ev.Recorded] | None = None,
    kept: MemoryTexts | None = None,
    **more: object,
) -> Run:
    settings = settings or ev.Settings(evals=60)
    begun = ev.Recorded(0, 0.0, started(settings))
    return Run(
        settings,
        lab=lab or FakeLab(cost, cost, survey),
        planner=ExpertPlanner(PROBLEM, InOrder(tuple(texts))),
        author=Scripted(texts),
        template=None,
        records=records or [begun],
        texts=kept or MemoryTexts(),
        **more,
    )


def author_of(run: Run) -> Scripted:
    assert isinstance(run.author, Scripted)
    return run.author


@both
def test_each_round_goes_on_from_the_best_and_the_best_of_all_wins(ahead: int) -> None:
    slow = {"FAST": [0, 1]}
    run = a_run({"wide": WIDE, "hint": slow, "keep": DEEP}, ev.Settings(evals=80, ahead=ahead))
    state = run.go()
    assert [task.moves for task in author_of(run).tasks] == [("wide",), ("wide", "hint"), ("wide", "keep")]
    assert [(c.id, c.parent, c.status) for c in state.candidates] == [
        ("1", "", "searched"),
        ("2", "1", "searched"),
        ("3", "1", "searched"),
    ]
    best = Config((("VEC", 4), ("UNROLL", 4), ("KEEP", 1)), "3")
    choice = delivered(state)
    assert choice.general == best
    assert {pick.config for pick in choice.picks} == {best}
    assert state.stopped == ev.Stopped("every move has been tried")
    assert [one.pays for one in round_outcomes(PROBLEM, state)] == [True, False, True]
    found = leading_candidate(PROBLEM, state)
    assert found.id == "3"
    story = round_reports(PROBLEM, state)
    assert [one.kept for one in story] == [True, False, True]
    assert story[0].verdict == "kept: 2.80×, 1.00× before it"
    assert story[1].verdict.startswith("dropped: 1.10× is no gain over 2.80×")
    assert story[0].refused == {"split": "a row has no end"}


def test_the_story_of_a_round() -> None:
    run = a_run({"wide": {"VEC": [1, 2]}}, ev.Settings(evals=10))
    run.go()
    assert kinds_of(run) == [
        *("Started", "Baseline", "Decided", "Drafted"),
        *("Asked", "Measured"),  # the default
        *("Asked", "Measured"),  # the other value
        *("Admitted", "Decided", "Searched", "Decided"),
        *("Asked", *["Measured"] * 1, "Verified", "Stopped"),
    ]
    assert events(run, ev.Drafted) == [
        ev.Drafted(
            "1",
            "",
            next(iter(run.texts.kept)),
            ("wide",),
            (("split", "a row has no end"),),
            ("made for a test",),
        )
    ]
    assert events(run, ev.Searched) == [ev.Searched("1", "every configuration has been tried")]
    assert [e.decision for e in events(run, ev.Decided)] == ["refactor", "search", "finish"]


def test_what_the_gate_tried_is_not_tried_again() -> None:
    state = a_run({"wide": WIDE}).go()
    tried = [o.trial.config for o in state.searched]
    assert len(tried) == len(set(tried)) == 12
    purposes = {o.trial.purpose for o in state.searched}
    assert purposes == {"gate"} or purposes == {"gate", "search"}


def test_a_search_begins_from_what_the_templates_before_it_have_shown() -> None:
    @dataclass
    class Watched(Exhaustive):
        views: list[SearchView] = field(default_factory=list)

        def ask(self, view: SearchView, n: int):
            self.views.append(view)
            return super().ask(view, n)

    big = {"VEC": [1, 2, 4], "UNROLL": list(range(1, 30)), "KEEP": [0, 1]}
    searcher = Watched()
    a_run({"wide": WIDE, "keep": big}, searcher=searcher).go()
    view = searcher.views[-1]
    assert view.space.candidate == "2"
    (prior,) = view.priors
    assert prior.name == "template 1"
    assert all(config in view.configs and config["KEEP"] == 0 for config, _ in prior.rows)
    assert len(prior.rows) == 12


@both
@pytest.mark.few(1)
def test_earlier_runs_are_followed_behind_a_gate_and_the_journal_says_by_which_trials(ahead: int) -> None:
    big = {"VEC": [1, 2, 4], "UNROLL": list(range(1, 30)), "KEEP": [0, 1]}
    state = a_run({"wide": WIDE, "keep": big}, ev.Settings(evals=80, ahead=ahead), searcher=Default()).go()
    own = [t for t in state.asked if t.config is not None and t.config.candidate == "2"]
    assert sum(t.purpose == "gate" for t in own) >= FIRST, "more than an opening has"
    for is_build in (False, True) if ahead else (False,):
        picks = [t for t in own if t.purpose == "search" and (t.effort == "build") == is_build]
        assert [i for i, t in enumerate(picks) if t.followed] == [
            i for i in range(len(picks)) if is_following(i)
        ]
    assert not any(t.followed for t in state.asked if t.config is None or t.config.candidate == "1")


def failing(*bad: Mapping[str, int], status: Status = Status.WRONG) -> FakeLab:
    def judged(chosen: Config, workload: str) -> float | Status:
        values = chosen.as_dict()
        if any(all(values.get(k) == v for k, v in one.items()) for one in bad):
            return status
        return cost(chosen, workload)

    return FakeLab(judged, judged, survey)


def test_a_value_that_is_wrong_alone_is_left_out_and_the_author_asked_again() -> None:
    run = a_run({"wide": WIDE}, lab=failing({"VEC": 4}))
    state = run.go()
    (rejected,) = events(run, ev.Rejected)
    assert (rejected.without, rejected.again) == ((("VEC", 4),), True)
    says(rejected.reason, "VEC=4", "wrong", "workload small", "so it is")
    assert author_of(run).tasks[1].without == (("VEC", 4),)
    assert author_of(run).tasks[1].failure == rejected.reason
    assert [(c.id, c.parent, c.status) for c in state.candidates] == [
        ("1", "", "rejected"),
        ("2", "1", "searched"),
    ]
    assert delivered(state).general == Config((("VEC", 2), ("UNROLL", 4)), "2")
    assert all(o.trial.config and o.trial.config.candidate == "2" for o in state.searched)


def test_values_that_are_wrong_together_are_forbidden_in_the_template_itself() -> None:
    run = a_run({"wide": WIDE}, lab=failing({"VEC": 4, "UNROLL": 4}))
    state = run.go()
    assert events(run, ev.Rejected) == []
    (admitted,) = events(run, ev.Admitted)
    assert admitted.rules == ((("VEC", 4), ("UNROLL", 4)),)
    assert admitted.feasible == 11
    text = run.texts.get(state.candidates[0].template)
    assert '// not_right_1 = "not (VEC == 4 and UNROLL == 4)"' in text
    assert parse_template(text, path="t.cl", problem=PROBLEM).digest == admitted.template
    assert Config((("VEC", 4), ("UNROLL", 4)), "1") not in [o.trial.config for o in state.finalists()]
    assert delivered(state).general == Config((("VEC", 4), ("UNROLL", 3)), "1")


def test_an_author_that_does_not_leave_a_value_out_finds_it_forbidden() -> None:
    stubborn = a_draft(WIDE)
    run = a_run({"wide": stubborn}, lab=failing({"VEC": 4}))
    state = run.go()
    assert [c.status for c in state.candidates] == ["rejected", "rejected"]
    assert [r.again for r in events(run, ev.Rejected)] == [True, False]
    says(events(run, ev.Rejected)[1].reason, "same text", "template 1")
    assert len(run.lab.evaluated) == len(state.gated("1")), "which needs no trial"
    assert delivered(state).configs() == ()

    class Varying(Scripted):
        def write(self, task, problem, device):
            written = super().write(task, problem, device)
            return type(written)(f"{written.text}// try {len(self.tasks)}\n", task.moves)

    run = a_run({"wide": stubborn}, lab=failing({"VEC": 4}))
    run.author = Varying({"wide": stubborn})
    state = run.go()
    assert [c.status for c in state.candidates] == ["rejected"] * REPAIRS + ["searched"]
    assert events(run, ev.Admitted)[0].rules == ((("VEC", 4),),)


@pytest.mark.parametrize("status", [Status.WRONG, Status.BUILD_FAILED, Status.CRASHED, Status.TIMED_OUT])
def test_a_template_whose_default_fails_is_turned_away_and_the_run_goes_on(status: Status) -> None:
    run = a_run({"wide": WIDE, "hint": {"FAST": [0, 1]}}, lab=failing({"VEC": 1}, status=status))
    state = run.go()
    first = events(run, ev.Rejected)[0]
    assert first.reason == f"at its default, VEC=1 UNROLL=1, it is {status} (workload small): so it is"
    assert [c.status for c in state.candidates] == ["rejected", "rejected", "searched"]
    assert author_of(run).tasks[-1].moves == ("hint",), "a loser is never the base"
    assert round_reports(PROBLEM, state)[0].verdict.startswith("turned away: at its default")
    assert state.stopped == ev.Stopped("every move has been tried")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("int main() {}", "a template declares its parameters in a comment"),
        (a_draft({"VEC": [1, 2]}, require="VEC > 4"), "VEC > 4"),
        (a_draft({"VEC": [1, 2]}).replace("VEC}", "1}"), "VEC"),
    ],
)
def test_what_is_no_template_is_turned_away_in_the_readers_words(text: str, words: str) -> None:
    run = a_run({"wide": text})
    state = run.go()
    first, second = events(run, ev.Rejected)
    assert words in first.reason
    says(second.reason, "same text", "template 1")  # the author had the words, and wrote the same
    assert author_of(run).tasks[1].failure == events(run, ev.Rejected)[0].reason
    assert state.stopped == ev.Stopped("every move has been tried")
    assert not state.searched


def test_an_author_that_declines_leaves_the_original() -> None:
    run = a_run({"wide": ev.Declined("no loop here carries a stride")})
    state = run.go()
    assert kinds_of(run) == ["Started", "Baseline", "Decided", "Declined", "Decided", "Stopped"]
    assert delivered(state).configs() == ()
    (one,) = round_reports(PROBLEM, state)
    assert one.verdict == "no template: no loop here carries a stride"
    assert one.moves == ("wide",)


def test_a_bug_in_an_author_costs_its_round_and_not_the_run() -> None:
    run = a_run({"wide": RecursionError("too deep"), "hint": {"FAST": [0, 1]}})
    state = run.go()
    (declined,) = events(run, ev.Declined)
    assert "a bug in Tunesmith: RecursionError: too deep" in declined.reason
    assert [c.status for c in state.candidates] == ["searched"]


def test_a_template_nothing_of_which_runs_is_turned_away() -> None:
    run = a_run({"wide": WIDE}, lab=failing({}, status=Status.OVER_LIMITS))
    run.go()
    says(events(run, ev.Rejected)[0].reason, "nothing", "over_limits", "workload small", "so it is")


def test_what_a_round_adds_without_effect_is_not_tried_again() -> None:
    run = a_run({"wide": WIDE, "hint": WIDE, "keep": DEEP})
    state = run.go()
    assert [c.status for c in state.candidates] == ["searched", "rejected", "searched"]
    (rejected,) = events(run, ev.Rejected)
    assert (rejected.same_as, rejected.again) == ("1", False)


def test_an_author_that_heeds_no_words_is_asked_again_only_for_less() -> None:
    run = a_run({"wide": WIDE, "none": "no template"}, lab=failing({"VEC": 4}), heeds_words=False)
    run.go()
    assert [(r.candidate, r.again) for r in events(run, ev.Rejected)] == [("1", True), ("3", False)]


def test_a_planner_that_fails_ends_the_run_with_what_was_found() -> None:
    class Broken(InOrder):
        def __call__(self, done, base, state):
            return super().__call__(done, base, state) if not done else 1 / 0

    run = a_run({"wide": WIDE})
    run.planner = ExpertPlanner(PROBLEM, Broken(("wide",)))
    state = run.go()
    assert "a bug in Tunesmith: ZeroDivisionError" in state.stopped.reason
    assert delivered(state).general is not None


BIG = {"VEC": [1, 2, 4], "UNROLL": list(range(1, 100))}
TAGGED = {name: {**BIG, "TAG": [tag]} for tag, name in enumerate("abcde")}


def count_searched(state: State) -> int:
    return len([t for t in state.asked if t.purpose == "search" and t.effort != "build"])


@both
def test_rounds_share_the_budget(ahead: int) -> None:
    texts = {name: TAGGED[name] for name in "abc"}
    run = a_run(texts, ev.Settings(evals=200, ahead=ahead), searcher=Random())
    state = run.go()
    shares = [e.evals for e in events(run, ev.Decided) if e.decision == "search"]
    assert shares == [100, 50, 50]
    assert count_searched(state) == 200
    says(state.stopped, "budget", "200 evaluations", "used up")
    says(events(run, ev.Searched)[0].reason, "share", "100 evaluations", "used up")


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("evals", "promised", "shares"),
    [
        (40, 2, [20, 20]),
        (40, 1, [40]),
        (80, 3, [26, 27, 27]),
        (40, 8, [13, 10, 17]),
        (15, 2, [15]),
        (60, None, [60]),
        (240, None, [120, 60, 60]),
        (240, 8, [80, 53, 40, 67]),
        (240, 2, [120, 120]),
        (120, 3, [40, 40, 40]),
    ],
)
def test_a_small_budget_leaves_something_for_the_rounds_that_were_promised(
    evals: int, promised: int | None, shares: list[int]
) -> None:
    run = a_run(TAGGED, ev.Settings(evals=evals, rounds=promised), searcher=Random())
    state = run.go()
    assert [e.evals for e in events(run, ev.Decided) if e.decision == "search"] == shares
    assert count_searched(state) == evals


@pytest.mark.parametrize(("promised", "least", "most"), [(None, 150, 200), (1, 300, 400)])
def test_rounds_share_the_time(promised: int | None, least: float, most: float) -> None:
    """The last round that was promised may take what is left."""
    run = a_run(TAGGED, ev.Settings(seconds=400.0, rounds=promised), searcher=Random())
    state = run.go()
    shares = [e.seconds for e in events(run, ev.Decided) if e.decision == "search"]
    assert least < shares[0] < most
    assert (len(shares) == 1) == (promised == 1)
    assert state.stopped is not None


def test_what_is_left_of_the_budget_goes_to_the_best() -> None:
    fast = {"KEEP": [1], **BIG}
    run = a_run({"a": fast, "b": BIG}, ev.Settings(evals=200), searcher=Random())
    state = run.go()
    searches = [(e.candidate, e.evals) for e in events(run, ev.Decided) if e.decision == "search"]
    assert searches == [("1", 100), ("2", 50), ("1", None)]
    assert [e.cut for e in events(run, ev.Searched)] == [True, True, False]
    says(state.stopped, "budget", "200 evaluations", "used up")


@both
@pytest.mark.parametrize("searcher", [Exhaustive(), Random(), Default()], ids=lambda s: s.name)
@pytest.mark.few(1)
@pytest.mark.long
def test_a_run_killed_after_any_event_goes_on_as_if_it_had_not_been(searcher: object, ahead: int) -> None:
    """Two rounds with a repair, a pair that is forbidden, a draft turned away and an author that declines."""
    texts = {
        "wide": WIDE,
        "none": ev.Declined("there is nothing to hint at"),
        "broken": "no template at all",
        "keep": DEEP,
    }
    bad = ({"VEC": 4, "KEEP": 0}, {"UNROLL": 3, "VEC": 2, "KEEP": 1}, {"VEC": 4, "UNROLL": 4})
    settings = ev.Settings(evals=30, ahead=ahead, seed=3)
    whole = a_run(texts, settings, failing(*bad), searcher=searcher)
    state = whole.go()
    records = whole.journal.records
    assert {"Declined", "Rejected", "Searched", "Verified"} <= set(kinds_of(whole))
    assert sum(c.status == "searched" for c in state.candidates) == 2
    for cut in range(1, len(records) + 1):
        again = a_run(texts, settings, failing(*bad), list(records[:cut]), whole.texts, searcher=searcher)
        assert again.go() == state
        assert again.journal.records == records, f"after event {cut}"
        prefix = [record.event for record in records[:cut]]
        asked = sum(isinstance(e, (ev.Drafted, ev.Declined)) for e in prefix)
        assert len(author_of(again).tasks) == len(author_of(whole).tasks) - asked, "never asked twice"
        measured = sum(isinstance(e, ev.Measured) for e in prefix)
        assert len(again.lab.evaluated) == len(events(whole, ev.Measured)) - measured
