"""Several requests that are open at a time: hosted models are asked at once, over real HTTP."""

from __future__ import annotations

import threading
from importlib.util import find_spec

import pytest

from tests.models.openai_server import Answer, Server, serving
from tests.models.test_hosted import hosted
from tests.wording import says
from tunesmith.errors import WaitingForModel
from tunesmith.models import letters
from tunesmith.models.letters import Mailbox
from tunesmith.run.dialogue import Exchange, Message, Request
from tunesmith.run.events import Replied, Unanswered
from tunesmith.run.talking import Conversation
from tunesmith.session.strategies.casting import in_a_thread

needs_client = pytest.mark.skipif(not find_spec("pydantic_ai"), reason="the extra `models` is not installed")


def open_ones(count: int) -> list[Exchange]:
    said = [(Message("user", f"Write draft {branch}."),) for branch in range(count)]
    return [
        Exchange(Request(2 + b, "author", text, "file", branch=b), 1, 0, wave=1)
        for b, text in enumerate(said)
    ]


def answered(conversation: Conversation, waiting: list[Exchange]) -> list[Replied | Unanswered]:
    found: list[Replied | Unanswered] = []
    while left := [e for e in waiting if e.request.number not in {f.number for f in found}]:
        found.append(conversation.answer(left, waiting))
    return found


@needs_client
def test_all_are_on_their_way_before_one_is_answered() -> None:
    all_here, here = threading.Event(), list[str]()

    def answer(asked: dict[str, object]) -> Answer:
        text = asked["messages"][-1]["content"]  # type: ignore[index]
        here.append(text)
        if len(here) == 3:
            all_here.set()
        assert all_here.wait(20), "the others were not asked"
        return Answer(f"reply to: {text}")

    with serving(answer) as server:
        conversation = Conversation({"author": hosted(server, seconds=30.0)}, start=in_a_thread)
        found = answered(conversation, open_ones(3))
    replies = {f.number: f.reply.text for f in found if isinstance(f, Replied)}
    assert replies == {2 + b: f"reply to: Write draft {b}." for b in range(3)}


@needs_client
def test_one_that_fails_does_not_hold_up_the_others_and_is_asked_again() -> None:
    tries: list[str] = []

    def answer(asked: dict[str, object]) -> Answer:
        text = asked["messages"][-1]["content"]  # type: ignore[index]
        tries.append(text)
        busy = text.endswith("1.") and tries.count(text) == 1
        return Answer("busy", status=429) if busy else Answer("fine")

    pauses: list[float] = []
    with serving(answer) as server:
        conversation = Conversation(
            {"author": hosted(server, seconds=30.0)}, pauses.append, start=in_a_thread
        )
        waiting = open_ones(3)
        first = [conversation.answer(waiting, waiting)]
        while not any(isinstance(f, Unanswered) for f in first):
            done = {f.number for f in first}
            first.append(conversation.answer([e for e in waiting if e.request.number not in done], waiting))
        missing = [
            e for e in waiting if e.request.number not in {f.number for f in first if isinstance(f, Replied)}
        ]
        again = answered(conversation, missing)
    assert all(isinstance(f, Replied) for f in again)
    assert pauses == [2.0]
    assert tries.count("Write draft 1.") == 2
    assert len(tries) == 4, "nobody else is asked twice"


@needs_client
def test_a_mailbox_beside_a_hosted_model(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """What the one replies is taken in before the run stops for the other."""
    box = Mailbox(tmp_path, wait=False)

    def alone(server: Server) -> Conversation:
        model = hosted(server, seconds=30.0)
        return Conversation({"author": model}, authors=(box, model), start=in_a_thread)

    with serving(lambda _asked: Answer("fine")) as server:
        conversation, waiting = alone(server), open_ones(2)
        first = conversation.answer(waiting, waiting)
        assert isinstance(first, Replied)
        assert first.number == 3
        with pytest.raises(WaitingForModel) as caught:
            conversation.answer(waiting[:1], waiting)
    says(str(caught.value), "request 2 is missing", "0002-author.reply.md")


def test_a_mailbox_that_waits_takes_replies_in_any_order(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(letters, "SETTLED", 0.2)  # how long it looks is not the subject
    conversation, waiting = Conversation({"author": Mailbox(tmp_path)}, start=in_a_thread), open_ones(2)
    wrote = threading.Event()

    def reply() -> None:
        while len(list(tmp_path.glob("*.request.md"))) < 2:
            wrote.wait(0.01)
        (tmp_path / "part").write_text("the second")
        (tmp_path / "part").rename(tmp_path / "0003-author.reply.md")

    writer = threading.Thread(target=reply)
    writer.start()
    first = conversation.answer(waiting, waiting)
    writer.join()
    assert isinstance(first, Replied)
    assert (first.number, first.reply.text) == (3, "the second")
    (tmp_path / "part").write_text("the first")
    (tmp_path / "part").rename(tmp_path / "0002-author.reply.md")
    second = conversation.answer(waiting[:1], waiting)
    assert isinstance(second, Replied)
    assert second.reply.text == "the first"
