"""The page of several runs, and the pictures that the docs have of a run's page."""

from __future__ import annotations

import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.browser.opened import NARROW, WIDE, Opened, too_wide, violations
from tests.core.deliver.reports import REPORT, every
from tests.core.deliver.test_page import HOSTILE
from tunesmith.plugins.studies.difference import compare_reports, difference_page

pytestmark = pytest.mark.browser

SLOWER = replace(REPORT, workloads=tuple(replace(w, tuned_us=2 * w.tuned_us) for w in REPORT.workloads))
RUNS = [
    (REPORT, "runs/before"),
    (SLOWER, "runs/after"),
    (replace(REPORT, device="another"), "runs/elsewhere"),
]
PAGE = difference_page(compare_reports(RUNS), 0.97)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [NARROW, WIDE])
def test_runs_side_by_side(opened: Opened, size: tuple[int, int], scheme: str) -> None:
    page = opened.page(PAGE, size=size, scheme=scheme)
    assert page.locator("h1").inner_text() == "scale: 3 runs compared"
    assert "Below 0.97×" in page.locator("#verified").inner_text()
    assert too_wide(page) <= 0
    assert violations(page) == []
    assert opened.wrong == []


def test_hostile_names_do_nothing(opened: Opened) -> None:
    hostile = replace(every(REPORT, HOSTILE), unproven="")
    page = opened.page(difference_page(compare_reports([(hostile, HOSTILE), (hostile, f"{HOSTILE}2")])))
    assert page.locator("script, svg, iframe").count() == 0
    assert "<script>alert(1)</script>" in page.locator("body").inner_text()
    assert opened.wrong == []


def test_pictures_for_the_docs(chromium: object, finished: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scripts.screenshots", str(finished), "--out", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stderr
    pictures = sorted(tmp_path.glob("*.png"))
    assert len(pictures) == 4
    for picture in pictures:
        data = picture.read_bytes()
        assert data.startswith(b"\x89PNG")
        width, height = struct.unpack(">II", data[16:24])
        assert width >= 390
        assert height >= 500
    missing = subprocess.run([*command[:3], str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert missing.returncode == 2
    assert "finished run" in missing.stderr
