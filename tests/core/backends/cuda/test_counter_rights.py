"""Who may read counters, by the words of the driver and the system."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunesmith.backends.cuda.tools import may_count

ROOT, NOBODY, PERFMON = "000001ffffffffff", "0000000000000000", "0000004000000000"


@pytest.mark.parametrize(
    ("params", "capabilities", "verdict"),
    [
        ("RmProfilingAdminOnly: 0\n", NOBODY, True),
        ("EnableMSI: 1\nRmProfilingAdminOnly: 1\n", ROOT, True),
        ("RmProfilingAdminOnly: 1\n", PERFMON, True),
        ("RmProfilingAdminOnly: 1\n", NOBODY, False),
        ("RmProfilingAdminOnly: 1\n", "", False),
        ("EnableMSI: 1\n", ROOT, None),
        ("", ROOT, None),
    ],
)
def test_who_may_count(tmp_path: Path, params: str, capabilities: str, verdict: bool | None) -> None:
    (tmp_path / "params").write_text(params)
    (tmp_path / "status").write_text(f"Name:\tpython\nCapEff:\t{capabilities}\n")
    found, why = may_count(tmp_path / "params", tmp_path / "status")
    assert found is verdict
    assert "counters" in why


def test_where_there_is_no_driver_nobody_says(tmp_path: Path) -> None:
    assert may_count(tmp_path / "params", tmp_path / "status")[0] is None
