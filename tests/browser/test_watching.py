"""`tunesmith watch` in a browser: a live run of the simulated device is followed, stopped, finished, read."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser.opened import NARROW, Opened, open_all, too_wide, violations
from tests.end_to_end import tiny
from tests.frameworks import need
from tests.running import Begun, journal, start, wait_for_events

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WAIT = 60.0  # seconds: somebody else may be at work here too


def long_run(folder: Path) -> tuple[object, ...]:
    """The command of a run that has more to try than anybody waits for."""
    problem = tiny.fake_many(folder / "tiny")
    template = problem / "template.fake"
    options = ("--no-cache", "--no-library", "--search", "random", "--time", 300)
    return ("tune", problem, "--template", template, *options, "--out", "tunesmith-runs/tiny-1")


@contextmanager
def watched(folder: Path) -> Iterator[str]:
    """The address that it prints."""
    process = start(folder, "watch")
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), process.poll()
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def field(page: Any, name: str) -> str:
    return str(page.locator(f'[data-field="{name}"]').inner_text())


def wait_for(page: Any, name: str, is_it: Callable[[str], bool]) -> None:
    """Until the text of a field passes. Asked from here: the page's policy permits no script but its own."""
    end = time.monotonic() + WAIT
    while not is_it(found := field(page, name)):
        assert time.monotonic() < end, f"{name}: {found}"
        page.wait_for_timeout(100)


def test_a_live_run_is_followed_stopped_finished_and_read(opened: Opened, tmp_path: Path) -> None:
    need("starlette")
    need("uvicorn")
    (tmp_path / "tunesmith-runs").mkdir()
    run = tmp_path / "tunesmith-runs" / "tiny-1"
    process = Begun(tmp_path, *long_run(tmp_path))
    wait_for_events(run, 8, process)
    with watched(tmp_path) as address:
        index = opened.at(address, size=NARROW)
        assert violations(index) == []
        assert too_wide(index) <= 0
        index.get_by_role("link", name="tiny-1").click()
        page = index
        wait_for(page, "status", "live".__eq__)
        wait_for(page, "best", lambda text: "×" in text)
        before = field(page, "progress")
        wait_for(page, "progress", before.__ne__)
        assert "by the search, not verified" in field(page, "best")
        assert violations(page) == []
        open_all(page)
        assert too_wide(page) <= 0
        page.get_by_role("button", name="Stop after this batch").click()
        wait_for(page, "said", lambda text: "stops after this batch" in text)
        wait_for(page, "status", "stopped".__eq__)
        ended = process.end(timeout=60)
        assert ended.code == 130, ended.err
        page.get_by_role("button", name="Finish now").wait_for(state="detached", timeout=WAIT * 1000)

        again = Begun(tmp_path, "resume", run)
        wait_for_events(run, len(journal(run)) + 4, again)
        page.reload()
        wait_for(page, "status", "live".__eq__)
        page.get_by_role("button", name="Finish now").click()
        wait_for(page, "status", "finished".__eq__)
        done = again.end(timeout=60)
        assert done.code == 0, done.err
        verified = page.locator("#verified", has_text="What was verified")
        verified.wait_for(timeout=WAIT * 1000)
        assert "6.25×" in verified.inner_text(), "as the report says it"
        asked = page.locator('[data-list="asked"]').inner_text()
        assert "stop: taken up" in asked
        assert "finish: taken up" in asked
        assert opened.wrong == []
    told = [line["event"]["what"] for line in journal(run) if line["type"] == "Instructed"]
    assert told == ["stop", "resume", "finish"]
