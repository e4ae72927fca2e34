"""Requests are rendered and counted without a device."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import requests

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


def test_a_heading_inside_a_fence_begins_no_part() -> None:
    from tunesmith.run.dialogue import Message, Request

    text = "## The kernel (a.cu)\n\n```\n## not one\n```\n\n## Round 2\n\nfive"
    found = requests.parts_of(
        Request(1, "planner", (Message("system", "You."), Message("user", text)), "json")
    )
    assert list(found) == [requests.INSTRUCTIONS, "The kernel", "Round"]
