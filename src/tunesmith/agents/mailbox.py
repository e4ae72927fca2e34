"""Models by files: a mailbox, to which each request is written and the run waits for the reply beside it, so
that a person, a coding agent or a machine without network can be the model; and conversations written so,
played again.

A recorded reply is given to the next question of its role, whatever the figures in it are: times are
measured anew in every run, and differ. So the same recording gives the same replies in the same order,
everywhere.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.errors import BadInput
from tunesmith.base.files import open_plain, read_plain, write_whole
from tunesmith.base.text import format_count
from tunesmith.run.events import LONGEST, Exchange, NoReply, Pending, Reply, Request, Settings, Started, Usage

WANTED = {
    "json": "one JSON object and nothing else. A fence of three backticks around it is fine.",
    "file": "one whole file between two fences of three backticks. Words before and after it are read by "
    "nobody; code outside of the fences is lost.",
    "turn": "a few sentences, then one whole file between two fences of three backticks; or, to stop, one "
    'JSON object instead of the file: {"decision": "stop", "why": "..."}.',
}
POLL = 0.5
SETTLED = 1.0  # seconds without a change, after which a file that somebody writes is believed to be whole


def format_letter(request: Request, reply_name: str) -> str:
    """Markdown. Fences are long, so that whatever a message holds stays inside."""
    parts = [
        f"# Request {request.number}: {request.role}",
        f"Write the answer to the file `{reply_name}` beside this one (under another name first, then rename "
        "it: a file that is there is read). It needs nothing but what is said here.",
        f"**Expected**: {WANTED[request.expects]} At most about {request.most_tokens} tokens.",
    ]
    if request.example and not any(request.example.strip() in m.text for m in request.messages):
        parts += ["## An answer that would be understood", _fence_with_tildes(request.example)]
    parts += [f"## {m.speaker}\n\n{_fence_with_tildes(m.text)}" for m in request.messages]
    return "\n\n".join(parts) + "\n"


def _fence_with_tildes(text: str) -> str:
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
    _taken: dict[str, str] = field(default_factory=dict, init=False)  # names of replies, and their texts
    _changed: dict[str, str] = field(default_factory=dict, init=False)  # those that say something else now

    def skip(self, dialogue: Iterable[Exchange]) -> None:
        """What was taken in before this process began."""
        self._taken |= {e.request.name: e.reply.text for e in dialogue if e.reply is not None}
        self._look_again()

    def _look_again(self) -> str:
        """Of replies that were changed after they were taken in, those not told of yet."""
        found = []
        for name, text in self._taken.items():
            try:
                now = _as_taken(read_plain(self.folder / f"{name}.reply.md", _MAX_BYTES))
            except OSError:  # it was tidied away, or is another model's
                continue
            if now != text and self._changed.get(name) != now:
                self._changed[name] = now
                found.append(f"{name}.reply.md")
        if not found:
            return ""
        words = f"{', '.join(found)}: changed after it was taken in; the run goes by what it said then"
        self.tell(f"note: {words}")
        return words

    @property
    def at_once(self) -> bool:
        return not self.wait

    def reply(self, request: Request) -> Reply | Pending:
        target = self.folder / f"{request.name}.reply.md"
        note = self._look_again()
        try:
            self._write(request, target.name)
            if self.wait and not os.path.lexists(target):
                self.tell(f"waiting for {target}")
            reported = ""
            while True:
                text = _read_settled(target)
                if text is not None:
                    self._taken[request.name] = _as_taken(text.encode("utf-8", "replace"))
                    return Reply(text[: LONGEST + 1], is_cut=len(text) > LONGEST, note=note)
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
        text = format_letter(request, reply_name)
        if os.path.lexists(file):
            there = read_plain(file, _MAX_BYTES).decode("utf-8", "replace")
            if there == text:
                return
            if not all(message.text.strip() in there for message in request.messages):
                raise BadInput(
                    f"{file} is a request of another run: its reply would be taken for the reply to this one",
                    hint=f"move the files in {self.folder} elsewhere, and name a folder for each run",
                )
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(file, text.encode())


def _as_taken(data: bytes) -> str:
    """As the journal has it: no longer than is looked at, and without halves of characters."""
    return data.decode("utf-8", "replace")[: LONGEST + 1].encode("utf-8", "replace").decode()


def near_miss(target: Path) -> str:
    """What is there in place of a reply that cannot be read, and what to do; empty where nothing is."""
    with contextlib.suppress(FileNotFoundError):
        return "" if read_plain(target, 1) else f"{target.name} is there but empty"
    number = target.name.partition("-")[0].lstrip("0")
    alike = re.compile(rf"0*{re.escape(number)}(?!\d)(?!.*request)[\w.~ -]{{0,80}}", re.IGNORECASE)
    for file in sorted(target.parent.glob("*")):
        if alike.fullmatch(file.name) and file.is_file():
            return f"there is {file.name}: rename it to {target.name}"
    return ""


def has_reply(file: Path) -> bool:
    """Whether it is worth a look: it may still be written."""
    try:
        return bool(read_plain(file, 1))
    except FileNotFoundError:
        return False
    except OSError:
        return True  # what is wrong with it is told to whoever reads it


def _read_settled(file: Path) -> str | None:
    """What it holds, once nobody writes to it any more; None before."""
    try:
        source = os.fdopen(open_plain(file, os.O_RDONLY), "rb")
    except FileNotFoundError:
        return None
    with source:
        before = os.fstat(source.fileno())
        if before.st_size == 0:
            return None
        quiet = time.time() - before.st_mtime
        if quiet < SETTLED:  # also where the clock was set back, and the file comes from the future
            time.sleep(SETTLED - max(quiet, 0.0))
        data = source.read(4 * LONGEST + 4)
        after = os.fstat(source.fileno())
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        return None
    return data.decode("utf-8", "replace")


ABOUT = "about.json"
_REPLY = re.compile(r"(?P<number>\d+)-(?P<role>[a-z]+)\.reply\.md")
_MAX_BYTES = 4 * LONGEST


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


def write_dialogue(folder: Path, started: Started, dialogue: Iterable[Exchange]) -> None:
    """All that has been said in a run so far; what is there already is written again."""
    replies: dict[str, ReplyFacts] = {}
    unanswered: dict[str, str] = {}
    folder.mkdir(parents=True, exist_ok=True)
    for exchange in dialogue:
        name, reply = exchange.request.name, exchange.reply
        _write_letter(folder / f"{name}.request.md", format_letter(exchange.request, f"{name}.reply.md"))
        if reply is not None:
            _write_letter(folder / f"{name}.reply.md", reply.text)
            replies[name] = ReplyFacts(reply.usage, reply.seconds, reply.is_cut)
        elif exchange.failed:
            unanswered[name] = exchange.failed
    about = About(
        started.problem, started.backend, started.device.name, started.settings, replies, unanswered
    )
    _write_letter(folder / ABOUT, encode_json(about).decode())


def read_about(folder: Path) -> About:
    file = folder / ABOUT
    return decode_json(read_plain(file), About, "recording") if os.path.lexists(file) else About()


@dataclass
class Player:
    """The first reply to a question that is not word for word the recorded one says so in its note. Replies
    are in their order, so it is asked in that of the requests."""

    folder: Path
    name: str = "recorded"
    _given: Counter[str] = field(default_factory=Counter, init=False)
    _known: dict[str, list[tuple[str, Reply | NoReply]]] | None = field(default=None, init=False)
    _has_noted: bool = field(default=False, init=False)

    @property
    def at_once(self) -> bool:
        return True

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
                self._known = _read_replies(self.folder)
            if not self._known:
                hint = "name a folder with files such as 0001-planner.reply.md"
                raise BadInput(f"the recording {self.folder} holds no reply", hint=hint)
            replies, place = self._known.get(request.role, []), self._given[request.role]
            if place >= len(replies):
                known = format_count(len(replies), "reply", "replies")
                why = f"the recording {self.folder} has {known} of the {request.role}"
                return NoReply(f"{why}, and request {request.name} asks for another", lasts=True)
            self._given[request.role] += 1
            name, found = replies[place]
            return replace(found, note=self._noted(name, request)) if isinstance(found, Reply) else found
        except OSError as error:
            raise BadInput(f"the recording {self.folder} cannot be read: {error.strerror}") from error
        except Malformed as error:
            raise BadInput(f"the recording {self.folder} is damaged: {error}") from error

    def _noted(self, name: str, request: Request) -> str:
        file = self.folder / f"{name}.request.md"
        if self._has_noted or not file.is_file():
            return ""
        same = replace(request, number=int(name.partition("-")[0]))
        if read_plain(file, _MAX_BYTES).decode("utf-8", "replace") == format_letter(same, f"{name}.reply.md"):
            return ""
        self._has_noted = True
        return (
            f"recorded as {name}, for a request with other figures or words; it is taken all the same, and "
            "so are those after it"
        )


def _read_replies(folder: Path) -> dict[str, list[tuple[str, Reply | NoReply]]]:
    """By role, in the order of their numbers."""
    about = read_about(folder)
    numbered: list[tuple[int, str, str, Reply | NoReply]] = []
    for file in folder.iterdir():
        match = _REPLY.fullmatch(file.name)
        if match is not None:
            name = file.name.removesuffix(".reply.md")
            facts = about.replies.get(name, ReplyFacts())
            text = read_plain(file, _MAX_BYTES).decode("utf-8", "replace")
            is_cut = facts.is_cut or len(text) > LONGEST
            reply = Reply(text[: LONGEST + 1], facts.usage, facts.seconds, is_cut)
            numbered.append((int(match["number"]), match["role"], name, reply))
    for name, why in about.unanswered.items():
        number, _, role = name.partition("-")
        if number.isdecimal() and len(number) < 10:
            numbered.append((int(number), role, name, NoReply(why, lasts=True)))
    found: dict[str, list[tuple[str, Reply | NoReply]]] = {}
    for _, role, name, said in sorted(numbered, key=lambda one: one[:3]):
        found.setdefault(role, []).append((name, said))
    return found


def _write_letter(file: Path, text: str) -> None:
    write_whole(file, text.encode("utf-8", "replace"))
