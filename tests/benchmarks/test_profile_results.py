"""Floors and steering: what their programs take, and how pairs are counted."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import steering_page
from tests.benchmarks.shown import PAGE, floors_of, searches


def test_no_path_of_this_machine_is_in_the_floors(tmp_path: Path) -> None:
    assert str(tmp_path) not in json.dumps(floors_of(PAGE, tmp_path))


def test_only_seeds_that_both_have_count() -> None:
    rows = searches([10, 20, 30], [8, 100])
    assert steering_page.pairs(rows, "default", "it") == [(10, 8), (20, 100)]
