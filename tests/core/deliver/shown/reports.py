"""The pages of reports, on paper and on a terminal, and what is told of a run while it goes on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from unittest import mock

from rich.console import Console, Group

from tests.core.deliver.reports import EXPLAINED, FULL, KEPT, REPORT, ROUND, UNFINISHED, exchange, texts
from tests.samples import DEVICE, started
from tunesmith.backends.fake import FakeBackend
from tunesmith.deliver.pages import terminal as display
from tunesmith.deliver.pages.page import (
    PageKernel,
    PageTexts,
    WritingStep,
    plot_files,
    report_html,
    report_json,
    report_markdown,
    report_page,
)
from tunesmith.deliver.pages.terminal import Progress, event_line, render_standing, report_text
from tunesmith.problem.plan import Status
from tunesmith.run import events as ev
from tunesmith.run.budget import BudgetUse
from tunesmith.run.outcome import Outcome, Result, Timing, Trial
from tunesmith.run.progress import RunProgress
from tunesmith.run.report import Report
from tunesmith.run.state import State, apply_record
from tunesmith.space.configset import Config
from tunesmith.space.space import Condition, Focus

Pages = Iterator[tuple[str, bytes]]
GO_ON = "tunesmith resume 'my run'"
PLAIN = {"TERM": "xterm", "COLUMNS": "100", "LINES": "24"}


def pages() -> Pages:
    for name, report in KEPT.items():
        yield f"{name}/report.md", report_markdown(report).encode()
        yield f"{name}/report.json", report_json(report)
        yield f"{name}/notebook.html", report_html(report, "my run", GO_ON).encode()
        yield f"{name}/report.html", body(report_page(report)).encode()
        yield f"{name}/terminal.txt", terminal(report).encode()
        yield from ((f"{name}/{plot}", data) for plot, data in plot_files(report).items())
    for name, (report, beside) in BESIDE.items():
        yield f"{name}/report.html", report_page(report, beside).encode()
    yield "progress.txt", "".join(f"-- {name}\n{told(name)}" for name in PROGRESS).encode()
    yield "standing.txt", "".join(f"-- {n}\n{drawn(*shown)}" for n, shown in STANDING.items()).encode()


def body(page: str) -> str:
    """Without the style, which is the same everywhere."""
    return re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)


def terminal(report: Report) -> str:
    with mock.patch.dict(os.environ, PLAIN):
        short, full = (
            report_text(report, "my run", GO_ON, stream=StringIO(), full=full) for full in (False, True)
        )
    return f"{short}\n-- in full\n{full}\n"


_ALIKE = "".join(f"same{i};\n" for i in range(200))
_ROUNDS = (replace(ROUND, number=1, reason="it waits"), replace(ROUND, number=2, moves=("unroll",)))
_AFTER = PageKernel(
    "tuned/k.cl",
    "BLOCK=64",
    "#define BLOCK 64\nint a;\nfor4\nint c;\nint late;\n",
    EXPLAINED.explanations[0].config,
    (WritingStep(1, "int a;\nfor\nint c;\n"), WritingStep(2, "#define BLOCK 32\nint a;\nfor4\nint c;\n")),
)
_BEFORE = PageKernel("kernel.cl", "", "int old;\nint c;\n")
_CHANGED = replace(EXPLAINED, rounds=_ROUNDS)
BESIDE: dict[str, tuple[Report, PageTexts]] = {
    "texts": (FULL, texts("said")),
    "texts of a plain run": (REPORT, texts("said")),
    "kernels": (
        REPORT,
        PageTexts(
            PageKernel("kernel.cl", "", f"int a;\n{_ALIKE}int c;\n"),
            (PageKernel("tuned/k.cl", "BLOCK=64", f"int b;\n{_ALIKE}int c;\nint d;\n"),),
        ),
    ),
    "reasons": (_CHANGED, PageTexts(_BEFORE, (_AFTER,))),
    "reasons of a template": (REPORT, PageTexts(_BEFORE, (replace(_AFTER, steps=()),))),
    "reasons of what is gone": (_CHANGED, PageTexts(_BEFORE, (replace(_AFTER, text="int c;\n"),))),
    "colours": (
        UNFINISHED,
        PageTexts(
            PageKernel(
                "k.cu",
                "",
                "#define N 4 // how many\n__global__ void f(float* x) {\n  /* two\n     lines */ x[0] = 1.5f "
                "+ 'a';  const char* s = \"int 3\";\n}\n",
            ),
            (PageKernel("k.cu", "", "#define N 5\n"),),
            (exchange("a word"),),
        ),
    ),
}


CONFIG = Config.of({"BLOCK": 64})
_OF_ONE = Config((("BLOCK", 64),), "1")


def measured(config: Config | None, seconds: float = 1e-3, detail: str = "", number: int = 0) -> Outcome:
    trial = Trial(number, config, ("only",), "short", "search" if config else "sentinel")
    ok = Result("only", Status.OK, Timing((seconds,)))
    return Outcome(trial, (Result("only", Status.WRONG, detail=detail) if detail else ok,))


def finalist(number: int) -> Outcome:
    return Outcome(Trial(number, CONFIG, ("only",), "long", "finalist"), ())


def listen(progress: Progress, *events: ev.Event) -> None:
    state = State()
    for number, event in enumerate(events):
        record = ev.Recorded(number, 0.0, event)
        state = apply_record(state, record)
        progress.event(record, state)


def _gated(config: Config, number: int = 0, seconds: float = 1e-3) -> Outcome:
    trial = Trial(number, config, ("only",), "short", "gate", "d")
    return replace(measured(config, seconds), trial=trial)


def _steps() -> tuple[ev.Event, ...]:
    focus = Focus((Condition("wide_access", "VEC >= 4", "narrow_access", "3 of 3", 0.4),), 8, 40)
    return (
        ev.Steered(focus, "narrow loads"),
        ev.Steered(focus, "the same"),
        ev.Steered(None, "it was wrong"),
    )


def _survey() -> tuple[ev.Event, ...]:
    builds = (ev.SurveyedBuild(("only",), "s"),)
    return (
        replace(started(), device=replace(DEVICE, absent=True)),
        ev.Admitted("t", 9, 9),
        ev.Surveyed(None, builds),
        ev.Surveyed(CONFIG, builds, (Result("only", Status.BUILD_FAILED, detail="no"),)),
        ev.Attached(FakeBackend().devices()[0], "", 8, (CONFIG,)),
        ev.Admitted("t", 9, 9),
        RIGHT,
        ev.Measured(measured(Config.of({"BLOCK": 32}))),
    )


RIGHT = ev.Baseline(measured(None), "reference")
_BAD = measured(CONFIG, number=1, detail="off by one")
_SLOWER, _FASTER = (measured(CONFIG, seconds=s, number=n) for n, s in ((0, 2e-3), (1, 5e-4)))
_FASTEST = measured(Config.of({"BLOCK": 32}), seconds=1e-4, number=2)
_ASKED = ev.Asked((_SLOWER.trial, _FASTER.trial, _FASTEST.trial))
_GATE = tuple(Trial(n, _OF_ONE, ("only",), "short", "gate", "d") for n in range(3))
# What is noted stands as a text. Of `verbose` and `each` more is told than of the others.
PROGRESS: dict[str, tuple[ev.Event | str, ...]] = {
    "what is worth keeping": (
        RIGHT,
        ev.Decided("search", "there is a template"),
        ev.Asked((finalist(0).trial, finalist(1).trial)),
        ev.Decided("finish", "all was tried"),
        ev.Measured(finalist(0)),
        ev.Verified(measured(CONFIG), 3),
        ev.Verified(measured(CONFIG, detail="off by one"), 3),
    ),
    "notes": tuple(f"case {number}" for number in range(5)),
    "each: notes": tuple(f"case {number}" for number in range(3)),
    "verbose: every trial": (
        started(),
        RIGHT,
        ev.Asked((_BAD.trial,)),
        ev.Measured(_BAD),
        ev.Pruned(CONFIG, "spills", "8 bytes"),
        "one",
        "two",
    ),
    "failures": (RIGHT, ev.Asked((_BAD.trial,)), ev.Measured(_BAD)),
    "the gate beside the search": (RIGHT, ev.Asked((_gated(CONFIG).trial,)), ev.Measured(_gated(CONFIG))),
    "each: a survey, and the run after it": _survey(),
    "what it begins from": (started(), ev.Primed("an earlier run", ((CONFIG, 0.5), (CONFIG, None)))),
    "where the search looks": (started(), *_steps()),
    "each: builds beside measurements": (
        started(),
        ev.Asked((Trial(0, CONFIG, ("only",), "build"),)),
        ev.Surveyed(CONFIG, (ev.SurveyedBuild(("only",), "s", "c"),)),
        ev.Pruned(CONFIG, "spills", "it does"),
    ),
    "the first speed-up": (started(), RIGHT, _ASKED, *map(ev.Measured, (_SLOWER, _FASTER, _FASTEST))),
    "no speed-up": (started(), RIGHT, _ASKED, ev.Measured(_SLOWER)),
    "before the gate": (started(), RIGHT, ev.Drafted("1", "", "d"), ev.Asked(_GATE[:2]), ev.Asked(_GATE[2:])),
    "a speed-up at the gate": (
        started(),
        RIGHT,
        ev.Drafted("1", "", "d"),
        ev.Asked(_GATE[:1]),
        ev.Measured(_gated(_OF_ONE, seconds=5e-4)),
    ),
    "instructions": (
        started(),
        ev.Instructed("1", "stop"),
        ev.Instructed("1", "hint", "BLOCK=64", CONFIG),
        ev.Instructed("1", "hint", "BLOCK=63", refused="no"),
        ev.Instructed("", "resume"),
    ),
}


def told(name: str) -> str:
    stream, is_verbose = StringIO(), name.startswith("verbose: ")
    every = 0.0 if name.startswith("each: ") else display.PLAIN_EVERY
    paced = mock.patch.object(display, "PLAIN_EVERY", every)
    still = mock.patch("time.monotonic", return_value=100.0)  # however busy the machine is
    plain = mock.patch.dict(os.environ, PLAIN)
    with paced, still, plain, Progress(stream, verbose=is_verbose).live() as progress:
        listen(progress, *(one for one in PROGRESS[name] if not isinstance(one, str)))
        for one in PROGRESS[name]:
            if isinstance(one, str):
                progress.note(one)
    lines = [event_line(one, State()) for one in PROGRESS[name] if isinstance(one, ev.Instructed)]
    return stream.getvalue() + "".join(f"{line.text if line else None}\n" for line in lines)


NOW = RunProgress(
    "searching template 2",
    doing="BLOCK=64",
    done=12,
    of=40,
    best=1.432,
    best_config="BLOCK=128",
    budgets=(BudgetUse("evaluations", 12, 40), BudgetUse("rounds", 1, None)),
    left=130.0,
)
STANDING: dict[str, tuple[RunProgress | None, str, float]] = {
    "all": (NOW, "", 0.0),
    "later": (NOW, "", 100.0),
    "little": (RunProgress("checking and timing the original"), "", 0.0),
    "nothing": (None, "reading", 0.0),
    "at the gate": (RunProgress("the gate", done=1), "", 0.0),
}


def drawn(now: RunProgress | None, note: str = "", since: float = 0.0) -> str:
    stream = StringIO()
    with mock.patch.dict(os.environ, PLAIN):
        Console(file=stream, width=100).print(Group(*render_standing(now, note, "1:05", since)))
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())
