"""Records the runs of the net anew: python -m tests.golden.record [NAME…]

NAME may have * in it; without one all are recorded. Runs on the simulated device and on OpenCL are started as
a user starts them; where no device is, outcomes are made up. A journal, and the texts that it names, are kept
in `runs.tar.xz`; machine code is not, and the name of the machine's system is taken out.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from tests import fewer_calls, running
from tests.golden import entry
from tests.golden.archive import read_archive, write_archive
from tests.golden.recipes import RECIPES

ARCHIVE = Path(__file__).with_name("runs.tar.xz")
DIGEST = re.compile(rb"[0-9a-f]{64}")
JOURNAL = "journal.jsonl"


def kept() -> Mapping[str, bytes]:
    """RUN/journal.jsonl, and objects/DIGEST for all of them."""
    return read_archive(ARCHIVE)


def names() -> list[str]:
    return sorted(name.partition("/")[0] for name in kept() if name.endswith(JOURNAL))


def unpack(name: str, place: Path) -> Path:
    """The folder of a run, as the program reads it."""
    run = place / name
    (run / "objects").mkdir(parents=True)
    journal = kept()[f"{name}/{JOURNAL}"]
    (run / JOURNAL).write_bytes(journal)
    for digest in set(DIGEST.findall(journal)):
        if (text := kept().get(f"objects/{digest.decode()}")) is not None:
            (run / "objects" / digest.decode()).write_bytes(text)
    return run


def packed(name: str, run: Path) -> Iterator[tuple[str, bytes]]:
    lines: list[bytes] = []
    head = entry.FIRST_DIGEST
    for line in (run / JOURNAL).read_bytes().splitlines():
        record = entry.decode_record(line)
        if isinstance(record.event, entry.Started):
            versions = tuple(pair for pair in record.event.versions if pair[0] != "system")
            record = replace(record, event=replace(record.event, versions=versions))
        lines.append(entry.encode_record(record, head))
        head = entry.sha256_hex(lines[-1])
    journal = b"".join(line + b"\n" for line in lines)
    yield f"{name}/{JOURNAL}", journal
    for digest in sorted(set(DIGEST.findall(journal))):
        file = run / "objects" / digest.decode()
        if file.is_file() and is_text(file.read_bytes()):
            yield f"objects/{digest.decode()}", file.read_bytes()


def is_text(data: bytes) -> bool:
    return b"\0" not in data


def write(files: Mapping[str, bytes]) -> None:
    """Without texts that no journal names any more."""
    named = {d.decode() for n, data in files.items() if n.endswith(JOURNAL) for d in DIGEST.findall(data)}
    files = {n: data for n, data in files.items() if n.endswith(JOURNAL) or n.partition("/")[2] in named}
    ordered = sorted(files, key=lambda name: (name.startswith("objects"), name))
    write_archive(ARCHIVE, {name: files[name] for name in ordered})


# Little is called in the end, and nobody waits for a quiet machine where no time is claimed.
SHORTER = f"{fewer_calls.IN_A_PROCESS}from tunesmith.lab import measure\n"
SHORTER += "assert measure.PATIENCE\nmeasure.PATIENCE = 0.0\n"


def main(wanted: Sequence[str]) -> int:
    exec(fewer_calls.IN_A_PROCESS)
    running.IN_A_PROCESS = SHORTER
    begun = time.monotonic()
    chosen = [name for name in RECIPES if any(fnmatchcase(name, one) for one in wanted or ["*"])]
    files = {n: data for n, data in kept().items() if n.partition("/")[0] not in chosen}
    files = {n: data for n, data in files.items() if n.partition("/")[0] in ("objects", *RECIPES)}
    failed = []
    for name in chosen:
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="golden-") as place:
            try:
                files |= packed(name, RECIPES[name](Path(place)))
            except Exception:
                failed.append(name)
                traceback.print_exc()
                files |= {n: data for n, data in kept().items() if n.startswith(f"{name}/")}
                continue
        events = files[f"{name}/{JOURNAL}"].count(b"\n")
        print(f"{name}: {events} events in {time.monotonic() - start:.0f} s", flush=True)
        write(files)
    size = os.stat(ARCHIVE).st_size
    print(f"{len(chosen)} runs in {time.monotonic() - begun:.0f} s; {ARCHIVE.name} has {size >> 10} KiB")
    print(f"failed, and kept as they were: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
