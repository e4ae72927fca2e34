"""The script that counts which kernels stand alone, on a repository of ours."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from benchmarks import extraction
from benchmarks.extraction import KERNELS, LATER, MET, NEW, CountedKernel, table, wanted
from tests.cuda_here import needs_nvrtc

OURS = Path(__file__).parents[1] / "session" / "extract" / "repository"


def test_no_kernel_is_counted_twice() -> None:
    listed = [one[1:] for one in wanted(tuple(KERNELS), "")]
    assert len(listed) == len(set(listed)) == 63
    assert {group: len(list(wanted((group,), ""))) for group in KERNELS} == {MET: 28, NEW: 20, LATER: 15}


def test_the_table_adds_up() -> None:
    found = [
        CountedKernel(MET, "a", "k", True, 1, 9, 0.1),
        CountedKernel(MET, "b", "l", False, 0, 0, 0.1, "so"),
    ]
    assert "stand alone at once: compile" in next(iter(table(found)))
    assert list(table(found))[2:] == ["| a | 1 | 1 | 0 |", "| b | 1 | 0 | 1 |", "| all | 2 | 1 | 1 |"]


@needs_nvrtc
def test_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(OURS, tmp_path / "ours")
    kernels = (("ours", "", "shift_by_two no_such_kernel"), ("elsewhere", "", "k"))
    monkeypatch.setattr(extraction, "KERNELS", {MET: kernels})
    figures = tmp_path / "figures.json"
    monkeypatch.setattr(sys, "argv", ["extraction", str(tmp_path), "--json", str(figures)])
    extraction.main()
    told = capsys.readouterr().out
    assert "| all | 2 | 1 | 1 |" in told
    assert "left out: there is no folder" in told
    alone, missing = json.loads(figures.read_text())
    assert (alone["alone"], missing["alone"]) == (True, False)
    assert "no kernel called no_such_kernel" in missing["why"]
