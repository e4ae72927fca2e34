"""The page of an experiment from recorded comparisons: nothing is built, run or asked."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.experiment import main
from tests.end_to_end.replaying import unpacked
from tests.wording import says

PAGES = Path(__file__).parents[2] / "docs" / "benchmarks"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("opencl", tmp_path_factory.mktemp("opencl"))


def test_recorded_runs_by_their_journals(recorded: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    main([str(recorded), "--out", str(page)])
    text = page.read_text()
    for words in ("1 comparison, 8 runs, of which 8 count", "no intervals", "None: all count."):
        says(text, words)
    assert "| softmax | template | 7.93× | 7.93 | 7.93× | 2 |" in text
    assert "| template | 4 | 4 | 0 | 0 | 0 | 0 | 0 | 0 | 0 (0 %) |" in text
    assert "| single | 11720 | 3.750× | 4.17× | 4.35× | 4.35× | 4.35× |" in text
    assert "| template | 4 | 1.32× | 3.22× | 2.45× | 1.55 to 6.11 | 2.16× and 1.85× |" in text


def test_a_run_that_is_not_there_does_not_count(recorded: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(recorded / "compared", tmp_path / "compared")
    shutil.rmtree(copy / "runs" / "softmax" / "expert-1")
    main([str(tmp_path), "--out", str(tmp_path / "page.md")])
    text = (tmp_path / "page.md").read_text()
    assert "| expert | not begun | 1 |" in text
    says(text, "Left out", "softmax")


@pytest.mark.long  # 62 journals
def test_the_figures_of_the_experiment_come_from_what_is_kept(tmp_path: Path) -> None:
    main([str(unpacked("experiment", tmp_path)), "--out", str(tmp_path / "page.md")])
    made = {(row[0], row[1]): row for row in rows(tmp_path / "page.md")}
    shown = [row for row in rows(PAGES / "strategies.md") if (row[0], "template") in made]
    assert len(shown) == 6
    for kernel, *cells in shown:
        for arm, cell in zip(("template", "rewrite", "single", "expert"), cells, strict=True):
            _, _, mean, every, *_ = made[kernel, arm]
            runs = sorted(every.split(", "), key=float)
            reach = f" ({runs[0]} to {runs[-1]})" if len(runs) > 1 else ""
            assert cell.replace("*", "") == mean + reach
    (overall,) = [row for row in rows(PAGES / "strategies.md") if row[0].startswith("all six")]
    page = (tmp_path / "page.md").read_text()
    for arm, cell in zip(("template", "rewrite", "single", "expert"), overall[1:], strict=True):
        assert f"| {arm} | 6 | {6 if arm == 'expert' else 18} | {cell.replace('*', '')} |" in page


def rows(page: Path) -> list[list[str]]:
    """The cells of all tables."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
