"""Who plays which role, the words they are given, and whether callers can still call what a model wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.samples import DEVICE, KERNEL, TEMPLATE, a_problem, a_template, started, state_of
from tests.test_loop import MemoryTexts
from tunesmith import casting
from tunesmith.agents.author import ModelAuthor
from tunesmith.agents.planner import ModelPlanner
from tunesmith.agents.prompting import own_prompt
from tunesmith.core.candidates import Templates
from tunesmith.core.errors import BadInput
from tunesmith.expert.planner import ExpertPlanner
from tunesmith.models.mailbox import Mailbox
from tunesmith.models.recording import Recorder
from tunesmith.roles import catalogue_of, move_author, signature_fault

PROBLEM = a_problem()
TEMPLATES = Templates(PROBLEM, DEVICE, None, MemoryTexts())


def cast(spec: str, tmp_path: Path, **more: str) -> casting.Cast:
    return casting.Cast(spec, casting.prompts_for(spec, ""), tmp_path, **more)  # type: ignore[arg-type]


def test_the_expert_plays_what_no_model_is_named_for(tmp_path: Path) -> None:
    assert started is not None
    both = casting.talking(PROBLEM, TEMPLATES, state_of(), cast("mailbox", tmp_path))
    assert isinstance(both.planner, ModelPlanner)
    assert isinstance(both.writer, ModelAuthor)
    assert both.tester is not None
    assert both.planner.analyst is not None
    plans = casting.talking(PROBLEM, TEMPLATES, state_of(), cast("planner=mailbox", tmp_path))
    assert isinstance(plans.planner, ModelPlanner)
    assert (plans.writer, plans.tester, plans.planner.writes) == (None, None, False)
    writes = casting.talking(PROBLEM, TEMPLATES, state_of(), cast("author=mailbox", tmp_path))
    assert isinstance(writes.planner, ExpertPlanner)
    assert writes.writer is not None
    none = casting.talking(PROBLEM, TEMPLATES, state_of(), cast("", tmp_path))
    assert isinstance(none.planner, ExpertPlanner)
    assert none.conversation.models == {}


def test_a_mailbox_is_in_the_run_and_can_be_recorded(tmp_path: Path) -> None:
    talk = casting.talking(PROBLEM, TEMPLATES, state_of(), cast("author=mailbox", tmp_path, record="kept"))
    model = talk.conversation.models["author"]
    assert isinstance(model, Recorder)
    assert isinstance(model.model, Mailbox)
    assert model.model.folder == tmp_path / "mailbox"


def test_prompts_of_the_user_take_the_place_of_ours(tmp_path: Path) -> None:
    (tmp_path / "author.md").write_text("Write well.")
    found = casting.prompts_for("mailbox", str(tmp_path))
    assert found["author"] == "Write well."
    assert found["planner"] == own_prompt("planner")
    assert casting.prompts_for("author=mailbox", "").keys() == {"author"}
    with pytest.raises(BadInput, match="there is no folder"):
        casting.prompts_for("mailbox", str(tmp_path / "none"))


def test_moves_are_offered_with_what_they_do() -> None:
    found = catalogue_of(PROBLEM, move_author(PROBLEM), DEVICE)
    assert found.about["vector"].startswith("Wide loads and stores")
    assert {name for name, _ in found.refused} | set(found.available)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("int rows, int d)", "int d, int rows)", "in another order"),
        (", int d)", ")", "takes 3 arguments, 4 are given"),
        ("__global const float* x", "__global const int* x", "x is int32 in the kernel, x is float32"),
        ("", "", None),
    ],
)
def test_arguments_that_callers_see_stay(old: str, new: str, words: str | None) -> None:
    assert KERNEL.split("{")[0] in TEMPLATE
    fault = signature_fault(PROBLEM, a_template(PROBLEM, TEMPLATE.replace(old, new, 1) if old else TEMPLATE))
    assert (fault is None) if words is None else words in (fault or "")


def test_a_workspace_may_come_behind_them() -> None:
    with_one = TEMPLATE.replace(
        "// [launch]\n", '// [workspace]\n// sums = { type = "float32*", shape = ["rows"] }\n// [launch]\n'
    )
    behind = with_one.replace("int d)", "int d, __global float* sums)").replace(
        '// block = ["BLOCK"]\n', '// block = ["BLOCK"]\n// args = ["out", "x", "rows", "d", "sums"]\n'
    )
    assert signature_fault(PROBLEM, a_template(PROBLEM, behind)) is None
    first = behind.replace('"out", "x", "rows", "d", "sums"', '"sums", "out", "x", "rows", "d"')
    assert "must stay (out, x, rows, d)" in (signature_fault(PROBLEM, a_template(PROBLEM, first)) or "")
