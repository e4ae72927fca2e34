"""Cheaper divisions of indices: the same quotients where the template allows them, and fewer instructions."""

from __future__ import annotations

import pytest

from tests.core.expert.write import models
from tests.core.expert.write.building import read
from tests.core.expert.write.models import BESIDE, rotary
from tests.core.expert.write.test_builds import instructions
from tests.cuda_here import needs_nvrtc
from tunesmith.expert.read.model import TemplateDraft
from tunesmith.expert.write import render_draft, structural_rules
from tunesmith.problem.template import Template

DIVIDING = BESIDE.having(divide=models.choice("DIVIDE", 0, 1, 2))


def _template() -> Template:
    kernel, problem = rotary()
    return read(render_draft(TemplateDraft(kernel, DIVIDING), problem), problem)


def test_forms_are_legal_where_they_are_exact() -> None:
    kernel, problem = rotary()
    rules = dict(structural_rules(TemplateDraft(kernel, DIVIDING), problem))
    assert rules["shifts"] == "DIVIDE != 1 or is_pow2(rot_dim // 2)"
    longest = "max(heads * (rot_dim // 2), kv_heads * (rot_dim // 2))"
    assert f"rot_dim // 2 > 1 and ({longest}) * (rot_dim // 2) < 4294967296" in rules["products"]


@pytest.mark.parametrize(
    ("divide", "rot_dim", "legal"), [(0, 6, True), (1, 6, False), (2, 6, True), (1, 8, True), (2, 2, False)]
)
@pytest.mark.few(2)
def test_what_a_form_cannot_divide_by_is_not_tried(divide: int, rot_dim: int, legal: bool) -> None:
    given = {"DIVIDE": divide, "rot_dim": rot_dim, "heads": 4, "kv_heads": 2}
    rules = [c.expr for c in _template().space.constraints if c.name in ("shifts", "products")]
    assert len(rules) == 2
    assert all(rule.holds(given) for rule in rules) == legal


@needs_nvrtc
@pytest.mark.long
def test_fewer_instructions_are_left() -> None:
    plain, shifts, products = (
        instructions(rotary, DIVIDING, VEC=8, SPLIT=1, BESIDE=1, DIVIDE=way).all.total for way in (0, 1, 2)
    )
    assert shifts < products < plain
