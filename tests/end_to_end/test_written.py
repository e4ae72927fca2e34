"""Runs without a template: the author writes them, the gate lets them in, the best of all is delivered."""

from __future__ import annotations

import json
import random
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.end_to_end import tiny, written
from tests.end_to_end.asking import refused
from tests.end_to_end.killing import kill_and_resume
from tests.running import Ended, events_in, expect_success, facts, journal, report_in, tunesmith
from tests.wording import says

POINTS = 12
COMMAND = ("tune", "problem", "--no-cache", "--no-prior", "--seed", 2, "--out", "run")


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    folder = tmp_path_factory.mktemp("written")
    written.problem(folder / "problem")
    return folder, tunesmith(folder, *COMMAND)


@pytest.mark.long
def test_the_best_template_wins_and_is_delivered(ended: tuple[Path, Ended]) -> None:
    folder, run = ended
    assert run.code == 0, run.err
    report = report_in(folder / "run")
    assert report["finished"]
    assert report["reason"] == "every move has been tried"
    assert report["general"] == {"BLOCK": 32, "VEC": 4, "KEEP": 1}
    assert report["workloads"][0]["speedup"] == pytest.approx(20000 / (200 * 68 // 2), rel=0.05)
    template = (folder / "run" / "template.fake").read_text()
    assert "KEEP = [0, 1]" in template
    assert "VEC = [1, 2, 4, ]" in template, "the value that is wrong is left out"
    assert '// not_right_1 = "not (BLOCK == 128 and KEEP == 1)"' in template
    dispatch = json.loads((folder / "run" / "tuned" / "dispatch.json").read_text())
    assert dispatch["entries"][0]["config"] == report["general"]
    source = (folder / "run" / "tuned" / dispatch["entries"][0]["file"]).read_text()
    assert template in source


@pytest.mark.long
def test_the_report_has_every_round(ended: tuple[Path, Ended]) -> None:
    folder, run = ended
    report = report_in(folder / "run")
    rounds = report["rounds"]
    assert [r["moves"] for r in rounds] == [["wide"], ["wide", "split"], ["wide", "slow"], ["wide", "keep"]]
    assert [r["kept"] for r in rounds] == [True, False, False, True]
    assert [r["base"] for r in rounds] == ["", "1", "1", "1"]
    assert rounds[1]["verdict"] == f"no template: {written.TOO_SHORT}"
    assert rounds[2]["verdict"].startswith("dropped: ")
    assert [d["status"] for d in rounds[3]["drafts"]] == ["rejected", "searched"]
    assert rounds[3]["drafts"][0]["why"].startswith("VEC=8 is wrong (workload only): ")
    assert rounds[3]["drafts"][1]["forbidden"] == ["BLOCK=128 with KEEP=1"]
    text = (folder / "run" / "report.md").read_text()
    assert "<summary>How it came about: rounds, by the search, not verified</summary>" in text
    assert rounds[1]["verdict"] in text
    assert re.search(r"\| 4 \| wide, keep \|.* kept: ", text)
    assert "round" not in run.out, "they are behind what was verified"
    says(run.err, "template 3", "turned away", "VEC=8 is wrong")
    assert text.count("of template 4") >= 2


@pytest.mark.long
def test_a_second_run_begins_from_what_the_first_found(ended: tuple[Path, Ended]) -> None:
    folder, _ = ended
    expect_success(folder, "tune", "problem", "--no-cache", "--prior-run", "run", "--out", "second")
    (primed,) = events_in(folder / "second", "Primed")
    assert {name for name, _ in primed["rows"][0][0]["items"]} == {"BLOCK", "VEC", "KEEP"}


def test_an_author_that_declines_leaves_the_original_and_says_so(tmp_path: Path) -> None:
    kernel = tiny.FAKE_KERNEL + written.scripted("refuses", "wide", why="there is no loop")
    written.problem(tmp_path / "problem", kernel)
    run = expect_success(tmp_path, *COMMAND)
    says(run.out, "delivered", "nothing, the original stays")
    assert "no template: there is no loop" in (tmp_path / "run" / "report.md").read_text()
    assert not (tmp_path / "run" / "template.fake").exists()
    assert report_in(tmp_path / "run")["general"] is None


@pytest.mark.long
def test_where_the_device_is_absent_the_first_template_is_written_and_built(tmp_path: Path) -> None:
    written.problem(tmp_path / "problem")
    away = tunesmith(tmp_path, *COMMAND, "--backend", "fake:absent")
    assert away.code == 5, away.err
    kinds = [e["type"] for e in journal(tmp_path / "run")]
    assert kinds[:4] == ["Started", "Surveyed", "Decided", "Drafted"]  # the original is built first
    assert kinds.count("Surveyed") == 10
    expect_success(tmp_path, "resume", "run")
    report = report_in(tmp_path / "run")
    assert report["general"] == {"BLOCK": 32, "VEC": 4, "KEEP": 1}


class TestTemplate:
    @pytest.mark.long
    def test_is_written_to_stdout_or_a_file(self, tmp_path: Path) -> None:
        written.problem(tmp_path / "problem")
        ended = expect_success(tmp_path, "template", "problem", "--moves", "wide")
        assert ended.out == written.WIDE
        assert "9 configurations" in ended.err
        done = tunesmith(tmp_path, "template", "problem", "--moves", "wide", "--out", "mine.fake")
        assert (tmp_path / "mine.fake").read_text() == written.WIDE
        assert done.out == ("wrote mine.fake; search it with: tunesmith tune problem --template mine.fake\n")
        again = tunesmith(tmp_path, "template", "problem", "--out", "mine.fake")
        refused(again, 2, "the file exists already")

    @pytest.mark.long
    def test_as_json(self, tmp_path: Path) -> None:
        written.problem(tmp_path / "problem")
        shown = tunesmith(tmp_path, "template", "problem", "--json").json
        assert shown["template"] == written.KEEP
        assert shown["moves"] == ["wide", "slow", "keep"]
        assert shown["refused"] == [["split", written.TOO_SHORT]]
        none = expect_success(tmp_path, "template", "problem", "--moves", "split", "--json")
        assert (none.json["template"], none.json["declined"]) == (None, written.TOO_SHORT)

    def test_moves_are_known_by_name(self, tmp_path: Path) -> None:
        written.problem(tmp_path / "problem")
        refused(
            tunesmith(tmp_path, "template", "problem", "--moves", "wide,fly"),
            2,
            "there is no move 'fly'; there are wide, slow, keep, split",
        )


def test_explain_names_what_applies_and_what_does_not(tmp_path: Path) -> None:
    written.problem(tmp_path / "problem")
    ended = expect_success(tmp_path, "explain", "problem")
    says(ended.out, "moves that apply", "simulated device", "wide, slow, keep")
    says(ended.out, "split", "not apply", written.TOO_SHORT)
    assert tunesmith(tmp_path, "explain", "problem", "--json").json["moves"] == ["wide", "slow", "keep"]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(500)
def test_killed_anywhere(ended: tuple[Path, Ended], tmp_path: Path) -> None:
    """kill -9 at any moment, then resume: the same events, the same files, and no author asked twice."""
    folder, _ = ended
    expected = facts(folder / "run")
    files = _delivered(folder / "run")
    rng = random.Random(3)
    points = [(n, rng.randrange(len(expected)), rng.uniform(0, 0.05)) for n in range(POINTS)]

    def one(point: tuple[int, int, float]) -> str | None:
        number, events, pause = point
        own = tmp_path / str(number)
        own.mkdir()
        written.problem(own / "problem")
        if not kill_and_resume(own, COMMAND, events, pause):
            return None
        same = facts(own / "run") == expected and _delivered(own / "run") == files
        return None if same else f"killed after event {events} + {pause:.3f} s"

    with ThreadPoolExecutor(2) as pool:
        assert [fault for fault in pool.map(one, points) if fault] == []


def _delivered(run: Path) -> dict[str, bytes]:
    delivered = [*(run / "tuned").iterdir(), run / "template.fake"]
    return {path.name: path.read_bytes() for path in delivered}
