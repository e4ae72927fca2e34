"""What is said of moves comes from their own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunesmith.expert.describe import up_to_date
from tunesmith.expert.passes import LOCAL_MOVES, MOVES, Move

ROOT = Path(__file__).parents[2]


def test_the_page_says_what_the_moves_say() -> None:
    page = (ROOT / "docs" / "expert.md").read_text(encoding="utf-8")
    assert page == up_to_date(page), "run: python -m tunesmith.expert.describe docs/expert.md"


def test_a_page_without_a_place_for_them_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for moves"):
        up_to_date("# A page\n")


@pytest.mark.parametrize("move", [*MOVES, *LOCAL_MOVES], ids=lambda move: move.function.__name__)
def test_a_move_has_a_file_of_its_own_that_says_what_it_does(move: object) -> None:
    assert isinstance(move, Move)
    assert move.function.__module__ == f"tunesmith.expert.passes.{move.name}"
    assert move.about.count(" ") > 3
    assert move.needs
    assert move.remedies
    assert all(note for _, note in move.parameters)
    assert not any("|" in text for text in (move.about, move.needs, *dict(move.parameters).values()))
