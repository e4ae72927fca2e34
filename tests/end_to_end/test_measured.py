"""Measurements of other tuners as a prior: a T4 file is read, kept by the run, and not needed afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end import tiny
from tests.end_to_end.asking import refused, tune
from tests.end_to_end.killing import kill_and_resume
from tests.running import events_in


def entry(block: int, milliseconds: float, invalidity: str = "correct") -> dict[str, Any]:
    measured = [{"name": "time", "value": milliseconds, "unit": "ms"}]
    times, right = {"runtimes": []}, int(invalidity == "correct")
    own = {"configuration": {"BLOCK": block}, "times": times, "invalidity": invalidity}
    return {**own, "correctness": right, "measurements": measured if right else []}


KNOWN = json.dumps({"results": [entry(32, 1.0), entry(64, 2.0), entry(128, 0.0, "runtime"), entry(48, 1.0)]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tiny.fake(tmp_path / "problem")
    (tmp_path / "known.json").write_text(KNOWN)
    return tmp_path


def test_a_run_begins_from_a_t4_file_and_keeps_it(folder: Path) -> None:
    ended = tune(folder, "--no-cache", "--prior-run", "known.json", "--out", "run")
    assert ended.code == 0, ended.err
    name = "measurements in known.json (3 configurations known, 1 of them failed; 1 of 4 results left out: "
    assert f"{name}1 with values outside the space)" in ended.err
    (primed,) = events_in(folder / "run", "Primed")
    assert [(row[0]["items"], row[1]) for row in primed["rows"]] == [
        ([["BLOCK", 32]], pytest.approx(0.405465)),
        ([["BLOCK", 64]], pytest.approx(-0.287682)),
        ([["BLOCK", 128]], None),
    ]
    (started,) = events_in(folder / "run", "Started")
    digest = dict(started["files"])["measured:known.json"]
    assert (folder / "run" / "objects" / digest).read_text() == KNOWN


@pytest.mark.long
def test_a_run_that_was_killed_goes_on_without_the_file(folder: Path) -> None:
    template = ("--template", "problem/template.fake")
    command = ("tune", "problem", *template, "--no-cache", "--prior-run", "known.json", "--out", "run")
    known = folder / "known.json"
    moved = known.rename(folder / "elsewhere.json")
    refused(tune(folder, "--prior-run", "known.json", "--out", "run"), 2, "known.json")
    moved.rename(known)
    written = kill_and_resume(folder, command, events=4, pause=0.0)
    assert written >= 4
    assert len(events_in(folder / "run", "Primed")) == 1
    assert events_in(folder / "run", "Stopped")


@pytest.mark.long
def test_two_files_of_one_name_are_both_kept(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "known.json").write_text(json.dumps({"results": [entry(256, 3.0)]}))
    both = ("--prior-run", "known.json", "--prior-run", "other/known.json")
    ended = tune(folder, "--no-cache", *both, "--out", "run")
    assert ended.code == 0, ended.err
    (started,) = events_in(folder / "run", "Started")
    assert [n for n, _ in started["files"] if n.startswith("measured:")] == [
        "measured:known.json",
        "measured:2-known.json",
    ]
    assert len(events_in(folder / "run", "Primed")) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not JSON", "a T4 results file is JSON, this is not"),
        ("{}", "missing required field `results`"),
        (json.dumps({"results": [entry(32, -1.0)]}), "a time is a positive number, got -1.0"),
        (json.dumps({"results": []}), "say nothing about template.fake"),
        (json.dumps({"results": [entry(32, 1.0, "compile")]}), "1 configuration known, 1 of them failed"),
        (KNOWN.replace("BLOCK", "TILE"), "with parameters that the template has not (TILE)"),
    ],
)
def test_a_file_that_is_of_no_use_is_told_of_before_anything_is_run(
    folder: Path, text: str, words: str
) -> None:
    (folder / "known.json").write_text(text)
    refused(tune(folder, "--prior-run", "known.json", "--out", "run"), 2, "known.json", words)
    assert not (folder / "run").exists()


def test_bytes_that_are_no_text_are_refused(folder: Path) -> None:
    (folder / "known.json").write_bytes(b"\xff\xfe")
    refused(tune(folder, "--prior-run", "known.json", "--out", "run"), 2, "not UTF-8 text")
