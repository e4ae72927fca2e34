"""A small repository of ours, as `tunesmith extract` meets one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunesmith.plugins.repo.extract.tree import Repository

ROOT = Path(__file__).parent / "repository"


@pytest.fixture(scope="session")
def repository() -> Repository:
    return Repository(ROOT)
