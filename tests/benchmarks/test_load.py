"""The benchmark of claims on a busy device; and such claims, on this machine's processors."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.load import Row, measure, table
from tests.opencl_here import needs_opencl

EXAMPLES = Path(__file__).parents[2] / "examples" / "opencl"
RIGHT = Row("norm", "neighbour", 0, "decode", "faster", 2.0, 1.9, 2.1, 2.02, 9.0)
OUTSIDE = replace(RIGHT, quiet=1.85)
DOUBTED = replace(RIGHT, status="faster, not certified", doubt="it was timed in one sitting alone")


@pytest.mark.parametrize(
    ("rows", "is_met"),
    [
        ([], False),
        ([replace(RIGHT, status="the original stays", quiet=None)], False),
        ([RIGHT], True),
        ([RIGHT] * 19 + [OUTSIDE], True),
        ([RIGHT] * 18 + [OUTSIDE] * 2, False),
        ([RIGHT] * 19 + [replace(RIGHT, quiet=1.8)], False),  # off by 11 %
        ([RIGHT] * 19 + [DOUBTED], True),
        ([RIGHT] * 18 + [DOUBTED] * 2, False),  # two gains are lost
    ],
)
def test_bars(rows: list[Row], is_met: bool) -> None:
    text, met = table(rows)
    assert (met, "MISSED" in text) == (is_met, not is_met)


@needs_opencl
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("example", ["rmsnorm", "silu_and_mul", "softmax", "transpose"])
def test_what_is_certified_beside_a_neighbour_is_so_alone(example: str, tmp_path: Path) -> None:
    """It has all processors on and off, and ends with the run; then the kernel is measured alone."""
    words = {"time": 8.0, "option": ["--no-prior"], "device": "", "out": tmp_path}
    neighbour = {"neighbour": "processors", "on": 1.0, "off": 1.5}
    options = argparse.Namespace(**words, **neighbour)
    rows = list(measure(EXAMPLES / example, "neighbour", [0], options))
    assert {row.workload for row in rows}, (tmp_path / example / "neighbour" / "0.log").read_text()
    wrong = [row for row in rows if row.is_certified and not row.is_covered]
    assert not wrong, wrong
