"""Hosted models, against a server that speaks OpenAI's protocol over real HTTP."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.core.agents.models.openai_server import Answer, Server, serving
from tests.core.agents.models.questions import request
from tunesmith.agents.hosted import Hosted
from tunesmith.base.errors import BadInput
from tunesmith.run.events import LONGEST, Message, NoReply, Reply

pytestmark = pytest.mark.skipif(not find_spec("pydantic_ai"), reason="the extra `models` is not installed")

KEY = "sk-secret-1234567890"


def hosted(server: Server, **changes: object) -> Hosted:
    fields: dict[str, object] = {"environment": {"OPENAI_API_KEY": KEY}, "seconds": 5.0}
    return Hosted("openai", "test-model", server.url, **(fields | changes))  # type: ignore[arg-type]


def ask(answer: Answer, **changes: object) -> object:
    with serving(lambda asked: answer) as server:
        return hosted(server, **changes).reply(request())


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


def test_what_nobody_counted_is_unknown() -> None:
    found = ask(Answer("text", usage=None))
    assert isinstance(found, Reply)
    assert found.usage.sent is None
    assert found.usage.received is None


def test_a_reply_that_ran_into_its_limit_says_so() -> None:
    found = ask(Answer("half a templ", finish="length"))
    assert isinstance(found, Reply)
    assert found.is_cut


def test_a_model_that_thought_until_the_end_is_reported_and_not_asked_the_same_again() -> None:
    """What it used counts, and the next request says what happened."""
    found = ask(Answer("", finish="length"))
    assert isinstance(found, Reply)
    assert (found.is_cut, found.usage.received) == (True, 7)


def test_a_huge_reply_is_cut() -> None:
    found = ask(Answer("y" * (2 << 20)))
    assert isinstance(found, Reply)
    assert found.is_cut
    assert len(found.text) == LONGEST + 1


@pytest.mark.parametrize(
    ("answer", "said", "lasts"),
    [
        (Answer("slow down", status=429, headers=(("Retry-After", "7"),)), "429", False),
        (Answer("our fault", status=500), "500", False),
        (Answer("overloaded", status=503), "503", False),
        (Answer(f"bad key {KEY}", status=401), "401", True),
        (Answer("no such model", status=404), "404", True),
        (Answer("too long", status=400), "400", True),
        (Answer(body=b"<html>gateway</html>"), "", False),
        (Answer(body=b'{"choices": []}'), "", False),
        (Answer(body=b"\xff\x00"), "", False),
        (Answer("lost half-way", drops=True), "", False),
        (Answer("   "), "empty reply", False),
    ],
)
def test_what_is_no_reply_is_reported_and_the_key_is_not(answer: Answer, said: str, lasts: bool) -> None:
    found = ask(answer)
    assert isinstance(found, NoReply), found
    assert said in found.reason
    assert found.lasts is lasts
    assert found.reason.startswith("openai:test-model@http://127.0.0.1:")
    assert KEY not in found.reason


def test_no_part_of_the_key_is_left_where_words_are_cut() -> None:
    found = ask(Answer(f"{KEY} " * 200, status=401))
    assert isinstance(found, NoReply)
    assert found.reason.endswith("…")
    assert KEY[: len(KEY) // 2] not in found.reason


def test_how_long_to_wait_is_passed_on() -> None:
    found = ask(Answer("slow down", status=429, headers=(("Retry-After", "7"),)))
    assert isinstance(found, NoReply)
    assert found.wait == 7.0


def test_a_server_that_never_answers_is_left_alone() -> None:
    found = ask(Answer(hangs=True), seconds=0.5)
    assert isinstance(found, NoReply)
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
