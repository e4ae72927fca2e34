"""What a run decides of cases that are written down, each with all that follows from it."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.core.run import admissions, decisions


@pytest.mark.parametrize("cases", [decisions, admissions], ids=["decisions", "admissions"])
def test_what_follows_from_every_case(cases: ModuleType) -> None:
    text = cases.CASES.read_text("utf-8")
    assert decisions.with_what_follows(text, cases.SHOWN).splitlines() == text.splitlines()
