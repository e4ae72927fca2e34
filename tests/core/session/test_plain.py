"""A kernel that a model only rewrites plainly, and the expert's moves on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import tunesmith
from tests.core.run.test_loop import ORIGINAL, PROBLEM, FakeLab, MemoryTexts, Run, events
from tests.core.run.test_rounds import cost, survey
from tests.drafts import a_draft
from tests.kernel_runs import ALL, shown, text
from tests.running import FIXTURES
from tests.samples import DEVICE, started
from tests.talkers import Said, Scripted, file, plan
from tests.wording import says
from tunesmith.agents import roles as plain
from tunesmith.agents.prompting import PlanReply, Unusable
from tunesmith.base.errors import BadInput
from tunesmith.deliver.pages.page import report_markdown
from tunesmith.deliver.pages.terminal import event_line
from tunesmith.expert.planning import ByDiagnosis, ExpertPlanner
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.run.candidates import Templates
from tunesmith.run.config import RunConfig
from tunesmith.run.events import (
    Asked,
    Decided,
    Declined,
    NoReply,
    Recorded,
    Rejected,
    Replied,
    Settings,
    Unanswered,
)
from tunesmith.run.journal import broken_rule
from tunesmith.run.ports import MoveCatalogue, MoveOffer, Refactoring, Written
from tunesmith.run.report import build_report
from tunesmith.run.rounds import round_reports
from tunesmith.run.state import fold_records
from tunesmith.run.talk import Conversation, ModelDialogue
from tunesmith.session import roles as casting
from tunesmith.session import roles as wishes
from tunesmith.session.problems import load_problem
from tunesmith.space.configset import Config

PLAIN = Settings(evals=60, rounds=4, plain=True)
UNREAD, WRONG, GOOD = (file(text(n, more)) for n, more in ((1, ""), (2, ""), (3, "")))
FOUR = file(text(4))
BOTH = ("planner", "author")
READ_FROM = 2  # kernels of these numbers and above the expert can read
MOVES = {"vector": {"VEC": [1, 2, 4]}, "unroll": {"UNROLL": [1, 2, 3]}}


def tells(text: object, *parts: str) -> None:
    """Each of them on some line."""
    for part in parts:
        says(text, part)


def number_of(problem: Problem) -> int:
    """Of a kernel of `tests.kernel_runs`; 0: the original."""
    return next((n for n in range(1, 9) if f"this_is_kernel_{n} " in problem.kernel.text), 0)


def moves_on(problem: Problem) -> MoveCatalogue:
    number = number_of(problem)
    if number == 7:  # it is read, and nothing is gained by that
        return MoveCatalogue(("line 1: a loop",), (MoveOffer("unroll"),), (("vector", "its rows are odd"),))
    if number >= READ_FROM:
        return MoveCatalogue(("line 1: a loop",), tuple(map(MoveOffer, MOVES)))
    beyond = (f"kernel {number} is beyond the expert: line 6: 'asm' is not understood",)
    return MoveCatalogue(
        beyond, (MoveOffer("unroll"),), (("vector", "it keeps its own text"),), beyond=beyond
    )


@dataclass
class FakeExpert:
    """Writes the moves it is asked for, and keeps which kernel it was asked about."""

    seen: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)

    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined:
        self.seen.append((number_of(problem), task.moves))
        params = {name: values for move in task.moves for name, values in MOVES[move].items()}
        left = {n: [v for v in values if (n, v) not in task.without] for n, values in params.items()}
        return Written(a_draft({**left, "ON": [number_of(problem)]}), task.moves)

    def available(
        self, problem: Problem, device: Device
    ) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        return moves_on(problem).available, moves_on(problem).refused


def speed(chosen: Config, workload: str) -> float | Status:
    """The second draft is wrong, a plain kernel slow; what is made on one is as fast as its values say."""
    if not chosen.items:
        return Status.WRONG if chosen.candidate == "2" else ORIGINAL[workload] / 0.8
    return cost(chosen, workload)


@dataclass
class PlainRun(Run):
    models: Mapping[str, Scripted] = field(default_factory=dict)
    expert: FakeExpert = field(default_factory=FakeExpert)

    def talk(self, templates: Templates) -> ModelDialogue:
        conversation = Conversation(self.models)  # type: ignore[arg-type]
        planner = ExpertPlanner(PROBLEM, ByDiagnosis(PROBLEM, templates, self.expert.available))
        made = casting.RoleFactory(
            PROBLEM,
            templates,
            conversation,
            ALL,  # type: ignore[arg-type]
            moves_on,
            expert=(planner, self.expert),
            rewrites_plainly=True,
            plain_first=self.settings.plain,
        ).talking()
        object.__setattr__(made.writer, "signature", lambda _template: None)
        return made

    @property
    def model(self) -> Scripted:
        return next(iter(self.models.values()))

    def said(self, number: int) -> str:
        return shown(self.model.asked[number - 1])


def a_run(
    script: Mapping[int, Sequence[Said]],
    settings: Settings = PLAIN,
    roles: Sequence[str] = ("author",),
    records: list[Recorded] | None = None,
    kept: MemoryTexts | None = None,
) -> PlainRun:
    model = Scripted(script).after(records or ())
    return PlainRun(
        settings,
        lab=FakeLab(speed, speed, survey),
        template=None,
        records=records or [Recorded(0, 0.0, started(settings))],
        texts=kept or MemoryTexts(),
        heeds_words=False,
        models=dict.fromkeys(roles, model),
    )


# Beyond the expert, then wrong, then right.
STORY: dict[int, Sequence[Said]] = {1: [NoReply("busy"), UNREAD], 2: [WRONG], 3: [GOOD]}


def decisions(run: Run, kind: str = "refactor") -> list[Decided]:
    return [e for e in events(run, Decided) if isinstance(e, Decided) and e.decision == kind]


def test_the_expert_goes_on_from_what_a_model_rewrote_plainly() -> None:
    run = a_run(STORY)
    state = run.go()
    assert [(c.id, c.parent, c.status) for c in state.candidates[:4]] == [
        ("1", "", "rejected"),  # beyond the expert
        ("2", "1", "rejected"),  # wrong
        ("3", "2", "searched"),
        ("4", "3", "searched"),  # by moves
    ]
    assert [r.role for r in run.model.asked] == ["author"] * 4, "three replies, one of them asked for twice"
    first, second, *_ = decisions(run)
    assert (first.plain, first.moves, first.candidate) == (True, (), "")
    assert (second.plain, second.by_moves, second.candidate) == (False, True, "3")
    assert run.expert.seen[0] == (3, ("vector", "unroll")), "with a move that the original has not"
    made = state.candidate("4")
    assert made.drafted is not None
    assert (made.drafted.author, made.moves) == ("scripted", ("vector", "unroll")), "vetted as a model's"
    assert state.plain_kernel is state.candidate("3")


def test_what_the_author_is_told_and_told_again() -> None:
    run = a_run(STORY)
    run.go()
    first = run.said(1)
    tells(
        first,
        "You rewrite a GPU kernel *plainly*",
        "line 6: 'asm' is not understood",
        "out[(size_t)row * d + i]",
    )
    assert "[params]" not in first.partition("## user")[2]
    tells(run.said(3), "the program still cannot read it", "kernel 1 is beyond the expert", "corrected")
    tells(run.said(4), "it is wrong (workload small)")
    rejected = [e for e in events(run, Rejected) if isinstance(e, Rejected)]
    assert [e.again for e in rejected[:2]] == [True, True]


def test_a_plain_kernel_is_checked_as_a_winner_is() -> None:
    """What is made on it has its faults."""
    run = a_run(STORY)
    run.go()
    gate = [t for e in events(run, Asked) if isinstance(e, Asked) for t in e.trials if t.purpose == "gate"]
    efforts = {t.config.candidate: t.effort for t in gate if t.config is not None}
    assert (efforts["2"], efforts["3"], efforts["4"]) == ("long", "long", "short")
    assert "1" not in efforts, "what cannot be read is not even built"


def test_a_run_goes_on_after_any_event() -> None:
    whole = a_run(STORY)
    state, records = whole.go(), whole.journal.records
    assert {"Rejected", "Unanswered", "Admitted", "Searched"} <= {type(r.event).__name__ for r in records}
    for cut in range(1, len(records) + 1):
        again = a_run(STORY, records=list(records[:cut]), kept=whole.texts)
        assert again.go() == state
        assert again.journal.records == records, f"after event {cut}"
        answered = sum(isinstance(r.event, (Replied, Unanswered)) for r in records[:cut])
        assert len(again.model.asked) == len(whole.model.asked) - answered, "never asked twice"


def test_no_event_of_it_is_implausible() -> None:
    run = a_run(STORY)
    run.go()
    for place, record in enumerate(run.journal.records[1:], 1):
        assert broken_rule(fold_records(run.journal.records[:place]), record) is None, record
    state = fold_records(run.journal.records[:-1])
    at = (state.events, state.elapsed)
    idle = replace(state, under_way=None)
    for wrong, words in (
        (Decided("refactor", "again", plain=True), "is the plain kernel already"),
        (Decided("refactor", "both", ("vector",), plain=True), "one refactoring of the original"),
        (Decided("finish", "done", plain=True), "one refactoring of the original"),
    ):
        assert words in (broken_rule(idle, Recorded(*at, wrong)) or "")


def test_the_report_says_what_was_done() -> None:
    run = a_run(STORY)
    state = run.go()
    templates = Templates(PROBLEM, DEVICE, None, run.texts)
    first, second, *_ = round_reports(PROBLEM, state, templates)
    assert (first.plain, first.on, first.author) == (True, "", "scripted")
    assert (
        first.verdict == "plain: the expert reads it, and makes its moves on it from here on; by itself 0.80×"
    )
    assert (second.plain, second.on, second.base) == (False, "3", "3")
    text = report_markdown(build_report(PROBLEM, state, templates=templates))
    tells(
        text,
        "plainly, by scripted",
        "By the expert's moves on template 3, the kernel as scripted rewrote it.",
    )
    lines = [
        event_line(r.event, fold_records(run.journal.records[: r.number + 1])) for r in run.journal.records
    ]
    tells(lines, "template 3 is right, and the expert reads it")
    tells(lines, "template 4 is written: vector, unroll on template 3, the plain kernel")


def test_one_that_is_never_read_is_turned_away_and_the_expert_goes_on_without() -> None:
    replies = {n: [file(text(1, f"// # try {n}\n"))] for n in range(1, 9)}
    run = a_run(replies, replace(PLAIN, repairs=2))
    state = run.go()
    assert len(run.model.asked) == 3, "the first, and two repairs"
    assert state.plain_kernel is None
    tells(round_reports(PROBLEM, state)[0].verdict, "turned away: the program still cannot read it", "line 6")
    assert {kernel for kernel, _ in run.expert.seen} == {0}, "its moves are made on the original"
    assert [d.by_moves for d in decisions(run)[1:]] == [True] * len(decisions(run)[1:])
    assert all(c.drafted and not c.drafted.author for c in state.candidates[3:])


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (file(text(7)), "no move for it that it did not have before (unroll)"),
        (file(text(3, '// [defines]\n// D = "d"\n').replace("= 1;", "= D;")), "leave out [defines]"),
        (file(text(3, '// [require]\n// even = "d % 2 == 0"\n')), "leave out [require]"),
        (file(a_draft({"VEC": [1, 2]})), "it has parameters (VEC)"),
        (file(text(3, '// args = ["x", "out", "rows", "d"]\n')), "called as the original is: scale (out, x"),
        (file(text(3).replace("= 1;", '= 1;\nasm("nop");')), "asm"),
    ],
)
def test_what_is_no_plain_kernel_goes_back_with_the_reason(reply: str, words: str) -> None:
    run = a_run({1: [reply], 2: [WRONG], 3: [GOOD]})
    run.go()
    tells(run.said(2), words)


def test_an_author_who_does_not_answer_leaves_the_expert_alone() -> None:
    run = a_run({1: [NoReply("gone", lasts=True)]})
    state = run.go()
    assert state.declined[0][1].reason.startswith("the author did not answer")
    assert {kernel for kernel, _ in run.expert.seen} == {0}


def test_tokens_are_for_the_plain_kernel_alone() -> None:
    """Then no model is needed, and a budget that is used up ends nothing."""
    state = a_run({1: [FOUR]}, replace(PLAIN, tokens=50)).go()
    assert state.plain_kernel is not None
    assert len(decisions_of(state)) > 1


def decisions_of(state: object) -> list[Decided]:
    return [d for d in state.decided if d.decision == "refactor"]  # type: ignore[attr-defined]


def test_a_planner_may_decide_on_it_and_then_has_other_moves() -> None:
    script: dict[int, Sequence[Said]] = {
        1: [plan(moves=["vector"])],
        2: [plan(base="plain", what="Mind the sums.")],
        3: [FOUR],
        4: [plan(base="plain", what="")],
        5: [plan(moves=["vector"])],
        6: [plan("stop")],
    }
    run = a_run(script, Settings(evals=60, rounds=4), BOTH)
    state = run.go()
    tells(run.said(1), '`"base": "plain"`', "cannot read the kernel as it is")
    tells(run.said(2), "'vector' does not apply here")
    tells(run.said(3), "Mind: Mind the sums.")
    then = run.said(4)
    tells(then, "How a program reads template 1, the kernel written plainly", "this_is_kernel_4")
    tells(then, "Moves that a program can apply to template 1", "the kernel written plainly by a model")
    assert '`"base": "plain"`' not in then
    tells(run.said(5), "template 1 is the plain kernel already")
    assert [(c.id, c.parent, c.moves) for c in state.candidates] == [("1", "", ()), ("2", "1", ("vector",))]
    assert run.expert.seen == [(4, ("vector",))]
    tells(run.said(6), "template 2 from template 1, moves vector on template 1")


def test_a_planner_is_not_told_where_the_expert_reads_the_kernel() -> None:
    kernels = plain.PlainKernels(
        PROBLEM, None, lambda _p: MoveCatalogue(offers=tuple(map(MoveOffer, "abcd")))
    )  # type: ignore[arg-type]
    state = fold_records([Recorded(0, 0.0, started(Settings()))])
    assert kernels.words(state) == ""
    few = replace(kernels, of_problem=lambda _p: MoveCatalogue(offers=(MoveOffer("a"),)))
    tells(few.words(state), "has 1 moves")


@pytest.mark.parametrize(
    ("reply", "settings", "words"),
    [
        (PlanReply("refactor", "w", base="plain", moves=("vector",)), Settings(), "only rewritten"),
        (PlanReply("refactor", "w", base="plain"), Settings(moves="none"), "no moves are offered"),
    ],
)
def test_plans_that_cannot_be(reply: PlanReply, settings: Settings, words: str) -> None:
    kernels = plain.PlainKernels(PROBLEM, None, moves_on)  # type: ignore[arg-type]
    found = kernels.decision(reply, fold_records([Recorded(0, 0.0, started(settings))]))
    assert isinstance(found, Unusable)
    tells(found.reason, words)


def test_an_author_is_handed_what_the_expert_made_on_the_plain_kernel() -> None:
    script: dict[int, Sequence[Said]] = {
        1: [plan(base="plain")],
        2: [FOUR],
        3: [plan(base="expert", moves=["vector"], what="Keep the row.")],
        4: [file(a_draft({"VEC": [1, 2, 4], "KEEP": [0, 1]}))],
        5: [plan("stop")],
    }
    run = a_run(script, Settings(evals=60, rounds=4), BOTH)
    state = run.go()
    tells(run.said(4), "The template that a program made by these moves", "ON")
    assert run.expert.seen == [(4, ("vector",))]
    assert [(c.id, c.parent) for c in state.candidates] == [("1", ""), ("2", "1")]


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"model": ""}, "no model is named to rewrite it"),
        ({"model": "planner=mailbox"}, "no model is named to rewrite it"),
        ({"moves": "none"}, "with --moves none nobody makes any"),
        ({"strategy": "rewrite"}, "with --strategy rewrite nobody makes any"),
    ],
)
def test_what_does_not_go_together_is_refused(wish: dict[str, object], words: str) -> None:
    config = RunConfig(plain=True, **{"model": "mailbox", **wish})  # type: ignore[arg-type]
    with pytest.raises(BadInput) as refused:
        wishes.check_strategy_config(config, template_given=False)
    tells(str(refused.value), words)
    assert "--plain" in (refused.value.hint or "")


def test_it_is_for_kernels_in_c(tmp_path: Path) -> None:
    problem, _ = load_problem(FIXTURES / "scale")
    assert casting.is_for_expert(PROBLEM)
    assert not casting.is_for_expert(problem)
    with pytest.raises(BadInput, match="which does not read"):
        tunesmith.tune(FIXTURES / "scale", model="author=mailbox", plain=True, runs=str(tmp_path))


def test_what_goes_together() -> None:
    for model in ("author=mailbox", "mailbox"):
        wishes.check_strategy_config(RunConfig(plain=True, model=model), template_given=False)
