"""The CUDA benchmarks as far as they need no GPU: what a run tells, the true best, the page of results."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cuda import copy_rate, evidence, examples, journals, kernel_tuner_arm, throughput, truth
from benchmarks.cuda.examples import against_published
from benchmarks.cuda.hostile import FIXTURE, right_alone, table
from benchmarks.cuda.tuning import Tuned, tune
from tests import samples
from tests.benchmarks.shown import read_results
from tests.end_to_end import tiny
from tunesmith.problem.device import Resources
from tunesmith.problem.plan import Plan, necessary_traffic, plan_launch
from tunesmith.problem.template import configs_of
from tunesmith.run.events import Admitted, Asked, Decided, Measured, Recorded, Stopped
from tunesmith.session.problems import load_problem, load_template

H200 = samples.a_device(shared=232448, sms=132, llc=50 << 20, memory=140 << 30, max_allocation=140 << 30)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    """A run over four simulated configurations, of which BLOCK = 32 is the best."""
    folder = tmp_path_factory.mktemp("tuned")
    problem = tiny.fake(folder / "problem")
    environment = {**os.environ, "TUNESMITH_BUILDERS": "1", "TMPDIR": str(folder)}
    return tune(problem, problem / "template.fake", folder / "run", seed=1, environment=environment)


# -- what a run tells -----------------------------------------------------------------------------------


@pytest.mark.long
def test_the_phases_of_a_real_run_add_up(tuned: Tuned) -> None:
    figures = tuned.figures()
    assert sum(figures["seconds"].values()) == pytest.approx(tuned.wall, abs=0.02)
    assert all(seconds > 0 for seconds in figures["seconds"].values())
    assert figures["tried"] == figures["timed_pairs"] == 4
    assert figures["statuses"] == {"ok": 4}
    assert figures["busy_share"] > 0
    assert figures["winners"] == {"general": {"BLOCK": 32}, "workloads": {"only": {"BLOCK": 32}}}
    assert figures["workloads"][0]["speedup"] == pytest.approx(20000 / 3200, rel=0.01)
    json.dumps(figures)


def test_seconds_belong_to_the_phase_whose_event_ends_them() -> None:
    one, two = samples.config(32), samples.config(64)
    search = samples.outcome(0, one, {"small": 0.5})
    final, late = samples.finalist(1, one, {"small": 2.0}), samples.finalist(2, two, {"small": 1.5})
    events = [
        samples.started(),
        samples.baseline({"small": 1.0}),
        Admitted("t", 12, 12),
        Decided("search", "a template was given"),
        Asked((search.trial,)),
        Measured(search),
        Decided("finish", "every configuration has been tried"),
        Asked((final.trial,)),
        Measured(final),
        samples.verified(one, {"small": 2.0}),
        Measured(late),  # it took the place of one that failed verification
        samples.verified(two, {"small": 1.5}),
        Stopped("done"),
    ]
    ends = [0.0, 3.0, 3.5, 4.0, 4.0, 10.0, 11.0, 11.0, 13.0, 18.0, 20.0, 24.0, 24.5]
    at = [Recorded(i, seconds, event) for i, (seconds, event) in enumerate(zip(ends, events, strict=True))]
    spent = journals.seconds_by_phase(at)
    assert spent == {"original": 3.0, "search": 8.0, "finalists": 4.0, "verification": 9.5}


def test_a_failure_after_the_search_is_the_verdict(tuned: Tuned) -> None:
    assert {str(r.status) for r in journals.verdicts(tuned.run).values()} == {"ok"}
    (first, *_) = tuned.run.state.finalists()
    failed = samples.outcome(9, first.trial.config, {"only": samples.Status.WRONG}, "finalist")
    state = replace(tuned.run.state, outcomes=tuned.run.state.outcomes.plus(failed))
    found = journals.verdicts(replace(tuned.run, state=state))
    assert first.trial.config is not None
    assert str(found[first.trial.config].status) == "wrong"


def test_no_path_of_this_machine_is_in_a_command() -> None:
    command = evidence.command("truth", ["--out", "/tmp/x/out", "--other", "kt=/a/b.json", "build/run"])
    assert command == "python -m benchmarks.cuda.truth --out out --other kt=b.json build/run"


# -- the true best --------------------------------------------------------------------------------------


def test_the_true_best_and_how_far_others_are_behind(tuned: Tuned) -> None:
    found = truth.measure([tuned.run], {"another tool": {"only": {"BLOCK": 64}}}, passes=2)
    assert found["workloads"]["only"]["best"]["config"] == {"BLOCK": 32}
    assert found["workloads"]["only"]["timed"] == 5  # the original is among them
    assert found["runs"]["run"]["workloads"]["only"]["behind_percent"] == pytest.approx(0)
    assert found["runs"]["run"]["general"]["behind_percent"] == pytest.approx(0)
    assert found["others"]["another tool"]["workloads"]["only"]["behind_percent"] == pytest.approx(100)


# -- the other scripts ----------------------------------------------------------------------------------


def test_kernel_tuner_gets_the_configurations_and_the_launches_of_the_template() -> None:
    problem, files = load_problem(kernel_tuner_arm.EXAMPLE)
    template = load_template(kernel_tuner_arm.EXAMPLE / "template.cu", problem, files)
    listed = kernel_tuner_arm.configurations(problem, template, H200)
    configs = list(configs_of(problem, template, H200))
    assert listed == [config.as_dict() for config in configs]
    for workload in problem.workloads:
        grid = kernel_tuner_arm.grid_of(template, workload)
        for config in configs[::7]:
            variant = template.render(problem, config)
            plan = plan_launch(problem, variant, workload.as_dict(), H200, Resources())
            assert isinstance(plan, Plan)
            (launch,) = plan.launches
            assert (*grid(config.as_dict()), 1, 1)[:3] == launch.grid
            assert launch.block == (config["BLOCK"], 1, 1)
    data = kernel_tuner_arm.arguments_of(problem, problem.workloads[0])
    assert [getattr(item, "shape", ()) for item in data] == [(16, 4096), (16, 8192), (), (), (), ()]
    assert [str(item.dtype) for item in data] == ["float16", "float16", "int32", "int32", "int64", "int64"]


def test_every_example_has_a_copy_of_its_bytes(tmp_path: Path) -> None:
    wanted = copy_rate.bytes_of_examples()
    assert sum(map(len, wanted.values())) >= 36
    problem, template = copy_rate.written(tmp_path, list(wanted))
    assert len(template.space.configs([w.as_dict() for w in problem.workloads], {})) >= 12
    for moved in wanted:
        copied = necessary_traffic(problem, {"n": copy_rate.elements(moved)})
        assert abs(copied - moved) <= 16


def test_figures_of_an_example_and_of_a_search(tuned: Tuned) -> None:
    example = examples.figures(tuned, {"only": 10.0})
    (row,) = example["workloads"]
    assert row["bytes"] == 2 * 4 * 64
    assert row["baseline_ratio"] == pytest.approx(2.0)
    assert row["honest_speedup"] == pytest.approx(row["speedup"] / 2)
    search = throughput.figures(tuned, {"512": {"seconds": 1.6e-6}})
    assert search["pairs"] == 4
    assert search["search_s_per_pair"] == pytest.approx(search["seconds"]["search"] / 4)
    assert search["copy_share"] == pytest.approx(0.5, rel=0.01)
    assert throughput.figures(tuned, {})["copy_share"] is None


def test_a_speedup_counts_from_the_published_time_where_ours_is_slower() -> None:
    row = {"baseline_us": 12.0, "speedup": 6.0}
    assert against_published(row, 10.0)["honest_speedup"] == pytest.approx(5.0)
    assert against_published(row, 20.0)["honest_speedup"] == pytest.approx(6.0)
    assert against_published(row, None)["honest_speedup"] == pytest.approx(6.0)


def test_the_hostile_kernels_all_have_an_expected_status(tuned: Tuned, tmp_path: Path) -> None:
    expected = json.loads((FIXTURE / "expected.json").read_text())
    problem, files = load_problem(FIXTURE)
    template = load_template(FIXTURE / "template.cu", problem, files)
    kinds = [
        config["KIND"] for config in template.space.configs([w.as_dict() for w in problem.workloads], {})
    ]
    assert sorted(map(int, expected["kinds"])) == sorted(kinds)
    assert len(set(kinds) - set(expected["right"])) >= 40
    alone = tmp_path / "template.cu"
    alone.write_text(right_alone((FIXTURE / "template.cu").read_text(), expected["right"]))
    right = load_template(alone, problem, files).space.params[0]
    assert list(right.values) == expected["right"]


def test_a_hostile_kernel_that_is_not_tried_is_not_right(tuned: Tuned) -> None:
    results = {"kinds": {"7": {"what": "anything", "status": ["ok"]}}}
    run = replace(tuned.run, state=replace(tuned.run.state, outcomes=(), verified=()))
    assert [(row["got"], row["right"]) for row in table(run, results)] == [("not tried", False)]


def test_the_ratio_to_kernel_tuner_counts_the_same_phases() -> None:
    results = read_results("reached")
    against = throughput.compared(results["throughput"]["runs"], results["kernel_tuner_arm"])
    assert against["ratio_same_phases"] == pytest.approx((17.0 / 120) / (8.0 / 720))
    assert against["ratio_whole_run_against_wall"] == pytest.approx((20.0 / 120) / (18.0 / 720))
