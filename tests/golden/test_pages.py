"""Pages, files and exports of recorded runs are what they were, to the byte; so is what is said of faults.

Where that is meant to change, they are written anew: python -m tests.golden.pages, tests.golden.faults, and
tests.golden.shown
"""

from __future__ import annotations

import pytest

from tests.golden import pages, shown
from tests.golden.archive import archive_of, first_difference, read_archive
from tests.golden.faults import READERS, differences


def test_pages() -> None:
    assert first_difference(read_archive(pages.PAGES), pages.all_pages()) == ""


@pytest.mark.parametrize("group", shown.GROUPS)
def test_what_is_shown_of_made_up_results(group: str) -> None:
    assert first_difference(read_archive(archive_of(group)), shown.texts_of(group)) == ""


@pytest.mark.parametrize("reader", READERS)
def test_faults(reader: str) -> None:
    assert "\n\n".join(differences(reader)) == ""
