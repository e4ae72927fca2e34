"""A repository on disk, read only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tunesmith.errors import BadInput

SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".inl", ".cc", ".cpp", ".inc", ".hip", ".hh")
_MOST_FILES = 50_000
_MOST_BYTES = 4 << 20  # of one file: longer ones are data
_LEFT_OUT = frozenset({"node_modules", "__pycache__", "build", "dist"})


def refuse_odd_name(place: Path) -> None:
    """Problem files are UTF-8, and name the places they come from."""
    try:
        str(place.resolve()).encode("utf-8")
    except UnicodeEncodeError as error:
        shown = str(place).encode("utf-8", "backslashreplace").decode()
        raise BadInput("its name is not UTF-8", where=shown, hint="rename it") from error


class Repository:
    """Its source files, which are read when they are asked for. Links are not followed."""

    def __init__(self, root: Path) -> None:
        refuse_odd_name(root)
        if not root.is_dir():
            hint = f"name its folder, and --file {root.name}" if root.is_file() else "correct the name"
            raise BadInput("a repository is a folder", where=str(root), hint=hint)
        self._root = root
        self._paths = tuple(sorted(self._listed()))
        self._texts: dict[str, str] = {}

    @property
    def root(self) -> Path:
        return self._root

    @property
    def paths(self) -> tuple[str, ...]:
        return self._paths

    def read(self, path: str) -> str:
        if path not in self._texts:
            place = self._root / path
            try:
                data = place.read_bytes() if place.stat().st_size <= _MOST_BYTES else b""
            except OSError as error:
                raise BadInput(f"cannot be read: {error.strerror}", where=str(place)) from error
            self._texts[path] = data.decode("utf-8", "replace").replace("\r\n", "\n")
        return self._texts[path]

    def _listed(self) -> Iterator[str]:
        count = 0
        for folder, inner, names in os.walk(self._root):
            inner[:] = [name for name in inner if not name.startswith(".") and name not in _LEFT_OUT]
            for name in names:
                place = Path(folder, name)
                if name.endswith(SUFFIXES) and not place.is_symlink():
                    count += 1
                    if count > _MOST_FILES:
                        fault = f"it has more than {_MOST_FILES:,} source files"
                        raise BadInput(fault, where=str(self._root), hint="give a folder inside of it")
                    yield place.relative_to(self._root).as_posix()
