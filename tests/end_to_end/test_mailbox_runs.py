"""Runs whose model answers by files: stopped and resumed between every request and reply."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path

import pytest

from tests.end_to_end import tiny, written
from tests.end_to_end.killing import kill_and_resume
from tests.hostile.fuzz.journals import written_lines
from tests.running import (
    Begun,
    Ended,
    events_in,
    expect_success,
    facts,
    journal,
    start,
    tunesmith,
    wait_for_events,
)
from tests.talkers import file, plan
from tests.wording import says
from tunesmith.run.events import InstructionKind
from tunesmith.run.folder import FolderInbox

COMMAND = ("tune", "problem", "--no-cache", "--no-prior", "--seed", 2, "--out", "run", "--no-wait")
MODEL = ("--model", "planner=mailbox:box,author=mailbox:box")
POINTS = 6
REPLIES = {
    "0001-planner": plan(),
    "0002-author": "Not yet.",
    "0003-author": file(written.draft("19000 + BLOCK", "2", BLOCK=[64, 32])),
    "0004-author": file(written.WIDE),
    "0005-planner": plan(what="Keep the row.", base="2"),
    "0006-author": file(written.KEEP),
    "0007-author": file(written.KEEP.replace("VEC == 8 or ", "").replace("4, 8]", "4]")),
    "0008-planner": plan("stop"),
}


def problem(folder: Path) -> None:
    tiny.fake(folder / "problem")
    (folder / "problem" / "template.fake").unlink()


def answer(box: Path, name: str) -> None:
    box.mkdir(exist_ok=True)
    target = box / f"{name}.reply.md"
    target.write_text(REPLIES[name])
    os.utime(target, (1e9, 1e9))  # nobody writes to it any more


@pytest.mark.long
def test_who_watches_stops_and_finishes_a_run_that_waits(tmp_path: Path) -> None:
    """Also where it is resumed, and waits before it looks at the device."""
    problem(tmp_path)
    run = tmp_path / "run"

    def told(what: InstructionKind, *command: object) -> Begun:
        process, before = Begun(tmp_path, *command), journal(run) if run.exists() else []
        wait_for_events(run, len(before) + 1 if before else 3, process)  # its own first, or the request
        assert journal(run)[-1]["type"] in ("Requested", "Instructed")
        FolderInbox(run).put(what)
        return process

    ended = told("stop", *COMMAND[:-1], *MODEL).end(timeout=60)
    assert ended.code == 130, ended.err
    assert "stopped by whoever watches; nothing is lost" in ended.err
    assert told("stop", "resume", "run").end(timeout=60).code == 130
    assert told("finish", "resume", "run").end(timeout=60).code == 0
    said = [(line["type"], line["event"].get("what")) for line in journal(run)[2:]]
    kinds = [("Instructed", what) for what in ("stop", "resume", "stop", "resume", "finish")]
    assert said[:7] == [("Requested", None), *kinds, ("Unanswered", None)]
    assert said[-1][0] == "Stopped"
    assert tunesmith(tmp_path, "verify", "run").code == 0


@pytest.mark.long
def test_a_wait_is_reported_with_its_reason_and_can_be_stopped(tmp_path: Path) -> None:
    """Off a terminal too, where what is true only for now is left out."""
    problem(tmp_path)
    process = start(tmp_path, *COMMAND[:-1], *MODEL)
    assert process.stderr is not None
    lines: list[str] = []
    while "waiting for" not in (line := process.stderr.readline()):
        assert line, "".join(lines)
        lines.append(line)
    assert line.rstrip().endswith("waiting for box/0001-planner.reply.md")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "go on with: tunesmith resume run\n" in err, "who waited may go on waiting"
    answer(tmp_path / "box", "0001-planner")
    ended = tunesmith(tmp_path, "resume", "run", "--no-wait")
    assert ended.code == 4
    assert "box/0002-author.reply.md" in ended.err


def stopped_everywhere(folder: Path) -> Ended:
    problem(folder)
    ended = tunesmith(folder, *COMMAND, *MODEL)
    for name in REPLIES:
        assert ended.code == 4, ended.err
        assert f"box/{name}.reply.md" in ended.err
        assert ended.err.endswith("hint: then go on with: tunesmith resume run --no-wait\n")
        assert ended.out.endswith("resume it with   tunesmith resume run --no-wait\n")
        request = folder / "box" / f"{name}.request.md"
        before = request.stat().st_mtime_ns
        again = tunesmith(folder, "resume", "run", "--no-wait")
        assert (again.code, request.stat().st_mtime_ns) == (4, before), "the same file, untouched"
        answer(folder / "box", name)
        ended = tunesmith(folder, "resume", "run", "--no-wait")
    return ended


@pytest.mark.long
def test_stopping_between_every_request_and_reply_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "stopped").mkdir()
    (tmp_path / "whole").mkdir()
    ended = stopped_everywhere(tmp_path / "stopped")
    assert ended.code == 0, ended.err
    problem(tmp_path / "whole")
    for name in REPLIES:
        answer(tmp_path / "whole" / "box", name)
    expect_success(tmp_path / "whole", *COMMAND, *MODEL)
    assert facts(tmp_path / "stopped" / "run") == facts(tmp_path / "whole" / "run")
    same = [(tmp_path / one / "run" / "template.fake").read_bytes() for one in ("stopped", "whole")]
    assert same[0] == same[1]


@pytest.mark.long
def test_a_run_is_recorded_with_one_command_and_played_without_a_model(tmp_path: Path) -> None:
    """By the journal, also when the run has ended; simulated times are the same again, so everything is but
    the values of cases, which nobody can foresee: the first request that quotes some is another one."""
    assert stopped_everywhere(tmp_path).code == 0
    expect_success(tmp_path, "resume", "run", "--record", "kept")
    for name in REPLIES:
        assert (tmp_path / "kept" / f"{name}.reply.md").read_text() == REPLIES[name]
        assert (tmp_path / "kept" / f"{name}.request.md").exists()
    command = [c if c != "run" else "again" for c in COMMAND]
    command.append("--no-library")  # which by now has what the first run showed
    expect_success(tmp_path, *command, "--model", "planner=recorded:kept,author=recorded:kept")
    replies = [event["reply"] for event in events_in(tmp_path / "again", "Replied")]
    notes = {name: reply["note"] for name, reply in zip(REPLIES, replies, strict=True)}
    (note,) = (note for note in notes.values() if note)
    assert note == notes["0004-author"]
    assert note.startswith("recorded as 0004-author, for a request with other figures or words")
    mailbox, played = (json.dumps(facts(tmp_path / run)[1:]) for run in ("run", "again"))
    assert played.replace('"recorded"', '"mailbox"').replace(json.dumps(note), '""') == mailbox


@pytest.mark.long
def test_several_runs_each_go_as_far_as_they_can(tmp_path: Path) -> None:
    problem(tmp_path)
    one = tunesmith(tmp_path, *COMMAND, "--model", "mailbox")
    assert one.code == 4, one.err
    assert (tmp_path / "run" / "mailbox" / "0001-tester.request.md").exists()
    command = [c if c != "run" else "other" for c in COMMAND]
    expect_success(tmp_path, *command, "--model", "expert")
    both = tunesmith(tmp_path, "resume", "other", "run", "--no-wait")
    assert both.code == 4
    assert "== other" in both.out
    assert "0001-tester.reply.md" in both.err
    assert both.err.endswith("hint: then go on with: tunesmith resume run --no-wait\n")
    (tmp_path / "run" / "mailbox" / "0001-tester.reply.txt").write_text("{}")
    table = tunesmith(tmp_path, "resume", "other", "run", "--no-wait", "--json")
    assert table.code == 4
    assert [r["exit"] for r in table.json] == [0, 4]
    seen = "there is 0001-tester.reply.txt: rename it to 0001-tester.reply.md"
    assert table.json[1]["error"].endswith(f"written to run/mailbox/0001-tester.reply.md; {seen}")


def test_the_model_and_the_device_may_live_on_machines_that_never_meet(tmp_path: Path) -> None:
    """The reply is taken in where the device is not, and the run goes on to where it needs one."""
    problem(tmp_path)
    away = tunesmith(tmp_path, *COMMAND, *MODEL, "--backend", "fake:absent")
    assert away.code == 4, away.err
    for name in ("0001-planner", "0002-author", "0003-author", "0004-author"):
        answer(tmp_path / "box", name)
    here = tunesmith(tmp_path, "resume", "run", "--no-wait")
    assert here.code == 4, here.err
    assert "0005-planner.reply.md" in here.err
    says(here.out, "stopped", "not finished", "template 2 by mailbox", "by the search, not verified")
    assert "template so far  run/template.fake" in here.out
    assert "general config" not in here.out, "nothing is claimed"
    assert (tmp_path / "run" / "template.fake").read_text() == written.WIDE
    shown = tunesmith(tmp_path, "report", "run")
    assert "template so far  run/template.fake" in shown.out


def begin_with_driver(run: Path, driver: str) -> None:
    """As if the run had begun where the device has this one; its journal is one chain again."""
    lines = journal(run)
    assert lines[0]["event"]["device"]["driver"] != driver
    lines[0]["event"]["device"]["driver"] = driver
    (run / "journal.jsonl").write_bytes(written_lines(lines))


@pytest.mark.long
def test_a_reply_is_taken_in_before_a_device_is_looked_for(tmp_path: Path) -> None:
    """As on a machine with the model, to which the folder of a run was copied: it goes on to the next thing
    that needs the device."""
    problem(tmp_path)
    assert tunesmith(tmp_path, *COMMAND, *MODEL).code == 4
    again = ("resume", "run", "--no-wait", *MODEL)  # of a run that, with another driver, began elsewhere
    begin_with_driver(tmp_path / "run", "2")
    answer(tmp_path / "box", "0001-planner")
    elsewhere = tunesmith(tmp_path, *again)
    assert elsewhere.code == 4, elsewhere.err
    assert "0002-author.reply.md" in elsewhere.err
    for name in ("0002-author", "0003-author"):
        answer(tmp_path / "box", name)
    elsewhere = tunesmith(tmp_path, *again)
    assert elsewhere.code == 5, elsewhere.err
    assert [line["type"] for line in journal(tmp_path / "run")][-3:] == ["Requested", "Replied", "Drafted"]
    says(elsewhere.out, "template 1", "by mailbox", "is written")
    (line,) = [line for line in elsewhere.out.splitlines() if line.startswith("template so far")]
    assert line.split()[-1] == "run/template-1.fake"
    assert (tmp_path / line.split()[-1]).read_text().startswith("// /// tunesmith")
    begin_with_driver(tmp_path / "run", "1")
    here = tunesmith(tmp_path, *again)
    assert here.code == 4, here.err
    assert "0004-author.reply.md" in here.err


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(500)
def test_killed_anywhere(tmp_path: Path) -> None:
    """kill -9 at any moment, then resume: the same events, and nothing asked twice."""
    command = (*COMMAND, *MODEL)

    def prepared(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        problem(folder)
        for reply in REPLIES:
            answer(folder / "box", reply)
        return folder

    whole = prepared("whole")
    assert tunesmith(whole, *command).code == 0
    expected, rng = facts(whole / "run"), random.Random(5)
    for number in range(POINTS):
        own, events = prepared(str(number)), rng.randrange(1, len(expected))
        if kill_and_resume(own, command, events, rng.uniform(0, 0.05)):
            assert facts(own / "run") == expected, f"killed after event {events}"
