"""What a run decides of cases that are written down, each with all that follows from it."""

from __future__ import annotations

from tests.run.decisions import CASES, with_what_follows


def test_what_follows_from_every_case() -> None:
    text = CASES.read_text("utf-8")
    assert with_what_follows(text).splitlines() == text.splitlines()
