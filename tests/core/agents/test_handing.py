"""An author who is handed the expert's template and changes one thing in it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.run.test_loop import DEVICE, PROBLEM, MemoryTexts
from tests.kernel_runs import shown
from tests.running import EXAMPLES
from tests.samples import started
from tests.talkers import Scripted, file, plan
from tunesmith.agents import roles
from tunesmith.agents.prompting import PlanReply, Unusable
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Decided, Drafted, Event, Recorded, Settings
from tunesmith.run.ports import Declined, MoveCatalogue, MoveOffer, Refactoring, Written
from tunesmith.run.state import apply_record, fold_records
from tunesmith.session import roles as casting
from tunesmith.session.problems import load_problem

MOVES = MoveCatalogue(offers=(MoveOffer("wide"), MoveOffer("lanes")))


def a_plan(**more: object) -> PlanReply:
    given: dict[str, object] = {"what": "Keep the row.", "moves": ("wide",), "base": "expert", **more}
    return PlanReply("refactor", "both", **given)  # type: ignore[arg-type]


def test_a_plan_for_both() -> None:
    found = roles.decide_handover(a_plan(moves=("wide", "wide")), MOVES, writes=True)
    assert found == Decided("refactor", "both", ("wide",), what="Keep the row.", handed=True)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"moves": ()}, "one of them is empty"),
        ({"what": " "}, "one of them is empty"),
        ({"moves": ("split",)}, "'split' is no move that applies here; available are: wide, lanes"),
    ],
)
def test_a_plan_that_lacks_one_of_the_two(more: dict[str, object], words: str) -> None:
    found = roles.decide_handover(a_plan(**more), MOVES, writes=True)
    assert isinstance(found, Unusable)
    assert words in found.reason
    assert isinstance(roles.decide_handover(a_plan(), MOVES, writes=False), Unusable)


def test_planners_are_told_only_where_both_are_there() -> None:
    assert '"base": "expert"' in roles.expert_words(MOVES, writes=True)
    assert roles.expert_words(MOVES, writes=False) == ""
    assert roles.expert_words(MoveCatalogue(), writes=True) == ""


class Declines:
    def write(self, task: Refactoring, problem: object, device: object) -> Written | Declined:
        return Declined("it is read by nobody")


def test_where_the_expert_has_none_the_author_is_told_why() -> None:
    decision = Decided("refactor", "both", ("wide",), what="Keep it.", handed=True)
    (part,) = roles.handed_parts(decision, Declines(), PROBLEM, DEVICE)  # type: ignore[arg-type]
    assert "There is none: it is read by nobody." in part.text
    (nobody,) = roles.handed_parts(decision, None, PROBLEM, DEVICE)
    assert "nobody applies moves" in nobody.text
    assert roles.handed_parts(replace(decision, handed=False), None, PROBLEM, DEVICE) == []


def test_the_author_has_the_experts_template_and_the_plan(tmp_path: Path) -> None:
    """From the planner's words to a draft, with the real expert."""
    problem, _ = load_problem(EXAMPLES / "opencl" / "softmax")
    templates = Templates(problem, DEVICE, None, MemoryTexts())
    spec = "planner=mailbox,author=mailbox"
    state = fold_records([Recorded(0, 0.0, started(Settings(models=spec)))])
    cast = casting.RoleContext(spec, casting.prompts_for(spec, ""), tmp_path)
    talk = casting.create_talking(problem, templates, state, cast)
    said = Scripted({1: [plan(moves=["vector"], what="Add ROWS.", base="expert")], 2: [file("int mine;")]})
    talk.conversation.models = {"planner": said, "author": said}
    events: list[Event] = [talk.decided(state)]
    while True:
        state = apply_record(state, Recorded(len(events), 0.0, events[-1]))
        following = talk.next_event(state)
        if following is None:
            break
        events.append(following)
    decided = next(e for e in events if isinstance(e, Decided))
    assert (decided.handed, decided.by_moves, decided.moves) == (True, False, ("vector",))
    assert '"base": "expert"' in shown(said.asked[0])
    told = shown(said.asked[1])
    assert "The template that a program made by these moves" in told
    assert re.search(r"// VEC += \[1, 2, 4", told)
    assert "What to change: Add ROWS." in told
    assert "names, values and places are a program's proposal" not in told
    drafted = events[-1]
    assert isinstance(drafted, Drafted)
    assert drafted.author, "a model wrote it: it is vetted"
    assert templates.text(state.candidates[-1]) == "int mine;\n"
