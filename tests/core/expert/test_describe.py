"""What is said of moves comes from their own files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scripts.describe_moves import table, up_to_date
from tests.core.expert.moves.kernels import GPU
from tests.core.expert.write.building import read
from tests.core.expert.write.models import rmsnorm
from tunesmith.expert.moves import LOCAL_MOVES, MOVES, REMEDIES, Move
from tunesmith.expert.moves.move import Context, define_move, extend_draft
from tunesmith.expert.read.model import ParameterChoice, TemplateDraft
from tunesmith.expert.write import render_draft
from tunesmith.problem.default_rules import _ANSWERS, USUAL
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


# Of these the usual rules say nothing: what they are worth depends on the kernel, and the draft says it.
UNUSUAL = {"TILE", "ACROSS", "PAD", "PDL", "KNOB"}
IN_THE_DRAFT = "which values bring it depends on the kernel, so the move tells its draft"
IS_THE_TEMPLATE = "the move has no parameter: a template has it for every configuration"
BY_ANOTHER = "a parameter that always comes with it has the answer"
FOR_PLANNERS = "a reason to try the move; of none of its values it is said that it brings it"
NO_ANSWER = {
    ("fills", Remedy.FEWER_LAUNCHES): IS_THE_TEMPLATE,
    ("redundant", Remedy.ROW_IN_REGISTERS): IS_THE_TEMPLATE,
    ("rows", Remedy.CHEAP_DIVISION): IS_THE_TEMPLATE,
    ("rows", Remedy.HOIST_INVARIANTS): IS_THE_TEMPLATE,
    ("lanes", Remedy.SHARE_SERIAL_WORK): IN_THE_DRAFT,
    **{("tile", r): IN_THE_DRAFT for r in (Remedy.STAGE_IN_SHARED, Remedy.COALESCE, Remedy.PAD_SHARED)},
    **{("knobs", remedy): IN_THE_DRAFT for remedy in REMEDIES["knobs"]},
    ("tasks", Remedy.WARP_PER_ROW): BY_ANOTHER,
    ("vector", Remedy.COALESCE): FOR_PLANNERS,
    ("keep", Remedy.PAD_SHARED): FOR_PLANNERS,
    ("fast", Remedy.FP32_LITERALS): FOR_PLANNERS,
    ("overlap", Remedy.FEWER_LAUNCHES): FOR_PLANNERS,
    ("bake", Remedy.UNROLL): FOR_PLANNERS,
    ("block", Remedy.MORE_BLOCKS): FOR_PLANNERS,
    ("restrict", Remedy.ITEMS_IN_FLIGHT): FOR_PLANNERS,
}


def test_the_usual_rules_know_every_parameter_and_remedy() -> None:
    known = {name for move in (*MOVES, *LOCAL_MOVES) for name, _ in move.parameters}
    assert known - USUAL.keys() == UNUSUAL
    answered = {(remedy, name.lstrip("-")) for remedy, needs, _ in _ANSWERS for name in needs.split()}
    without = {
        (move.name, remedy)
        for move in (*MOVES, *LOCAL_MOVES)
        for remedy in move.remedies
        if not any((remedy, name) in answered for name, _ in move.parameters)
    }
    assert without == NO_ANSWER.keys()


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
