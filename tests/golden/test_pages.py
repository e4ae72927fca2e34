"""Pages, files and exports of recorded runs are what they were, to the byte; so is what is said of faults.

Where that is meant to change, they are written anew: python -m tests.golden.pages, and tests.golden.faults
"""

from __future__ import annotations

import pytest

from tests.golden.faults import READERS, differences
from tests.golden.pages import first_difference


def test_pages() -> None:
    assert first_difference() == ""


@pytest.mark.parametrize("reader", READERS)
def test_faults(reader: str) -> None:
    assert "\n\n".join(differences(reader)) == ""
