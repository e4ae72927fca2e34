"""What a run delivers is called at many sizes in the end: most of the time of the short runs of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import unsynced
from tunesmith.run import delivery

FEW = {"ON_GPU": 6, "ON_HOST": 3}  # sizes of a round
# To stand at the head of a program that a test starts in a process of its own.
IN_A_PROCESS = (
    f"{unsynced.IN_A_PROCESS}"
    f"from tunesmith.run import delivery\nassert delivery.ON_GPU\nvars(delivery).update({FEW})\n"
)


@pytest.fixture(autouse=True, scope="module")
def called_at_few_sizes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, count in FEW.items():
            patch.setattr(delivery, name, count)
        yield
