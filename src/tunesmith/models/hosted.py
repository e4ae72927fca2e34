"""Models behind a network: any endpoint that speaks OpenAI's protocol, and Anthropic's.

Replies are streamed (`streaming`). History, retries and budgets are the loop's, so that they are in the
journal. Keys come from the environment, and are cut out of what we repeat.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tunesmith.errors import BadInput
from tunesmith.run.dialogue import LONGEST, Expects, NoReply, Reply, Request
from tunesmith.text import counted, cut, flat, redacted

if TYPE_CHECKING:
    from tunesmith.models.streaming import Arrival, Incoming

KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
SECONDS = 600.0  # for one reply
STALL = 120.0  # without a sign, once a reply has begun; before it, a model may think as long as it has
GRACE = 5.0  # seconds after which a thread that should have ended is left to itself
LOOK = 0.25  # between two looks at what has come
FIRST_NOTE = 1.0  # seconds until progress is told; then at ever longer intervals, for whoever keeps the lines
SLOWER = 1.1
HINT = "install the extra that brings the client: pip install 'tunesmith[models]'"
LASTING = (400, 401, 402, 403, 404, 405, 422)
_FENCE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})", re.MULTILINE)
_HEADING = "\n\n## "


@dataclass
class Hosted:
    """`provider` is openai or anthropic; `url` another place that speaks that protocol. Several threads may
    ask at once."""

    provider: str
    model: str
    url: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    seconds: float = SECONDS
    effort: str = ""
    stall: float = STALL
    tell: Callable[[str], None] = lambda _text: None
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _material: dict[str, tuple[str, int]] = field(default_factory=dict, init=False, repr=False)

    @property
    def name(self) -> str:
        place = f"@{self.url}" if self.url else ""
        return f"{self.provider}:{self.model}{place}" + (f"#{self.effort}" if self.effort else "")

    @property
    def _key(self) -> str:
        return self.environment.get(KEYS[self.provider], "")

    def prepare(self) -> None:
        """Everything that can be refused before a run begins."""
        if not self._key and not self.url:
            raise BadInput(
                f"the model {self.name} needs a key, and {KEYS[self.provider]} is not set",
                hint=f"export {KEYS[self.provider]}=…, or name a server of your own: "
                f"{self.provider}:{self.model}@http://host:port/v1",
            )
        if not self._key.isascii() or not self._key.isprintable():
            fault = f"a key is printable ASCII, and {KEYS[self.provider]} is not"
            raise BadInput(fault, hint="set it again, without a line end or quotes from elsewhere")
        try:
            if self.provider == "anthropic":
                import anthropic  # noqa: F401

            from tunesmith.models import streaming  # noqa: F401
        except ImportError as error:
            raise BadInput(f"the model {self.name} cannot be used: {error}", hint=HINT) from error

    def reply(self, request: Request) -> Reply | NoReply:
        return self.ask(request)[0]

    def ask(self, request: Request) -> tuple[Reply | NoReply, Arrival]:
        """The reply, and how it came."""
        self.prepare()
        from tunesmith.models.streaming import Endpoint, Incoming

        own = (self.provider, self.model, self.url, self._key, self.effort, self.seconds, self.stall)
        said, stable = request.messages, self._stable(request)
        incoming = Incoming(Endpoint(*own), said, request.most_tokens, stable)
        try:
            incoming.start()
            self._follow(incoming, request)
        finally:  # also after Ctrl-C, which finds us waiting
            incoming.cancel()
        found, came = self._answer(request, incoming.arrival), incoming.arrival
        if isinstance(found, NoReply):  # it may have to be paid for all the same
            found = replace(found, usage=came.usage, came=came.length + came.thought)
        return found, came

    def _follow(self, incoming: Incoming, request: Request) -> None:
        arrival, next_note = incoming.arrival, FIRST_NOTE
        while not incoming.wait(LOOK):
            seconds = arrival.seconds
            if seconds > self.seconds + GRACE:  # a library is busy with what it was sent
                arrival.fault = f"the reply was not read after {self.seconds:g} s (reply_seconds)"
                return
            if seconds >= next_note:
                next_note = max(next_note + FIRST_NOTE, seconds * SLOWER)
                self.tell(f"request {request.number} ({request.role}): {progress_text(self.name, arrival)}")

    def _answer(self, request: Request, arrival: Arrival) -> Reply | NoReply:
        """A reply that is whole; one that is not, if it holds what was asked for; else why there is none."""
        text = arrival.text
        if len(self._key) >= 6:
            text = text.replace(self._key, "…")
        if arrival.is_refused:
            return NoReply(self._said(f"it refused: {arrival.refusal or 'filtered'}"), lasts=True)
        is_long = arrival.is_long or len(text) > LONGEST
        if not arrival.is_whole and not is_long:
            why = self._failed(arrival)
            if not _holds(text, request.expects):
                return why
            note = f"the stream broke off behind what was asked for: {why.reason}"
            return Reply(text, arrival.usage, arrival.seconds, is_cut=True, note=note)
        if not text.strip() and not is_long:  # one that thought until the end has been paid for, and is told
            return NoReply(f"{self.name} sent an empty reply")
        return Reply(text[: LONGEST + 1], arrival.usage, arrival.seconds, is_cut=is_long)

    def _failed(self, arrival: Arrival) -> NoReply:
        from pydantic_ai.exceptions import (
            AgentRunError,
            ModelAPIError,
            ModelQuotaExceededError,
            ModelRequestRejectedError,
            UserError,
        )

        came = f" ({counted(arrival.length, 'character')} had come)" if arrival.length else ""
        sent = "" if "event-stream" in arrival.kind else f"; it was sent as {arrival.kind or 'nothing known'}"
        error = arrival.error
        if arrival.fault:
            return NoReply(self._said(arrival.fault + came))
        if arrival.elsewhere:
            where = (
                f"it sends us to {flat(arrival.elsewhere)}, and a key goes nowhere but where it was named for"
            )
            return NoReply(self._said(f"{where}; name that address if it is right"), lasts=True)
        if isinstance(error, ModelAPIError):
            rejected = isinstance(error, ModelRequestRejectedError | ModelQuotaExceededError)
            lasts = rejected or getattr(error, "status_code", None) in LASTING
            return NoReply(self._said(f"{error}{_cause(error)}{came}"), lasts, _pause(error.retry_after))
        if isinstance(error, UserError):
            return NoReply(self._said(str(error)), lasts=True)
        if error is None:
            return NoReply(self._said(f"the stream ended in the middle{came}{sent}"))
        if isinstance(error, AgentRunError | OSError):
            return NoReply(self._said(f"{error}{came}{sent}"))
        what = f"what it sent is no reply of {self.provider}'s protocol"
        return NoReply(self._said(f"{what}: {type(error).__name__}: {error}{came}"))

    def _said(self, text: str) -> str:
        """On one line that nothing acts in; keys are cut out before it is shortened, hidden ones too."""
        return f"{self.name}: {cut(redacted(flat(redacted(text, [self._key])), [self._key]), 300)}"

    def _stable(self, request: Request) -> int:
        """How many characters of its material this role was sent before, up to a heading: what to store on
        the other side. Material begins with what stays the same."""
        text = next((message.text for message in request.messages if message.speaker == "user"), "")
        with self._lock:
            before, stable = self._material.get(request.role, ("", 0))
            if text != before:
                pairs = enumerate(zip(before, text, strict=False))
                same = next((at for at, (old, new) in pairs if old != new), min(len(before), len(text)))
                stable = max(0, text.rfind(_HEADING, 0, same))
                self._material[request.role] = (text, stable)
        return stable


def progress_text(name: str, arrival: Arrival) -> str:
    """What people are told while a reply comes."""
    seconds = f"{arrival.seconds:.0f} s"
    if arrival.length:
        return f"{name} writes, {arrival.length} characters so far, {seconds}"
    if arrival.thought:
        return f"{name} thinks, {arrival.thought} characters so far, {seconds}"
    return f"waiting for {name}, {seconds}"


def _holds(text: str, expects: Expects) -> bool:
    """Whether what came before a stream broke off has all that was asked for: an object, or a whole file."""
    begin, end = text.find("{"), text.rfind("}")
    is_object = False
    if 0 <= begin < end:
        try:
            is_object = isinstance(json.loads(text[begin : end + 1]), dict)
        except (ValueError, RecursionError):
            is_object = False
    fences = len(_FENCE.findall(text))
    is_file = fences > 0 and fences % 2 == 0
    return is_object if expects == "json" else is_file or (expects == "turn" and is_object)


def _cause(error: BaseException) -> str:
    """What is behind an error of the connection, where its own words are a wrapper's."""
    from pydantic_ai.exceptions import ModelConnectionError

    last = error
    while (
        isinstance(error, ModelConnectionError) and (below := last.__cause__ or last.__context__) is not None
    ):
        last = below
    return f" ({last})" if last is not error and str(last) and str(last) not in str(error) else ""


def _pause(asked: float | None) -> float | None:
    """What the other side asks for, where it is a time."""
    return asked if asked is not None and math.isfinite(asked) and asked >= 0 else None
