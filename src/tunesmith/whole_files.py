"""Files that are written whole or not at all, whatever happens to the process or the disk meanwhile."""

from __future__ import annotations

import os
from pathlib import Path


def partial_of(target: Path, *, shared: bool = False) -> Path:
    """What it is called until it is whole: hidden, so that nobody who looks for files takes it for one."""
    return target.with_name(f".{target.name}.{os.getpid()}.part" if shared else f".{target.name}.part")


def write_whole(target: Path, data: bytes, *, shared: bool = False) -> None:
    """On disk when it returns. `shared`: several processes may write it at the same time."""
    partial = partial_of(target, shared=shared)
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
