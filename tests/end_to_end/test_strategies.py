"""Runs that write concrete kernels, as a user starts them: over HTTP, by files, stopped, killed, refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.core.agents.models.openai_server import Answer, Server, serving
from tests.end_to_end import tiny, written
from tests.end_to_end.asking import quickly, refused
from tests.kernel_runs import change, stop
from tests.running import Ended, expect_success, facts, report_in, tunesmith
from tests.talkers import file
from tests.wording import says

pytestmark = pytest.mark.long

COMMAND = ("tune", "problem", "--no-cache", "--seed", 2, "--out", "run")


def kernel(time: int, fault: int = 0) -> str:
    """As a reply; the original takes 20000."""
    return file(written.concrete(time, fault))


def problem(folder: Path) -> Path:
    tiny.fake(folder / "problem")
    (folder / "problem" / "template.fake").unlink()
    return folder


def saying(replies: dict[str, list[str]]) -> Callable[[dict[str, Any]], Answer]:
    """By what the first words of the system's message hold, in their order."""
    roles = {"plan how": "planner", "rewrite a GPU": "author", "look for inputs": "tester"}
    roles |= {"say what bounds": "analyst", "alone, in one conversation": "single"}

    def answer(asked: dict[str, Any]) -> Answer:
        system = asked["messages"][0]["content"]
        role = next(role for words, role in roles.items() if words in system)
        return Answer(replies[role].pop(0))

    return answer


def served(folder: Path, replies: dict[str, list[str]], *more: object) -> tuple[Ended, Server]:
    pytest.importorskip("pydantic_ai")
    pytest.importorskip("openai")
    problem(folder)
    with serving(saying(replies)) as server:
        model = ("--model", f"openai:test-model@{server.url}")
        return tunesmith(folder, *COMMAND, *model, *more), server


def test_rewriting_from_a_plain_kernel_to_a_verified_winner(tmp_path: Path) -> None:
    replies = {
        "tester": [json.dumps({"cases": [{"sizes": {"n": 8}, "why": "short"}]})],
        "analyst": [json.dumps({"bound": "time", "evidence": ["it takes 20.00 µs"]})] * 4,
        "planner": [change(), change(), change(), stop()],
        "author": [kernel(5000), kernel(9000), kernel(4000, 2), kernel(4000)],
    }
    ended, server = served(tmp_path, replies, "--strategy", "rewrite", "--linear")
    assert ended.code == 0, ended.err
    report = report_in(tmp_path / "run")
    assert [(r["base"], round(r["speedup"])) for r in report["rounds"]] == [("", 4), ("1", 2), ("2", 5)]
    assert report["geometric_mean"] == pytest.approx(5.0, rel=0.02)
    assert (report["strategy"], report["general"], report["general_template"]) == ("rewrite", {}, "4")
    assert report["chain"]["kernel"] == "4"
    assert len(server.requests) == 1 + 4 + 4 + 4
    delivered = (tmp_path / "run" / "tuned").glob("*.fake")
    assert any('"4000"' in path.read_text() for path in delivered)
    assert "[params]" not in (tmp_path / "run" / "template.fake").read_text()
    shown = quickly(tmp_path, "report", "run", "--format", "md")
    says(shown.out, "refactoring", "all of the gain", "nobody searched")
    says(shown.out, "Delivered:", "kernel 4")


def test_one_conversation_over_http_is_a_real_list_of_messages(tmp_path: Path) -> None:
    replies = {"single": [kernel(5000), kernel(4000, 3), kernel(4000), stop()]}
    ended, server = served(tmp_path, replies, "--strategy", "single")
    assert ended.code == 0, ended.err
    assert [len(r["messages"]) for r in server.requests] == [2, 4, 6, 8]
    last = [m["role"] for m in server.requests[-1]["messages"]]
    assert last == ["system", "user", *("assistant", "user") * 3]
    assert "it is crashed" in server.requests[2]["messages"][-1]["content"]
    assert report_in(tmp_path / "run")["geometric_mean"] == pytest.approx(5.0, rel=0.02)
    story = [(r["verdict"].split(":")[0]) for r in report_in(tmp_path / "run")["rounds"]]
    assert story == ["kept", "kept", "no kernel"]


REWRITE = {
    "0001-planner": change(),
    "0002-author": kernel(5000),
    "0003-planner": change(what="Keep the row."),
    "0004-author": "Not yet.",
    "0005-author": kernel(4000, 2),
    "0006-author": kernel(8000),
    "0007-planner": stop(),
}
SINGLE = {
    "0001-single": kernel(5000),
    "0002-single": "Not yet.",
    "0003-single": kernel(4000, 2),
    "0004-single": kernel(8000),
    "0005-single": stop(),
}
BY_FILES = {
    "rewrite": (REWRITE, ("--model", "planner=mailbox:box,author=mailbox:box")),
    "single": (SINGLE, ("--model", "mailbox:box")),
}


def answer(folder: Path, name: str, text: str) -> None:
    (folder / "box").mkdir(exist_ok=True)
    target = folder / "box" / f"{name}.reply.md"
    target.write_text(text)
    os.utime(target, (1e9, 1e9))  # nobody writes to it any more


def prepared(folder: Path, replies: dict[str, str]) -> Path:
    folder.mkdir()
    problem(folder)
    for name, text in replies.items():
        answer(folder, name, text)
    return folder


def command(name: str) -> tuple[object, ...]:
    return (*COMMAND, "--no-wait", "--strategy", name, *BY_FILES[name][1])


def test_stopping_between_every_request_and_reply_changes_nothing(tmp_path: Path) -> None:
    """Of a conversation; the other roles are stopped so where strategies are compared."""
    whole = prepared(tmp_path / "whole", SINGLE)
    expect_success(whole, *command("single"))
    stopped = prepared(tmp_path / "stopped", {})
    ended = tunesmith(stopped, *command("single"))
    for own, text in SINGLE.items():
        assert ended.code == 4, ended.err
        assert f"box/{own}.reply.md" in ended.err
        assert (stopped / "box" / f"{own}.request.md").exists()
        answer(stopped, own, text)
        ended = tunesmith(stopped, "resume", "run", "--no-wait")
    assert ended.code == 0, ended.err
    assert facts(stopped / "run") == facts(whole / "run")
    same = [(folder / "run" / "template.fake").read_bytes() for folder in (stopped, whole)]
    assert same[0] == same[1]
    _has_all_that_was_said((stopped / "box" / "0003-single.request.md").read_text())


def _has_all_that_was_said(letter: str) -> None:
    assert letter.startswith("# Request 3: single\n")
    says(letter, "to stop", "JSON object", '{"decision": "stop"')
    speakers = [line[3:] for line in letter.splitlines() if line in ("## system", "## user", "## assistant")]
    assert speakers == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "Not yet." in letter
    assert '// time = "5000"' in letter


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--strategy", "dance"), "unknown strategy 'dance'; known are template, rewrite, single"),
        (("--strategy", "rewrite"), "--strategy rewrite needs a language model"),
        (("--strategy", "rewrite", "--model", "expert"), "--strategy rewrite needs a language model"),
        (("--strategy", "single"), "--strategy single needs a language model"),
        (("--strategy", "single", "--model", "expert"), "--strategy single needs a language model"),
        (("--strategy", "single", "--model", "planner=mailbox"), "one conversation with one model"),
        (("--strategy", "single", "--model", "single=mailbox,author=mailbox"), "one conversation with one"),
        (("--strategy", "rewrite", "--model", "planner=mailbox,author=expert"), "it would be the author"),
        (("--strategy", "rewrite", "--model", "author=mailbox"), "it would be the planner"),
        (("--strategy", "rewrite", "--model", "tester=mailbox"), "it would be the planner and the author"),
        (("--linear",), "--linear is for --strategy rewrite"),
        (("--strategy", "single", "--linear", "--model", "mailbox"), "the strategy is single"),
        (
            ("--strategy", "rewrite", "--model", "mailbox", "--template", "problem/template.fake"),
            "--template names",
        ),
        (("--strategy", "single", "--model", "mailbox", "--prior-run", "old"), "nobody searches"),
        (("--strategy", "single", "--model", "mailbox", "--from-library"), "begins from a template"),
    ],
)
def test_what_does_not_go_together_is_a_sentence(flags: tuple[str, ...], words: str, tmp_path: Path) -> None:
    tiny.fake(tmp_path / "problem")
    refused(quickly(tmp_path, "tune", "problem", *flags), 2, words)
    assert not (tmp_path / "tunesmith-runs").exists()
