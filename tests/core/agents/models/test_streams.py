"""Hosted models, against a server that speaks OpenAI's protocol over HTTP: streams that are whole, broken or
hostile; each ends in a reply, or in a plain reason for having none."""

from __future__ import annotations

import gzip
import itertools
import json
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.core.agents.models.frames import DONE, data, openai_chunk, openai_frames, openai_words
from tests.core.agents.models.openai_server import Answer, Server, serving
from tests.core.agents.models.questions import request
from tunesmith.agents.hosted import Hosted
from tunesmith.base.errors import BadInput
from tunesmith.run.events import LONGEST, Message, NoReply, Reply, Usage

pytestmark = pytest.mark.skipif(not find_spec("pydantic_ai"), reason="the extra `models` is not installed")

KEY = "sk-secret-1234567890"
WHOLE = '{"decision": "stop", "why": "done"}'
HALF = ['{"decision": "st', 'op", "w']
USED = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def hosted(server: Server, **changes: object) -> Hosted:
    fields: dict[str, object] = {"environment": {"OPENAI_API_KEY": KEY}, "seconds": 5.0}
    return Hosted("openai", "test-model", server.url, **(fields | changes))  # type: ignore[arg-type]


def ask(answer: Answer, expects: str = "json", **changes: object) -> Reply | NoReply:
    with serving(lambda asked: answer) as server:
        found = hosted(server, **changes).reply(request(expects=expects))
    said = found.text if isinstance(found, Reply) else found.reason
    assert KEY not in said
    return found


def get_reply(answer: Answer, **changes: object) -> Reply:
    found = ask(answer, **changes)  # type: ignore[arg-type]
    assert isinstance(found, Reply), found
    return found


def get_refusal(answer: Answer, **changes: object) -> NoReply:
    found = ask(answer, **changes)  # type: ignore[arg-type]
    assert isinstance(found, NoReply), found
    return found


def endless(piece: bytes) -> Iterator[bytes]:
    return itertools.repeat(piece)


def test_progress_is_told_while_a_reply_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    from tunesmith.agents import hosted as module

    monkeypatch.setattr(module, "FIRST_NOTE", 0.1)
    monkeypatch.setattr(module, "LOOK", 0.05)
    told: list[str] = []
    thought = openai_chunk({"reasoning_content": "hm " * 10})
    frames = [0.3, thought, 0.4, *openai_words(["x" * 40]), 0.5, *openai_frames([WHOLE])[1:]]
    found = get_reply(Answer(frames=frames), tell=told.append)
    assert found.text == "x" * 40 + WHOLE, "without what was thought"
    assert told[0].startswith("request 1 (planner): waiting for openai:test-model@http://127.0.0.1:")
    assert any(" thinks, 30 characters so far, " in line for line in told)
    assert any(" writes, 40 characters so far, " in line for line in told)


@pytest.mark.parametrize(
    "frames",
    [
        [*openai_words([WHOLE]), DONE],  # nobody says why it ended, only that it did
        [*openai_words([WHOLE]), openai_chunk({}, "stop")],  # no [DONE]
        [b": keep-alive\n\n" * 50, *openai_frames([WHOLE])],
        [piece[at : at + 1] for piece in openai_frames([WHOLE]) for at in range(len(piece))],
        [b"".join(openai_frames([WHOLE]))],
        [b"".join(openai_frames(list(WHOLE))).replace(b"\n", b"\r\n")],
    ],
    ids=["no finish", "no DONE", "comments", "byte by byte", "all at once", "CRLF"],
)
def test_streams_that_are_whole(frames: list[bytes]) -> None:
    found = get_reply(Answer(frames=frames))
    assert (found.text, found.is_cut, found.note) == (WHOLE, False, "")


BROKEN = {
    "cut": Answer(frames=openai_words(HALF), cut=True),
    "ends early": Answer(frames=openai_words(HALF)),
    "garbage": Answer(frames=[*openai_words(HALF), b"data: {not json\n\n", *openai_frames(["x"])]),
    "no text": Answer(frames=[*openai_words(HALF), b"data: \xff\xfe{}\n\n"]),
    "a list": Answer(frames=[*openai_words(HALF), data([1, 2])]),
    "a number": Answer(frames=[data(3)]),
    "choices": Answer(frames=[data({"choices": "many"})]),
    "delta": Answer(frames=[data({"choices": [{"index": 0, "delta": 7}]})]),
    "content": Answer(frames=[openai_chunk({"content": {"a": 1}})]),
    "deep": Answer(frames=[data("[" * 100_000)]),
    "error": Answer(frames=[*openai_words(HALF), data({"error": {"message": "overloaded", "code": 529}})]),
    "error text": Answer(frames=[*openai_words(HALF), data({"error": "broke"})]),
    "stalls": Answer(frames=[*openai_words(HALF), 30.0]),
    "nothing": Answer(frames=[]),
    "only DONE": Answer(frames=[DONE]),
    "html": Answer(body=b"<html><body>Sign in</body></html>", kind="text/html"),
    "not streamed": Answer(
        body=json.dumps({"choices": [{"message": {"content": WHOLE}}]}).encode(), kind="application/json"
    ),
    "binary": Answer(body=bytes(range(256)) * 40, kind="application/octet-stream"),
    "empty": Answer(frames=openai_frames([])),
    "blank": Answer(frames=openai_frames([" \n", "\t"])),
    "dropped": Answer("lost half-way", drops=True),
    "no choices": Answer(body=b'{"choices": []}'),
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN.keys())
def test_streams_that_break_are_asked_for_again(answer: Answer) -> None:
    began = time.monotonic()
    found = get_refusal(answer, stall=0.3)
    assert not found.lasts
    assert found.reason.startswith("openai:test-model@http://127.0.0.1:")
    assert "Traceback" not in found.reason
    assert time.monotonic() - began < 4


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (BROKEN["cut"], "characters had come"),
        (BROKEN["ends early"], "the stream ended in the middle (23 characters had come)"),
        (BROKEN["error"], "overloaded"),
        (BROKEN["stalls"], "nothing came for 0.3 s in the middle of the reply (23 characters had come)"),
        (BROKEN["html"], "it was sent as text/html"),
        (BROKEN["empty"], "sent an empty reply"),
    ],
)
def test_the_reason_is_plain(answer: Answer, said: str) -> None:
    found = get_refusal(answer, stall=0.3)
    assert said in found.reason


@pytest.mark.parametrize(
    ("text", "expects", "is_usable"),
    [
        (WHOLE, "json", True),
        (WHOLE + " and then", "json", True),
        ("Some words.\n```\nfile\n```\n", "file", True),
        ("Some words.\n```\nfile\n```\n```\nano", "file", False),
        ("Some words.\n```\nfi", "file", False),
        (WHOLE, "file", False),
        (WHOLE, "turn", True),
        ("```\nfile\n```", "json", False),
    ],
)
def test_a_stream_that_breaks_off_behind_what_was_asked_for(text: str, expects: str, is_usable: bool) -> None:
    found = ask(Answer(frames=openai_words([text]), cut=True), expects)
    assert isinstance(found, Reply) is is_usable
    if isinstance(found, Reply):
        assert found.is_cut
        assert found.text == text
        assert "the stream broke off" in found.note


def test_endless_words_are_cut() -> None:
    found = get_reply(Answer(frames=endless(openai_chunk({"content": "ha " * 5000}))))
    assert found.is_cut
    assert len(found.text) == LONGEST + 1


@pytest.mark.parametrize(
    ("piece", "said"),
    [
        (b" " * 65536, "an event of more than 256 KiB"),
        (b"data: " + b"x" * 65536, "an event of more than 256 KiB"),
        (b"data: a\n" * 8192, "an event of more than 256 lines"),
        (b"\n\n" * 32768, "more than 512 KiB"),
        (b": ping\n\n" * 8192, "more than 512 KiB"),
        (openai_chunk({"reasoning_content": "hm " * 5000}), "it thought for more than"),
        (
            openai_chunk({"tool_calls": [{"index": 0, "function": {"arguments": "x" * 5000}}]}),
            "more than 512 KiB",
        ),
    ],
    ids=["spaces", "a line", "lines", "blank lines", "pings", "thoughts", "tool calls"],
)
def test_what_never_ends_is_left(piece: bytes, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tunesmith.agents import hosted as streaming

    monkeypatch.setattr(streaming, "MAX_BYTES", 512 << 10)
    monkeypatch.setattr(streaming, "LONGEST_EVENT", 256 << 10)
    monkeypatch.setattr(streaming, "MAX_THOUGHT", 64 << 10)
    found = get_refusal(Answer(frames=endless(piece)))
    assert said in found.reason


def test_pings_alone_do_not_outlast_the_deadline() -> None:
    frames = itertools.chain.from_iterable(itertools.repeat((b": ping\n\n", 0.05)))
    found = get_refusal(Answer(frames=frames), seconds=0.6)
    assert "the reply was not whole after 0.6 s (reply_seconds)" in found.reason


def test_what_is_packed_is_not_unpacked() -> None:
    bomb = gzip.compress(b" " * (8 << 20))
    found = get_refusal(Answer(body=bomb, headers=(("Content-Encoding", "gzip"),)))
    assert "the answer is packed (gzip)" in found.reason


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_key_does_not_follow_to_another_place(status: int) -> None:
    with serving(lambda asked: Answer(frames=openai_frames([WHOLE]))) as other:
        away = Answer("moved", status=status, headers=(("Location", f"{other.url}/chat/completions"),))
        found = get_refusal(away)
    assert found.lasts
    assert f"it sends us to {other.url}/chat/completions" in found.reason
    assert other.paths == [], "nobody went there, with the key or without"


@pytest.mark.parametrize(
    ("status", "lasts"),
    [
        *((status, False) for status in (429, 500, 502, 503, 529)),
        *((status, True) for status in (400, 401, 402, 404, 422)),
    ],
)
def test_errors_are_told_apart(status: int, lasts: bool) -> None:
    found = get_refusal(Answer("not now", status=status, headers=(("Retry-After", "3"),)))
    assert found.lasts is lasts
    assert str(status) in found.reason
    assert found.wait == 3.0


@pytest.mark.parametrize("asked", ["-5", "nan", "inf", "soon", "1e999", "", "Wed, 99 Foo 2020"])
def test_a_pause_that_is_none_is_not_passed_on(asked: str) -> None:
    found = get_refusal(Answer("not now", status=429, headers=(("Retry-After", asked),)))
    assert found.wait is None or found.wait >= 0


@pytest.mark.parametrize(
    "hidden", [KEY, f"{KEY[:7]}\x1b[0m{KEY[7:]}", f"Bearer {KEY}", f"?api_key={KEY}&a=b"]
)
def test_a_page_that_repeats_the_key_is_repeated_without_it(hidden: str) -> None:
    page = f"<html><h1>502</h1><pre>{hidden}\x07\x1b]0;title\x07\u202e</pre></html>".encode()
    found = get_refusal(Answer(body=page, status=502))
    assert KEY[3:] not in found.reason
    assert found.reason.isprintable()


def test_a_reply_that_repeats_the_key_is_kept_without_it() -> None:
    found = get_reply(Answer(frames=openai_frames([f'{{"key": "{KEY[:5]}', f'{KEY[5:]}"}}'])))
    assert found.text == '{"key": "…"}'


@pytest.mark.parametrize(
    "frames",
    [
        openai_frames([], "content_filter"),
        openai_frames(["half an ans"], "content_filter"),
        [
            openai_chunk({"refusal": "I can't "}),
            openai_chunk({"refusal": "help."}),
            openai_chunk({}, "stop"),
            DONE,
        ],
    ],
)
def test_a_refusal_is_told_and_not_asked_again(frames: list[bytes]) -> None:
    found = get_refusal(Answer(frames=frames))
    assert found.lasts
    assert "it refused" in found.reason


def test_what_a_refusal_took_is_told() -> None:
    found = get_refusal(Answer(frames=openai_frames(["half an ans"], "content_filter", usage=USED)))
    assert (found.usage, found.came) == (Usage(11, 7), 11)


def test_of_a_stream_that_breaks_off_the_length_of_what_came_is_told() -> None:
    found = get_refusal(Answer(frames=openai_words(HALF)))
    assert (found.usage, found.came) == (Usage(), len("".join(HALF)))


def used(usage: Any) -> Usage:
    found = get_reply(Answer(frames=openai_frames([WHOLE], usage=usage)))
    assert found.text == WHOLE
    assert not found.is_cut
    return found.usage


def test_usage_has_what_was_read_from_a_cache_and_what_was_thought() -> None:
    details = {
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    assert used({**USED, **details, "cost": 0.25}) == Usage(11, 7, 0.25, cached=8, reasoning=0)
    assert used(USED) == Usage(11, 7), "neither is reported, and the price of nobody's model is not known"
    assert used({**USED, "cost": 0}).dollars == 0.0, "reported"


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -1, "completion_tokens": -7},
        {"prompt_tokens": 10**15, "completion_tokens": 10**30},
        {"prompt_tokens": "11", "completion_tokens": [7]},
        {"prompt_tokens": None, "completion_tokens": True},
        {"prompt_tokens": 1.5, "completion_tokens": 0, "cost": -1},
        {"prompt_tokens_details": "many", "completion_tokens_details": 3, "cost": "NaN"},
        {"prompt_tokens_details": {"cached_tokens": -5}, "cost": True},
        "lots",
        [1],
        0,
        {},
    ],
)
def test_usage_that_cannot_be_is_unknown(usage: Any) -> None:
    assert used(usage) == Usage()


def test_usage_is_unknown_where_a_stream_says_none() -> None:
    assert used(None) == Usage()


def test_control_characters_in_a_reply_are_kept_for_those_who_judge_it() -> None:
    found = get_reply(Answer(frames=openai_frames(["a\x00\x1b[2J\u202eb", "\ud83d"])))
    assert found.text.startswith("a\x00\x1b[2J\u202eb")


def test_ctrl_c_ends_at_once_and_the_request_can_be_sent_again() -> None:
    import _thread

    answers = iter([Answer(frames=[*openai_words(HALF), 30.0]), Answer(frames=openai_frames([WHOLE]))])
    with serving(lambda asked: next(answers)) as server:
        model = hosted(server, seconds=30.0)
        threading.Timer(0.6, _thread.interrupt_main).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            model.reply(request())
        assert time.monotonic() - began < 2
        found = model.reply(request())
    assert isinstance(found, Reply)
    assert server.requests[0] == server.requests[1]


def test_several_threads_ask_at_once() -> None:
    together = threading.Barrier(4, timeout=5)

    def answer(asked: dict[str, Any]) -> Answer:
        together.wait()
        return Answer(frames=openai_frames([json.dumps({"said": asked["messages"][1]["content"]})]))

    found: dict[int, object] = {}
    with serving(answer) as server:
        model = hosted(server)

        def one(number: int) -> None:
            said = (Message("system", "s"), Message("user", str(number)))
            found[number] = model.reply(request(number, messages=said))

        threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    replies = {number: reply.text for number, reply in found.items() if isinstance(reply, Reply)}
    assert replies == {number: json.dumps({"said": str(number)}) for number in range(4)}


def test_it_can_be_asked_where_a_loop_runs_already() -> None:
    """As in a notebook."""
    import asyncio

    async def inside() -> object:
        return ask(Answer(frames=openai_frames([WHOLE])))

    assert isinstance(asyncio.run(inside()), Reply)


@pytest.mark.parametrize("effort", ["", "low", "high"])
def test_how_much_it_is_to_think(effort: str) -> None:
    with serving(lambda asked: Answer(WHOLE)) as server:
        model = hosted(server, effort=effort)
        model.reply(request(most_tokens=1000))
    (asked,) = server.requests
    assert asked.get("reasoning_effort", "") == effort
    assert asked["max_completion_tokens"] == {"": 1000, "low": 9192, "high": 33768}[effort]
    assert asked["stream"] is True
    assert model.name.endswith(f"#{effort}" if effort else "/v1")


def test_a_reply_comes_with_what_it_used() -> None:
    with serving(lambda asked: Answer('{"next": "stop"}')) as server:
        said = (
            Message("system", "You plan."),
            Message("user", "?"),
            Message("assistant", "no"),
            Message("user", "!"),
        )
        found = hosted(server).reply(request(messages=said, most_tokens=99))
    assert isinstance(found, Reply)
    assert found.text == '{"next": "stop"}'
    assert (found.usage.sent, found.usage.received, found.usage.dollars) == (11, 7, None)
    assert not found.is_cut
    assert found.seconds is not None
    (asked,) = server.requests
    assert [(m["role"], m["content"]) for m in asked["messages"]] == [(m.speaker, m.text) for m in said]
    assert 99 in (asked.get("max_tokens"), asked.get("max_completion_tokens"))
    assert server.keys == [f"Bearer {KEY}"]


def test_a_reply_that_ran_into_its_limit_says_so() -> None:
    found = get_reply(Answer("half a templ", finish="length"))
    assert found.is_cut


def test_a_model_that_thought_until_the_end_is_reported_and_not_asked_the_same_again() -> None:
    """What it used counts, and the next request says what happened."""
    found = get_reply(Answer("", finish="length"))
    assert (found.is_cut, found.usage.received) == (True, 7)


def test_no_part_of_the_key_is_left_where_words_are_cut() -> None:
    found = get_refusal(Answer(f"{KEY} " * 200, status=401))
    assert found.reason.endswith("…")
    assert KEY[: len(KEY) // 2] not in found.reason


def test_a_server_that_never_answers_is_left_alone() -> None:
    found = get_refusal(Answer(hangs=True), seconds=0.5)
    assert not found.lasts


def test_nobody_at_that_address() -> None:
    found = Hosted("openai", "m", "http://127.0.0.1:9", {}, seconds=2.0).reply(request())
    assert isinstance(found, NoReply)
    assert not found.lasts


@pytest.mark.parametrize(
    ("provider", "name"), [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")]
)
def test_without_a_key_it_is_refused_before_anything_is_asked(provider: str, name: str) -> None:
    with pytest.raises(BadInput, match=f"{name} is not set") as refused:
        Hosted(provider, "some-model").prepare()
    assert name in (refused.value.hint or "")


@pytest.mark.long
def test_anthropic_can_be_prepared() -> None:
    Hosted("anthropic", "some-model", environment={"ANTHROPIC_API_KEY": KEY}).prepare()
