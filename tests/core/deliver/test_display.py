"""What people see: progress that never disturbs a run, tables that show foreign text and never obey it."""

from __future__ import annotations

import errno
from dataclasses import replace
from io import StringIO
from typing import Literal

import pytest

from tests.core.deliver.reports import KEPT, TINY, a_round
from tests.core.deliver.shown.reports import CONFIG, GO_ON, drawn, listen, measured
from tests.samples import started
from tests.wording import says
from tunesmith.backends.fake import FakeBackend
from tunesmith.base.text import strip_controls
from tunesmith.cli.app import devices_table, size_text
from tunesmith.deliver.pages.terminal import Progress, report_text, table_text
from tunesmith.run.events import Asked, Baseline, Decided, Verified
from tunesmith.run.progress import RunProgress
from tunesmith.run.report import Failure
from tunesmith.run.rounds import BY_SEARCH

EVIL = "\x1b[31mred\x1b[0m [bold]markup[/bold] :boom: \x07"
HARMLESS = "red [bold]markup[/bold] :boom: \N{REPLACEMENT CHARACTER}"


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


@pytest.mark.parametrize("make", [StringIO, Terminal])
def test_foreign_text_does_not_act(make: type[StringIO]) -> None:
    stream = make()
    with Progress(stream).live() as progress:
        listen(progress, Verified(measured(CONFIG, detail=EVIL), 1))
        progress.note(EVIL)
    shown = stream.getvalue()
    assert f"failed: wrong {HARMLESS}\n" in shown
    assert "\x1b[31m" not in shown
    assert "\x07" not in shown


def test_a_terminal_has_a_live_line() -> None:
    stream = Terminal()
    with Progress(stream).live() as progress:
        progress.note("timing the original")
    assert "timing the original" in stream.getvalue()
    assert "\x1b[?25h" in stream.getvalue(), "the cursor is back"


def test_a_run_outlives_its_audience() -> None:
    for stream in (Gone(), None):
        with Progress(stream).live() as progress:
            listen(progress, Decided("finish", "all was tried"))
            progress.note("still there")


@pytest.mark.parametrize("decision", ["refactor", "finish"])
def test_what_a_model_says_is_one_line(decision: Literal["refactor", "finish"]) -> None:
    """So that it cannot write lines of ours."""
    stream = StringIO()
    listen(Progress(stream), Decided(decision, f"done\n00:09 geometric mean 99×\r{'x' * 9000}"))
    assert stream.getvalue().endswith(": done\n")
    assert stream.getvalue().count("\n") == 1


def test_quiet() -> None:
    stream = Terminal()
    with Progress(stream, quiet=True).live() as progress:
        listen(progress, Decided("finish", "all was tried"))
    assert stream.getvalue() == ""


def test_a_terminal_shows_the_block_and_keeps_what_is_worth_it() -> None:
    stream = Terminal()
    with Progress(stream).live() as progress:
        first = measured(CONFIG, seconds=5e-4, number=1)
        listen(progress, started(), Baseline(measured(None), "reference"), Asked((first.trial,)))
        progress.note("warming up")
    says(strip_controls(stream.getvalue()), "the original is right")


def test_seven_workloads_are_one_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "24")
    notes = ("workers are sandboxed (files)", "at wide the launch has " + "far too " * 30)
    usual = replace(KEPT["seven workloads"], notes=notes)
    folder = "tunesmith-runs/fused_add_rmsnorm-12"
    text = strip_controls(report_text(usual, folder, GO_ON, ["stored"], Terminal()))
    assert sum(max(1, -(-len(line) // 100)) for line in text.splitlines()) <= 24, text
    for number in range(7):
        says(text, f"prefill-long-{number}", "12345.6 µs", "1234.5 µs", "10.00×", "9.91 to 10.12")
    assert not [word for word in ("round 1", "BLOCK", "evaluations", BY_SEARCH) if word in text]


def test_where_a_table_is_too_wide_words_are_broken_and_figures_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    rows = [("only", "rows=16384 " * 9, "1234.5 µs")]
    text = strip_controls(table_text(Terminal(), "name | sizes | took:", rows))
    assert max(map(len, text.splitlines())) <= 60
    assert text.count("rows=16384") == 9
    assert "1234.5 µs" in text


@pytest.mark.parametrize("full", [False, True])
def test_nothing_that_others_say_forges_a_line(full: bool) -> None:
    evil = f"near enough\ngeometric mean   99.00×\r{EVIL}"
    found = replace(a_round(), reason=evil, verdict=evil, what=evil, analysis=evil)
    failures = (Failure({"BLOCK": 32}, "wrong", evil),)
    said = replace(TINY, device=evil, reason=evil, notes=(evil,), left_out=(evil,), origin=evil)
    for shown in (said, replace(KEPT["surveyed"], failures=failures)):
        hostile = replace(shown, rounds=(found,), failures=failures)
        lines = report_text(hostile, "run", GO_ON, stream=StringIO(), full=full).splitlines()
        assert not [line for line in lines if line.startswith("geometric mean   99")]
        assert not [line for line in lines if "\x1b" in line or "\x07" in line]


def test_foreign_text_in_the_block_of_a_terminal_is_text() -> None:
    text = drawn(RunProgress(EVIL, doing=EVIL, best=2.0, best_config=EVIL), EVIL)
    assert "\x1b" not in text
    assert "[bold]markup[/bold]" in text


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
