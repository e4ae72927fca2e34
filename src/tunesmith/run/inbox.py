"""What whoever watches a run asks of it: files in its folder, each written whole and taken away when it is in
the journal. Killed in between, the run finds the file again, and by its name that it is in the journal."""

from __future__ import annotations

import os
import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.run.dialogue import InstructionKind, RunInstruction
from tunesmith.run.files import read_plain, write_whole

INBOX = "inbox"  # in a run's folder
LONGEST_HINT = 1000  # characters
MOST_WAITING = 64  # instructions that may lie there
_LONGEST_FILE = 8 * LONGEST_HINT
_NAME = re.compile(r"[0-9]{20}-[0-9a-f]{8}\.json")


@dataclass(frozen=True)
class _InstructionFile:
    what: InstructionKind
    text: str = ""


class FolderInbox:
    """Of one run. Names sort by the time at which they were written."""

    def __init__(self, run: Path) -> None:
        self._folder = run / INBOX

    def put(self, what: InstructionKind, text: str = "") -> str:
        """On disk when it returns."""
        self._folder.mkdir(exist_ok=True)
        id_ = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
        write_whole(self._folder / f"{id_}.json", encode(_InstructionFile(what, text[:LONGEST_HINT])))
        return id_

    def waiting(self) -> tuple[RunInstruction, ...]:
        """In the order in which they were written; what is none is taken away. The run looks between any two
        steps, so an inbox that nobody has used costs one system call."""
        try:
            names = sorted(filter(_NAME.fullmatch, os.listdir(self._folder)))
        except OSError:
            return ()
        found = []
        for name in names[:MOST_WAITING]:
            try:
                given = decode(read_plain(self._folder / name, _LONGEST_FILE), _InstructionFile)
            except (OSError, Malformed):
                self.drop(name.removesuffix(".json"))
            else:
                found.append(
                    RunInstruction(name.removesuffix(".json"), given.what, given.text[:LONGEST_HINT])
                )
        return tuple(found)

    def drop(self, id: str) -> None:
        if not _NAME.fullmatch(f"{id}.json"):
            return  # of what was never a file
        try:
            (self._folder / f"{id}.json").unlink(missing_ok=True)
        except OSError:
            return  # a folder of that name, or a disk that cannot be written: its id is in the journal
