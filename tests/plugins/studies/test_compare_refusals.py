"""Mistakes in asking for a comparison give a sentence and a hint, and leave nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tunesmith
from tests.end_to_end import written
from tests.end_to_end.asking import quickly, refused

EXPERT = ("--strategies", "expert", "--repeats", 1)


def test_python_refuses_what_is_no_problem(tmp_path: Path) -> None:
    for given, why in (([], "no problem"), (str(tmp_path / "gone"), "no such file")):
        with pytest.raises(tunesmith.BadInput, match=why):
            tunesmith.compare(given)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("problem",), "template, rewrite, single: a model is needed, and --model names none"),
        (("problem", "--model", "expert"), "a model is needed"),
        (("problem", "--strategies", "expert,best"), "unknown strategy 'best'; known are template, rewrite"),
        (("problem", "--strategies", "expert,expert"), "the strategy expert is named twice"),
        (("problem", "--strategies", ","), "--strategies names none"),
        (("problem", "problem", *EXPERT), "the problem tiny is named twice"),
        (("nowhere", *EXPERT), "there is no such file"),
        ((), "no PROBLEM is named"),
        (("problem", "--model", "gpt"), "unknown model 'gpt'"),
        (("problem", "--model", "recorded:gone"), "there is no folder 'gone'"),
        (("problem", *EXPERT, "--backend", "replay:times.json"), "replay has the times of one template"),
        (("problem", *EXPERT, "--backend", "abacus"), "abacus"),
        (("problem", *EXPERT, "--prompts", "gone"), "there is no folder 'gone'"),
        (("--resume", "problem"), "there is no comparison in this folder: it has no compare.json"),
        (("--resume", "nowhere"), "there is no comparison in this folder"),
        (("problem", "--resume", "cmp"), "so PROBLEM cannot be given"),
        (("--resume", "cmp", "--repeats", 3), "so --repeats cannot be given"),
        (("--resume", "cmp", "--evals", 3), "so --evals cannot be given"),
    ],
)
def test_refused(asked: tuple[object, ...], said: str, tmp_path: Path) -> None:
    written.problem(tmp_path / "problem")
    refused(quickly(tmp_path, "compare", *asked), 2, said)
    assert {p.name for p in tmp_path.iterdir()} <= {"problem", "user-cache"}


def test_a_device_that_none_here_is(tmp_path: Path) -> None:
    written.problem(tmp_path / "problem")
    ended = quickly(tmp_path, "compare", "problem", *EXPERT, "--device", "H900")
    assert (ended.code, ended.out) == (5, "")
    assert "device 'H900' matches no device; there are: 0 = simulated device" in ended.err
    assert not (tmp_path / "tunesmith-runs").exists()


def test_who_does_not_wait_is_told_to_go_on_without_waiting(tmp_path: Path) -> None:
    """Also where there is no comparison yet to look at."""
    given = quickly(tmp_path, "compare", "--resume", "a b", "--repeats", 3, "--no-wait")
    assert "hint: tunesmith compare --resume 'a b' --no-wait\n" in given.err
    none = quickly(tmp_path, "compare", "--no-wait")
    assert "hint: tunesmith compare PROBLEM..., or tunesmith compare --resume DIR --no-wait\n" in none.err


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """A comparison that has a plan and nothing else."""
    written.problem(tmp_path / "problem")
    ended = quickly(tmp_path, "compare", "problem", *EXPERT, "--out", "cmp", "--backend", "fake:absent")
    assert ended.code == 5, ended.err
    return tmp_path


def test_another_comparison_in_the_same_folder(planned: Path) -> None:
    asked = ("compare", "problem", "--out", "cmp", "--backend", "fake:absent", "--strategies", "expert")
    refused(
        quickly(planned, *asked, "--repeats", 2, "--evals", 9),
        2,
        "cmp: this folder holds another comparison: it has 1 repeat, you ask for 2 repeats; "
        "it has 400 evaluations, you ask for 9 evaluations",
        "tunesmith compare --resume cmp",
    )
    other = quickly(planned, *asked, "--repeats", 2, "--no-wait")
    refused(other, 2, "go on with that one: tunesmith compare --resume cmp --no-wait; or choose another")
    kernel = planned / "problem" / "kernel.fake"
    kernel.write_text(kernel.read_text().replace("20000", "20001"))
    then = "the problems tiny as they were then, you ask for the same as they are now"
    refused(quickly(planned, *asked, "--repeats", 1), 2, then)


def test_a_plan_that_cannot_be_used(planned: Path) -> None:
    file = planned / "cmp" / "compare.json"
    plan = json.loads(file.read_text())
    for spoilt, said in (
        (json.dumps(plan)[:-9], "the plan is damaged"),
        (json.dumps({**plan, "format": 99}), "of another version of Tunesmith: its format is 99"),
        (json.dumps({**plan, "arms": ["oracle"]}), "of another version of Tunesmith: it has the arm oracle"),
    ):
        file.write_text(spoilt)
        ended = quickly(planned, "compare", "--resume", "cmp")
        refused(ended, 2, said, "begin another comparison with --out")


def test_a_folder_with_something_else_in_it(tmp_path: Path) -> None:
    written.problem(tmp_path / "problem")
    refused(quickly(tmp_path, "compare", "problem", *EXPERT, "--out", "problem"), 2, "must be new or empty")


def test_one_that_was_killed_before_it_had_a_plan_is_begun(tmp_path: Path) -> None:
    written.problem(tmp_path / "problem")
    (tmp_path / "cmp").mkdir()
    (tmp_path / "cmp" / "lock").write_text("")
    (tmp_path / "cmp" / ".compare.json.0123.part").write_text("{")
    ended = quickly(tmp_path, "compare", "problem", *EXPERT, "--out", "cmp", "--backend", "fake:absent")
    assert ended.code == 5, ended.err
    assert (tmp_path / "cmp" / "compare.json").exists()


def test_a_damaged_run_is_reported_and_does_not_count(planned: Path) -> None:
    journal = planned / "cmp" / "runs" / "tiny" / "expert-1" / "journal.jsonl"
    journal.write_text("{}\n" + journal.read_text())
    ended = quickly(planned, "compare", "--resume", "cmp")
    assert ended.code == 2, ended.err
    assert "the journal is damaged" in ended.err
    assert "hint: restore the folder from a copy" in ended.err
    (run,) = json.loads((planned / "cmp" / "compare-data.json").read_text())["comparison"]["runs"]
    assert (run["status"], run["facts"]) == ("stopped", None)
