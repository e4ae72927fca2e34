"""Every kernel is read, or refused, as it was.

Where that is meant to change, they are written anew: python -m tests.golden.readings
"""

from __future__ import annotations

import pytest

from tests.golden.readings import KERNELS, difference, frozen


def test_all_are_there() -> None:
    assert set(frozen()) == set(KERNELS)


@pytest.mark.few(24)
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_is_read_as_it_was(kernel: str) -> None:
    assert difference(kernel) == ""
