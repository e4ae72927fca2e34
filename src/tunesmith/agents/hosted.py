"""Models behind a network: any endpoint that speaks OpenAI's protocol, and Anthropic's.

Replies are streamed. History, retries and budgets are the loop's, so that they are in the
journal. Keys come from the environment, and are cut out of what we repeat.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import ssl
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import httpx2
from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    CachePoint,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import StreamedResponse
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse
from pydantic_ai.usage import RequestUsage

from tunesmith.base.errors import BadInput
from tunesmith.base.text import flatten_text, format_count, redact_secrets, truncate_text
from tunesmith.run.events import LONGEST, Expects, Message, NoReply, Reply, Request, Usage

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
        except ImportError as error:
            raise BadInput(f"the model {self.name} cannot be used: {error}", hint=HINT) from error

    def reply(self, request: Request) -> Reply | NoReply:
        return self.ask(request)[0]

    def ask(self, request: Request) -> tuple[Reply | NoReply, Arrival]:
        """The reply, and how it came."""
        self.prepare()
        endpoint = Endpoint(
            self.provider, self.model, self.url, self._key, self.effort, self.seconds, self.stall
        )
        incoming = Incoming(endpoint, request.messages, request.most_tokens, self._stable(request))
        try:
            incoming.start()
            self._follow(incoming, request)
        finally:  # also after Ctrl-C, which finds us waiting
            incoming.cancel()
        found, came = self._conclude_reply(request, incoming.arrival), incoming.arrival
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

    def _conclude_reply(self, request: Request, arrival: Arrival) -> Reply | NoReply:
        """A reply that is whole; one that is not, if it holds what was asked for; else why there is none."""
        text = arrival.text
        if len(self._key) >= 6:
            text = text.replace(self._key, "…")
        if arrival.is_refused:
            return NoReply(self._said(f"it refused: {arrival.refusal or 'filtered'}"), lasts=True)
        is_long = arrival.is_long or len(text) > LONGEST
        if not arrival.is_whole and not is_long:
            why = self._failed(arrival)
            if not _has_full_answer(text, request.expects):
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

        came = f" ({format_count(arrival.length, 'character')} had come)" if arrival.length else ""
        sent = "" if "event-stream" in arrival.kind else f"; it was sent as {arrival.kind or 'nothing known'}"
        error = arrival.error
        if arrival.fault:
            return NoReply(self._said(arrival.fault + came))
        if arrival.elsewhere:
            where = f"it sends us to {flatten_text(arrival.elsewhere)}"
            why = "a key goes nowhere but where it was named for; name that address if it is right"
            return NoReply(self._said(f"{where}, and {why}"), lasts=True)
        if isinstance(error, ModelAPIError):
            rejected = isinstance(error, ModelRequestRejectedError | ModelQuotaExceededError)
            lasts = rejected or getattr(error, "status_code", None) in LASTING
            return NoReply(
                self._said(f"{error}{_root_cause(error)}{came}"), lasts, _valid_retry_delay(error.retry_after)
            )
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
        line = redact_secrets(flatten_text(redact_secrets(text, [self._key])), [self._key])
        return f"{self.name}: {truncate_text(line, 300)}"

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


def _has_full_answer(text: str, expects: Expects) -> bool:
    """Whether what came before a stream broke off has all that was asked for: an object, or a whole file."""
    try:
        is_object = isinstance(json.loads(text[text.find("{") : text.rfind("}") + 1]), dict)
    except (ValueError, RecursionError):
        is_object = False
    fences = len(_FENCE.findall(text))
    is_file = fences > 0 and fences % 2 == 0
    return is_object if expects == "json" else is_file or (expects == "turn" and is_object)


def _root_cause(error: BaseException) -> str:
    """What is behind an error of the connection, where its own words are a wrapper's."""
    from pydantic_ai.exceptions import ModelConnectionError

    last = error
    while (
        isinstance(error, ModelConnectionError) and (below := last.__cause__ or last.__context__) is not None
    ):
        last = below
    return f" ({last})" if last is not error and str(last) and str(last) not in str(error) else ""


def _valid_retry_delay(asked: float | None) -> float | None:
    """What the other side asks for, where it is a time."""
    return asked if asked is not None and math.isfinite(asked) and asked >= 0 else None


MAX_BYTES = 64 << 20  # of an answer on the wire: a token has some 400 bytes around it
LONGEST_EVENT = 4 << 20
MAX_LINES = 256  # of an event, which has two or three: a client may copy all of it with each
MAX_THOUGHT = 8 * LONGEST  # characters
CONNECTING = 20.0  # seconds
ENDS = (b"[DONE]", b"message_stop")  # by which a stream says that it is whole
MAX_TOKENS = 100_000_000  # that anybody can have used on one reply
MAX_DOLLARS = 1e6
PREFIX = "1h"  # how long material is stored that later rounds begin with
TURN = "5m"  # and what only the same turn goes on from


@dataclass(frozen=True)
class Endpoint:
    """Where a request goes, and what may come of it."""

    provider: str
    model: str
    url: str
    key: str = field(repr=False)
    effort: str
    seconds: float  # for the whole reply
    stall: float  # without a sign, once the reply has begun


@dataclass
class Arrival:
    """What has come so far. The thread that reads fills it, the one that waits looks at it."""

    began: float = field(default_factory=time.monotonic)
    words: list[str] = field(default_factory=list)
    length: int = 0  # characters of the reply
    thought: int = 0  # characters that the model thought before it, where it shows them
    pieces: int = 0
    first: float | None = None  # seconds until the first character of the reply
    kind: str = ""  # the type that its content was sent as
    elsewhere: str = ""  # where we were to go instead
    tail: bytes = b""
    fault: str = ""  # why we stopped reading
    error: Exception | None = None  # why nothing more came
    finish: str = ""  # as the other side calls it; empty: it did not say
    is_refused: bool = False
    refusal: str = ""  # its words
    is_long: bool = False  # it ran into its limit
    usage: Usage = field(default_factory=Usage)

    @property
    def text(self) -> str:
        return "".join(self.words)

    @property
    def is_whole(self) -> bool:
        """Whether the other side said that this was all, whatever came after that."""
        has_ended = not self.fault and self.error is None and any(end in self.tail for end in ENDS)
        return bool(self.finish) or has_ended

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def take(self, event: object) -> None:
        match event:
            case (
                PartStartEvent(part=TextPart(content=text))
                | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
            ):
                if text:
                    self.first = self.seconds if self.first is None else self.first
                    self.pieces += 1
                    self.length += len(text)
                    self.words.append(text)
            case (
                PartStartEvent(part=ThinkingPart(content=thought))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=thought))
            ):
                self.thought += len(thought or "")

    def close(self, stream: StreamedResponse, provider: str) -> None:
        """What the other side says about its reply, as far as it has come."""
        details = stream.provider_details or {}
        self.finish = str(details.get("finish_reason") or "")
        self.is_refused = stream.finish_reason == "content_filter"
        self.refusal = str(details.get("refusal") or "")
        self.is_long = stream.finish_reason == "length"
        raw: Mapping[str, Any] = details.get("usage") or {} if provider == "openai" else stream.usage.details
        found = openai_usage(raw) if provider == "openai" else anthropic_usage(raw)
        self.usage = add_price(found, raw, stream.model_name, stream.provider_url or "")


class Incoming:
    """One request under way. `wait` until it is done; `cancel` ends it from any thread."""

    def __init__(self, endpoint: Endpoint, said: Sequence[Message], most_tokens: int, stable: int) -> None:
        self.arrival = Arrival()
        self._own = (endpoint, said, most_tokens, stable)
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_cancelled = False
        self._thread = threading.Thread(target=self._run, name="tunesmith-model", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        return self._done.wait(seconds)

    def cancel(self) -> None:
        """Nothing is waited for: the connection is closed as soon as its thread comes to it."""
        with self._lock:
            self._is_cancelled = True
            if self._loop is not None and self._task is not None and not self._done.is_set():
                self._loop.call_soon_threadsafe(self._task.cancel)

    def _run(self) -> None:
        try:
            asyncio.run(self._receive_guarded())
        except asyncio.CancelledError:
            self.arrival.fault = self.arrival.fault or "the request was cancelled"
        except Exception as error:  # whatever libraries make of what they are sent
            self.arrival.error = error
        finally:
            with self._lock:
                self._done.set()
                self._loop = self._task = None

    async def _receive_guarded(self) -> None:
        with self._lock:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            if self._is_cancelled:
                raise asyncio.CancelledError
        endpoint, arrival = self._own[0], self.arrival
        try:
            async with asyncio.timeout(endpoint.seconds):
                await receive_reply(*self._own, arrival)
        except TimeoutError:
            arrival.fault = f"the reply was not whole after {endpoint.seconds:g} s (reply_seconds)"


async def receive_reply(
    endpoint: Endpoint, said: Sequence[Message], most_tokens: int, stable: int, arrival: Arrival
) -> None:
    """Reads until the reply is whole, too long, or nothing more comes."""
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    warnings.filterwarnings("ignore", "Failed to extract usage")
    limits = httpx2.Timeout(endpoint.seconds, connect=min(CONNECTING, endpoint.seconds))
    # Whoever we are sent to gets neither the key nor the kernel; and nobody makes us unpack anything.
    async with httpx2.AsyncClient(
        verify=_load_ssl_context(),
        follow_redirects=False,
        timeout=limits,
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [_looked_at(arrival)]},
    ) as http:
        model, settings = _make_model(endpoint, http, most_tokens)
        messages = model_messages(said, stable if endpoint.provider == "anthropic" else None)
        async with model_request_stream(model, messages, model_settings=settings) as stream:
            try:
                await _read_stream(aiter(stream), endpoint.stall, arrival)
            finally:
                arrival.close(stream, endpoint.provider)


async def _read_stream(events: AsyncIterator[object], stall: float, arrival: Arrival) -> None:
    while arrival.length <= LONGEST:
        try:
            async with asyncio.timeout(stall if arrival.length else None):
                arrival.take(await anext(events))
        except StopAsyncIteration:
            return
        except TimeoutError:
            arrival.fault = f"nothing came for {stall:g} s in the middle of the reply"
            return
        if arrival.thought > MAX_THOUGHT:
            arrival.fault = f"it thought for more than {MAX_THOUGHT} characters"
            return


@cache
def _load_ssl_context() -> ssl.SSLContext:
    """Which to trust; read once, since that takes longer than many a request."""
    found: ssl.SSLContext = httpx2.create_ssl_context()
    return found


# -- the wire -----------------------------------------------------------------------------------------------


def _looked_at(arrival: Arrival) -> Any:
    async def note_headers(response: httpx2.Response) -> None:
        arrival.kind = response.headers.get("content-type", "")
        arrival.elsewhere = response.headers.get("location", "") if response.is_redirect else ""
        packed = response.headers.get("content-encoding", "").strip().lower()
        if packed not in ("", "identity"):
            arrival.fault = f"the answer is packed ({packed}), which was not asked for"
            raise httpx2.ReadError(arrival.fault)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Limited(response.stream, arrival)

    return note_headers


class _Limited(httpx2.AsyncByteStream):  # type: ignore[misc]
    """Bytes as they come, so many at most, and so many at most without the end of an event."""

    def __init__(self, stream: httpx2.AsyncByteStream, arrival: Arrival) -> None:
        self._stream, self._arrival = stream, arrival

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = since = lines = 0
        async for chunk in self._stream:
            before = self._arrival.tail
            seen = before + chunk
            self._arrival.tail = seen[-64:]
            end = max(seen.rfind(b"\n\n"), seen.rfind(b"\r\n\r\n"), seen.rfind(b"\r\r"))
            is_new = end >= len(before) - 3  # an event has ended in this chunk
            rest = seen[end:] if is_new else chunk
            since, lines = (0, 0) if is_new else (since, lines)
            since, lines = since + len(rest), lines + rest.count(b"\n") + rest.count(b"\r")
            count += len(chunk)
            faults = {
                f"more than {MAX_BYTES >> 10} KiB": count > MAX_BYTES,
                f"an event of more than {LONGEST_EVENT >> 10} KiB": since > LONGEST_EVENT,
                f"an event of more than {MAX_LINES} lines": lines > 2 * MAX_LINES,
            }
            if any(faults.values()):
                self._arrival.fault = f"it sent {next(what for what, holds in faults.items() if holds)}"
                raise httpx2.ReadError(self._arrival.fault)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


# -- clients and messages -----------------------------------------------------------------------------------

_ROOM = {"": 0, "low": 8192, "medium": 16384, "high": 32768}  # tokens to think, beside those of the reply


class _CountedResponse(OpenAIStreamedResponse):  # type: ignore[misc]
    """Says what was reported of tokens and prices, word for word: whatever that is, it spoils no reply."""

    def _map_usage(self, response: Any) -> RequestUsage:
        return RequestUsage()

    def _map_chunk_provider_details(self, chunk: Any) -> dict[str, object] | None:
        dump = getattr(chunk.usage, "model_dump", None)
        return {"usage": dump(warnings=False)} if dump is not None else None


class _CountedModel(OpenAIChatModel):  # type: ignore[misc]
    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return _CountedResponse


def _make_model(endpoint: Endpoint, http: httpx2.AsyncClient, most_tokens: int) -> tuple[Any, Any]:
    connect = partial(_connect_client, endpoint.key or "none", http)
    most = most_tokens + _ROOM[endpoint.effort]
    if endpoint.provider == "anthropic":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
        from pydantic_ai.providers.anthropic import AnthropicProvider

        client = connect(AsyncAnthropic, endpoint.url.rstrip("/").removesuffix("/v1"))  # which it appends
        claude = AnthropicModel(endpoint.model, provider=AnthropicProvider(anthropic_client=client))
        largest: Any = claude.profile.get("anthropic_max_output_tokens")
        settings = AnthropicModelSettings(
            max_tokens=min(most, largest or most), anthropic_cache_instructions=PREFIX
        )
        if endpoint.effort:
            settings["thinking"] = endpoint.effort
        return claude, settings
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModelSettings
    from pydantic_ai.providers.openai import OpenAIProvider

    chosen = OpenAIChatModelSettings(max_tokens=most)
    if endpoint.effort:
        chosen["openai_reasoning_effort"] = endpoint.effort
    provider = OpenAIProvider(openai_client=connect(AsyncOpenAI, endpoint.url))
    return _CountedModel(endpoint.model, provider=provider), chosen


def _connect_client(key: str, http: httpx2.AsyncClient, client: Callable[..., Any], url: str) -> Any:
    """Retries are the loop's."""
    return client(api_key=key, base_url=url or None, max_retries=0, http_client=http, timeout=http.timeout)


def model_messages(said: Sequence[Message], stable: int | None) -> list[ModelMessage]:
    """With `stable` also where the other side is to store what it has read: behind so many characters of the
    material, at the end of the turn before, and at the end. None: it stores by itself, or not at all."""
    users = [at for at, message in enumerate(said) if message.speaker == "user"]
    found: list[ModelMessage] = []
    for at, message in enumerate(said):
        if message.speaker == "assistant":
            found.append(ModelResponse(parts=[TextPart(content=message.text)]))
        elif message.speaker == "system":
            found.append(ModelRequest(parts=[SystemPromptPart(content=message.text)]))
        elif stable is None:
            found.append(ModelRequest(parts=[UserPromptPart(content=message.text)]))
        else:
            split = stable if at == users[0] else 0
            head: list[Any] = [message.text[:split], CachePoint(ttl=PREFIX)] if split else []
            mark = [CachePoint(ttl=TURN)] if at in users[-2:] else []
            found.append(ModelRequest(parts=[UserPromptPart(content=[*head, message.text[split:], *mark])]))
    return found


# -- what it used -------------------------------------------------------------------------------------------


def openai_usage(raw: Mapping[str, Any]) -> Usage:
    sent, received = raw.get("prompt_tokens_details"), raw.get("completion_tokens_details")
    cached = sent.get("cached_tokens") if isinstance(sent, Mapping) else None
    reasoning = received.get("reasoning_tokens") if isinstance(received, Mapping) else None
    return Usage(
        _token_count(raw.get("prompt_tokens")) or None,
        _token_count(raw.get("completion_tokens")) or None,
        None,
        _token_count(cached),
        None,
        _token_count(reasoning),
    )


def anthropic_usage(raw: Mapping[str, Any]) -> Usage:
    """There tokens that were read from the store, or written to it, are not among those sent."""
    fresh, cached = _token_count(raw.get("input_tokens")), _token_count(raw.get("cache_read_input_tokens"))
    stored = _token_count(raw.get("cache_creation_input_tokens"))
    sent = None if fresh is None else fresh + (cached or 0) + (stored or 0)
    received, reasoning = _token_count(raw.get("output_tokens")), _token_count(raw.get("thinking_tokens"))
    return Usage(sent or None, received or None, None, cached, stored, reasoning)


def _token_count(value: object) -> int | None:
    """None for what cannot be."""
    is_one = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS
    return int(value) if is_one else None  # type: ignore[call-overload]


def add_price(usage: Usage, raw: Mapping[str, Any], model: str, url: str) -> Usage:
    """With the price that was reported, else that of a price list for this model at this address."""
    reported = raw.get("cost")
    dollars: float | None = None
    if isinstance(reported, int | float) and not isinstance(reported, bool):
        dollars = float(reported) if math.isfinite(reported) and 0 <= reported <= MAX_DOLLARS else None
    if dollars is None and usage.sent is not None and usage.received is not None:
        counts = PricedUsage(
            input_tokens=usage.sent,
            output_tokens=usage.received,
            cache_read_tokens=usage.cached or 0,
            cache_write_tokens=usage.stored or 0,
            cache_write_1h_tokens=_token_count(raw.get("ephemeral_1h_input_tokens")) or 0,
        )
        try:
            dollars = float(calc_price(counts, model, provider_api_url=url).total_price)
        except (LookupError, ValueError):  # nobody's model, or counts that contradict each other
            dollars = None
    return replace(usage, dollars=dollars)
