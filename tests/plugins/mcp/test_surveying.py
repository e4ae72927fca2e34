"""What is listed below folders, whatever lies in them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tunesmith.plugins.mcp.tools import inspect_path, run_files

STRANGE = os.fsdecode(b"\xff.cu")


def a_run(folder: Path, *delivered: str) -> Path:
    (folder / "tuned").mkdir(parents=True)
    (folder / "journal.jsonl").write_text("")
    for name in delivered:
        (folder / "tuned" / name).write_text("")
    return folder


def test_names_that_no_answer_can_spell_are_passed_over(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run", "kernel.cu", STRANGE)
    a_run(tmp_path / STRANGE)
    assert run_files([tmp_path]) == [(run, ("kernel.cu",))]
    (tmp_path / "src").mkdir()
    for name in ("kernel.cu", STRANGE):
        (tmp_path / "src" / name).write_text("")
    found = inspect_path(tmp_path, [tmp_path], None)
    assert (found.runs, found.sources) == ((str(run),), (str(tmp_path / "src" / "kernel.cu"),))


def test_what_may_not_be_read_hides_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, other = a_run(tmp_path / "closed", "a.cu"), a_run(tmp_path / "open", "b.cu")
    scan = os.scandir

    def refusing(path: Any) -> Any:
        if Path(path) == closed / "tuned":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert dict(run_files([tmp_path])) == {closed: (), other: ("b.cu",)}
