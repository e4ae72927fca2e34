"""Every remedy is explained, and some rule names it."""

from __future__ import annotations

import inspect

from tunesmith.core.profile import compute_rules, launch_rules, memory_rules
from tunesmith.core.profile.remedies import MEANINGS, Remedy


def test_every_remedy_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Remedy)
    assert all(meaning and "\n" not in meaning for meaning in MEANINGS.values())


def test_every_remedy_answers_a_finding() -> None:
    rules = "".join(inspect.getsource(module) for module in (compute_rules, launch_rules, memory_rules))
    assert [remedy for remedy in Remedy if f"Remedy.{remedy.name}" not in rules] == []
