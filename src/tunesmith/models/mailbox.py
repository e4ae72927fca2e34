"""A model that answers by files: each request is written, and the run waits for the reply beside it.

So a person, a coding agent or a machine without network can be the model.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tunesmith.errors import BadInput
from tunesmith.run.dialogue import LONGEST, Pending, Reply, Request
from tunesmith.run.store import write_whole

WANTED = {
    "json": "one JSON object and nothing else. A fence of three backticks around it is fine.",
    "file": "one whole file between two fences of three backticks. Words before and after it are read by "
    "nobody; code outside of the fences is lost.",
    "turn": "a few sentences, then one whole file between two fences of three backticks; or, to stop, one "
    'JSON object instead of the file: {"decision": "stop", "why": "..."}.',
}
POLL = 0.5
SETTLED = 1.0  # seconds without a change, after which a file that somebody writes is believed to be whole


def letter(request: Request, reply_name: str) -> str:
    """Markdown. Fences are long, so that whatever a message holds stays inside."""
    parts = [
        f"# Request {request.number}: {request.role}",
        f"Write the answer to the file `{reply_name}` beside this one (under another name first, then rename "
        "it: a file that is there is read). It needs nothing but what is said here.",
        f"**Expected**: {WANTED[request.expects]} At most about {request.most_tokens} tokens.",
    ]
    if request.example and not any(request.example.strip() in m.text for m in request.messages):
        parts += ["## An answer that would be understood", _fenced(request.example)]
    parts += [f"## {m.speaker}\n\n{_fenced(m.text)}" for m in request.messages]
    return "\n\n".join(parts) + "\n"


def _fenced(text: str) -> str:
    runs = (len(line) - len(line.lstrip("~")) for line in map(str.strip, text.splitlines()))
    longest = max(runs, default=0)
    fence = "~" * max(5, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


@dataclass
class Mailbox:
    """`wait`: until the reply is there, else `Pending` when it is not. `folder` as errors should name it."""

    folder: Path
    wait: bool = True
    tell: Callable[[str], None] = lambda text: None
    name: str = "mailbox"

    def reply(self, request: Request) -> Reply | Pending:
        target = self.folder / f"{request.name}.reply.md"
        try:
            self._write(request, target.name)
            if self.wait and not target.exists():
                self.tell(f"waiting for {target}")
            reported = ""
            while True:
                text = _whole(target)
                if text is not None:
                    return Reply(text[: LONGEST + 1], is_cut=len(text) > LONGEST)
                seen = near_miss(target)
                if not self.wait:
                    return Pending(str(target), seen)
                if seen and seen != reported:
                    reported = seen
                    self.tell(f"still waiting for {target}: {seen}")
                time.sleep(POLL)
        except OSError as error:  # a folder that is gone is no answer: nobody decides without one
            hint = "make it a folder that can be written, with replies that can be read"
            words = f"the mailbox {self.folder} cannot be used: {error.strerror or error}"
            raise BadInput(words, hint=hint) from error

    def _write(self, request: Request, reply_name: str) -> None:
        """Once: a request that is there was asked by this run before it was interrupted, or by another run,
        whose reply is not ours."""
        file = self.folder / f"{request.name}.request.md"
        text = letter(request, reply_name)
        if file.exists():
            there = file.read_text("utf-8", "replace")
            if there == text:
                return
            if not all(message.text.strip() in there for message in request.messages):
                raise BadInput(
                    f"{file} is a request of another run: its reply would be taken for the reply to this one",
                    hint=f"move the files in {self.folder} elsewhere, and name a folder for each run",
                )
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(file, text.encode())


def near_miss(target: Path) -> str:
    """What is there in place of a reply that cannot be read, and what to do; empty where nothing is."""
    with contextlib.suppress(FileNotFoundError):
        return f"{target.name} is there but empty" if target.stat().st_size == 0 else ""
    number = target.name.partition("-")[0].lstrip("0")
    alike = re.compile(rf"0*{re.escape(number)}(?!\d)(?!.*request)[\w.~ -]{{0,80}}", re.IGNORECASE)
    for file in sorted(target.parent.glob("*")):
        if alike.fullmatch(file.name) and file.is_file():
            return f"there is {file.name}: rename it to {target.name}"
    return ""


def _whole(file: Path) -> str | None:
    """What it holds, once nobody writes to it any more; None before."""
    try:
        before = file.stat()
    except FileNotFoundError:
        return None
    if before.st_size == 0:
        return None
    quiet = time.time() - before.st_mtime
    if 0 <= quiet < SETTLED:
        time.sleep(SETTLED - quiet)
    with file.open("rb") as source:
        data = source.read(4 * LONGEST + 4)
    after = file.stat()
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        return None
    return data.decode("utf-8", "replace")
