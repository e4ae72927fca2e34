"""Recordings: what was said once is said again, for the same questions in the same order."""

from __future__ import annotations

from pathlib import Path

from tests.models.questions import request
from tunesmith.core.dialogue import Message, NoReply, Pending, Reply, Request, Usage
from tunesmith.models.recording import Player, Recorder


class Counting:
    name = "counting"

    def __init__(self) -> None:
        self.count = 0

    def reply(self, request: Request) -> Reply | Pending | NoReply:
        self.count += 1
        return Reply(f"reply {self.count}", Usage(10, self.count), 0.5)


def test_a_recording_plays_the_same_replies(tmp_path: Path) -> None:
    recorder = Recorder(Counting(), tmp_path)
    asked = [request(1), request(2, role="author", expects="file"), request(3)]
    given = [recorder.reply(r) for r in asked]
    assert recorder.name == "counting"
    player = Player(tmp_path)
    assert [player.reply(r) for r in asked] == given


def test_the_number_of_a_request_does_not_matter_what_is_asked_does(tmp_path: Path) -> None:
    Recorder(Counting(), tmp_path).reply(request(1))
    assert isinstance(Player(tmp_path).reply(request(9)), Reply)
    other = Player(tmp_path).reply(request(1, messages=(Message("user", "Something else?"),)))
    assert isinstance(other, NoReply)
    assert other.lasts
    assert "has no reply to request 0001-planner" in other.reason


def test_a_question_asked_more_often_than_recorded_has_no_reply(tmp_path: Path) -> None:
    Recorder(Counting(), tmp_path).reply(request())
    player = Player(tmp_path)
    assert isinstance(player.reply(request()), Reply)
    assert isinstance(player.reply(request()), NoReply)


def test_what_a_run_was_told_before_it_stopped_is_not_told_again(tmp_path: Path) -> None:
    recorder = Recorder(Counting(), tmp_path)
    given = [recorder.reply(request(n)) for n in (1, 2)]
    player = Player(tmp_path)
    player.skip([request(1)])
    assert player.reply(request(2)) == given[1]


def test_what_is_pending_is_not_recorded(tmp_path: Path) -> None:
    class Slow:
        name = "slow"

        def reply(self, request: Request) -> Pending:
            return Pending("somewhere")

    assert Recorder(Slow(), tmp_path).reply(request()) == Pending("somewhere")
    assert not list(tmp_path.iterdir())


def test_a_recording_that_is_not_there_or_damaged_is_said(tmp_path: Path) -> None:
    missing = Player(tmp_path / "nowhere").reply(request())
    assert isinstance(missing, NoReply)
    assert "cannot be read: No such file" in missing.reason
    (tmp_path / "0001-planner.json").write_text("{")
    damaged = Player(tmp_path).reply(request())
    assert isinstance(damaged, NoReply)
    assert "is damaged" in damaged.reason
