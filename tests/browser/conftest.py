"""The distribution's Chromium, driven by Playwright; where one of them is missing these tests are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.opened import Opened
from tests.end_to_end import tiny
from tests.frameworks import need
from tests.running import tunesmith
from tunesmith.run.folder import RunFolder

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")  # while it is open its loop of events runs, and no test has one of its own
def chromium() -> Iterator[Any]:
    """A browser of the system; Playwright's own download is not asked for."""
    driver = need("playwright.sync_api")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(
            f"needs a browser: none of {', '.join(NAMES)} is here; CONTRIBUTING.md says how to add one"
        )
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Opened]:
    """Opens pages, and writes down whatever one does that a page of ours does not."""
    own = Opened(chromium, tmp_path)
    yield own
    own.close()


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of the fake device."""
    folder = tmp_path_factory.mktemp("finished")
    problem = tiny.fake(folder / "tiny")
    ended = tunesmith(folder, "tune", problem, "--template", problem / "template.fake", "--out", "run")
    assert ended.code == 0, ended.err
    return RunFolder.open(folder / "run", False).path
