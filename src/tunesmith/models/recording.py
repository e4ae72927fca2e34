"""Replies kept as files, and given again for the same questions: any model, for free, always the same."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.core.codec import Malformed, decode, encode
from tunesmith.core.dialogue import Model, NoReply, Pending, Reply, Request


@dataclass(frozen=True)
class Entry:
    """One exchange. The request is kept whole, so that a recording can be read and judged by itself."""

    model: str
    request: Request
    reply: Reply


@dataclass
class Recorder:
    """Asks another model, and keeps what it says."""

    model: Model
    folder: Path

    @property
    def name(self) -> str:
        return self.model.name

    def reply(self, request: Request) -> Reply | Pending | NoReply:
        answer = self.model.reply(request)
        if isinstance(answer, Reply):
            self.folder.mkdir(parents=True, exist_ok=True)
            file = self.folder / f"{request.name}.json"
            part = file.with_name(f".{file.name}.part")
            part.write_bytes(encode(Entry(self.name, request, answer)))
            os.replace(part, file)
        return answer


@dataclass
class Player:
    """Gives recorded replies: for the n-th time a question is asked, the n-th reply that was given to it."""

    folder: Path
    name: str = "recorded"
    _asked: Counter[str] = field(default_factory=Counter, init=False)
    _known: dict[str, list[Reply]] | None = field(default=None, init=False)

    def skip(self, answered: Iterable[Request]) -> None:
        """What a run was told before it was interrupted is not told again."""
        self._asked.update(request.digest for request in answered)

    def reply(self, request: Request) -> Reply | Pending | NoReply:
        if self._known is None:
            try:
                self._known = _read(self.folder)
            except OSError as error:
                return NoReply(f"the recording {self.folder} cannot be read: {error.strerror}", lasts=True)
            except Malformed as error:
                return NoReply(f"the recording {self.folder} is damaged: {error}", lasts=True)
        replies = self._known.get(request.digest, [])
        number = self._asked[request.digest]
        if number >= len(replies):
            return NoReply(f"the recording {self.folder} has no reply to request {request.name}", lasts=True)
        self._asked[request.digest] += 1
        return replies[number]


def _read(folder: Path) -> dict[str, list[Reply]]:
    known: dict[str, list[Reply]] = {}
    for file in sorted(folder.iterdir()):
        if file.suffix == ".json":
            entry = decode(file.read_bytes(), Entry)
            known.setdefault(entry.request.digest, []).append(entry.reply)
    return known
