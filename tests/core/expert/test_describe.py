"""What is said of moves comes from their own files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scripts.describe_moves import table, up_to_date
from tests.core.expert.moves.kernels import GPU
from tests.core.expert.write.building import read
from tests.core.expert.write.models import rmsnorm
from tunesmith.expert.moves import LOCAL_MOVES, MOVES, Move
from tunesmith.expert.moves.move import Context, define_move, extend_draft
from tunesmith.expert.read.model import ParameterChoice, TemplateDraft
from tunesmith.expert.write import render_draft
from tunesmith.problem.template import Remedy

ROOT = Path(__file__).parents[3]


def test_the_page_says_what_the_moves_say() -> None:
    page = (ROOT / "docs" / "expert.md").read_text(encoding="utf-8")
    assert page == up_to_date(page), "run: python -m scripts.describe_moves docs/expert.md"


def test_a_page_without_a_place_for_them_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for moves"):
        up_to_date("# A page\n")


@pytest.mark.parametrize("move", [*MOVES, *LOCAL_MOVES], ids=lambda move: move.function.__name__)
def test_a_move_says_what_it_does(move: object) -> None:
    assert isinstance(move, Move)
    assert move.about.count(" ") > 3
    assert move.needs
    assert move.remedies
    assert all(note for _, note in move.parameters)
    assert not any("|" in text for text in (move.about, move.needs, *dict(move.parameters).values()))


@define_move("depth", needs="a GPU", turn="compiler", remedies=(Remedy.COMPILER_FLAGS,), DEPTH="how deep")
def depth(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """A flag with a number that nothing else knows of."""
    if context.on_cpu:
        return "a CPU has none"
    changed = replace(draft, build_flags=(*draft.build_flags, f"-depth={{{name}}}"))
    return extend_draft(
        changed, "depth", ParameterChoice(name, (1, 2), 1), [("shallow", f"{name} == 1 or d > 64")]
    )


def test_a_new_move_is_written_and_described_with_no_other_file() -> None:
    kernel, problem = rmsnorm()
    draft = depth.apply(TemplateDraft(kernel), Context(problem, GPU))
    assert isinstance(draft, TemplateDraft)
    assert draft.schedule["depth"].values == (1, 2)
    template = read(render_draft(draft, problem), problem)
    assert [param.name for param in template.space.params] == ["DEPTH"]
    assert "shallow" in [rule.name for rule in template.space.constraints]
    row = table([depth]).splitlines()[-1]
    says = "A flag with a number that nothing else knows of"
    assert row == f"| `depth` | {says} | `DEPTH`, how deep |"
