"""A repository and a run; who applies it is in the repository: what only a file names is not changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.repo.apply.repositories import a_run, repository
from tunesmith.plugins.repo.apply import apply
from tunesmith.session.result import Run


@pytest.fixture(autouse=True)
def _in_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "repo").mkdir()
    monkeypatch.chdir(tmp_path / "repo")
    monkeypatch.setattr(apply, "find_nvcc", lambda: None)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return a_run(tmp_path / "runs" / "scale")
