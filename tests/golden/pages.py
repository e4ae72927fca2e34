"""All that people and programs read of a run: reports, the certificate, what is delivered, and the exports.

python -m tests.golden.pages        writes `pages.tar.xz` anew, of runs that the net has recorded
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from typer.testing import CliRunner

from tests.end_to_end import written
from tests.golden import entry
from tests.golden.archive import read_archive, write_archive
from tests.golden.record import unpack
from tests.running import EXAMPLES

PAGES = Path(__file__).with_name("pages.tar.xz")
RUNS = ("fake-written", "cuda-given")
ENVIRONMENT = {"COLUMNS": "120", "TUNESMITH_LIBRARY_DIR": "library", "TUNESMITH_CACHE_DIR": "cache"}
# What must vary: the day, and the version of what it is made with.
VARYING = (
    (re.compile(rb"\b20\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?"), b"DAY"),
    (re.compile(rb"/tmp/[^\s\"']*?golden-[^\s\"'/]*"), b"PLACE"),
)


def command(place: Path, *words: object) -> bytes:
    """What it prints, and its exit code."""
    with contextlib.chdir(place), mock.patch.dict(os.environ, ENVIRONMENT):
        ended = CliRunner().invoke(entry.app, [str(word) for word in words])
    return f"{ended.stdout}\n-- stderr, exit code {ended.exit_code}\n{ended.stderr}".encode()


def pages_of(name: str, place: Path) -> Iterator[tuple[str, bytes]]:
    unpack(name, place)
    yield "resume.txt", command(place, "resume", name)
    for words in (("",), ("", "--full"), ("", "--format", "html"), ("", "--format", "json")):
        yield f"report{' '.join(words)}.txt", command(place, "report", name, *words[1:])
    yield "verify.txt", command(place, "verify", name)
    for target in entry.EXPORTS:
        yield f"export {target}.txt", command(place, "export", name, "--to", target, "--out", target)
        yield from files_in(place / target, f"exports/{target}")
    shutil.rmtree(place / name / "objects")
    yield from files_in(place / name, "run")


def files_in(folder: Path, name: str) -> Iterator[tuple[str, bytes]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.name not in ("journal.jsonl", "lock"):
            yield f"{name}/{file.relative_to(folder)}", file.read_bytes()


def explained(place: Path) -> Iterator[tuple[str, bytes]]:
    written.problem(place / "problem")
    yield "explain.txt", command(place, "explain", "problem")
    shutil.copy(EXAMPLES / "cuda" / "rmsnorm" / "kernel.cu", place)
    yield "explain kernel.txt", command(place, "explain", "kernel.cu")


def all_pages() -> dict[str, bytes]:
    found = {}
    for name in (*RUNS, "explain"):
        with tempfile.TemporaryDirectory(prefix="golden-") as place:
            made = pages_of(name, Path(place)) if name in RUNS else explained(Path(place))
            for page, content in made:
                for pattern, word in VARYING:
                    content = pattern.sub(word, content)
                found[f"{name}/{page}"] = content
    return found


if __name__ == "__main__":
    write_archive(PAGES, all_pages())
    print(f"{len(read_archive(PAGES))} pages, {PAGES.stat().st_size >> 10} KiB")
