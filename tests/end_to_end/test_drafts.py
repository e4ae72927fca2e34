"""Several drafts of a round by files: all are asked for at once, replies come in any order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end import written
from tests.end_to_end.test_mailbox_runs import COMMAND, problem
from tests.running import facts, journal, tunesmith
from tests.talkers import file, plan, plans
from tests.wording import says

MODEL = ("--model", "planner=mailbox:box,author=mailbox:box", "--drafts", 3, "--evals", 60)
SLOW = written.draft("15000 + BLOCK", BLOCK=[64, 32])
REPLIES = {
    "0001-planner": plans("Slow.", "Wide.", "Keep."),
    "0002-author": file(SLOW),
    "0003-author": file(written.WIDE),
    "0004-author": file(written.KEEP),
    "0005-author": file(written.KEEP.replace("VEC == 8 or ", "").replace("4, 8]", "4]")),
    "0006-planner": plan("stop"),
}


def answer(box: Path, name: str) -> None:
    box.mkdir(exist_ok=True)
    (box / f"{name}.part").write_text(REPLIES[name])
    (box / f"{name}.part").rename(box / f"{name}.reply.md")


@pytest.mark.long
def test_a_mailbox_asks_for_all_drafts_at_once(tmp_path: Path) -> None:
    problem(tmp_path)
    for name in ("0001-planner", "0004-author"):
        answer(tmp_path / "box", name)
    ended = tunesmith(tmp_path, *COMMAND, *MODEL)
    assert ended.code == 4, ended.err
    for number in (2, 3):
        assert (tmp_path / "box" / f"000{number}-author.request.md").exists()
        says(ended.err, f"the reply to request {number} is missing", f"box/000{number}-author.reply.md")
    assert "0004-author" not in ended.err
    replied = [line["event"]["number"] for line in journal(tmp_path / "run") if line["type"] == "Replied"]
    assert replied == [1, 4], "what is there is taken in, whichever it is"
    for name in REPLIES:
        answer(tmp_path / "box", name)
    ended = tunesmith(tmp_path, "resume", "run", "--no-wait")
    assert ended.code == 0, ended.err
    says(ended.out, "geometric mean")
    report = (tmp_path / "run" / "report.md").read_text()
    says(report, "Draft 1 of 3", "because of Slow.")
    says(report, "1, draft 2", "left behind")
    says(report, "1, draft 3", "kept")


@pytest.mark.long
def test_the_order_of_replies_changes_nothing_and_a_recording_plays_them(tmp_path: Path) -> None:
    """Of figures and templates; only the order of the replies in the journal is another."""
    for name, first in (("one", "0002-author"), ("other", "0004-author")):
        (tmp_path / name).mkdir()
        problem(tmp_path / name)
        answer(tmp_path / name / "box", "0001-planner")
        answer(tmp_path / name / "box", first)
        assert tunesmith(tmp_path / name, *COMMAND, *MODEL).code == 4
        for reply in REPLIES:
            answer(tmp_path / name / "box", reply)
        ended = tunesmith(tmp_path / name, "resume", "run", "--no-wait", "--record", "kept")
        assert ended.code == 0, ended.err
    one, other = (
        [e for e in facts(tmp_path / name / "run") if "Replied" not in str(e)[:40]]
        for name in ("one", "other")
    )
    assert one == other
    command = [c if c != "run" else "again" for c in COMMAND]
    played = ("--model", "planner=recorded:kept,author=recorded:kept", *MODEL[2:])
    again = tunesmith(tmp_path / "one", *command, *played)
    assert again.code == 0, again.err
    texts = [(tmp_path / "one" / run / "template.fake").read_text() for run in ("run", "again")]
    assert texts[0] == texts[1]
