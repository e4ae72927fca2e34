from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.search import side_by_side, warm
from benchmarks.search.compare import main, traces
from benchmarks.search.figures import curves
from benchmarks.search.foretold import ranks
from benchmarks.search.our_arm import steady, trace
from benchmarks.search.parallel import table
from benchmarks.search.recorded import Recorded, nearness, read, read_all
from benchmarks.search.render import commit_of
from benchmarks.search.scaling import LAUNCHES, LOOKED_AT, Cluster, Costs, Simulated, Simulation, times_of
from benchmarks.search.warm import Pair, warm_traces
from benchmarks.search.warm import main as warm_main
from tunesmith.run.ports import Proposal, SearchView
from tunesmith.search.simple import Random
from tunesmith.space.configset import Param
from tunesmith.space.space import Space


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


def test_pairs_that_lead_to_one_space_may_have_more_seeds_than_earlier_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warm, "EARLIER_SEEDS", 1)
    for name in ("scale-A", "scale-B", "scale-C"):
        write(tmp_path, name)
    arguments = [str(tmp_path), "--out", str(tmp_path / "out"), "--seeds", "2", "--into", "scale-B"]
    assert warm_main(arguments) == 0
    pairs = {Pair("scale-A", "scale-B"), Pair("scale-C", "scale-B")}
    assert set(warm_traces(tmp_path / "out")) == {(pair, seed) for pair in pairs for seed in (0, 1)}
    assert set(traces(tmp_path / "out", "default")) == {("scale-A", 0), ("scale-C", 0), ("scale-B", 0)}
    assert set(traces(tmp_path / "out", warm.SHORT)) == {("scale-B", 1)}
    printed = capsys.readouterr().out
    assert printed.count("| scale: ") == 2
    assert printed.count("→ B") == 2


def test_what_is_foretold_of_a_gpu_by_itself_is_right(tmp_path: Path) -> None:
    write(tmp_path, "scale-A")
    (recorded,) = read_all(tmp_path)
    every = list(range(len(recorded.rows)))
    assert ranks(recorded, recorded, every) == (1, 1, 1.0)
    slower = [number for number in every if recorded.times[number] > 1.5 * recorded.best]
    best, first, _ = ranks(recorded, recorded, slower)
    assert 1 <= first <= best


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


def test_recordings_without_costs_take_the_builds_of_another(tmp_path: Path) -> None:
    write(tmp_path, "scale-A")
    write(tmp_path, "scale-B")
    (first, second) = read_all(tmp_path)
    known = replace(first, costs=np.full(len(first.rows), 3.0))
    modelled = times_of(second, [known, second])
    assert np.array_equal(modelled.build, times_of(known, [known]).build)
    assert np.allclose(modelled.trial, LAUNCHES * np.nan_to_num(second.times) / 1e3)


def test_what_is_out_of_the_race_is_launched_a_few_times() -> None:
    """Where costs were recorded, they are what was recorded."""
    one, two = Param("A", (0, 1)), Param("B", (0,))
    rows, times = np.array([[0, 0], [1, 0]]), np.array([1000.0, 1500.0])
    without = Recorded("scale-A", Space((one, two)), rows, times)
    known = replace(without, name="scale-B", costs=np.array([40.0, 60.0]))
    costs = Costs(request=0.0, replaced=0.0, event=0.0)
    for recorded, slow in ((without, LOOKED_AT * 1.5), (known, LAUNCHES * 1.5)):
        found = times_of(recorded, [known])
        seconds = float(found.build.sum()) + LAUNCHES * 1.0
        for first, total in (([0, 1], seconds + slow), ([1, 0], seconds + LAUNCHES * 1.5)):
            simulation = Simulation(
                InTurn(first), recorded, found, Cluster(1, 0), costs, 2, 0, clock=lambda: 0.0, pace=steady_one
            )
            ended = simulation.run()
            assert ended.asked == first
            assert ended.measuring == pytest.approx(total)


def steady_one(_known: int, _devices: int, _width: int) -> tuple[int, int]:
    return 1, 0


class InTurn:
    """Asks for these, one after the other."""

    name = "in turn"

    def __init__(self, numbers: list[int]) -> None:
        self._numbers = numbers

    def ask(self, view: SearchView, n: int) -> Proposal:
        begun = len(view.tried) + len(view.in_flight)
        return Proposal(tuple(view.configs[number] for number in self._numbers[begun : begun + n]))


def test_parallel_figures_stand_beside_one_at_a_time(tmp_path: Path) -> None:
    write(tmp_path, "scale-GPU")
    out = tmp_path / "out"
    out.mkdir()
    for arm, asked in (("default", [0, 1, 2, 3, 4]), ("parallel-always-4", [4, 3, 2, 1, 0])):
        lines = [json.dumps({"space": "scale-GPU", "seed": s, "commit": "a", "asked": asked}) for s in (0, 1)]
        (out / f"{arm}.jsonl").write_text("\n".join(lines) + "\n")
    head, _, alone, four = table({each.name: each for each in read_all(tmp_path)}, out)
    assert head.startswith("| asked | seeds | 25 | 50")
    assert alone.startswith("| one at a time | 2 | 1.000 |")
    assert "4 always in flight" in four
    assert "+.000 ± .000" in four


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
