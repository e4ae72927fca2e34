"""What the contract's ranges prove of index arithmetic."""

from __future__ import annotations

import pytest

from tests.csource.reading import expression_of
from tunesmith.expert.model.size_bounds import SizeBounds
from tunesmith.problem.problem import SizeRule
from tunesmith.space.expr import parse

_RULES = (
    SizeRule("rows", 1, 4096),
    SizeRule("cols", 1, 4096),
    SizeRule("few", 0, 8),
    SizeRule("one", 0, 0, 1, (4, 8)),
)
_PARAMETERS = {
    name: parse(value).tree
    for name, value in {
        "rows": "rows", "cols": "cols", "few": "few", "one": "one", "step": "4 * cols",
        "half": "(cols + 1) // 2", "up": "ceildiv(cols, 2)", "odd": "cols % 3",
    }.items()
}  # fmt: skip
_RANGES = {
    "x": (expression_of("0"), expression_of("half - 1")),
    "c": (expression_of("0"), expression_of("2")),
}


def _sure(text: str) -> bool:
    return SizeBounds(_RULES, _PARAMETERS, _RANGES).never_negative(expression_of(text))


@pytest.mark.parametrize(
    "text",
    [
        "0", "cols - 1", "step - 4", "rows * step - 4 * rows", "few", "one - 4", "x", "2 - c",
        "step * rows - step", "cols - 1 - x", "step - 4 - 4 * (cols - 1 - 2 * x)",
        "step - 4 + 4 * (cols - 1 - 2 * x)",
        "2 * up - cols", "x * rows - x", "cols - cols / 2 * 2", "16 * ((cols + 7) / 4) - 16",
        "step - 4 - c + 2",
    ],
)  # fmt: skip
def test_what_is_never_negative(text: str) -> None:
    assert _sure(text)


@pytest.mark.parametrize(
    "text",
    ["-1", "cols - 2", "few - 1", "step - 5", "one - 5", "1 - c", "rows - cols", "odd", "other", "x - 1",
     "c * c - c", "cols - 2 - x", "2 * half - cols - 1", "x / 2", "2 * ((x - 1) / 2) + 2",
     "4 * ((cols + 14) / 4) - 16"],
)  # fmt: skip
def test_what_is_not_proved(text: str) -> None:
    assert not _sure(text)
