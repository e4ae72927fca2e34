"""A reply while it arrives: one request on a loop and a thread of its own, and limits on all that the other
side decides: how long it takes, how much it sends, where it sends us.

Through pydantic-ai's direct requests, which translate and nothing more. Imported when a model is first asked,
because that takes seconds.
"""

from __future__ import annotations

import asyncio
import math
import ssl
import threading
import time
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
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

from tunesmith.run.dialogue import LONGEST, Message, Usage

MOST_BYTES = 64 << 20  # of an answer on the wire: a token has some 400 bytes around it
LONGEST_EVENT = 4 << 20
MOST_LINES = 256  # of an event, which has two or three: a client may copy all of it with each
MOST_THOUGHT = 8 * LONGEST  # characters
CONNECTING = 20.0  # seconds
ENDS = (b"[DONE]", b"message_stop")  # by which a stream says that it is whole
MOST_TOKENS = 100_000_000  # that anybody can have used on one reply
MOST_DOLLARS = 1e6
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
        self.usage = priced(found, raw, stream.model_name, stream.provider_url or "")


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
            asyncio.run(self._received())
        except asyncio.CancelledError:
            self.arrival.fault = self.arrival.fault or "the request was cancelled"
        except Exception as error:  # whatever libraries make of what they are sent
            self.arrival.error = error
        finally:
            with self._lock:
                self._done.set()
                self._loop = self._task = None

    async def _received(self) -> None:
        with self._lock:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            if self._is_cancelled:
                raise asyncio.CancelledError
        endpoint, arrival = self._own[0], self.arrival
        try:
            async with asyncio.timeout(endpoint.seconds):
                await receive(*self._own, arrival)
        except TimeoutError:
            arrival.fault = f"the reply was not whole after {endpoint.seconds:g} s (reply_seconds)"


async def receive(
    endpoint: Endpoint, said: Sequence[Message], most_tokens: int, stable: int, arrival: Arrival
) -> None:
    """Reads until the reply is whole, too long, or nothing more comes."""
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    warnings.filterwarnings("ignore", "Failed to extract usage")
    limits = httpx2.Timeout(endpoint.seconds, connect=min(CONNECTING, endpoint.seconds))
    # Whoever we are sent to gets neither the key nor the kernel; and nobody makes us unpack anything.
    async with httpx2.AsyncClient(
        verify=_certificates(),
        follow_redirects=False,
        timeout=limits,
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [_looked_at(arrival)]},
    ) as http:
        model, settings = _model(endpoint, http, most_tokens)
        messages = conversation(said, stable if endpoint.provider == "anthropic" else None)
        async with model_request_stream(model, messages, model_settings=settings) as stream:
            try:
                await _drain(aiter(stream), endpoint.stall, arrival)
            finally:
                arrival.close(stream, endpoint.provider)


async def _drain(events: AsyncIterator[object], stall: float, arrival: Arrival) -> None:
    while arrival.length <= LONGEST:
        try:
            async with asyncio.timeout(stall if arrival.length else None):
                arrival.take(await anext(events))
        except StopAsyncIteration:
            return
        except TimeoutError:
            arrival.fault = f"nothing came for {stall:g} s in the middle of the reply"
            return
        if arrival.thought > MOST_THOUGHT:
            arrival.fault = f"it thought for more than {MOST_THOUGHT} characters"
            return


@cache
def _certificates() -> ssl.SSLContext:
    """Which to trust; read once, since that takes longer than many a request."""
    found: ssl.SSLContext = httpx2.create_ssl_context()
    return found


# -- the wire -----------------------------------------------------------------------------------------------


def _looked_at(arrival: Arrival) -> Any:
    async def look(response: httpx2.Response) -> None:
        arrival.kind = response.headers.get("content-type", "")
        arrival.elsewhere = response.headers.get("location", "") if response.is_redirect else ""
        packed = response.headers.get("content-encoding", "").strip().lower()
        if packed not in ("", "identity"):
            arrival.fault = f"the answer is packed ({packed}), which was not asked for"
            raise httpx2.ReadError(arrival.fault)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Limited(response.stream, arrival)

    return look


class _Limited(httpx2.AsyncByteStream):  # type: ignore[misc]
    """Bytes as they come, so many at most, and so many at most without the end of an event."""

    def __init__(self, own: httpx2.AsyncByteStream, arrival: Arrival) -> None:
        self._own = own
        self._arrival = arrival

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = since = lines = 0
        async for chunk in self._own:
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
                f"more than {MOST_BYTES >> 10} KiB": count > MOST_BYTES,
                f"an event of more than {LONGEST_EVENT >> 10} KiB": since > LONGEST_EVENT,
                f"an event of more than {MOST_LINES} lines": lines > 2 * MOST_LINES,
            }
            if any(faults.values()):
                self._arrival.fault = f"it sent {next(what for what, holds in faults.items() if holds)}"
                raise httpx2.ReadError(self._arrival.fault)
            yield chunk

    async def aclose(self) -> None:
        await self._own.aclose()


# -- clients and messages -----------------------------------------------------------------------------------

_ROOM = {"": 0, "low": 8192, "medium": 16384, "high": 32768}  # tokens to think, beside those of the reply


class _CountedResponse(OpenAIStreamedResponse):  # type: ignore[misc]
    """Says what was reported of tokens and prices, word for word: whatever that is, it spoils no reply."""

    def _map_usage(self, response: Any) -> RequestUsage:
        return RequestUsage()

    def _map_chunk_provider_details(self, chunk: Any) -> dict[str, Any] | None:
        dump = getattr(chunk.usage, "model_dump", None)
        return {"usage": dump(warnings=False)} if dump is not None else None


class _CountedModel(OpenAIChatModel):  # type: ignore[misc]
    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return _CountedResponse


def _model(endpoint: Endpoint, http: httpx2.AsyncClient, most_tokens: int) -> tuple[Any, Any]:
    own: dict[str, Any] = {"api_key": endpoint.key or "none", "base_url": endpoint.url or None}
    own |= {"max_retries": 0, "http_client": http, "timeout": http.timeout}
    most = most_tokens + _ROOM[endpoint.effort]
    if endpoint.provider == "anthropic":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
        from pydantic_ai.providers.anthropic import AnthropicProvider

        own["base_url"] = endpoint.url.rstrip("/").removesuffix("/v1") or None  # the client appends it
        provider = AnthropicProvider(anthropic_client=AsyncAnthropic(**own))
        claude = AnthropicModel(endpoint.model, provider=provider)
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
    return _CountedModel(endpoint.model, provider=OpenAIProvider(openai_client=AsyncOpenAI(**own))), chosen


def conversation(said: Sequence[Message], stable: int | None) -> list[ModelMessage]:
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
        _count(raw.get("prompt_tokens")) or None,
        _count(raw.get("completion_tokens")) or None,
        None,
        _count(cached),
        None,
        _count(reasoning),
    )


def anthropic_usage(raw: Mapping[str, Any]) -> Usage:
    """There tokens that were read from the store, or written to it, are not among those sent."""
    fresh, cached = _count(raw.get("input_tokens")), _count(raw.get("cache_read_input_tokens"))
    stored = _count(raw.get("cache_creation_input_tokens"))
    sent = None if fresh is None else fresh + (cached or 0) + (stored or 0)
    received, reasoning = _count(raw.get("output_tokens")), _count(raw.get("thinking_tokens"))
    return Usage(sent or None, received or None, None, cached, stored, reasoning)


def _count(value: object) -> int | None:
    """None for what cannot be."""
    is_one = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return int(value) if is_one else None  # type: ignore[call-overload]


def priced(usage: Usage, raw: Mapping[str, Any], model: str, url: str) -> Usage:
    """With the price that was reported, else that of a price list for this model at this address."""
    reported = raw.get("cost")
    dollars: float | None = None
    if isinstance(reported, int | float) and not isinstance(reported, bool):
        dollars = float(reported) if math.isfinite(reported) and 0 <= reported <= MOST_DOLLARS else None
    if dollars is None and usage.sent is not None and usage.received is not None:
        counts = PricedUsage(
            input_tokens=usage.sent,
            output_tokens=usage.received,
            cache_read_tokens=usage.cached or 0,
            cache_write_tokens=usage.stored or 0,
            cache_write_1h_tokens=_count(raw.get("ephemeral_1h_input_tokens")) or 0,
        )
        try:
            dollars = float(calc_price(counts, model, provider_api_url=url).total_price)
        except (LookupError, ValueError):  # nobody's model, or counts that contradict each other
            dollars = None
    return replace(usage, dollars=dollars)
