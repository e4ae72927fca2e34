from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.search import side_by_side
from benchmarks.search.compare import main, traces
from benchmarks.search.figures import curves
from benchmarks.search.our_arm import steady, trace
from benchmarks.search.recorded import Recorded, nearness, read, read_all
from benchmarks.search.render import commit_of
from benchmarks.search.scaling import Cluster, Costs, Simulated, Simulation, times_of
from benchmarks.search.warm import Pair, warm_traces
from benchmarks.search.warm import main as warm_main
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
    (out / "default-in-a-run.jsonl").write_text(json.dumps(line | {"commit": "def5678"}) + "\n")
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

    assert sorted(trace(Watched(), recorded, 0, 5, steady(2, 4))) == [0, 1, 2, 3, 4]
    assert seen == [(0, 0), (0, 2), (2, 2)]


def test_every_pair_of_one_kernel_is_searched_both_ways_and_shown(tmp_path: Path) -> None:
    for name in ("scale-A", "scale-B", "scale-C", "other-A"):
        write(tmp_path, name)
    arguments = [str(tmp_path), "--out", str(tmp_path / "out"), "--seeds", "1"]
    assert warm_main(arguments) == 0
    first = warm_traces(tmp_path / "out")
    names = ("scale-A", "scale-B", "scale-C")
    assert set(first) == {(Pair(a, b), 0) for a in names for b in names if a != b}
    assert all(sorted(asked) == [0, 1, 2, 3, 4] for asked in first.values())
    shown = tmp_path / "warm.md"
    assert warm_main([*arguments[:-1], "2", "--page", str(shown)]) == 0
    assert warm_traces(tmp_path / "out").items() > first.items()
    text = shown.read_text()
    assert text.count("| scale: ") == 6
    assert "the mean gain at 25 is +0.000" in text
    assert "2 seeds" in text


def simulated(recorded: Recorded, devices: int, builders: int, evals: int) -> Simulated:
    times = times_of(recorded, [recorded])
    costs = Costs(request=0.0, replaced=0.0, event=0.0)
    cluster = Cluster(devices, builders)
    return Simulation(Random(), recorded, times, cluster, costs, evals, 0, clock=lambda: 0.0).run()


@pytest.mark.long
def test_a_simulated_cluster_is_as_fast_as_what_it_waits_for(tmp_path: Path) -> None:
    """Ten launches of a millisecond each, and a build of 90 ms."""
    configs = [[a, b] for a in range(16) for b in range(16)]
    data = {"params": {"A": list(range(16)), "B": list(range(16))}, "configs": configs}
    data |= {"time_ms": [1.0 + a / 160 for a, _ in configs], "cost_s": [0.1 + a / 16000 for a, _ in configs]}
    with gzip.open(tmp_path / "scale-GPU.json.gz", "wt") as file:
        json.dump(data, file)
    (recorded,) = read_all(tmp_path)
    times = times_of(recorded, [recorded])
    assert np.allclose(times.trial, recorded.times / 100)
    assert np.allclose(times.build, 0.09)
    one, four = (simulated(recorded, devices, 64, 200) for devices in (1, 4))
    assert len(set(four.asked)) == len(four.asked) == 200
    assert one.ended[-1] == pytest.approx(one.measuring + 0.09), "the device waits for the first build alone"
    assert 2 < one.ended[-1] / four.ended[-1] < 4
    alone, eight = (simulated(recorded, devices, 0, 200) for devices in (1, 8))
    assert alone.ended[-1] == pytest.approx(200 * 0.1, rel=0.1), "its host builds, and it never waits"
    assert alone.ended[-1] / eight.ended[-1] > 0.95 * 8
    few = simulated(recorded, 4, 1, 60)
    assert few.ended[-1] >= 0.09 * 60, "builds saturate first"
    assert simulated(recorded, 4, 64, 200) == four


def test_searchers_are_put_side_by_side_on_equal_runs_alone(tmp_path, capsys):
    write(tmp_path, "scale-GPU")
    out, before = tmp_path / "out", tmp_path / "before"

    def lines(folder: Path, arm: str, asked: list[list[int]]) -> None:
        folder.mkdir(exist_ok=True)
        made = [
            {"space": "scale-GPU", "seed": seed, "commit": "abc", "asked": each}
            for seed, each in enumerate(asked)
        ]
        (folder / f"{arm}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in made))

    lines(out, "default", [[0, 1], [0, 2]])
    lines(before, "default", [[2, 1], [1, 2]])
    lines(out, "optuna-tpe", [[2, 1]])
    arguments = [str(tmp_path), "--out", str(out), "--before", str(before)]
    with pytest.raises(SystemExit, match="optuna-tpe: 1 seeds of 1 spaces"):
        side_by_side.main(arguments)
    lines(out, "optuna-tpe", [[2, 1], [2, 0]])
    assert side_by_side.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "| default | 2 | 1.000 ± .000 | 1.000 ± .000 |" in printed
    assert "| scale-GPU | 1.000 (.667 .833) |" in printed
