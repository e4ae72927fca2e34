"""What the watch leaves out: only what compilers themselves read."""

from __future__ import annotations

import pytest

from tunesmith.plugins.cpu_device.watch import _only_declares


@pytest.mark.parametrize(
    ("line", "alone"),
    [
        ("    __shared__ Pair pairs[4];", True),
        ("__shared__ typename Reduce::TempStorage temp;  // of the block", True),
        ("__shared__ unsigned tag[1]; const bool old = tag[0] == 0x5eedu;", False),
        ("float v = tile[0];", False),
    ],
)
def test_a_line_that_only_declares(line: str, alone: bool) -> None:
    assert _only_declares(line) == alone
