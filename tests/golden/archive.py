"""Small archives of named texts, which git keeps as one file."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from difflib import unified_diff
from functools import cache
from pathlib import Path


def archive_of(group: str) -> Path:
    """Of a group of `tests.golden.shown`."""
    return Path(__file__).with_name(f"shown-{group}.tar.xz")


@cache
def read_archive(path: Path) -> Mapping[str, bytes]:
    """Empty where there is none yet."""
    if not path.exists():
        return {}
    with tarfile.open(path) as archive:
        return {one.name: archive.extractfile(one).read() for one in archive}  # type: ignore[union-attr]


def write_archive(path: Path, files: Mapping[str, bytes]) -> None:
    """In this order: what is alike should stand side by side. Whoever reads finds all of it."""
    fresh = path.with_suffix(".new")
    with tarfile.open(fresh, "w:xz", preset=9) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    fresh.replace(path)


def first_difference(was: Mapping[str, bytes], now: Mapping[str, bytes], shown: int = 40) -> str:
    """Its first lines; empty where every text is what it was."""
    for name in dict.fromkeys([*was, *now]):
        if was.get(name) != now.get(name):
            old, new = ((texts.get(name) or b"").decode(errors="replace") for texts in (was, now))
            lines = unified_diff(old.splitlines(), new.splitlines(), "was", "is", lineterm="")
            return "\n".join([f"{name}:", *list(lines)[:shown]])
    return ""
