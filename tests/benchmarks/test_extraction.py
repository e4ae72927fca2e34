"""The script that counts which kernels stand alone, on a repository of ours."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import tunesmith
from benchmarks import extraction
from benchmarks.extraction import KERNELS, LATER, MET, NEW, OWN, CountedKernel, edited_lines, table, wanted
from tests.cuda_here import needs_nvrtc

OURS = Path(__file__).parents[1] / "plugins" / "repo" / "extract" / "repository"


def test_no_kernel_is_counted_twice() -> None:
    listed = [one[1:] for one in wanted(tuple(KERNELS), "")]
    assert len(listed) == len(set(listed)) == 83
    counts = {group: len(list(wanted((group,), ""))) for group in KERNELS}
    assert counts == {MET: 28, NEW: 20, LATER: 15, OWN: 20}


def test_the_table_adds_up() -> None:
    found = [
        CountedKernel(MET, "a", "k", True, 1, 9, 0.1),
        CountedKernel(MET, "b", "l", False, 0, 0, 0.1, "so"),
    ]
    assert "stand alone at once: compile" in next(iter(table(found)))
    assert list(table(found))[2:] == ["| a | 1 | 1 | 0 |", "| b | 1 | 0 | 1 |", "| all | 2 | 1 | 1 |"]


@needs_nvrtc
def test_it_counts(tmp_path, monkeypatch, capsys):
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


def test_a_changed_line_counts_once_and_comments_do_not() -> None:
    before = "a\n\nb\nc\n# said\n"
    assert edited_lines(before, before) == 0
    assert edited_lines(before, "a\nB\nc\n# other words\n\n") == 1
    assert edited_lines(before, "a\nb\nc\nd\ne\n") == 2
    assert edited_lines(before, "c\n") == 2
    assert edited_lines("#include <a>\nx\n", "#include <b>\nx\n") == 1


@pytest.mark.long
@needs_nvrtc
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
def test_what_is_filled_in_runs_and_its_edits_are_counted(tmp_path, monkeypatch, capsys):
    shutil.copytree(OURS, tmp_path / "ours")
    drafted = tunesmith.extract(OURS, kernel="shift_by_two", out=tmp_path / "draft", trim=False)
    assert drafted.fills == 2
    own = tmp_path / "edits" / "ours" / "shift_by_two"
    own.mkdir(parents=True)
    text = (tmp_path / "draft" / "problem.toml").read_text().replace('"FILL"', "300")
    (own / "problem.toml").write_text(text)
    monkeypatch.setattr(extraction, "KERNELS", {MET: (("ours", "", "shift_by_two scale_rows_kernel"),)})
    edits = ["--edits", str(tmp_path / "edits"), "--run", "--json", str(tmp_path / "figures.json")]
    monkeypatch.setattr(sys, "argv", ["extraction", str(tmp_path), *edits])
    extraction.main()
    (one,) = json.loads((tmp_path / "figures.json").read_text())
    assert (one["alone"], one["kernel_edits"], one["problem_edits"]) == (True, 0, 2)
    assert one["cases"] > 3
    assert one["watched"]
    assert "| shift_by_two | yes |  | 0 | 2 | runs, " in capsys.readouterr().out
