"""Each promise of the pages is named with a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TEXT = (HERE / "PROMISES.md").read_text()
TESTS = re.findall(r"`([\w/]+\.py)::(test_\w+)`", TEXT)


HEADINGS = re.compile(r"\| ?(promise|-)")


def test_every_row_names_a_test() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("|") and not HEADINGS.match(line)]
    assert len(rows) == len(TESTS) > 60


@pytest.mark.parametrize(("file", "name"), TESTS, ids=[name for _, name in TESTS])
def test_is_there(file: str, name: str) -> None:
    assert re.search(rf"^\s*(async )?def {name}\(", (HERE / file).read_text(), re.MULTILINE)


def test_every_page_is_named() -> None:
    """But those that explain, list or show, and promise nothing of their own."""
    pages = {page.name for page in (HERE.parent / "docs").glob("*.md")}
    without = {"glossary.md", "results.md", "setup.md", "tutorial.md"}
    assert set(re.findall(r"docs/([\w-]+\.md)", TEXT)) == pages - without
