"""What functions, special registers and instructions do, and what parts of a program do with them."""

from __future__ import annotations

from tunesmith.source.effects import Effects

E = Effects


def test_what_may_be_done_with_effects() -> None:
    assert _allowed(E.NONE) == "drop repeat any"
    assert _allowed(E.STOPS) == "drop repeat any", "a kernel that keeps its contract does not stop itself"
    assert _allowed(E.READS) == "drop repeat any"
    assert _allowed(E.THREAD) == _allowed(E.MACHINE) == _allowed(E.SHAPE) == "drop repeat"
    assert _allowed(E.TIME) == "drop"
    for kind in (E.WRITES, E.ATOMIC, E.MASK, E.BARRIER, E.FENCE, E.VOLATILE, E.OUTPUT, E.ASSIGNS, E.UNKNOWN):
        assert _allowed(kind) == ""


def _allowed(effects: Effects) -> str:
    answers = {"drop": effects.may_drop, "repeat": effects.may_repeat, "any": effects.any_thread}
    return " ".join(word for word, holds in answers.items() if holds)
