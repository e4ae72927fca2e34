"""Who plays which role, the words they are given, and whether callers can still call what a model wrote."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.run.test_loop import MemoryTexts
from tests.running import EXAMPLES
from tests.samples import DEVICE, KERNEL, TEMPLATE, a_problem, a_template, started, state_of
from tests.talkers import Scripted, plan
from tests.wording import says
from tunesmith.agents.mailbox import Mailbox
from tunesmith.agents.prompting import own_prompt
from tunesmith.agents.roles import Analysed, ModelAuthor, ModelPlanner, RewritePlanner
from tunesmith.agents.single import SinglePlanner, SingleWriter
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.base.errors import BadInput
from tunesmith.expert.planning import ExpertPlanner
from tunesmith.problem.template_file import parse_template
from tunesmith.run.candidates import Templates
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Decided, Drafted, Event, Recorded, Replied, Requested, Settings
from tunesmith.run.state import apply_record, fold_records
from tunesmith.session import roles
from tunesmith.session.problems import load_problem
from tunesmith.session.roles import catalogue_of, signature_fault

TWO_LAUNCHES = """\
// /// tunesmith
// [params]
// BLOCK = [1, 64]
// [default]
// BLOCK = 64
// [workspace]
// sums = { type = "float32*", shape = ["rows"] }
// [[launch]]
// entry = "total"
// args = ["input", "sums", "rows", "d"]
// grid = ["ceildiv(rows, BLOCK)"]
// block = ["BLOCK"]
// [[launch]]
// entry = "rmsnorm"
// args = ["out", "input", "weight", "eps", "rows", "d", "sums"]
// grid = ["ceildiv(rows, BLOCK)"]
// block = ["BLOCK"]
// ///
#ifndef BLOCK
#define BLOCK 64
#endif
__kernel void total(__global const float *input, __global float *sums, int rows, int d) { sums[0] = BLOCK; }
__kernel void rmsnorm(__global float *out, __global const float *input, __global const float *weight,
                      float eps, int rows, int d, __global const float *sums) { out[0] = sums[0]; }
"""
PROBLEM = a_problem()
TEMPLATES = Templates(PROBLEM, DEVICE, None, MemoryTexts())


def cast(spec: str, tmp_path: Path, **more: str) -> roles.RoleContext:
    return roles.RoleContext(spec, roles.prompts_for(spec, ""), tmp_path, **more)  # type: ignore[arg-type]


def test_the_expert_plays_what_no_model_is_named_for(tmp_path: Path) -> None:
    assert started is not None
    both = roles.create_talking(PROBLEM, TEMPLATES, state_of(), cast("mailbox", tmp_path))
    assert isinstance(both.planner, Analysed)
    assert isinstance(both.planner.planner, ModelPlanner)
    assert both.planner.planner.analyst is both.planner.analyst, "the planner is told what it said"
    assert isinstance(both.writer, ModelAuthor)
    assert both.tester is not None
    plans = roles.create_talking(PROBLEM, TEMPLATES, state_of(), cast("planner=mailbox", tmp_path))
    assert isinstance(plans.planner, ModelPlanner)
    assert (plans.writer, plans.tester, plans.planner.writes) == (None, None, False)
    writes = roles.create_talking(PROBLEM, TEMPLATES, state_of(), cast("author=mailbox", tmp_path))
    assert isinstance(writes.planner, ExpertPlanner)
    assert writes.writer is not None
    none = roles.create_talking(PROBLEM, TEMPLATES, state_of(), cast("", tmp_path))
    assert isinstance(none.planner, ExpertPlanner)
    assert none.conversation.models == {}


def test_an_analyst_is_asked_whoever_plans(tmp_path: Path) -> None:
    """A model that writes reads it, and so do those who read the report."""
    for spec in ("analyst=mailbox,author=mailbox", "analyst=mailbox"):
        roles.prepare_models(spec)
        planner = roles.create_talking(PROBLEM, TEMPLATES, state_of(), cast(spec, tmp_path)).planner
        assert isinstance(planner, Analysed)
        assert isinstance(planner.planner, ExpertPlanner)


def test_a_mailbox_is_in_the_run(tmp_path: Path) -> None:
    talk = roles.create_talking(PROBLEM, TEMPLATES, state_of(), cast("author=mailbox", tmp_path))
    model = talk.conversation.models["author"]
    assert isinstance(model, Mailbox)
    assert model.folder == tmp_path / "mailbox"


def test_a_recording_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot write the recording"):
        roles.write_recording(tmp_path / "file", state_of())
    roles.write_recording(tmp_path / "folder", state_of())
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["about.json"]


def test_prompts_of_the_user_take_the_place_of_ours(tmp_path: Path) -> None:
    (tmp_path / "author.md").write_text("Write well.")
    found = roles.prompts_for("mailbox", str(tmp_path))
    assert found["author"] == "Write well."
    assert found["planner"] == own_prompt("planner")
    assert roles.prompts_for("author=mailbox", "").keys() == {"author"}
    with pytest.raises(BadInput, match="there is no folder"):
        roles.prompts_for("mailbox", str(tmp_path / "none"))


def test_prompts_that_nobody_would_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "plannner.md").write_text("Plan well.")
    with pytest.raises(BadInput, match=r"it has plannner\.md"):
        roles.prompts_for("mailbox", str(tmp_path))
    (tmp_path / "single.md").write_text("Of another strategy.")
    notes: list[str] = []
    roles.prompts_for("mailbox", str(tmp_path), note=notes.append)
    assert len(notes) == 1
    assert notes[0].startswith("--prompts: nobody reads plannner.md; what is read is analyst.md, author.md, ")
    (tmp_path / "plannner.md").unlink()
    roles.prompts_for("mailbox", str(tmp_path), note=notes.append)
    assert len(notes) == 1, "nothing is said of what is another strategy's"
    assert roles.prompts_for("mailbox", str(tmp_path))["planner"] == own_prompt("planner")
    (tmp_path / "planner.md").write_text(" \n")
    with pytest.raises(BadInput, match="this file is empty") as refused:
        roles.prompts_for("mailbox", str(tmp_path))
    assert refused.value.where == str(tmp_path / "planner.md")


def test_a_recording_that_is_not_there_is_refused_before_a_run(tmp_path: Path) -> None:
    roles.prepare_models(f"recorded:{tmp_path}")
    with pytest.raises(BadInput, match="there is no folder") as refused:
        roles.prepare_models(f"author=recorded:{tmp_path / 'gone'}")
    says(refused.value.hint, "--record DIR", "mailbox", "current folder")


def test_a_strategy_has_its_own_roles_and_words(tmp_path: Path) -> None:
    (tmp_path / "author_rewrite.md").write_text("Write one.")
    (tmp_path / "author.md").write_text("Write many.")
    own = roles.prompts_for("mailbox", str(tmp_path), "rewrite")
    assert own["author"] == "Write one."
    assert own["planner"] == own_prompt("planner_rewrite")
    assert own["tester"] == own_prompt("tester")
    assert roles.prompts_for("mailbox", "", "single") == {"single": own_prompt("single")}
    with pytest.raises(BadInput, match="there is no folder") as refused:
        roles.prompts_for("mailbox", str(tmp_path / "none"), "single")
    assert refused.value.hint == "it may hold single.md"


@pytest.mark.parametrize(("spec", "extra"), [("mailbox", True), ("planner=mailbox,author=mailbox", False)])
def test_who_rewrites(spec: str, extra: bool, tmp_path: Path) -> None:
    prompts = roles.prompts_for(spec, "", "rewrite")
    talk = roles.create_talking(
        PROBLEM, TEMPLATES, state_of(), roles.RoleContext(spec, prompts, tmp_path, strategy="rewrite")
    )
    planner = talk.planner.planner if isinstance(talk.planner, Analysed) else talk.planner
    assert isinstance(planner, RewritePlanner)
    assert isinstance(talk.writer, ModelAuthor)
    assert talk.writer.concrete
    assert (talk.tester is not None, planner.analyst is not None) == (extra, extra)
    assert isinstance(talk.planner, Analysed) == extra
    assert "it has parameters" in (talk.writer.faults(a_template(PROBLEM, TEMPLATE)) or "")


@pytest.mark.parametrize("spec", ["mailbox", "single=mailbox"])
def test_one_conversation_has_one_model(spec: str, tmp_path: Path) -> None:
    prompts = roles.prompts_for(spec, "", "single")
    talk = roles.create_talking(
        PROBLEM, TEMPLATES, state_of(), roles.RoleContext(spec, prompts, tmp_path, strategy="single")
    )
    assert isinstance(talk.planner, SinglePlanner)
    assert isinstance(talk.writer, SingleWriter)
    assert list(talk.conversation.models) == ["single"]
    assert talk.tester is None


def test_moves_are_offered_with_what_they_do() -> None:
    problem, _ = load_problem(EXAMPLES / "opencl" / "softmax")
    found = catalogue_of(problem, replace(DEVICE, kind="gpu"))
    vector = found.offer("vector")
    assert vector.about.startswith("Wide loads and stores")
    assert vector.place == "arrays input, out"
    assert vector.parameters[0].startswith("VEC = [1, 2, 4")
    assert "wide_access" in vector.remedies
    assert "i below d (line 14)" in found.offer("items").place
    assert found.offer("bake").place == "d"
    assert "Line 18 reads again what line 14 has read: input." in found.reading
    assert dict(found.refused)["rows"] == "the work is in rows already"
    assert found.offer("rows").place == "", "it does not apply"


def test_a_kernel_beyond_the_expert_is_offered_local_moves_with_their_places() -> None:
    problem, _ = load_problem(EXAMPLES / "cuda" / "silu_and_mul")
    body = problem.kernel.text.index("{", problem.kernel.text.index("__global__"))
    text = f'{problem.kernel.text[: body + 1]} asm volatile("membar.gl;"); {problem.kernel.text[body + 1 :]}'
    device = absent_device("H200")
    assert device is not None
    found = catalogue_of(replace(problem, kernel=replace(problem.kernel, text=text)), device)
    assert "is beyond the expert" in found.reading[0]
    assert found.offer("restrict").place == "pointers out, input"
    assert found.offer("unroll").place.startswith("inner loops, line ")
    assert found.offer("unroll").about == "Unroll pragmas on the kernel's inner loops."


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("int rows, int d)", "int d, int rows)", "in another order"),
        (", int d)", ")", "takes 3 arguments, 4 are given"),
        (
            "__global const float* x",
            "__global const int* x",
            "x is int32 in the kernel, x is float32 in problem",
        ),
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


def test_kernels_may_run_one_after_another() -> None:
    """As the author's prompt says it: each with its arguments by name, and a workspace between them."""
    problem, _ = load_problem(EXAMPLES / "opencl" / "rmsnorm")
    template = parse_template(TWO_LAUNCHES, path="template.cl", problem=problem)
    assert [one.entry for one in template.launches] == ["total", "rmsnorm"]
    assert signature_fault(problem, template) is None
    wrong = TWO_LAUNCHES.replace('"rows", "d", "sums"]', '"rows", "sums"]')
    found = signature_fault(problem, parse_template(wrong, path="template.cl", problem=problem))
    assert found is not None
    assert "rmsnorm takes 7 arguments, 6 are given" in found


def test_moves_that_a_model_plans_are_applied_by_the_experts_author(tmp_path: Path) -> None:
    problem, _ = load_problem(EXAMPLES / "opencl" / "softmax")
    templates = Templates(problem, DEVICE, None, MemoryTexts())
    state = fold_records([Recorded(0, 0.0, started(Settings(models="planner=mailbox")))])
    talk = roles.create_talking(problem, templates, state, cast("planner=mailbox", tmp_path))
    said = Scripted({1: [plan(moves=["vector", "lanes"], what="")]})
    talk.conversation.models = {"planner": said}
    events: list[Event] = [talk.decided(state)]
    while True:
        state = apply_record(state, Recorded(len(events), 0.0, events[-1]))
        following = talk.next_event(state)
        if following is None:
            break
        events.append(following)
    assert [type(e) for e in events] == [Requested, Replied, Decided, Drafted]
    drafted = events[-1]
    assert isinstance(drafted, Drafted)
    assert (set(drafted.moves), drafted.author) == ({"vector", "lanes"}, "")
    text = templates.text(state.candidates[-1])
    assert "// VEC   = [1, 2, 4" in text
    assert "// ITEMS" not in text, "nobody asked for it"
    asked = said.asked[0].messages[1].text
    assert "- vector: Wide loads and stores" in asked
    assert "Where: arrays input, out." in asked
    says(asked, "- not here: rows", "in rows already")


def test_an_effort_is_for_models() -> None:
    with pytest.raises(BadInput, match="and none is named") as refused:
        roles.check_strategy_config(RunConfig(effort="high"), template_given=False)
    assert "or name a model" in (refused.value.hint or "")
    roles.check_strategy_config(RunConfig(model="mailbox", effort="high"), template_given=False)
