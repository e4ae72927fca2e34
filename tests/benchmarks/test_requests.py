"""Requests are rendered and counted without a device."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import requests
from tests.end_to_end.replaying import unpacked

EXAMPLE = Path(__file__).parents[2] / "examples" / "cuda" / "rmsnorm"


def test_every_role_of_every_strategy_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    requests.main([str(EXAMPLE), "--out", str(tmp_path)])
    header = capsys.readouterr().out.splitlines()[2]
    kinds = [cell.strip() for cell in header.split("|")[2:-1]]
    roles = ["tester", "analyst", "planner", "author"]
    assert kinds == [*(f"{r} template" for r in roles), *(f"{r} rewrite" for r in roles), "single"]
    texts = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert len(texts) == len(kinds)
    assert all("H200" in text for text in texts.values())


def test_what_consecutive_requests_of_a_role_share(tmp_path: Path) -> None:
    """Recorded runs with a large language model, asked once more: at least all that stays the same."""
    recorded = unpacked("opencl", tmp_path) / "compared" / "runs" / "transpose"
    head, _, *rows = requests.prefix_table([recorded])
    assert head.startswith("| request | pairs | characters shared |")
    found = {row.split("|")[1].strip(): row.split("|") for row in rows}
    assert {"author, `rewrite`", "planner, `rewrite`", "planner, `template`"} <= set(found)
    assert int(found["planner, `template`"][6].strip(" %")) >= 40, "27 before moves stood in front"
    for row in found.values():
        assert int(row[2]) == 1
        assert int(row[6].strip(" %")) >= 30
