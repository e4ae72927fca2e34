"""Anthropic's protocol, streamed over real HTTP. Its client takes seconds to import, so that most of this is
for `make test-long`."""

from __future__ import annotations

import itertools
import time
from importlib.util import find_spec
from typing import Any

import pytest

from tests.core.agents.models.frames import anthropic_begun, anthropic_frames, event
from tests.core.agents.models.openai_server import Answer, Server, serving
from tests.core.agents.models.questions import request
from tunesmith.agents.hosted import Hosted
from tunesmith.run.events import LONGEST, Message, NoReply, Reply, Usage

pytestmark = pytest.mark.skipif(
    not (find_spec("pydantic_ai") and find_spec("anthropic")), reason="the extra `models` is not installed"
)

KEY = "sk-ant-secret-1234567890"
WHOLE = '{"decision": "stop", "why": "done"}'
HALF = ['{"decision": "st', 'op", "w']
STAYS = "## The kernel\n\ntext of it\n\n## The device\n\na GPU"


def hosted(server: Server, **changes: object) -> Hosted:
    fields: dict[str, object] = {"environment": {"ANTHROPIC_API_KEY": KEY}, "seconds": 5.0}
    return Hosted("anthropic", "test-model", server.url, **(fields | changes))  # type: ignore[arg-type]


def ask(answer: Answer, **changes: object) -> Reply | NoReply:
    with serving(lambda asked: answer) as server:
        found = hosted(server, **changes).reply(request())
    said = found.text if isinstance(found, Reply) else found.reason
    assert KEY not in said
    return found


def marks(asked: dict[str, Any]) -> list[tuple[str, str]]:
    """What stands before each place up to which the other side is to store, and for how long."""
    blocks = [*asked["system"], *(block for message in asked["messages"] for block in message["content"])]
    found = [(block["text"], block.get("cache_control")) for block in blocks]
    return [(text, mark.get("ttl", "5m")) for text, mark in found if mark]


def test_a_reply_and_what_the_other_side_is_to_store() -> None:
    begins = {
        "input_tokens": 3,
        "cache_read_input_tokens": 8,
        "cache_creation_input_tokens": 4,
        "output_tokens": 1,
    }
    ends = {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 2}}
    frames = anthropic_frames([WHOLE[:9], WHOLE[9:]], usage=ends, thoughts=["hm"], begins=begins)
    system, first = Message("system", "You plan."), Message("user", f"{STAYS}\n\n## Measured\n\n1 us")
    again = (Message("assistant", "what?"), Message("user", "That cannot be used."))
    later = Message("user", f"{STAYS}\n\n## Measured\n\n2 us")
    with serving(lambda asked: Answer(frames=frames)) as server:
        model = hosted(server, effort="high")
        found = model.reply(request(messages=(system, first), most_tokens=1000))
        model.reply(request(2, messages=(system, first, *again)))
        model.reply(request(3, messages=(system, later)))
        other = model.reply(request(4, messages=(system, later), role="author"))
    assert isinstance(found, Reply)
    assert (found.text, found.is_cut) == (WHOLE, False)
    assert found.usage == Usage(15, 7, None, cached=8, stored=4, reasoning=2)
    assert isinstance(other, Reply)
    assert server.keys == [f"Bearer {KEY}"] * 4
    assert server.paths == ["/v1/messages"] * 4
    begun, repaired, next_round, by_another = server.requests
    assert (begun["stream"], begun["max_tokens"]) == (True, 33768)
    assert begun["thinking"]["type"] in ("enabled", "adaptive")
    told = ("You plan.", "1h")
    assert marks(begun) == [told, (first.text, "5m")]
    assert marks(repaired) == [told, (first.text, "5m"), ("That cannot be used.", "5m")]
    assert marks(next_round) == [told, (STAYS, "1h"), ("\n\n## Measured\n\n2 us", "5m")]
    assert marks(by_another) == [told, (later.text, "5m")], "another role has other words before it"


BROKEN = {
    "cut": Answer(frames=anthropic_begun(HALF), cut=True),
    "ends early": Answer(frames=anthropic_begun(HALF)),
    "garbage": Answer(frames=[*anthropic_begun(HALF), b"event: content_block_delta\ndata: {not json\n\n"]),
    "no text": Answer(frames=[*anthropic_begun(HALF), b"event: ping\ndata: \xff\xfe\n\n"]),
    "stalls": Answer(frames=[*anthropic_begun(HALF), 30.0]),
    "pings for ever": Answer(
        frames=itertools.chain(anthropic_begun(HALF), itertools.cycle((event("ping"), 0.05)))
    ),
    "begins in the middle": Answer(frames=anthropic_begun(HALF)[2:]),
    "usage missing at once": Answer(frames=[event("message_start", message={"id": "x", "content": []})]),
    "usage of another kind": Answer(frames=anthropic_begun(HALF, {"cache_creation": "yes"})),
    "unknown events": Answer(frames=[event("surprise", a=1), event("message_stop")]),
    "overloaded inside": Answer(
        frames=[
            *anthropic_begun(HALF),
            event("error", error={"type": "overloaded_error", "message": "Overloaded"}),
        ]
    ),
    "overloaded": Answer("Overloaded", status=529),
    "limited": Answer("slow down", status=429, headers=(("Retry-After", "3"),)),
    "broken": Answer("our fault", status=500),
    "a page": Answer(body=f"<html>{KEY}</html>".encode(), status=502),
    "html": Answer(body=b"<html></html>", kind="text/html"),
    "nothing": Answer(frames=[]),
    "empty": Answer(frames=anthropic_frames([])),
}


@pytest.mark.long
@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN.keys())
def test_streams_that_break_are_asked_for_again(answer: Answer) -> None:
    began = time.monotonic()
    found = ask(answer, stall=0.4)
    assert isinstance(found, NoReply), found
    assert not found.lasts
    assert found.reason.startswith("anthropic:test-model@http://127.0.0.1:")
    assert found.wait == (3.0 if answer.status == 429 else None)
    assert time.monotonic() - began < 4


@pytest.mark.long
def test_what_came_before_a_stream_broke_is_used_where_it_is_whole() -> None:
    found = ask(Answer(frames=anthropic_begun([WHOLE]), cut=True))
    assert isinstance(found, Reply)
    assert (found.text, found.is_cut) == (WHOLE, True)


@pytest.mark.long
def test_endless_words_are_cut() -> None:
    begun = anthropic_begun(["ha " * 5000])
    found = ask(Answer(frames=itertools.chain(begun, itertools.repeat(begun[-1]))))
    assert isinstance(found, Reply)
    assert found.is_cut
    assert len(found.text) == LONGEST + 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("piece", "said"),
    [
        (b" " * 65536, "4096 KiB"),
        (b"data: " + b"x" * 65536, "4096 KiB"),
        (b"data: a\n" * 8192, "256 lines"),
        (b"data: a\r\n" * 8192, "256 lines"),
    ],
)
def test_what_never_ends_is_left(piece: bytes, said: str) -> None:
    found = ask(Answer(frames=itertools.repeat(piece)), seconds=20.0)
    assert isinstance(found, NoReply)
    assert f"an event of more than {said}" in found.reason


@pytest.mark.long
def test_a_key_does_not_follow_to_another_place() -> None:
    with serving(lambda asked: Answer(frames=anthropic_frames([WHOLE]))) as other:
        found = ask(Answer("moved", status=307, headers=(("Location", f"{other.url}/messages"),)))
    assert isinstance(found, NoReply)
    assert found.lasts
    assert other.paths == []


@pytest.mark.long
@pytest.mark.parametrize("stop", ["refusal", "max_tokens"])
def test_how_it_stopped(stop: str) -> None:
    found = ask(Answer(frames=anthropic_frames(["half an ans"], stop)))
    if stop == "refusal":
        assert isinstance(found, NoReply)
        assert found.lasts
        assert "it refused" in found.reason
    else:
        assert isinstance(found, Reply)
        assert found.is_cut


@pytest.mark.long
@pytest.mark.parametrize(
    "usage",
    [
        {"input_tokens": -3, "output_tokens": -1},
        {"input_tokens": 10**20, "output_tokens": 10**20, "cache_read_input_tokens": -1},
        {"input_tokens": "many", "output_tokens": [1]},
        {"input_tokens": None, "output_tokens": None},
    ],
)
def test_usage_that_cannot_be_is_unknown(usage: Any) -> None:
    found = ask(Answer(frames=anthropic_frames([WHOLE], usage=usage, begins=usage)))
    assert isinstance(found, Reply), found
    assert found.text == WHOLE
    assert (found.usage.sent, found.usage.received, found.usage.dollars) == (None, None, None)


@pytest.mark.long
def test_where_the_end_says_nothing_of_usage_the_reply_is_taken() -> None:
    """The client stumbles over it; the words are there."""
    frames = anthropic_frames([WHOLE])
    frames[-2] = event("message_delta", delta={"stop_reason": "end_turn"})
    found = ask(Answer(frames=frames))
    assert isinstance(found, Reply)
    assert found.text == WHOLE
