"""One folder for all that is emulated: a kernel that several tests compare with is compiled once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.expert.write.emulator import prepare


@pytest.fixture(scope="session")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("emulated")
    prepare()
    yield folder
    shutil.rmtree(folder)
