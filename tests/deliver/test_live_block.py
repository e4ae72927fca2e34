"""The block of a terminal, and what is told as soon as it is known, on a terminal or elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console, Group

from tests.deliver.test_display import CONFIG, EVIL, Terminal, listen, measured
from tests.samples import started
from tests.wording import says
from tunesmith.deliver.display import Progress, event_line
from tunesmith.deliver.live_block import block
from tunesmith.run.budget import BudgetUse
from tunesmith.run.events import Asked, Baseline, Drafted, Event, Instructed, Measured, Recorded
from tunesmith.run.outcome import Trial
from tunesmith.run.standing import Standing, standing
from tunesmith.run.state import State, fold
from tunesmith.space.params import Config

NOW = Standing(
    "searching template 2",
    doing="BLOCK=64",
    done=12,
    of=40,
    best=1.432,
    best_config="BLOCK=128",
    budgets=(BudgetUse("evaluations", 12, 40), BudgetUse("rounds", 1, None)),
    left=130.0,
)


@pytest.fixture(autouse=True)
def ordinary_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def drawn(now: Standing | None, note: str = "", since: float = 0.0, width: int = 100) -> list[str]:
    stream = StringIO()
    Console(file=stream, width=width).print(Group(*block(now, note, "1:05", since)))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_phase_progress_best_and_time_left() -> None:
    phase, done, best, left, doing = drawn(NOW)
    assert phase == "searching template 2 1:05"
    says(done, "━", "12 of 40")
    assert best == "best so far 1.43× by the search, not verified: BLOCK=128"
    assert left == "about 2 min of searching left; evaluations 12 of 40"
    assert doing == "BLOCK=64"
    assert drawn(NOW, since=100)[3].startswith("about 30 s")


def test_what_is_not_known_takes_no_line() -> None:
    assert drawn(Standing("checking and timing the original")) == ["checking and timing the original 1:05"]
    assert drawn(None, "reading") == ["reading 1:05"]


def test_foreign_text_is_text() -> None:
    hostile = Standing(EVIL, doing=EVIL, best=2.0, best_config=EVIL)
    text = "\n".join(drawn(hostile, EVIL))
    assert "\x1b" not in text
    assert "[bold]markup[/bold]" in text


def test_a_terminal_shows_the_block_and_keeps_what_is_worth_it() -> None:
    stream = Terminal()
    with Progress(stream).live() as progress:
        first = measured(CONFIG, seconds=5e-4, number=1)
        listen(progress, started(), Baseline(measured(None), "reference"), Asked((first.trial,)))
        progress.note("warming up")
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    says(text, "the original is right")


FASTER, SLOWER = (measured(CONFIG, seconds=s, number=n) for n, s in ((1, 5e-4), (0, 2e-3)))
FASTEST = measured(Config.of({"BLOCK": 32}), seconds=1e-4, number=2)


def told(*events: Event) -> list[str]:
    stream = StringIO()
    with Progress(stream).live() as progress:
        listen(progress, started(), Baseline(measured(None), "reference"), *events)
    return [line.split(" ", 1)[1] for line in stream.getvalue().splitlines()]


def test_the_first_speed_up_is_told_once_and_at_once() -> None:
    asked = Asked((SLOWER.trial, FASTER.trial, FASTEST.trial))
    lines = told(asked, Measured(SLOWER), Measured(FASTER), Measured(FASTEST))
    assert [line for line in lines if "first" in line] == [
        "first speed-up: 2.00× by the search, not verified, with BLOCK=64"
    ]
    assert not [line for line in told(asked, Measured(SLOWER)) if "first" in line]


def test_the_gate_is_told_of_before_it_begins() -> None:
    config = Config((("BLOCK", 64),), "1")
    trials = tuple(Trial(n, config, ("only",), "short", "gate", "d") for n in range(3))
    drafted = Drafted("1", "", "d")
    lines = told(drafted, Asked(trials[:2]), Asked(trials[2:]))
    words = "2 evaluations first, more as they show nothing wrong, beside the budget"
    assert f"gate: template 1 is checked before it may be searched: {words}" in lines


def test_nothing_counts_as_past_the_gate_while_it_is_there() -> None:
    """Not how much is done, of how many the gate does not know; nor the first speed-up."""
    config = Config((("BLOCK", 64),), "1")
    tried = measured(config, seconds=5e-4, number=0)
    gated = replace(tried, trial=Trial(0, config, ("only",), "short", "gate", "d"))
    events = (Drafted("1", "", "d"), Asked((gated.trial,)), Measured(gated))
    lines = told(*events)
    assert "first speed-up: 2.00× at the gate, not verified, with BLOCK=64 of template 1" in lines
    state = fold(
        Recorded(number, 0.0, event)
        for number, event in enumerate((started(), Baseline(measured(None), "reference"), *events))
    )
    now = standing(state)
    assert (now.done, now.of, now.beside) == (1, None, 0)
    assert drawn(now)[1] == "1"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Instructed("1", "stop"), "whoever watches asks to stop after this batch"),
        (Instructed("1", "hint", "BLOCK=64", CONFIG), "asks to try a configuration: BLOCK=64 is next"),
        (Instructed("1", "hint", EVIL, refused="no"), "asked to try a configuration, which is refused: no"),
    ],
)
def test_what_is_asked_of_a_run_is_told(event: Event, words: str) -> None:
    line = event_line(event, State())
    assert line is not None
    assert words in line.text


def test_going_on_is_not_worth_a_line() -> None:
    assert event_line(Instructed("", "resume"), State()) is None
