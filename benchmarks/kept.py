"""Comparisons as they are kept: journals, plans and texts, in one small archive.

    python -m benchmarks.kept FOLDER ARCHIVE.tar.xz

FOLDER holds folders of `tunesmith compare`, at any depth. Of each the plan is kept, and of each run the
journal and the texts that it names. Times are cut to five digits, which is more than a clock can tell; the
version of the operating system is taken out. So every journal is chained anew, and proves no more that
nobody changed it: it can be read, and pages can be made of it.
"""

from __future__ import annotations

import argparse
import io
import re
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tunesmith.base.text import sha256_hex
from tunesmith.run.folder import JOURNAL, PLAN
from tunesmith.run.journal import FIRST

OBJECTS = "objects"
LONG_TIME = re.compile(rb"(?<=[\[,:])(\d\.\d{5,}e-\d+|0\.0\d{5,})(?=[\],}])")
BEFORE = re.compile(rb'"before":"[0-9a-f]{64}"')
SYSTEM = re.compile(rb'\["system","[^"]*"\],?')


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.kept", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("archive", type=Path)
    given = parser.parse_args(arguments)
    with tarfile.open(given.archive, "w:xz", preset=9) as archive:
        for name, content in kept(given.folder):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def kept(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Names below the folder, and what is kept under each."""
    for comparison in sorted(plan.parent for plan in folder.rglob(PLAN)):
        for path in sorted(comparison.rglob("*")):
            if path.name == JOURNAL:
                yield str(path.relative_to(folder)), small_journal(path.read_bytes())
            elif path.name == PLAN or path.parent.name == OBJECTS:
                yield str(path.relative_to(folder)), path.read_bytes()


def small_journal(journal: bytes) -> bytes:
    """The same events, with shorter times, chained anew."""
    lines: list[bytes] = []
    head = FIRST
    for whole in journal.split(b"\n")[:-1]:
        short = LONG_TIME.sub(lambda time: b"%.5g" % float(time[0]), SYSTEM.sub(b"", whole))
        line = BEFORE.sub(b'"before":"%s"' % head.encode(), short, count=1)
        head = sha256_hex(line)
        lines.append(line)
    return b"".join(line + b"\n" for line in lines)


if __name__ == "__main__":
    main()
