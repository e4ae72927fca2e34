"""Comparisons as a user makes them, on the simulated device: stopped anywhere, continued, and told truly."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end import tiny, written
from tests.end_to_end.asking import quickly
from tests.end_to_end.test_strategies import kernel
from tests.kernel_runs import change, stop
from tests.running import Ended, facts, journal, start, tunesmith, wait_for_events, wait_until_alone
from tests.talkers import file, plan
from tests.wording import says
from tunesmith.plugins.studies import run as comparison
from tunesmith.plugins.studies.plan import Planned, RunResult
from tunesmith.run.config import RunConfig
from tunesmith.run.folder import RunFolder
from tunesmith.session.problems import load_problem
from tunesmith.session.progress import listener_of

pytestmark = pytest.mark.long

MODEL = ("--model", "planner=mailbox:box,author=mailbox:box")
REPLIES = {"0001-planner": plan(), "0002-author": file(written.WIDE), "0003-planner": plan("stop")}
SAID = {
    "template": REPLIES,
    "rewrite": {"0001-planner": change(), "0002-author": kernel(10000), "0003-planner": stop()},
    "single": {"0001-single": kernel(8000), "0002-single": stop()},
}
KERNEL = tiny.FAKE_KERNEL + written.scripted("draft", "keep", written.SLOW)  # what the expert can do
SAID_BY = {f"{arm}-1": [f"{name}.reply.md" for name in replies] for arm, replies in SAID.items()}


def command(*more: object, arms: str = "template,expert", repeats: int = 2) -> tuple[object, ...]:
    asked = ("--strategies", arms, "--repeats", repeats, "--rounds", 2, "--evals", 12, "--seed", 4)
    return ("compare", "problem", *asked, "--out", "cmp", "--no-wait", *more)


def problem(folder: Path, name: str = "problem", kernel: str = KERNEL) -> Path:
    folder.mkdir(exist_ok=True)
    return written.problem(folder / name, kernel)


def answer(box: Path, name: str, arm: str = "template") -> None:
    box.mkdir(parents=True, exist_ok=True)
    target = box / f"{name}.reply.md"
    target.write_text(SAID[arm][name])
    os.utime(target, (1e9, 1e9))  # nobody writes to it any more


def answered(folder: Path) -> None:
    for name in REPLIES:
        answer(folder / "box" / "tiny" / "template-1", name)


def data(folder: Path) -> Any:
    return json.loads((folder / "cmp" / "compare-data.json").read_text())["comparison"]


def speedups(folder: Path) -> dict[str, float | None]:
    return {
        f"{r['planned']['arm']}-{r['planned']['repeat']}": r["facts"]["speedup"] for r in data(folder)["runs"]
    }


def timeless(folder: Path) -> list[dict[str, Any]]:
    """What each run tells, but for what the clock says and how long the requests were."""
    changing = (
        "device_seconds",
        "searched_seconds",
        "kernel_seconds",
        "seconds",
        "tokens_by_length",
        "sent",
        "round_tokens",
        "originals",
    )
    return [{k: v for k, v in r["facts"].items() if k not in changing} for r in data(folder)["runs"]]


def all_facts(folder: Path) -> dict[str, Any]:
    return {run.name: facts(run) for run in sorted((folder / "cmp" / "runs" / "tiny").iterdir())}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_stopped_at_every_reply_or_not_and_from_its_recording(tmp_path: Path) -> None:
    stopped, again = tmp_path / "stopped", tmp_path / "again"
    asked = command(arms="template,rewrite,single,expert", repeats=1)
    problem(stopped)
    ended = tunesmith(stopped, *asked, *MODEL)
    shutil.rmtree(stopped / "problem")  # a comparison has all it needs in its folder
    for place in range(3):
        assert ended.code == 4, ended.err
        assert ended.err.rstrip().endswith("hint: go on with: tunesmith compare --resume cmp --no-wait")
        for arm, replies in SAID.items():
            for name in list(replies)[place : place + 1]:
                assert f"box/tiny/{arm}-1/{name}.reply.md" in ended.err
                answer(stopped / "box" / "tiny" / f"{arm}-1", name, arm)
        ended = tunesmith(stopped, "compare", "--resume", "cmp", "--no-wait")
    assert ended.code == 0, ended.err
    assert "runs that count  4 of 4" in ended.out
    assert {run.name for run in (stopped / "cmp" / "runs" / "tiny").iterdir()} == {*SAID_BY, "expert-1"}
    _has_the_same_budget(stopped)
    _tells_what_it_saw(stopped)

    same = quickly(stopped, "compare", "--resume", "cmp", "--record", "recording")
    assert same.code == 0, same.err
    assert "run 1 of 4" not in same.err, "nothing is left to do"
    recordings = {run.name: run for run in (stopped / "recording" / "tiny").iterdir()}
    assert {own: sorted(f.name for f in run.glob("*.reply.md")) for own, run in recordings.items()} == SAID_BY

    problem(again)
    shutil.move(stopped / "recording", again / "recording")
    recorded = ("--model", "planner=recorded:recording,author=recorded:recording")
    ended = tunesmith(again, *asked, *recorded, "--json")
    assert ended.code == 0, ended.err
    assert ended.json["troubles"] == []
    assert timeless(again) == timeless(stopped)
    assert all(r["facts"]["unanswered"] == 0 for r in data(again)["runs"])


def _has_the_same_budget(folder: Path) -> None:
    for arm in ("template", "rewrite", "single", "expert"):
        settings = journal(folder / "cmp" / "runs" / "tiny" / f"{arm}-1")[0]["event"]["settings"]
        assert (settings["rounds"], settings["evals"], settings["seed"]) == (2, 12, 4)
        assert settings["use_cache"] is False
        assert settings["strategy"] == ("template" if arm == "expert" else arm)
        box = f"mailbox:box/tiny/{arm}-1"
        models = {"expert": "", "single": box}.get(arm, f"planner={box},author={box}")
        assert settings["models"] == models


def _tells_what_it_saw(folder: Path) -> None:
    text = (folder / "cmp" / "compare.md").read_text()
    assert "# Comparison: template, rewrite, single and expert" in text
    assert "2 rounds, 12 evaluations; no limit on time, device-seconds, tokens and money" in text
    assert "[tiny/template-1](runs/tiny/template-1/report.md)" in text
    assert "unknown, about" in text  # tokens of a mailbox
    template, rewrite, single, expert = data(folder)["cells"]
    assert template["mean"] == pytest.approx(20000 / (200 * 68), rel=1e-4)
    assert template["successes"] == 1
    assert template["refactoring"] * template["search"] == pytest.approx(template["mean"], rel=1e-5)
    assert template["costs"]["of_budget"] < template["costs"]["evaluations"], "what the gate tries is extra"
    assert template["costs"]["of_budget"] <= 12
    assert rewrite["costs"]["of_budget"] == rewrite["costs"]["evaluations"] == 1
    assert template["refactoring"] == pytest.approx(20000 / (200 * 124), rel=0.02)
    assert (template["costs"]["requests"], single["costs"]["requests"]) == (3, 2)
    assert template["costs"]["dollars"] is None
    assert rewrite["mean"] == pytest.approx(2.0, rel=0.02)
    assert single["mean"] == pytest.approx(2.5, rel=0.02)
    for cell in (rewrite, single):
        assert cell["refactoring"] == pytest.approx(cell["mean"], rel=0.02)
        assert cell["search"] == 1.0
    assert expert["costs"]["dollars"] == 0
    assert expert["mean"] == pytest.approx(20000 / 19032, rel=1e-3)
    assert {p.name for p in (folder / "cmp" / "plots").iterdir()} == {"speed-ups.svg", "gain-per-round.svg"}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_in_its_second_run(tmp_path: Path) -> None:
    asked = command(arms="expert")
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    problem(whole)
    assert tunesmith(whole, *asked).code == 0
    begun = [journal(whole / "cmp" / "runs" / "tiny" / f"expert-{n}")[0]["event"] for n in (1, 2)]
    assert [event["settings"]["seed"] for event in begun] == [4, 5]
    problem(folder)
    process = start(folder, *asked)
    wait_for_events(folder / "cmp" / "runs" / "tiny" / "expert-2", 10, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert wait_until_alone(folder) == []
    ended = tunesmith(folder, "compare", "--resume", "cmp")
    assert ended.code == 0, ended.err
    assert all_facts(folder) == all_facts(whole)
    assert speedups(folder) == speedups(whole)
    left = {p.name for p in (folder / "cmp").iterdir()}
    assert left == {p.name for p in (whole / "cmp").iterdir()}


def test_one_repeat_waits_for_replies_while_the_others_run(tmp_path: Path) -> None:
    """With a mailbox of each run's own; the expert is done before anyone answers."""
    problem(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "planner.md").write_text("You plan how a kernel is made faster. Be terse.\n")
    model = ("--model", "planner=mailbox,author=mailbox", "--prompts", "own")
    asked = list(command(*model, repeats=1))
    asked.remove("--no-wait")
    process = start(tmp_path, *asked)
    runs = tmp_path / "cmp" / "runs" / "tiny"
    box = runs / "template-1" / "mailbox"
    try:
        _until(lambda: (runs / "expert-1" / "report.json").exists(), process)
        assert not (runs / "template-1" / "report.json").exists()
        for name in REPLIES:
            _until((box / f"{name}.request.md").exists, process)
            answer(box, name)
        _, err = process.communicate(timeout=100)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "Be terse." in (box / "0001-planner.request.md").read_text()
    assert (tmp_path / "cmp" / "prompts" / "planner.md").exists()
    text = (tmp_path / "cmp" / "compare.md").read_text()
    assert "Each arm ran once at each problem." in text
    assert "2 of 2 runs count" in text


def _until(is_due: Callable[[], bool], process: Any, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not is_due():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def test_a_wrong_original_fails_its_runs_and_no_others(tmp_path: Path) -> None:
    """Two problems of one name have folders of their own."""
    problem(tmp_path)
    problem(tmp_path, "other", KERNEL.replace('"20000"', '"20000"\n// fault = "2"'))
    ended = tunesmith(tmp_path, *command("other", arms="expert", repeats=1))
    assert ended.code == 3, ended.err
    assert "cmp/runs/tiny-2/expert-1: " in ended.err
    found = {r["planned"]["problem"]: r for r in data(tmp_path)["runs"]}
    assert found["tiny"]["status"] == "finished"
    assert found["tiny-2"]["status"] == "failed"
    cells = {c["problem"]: c for c in data(tmp_path)["cells"]}
    assert (cells["tiny-2"]["mean"], cells["tiny-2"]["successes"]) == (1.0, 0)
    text = (tmp_path / "cmp" / "compare.md").read_text()
    says(text, "expert", "1 of 2 runs failed", "1.00×")


def test_a_device_that_is_elsewhere(tmp_path: Path) -> None:
    problem(tmp_path)
    away = tunesmith(tmp_path, *command("--backend", "fake:absent", arms="expert", repeats=1), "--json")
    assert away.code == 5, away.err
    assert away.json["troubles"][0]["exit"] == 5
    assert data(tmp_path)["runs"][0]["status"] == "no device"
    here = tunesmith(tmp_path, "compare", "--resume", "cmp")
    assert here.code == 0, here.err
    assert data(tmp_path)["runs"][0]["status"] == "finished"


def test_an_arm_that_fails_is_reported_and_tried_again(tmp_path, monkeypatch):
    """A bug of ours in one arm: the other arm's run is kept, and the next call gets further."""
    path, begin = problem(tmp_path), comparison.begin_run
    monkeypatch.chdir(tmp_path)
    answered(tmp_path)

    def broken(subject: Any, config: RunConfig, *rest: Any) -> Any:
        if config.model:
            raise ZeroDivisionError("of all things")
        return begin(subject, config, *rest)

    monkeypatch.setattr(comparison, "begin_run", broken)
    config = RunConfig(model=MODEL[1], evals=12, rounds=2, builders=1, wait=False)

    def compared() -> tuple[comparison.Compared, dict[str, RunResult]]:
        loaded = [load_problem(path)]
        found = comparison.start_comparison(
            loaded, "template,expert", 1, config, tmp_path / "cmp", listener_of(None)
        )
        return found, {run.planned.arm: run for run in found.comparison.runs}

    found, runs = compared()
    assert [(p.name, e.exit_code) for p, e in found.troubles] == [("template-1", 1)]
    assert (runs["template"].status, runs["template"].speedup, runs["template"].success) == (
        "failed",
        1.0,
        False,
    )
    assert "ZeroDivisionError: of all things" in runs["template"].reason
    assert runs["expert"].status == "finished"
    modified = (tmp_path / "cmp" / "runs" / "tiny" / "expert-1" / "journal.jsonl").stat().st_mtime_ns
    monkeypatch.setattr(comparison, "begin_run", begin)
    found, runs = compared()
    assert found.troubles == ()
    assert runs["template"].status == "finished"
    assert runs["template"].speedup == pytest.approx(20000 / (200 * 68), rel=1e-4)
    assert (tmp_path / "cmp" / "runs" / "tiny" / "expert-1" / "journal.jsonl").stat().st_mtime_ns == modified


def test_an_arm_without_a_recording_is_no_failure_of_the_arm(tmp_path: Path) -> None:
    """Its requests are not given up: the run waits until the recording is there."""
    problem(tmp_path)
    answered(tmp_path)
    recorded = ("--model", "planner=recorded:box,author=recorded:box")
    ended = tunesmith(tmp_path, *command(*recorded, arms="template,rewrite", repeats=1))
    assert ended.code == 2, ended.err
    says(ended.err, "rewrite-1:", "recording", "no folder 'box/tiny/rewrite-1'")
    found = {r["planned"]["arm"]: r for r in data(tmp_path)["runs"]}
    assert (found["template"]["status"], found["rewrite"]["status"]) == ("finished", "stopped")
    for name in SAID["rewrite"]:
        answer(tmp_path / "box" / "tiny" / "rewrite-1", name, "rewrite")
    assert tunesmith(tmp_path, "compare", "--resume", "cmp").code == 0
    assert speedups(tmp_path)["rewrite-1"] == pytest.approx(2.0, rel=0.02)


def test_what_waits_for_a_reply_is_known_before_it_is_its_turn(tmp_path: Path) -> None:
    problem(tmp_path)
    assert tunesmith(tmp_path, *command(*MODEL, arms="template", repeats=1)).code == 4
    folder = RunFolder(tmp_path / "cmp")
    work = comparison.ComparisonRuns(folder, comparison.read_plan(folder), RunConfig(), listener_of(None))
    seen = work._seen(Planned("tiny", "template", 1))
    assert seen.status == "waiting"
    says(seen.reason, "request 1", "no reply")
    says(quickly(tmp_path, "resume", "cmp").err, "tunesmith compare --resume cmp", "cmp/runs")


def test_interrupted_it_says_how_to_go_on(tmp_path: Path) -> None:
    problem(tmp_path)
    process = start(tmp_path, *command(arms="expert", repeats=1))
    wait_for_events(tmp_path / "cmp" / "runs" / "tiny" / "expert-1", 2, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "hint: go on with: tunesmith compare --resume cmp" in err
    assert [(r["status"], r["reason"]) for r in data(tmp_path)["runs"]] == [("stopped", "not finished")]
    ended: Ended = tunesmith(tmp_path, "compare", "--resume", "cmp")
    assert ended.code == 0, ended.err
