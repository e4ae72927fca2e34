"""A library as older versions kept it: one JSON file for each template, and for what did not pay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from tunesmith.problem.codec import Malformed, decode
from tunesmith.run.files import read_plain
from tunesmith.run.lessons import KernelLessons
from tunesmith.run.library import FORMAT, NAME, UNSAID, LibraryEntry
from tunesmith.session.library_store import LARGEST, Note

T = TypeVar("T")


def read_folder(folder: Path, note: Note) -> tuple[list[LibraryEntry], list[KernelLessons]]:
    """All that can be read; of the others it is said why. The files stay where they are."""
    entries = [
        entry
        for path, entry in _each(folder, LibraryEntry, note)
        if _is_ours(entry, path.name.removesuffix(".json"), note)
    ]
    return entries, [lessons for _, lessons in _each(folder / "lessons", KernelLessons, note)]


def _is_ours(entry: LibraryEntry, name: str, note: Note) -> bool:
    ours = entry.name == name and bool(NAME.fullmatch(name)) and entry.format in (UNSAID, FORMAT)
    if not ours:
        note(f"passed over in the library: {name}.json: not an entry of format {FORMAT} under its own name")
    return ours


def _each(folder: Path, kind: type[T], note: Note) -> Iterator[tuple[Path, T]]:
    for path in sorted(folder.glob("*.json")):
        try:
            data = read_plain(path, LARGEST + 1)
            if len(data) > LARGEST:
                raise Malformed(f"larger than {LARGEST >> 20} MiB, so no entry of ours")
            yield path, decode(data, kind, "library entry")
        except OSError as error:
            note(f"passed over in the library: {path.name}: {error.strerror or error}")
        except Malformed as error:
            note(f"passed over in the library: {path.name}: {error}")
