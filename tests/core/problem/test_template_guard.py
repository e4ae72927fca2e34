"""Rules that are written into a template's declaration."""

from __future__ import annotations

import pytest

from tests.drafts import a_draft
from tests.samples import DEVICE, a_problem, a_template
from tunesmith.base.errors import BadInput
from tunesmith.problem.template import configs_of
from tunesmith.problem.template_file import exclude_combinations

PROBLEM = a_problem()
PARAMS = {"A": [1, 2, 4], "B": [0, 1]}
PAIR, ALONE = (("A", 4), ("B", 1)), (("A", 2),)


def values(text: str) -> set[tuple[int, ...]]:
    found = configs_of(PROBLEM, a_template(PROBLEM, text), DEVICE)
    return {tuple(config.as_dict().values()) for config in found}


@pytest.mark.parametrize("require", ["", "A < 9"])
def test_what_is_forbidden_is_gone_and_nothing_else(require: str) -> None:
    text = a_draft(PARAMS, require)
    assert values(exclude_combinations(text, [PAIR], "t")) == values(text) - {(4, 1)}
    assert values(exclude_combinations(text, [PAIR, ALONE], "t")) == values(text) - {(4, 1), (2, 0), (2, 1)}


def test_a_second_time_adds_to_the_first() -> None:
    text = a_draft(PARAMS)
    twice = exclude_combinations(exclude_combinations(text, [PAIR], "t"), [ALONE], "t")
    assert values(twice) == {(1, 0), (1, 1), (4, 0)}
    assert twice.count("[require]") == 1


def test_the_code_is_left_as_it_is() -> None:
    text = a_draft(PARAMS)
    changed = exclude_combinations(text, [PAIR], "t").splitlines()
    assert [line for line in changed if line not in text.splitlines()] == [
        "// [require]",
        '// not_right_1 = "not (A == 4 and B == 1)"',
    ]
    assert changed[-1] == text.splitlines()[-1]


def test_line_ends_and_comments_of_a_heading() -> None:
    text = a_draft(PARAMS, "A < 9").replace("// [require]", "//  [ require ]  # what must hold")
    assert values(exclude_combinations(text.replace("\n", "\r\n"), [PAIR], "t")) == values(text) - {(4, 1)}


def test_what_is_no_template_has_no_place_for_rules() -> None:
    with pytest.raises(BadInput, match="declares its parameters in a comment"):
        exclude_combinations("int x;", [PAIR], "t")
