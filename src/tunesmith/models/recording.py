"""Conversations as files, and played again. What a mailbox holds is one: a request and a reply, each a file.

A recorded reply is given to the next question of its role, whatever the figures in it are: times are measured
anew in every run, and differ. So the same recording gives the same replies in the same order, everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tunesmith.errors import BadInput
from tunesmith.models.mailbox import letter
from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.run.dialogue import LONGEST, Exchange, NoReply, Pending, Reply, Request, Usage
from tunesmith.run.events import Settings, Started
from tunesmith.run.store import write_whole
from tunesmith.text import counted

ABOUT = "about.json"
_REPLY = re.compile(r"(?P<number>\d+)-(?P<role>[a-z]+)\.reply\.md")
_MOST_BYTES = 4 * LONGEST


@dataclass(frozen=True)
class ReplyFacts:
    """What a reply's text does not say."""

    usage: Usage = field(default_factory=Usage)
    seconds: float | None = None
    is_cut: bool = False


@dataclass(frozen=True)
class About:
    """The run a recording comes from. A folder without it, as a mailbox is, can be played as well."""

    problem: str = ""
    backend: str = ""
    device: str = ""
    settings: Settings = field(default_factory=Settings)
    replies: dict[str, ReplyFacts] = field(default_factory=dict)
    unanswered: dict[str, str] = field(default_factory=dict)  # requests that were given up, and why


def keep(folder: Path, started: Started, dialogue: Iterable[Exchange]) -> None:
    """All that has been said in a run so far; what is there already is written again."""
    replies: dict[str, ReplyFacts] = {}
    unanswered: dict[str, str] = {}
    folder.mkdir(parents=True, exist_ok=True)
    for exchange in dialogue:
        name, reply = exchange.request.name, exchange.reply
        _write(folder / f"{name}.request.md", letter(exchange.request, f"{name}.reply.md"))
        if reply is not None:
            _write(folder / f"{name}.reply.md", reply.text)
            replies[name] = ReplyFacts(reply.usage, reply.seconds, reply.is_cut)
        elif exchange.failed:
            unanswered[name] = exchange.failed
    own = (started.problem, started.backend, started.device.name, started.settings)
    about = About(*own, replies, unanswered)
    _write(folder / ABOUT, encode(about).decode())


def read_about(folder: Path) -> About:
    file = folder / ABOUT
    return decode(file.read_bytes(), About, "recording") if file.exists() else About()


@dataclass
class Player:
    """The first reply to a question that is not word for word the recorded one says so in its note."""

    folder: Path
    name: str = "recorded"
    _given: Counter[str] = field(default_factory=Counter, init=False)
    _known: dict[str, list[tuple[str, Reply | NoReply]]] | None = field(default=None, init=False)
    _has_noted: bool = field(default=False, init=False)

    def prepare(self) -> None:
        """Without its folder every request would be given up, as if a model had failed."""
        if not self.folder.is_dir():
            raise BadInput(
                f"the recording is a folder, there is no folder {str(self.folder)!r}",
                hint="name what --record DIR has written, or a mailbox; it counts from the current folder",
            )

    def skip(self, dialogue: Iterable[Exchange]) -> None:
        """What a run was told before it was interrupted is not told again."""
        for exchange in dialogue:
            self._given[exchange.request.role] += not exchange.is_open
            self._has_noted |= exchange.reply is not None and bool(exchange.reply.note)

    def reply(self, request: Request) -> Reply | Pending | NoReply:
        """A role that is asked too often does not answer; a recording that is not here may be elsewhere."""
        self.prepare()
        try:
            if self._known is None:
                self._known = _read(self.folder)
            if not self._known:
                hint = "name a folder with files such as 0001-planner.reply.md"
                raise BadInput(f"the recording {self.folder} holds no reply", hint=hint)
            own, place = self._known.get(request.role, []), self._given[request.role]
            if place >= len(own):
                known = counted(len(own), "reply", "replies")
                why = f"the recording {self.folder} has {known} of the {request.role}"
                return NoReply(f"{why}, and request {request.name} asks for another", lasts=True)
            self._given[request.role] += 1
            name, found = own[place]
            return replace(found, note=self._noted(name, request)) if isinstance(found, Reply) else found
        except OSError as error:
            raise BadInput(f"the recording {self.folder} cannot be read: {error.strerror}") from error
        except Malformed as error:
            raise BadInput(f"the recording {self.folder} is damaged: {error}") from error

    def _noted(self, name: str, request: Request) -> str:
        file = self.folder / f"{name}.request.md"
        if self._has_noted or not file.exists():
            return ""
        same = replace(request, number=int(name.partition("-")[0]))
        if file.read_bytes().decode("utf-8", "replace") == letter(same, f"{name}.reply.md"):
            return ""
        self._has_noted = True
        return (
            f"recorded as {name}, for a request with other figures or words; it is taken all the same, and "
            "so are those after it"
        )


def _read(folder: Path) -> dict[str, list[tuple[str, Reply | NoReply]]]:
    """By role, in the order of their numbers."""
    about = read_about(folder)
    numbered: list[tuple[int, str, str, Reply | NoReply]] = []
    for file in folder.iterdir():
        match = _REPLY.fullmatch(file.name)
        if match is not None:
            name = file.name.removesuffix(".reply.md")
            facts = about.replies.get(name, ReplyFacts())
            with file.open("rb") as source:
                text = source.read(_MOST_BYTES).decode("utf-8", "replace")
            is_cut = facts.is_cut or len(text) > LONGEST
            reply = Reply(text[: LONGEST + 1], facts.usage, facts.seconds, is_cut)
            numbered.append((int(match["number"]), match["role"], name, reply))
    for name, why in about.unanswered.items():
        number, _, role = name.partition("-")
        if number.isdecimal():
            numbered.append((int(number), role, name, NoReply(why, lasts=True)))
    found: dict[str, list[tuple[str, Reply | NoReply]]] = {}
    for _, role, name, said in sorted(numbered, key=lambda one: one[:3]):
        found.setdefault(role, []).append((name, said))
    return found


def _write(file: Path, text: str) -> None:
    write_whole(file, text.encode("utf-8", "replace"))
