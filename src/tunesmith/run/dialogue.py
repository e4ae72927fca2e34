"""What is said between a run and a language model: requests, replies, and why there is none; and what whoever
watches it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from tunesmith.space.params import Config
from tunesmith.text import digest_of

Role = Literal["planner", "author", "tester", "analyst", "single", "extractor"]
ROLES: tuple[Role, ...] = ("planner", "author", "tester", "analyst")
SINGLE: Role = "single"  # plays all of them, in one conversation
Speaker = Literal["system", "user", "assistant"]
Expects = Literal["json", "file", "turn"]

LONGEST = 256 << 10  # characters of a reply that are looked at: no template and no plan is longer
PER_TOKEN = 3.5  # characters, in a mixture of code and words


@dataclass(frozen=True)
class Message:
    speaker: Speaker
    text: str
    digest: str = ""  # in a journal: the digest of a long text that stands beside it


@dataclass(frozen=True)
class Request:
    """One question to a model, with everything it is told. Models remember nothing between requests."""

    number: int  # within the run, from 1
    role: Role
    messages: tuple[Message, ...]
    expects: Expects  # one JSON object, one fenced block that is a whole file, or words and either
    example: str = ""  # of a reply that would be understood
    most_tokens: int = 16384
    branch: int = 0  # of several plans that a round of an old journal has, the one it is about

    @property
    def digest(self) -> str:
        """What is asked, whoever is asked and when: equal for equal questions."""
        said = [part for m in self.messages for part in (m.speaker, m.text)]
        return digest_of(self.role, self.expects, *said)

    @property
    def name(self) -> str:
        """For files: sorted as they were asked."""
        return f"{self.number:04d}-{self.role}"


@dataclass(frozen=True)
class Question:
    """What a role wants to know from its model before it can go on; asked, it becomes a `Request`."""

    role: Role
    messages: tuple[Message, ...]
    expects: Expects
    example: str = ""

    def request(self, number: int) -> Request:
        return Request(number, self.role, self.messages, self.expects, self.example)


@dataclass(frozen=True)
class Usage:
    """None: nobody said. Never zero for what is not known."""

    sent: int | None = None  # tokens
    received: int | None = None
    dollars: float | None = None
    cached: int | None = None  # of those sent: read from the other side's cache of prompts
    stored: int | None = None  # of those sent: written to it
    reasoning: int | None = None  # of those received: thought, not said


@dataclass(frozen=True)
class Reply:
    text: str
    usage: Usage = Usage()
    seconds: float | None = None
    is_cut: bool = False  # it ran into the limit on its length, or broke off behind what was asked for
    note: str = ""  # what is to be known of it beside its text
    digest: str = ""  # as of a message


@dataclass(frozen=True)
class Requested:
    """A question to a model, before it is sent. It stays open until it is answered or given up."""

    request: Request


@dataclass(frozen=True)
class Replied:
    number: int  # of the request
    reply: Reply


@dataclass(frozen=True)
class Unanswered:
    """An attempt that brought no reply; `final`: there will be no other."""

    number: int  # of the request
    reason: str
    lasts: bool  # asking again would give the same
    attempt: int  # from 1
    final: bool = False
    usage: Usage = Usage()  # what it took all the same, where somebody says
    came: int = 0  # characters that had come, said or thought


@dataclass(frozen=True)
class Lost:
    """What an attempt took that brought no reply."""

    usage: Usage
    came: int  # characters


@dataclass(frozen=True)
class Exchange:
    """A request and what came of it: a reply, a reason why there will be none, or nothing so far."""

    request: Request
    turn: int  # decisions of the run before it was asked: whatever follows from it belongs to the next
    drafts: int  # templates written before it
    reply: Reply | None = None
    failed: str = ""  # why there is no reply, once no more is asked
    attempts: int = 0  # that failed
    lost: tuple[Lost, ...] = ()  # what attempts took that failed

    @property
    def is_open(self) -> bool:
        return self.reply is None and not self.failed


@dataclass(frozen=True)
class Pending:
    """There is no reply yet; `where` says what is waited for, `found` what is there instead."""

    where: str
    found: str = ""


@dataclass(frozen=True)
class NoReply:
    """The model did not answer. `lasts`: asking again would give the same (a wrong key, an unknown model)."""

    reason: str
    lasts: bool = False
    wait: float | None = None  # seconds the other side asked us to wait
    usage: Usage = Usage()  # what it took all the same, where somebody says
    came: int = 0  # characters that had come, said or thought


class LanguageModel(Protocol):
    @property
    def name(self) -> str: ...

    def reply(self, request: Request) -> Reply | Pending | NoReply: ...


def tokens_of(text: str) -> int:
    """An estimate by length, for before a model has told."""
    return int(len(text) / PER_TOKEN) + 1


# -- whoever watches ----------------------------------------------------------------------------------------


InstructionKind = Literal["stop", "finish", "hint"]


@dataclass(frozen=True)
class RunInstruction:
    """As it lies in the inbox of a run."""

    id: str
    what: InstructionKind
    text: str = ""  # of a hint: values of parameters


@dataclass(frozen=True)
class Instructed:
    """What whoever watches has asked of the run, taken up once. A `stop` holds until the run goes on: then
    there is a `resume`."""

    id: str  # of what lay in the inbox; empty: a resume
    what: Literal["stop", "finish", "hint", "resume"]
    text: str = ""  # of a hint, as it was written
    config: Config | None = None  # that it names, to be tried next
    refused: str = ""  # why nothing comes of it
