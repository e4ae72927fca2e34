"""Every recorded run is decided once more as it was, event for event.

Where that is meant to change, they are recorded anew: python -m tests.golden.record
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fewer_calls import called_at_few_sizes as called_at_few_sizes
from tests.golden import entry
from tests.golden.recipes import RECIPES
from tests.golden.record import JOURNAL, kept, names, unpack
from tests.golden.replay import first_difference, replay


def test_all_are_there() -> None:
    assert set(names()) == set(RECIPES)


def test_every_kind_of_event_is_in_one_of_them() -> None:
    journals = b"".join(data for name, data in kept().items() if name.endswith(JOURNAL))
    assert [kind for kind in entry.EVENT_TYPES if f'"type":"{kind}"'.encode() not in journals] == []


@pytest.mark.few(12)
@pytest.mark.parametrize("name", names())
def test_decides_as_it_did(name: str, tmp_path: Path) -> None:
    journal = replay(unpack(name, tmp_path))
    assert first_difference(journal) == ""
