"""Direct rewriting with several kernels of a round: the best that is right is gone on from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kernel_runs import a_run, goes_on_after_any_event, kernel, stop
from tests.run.test_loop import delivered, events
from tests.talkers import Said
from tests.wording import says
from tunesmith.errors import BadInput
from tunesmith.models import first_authors, parse_authors, parse_models, placed, with_effort
from tunesmith.models.letters import Mailbox
from tunesmith.problem.plan import Status
from tunesmith.run.config import RunConfig
from tunesmith.run.dialogue import NoReply
from tunesmith.run.events import Decided, Settings, Stopped
from tunesmith.session.strategies import casting, wishes
from tunesmith.session.strategies.wishes import drafts_of
from tunesmith.space.params import Config

TWO = Settings(rounds=3, strategy="rewrite", drafts=2)


def several(*what: str) -> str:
    plans = [{"why": "x", "what": one} for one in what]
    return json.dumps({"decision": "rewrite", "why": "two ways", "plans": plans})


# The first round's second kernel is broken and mended; of the second round the first does not pay.
STORY: dict[int, Sequence[Said]] = {
    1: [NoReply("busy"), several("Wide.", "Split.")],
    2: [kernel(1)],
    3: [kernel(2)],
    4: [kernel(3)],
    5: [several("Keep.", "Hint.")],
    6: [kernel(4)],
    7: [kernel(5)],
    8: ["no plan at all"],
    9: [stop()],
}
SPEEDS: dict[str, float | Status] = {"1": 2.0, "2": Status.WRONG, "3": 3.0, "4": 2.5, "5": 4.0}


def test_each_is_measured_and_the_best_is_gone_on_from() -> None:
    run = a_run(STORY, SPEEDS, TWO)
    state = run.go()
    assert [(c.id, c.branch, c.parent, c.status) for c in state.candidates] == [
        ("1", 0, "", "searched"),
        ("2", 1, "", "rejected"),
        ("3", 1, "2", "searched"),
        ("4", 0, "3", "searched"),
        ("5", 1, "3", "searched"),
    ]
    assert delivered(state).general == Config((), "5")
    assert state.stopped == Stopped("done")
    says(run.said(2), "up to 2 kernels", "side by side")
    later = run.said(6)
    says(later, "left behind: 2.00×, kernel 3 of the same round has 3.00×")
    says(later, "Go on from kernel 3.")


@pytest.mark.long
def test_a_run_with_several_kernels_goes_on_after_any_event() -> None:
    goes_on_after_any_event(STORY, SPEEDS, TWO, frozenset({"Searched"}))


def test_where_nobody_plans_each_author_chooses() -> None:
    gone = NoReply("gone", lasts=True)
    run = a_run({1: [gone], 2: [kernel(1)], 3: [kernel(2)], 4: [stop()]}, {"1": 2.0, "2": 1.5}, TWO)
    run.go()
    first = events(run, Decided)[0]
    assert isinstance(first, Decided)
    assert len(first.plans) == 2
    says(run.said(3), "1 other by this plan")


# -- who writes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("author=openai:a+openai:b", ["a", "b"]),
        ("planner=mailbox,author=openai:a+anthropic:b+mailbox:c", ["a", "b", "c"]),
        ("openai:a+openai:b@http://h/v1", ["a", "b"]),
        ("openai:command-r+", ["command-r+"]),
        ("openai:a+b", ["a+b"]),
        ("planner=openai:a", []),
        ("author=expert", []),
    ],
)
def test_authors_that_are_named_side_by_side(text: str, names: list[str]) -> None:
    assert [spec.rest for spec in parse_authors(text)] == names
    if names:
        assert parse_models(text)["author"].rest == names[0]
        assert [spec.rest for spec in parse_authors(first_authors(text))] == names[:1]
    assert drafts_of(RunConfig(model=text)) == max(1, len(names))


def test_folders_of_several_are_placed_one_by_one() -> None:
    assert placed("author=mailbox:a+mailbox:b", "p/x") == "author=mailbox:a/p/x+mailbox:b/p/x"
    assert with_effort("author=openai:a+openai:b#low", "high") == "author=openai:a#high+openai:b#low"
    assert [spec.effort for spec in parse_authors("openai:a#high+openai:b#low")] == ["high", "low"]


def test_only_authors_are_several() -> None:
    with pytest.raises(BadInput, match="only authors can be several, and the planner is") as refused:
        parse_models("planner=openai:a+openai:b")
    assert refused.value.hint


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"drafts": 2}, "the expert has one plan a round"),
        ({"drafts": 2, "model": "tester=mailbox"}, "the expert has one plan a round"),
        ({"drafts": 2, "model": "mailbox", "strategy": "single"}, "one kernel at a time"),
        ({"drafts": 2, "model": "mailbox", "strategy": "rewrite", "linear": True}, "a chain goes on from"),
        (
            {"drafts": 1, "model": "mailbox:a+mailbox:b"},
            "2 models are named to write, and a round has 1 draft",
        ),
        ({"model": "mailbox:a+mailbox:b", "strategy": "single"}, "one conversation with one model"),
    ],
)
def test_drafts_that_nobody_could_write_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput) as refused:
        wishes.check(RunConfig(**given), template_given=False)  # type: ignore[arg-type]
    says(str(refused.value), words)
    assert refused.value.hint


@pytest.mark.parametrize("given", [{"effort": "high"}])
def test_what_only_models_use_needs_one(given: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="and none is named") as refused:
        wishes.check(RunConfig(**given), template_given=False)  # type: ignore[arg-type]
    assert "or name a model" in (refused.value.hint or "")
    wishes.check(RunConfig(model="mailbox", **given), template_given=False)  # type: ignore[arg-type]


def test_each_branch_has_the_model_at_its_place(tmp_path: Path) -> None:
    from tests.session.strategies.test_casting import PROBLEM, TEMPLATES, cast, state_of
    from tunesmith.run.dialogue import Request

    own = cast("author=mailbox:a+mailbox:b", tmp_path)
    talk = casting.talking(PROBLEM, TEMPLATES, state_of(), own)
    found = [talk.conversation.model_for(Request(1, "author", (), "file", branch=n)) for n in range(3)]
    assert [model.folder.name for model in found if isinstance(model, Mailbox)] == ["a", "b", "a"]
