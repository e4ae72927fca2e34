"""Recordings: what was said once is said again, to the same roles in the same order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.agents.models.questions import request
from tests.samples import started
from tests.wording import says
from tunesmith.agents.mailbox import Player, read_about, write_dialogue
from tunesmith.base.codec import decode_json
from tunesmith.base.errors import BadInput
from tunesmith.run.events import Exchange, Message, NoReply, Replied, Reply, Request, Settings, Usage

OLD = b'{"number":1,"reply":{"text":"x","usage":{"sent":1,"received":null,"dollars":0.5},"is_cut":false}}'
FIRST = Reply("one\r\n", Usage(10, 1, 0.5), 0.5)
SECOND = Reply("two", Usage(None, 2), is_cut=True)
THIRD = Reply("three ½")


def asked(number: int, role: str = "planner", reply: Reply | None = None, failed: str = "") -> Exchange:
    return Exchange(request(number, role=role), 0, 0, reply, failed)  # type: ignore[arg-type]


STORY = [
    asked(1, reply=FIRST),
    asked(2, "author", SECOND),
    asked(3, "author", failed="gone"),
    asked(4, reply=THIRD),
    asked(5),
]


def recorded(folder: Path) -> Path:
    write_dialogue(folder, started(Settings(seed=3)), STORY)
    return folder


def other(number: int) -> Request:
    return request(number, messages=(Message("user", "It takes 7 µs, not 8. What next?"),))


def test_a_recording_plays_the_same_replies(tmp_path: Path) -> None:
    player = Player(recorded(tmp_path))
    assert [player.reply(e.request) for e in STORY[:2]] == [FIRST, SECOND]
    assert player.reply(STORY[2].request) == NoReply("gone", lasts=True)
    assert player.reply(STORY[3].request) == THIRD


def test_a_recording_is_files_that_people_read(tmp_path: Path) -> None:
    recorded(tmp_path)
    recorded(tmp_path)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names[:3] == ["0001-planner.reply.md", "0001-planner.request.md", "0002-author.reply.md"]
    assert "0005-planner.request.md" in names
    assert "0005-planner.reply.md" not in names, "it is open"
    about = read_about(tmp_path)
    assert (about.problem, about.settings.seed) == (started(None).problem, 3)


def test_a_mailbox_is_a_recording(tmp_path: Path) -> None:
    (tmp_path / "0002-author.reply.md").write_text("two")
    (tmp_path / "0010-author.reply.md").write_text("ten")
    (tmp_path / "notes.txt").write_text("not a reply")
    player = Player(tmp_path)
    given = [player.reply(request(n, role="author")) for n in (1, 2)]
    assert given == [Reply("two"), Reply("ten")]


def test_other_figures_are_noted_once_and_change_nothing(tmp_path: Path) -> None:
    player = Player(recorded(tmp_path))
    first, second = (player.reply(other(n)) for n in (1, 2))
    assert isinstance(first, Reply)
    assert replace(first, note="") == FIRST
    assert first.note.startswith("recorded as 0001-planner, for a request with other figures")
    assert second == THIRD
    resumed = Player(tmp_path)
    resumed.skip([Exchange(other(1), 0, 0, first)])
    assert resumed.reply(other(2)) == THIRD, "it was said before"


def test_the_number_of_a_request_does_not_matter_its_role_and_order_do(tmp_path: Path) -> None:
    player = Player(recorded(tmp_path))
    assert player.reply(request(7, role="author")) == SECOND
    assert player.reply(request(8)) == FIRST


def test_asked_more_often_than_recorded_there_is_no_reply(tmp_path: Path) -> None:
    player = Player(recorded(tmp_path))
    for number in (1, 2):
        player.reply(request(number))
    found = player.reply(request(3))
    assert isinstance(found, NoReply)
    assert found.lasts
    says(found.reason, "2 replies", "planner", "request 0003-planner")


def test_what_a_run_was_answered_before_it_stopped_is_not_answered_again(tmp_path: Path) -> None:
    player = Player(recorded(tmp_path))
    player.skip(STORY[:3])
    assert player.reply(request(4)) == THIRD
    assert isinstance(player.reply(request(5, role="author")), NoReply)


def test_a_recording_that_is_not_there_or_damaged_is_said(tmp_path: Path) -> None:
    """It may be on another machine: nobody decides without it."""
    with pytest.raises(BadInput, match="there is no folder"):
        Player(tmp_path / "nowhere").prepare()
    with pytest.raises(BadInput, match="there is no folder"):
        Player(tmp_path / "nowhere").reply(request())
    with pytest.raises(BadInput, match="holds no reply"):
        Player(tmp_path).reply(request())
    (tmp_path / "about.json").write_text("{")
    with pytest.raises(BadInput, match="is damaged"):
        Player(tmp_path).reply(request())


def test_replies_of_journals_from_before_caches_were_counted_are_read() -> None:
    assert decode_json(OLD, Replied) == Replied(1, Reply("x", Usage(1, None, 0.5)))
