"""Expressions fitted to what was seen."""

from __future__ import annotations

import pytest

from tunesmith.plugins.repo.extract.seen import fit_expression, fit_extent

ROWS, HIDDEN, N = [16, 128, 4096], [4096, 4096, 8192], [1000, 2048, 77]
SIZES = {"rows": ROWS, "hidden": HIDDEN, "n": N}


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (ROWS, "rows"),
        ([r * h for r, h in zip(ROWS, HIDDEN, strict=True)], "rows * hidden"),
        ([r * (h // 2) for r, h in zip(ROWS, HIDDEN, strict=True)], "rows * (hidden // 2)"),
        ([-(-n // 256) for n in N], "ceildiv(n, 256)"),
        ([-(-r * h // 128) for r, h in zip(ROWS, HIDDEN, strict=True)], "ceildiv(rows * hidden, 128)"),
        ([h // 8 for h in HIDDEN], "hidden // 8"),
        ([n + 1 for n in N], "n + 1"),
        ([min(n, 1024) for n in N], "min(n, 1024)"),
        ([7, 7, 7], "7"),
        ([5, 6, 8], None),
    ],
)
def test_the_simplest_that_gives_all(target: list[int], text: str | None) -> None:
    assert fit_expression(target, SIZES) == text


def test_a_number_that_never_changes_is_itself_where_that_is_likelier() -> None:
    sizes = {"rows": [256, 256]}
    assert fit_expression([256, 256], sizes) == "rows"
    assert fit_expression([256, 256], sizes, constant_first=True) == "256"
    assert fit_expression([1, 1], {"one": [1, 1]}) == "1"


def test_sizes_that_change_go_before_those_that_happen_to_be_equal() -> None:
    assert fit_expression([8, 16], {"heads": [8, 8], "rows": [8, 16]}) == "rows"
    assert fit_expression([8], {"rows": [8], "heads": [8]}) == "rows"


def test_extents_are_rounded_up_by_allocators() -> None:
    exact = [r * h for r, h in zip(ROWS, HIDDEN, strict=True)]
    assert fit_extent(exact, SIZES) == "rows * hidden"
    assert fit_extent([1024, 2048, 256], {"n": N}, grain=256) == "n"
    assert fit_extent([1024, 2048, 512], {"n": N}, grain=256) is None
    assert fit_extent([0], {"n": [0]}) is None


def test_what_has_no_value_somewhere_is_no_fit() -> None:
    assert fit_expression([3, 3, 4], {"a": [0, 1, 2], "b": [3, 3, 8]}) is None
