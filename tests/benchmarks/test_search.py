from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.search import side_by_side
from benchmarks.search.compare import main, traces
from benchmarks.search.figures import curves
from benchmarks.search.our_arm import trace
from benchmarks.search.recorded import nearness, read, read_all
from benchmarks.search.render import commit_of
from tunesmith.run.ports import Proposal, SearchView
from tunesmith.search.simple import Random


def write(folder: Path, name: str) -> None:
    configs = [[b, a] for a in (0, 1) for b in (4, 2, 8) if (a, b) != (1, 8)]
    times = [None if row == [4, 1] else float(row[0] + row[1]) for row in configs]
    data = {"params": {"B": [2, 4, 8], "A": [0, 1]}, "configs": configs, "time_ms": times}
    with gzip.open(folder / f"{name}.json.gz", "wt") as file:
        json.dump(data, file)


def test_a_recording_is_a_space(tmp_path: Path) -> None:
    write(tmp_path, "scale-Fast_GPU")
    recorded = read(tmp_path / "scale-Fast_GPU.json.gz")
    assert (recorded.kernel, recorded.gpu, recorded.best) == ("scale", "Fast GPU", 2.0)
    assert len(recorded.configs) == 5
    for number, row in enumerate(recorded.rows.tolist()):
        config = recorded.config(number)
        assert list(config.as_dict().values()) == row
        assert recorded.configs.index(config) == number
        assert (recorded.scores[number] is None) == (row == [4, 1])


def test_failed_evaluations_count_and_a_search_that_stopped_keeps_its_best(tmp_path: Path) -> None:
    write(tmp_path, "scale-GPU")
    recorded = read(tmp_path / "scale-GPU.json.gz")
    number = {tuple(row): i for i, row in enumerate(recorded.rows.tolist())}
    asked = [number[4, 1], number[4, 0], number[2, 1]]
    assert np.allclose(nearness(recorded, asked, 5), [0, 2 / 4, 2 / 3, 2 / 3, 2 / 3])


def test_runs_are_written_down_and_not_made_again(tmp_path: Path) -> None:
    write(tmp_path, "scale-GPU")
    arguments = [str(tmp_path), "--out", str(tmp_path / "out"), "--arms", "random", "--seeds", "2"]
    found = {each.name: each for each in read_all(tmp_path)}
    assert main(arguments) == 0
    first = traces(tmp_path / "out", "random")
    assert main([*arguments[:-1], "3"]) == 0
    again = traces(tmp_path / "out", "random")
    assert len(again) == 3
    assert all(again[key] == asked for key, asked in first.items())
    made = curves(found, tmp_path / "out", "random")
    assert made is not None
    assert made.mean(200) == 1


def test_runs_of_two_commits_are_not_mixed(tmp_path: Path) -> None:
    write(tmp_path, "scale-GPU")
    out = tmp_path / "out"
    out.mkdir()
    line = {"space": "scale-GPU", "seed": 0, "commit": "abc1234", "asked": [0, 1]}
    (out / "default.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(SystemExit, match="holds runs of abc1234, this is"):
        main([str(tmp_path), "--out", str(out), "--arms", "default", "--seeds", "1"])
    assert commit_of(out) == "abc1234"
    (out / "warm.jsonl").write_text(json.dumps(line | {"commit": "def5678"}) + "\n")
    with pytest.raises(SystemExit, match="2 commits"):
        commit_of(out)


def test_batches_are_asked_for_as_a_run_does(tmp_path: Path) -> None:
    """Four whenever four have room, outcomes in order: what is in flight is never more than the width."""
    write(tmp_path, "scale-GPU")
    (recorded,) = read_all(tmp_path)
    seen: list[tuple[int, int]] = []

    class Watched(Random):
        def ask(self, view: SearchView, n: int) -> Proposal:
            seen.append((len(view.tried), len(view.in_flight)))
            return super().ask(view, n)

    assert sorted(trace(Watched(), recorded, 0, 5, batch=2, width=4)) == [0, 1, 2, 3, 4]
    assert seen == [(0, 0), (0, 2), (2, 2)]


def test_a_run_may_end_with_the_optimum_and_no_figure_changes(tmp_path: Path) -> None:
    write(tmp_path, "scale-GPU")
    (recorded,) = read_all(tmp_path)
    shortest = set()
    for seed in range(8):
        whole = trace(Random(), recorded, seed, 5)
        part = trace(Random(), recorded, seed, 5, until_best=True)
        assert part == whole[: whole.index(recorded.best_number) + 1]
        assert np.array_equal(nearness(recorded, part, 5), nearness(recorded, whole, 5))
        shortest.add(len(part))
    assert min(shortest) < 5


def test_seeds_may_be_others_than_those_of_a_choice(tmp_path: Path) -> None:
    write(tmp_path, "scale-GPU")
    out = tmp_path / "out"
    arguments = [str(tmp_path), "--out", str(out), "--arms", "random", "--seeds", "2", "--first-seed", "7"]
    assert main(arguments) == 0
    assert {seed for _, seed in traces(out, "random")} == {7, 8}


def test_searchers_are_put_side_by_side_on_equal_runs_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "scale-GPU")
    out = tmp_path / "out"
    out.mkdir()

    def lines(arm: str, asked: list[list[int]]) -> None:
        made = [
            {"space": "scale-GPU", "seed": seed, "commit": "abc", "asked": each}
            for seed, each in enumerate(asked)
        ]
        (out / f"{arm}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in made))

    lines("default", [[0, 1], [0, 2]])
    lines("choice-before", [[2, 1], [1, 2]])
    lines("optuna-tpe", [[2, 1]])
    with pytest.raises(SystemExit, match="optuna-tpe: 1 seeds of 1 spaces"):
        side_by_side.main([str(tmp_path), "--out", str(out)])
    lines("optuna-tpe", [[2, 1], [2, 0]])
    assert side_by_side.main([str(tmp_path), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "| default | 2 | 1.000 ± .000 | 1.000 ± .000 |" in printed
    assert "| scale-GPU | 1.000 (.667 .833) |" in printed
