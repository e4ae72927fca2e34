"""Every recorded run is decided once more as it was, event for event.

Where that is meant to change, they are recorded anew: python -m tests.golden.record
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fewer_calls import called_at_few_sizes as called_at_few_sizes
from tests.golden.recipes import RECIPES
from tests.golden.record import names, unpack
from tests.golden.replay import first_difference, replay


def test_all_are_there() -> None:
    assert set(names()) == set(RECIPES)


@pytest.mark.few(12)
@pytest.mark.parametrize("name", names())
def test_decides_as_it_did(name: str, tmp_path: Path) -> None:
    journal = replay(unpack(name, tmp_path))
    assert first_difference(journal) == ""
