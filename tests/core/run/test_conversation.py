"""One attempt at a time: pauses grow and are bounded, what lasts is not tried again."""

from __future__ import annotations

import pytest

from tests.talkers import Said, Scripted
from tunesmith.base.errors import BadInput, WaitingForModel
from tunesmith.run.events import Exchange, Message, NoReply, Replied, Reply, Request, Unanswered
from tunesmith.run.talk import ATTEMPTS, FEW, LONGEST_PAUSE, Conversation

REQUEST = Request(1, "author", (Message("user", "Write."),), "file")


def talked(*said: Said) -> tuple[list[Replied | Unanswered], list[float]]:
    """Until there is an end of it."""
    pauses: list[float] = []
    conversation = Conversation({"author": Scripted({1: said})}, pauses.append)
    found: list[Replied | Unanswered] = []
    while True:
        found.append(conversation.answer(Exchange(REQUEST, 0, 0, attempts=len(found))))
        last = found[-1]
        if isinstance(last, Replied) or last.final:
            return found, pauses


def test_pauses_double_and_heed_the_other_side_within_bounds() -> None:
    found, pauses = talked(NoReply("a"), NoReply("b", wait=30.0), NoReply("c", wait=9999.0), "yes")
    assert pauses == [2.0, 30.0, LONGEST_PAUSE]
    assert isinstance(found[-1], Replied)
    found, pauses = talked(NoReply("busy"))
    assert len(found) == ATTEMPTS
    assert pauses == [2.0, 4.0, 8.0, 16.0]


def test_a_model_that_was_given_up_is_not_waited_for_as_long_again() -> None:
    gone = Exchange(REQUEST, 0, 0, failed="nobody is there")
    back = Exchange(REQUEST, 0, 0, reply=Reply("here"))
    of_another = Exchange(Request(1, "planner", (), "json"), 0, 0, reply=Reply("{}"))
    models = {"author": Scripted({1: [NoReply("busy")]}), "planner": Scripted({})}

    def final(attempts: int, *before: Exchange) -> bool:
        open_one = Exchange(REQUEST, 0, 0, attempts=attempts)
        found = Conversation(models).answer(open_one, (*before, open_one))
        return found.final

    assert [final(n, gone, of_another) for n in range(FEW)] == [False] * (FEW - 1) + [True]
    assert not final(FEW - 1, gone, back), "since then it has answered"


def test_what_lasts_is_not_tried_again() -> None:
    found, pauses = talked(NoReply("a wrong key", lasts=True))
    assert found == [Unanswered(1, "a wrong key", True, 1, True)]
    assert pauses == []


def test_a_role_that_nobody_plays() -> None:
    found = Conversation().answer(Exchange(REQUEST, 0, 0))
    assert found == Unanswered(1, "no model plays the author here", True, 1, True)


def test_half_a_character_does_not_reach_the_journal() -> None:
    (found,), _ = talked(Reply("a\ud800b"))
    assert found.reply.text == "a?b"


def test_a_key_that_is_elsewhere_is_waited_for() -> None:
    class Keyless(Scripted):
        def reply(self, request: Request) -> Reply:
            raise BadInput("it needs a key", hint="export it")

    with pytest.raises(WaitingForModel, match="request 1 cannot be sent from here: it needs a key") as caught:
        Conversation({"author": Keyless({})}).answer(Exchange(REQUEST, 0, 0))
    assert (caught.value.exit_code, caught.value.hint) == (4, "export it")
