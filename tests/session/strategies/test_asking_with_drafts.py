"""Models that ask the lab while several drafts are written side by side, of templates and of kernels; and
through kills between a question and its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from tests.drafts import a_draft
from tests.kernel_runs import KernelRun, change, kernel, shown, stop
from tests.kernel_runs import a_run as a_kernel_run
from tests.run.test_drafts import BROAD, MANY, NARROW
from tests.run.test_loop import events
from tests.run.test_talking import TalkingRun, model_of
from tests.run.test_talking import a_run as a_template_run
from tests.session.strategies.test_asking_the_lab import ask
from tests.talkers import Said, file, plan, plans
from tunesmith.agents import tools
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Drafted, Event, Requested, Settings, ToolUsed
from tunesmith.run.talking import Talking

TEMPLATES = Settings(evals=60, rounds=1, drafts=2, tools=2)
KERNELS = Settings(rounds=1, strategy="rewrite", drafts=2, tools=2)
WRONG = file(a_draft({"FAST": [7], "UNROLL": MANY}))
# Both authors ask, the first twice; the second sends what cannot be read in between.
OF_TEMPLATES: dict[int, Sequence[Said]] = {
    1: [ask("compile", base="original")],
    2: [plans("Narrow.", "Broad.")],
    3: [ask("compile", file(NARROW))],
    4: [ask("time", file(BROAD), workload="wide", config={"UNROLL": 3})],
    5: [ask("reference", sizes={"rows": 2, "d": 8})],
    6: ["I would rather talk about it."],
    7: [file(NARROW)],
    8: [file(BROAD)],
    9: [plan("stop")],
}
OF_KERNELS: dict[int, Sequence[Said]] = {
    1: [change(plans=[{"why": "one", "what": "Wide."}, {"why": "two", "what": "Deep."}])],
    2: [ask("compile", kernel(1))],
    3: [kernel(2)],
    4: [ask("time", kernel(1))],
    5: [kernel(1)],
    6: [stop()],
}
SPEEDS = {"1": 2.0, "2": 3.0}


@dataclass
class AskingRun(TalkingRun):
    def talk(self, templates: Templates) -> Talking:
        return replace(super().talk(templates), tools=tools.asked)


def of_templates(records: list | None = None, kept: object = None) -> AskingRun:  # type: ignore[type-arg]
    own = {"settings": TEMPLATES, "records": records, "kept": kept, "kind": AskingRun}
    return a_template_run(OF_TEMPLATES, **own)  # type: ignore[arg-type, return-value]


def of_kernels(records: list | None = None, kept: object = None) -> KernelRun:  # type: ignore[type-arg]
    return a_kernel_run(OF_KERNELS, SPEEDS, KERNELS, records, kept)  # type: ignore[arg-type]


RUNS = {"templates": of_templates, "kernels": of_kernels}


def asked(run: TalkingRun | KernelRun) -> list[tuple[int, str, int]]:
    found = [e.request for e in events(run, Requested) if isinstance(e, Requested)]
    return [(r.number, r.role, r.branch) for r in found]


def used(run: TalkingRun | KernelRun) -> list[tuple[int, str]]:
    return [(e.number, e.tool) for e in events(run, ToolUsed) if isinstance(e, ToolUsed)]


def said(run: TalkingRun | KernelRun, number: int) -> str:
    model = model_of(run) if isinstance(run, TalkingRun) else run.model
    return next(shown(request) for request in model.asked if request.number == number)


def test_both_authors_of_templates_ask_and_each_is_told_its_own_answers() -> None:
    run = of_templates()
    state = run.go()
    assert used(run) == [(1, "compile"), (3, "compile"), (4, "time"), (5, "reference")]
    assert asked(run)[:8] == [
        (1, "planner", 0),
        (2, "planner", 0),
        *((3, "author", 0), (4, "author", 1)),
        *((5, "author", 0), (6, "author", 1)),
        *((7, "author", 0), (8, "author", 1)),
    ]
    assert "the lab on compile" in said(run, 5)
    assert "the lab on time" not in said(run, 5)
    assert "the lab on time at wide" in said(run, 8)
    assert "no JSON" in said(run, 8) or "fence" in said(run, 8), "and what was wrong with the reply since"
    (timed,) = [task for task in run.lab.used if task.tool == "time"]
    assert timed.config is not None
    assert timed.config["UNROLL"] == 3
    assert [(c.branch, c.status) for c in state.candidates] == [(0, "searched"), (1, "searched")]


def test_one_author_of_kernels_asks_while_the_other_has_written() -> None:
    run = of_kernels()
    state = run.go()
    assert used(run) == [(2, "compile"), (4, "time")]
    assert [(b, n) for n, role, b in asked(run) if role == "author"] == [(0, 2), (1, 3), (0, 4), (0, 5)]
    assert sorted((c.branch, c.status) for c in state.candidates) == [(0, "searched"), (1, "searched")]
    kinds = [type(e) for e in events(run, ToolUsed) + events(run, Drafted)]
    assert kinds.count(Drafted) == 2


@pytest.mark.parametrize("kind", [pytest.param("templates", marks=pytest.mark.long), "kernels"])
def test_a_run_goes_on_after_any_event(kind: str) -> None:
    """Also in the middle of a question: what has been answered is not done again, what has not is."""
    make: Mapping[str, object] = RUNS
    whole = make[kind]()  # type: ignore[operator]
    state, happened = whole.go(), whole.journal.records
    kinds: list[type[Event]] = [type(record.event) for record in happened]
    assert ToolUsed in kinds
    for cut in range(1, len(happened) + 1):
        again = make[kind](list(happened[:cut]), whole.texts)  # type: ignore[operator]
        assert again.go() == state
        assert again.journal.records == happened, f"after event {cut}"
        done = sum(isinstance(r.event, ToolUsed) for r in happened[:cut])
        assert len(again.lab.used) == len(whole.lab.used) - done, "never done twice"
