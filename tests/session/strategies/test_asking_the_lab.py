"""Models that ask the lab before they answer: in every role, within a budget, through kills."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.kernel_runs import KernelLab, KernelRun, a_run, change, kernel, stop, text
from tests.run.test_loop import PROBLEM, MemoryTexts, events
from tests.talkers import Said
from tunesmith.deliver.report import report_markdown
from tunesmith.run.budget import all_evaluations, evaluations
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Drafted, Measured, Recorded, Rejected, Replied, Settings, ToolUsed
from tunesmith.run.inquiries import on_host
from tunesmith.run.journal_lines import with_long_texts, without_long_texts
from tunesmith.run.plausible import fault_of
from tunesmith.run.report import build_report
from tunesmith.run.state import State, fold
from tunesmith.run.tools import ToolCall, ToolFound, ToolTask

ROLES = Settings(rounds=2, strategy="rewrite", tools=2)
ALONE = Settings(rounds=2, strategy="single", tools=2)


def ask(tool: str, file: str = "", **more: object) -> str:
    return json.dumps({"tool": tool, **more}) + (f"\n{file}" if file else "")


SCRIPT: dict[int, Sequence[Said]] = {
    1: [ask("reference", sizes={"rows": 2, "d": 8})],
    2: [change()],
    3: [ask("compile", kernel(1), listing=[1, 4])],
    4: [ask("time", kernel(1), workload="wide")],
    5: [ask("time", kernel(1))],  # one too many
    6: [kernel(1)],
    7: [ask("profile", base="1", workload="small")],
    8: [stop()],
}
SPEAKING: dict[int, Sequence[Said]] = {
    1: [ask("compile", kernel(1))],
    2: [kernel(1)],
    3: [ask("time", base="1")],
    4: [ask("shell")],
    5: [kernel(2)],
}


def used(run: KernelRun) -> list[ToolUsed]:
    return [e for e in events(run, ToolUsed) if isinstance(e, ToolUsed)]


def test_planner_and_author_ask_before_they_answer() -> None:
    run = a_run(SCRIPT, {"1": 2.0}, ROLES)
    state = run.go()
    assert [(e.number, e.tool) for e in used(run)] == [
        (1, "reference"),
        (3, "compile"),
        (4, "time"),
        (7, "profile"),
    ]
    assert [task.workload for task in run.lab.used] == ["small", "small", "wide", "small"]
    assert run.lab.used[1].template is not None
    assert run.lab.used[1].template.is_foreign, "what a model sends is vetted when it is built"
    assert run.lab.used[3].template is not None
    assert not run.lab.used[3].template.space.candidate.startswith("tool")
    assert "the lab on reference" in run.said(2)
    assert "1 question left." in run.said(2)
    assert "the lab on compile" in run.said(5)
    assert "the lab on time" in run.said(5)
    assert "no question left, of 2" in run.said(6)
    assert "the lab on time" in run.said(6)
    assert [c.id for c in state.candidates] == ["1"], "no candidate, no score"
    assert len(state.searched) == 1
    assert all_evaluations(state) - evaluations(state) == 2, "what was timed is an evaluation"
    measured = [e.outcome.seconds for e in events(run, Measured) if isinstance(e, Measured)]
    assert state.baseline is not None
    own = state.device_seconds - state.baseline.outcome.seconds - sum(measured)
    assert own == pytest.approx(0.5), "and had the device"


def test_the_report_has_what_was_asked() -> None:
    run = a_run(SCRIPT, {"1": 2.0}, ROLES)
    state = run.go()
    report = build_report(PROBLEM, state, templates=Templates(PROBLEM, state.device, None, run.texts))
    assert [(one.request, one.role, one.tool) for one in report.asked] == [
        (1, "planner", "reference"),
        (3, "author", "compile"),
        (4, "author", "time"),
        (7, "planner", "profile"),
    ]
    assert "request 3, the author, compile: the lab on compile at small" in report_markdown(report)


def test_one_conversation_asks_too() -> None:
    run = a_run(SPEAKING, {"1": 2.0, "2": 3.0}, ALONE)
    state = run.go()
    assert [e.tool for e in used(run)] == ["compile", "time"]
    assert "the lab on compile" in run.said(2)
    assert "known are compile, profile, reference, time" in run.said(5)
    assert [c.status for c in state.candidates] == ["searched", "searched"]


@pytest.mark.parametrize(("script", "settings"), [(SCRIPT, ROLES), (SPEAKING, ALONE)])
@pytest.mark.few(1)
def test_a_run_goes_on_after_any_event(script: dict[int, Sequence[Said]], settings: Settings) -> None:
    """Also between a question and its answer, which the lab then gives again."""
    speeds = {"1": 2.0, "2": 3.0}
    whole = a_run(script, speeds, settings)
    state, happened = whole.go(), whole.journal.records
    for cut in range(1, len(happened) + 1):
        again = a_run(script, speeds, settings, list(happened[:cut]), whole.texts)
        assert again.go() == state
        assert again.journal.records == happened, f"after event {cut}"
        done = sum(isinstance(r.event, ToolUsed) for r in happened[:cut])
        assert len(again.lab.used) == len(whole.lab.used) - done, "never done twice"


def test_without_tools_nobody_is_told_and_a_question_is_no_answer() -> None:
    script = {1: [ask("reference")], 2: [change()], 3: [ask("time", kernel(1))], 4: [stop()]}
    run = a_run(script, {"1": 2.0}, replace(ROLES, tools=0))
    run.go()
    assert not used(run)
    assert not run.lab.used
    assert "laboratory, " not in run.said(1)
    assert len(events(run, Drafted)) == 1, "the file is taken for what it is"


def test_what_a_model_sends_is_vetted_before_anything_is_built() -> None:
    bad = f"```\n{text(1)}#include <stdlib.h>\nint f() {{ return system(0); }}\n```\n"
    for question, words in (
        (ask("time", bad), "stdlib.h"),
        (ask("compile", "```\nno template at all\n```\n"), "not done"),
        (ask("time", base="7"), "known are original"),
        (ask("time", kernel(1), config={"VEC": 4}), "there is no parameter 'VEC'"),
        (ask("time", kernel(1), workload="moon"), "known are small, wide: name one of them"),
        (ask("time", base="7"), "name one of them as `base`, or send the whole file"),
    ):
        run = a_run({1: [change()], 2: [question], 3: [kernel(1)], 4: [stop()]}, {"1": 2.0}, ROLES)
        run.go()
        assert not run.lab.used, question
        assert words in run.said(3)


def test_nothing_runs_when_the_budget_is_used_up() -> None:
    settings = replace(ROLES, evals=1, rounds=1)
    script = {
        1: [change()],
        2: [ask("time", base="original")],
        3: [ask("time", base="original")],
        4: [kernel(1)],
    }
    run = a_run(script, {"1": 2.0}, settings)
    run.go()
    assert len(run.lab.used) == 1
    assert "the budget of 1 evaluation is used up" in run.said(4)
    assert "`compile` and `reference` are still there, or send your answer" in run.said(4)


def test_without_the_device_what_needs_none_is_answered_and_the_rest_waits() -> None:
    run = a_run(
        {1: [change()], 2: [ask("compile", kernel(1))], 3: [kernel(1)], 4: [stop()]}, {"1": 2.0}, ROLES
    )
    run.go()
    before, _ = prefix(run, ToolUsed)
    done: list[ToolTask] = []

    def use(task: ToolTask) -> ToolFound:
        done.append(task)
        return ToolFound("It builds.")

    def may(_state: State, _number: int, call: ToolCall) -> ToolTask | str:
        return "there is no workload 'moon'" if call.workload == "moon" else ToolTask(call.tool)

    def found(tool: str, **more: str) -> ToolUsed | None:
        return on_host(before, (2, ToolCall(tool, **more)), may, use)  # type: ignore[arg-type]

    assert found("compile") == ToolUsed(2, "compile", "It builds.")
    assert found("time") is None
    refused = found("time", workload="moon")
    assert refused is not None
    assert refused.answer == "This was not done: there is no workload 'moon'"
    assert on_host(before, None, may, use) is None
    assert [task.tool for task in done] == ["compile"]


class Wordy(KernelLab):
    def use(self, task: ToolTask) -> ToolFound:
        return ToolFound("x" * 10_000)


def test_answers_are_read_again_from_the_journal_long_ones_beside_it() -> None:
    run = a_run(SCRIPT, {"1": 2.0}, ROLES, lab=Wordy(speeds={"1": 2.0}))
    run.go()
    texts = MemoryTexts()
    for record in run.journal.records:
        short = replace(record, event=without_long_texts(record.event, texts.put))
        assert not isinstance(short.event, ToolUsed) or (short.event.answer == "" and short.event.digest)
        assert replace(short, event=with_long_texts(short.event, texts.get)) == record


def prefix(run: KernelRun, kind: type) -> tuple[State, list[Recorded]]:
    """Up to and without the first event of a kind."""
    place = next(n for n, r in enumerate(run.journal.records) if isinstance(r.event, kind))
    return fold(run.journal.records[:place]), run.journal.records[:place]


def test_what_cannot_have_happened_is_refused() -> None:
    run = a_run(SCRIPT, {"1": 2.0}, ROLES)
    run.go()
    before, happened = prefix(run, ToolUsed)
    at = happened[-1].at

    def refused(event: ToolUsed, state: State = before) -> str | None:
        return fault_of(state, Recorded(len(happened), at, event))

    own = used(run)[0]
    assert refused(own) is None
    assert "waits for the lab" in (refused(replace(own, number=9)) or "")
    assert "no -1" in (refused(replace(own, seconds=-1.0)) or "")
    after = fold([*happened, Recorded(len(happened), at, own)])
    assert "waits for the lab" in (refused(own, after) or "")
    unasked, _ = prefix(run, Replied)
    assert "waits for the lab" in (refused(own, unasked) or "")
    for number, record in enumerate(run.journal.records[1:], 1):
        assert fault_of(fold(run.journal.records[:number]), record) is None
    assert not events(run, Rejected)
