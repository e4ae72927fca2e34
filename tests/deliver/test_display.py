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
from tunesmith.deliver.display import Progress, report_text, table_text
from tunesmith.deliver.report_parts import facts, title
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
from tunesmith.run.rounds import BY_SEARCH, Best, ChainEnd, History, RoundReport
from tunesmith.run.state import State, apply
from tunesmith.run.survey import Span, Spilling, SurveyReport
from tunesmith.space.params import Config
from tunesmith.space.space import Condition, Focus
from tunesmith.text import plain

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
        assert (
            "searched 0 of 0 (and 1 by the gate), best so far 1.00× by the search, not verified\n"
            in stream.getvalue()
        )

    def test_a_survey_and_the_run_after_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(display, "PLAIN_EVERY", 0.0)
        stream = StringIO()
        device = FakeBackend().devices()[0]
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
        says(searched, "searched 2 of 9", "best so far 1.00×", BY_SEARCH, "1 failed")

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
        winners=1,
        serves="n <= 4096",
        timed=41,
        least=1.02,
        language="opencl",
    )


GO_ON = "tunesmith resume 'my run'"


def lines(shown: Report, folder: str = "run", full: bool = False) -> list[str]:
    return report_text(shown, folder, GO_ON, stream=StringIO(), full=full).splitlines()


class TestReport:
    def test_the_first_screen(self) -> None:
        assert lines(report(), "runs/tiny-1") == [
            "tiny on simulated",
            "┏━━━━━━━━━━┳━━━━━━━┳━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━┓",
            "┃ workload ┃ sizes ┃  before ┃   after ┃ speed-up ┃ 95 % interval      ┃",
            "┡━━━━━━━━━━╇━━━━━━━╇━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━┩",
            "│ a        │ n=1   │ 20.0 µs │ 10.0 µs │    2.00× │ 1.90 to 2.10       │",
            "│ b        │ n=2   │  5.0 µs │  5.0 µs │    1.00× │ the original stays │",
            "└──────────┴───────┴─────────┴─────────┴──────────┴────────────────────┘",
            "geometric mean   1.41× (1.38 to 1.45), verified on 1 fresh case; right by the float64 reference",
            "delivered        1 of 1 tuned kernel in runs/tiny-1/tuned/dispatch.json",
            "serves           n <= 4096, timed at 41 sizes, least 1.02×; elsewhere the original",
            "report           runs/tiny-1/report.md, certificate.json beside it",
            "all the rest     tunesmith report runs/tiny-1 --full",
            "next             tunesmith export runs/tiny-1 --to TARGET: opencl, patch, kernel-tuner",
        ]

    @pytest.mark.parametrize(
        ("serves", "least", "shown"),
        [
            (None, None, "the workloads' sizes; elsewhere the original"),
            ("", 1.02, "every size of the contract, timed at 41 sizes, least 1.02×"),
            ("", None, "every size of the contract, timed at the workloads alone"),
            ("n % 8 == 0", None, "n % 8 == 0, timed at the workloads alone; elsewhere the original"),
            ("a <= 4096 and (d >= 64 or a * d <= 77)", 0.99,
             "a <= 4096 and …, timed at 41 sizes, least 0.99×; elsewhere the original"),
        ],
    )  # fmt: skip
    def test_where_it_serves_is_one_line_below_what_is_delivered(
        self, serves: str | None, least: float | None, shown: str
    ) -> None:
        found = lines(replace(report(), serves=serves, least=least))
        place = next(n for n, line in enumerate(found) if line.startswith("delivered"))
        assert found[place + 1] == f"serves           {shown}"
        assert len(found[place + 1]) <= 100
        assert not any(line.startswith("serves") for line in lines(replace(report(), winners=0)))

    @pytest.mark.parametrize(
        ("language", "targets"),
        [("opencl", "opencl, patch, kernel-tuner"), ("cuda", "torch, cpp, cubin, cupy, …")],
    )
    def test_a_next_step_is_one_that_the_run_can_take(self, language: str, targets: str) -> None:
        says("\n".join(lines(replace(report(), language=language))), "next", f"--to TARGET: {targets}")

    def test_seven_workloads_are_one_screen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.setenv("LINES", "24")
        sizes = {"tokens": 16384, "hidden": 32768}
        row = WorkloadReport("prefill-long", sizes, 1.0, 12345.6, 1234.5, 10.0, (9.91, 10.12), {"BLOCK": 64})
        usual = replace(
            report(),
            device="NVIDIA H200 (MIG 1g.18gb)",
            compiler="nvrtc 13.4",
            workloads=tuple(replace(row, name=f"{row.name}-{i}") for i in range(7)),
            rounds=(self.ROUND,) * 5,
            templates={"template.cu": "2"},
            notes=("workers are sandboxed (files)", "at wide the launch has " + "far too " * 30),
            left_out=("the winner at prefill-long-1 needs a compiler flag that launch.cu cannot hold",),
            winners=3,
            serves="tokens <= 4096 and (hidden >= 64 or tokens * hidden <= 1048576)",
            language="cuda",
        )
        folder = "tunesmith-runs/fused_add_rmsnorm-12"
        text = plain(report_text(usual, folder, GO_ON, ["stored"], Terminal()))
        shown = text.splitlines()
        assert sum(max(1, -(-len(line) // 100)) for line in shown) <= 24, text
        says(text, "delivered", "2 of 3 tuned kernels")
        says(text, "not delivered", "launch.cu cannot hold")
        for number in range(7):
            says(text, f"prefill-long-{number}", "12345.6 µs", "1234.5 µs", "10.00×", "9.91 to 10.12")
        assert not [word for word in ("round 1", "BLOCK", "evaluations", BY_SEARCH) if word in text]

    def test_where_a_table_is_too_wide_words_are_broken_and_figures_are_not(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "60")
        rows = [("only", "rows=16384 " * 9, "1234.5 µs")]
        text = plain(table_text(Terminal(), "name | sizes | took:", rows))
        assert max(map(len, text.splitlines())) <= 60
        assert text.count("rows=16384") == 9
        assert "1234.5 µs" in text

    ROUND = RoundReport(1, "", ("vec",), "", (), {}, 4, 4.0, 4.0, True, "kept: 4.00×, 1.00× before it")

    def test_the_rest_is_there_when_it_is_asked_for(self) -> None:
        found = replace(self.ROUND, changes=("+__m512 a_b;", "-x"))
        own = replace(report(), rounds=(found,), chain=ChainEnd("1", 4.0), notes=("a <b> & \\_note",))
        shown = lines(own, full=True)
        text = "\n".join(shown)
        assert shown[:9] == lines(own)[:9]
        assert "tunesmith report run --full" not in text
        assert f"== How it came about: rounds, {BY_SEARCH}" in shown
        says(text, "vec", "4.00×", "kept: 4.00×")
        says(text, "chain", "kernel 1", "4.00×", BY_SEARCH)
        assert "    +__m512 a_b;" in shown
        says(text, "BLOCK=32", "wrong", "off by one more")
        says(text, "4 evaluations", "3 ok", "1 wrong", "all was tried")
        says(text, "Note:", "a <b> & \\_note")
        assert not [acts for acts in ("&#", "&lt;", "&amp;", "<details>", "\\<", "| ---") if acts in text]

    def test_a_journal_that_was_changed_proves_nothing(self) -> None:
        broken = replace(report(), workloads=(), geometric_mean=None, tuned=(), unproven="changed at line 7")
        shown = lines(broken)
        says(shown, "not verified", "changed at line 7")
        assert not any("×" in line or "report.md" in line or "certificate" in line for line in shown)

    def test_what_a_gate_tried_is_beside_the_budget(self) -> None:
        gated = replace(report(), reason="the budget is used up", gated=3)
        shown = lines(gated, full=True)
        says(shown, "4 evaluations", "3 ok", "1 wrong", "1 of the search", "3 of the gate", gated.reason)

    def test_what_was_searched_again_is_named_too(self) -> None:
        again = replace(report(), templates={"template.cl": ""}, origin="run rmsnorm-1")
        assert "template         run/template.cl" in lines(again)
        assert "template         run/template.cl" not in lines(replace(again, origin=""))

    @pytest.mark.parametrize("full", [False, True])
    def test_nothing_that_others_say_forges_a_line(self, full: bool) -> None:
        evil = f"near enough\ngeometric mean   99.00×\r{EVIL}"
        said = replace(
            report(),
            device=evil,
            reason=evil,
            notes=(evil,),
            left_out=(evil,),
            origin=evil,
            rounds=(replace(self.ROUND, reason=evil, verdict=evil, what=evil, analysis=evil),),
            failures=(Failure({"BLOCK": 32}, "wrong", evil),),
        )
        shown = lines(said, full=full)
        assert not [line for line in shown if line.startswith("geometric mean   99")]
        assert not [line for line in shown if "\x1b" in line or "\x07" in line]

    def test_what_to_type_when_it_is_not_finished(self) -> None:
        half = replace(report(), finished=False, reason="not finished", geometric_mean=None, tuned=())
        assert lines(half, "my run")[-1] == "resume it with   tunesmith resume 'my run'"

    def test_a_run_at_work_is_reported_so(self) -> None:
        history = History((26.1,), (Best("", ((1, 26.1),)),))
        none = replace(report(), finished=False, geometric_mean=None, tuned=(), workloads=())
        live = replace(none, live=True, reason="running", seconds=312.4, history=history)
        assert lines(live) == [
            "tiny on simulated",
            "live             running, 312 s so far; best so far 26.10× by the search, not verified",
            "all the rest     tunesmith report run --full",
        ]
        stopped = lines(replace(live, live=False, reason="not finished"))
        assert stopped[1] == (
            "stopped          not finished, after 312 s; best so far 26.10× by the search, not verified"
        )
        assert stopped[-1] == f"resume it with   {GO_ON}"

    def test_what_stands_so_far(self) -> None:
        found = UnfinishedBest("2", "abc", "searched", "mailbox", 2.5, {"VEC": 4}, "template.cl")
        half = replace(report(), finished=False, geometric_mean=None, tuned=(), so_far=found)
        shown = lines(half)
        says(shown, "stopped", "template 2 by mailbox", "2.50× at VEC=4", BY_SEARCH)
        assert "template so far  run/template.cl" in shown
        assert not [line for line in shown if line.startswith("delivered")]
        drafted = replace(found, status="drafted", speedup=None)
        says(lines(replace(half, so_far=drafted)), "template 2 by mailbox is written", "not checked")
        says(lines(replace(half, so_far=replace(found, speedup=None))), "nothing measured")

    @pytest.mark.parametrize(("detail", "why"), [("off by one\nmore", "off by one"), ("", "no reason given")])
    def test_why_nothing_worked(self, detail: str, why: str) -> None:
        bad = replace(report(), evaluations={"wrong": 1}, failures=(Failure({"BLOCK": 32}, "wrong", detail),))
        assert f"nothing worked   BLOCK=32: wrong, {why}" in lines(bad)


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
        waiting = replace(waiting, finished=False, geometric_mean=None, workloads=(), tuned=())
        says(title(waiting), "tiny", "simulated", "not here", "nvrtc 13.4")
        text = "\n".join(lines(waiting))
        assert "│ registers                   │       22 │    21 │   30.5 │  255 │" in text
        assert "│ static shared memory, bytes │        0 │     0 │      0 │   64 │" in text
        assert "│ stack, bytes                │        8 │     0 │      0 │   16 │" in text
        assert "│ occupancy, %                │          │    50 │    100 │  100 │" in text
        four = ", ".join(f"BLOCK={64 * n} ({80 - n} bytes)" for n in range(1, 5))
        assert facts(waiting, "my run", GO_ON) == [
            ("configurations", "7 of 9 built (6 can run, 1 build_failed)"),
            ("spilling", f"{four}, 1 more"),
            ("build_failed", f"BLOCK=32: {HARMLESS}"),
            ("over_limits", "BLOCK=16: no reason given"),
            ("all the rest", "tunesmith report 'my run' --full"),
            ("resume it with", "tunesmith resume 'my run'"),
        ]
        says(lines(waiting, full=True), "== What spills registers")
        assert facts(replace(waiting, live=True), "run", GO_ON)[0] == ("live", "running, 1 s so far")

    def test_a_report_names_the_compiler(self) -> None:
        assert title(report()) == "tiny on simulated"
        assert title(replace(report(), compiler="nvcc 13.0")) == "tiny on simulated, built with nvcc 13.0"


def test_devices_are_shown_as_they_call_themselves() -> None:
    device = FakeBackend().devices()[0]
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
