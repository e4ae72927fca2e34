"""Runs whose planner and author are models: what is asked, what is heeded, and nothing is asked twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import pytest

from tests.core.run.test_loop import PROBLEM, FakeLab, MemoryTexts, Run, delivered, events, kinds_of
from tests.core.run.test_rounds import DEEP, WIDE, cost, failing, survey
from tests.drafts import Scripted as ScriptedAuthor
from tests.drafts import a_draft
from tests.samples import started
from tests.talkers import Said, Scripted, file, plan
from tests.wording import says
from tunesmith.agents.roles import ModelAuthor, ModelPlanner
from tunesmith.base.errors import WaitingForModel
from tunesmith.expert.planning import ExpertPlanner, InOrder
from tunesmith.problem.template import Template
from tunesmith.run import events as ev
from tunesmith.run.budget import spent_text, sum_model_usage, tokens_used
from tunesmith.run.candidates import Templates
from tunesmith.run.ports import MoveCatalogue, MoveOffer
from tunesmith.run.report import best_unfinished
from tunesmith.run.state import fold_records
from tunesmith.run.talk import ATTEMPTS, Conversation, ModelDialogue
from tunesmith.session.roles import in_a_thread

MOVES = MoveCatalogue(
    ("line 3: for each i from 0 to d",),
    (MoveOffer("wide", "loads four at once", "arrays out, x", ("VEC = [1, 2, 4]",), ("wide_access",)),),
    (("split", "a row has no end"),),
)
GOOD, BETTER = file(a_draft(WIDE)), file(a_draft(DEEP))


@dataclass
class TalkingRun(Run):
    models: Mapping[str, Scripted] = field(default_factory=dict)
    pauses: list[float] = field(default_factory=list)

    def talk(self, templates: Templates) -> ModelDialogue:
        expert = ExpertPlanner(PROBLEM, InOrder(("wide",)))
        author = ScriptedAuthor({"wide": WIDE})
        writer = None
        if "author" in self.models:
            writer = ModelAuthor(PROBLEM, templates, lambda: MOVES, "Write.", "scripted", lambda _: None)
        planner = ModelPlanner(PROBLEM, templates, lambda: MOVES, "Plan.", None, expert, writer is not None)
        chosen = planner if "planner" in self.models else expert
        conversation = Conversation(self.models, self.pauses.append, start=in_a_thread)
        return ModelDialogue(PROBLEM, templates, chosen, author, writer, None, conversation)


def a_run(
    script: Mapping[int, Sequence[Said]],
    roles: Sequence[str] = ("planner", "author"),
    settings: ev.Settings | None = None,
    lab: FakeLab | None = None,
    records: list[ev.Recorded] | None = None,
    kept: MemoryTexts | None = None,
    kind: type[TalkingRun] = TalkingRun,
) -> TalkingRun:
    settings = settings or ev.Settings(evals=60, rounds=4)
    begun = [ev.Recorded(0, 0.0, started(settings))]
    model = Scripted(script).after(records or ())
    return kind(
        settings,
        lab=lab or FakeLab(cost, cost, survey),
        template=None,
        records=records or begun,
        texts=kept or MemoryTexts(),
        heeds_words=False,
        models=dict.fromkeys(roles, model),
    )


def model_of(run: TalkingRun) -> Scripted:
    return next(iter(run.models.values()))


STORY: dict[int, Sequence[Said]] = {
    1: [ev.NoReply("busy", wait=7.0), plan()],
    2: ["I would rather talk about it."],
    3: [file("int main() {}")],
    4: [GOOD],
    5: ["no JSON at all"],
    6: [plan(base="9")],
    7: [plan(base="2", what="Keep the row.")],
    8: [ev.NoReply("gone", lasts=True)],
    9: [plan(moves=["wide"])],
    10: [plan(what="Keep the row, again.")],
    11: [BETTER],
    12: [plan("stop")],
}


def test_a_story() -> None:
    run = a_run(STORY, settings=ev.Settings(evals=60, rounds=5))
    state = run.go()
    roles = "PPAAAPPPAPPAP"  # planner, author
    assert [r.role[0].upper() for r in model_of(run).asked] == [*roles]
    assert run.pauses == [7.0]
    assert [(c.id, c.parent, c.status) for c in state.candidates] == [
        ("1", "", "rejected"),
        ("2", "1", "searched"),
        ("3", "", "rejected"),  # by the expert's moves, and the same text
        ("4", "2", "searched"),
    ]
    assert state.stopped == ev.Stopped("done")
    assert delivered(state).general is not None


def test_the_story_of_one_round() -> None:
    run = a_run({1: [plan(expected_gain=2.0)], 2: [GOOD], 3: [plan("stop")]})
    state = run.go()
    kinds = kinds_of(run)
    assert kinds[:8] == [
        *("Started", "Baseline", "Requested", "Replied", "Decided", "Requested", "Replied", "Drafted"),
    ]
    decided = events(run, ev.Decided)[0]
    assert (decided.reason, decided.what, decided.expected) == (
        "narrow loads",
        "Read four at once: VEC.",
        2.0,
    )
    (drafted,) = events(run, ev.Drafted)
    assert drafted.author == "scripted"
    assert run.texts.get(drafted.template) == a_draft(WIDE)
    assert sum_model_usage(state).tokens == 330
    assert spent_text(state) == "round 1 of 4, 3 requests, 330 tokens, cost $1.50"


def said(run: TalkingRun, number: int) -> str:
    return "\n".join(m.text for m in model_of(run).asked[number - 1].messages)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("words, no file", "the reply has no fenced block"),
        ("```\n// /// tunesmith\n", "it was cut off"),
        (file("int main() {}"), "a template declares its parameters"),
        (file(a_draft({}).replace("// [params]\n// [default]\n", "")), "nothing could be searched"),
        (file(a_draft({"VEC": [1, 2]}).replace("VEC}", "FAR}")), "VEC"),
        (file(a_draft(WIDE) + "#include </etc/passwd>\n"), "#include </etc/passwd> is not among"),
        (file(a_draft(WIDE) + "int main() { return 0; }\n"), "host code"),
        ("x" * 300_000, "the reply is longer than"),
    ],
)
def test_what_is_wrong_goes_back_in_exact_words_and_the_branch_ends(bad: str, words: str) -> None:
    repairs = ev.Settings().repairs
    texts = [bad.replace("tunesmith\n", f"tunesmith\n// # {n}\n", 1) for n in range(repairs + 1)]
    texts = [t.replace("main() {}", f"main() {{}} // {n}") for n, t in enumerate(texts)]
    script: dict[int, Sequence[Said]] = {1: [plan()]}
    script |= {2 + n: [text] for n, text in enumerate(texts)}
    script[3 + repairs] = [plan("stop")]
    run = a_run(script)
    state = run.go()
    assert words in said(run, 3)
    assert len(model_of(run).asked) == 3 + repairs
    ends = [*events(run, ev.Rejected), *events(run, ev.Declined)]
    assert words in ends[-1].reason
    assert state.stopped == ev.Stopped("done")
    assert not run.lab.evaluated, "nothing of it was built"
    assert all(
        len(r.messages[-1].text) + sum(len(m.text) for m in r.messages) < 200_000 for r in model_of(run).asked
    )


def test_a_text_that_our_own_readers_choke_on_costs_its_branch_and_not_the_run() -> None:
    class Choking(ModelAuthor):
        def faults(self, template: Template) -> str | None:
            raise RecursionError("too deep")

    class ChokingRun(TalkingRun):
        def talk(self, templates: Templates) -> ModelDialogue:
            talk = super().talk(templates)
            assert isinstance(talk.writer, ModelAuthor)
            choking = Choking(*(getattr(talk.writer, f.name) for f in fields(ModelAuthor)))
            return replace(talk, writer=choking)

    state = a_run({1: [plan()], 2: [GOOD], 3: [GOOD], 4: [plan("stop")]}, kind=ChokingRun).go()
    assert state.stopped == ev.Stopped("done")
    first = state.candidates[0].rejected
    says(first.reason, "bug in Tunesmith", "RecursionError: too deep")


def test_a_wrong_kernel_is_mended_by_the_words_of_the_oracle() -> None:
    other = file(a_draft({"KEEP": [1, 0], "VEC": [2, 4]}))
    script = {1: [plan()], 2: [GOOD], 3: [other], 4: [plan("stop")]}
    run = a_run(script, lab=failing({"VEC": 1}))
    state = run.go()
    says(said(run, 3), "default", "VEC=1 UNROLL=1", "wrong", "workload small", "so it is")
    assert model_of(run).asked[2].messages[2].text == GOOD, "its own reply"
    assert [c.status for c in state.candidates] == ["rejected", "searched"]


def test_the_expert_plans_where_the_planner_is_silent() -> None:
    run = a_run({1: [ev.NoReply("busy")], 2: [plan("stop")]}, roles=("planner",))
    state = run.go()
    tries = [(e.attempt, e.final) for e in events(run, ev.Unanswered)]
    assert tries == [(n, n == ATTEMPTS) for n in range(1, ATTEMPTS + 1)]
    assert run.pauses == [2.0, 4.0, 8.0, 16.0]
    first = events(run, ev.Decided)[0]
    assert first.reason.startswith("the planner did not answer (busy); the expert plans: wide is next")
    assert (first.moves, first.by_moves) == (("wide",), True)
    assert state.stopped == ev.Stopped("done")


def test_a_silent_author_closes_its_branch() -> None:
    run = a_run({1: [plan()], 2: [ev.NoReply("no such model", lasts=True)], 3: [plan("stop")]})
    state = run.go()
    (declined,) = events(run, ev.Declined)
    says(declined.reason, "author", "not answer", "no such model")
    assert state.stopped == ev.Stopped("done")


def test_a_reply_that_is_missing_stops_the_run_and_is_asked_for_again() -> None:
    run = a_run({1: [ev.Pending("the box")]})
    with pytest.raises(WaitingForModel, match="request 1 is missing: it is to be written to the box"):
        run.go()
    assert kinds_of(run)[-1] == "Requested"
    first = model_of(run).asked
    later = a_run({1: [plan("stop")]}, records=list(run.journal.records))
    later.go()
    assert model_of(later).asked == first, "the same request"
    assert kinds_of(later) == [*kinds_of(run), "Replied", "Decided", "Stopped"]


def test_a_model_plans_and_the_experts_moves_do_the_editing() -> None:
    run = a_run(
        {1: [plan(moves=["split"])], 2: [plan(moves=["wide"], what="")], 3: [plan("stop")]}, ("planner",)
    )
    state = run.go()
    says(said(run, 2), "'split'", "not apply", "a row has no end", "available are: wide")
    (drafted,) = events(run, ev.Drafted)
    assert (drafted.author, drafted.moves) == ("", ("wide",))
    assert [c.status for c in state.candidates] == ["searched"]


def test_without_an_author_a_plan_in_words_is_refused() -> None:
    run = a_run({1: [plan()], 2: [plan("stop")]}, ("planner",))
    run.go()
    assert "nobody here writes by words: name moves" in said(run, 2)


def test_the_expert_plans_and_a_model_writes() -> None:
    run = a_run({1: [GOOD]}, ("author",))
    state = run.go()
    assert [r.role for r in model_of(run).asked] == ["author"]
    assert "- wide: loads four at once" in said(run, 1)
    assert [c.status for c in state.candidates] == ["searched"]
    assert state.stopped == ev.Stopped("every move has been tried")


def test_a_search_that_was_cut_can_be_asked_for_again() -> None:
    big = {"VEC": [1, 2, 4], "UNROLL": list(range(1, 100))}
    script = {
        1: [plan()],
        2: [file(a_draft(big))],
        3: [plan("search")],
        4: [plan("search")],
        5: [plan("stop")],
    }
    run = a_run(script, settings=ev.Settings(evals=160, rounds=4))
    state = run.go()
    searches = [e for e in events(run, ev.Decided) if e.decision == "search"]
    assert [(e.candidate, e.evals) for e in searches] == [("1", 53), ("1", 40), ("1", 67)]
    says(state.stopped, "budget", "160 evaluations", "used up")
    small = a_run({1: [plan()], 2: [GOOD], 3: [plan("search")], 4: [plan("stop")]})
    small.go()
    says(said(small, 4), "template 1", "ended", "every configuration", "refactor or stop")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"rounds": 1}, "the budget of 1 round is used up"),
        ({"tokens": 200}, "the budget of 200 tokens is used up"),
        ({"dollars": 1.0}, "the budget of $1 is used up"),
    ],
)
def test_budgets_end_the_run_with_what_was_found(limits: dict[str, int], words: str) -> None:
    settings = replace(ev.Settings(evals=60), **limits)
    state = a_run({1: [plan()], 2: [GOOD], 3: [plan("stop")]}, settings=settings).go()
    assert state.stopped == ev.Stopped(words)
    assert delivered(state).general is not None


@pytest.mark.parametrize("roles", [("planner", "author"), ("author",), ()])
def test_with_no_money_nothing_is_sent_and_the_expert_needs_none(roles: Sequence[str]) -> None:
    run = a_run({}, roles, settings=ev.Settings(evals=60, dollars=0.0))
    state = run.go()
    if roles:
        assert model_of(run).asked == []
        assert state.stopped == ev.Stopped("the budget of $0 is used up")
    else:
        assert state.stopped == ev.Stopped("every move has been tried")
        assert [c.status for c in state.candidates] == ["searched"]


def test_what_nobody_tells_is_unknown() -> None:
    quiet = ev.Reply(plan("stop"), ev.Usage(None, None, None))
    state = a_run({1: [quiet]}).go()
    assert (sum_model_usage(state).tokens, sum_model_usage(state).dollars) == (None, None)
    assert spent_text(state) == "round 0 of 4, 1 request, unknown tokens, cost unknown"
    script, settings = {1: [ev.Reply(plan(), ev.Usage(None, 3, None))]}, ev.Settings(evals=60, dollars=3.0)
    says(a_run(script, settings=settings).go().stopped, "costs", "unknown", "budget of $3 cannot be kept")


def test_what_failed_attempts_took_counts() -> None:
    """As reported; of one that broke off and does not say, by the length of what came."""
    told = ev.NoReply("it refused", usage=ev.Usage(90, 30, 0.25), came=70)
    broken = ev.NoReply("the stream broke off", came=350)
    run = a_run({1: [told, broken, ev.NoReply("nobody is there"), plan("stop")]})
    state = run.go()
    cost = sum_model_usage(state)
    assert (cost.sent, cost.received, cost.dollars) == (190, 40, 0.75)
    assert (cost.lost, cost.uncounted) == (120, 1)
    (exchange,) = state.dialogue
    asked = sum(ev.tokens_of(m.text) for m in exchange.request.messages)
    assert tokens_used(state) == 190 + 40 + asked + 100
    assert spent_text(state) == (
        "round 0 of 4, 1 request, 230 tokens (120 lost with attempts that failed, without 1 attempt that "
        "broke off), cost $0.75"
    )
    assert fold_records(run.journal.records) == state


def test_a_budget_of_tokens_ends_a_model_that_only_fails() -> None:
    refused = ev.NoReply("it refused", lasts=True, usage=ev.Usage(150, 60))
    state = a_run({1: [refused]}, settings=ev.Settings(evals=60, tokens=200)).go()
    assert state.stopped == ev.Stopped("the budget of 200 tokens is used up")


def test_what_stands_when_a_reply_is_missing() -> None:
    run = a_run({1: [plan()], 2: [GOOD], 3: [ev.Pending("the box")]})
    with pytest.raises(WaitingForModel):
        run.go()
    state = fold_records(run.journal.records)
    found = best_unfinished(PROBLEM, state)
    assert (found.template, found.status, found.by) == ("1", "searched", "scripted")
    assert found.speedup == pytest.approx(2.8, abs=0.01)
    assert found.config is not None
    assert run.texts.get(found.digest) == a_draft(WIDE)
    ended = a_run({1: [plan("stop")]}).go()
    assert best_unfinished(PROBLEM, ended) is None
    early = [
        r
        for r in run.journal.records
        if r.number <= next(r.number for r in run.journal.records if isinstance(r.event, ev.Drafted))
    ]
    waiting = best_unfinished(PROBLEM, fold_records(early))
    assert (waiting.status, waiting.speedup) == ("drafted", None)


@pytest.mark.long
def test_a_run_killed_after_any_event_goes_on_and_asks_nothing_twice() -> None:
    settings = ev.Settings(evals=60, rounds=5)
    whole = a_run(STORY, settings=settings)
    state = whole.go()
    records = whole.journal.records
    assert {"Requested", "Replied", "Unanswered", "Declined", "Rejected"} <= set(kinds_of(whole))
    for cut in range(1, len(records) + 1):
        again = a_run(STORY, settings=settings, records=list(records[:cut]), kept=whole.texts)
        assert again.go() == state
        assert again.journal.records == records, f"after event {cut}"
        prefix = [record.event for record in records[:cut]]
        answered = sum(isinstance(e, (ev.Replied, ev.Unanswered)) for e in prefix)
        assert len(model_of(again).asked) == len(model_of(whole).asked) - answered, "never asked twice"
        requested = sum(isinstance(e, ev.Requested) for e in prefix)
        assert requested <= len(events(whole, ev.Requested))
