"""A file is there whole or not at all, and nothing else is left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tunesmith.run.store import partial_of, write_whole


@pytest.mark.parametrize("shared", [False, True])
def test_what_is_written_replaces_what_was_there(tmp_path: Path, shared: bool) -> None:
    target = tmp_path / "file"
    partial_of(target, shared=shared).write_bytes(b"left by a process that was killed")
    for data in (b"first", b"second, longer"):
        write_whole(target, data, shared=shared)
        assert target.read_bytes() == data
    assert list(tmp_path.iterdir()) == [target]


def test_a_disk_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "file"
    write_whole(target, b"old")

    def fails(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="No space"):
        write_whole(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_processes_do_not_write_into_each_other(tmp_path: Path) -> None:
    assert str(os.getpid()) in partial_of(tmp_path / "file", shared=True).name
    assert partial_of(tmp_path / "file").name == ".file.part"
