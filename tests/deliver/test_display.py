"""What people see: progress that never disturbs a run, tables that show foreign text and never obey it."""

from __future__ import annotations

import errno
from dataclasses import replace
from io import StringIO
from typing import Literal

import pytest

from tests.samples import DEVICE, started
from tests.wording import says
from tunesmith.backends.fake import FakeBackend
from tunesmith.cli.app import devices_table, size_text
from tunesmith.deliver import display
from tunesmith.deliver.display import Progress, report_summary, report_table, report_title, table_text
from tunesmith.problem.plan import Status
from tunesmith.run.events import (
    Admitted,
    Asked,
    Attached,
    Baseline,
    Decided,
    Event,
    Measured,
    Primed,
    Pruned,
    Recorded,
    Steered,
    Surveyed,
    SurveyedBuild,
    Verified,
)
from tunesmith.run.outcome import Outcome, Result, Timing, Trial
from tunesmith.run.report import Failure, Report, UnfinishedBest, WorkloadReport
from tunesmith.run.rounds import ChainEnd, RoundReport
from tunesmith.run.state import State, apply
from tunesmith.run.survey import Span, Spilling, SurveyReport
from tunesmith.space.params import Config
from tunesmith.space.space import Condition, Focus

EVIL = "\x1b[31mred\x1b[0m [bold]markup[/bold] :boom: \x07"
HARMLESS = "red [bold]markup[/bold] :boom: \N{REPLACEMENT CHARACTER}"
CONFIG = Config.of({"BLOCK": 64})


@pytest.fixture(autouse=True)
def ordinary_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


class Gone(StringIO):
    """A stream whose reader has left."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def measured(config: Config | None, seconds: float = 1e-3, detail: str = "", number: int = 0) -> Outcome:
    trial = Trial(number, config, ("only",), "short", "search" if config else "sentinel")
    ok = Result("only", Status.OK, Timing((seconds,)))
    return Outcome(trial, (Result("only", Status.WRONG, detail=detail) if detail else ok,))


def listen(progress: Progress, *events: Event) -> None:
    state = State()
    for number, event in enumerate(events):
        record = Recorded(number, 0.0, event)
        state = apply(state, record)
        progress.event(record, state)


def finalist(number: int) -> Outcome:
    return Outcome(Trial(number, CONFIG, ("only",), "long", "finalist"), ())


class TestProgress:
    def test_a_line_for_each_thing_worth_keeping(self) -> None:
        stream = StringIO()
        with Progress(stream).live() as progress:
            listen(
                progress,
                Baseline(measured(None), "reference"),
                Decided("search", "there is a template"),
                Asked((finalist(0).trial, finalist(1).trial)),
                Decided("finish", "all was tried"),
                Measured(finalist(0)),
                Verified(measured(CONFIG), 3),
                Verified(measured(CONFIG, detail="off by one"), 3),
            )
        right, ended, raced, held, failed = stream.getvalue().splitlines()
        says(right, "00:00", "original is right", "1000 µs")
        says(ended, "search ended", "all was tried")
        says(raced, "1 of 2 finalists")
        says(held, "verification", "BLOCK=64", "holds")
        says(failed, "verification", "BLOCK=64", "failed", "wrong", "off by one")

    def test_what_passes_is_shown_now_and_then(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stream = StringIO()
        with Progress(stream).live() as progress:
            for number in range(5):
                progress.note(f"case {number}")
            monkeypatch.setattr(display, "PLAIN_EVERY", 0.0)
            progress.note("case 5")
        assert stream.getvalue() == "00:00 case 0\n00:00 case 5\n"

    def test_verbose_tells_of_every_trial(self) -> None:
        stream = StringIO()
        with Progress(stream, verbose=True).live() as progress:
            bad = measured(CONFIG, number=1, detail="off by one")
            trials = (Asked((bad.trial,)), Measured(bad), Pruned(CONFIG, "spills", "8 bytes"))
            listen(progress, started(), Baseline(measured(None), "reference"), *trials)
            progress.note("one")
            progress.note("two")
        lines = [line.split(" ", 1)[1] for line in stream.getvalue().splitlines()]
        assert "search BLOCK=64: wrong off by one" in lines
        assert "not measured, spills: BLOCK=64: 8 bytes" in lines
        assert lines[-2:] == ["one", "two"]

    def test_failures_are_counted(self) -> None:
        stream = StringIO()
        with Progress(stream).live() as progress:
            first = measured(CONFIG, number=1, detail="x")
            listen(progress, Baseline(measured(None), "reference"), Asked((first.trial,)), Measured(first))
        assert "searched 1 of 0, 1 failed\n" in stream.getvalue()

    def test_what_the_gate_has_tried_is_no_search(self) -> None:
        stream = StringIO()
        with Progress(stream).live() as progress:
            gated = replace(measured(CONFIG), trial=Trial(1, CONFIG, ("only",), "short", "gate"))
            listen(progress, Baseline(measured(None), "reference"), Asked((gated.trial,)), Measured(gated))
        assert "searched 0 of 0 (and 1 by the gate), best roughly 1.0× so far\n" in stream.getvalue()

    def test_a_survey_and_the_run_after_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(display, "PLAIN_EVERY", 0.0)
        stream = StringIO()
        (device,) = FakeBackend().devices()
        bad = (Result("only", Status.BUILD_FAILED, detail="no"),)
        with Progress(stream).live() as progress:
            listen(
                progress,
                replace(started(), device=replace(DEVICE, absent=True)),
                Admitted("t", 9, 9),
                Surveyed(None, (SurveyedBuild(("only",), "s"),)),
                Surveyed(CONFIG, (SurveyedBuild(("only",), "s"),), bad),
                Attached(device, "", 8, (CONFIG,)),
                Admitted("t", 9, 9),
                Baseline(measured(None), "reference"),
                Measured(measured(Config.of({"BLOCK": 32}))),
            )
        first, second, device_line, right, searched = stream.getvalue().splitlines()
        says(first, "built 0 of 9")
        says(second, "built 1 of 9", "1 cannot run")
        says(device_line, "simulated device")
        says(right, "original is right", "1000 µs")
        says(searched, "searched 2 of 9", "1.0×", "1 failed")

    def test_what_a_run_begins_from(self) -> None:
        stream = StringIO()
        with Progress(stream).live() as progress:
            listen(progress, started(), Primed("an earlier run", ((CONFIG, 0.5), (CONFIG, None))))
        assert stream.getvalue() == "00:00 begins from an earlier run: 2 configurations\n"

    def test_where_the_search_looks_first(self) -> None:
        stream = StringIO()
        wide = Condition("wide_access", "VEC >= 4", "narrow_access", "3 of 3", 0.4)
        with Progress(stream).live() as progress:
            focus = Focus((wide,), 8, 40)
            steps = (
                Steered(focus, "narrow loads"),
                Steered(focus, "the same"),
                Steered(None, "it was wrong"),
            )
            listen(progress, started(), *steps)
        first, unchanged, withdrawn = stream.getvalue().splitlines()
        says(first, "looks first at", "VEC >= 4", "8 of 40", "narrow loads")
        says(unchanged, "as before", "the same")
        says(withdrawn, "everywhere", "it was wrong")

    def test_builds_beside_measurements_are_no_progress_of_their_own(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only where the device is absent there is nothing else to tell."""
        monkeypatch.setattr(display, "PLAIN_EVERY", 0.0)
        stream = StringIO()
        trial = Trial(0, CONFIG, ("only",), "build")
        with Progress(stream).live() as progress:
            listen(
                progress,
                started(),
                Asked((trial,)),
                Surveyed(CONFIG, (SurveyedBuild(("only",), "s", "c"),)),
                Pruned(CONFIG, "spills", "it does"),
            )
        assert stream.getvalue() == ""

    @pytest.mark.parametrize("make", [StringIO, Terminal])
    def test_foreign_text_does_not_act(self, make: type[StringIO]) -> None:
        stream = make()
        with Progress(stream).live() as progress:
            listen(progress, Verified(measured(CONFIG, detail=EVIL), 1))
            progress.note(EVIL)
        shown = stream.getvalue()
        assert f"failed: wrong {HARMLESS}\n" in shown
        assert "\x1b[31m" not in shown
        assert "\x07" not in shown

    def test_a_terminal_has_a_live_line(self) -> None:
        stream = Terminal()
        with Progress(stream).live() as progress:
            progress.note("timing the original")
        assert "timing the original" in stream.getvalue()
        assert "\x1b[?25h" in stream.getvalue(), "the cursor is back"

    def test_a_run_outlives_its_audience(self) -> None:
        for stream in (Gone(), None):
            with Progress(stream).live() as progress:
                listen(progress, Decided("finish", "all was tried"))
                progress.note("still there")

    @pytest.mark.parametrize("decision", ["refactor", "finish"])
    def test_what_a_model_says_is_one_line(self, decision: Literal["refactor", "finish"]) -> None:
        """So that it cannot write lines of ours."""
        stream = StringIO()
        listen(Progress(stream), Decided(decision, f"done\n00:09 geometric mean 99×\r{'x' * 9000}"))
        assert stream.getvalue().endswith(": done\n")
        assert stream.getvalue().count("\n") == 1

    def test_quiet(self) -> None:
        stream = Terminal()
        with Progress(stream, quiet=True).live() as progress:
            listen(progress, Decided("finish", "all was tried"))
        assert stream.getvalue() == ""


def report() -> Report:
    return Report(
        problem="tiny",
        backend="fake",
        device="simulated",
        driver="1",
        finished=True,
        reason="all was tried",
        judged_by="right by the float64 reference",
        workloads=(
            WorkloadReport("a", {"n": 1}, 1.0, 20.0, 10.0, 2.0, (1.9, 2.1), {"BLOCK": 64}),
            WorkloadReport("b", {"n": 2}, 1.0, 5.0, 5.0, 1.0, (1.0, 1.0), None),
        ),
        geometric_mean=1.41,
        general={"BLOCK": 64},
        evaluations={"ok": 3, "wrong": 1},
        space={},
        verified_cases=1,
        failures=(Failure({"BLOCK": 32}, "wrong", "off by one\nmore"),),
        digests={},
        versions={},
        search="default",
        seed=0,
        seconds=1.0,
        tuned=("tuned/dispatch.json",),
    )


GO_ON = "tunesmith resume 'my run'"


class TestReport:
    def test_table(self) -> None:
        text = table_text(StringIO(), *report_table(report()))
        assert "│ a        │ 20.0 µs │ 10.0 µs │    2.00× │ 1.90 to 2.10       │ BLOCK=64      │" in text
        assert "│ b        │  5.0 µs │  5.0 µs │    1.00× │ the original stays │ original      │" in text
        assert not text.endswith("\n")

    def test_summary(self) -> None:
        assert report_summary(report(), "runs/tiny-1", GO_ON) == [
            "geometric mean   1.41×, right by the float64 reference",
            "general config   BLOCK=64",
            "evaluations      4 (3 ok, 1 wrong); all was tried",
            "tuned kernel     runs/tiny-1/tuned/  (start with dispatch.json)",
            "report           runs/tiny-1/report.md",
            "certificate      runs/tiny-1/certificate.json",
        ]

    def test_a_journal_that_was_changed_proves_nothing(self) -> None:
        broken = replace(report(), workloads=(), geometric_mean=None, tuned=(), unproven="changed at line 7")
        lines = report_summary(broken, "run", GO_ON)
        says(lines, "not verified", "changed at line 7")
        assert not any("×" in line or "report.md" in line or "certificate" in line for line in lines)

    def test_what_a_gate_tried_is_beside_the_budget(self) -> None:
        gated = replace(report(), reason="the budget is used up", gated=3)
        lines = report_summary(gated, "run", GO_ON)
        says(lines, "evaluations", "4", "3 ok", "1 wrong", "1 of the search", "3 of the gate", gated.reason)

    def test_rounds_and_chains_are_marked_as_short_measurements(self) -> None:
        one = RoundReport(1, "", ("vec",), "", (), {}, 4, 4.0, 4.0, True, "kept: 4.00×, 1.00× before it")
        lines = report_summary(replace(report(), rounds=(one,), chain=ChainEnd("1", 4.0)), "run", GO_ON)
        at = lines.index("rounds           by short measurements, not verified:")
        says(lines[at + 1], "round 1", "vec", one.verdict)
        says(lines[at + 2], "chain", "kernel 1", "4.00×")
        assert not any("short measurements" in line for line in report_summary(report(), "run", GO_ON))

    def test_what_was_searched_again_is_named_too(self) -> None:
        again = replace(report(), templates={"template.cl": ""}, origin="run rmsnorm-1")
        assert "template         run/template.cl" in report_summary(again, "run", GO_ON)
        assert "template         run/template.cl" not in report_summary(
            replace(again, origin=""), "run", GO_ON
        )

    def test_why_it_stopped_forges_no_line(self) -> None:
        said = replace(report(), reason=f"near enough {'x' * 9000}\ngeometric mean   99.00×")
        lines = report_summary(said, "runs/tiny-1", GO_ON)
        assert not any("99.00×" in line for line in lines)
        assert max(map(len, lines)) < 400

    def test_what_to_type_when_it_is_not_finished(self) -> None:
        half = replace(report(), finished=False, reason="not finished", geometric_mean=None, tuned=())
        assert report_summary(half, "my run", GO_ON)[-1] == "resume it with   tunesmith resume 'my run'"

    def test_what_stands_so_far(self) -> None:
        found = UnfinishedBest("2", "abc", "searched", "mailbox", 2.5, {"VEC": 4}, "template.cl")
        half = replace(report(), finished=False, geometric_mean=None, tuned=(), so_far=found)
        lines = report_summary(half, "run", GO_ON)
        (line,) = [line for line in lines if line.startswith("so far  ")]
        assert line.endswith("template 2 by mailbox: 2.50× at VEC=4, by short measurements, not verified")
        assert "template so far  run/template.cl" in lines
        assert not [line for line in lines if line.startswith("general config")]

    @pytest.mark.parametrize(("detail", "why"), [("off by one\nmore", "off by one"), ("", "no reason given")])
    def test_why_nothing_worked(self, detail: str, why: str) -> None:
        bad = replace(report(), evaluations={"wrong": 1}, failures=(Failure({"BLOCK": 32}, "wrong", detail),))
        assert f"nothing worked   BLOCK=32: wrong, {why}" in report_summary(bad, "run", GO_ON)


class TestSurvey:
    SURVEY = SurveyReport(
        planned=9,
        statuses={"ok": 6, "build_failed": 1},
        spans={
            "registers": Span(22, 21, 30.5, 255),
            "shared": Span(0, 0, 0, 64),
            "private": Span(8, 0, 0, 16),
            "occupancy": Span(None, 50, 100, 100),
        },
        spilling=tuple(Spilling({"BLOCK": 64 * n}, 80 - n) for n in range(1, 6)),
    )
    FAILED = (
        Failure({"BLOCK": 32}, "build_failed", f"{EVIL}\nmore"),
        Failure({"BLOCK": 8}, "build_failed", "a second"),
        Failure({"BLOCK": 16}, "over_limits", ""),
    )

    def test_says_what_the_builds_tell_and_how_to_go_on(self) -> None:
        waiting = replace(report(), compiler="nvrtc 13.4", survey=self.SURVEY, failures=self.FAILED)
        says(report_title(waiting), "tiny", "simulated", "not here", "nvrtc 13.4")
        text = table_text(StringIO(), *report_table(waiting))
        assert "│ registers                   │       22 │    21 │   30.5 │  255 │" in text
        assert "│ static shared memory, bytes │        0 │     0 │      0 │   64 │" in text
        assert "│ stack, bytes                │        8 │     0 │      0 │   16 │" in text
        assert "│ occupancy, %                │          │    50 │    100 │  100 │" in text
        four = ", ".join(f"BLOCK={64 * n} ({80 - n} bytes)" for n in range(1, 5))
        assert report_summary(waiting, "my run", GO_ON) == [
            "configurations   7 of 9 built (6 can run, 1 build_failed)",
            f"spilling         {four}, 1 more",
            f"build_failed     BLOCK=32: {EVIL}",
            "over_limits      BLOCK=16: no reason given",
            "resume it with   tunesmith resume 'my run'",
        ]

    def test_a_report_names_the_compiler(self) -> None:
        assert report_title(report()) == "tiny on simulated"
        assert report_title(replace(report(), compiler="nvcc 13.0")) == (
            "tiny on simulated, built with nvcc 13.0"
        )


def test_devices_are_shown_as_they_call_themselves() -> None:
    (device,) = FakeBackend().devices()
    text = table_text(StringIO(), *devices_table([replace(device, name=EVIL, driver="[/bold]")]))
    assert HARMLESS in text
    assert "[/bold]" in text
    assert "256 MiB │ 256 KiB" in text


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1 << 18, "256 KiB"), (300 << 20, "300 MiB"), (7 << 30, "7 GiB")],
)
def test_sizes(nbytes: int, text: str) -> None:
    assert size_text(nbytes) == text
