"""`tunesmith doctor --model`: what a model behind a network answers, and what to do where it does not."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.core.agents.models.frames import openai_frames
from tests.core.agents.models.openai_server import Answer, serving
from tunesmith.backends.port import DoctorFinding
from tunesmith.base.errors import BadInput, WaitingForModel
from tunesmith.run.config import RunConfig
from tunesmith.session.check import try_out

pytestmark = pytest.mark.skipif(not find_spec("pydantic_ai"), reason="the extra `models` is not installed")

USED = {
    "prompt_tokens": 30,
    "completion_tokens": 9,
    "prompt_tokens_details": {"cached_tokens": 0},
    "cost": 0.5,
}


def tried(answer: Answer, roles: str = "") -> list[DoctorFinding]:
    with serving(lambda asked: answer) as server:
        spec = f"openai:m@{server.url}"
        spec = ",".join(f"{role}={spec}" for role in roles.split(",")) if roles else spec
        return try_out(spec, RunConfig(reply_seconds=5.0), lambda _text: None)


@pytest.mark.parametrize("roles", ["", "planner,author"])
def test_what_comes_back_is_said_once_for_each_model(roles: str) -> None:
    found = tried(Answer(frames=openai_frames(["1 2", " 3"], usage=USED)), roles)
    assert [(one.what.partition("@")[0], one.usable) for one in found] == [
        ("openai:m", True),
        ("streaming", True),
        ("usage", True),
        ("price", True),
    ]
    answered, streaming, usage, price = (one.detail for one in found)
    assert 'it says "1 2 3"' in answered
    assert "2 pieces" in streaming
    assert usage == "30 tokens sent, 0 of them from its cache, 9 received"
    assert price == "$0.500000 for this request"


def test_what_is_not_reported_is_said_to_be_missing() -> None:
    found = {one.what: one for one in tried(Answer(frames=openai_frames(["1 2 3"])))}
    assert not found["streaming"].usable, "all in one piece"
    assert not found["usage"].usable
    assert "--money cannot be kept" in found["price"].detail


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (Answer("no", status=401), "set OPENAI_API_KEY to a key that http://127"),
        (Answer("no", status=404), "check the name 'm', and the address, which usually ends in /v1"),
        (Answer("no", status=400), "change what it complains of"),
        (Answer("no", status=503), "try again later"),
        (Answer("no", status=307, headers=(("Location", "http://elsewhere/v1"),)), "name the address that"),
        (Answer(body=b"<html></html>", kind="text/html"), "speaks openai's protocol, and streams"),
    ],
)
def test_where_it_does_not_answer_the_next_step_is_named(answer: Answer, hint: str) -> None:
    with pytest.raises(WaitingForModel) as refused:
        tried(answer)
    assert hint in (refused.value.hint or "")


def test_where_nobody_is() -> None:
    with pytest.raises(WaitingForModel) as refused:
        try_out("openai:m@http://127.0.0.1:9/v1", RunConfig(reply_seconds=2.0), lambda _text: None)
    assert "Connect call failed" in str(refused.value)
    assert "check that something answers at http://127.0.0.1:9/v1" in (refused.value.hint or "")


@pytest.mark.parametrize("spec", ["mailbox", "planner=expert", "recorded:box"])
def test_only_models_behind_a_network_can_be_tried(spec: str) -> None:
    with pytest.raises(BadInput, match="only models behind a network can be tried"):
        try_out(spec, RunConfig(), lambda _text: None)
