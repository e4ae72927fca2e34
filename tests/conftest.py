"""Nothing a test does reaches the user's own folders; tests that need a GPU skip where there is none."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tunesmith import registry
from tunesmith.config import worker_environment

# Set before any test module asks a driver anything: PoCL reads its environment once.
_SCRATCH = Path(tempfile.mkdtemp(prefix="tunesmith-tests-"))
registry.write_linker_stubs(_SCRATCH / "lib")
os.environ.update({k: v for k, v in worker_environment(_SCRATCH).items() if k != "TMPDIR"})


def pytest_unconfigure() -> None:
    shutil.rmtree(_SCRATCH, ignore_errors=True)


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNESMITH_CACHE_DIR", str(tmp_path / "user-cache"))
    for name in [n for n in os.environ if n.startswith("TUNESMITH_") and n != "TUNESMITH_CACHE_DIR"]:
        monkeypatch.delenv(name)
