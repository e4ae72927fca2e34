"""Names of shared arrays of fixed sizes; that there is room between them `kernels/hidden.cu` shows."""

from __future__ import annotations

import pytest

from tunesmith.plugins.cpu_device.build import SharedArray


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("_ZZ1kPfPKfiE1s", "the shared array s"),
        ("_ZZ3sumILi32EEffE4part", "the shared array part"),
        ("_ZL4tile", "the shared array tile"),
        ("odd", "a shared array"),
    ],
)
def test_arrays_have_their_own_names(name: str, title: str) -> None:
    assert SharedArray(0, 4, name).title == title
