"""Templates searched again: from a run, a file or the library, at other sizes, with what is known first."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end import kept, tiny
from tests.end_to_end.asking import quickly, refused
from tests.running import EXAMPLES, Ended, events_in, expect_success, facts, report_in, tunesmith
from tunesmith.session.retune import name_of

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run, whose problem is gone, and a file of new sizes."""
    folder = tmp_path_factory.mktemp("made")
    kept.problem(folder / "problem")
    (folder / "sizes.toml").write_text(kept.SIZES)
    words = ("--template", "problem/template.fake", "--no-cache", "--out", "run")
    ended = expect_success(folder, "tune", "problem", *words)
    assert "library          stored as tiny-" in ended.out
    shutil.copytree(folder / "problem", folder / "elsewhere")
    shutil.rmtree(folder / "problem")
    return folder


@pytest.fixture(scope="module")
def ended(made: Path) -> Ended:
    return expect_success(made, "retune", "run", "--workloads", "sizes.toml", "--no-cache", "--out", "again")


def values(config: dict[str, Any]) -> dict[str, int]:
    return dict(config["items"])


class TestRun:
    def test_is_an_ordinary_run_that_says_what_it_was_retuned_from(self, made: Path, ended: Ended) -> None:
        assert re.search(r"^template         .*again/template\.fake$", ended.out, re.MULTILINE)
        retuned = report_in(made / "again")
        assert retuned["origin"] == "run run on simulated device"
        assert [w["name"] for w in retuned["workloads"]] == ["tall", "flat"]
        assert retuned["workloads"][0]["config"] == {"BLOCK": 32, "VEC": 8, "UNROLL": 4}
        assert "Retuned from run run on simulated device" in (made / "again" / "report.md").read_text()
        assert (made / "again" / "tuned" / "dispatch.json").exists()
        assert not events_in(made / "again", "Requested")

    def test_what_was_best_there_is_tried_right_after_the_default(self, made: Path, ended: Ended) -> None:
        (primed,) = events_in(made / "again", "Primed")
        assert len(primed["rows"]) == 12
        best = [values(c) for c in primed["first"]]
        delivered = [w["config"] for w in report_in(made / "run")["workloads"]]
        assert best[0] == report_in(made / "run")["general"]
        assert all(config in best for config in delivered)
        trials = [
            t for e in events_in(made / "again", "Asked") for t in e["trials"] if t["purpose"] == "search"
        ]
        order = [values(t["config"]) for t in trials if t["effort"] != "build"]
        assert order[0] == {"BLOCK": 64, "VEC": 1, "UNROLL": 1}
        assert order[1 : 1 + len(best)] == [c for c in best if c != order[0]][: len(best)]

    def test_a_retuned_run_can_be_retuned_at_its_own_sizes(self, made: Path, ended: Ended) -> None:
        words = ("--evals", 3, "--no-prior", "--no-library", "--out", "third")
        third = expect_success(made, "retune", "again", *words)
        retuned = report_in(made / "third")
        assert [w["name"] for w in retuned["workloads"]] == ["tall", "flat"]
        assert sum(retuned["evaluations"].values()) == 3
        assert "library " not in third.out
        assert not events_in(made / "third", "Primed"), "nothing known is nothing tried first"
        assert retuned["known_first"] == 0

    def test_where_the_device_is_absent_it_is_built_and_goes_on_later(self, made: Path) -> None:
        words = ("--workloads", "sizes.toml", "--backend", "fake:absent", "--out", "away")
        away = tunesmith(made, "retune", "run", *words)
        assert away.code == 5, away.err
        expect_success(made, "resume", "away")
        assert report_in(made / "away")["origin"] == "run run on simulated device"
        assert [w["name"] for w in report_in(made / "away")["workloads"]] == ["tall", "flat"]

    def test_both_templates_of_a_run_are_searched_again(self, tmp_path: Path) -> None:
        kept.of_two_templates(tmp_path / "problem")
        expect_success(tmp_path, "tune", "problem", "--no-cache", "--out", "run")
        assert {w["template"] for w in report_in(tmp_path / "run")["workloads"]} == {"1", "2"}
        (tmp_path / "sizes.toml").write_text(kept.SIZES)
        words = ("--workloads", "sizes.toml", "--evals", 6, "--no-cache", "--out", "again")
        expect_success(tmp_path, "retune", "run", *words)
        admitted = [(e["candidate"], e["feasible"]) for e in events_in(tmp_path / "again", "Admitted")]
        assert admitted == [("", 3), ("2", 3)]
        decided = [(e["candidate"], e["evals"]) for e in events_in(tmp_path / "again", "Decided")]
        assert decided[:2] == [("", 3), ("2", None)]
        retuned = report_in(tmp_path / "again")
        assert [(w["name"], w["template"]) for w in retuned["workloads"]] == [("tall", ""), ("flat", "2")]
        assert [w["speedup"] > 10 for w in retuned["workloads"]] == [True, True]
        written = {p.name for p in (tmp_path / "again").glob("template*")}
        assert written in ({"template.fake", "template-2.fake"}, {"template.fake", "template-given.fake"})
        names = [entry["workloads"] for entry in tunesmith(tmp_path, "library", "--json").json]
        assert sorted(names) == [["big"], ["flat"], ["small"], ["tall"]]
        self._can_be_looked_at(tmp_path / "again")

    def _can_be_looked_at(self, run: Path) -> None:
        """Finished, and where it was cut between its two templates: `report` and `profile` know both."""
        assert tunesmith(run.parent, "report", run, "--format", "json").json == report_in(run)
        looked = tunesmith(run.parent, "profile", run, "--json").json
        assert [[v["profile"]["seconds"] < 2e-6 for v in w["views"]] for w in looked["workloads"]] == [
            [False, True],
            [False, True],
        ]
        lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
        first = next(n for n, line in enumerate(lines) if b'"Admitted"' in line)
        (run / "journal.jsonl").write_bytes(b"".join(lines[: first + 1]))
        for command in ("report", "profile"):
            ended = tunesmith(run.parent, command, run)
            assert ended.code == 0, f"{command}: {ended.err}"

    def test_killed_and_resumed_it_equals_the_one_that_went_through(self, made: Path, ended: Ended) -> None:
        half = shutil.copytree(made / "again", made / "cut")
        lines = (half / "journal.jsonl").read_bytes().splitlines(keepends=True)
        (half / "journal.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))
        expect_success(made, "resume", "cut")
        assert facts(half) == facts(made / "again")

    def test_from_a_recording(self, tmp_path: Path) -> None:
        kept.problem(tmp_path / "problem")
        configs = [[b, v, u] for b in (64, 32, 128) for v in (1, 2, 4, 8) for u in (1, 4)]
        times = [0.004 + b / v / 1e5 + u / 1e4 for b, v, u in configs]
        table = {
            "params": {"BLOCK": [64, 32, 128], "VEC": [1, 2, 4, 8], "UNROLL": [1, 4]},
            "configs": configs,
        }
        (tmp_path / "recording.json").write_text(json.dumps({**table, "time_ms": times}))
        words = ("--template", "problem/template.fake", "--backend", "replay:recording.json", "--out", "run")
        expect_success(tmp_path, "tune", "problem", *words)
        (tmp_path / "recording.json").unlink()
        shutil.rmtree(tmp_path / "problem")
        (tmp_path / "sizes.toml").write_text(kept.SIZES)
        expect_success(tmp_path, "retune", "run", "--workloads", "sizes.toml", "--out", "again")
        assert report_in(tmp_path / "again")["backend"] == "replay"
        assert report_in(tmp_path / "again")["general"] == {"BLOCK": 32, "VEC": 8, "UNROLL": 1}


def test_a_run_of_a_comparison_is_named_with_its_problem(tmp_path: Path) -> None:
    run = tmp_path / "cmp" / "runs" / "softmax-2" / "template-1"
    run.mkdir(parents=True)
    assert name_of(run) == "template-1"
    (tmp_path / "cmp" / "compare.json").write_text("{}")
    assert name_of(run) == "softmax-2/template-1"


class TestMistakes:
    def test_in_what_is_named(self, made: Path) -> None:
        (made / "empty").mkdir(exist_ok=True)
        refused(quickly(made, "retune", "nowhere"), 2, "'nowhere' is neither a run's folder nor")
        refused(quickly(made, "retune", "empty"), 2, "this folder holds no run")
        refused(quickly(made, "retune", "elsewhere/template.fake"), 2, "does not say what its kernel must do")
        missing = quickly(made, "retune", "run", "--workloads", "none.toml")
        refused(missing, 2, "none.toml: there is no such file")
        refused(quickly(made, "retune", "run", "--problem", "none"), 2, "there is no such file")

    def test_in_the_workloads(self, made: Path) -> None:
        (made / "bad.toml").write_text("[workloads.a]\nn = 9\n[workloads.b]\nm = 8\n")
        ended = quickly(made, "retune", "run", "--workloads", "bad.toml", "--out", "never")
        refused(ended, 2, "bad.toml:2: workload 'a': n = 9 is outside", "bad.toml:4", "no value for n")
        assert not (made / "never").exists()

    def test_a_run_that_has_not_finished_or_is_damaged(self, made: Path) -> None:
        half = made / "half"
        shutil.copytree(made / "run", half)
        lines = (half / "journal.jsonl").read_bytes().splitlines(keepends=True)
        (half / "journal.jsonl").write_bytes(b"".join(lines[:-1]))
        refused(quickly(made, "retune", "half"), 2, "this run has not finished", "tunesmith resume half;")
        (made / "tunesmith.toml").write_text("wait = false\n")
        refused(quickly(made, "retune", "half"), 2, "go on with it: tunesmith resume half --no-wait;")
        (made / "tunesmith.toml").unlink()
        (half / "journal.jsonl").write_bytes(b"".join([*lines[:3], b"nonsense\n", *lines[4:]]))
        refused(quickly(made, "retune", "half"), 2, "journal.jsonl:4: the journal is damaged")
        (half / "journal.jsonl").write_bytes(b"")
        refused(quickly(made, "retune", "half"), 2, "the run was killed before it began")

    def test_a_template_of_another_kernel(self, made: Path, tmp_path: Path) -> None:
        other = tiny.opencl(tmp_path / "other")
        refused(
            quickly(made, "retune", "run", "--problem", other), 2, "run is of another kernel: fake scale("
        )
        softmax = EXAMPLES / "opencl" / "softmax" / "template.cl"
        ended = quickly(made, "retune", softmax, "--problem", EXAMPLES / "opencl" / "rmsnorm")
        refused(ended, 2, "this is a template of another kernel", "'rmsnorm' is nowhere in template.cl")
        # With other names for its sizes the reader sees it first.
        refused(quickly(made, "retune", softmax, "--problem", other), 2, "unknown name 'd'")

    def test_a_run_without_a_template(self, tmp_path: Path) -> None:
        tiny.fake(tmp_path / "problem")  # whose author has nothing to write
        expect_success(tmp_path, "tune", "problem", "--out", "run")
        refused(quickly(tmp_path, "retune", "run"), 2, "this run has no template")


class TestTemplate:
    def test_a_file_begins_from_earlier_runs(self, made: Path) -> None:
        words = ("--problem", "elsewhere", "--evals", 4, "--out", "file")
        shutil.copytree(made / "run", made / "tunesmith-runs" / "tiny-1")
        expect_success(made, "retune", "elsewhere/template.fake", *words)
        (primed,) = events_in(made / "file", "Primed")
        assert values(primed["first"][0]) == report_in(made / "run")["general"]
        assert report_in(made / "file")["origin"] == "template template.fake"
        assert report_in(made / "file")["general"] == report_in(made / "run")["general"]

    def test_a_kernel_that_has_changed_since_is_reported(self, made: Path) -> None:
        changed = shutil.copytree(made / "elsewhere", made / "changed")
        tiny.spoil(changed / "kernel.fake", "// op", "// # a comment\n// op")
        expect_success(made, "retune", "run", "--problem", "changed", "--evals", 2, "--out", "newer")
        assert "the kernel's text has changed since" in report_in(made / "newer")["origin"]
