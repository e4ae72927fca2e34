"""What need not be measured: each rule with its words, and nobody condemned without witnesses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import a_problem, built, config, outcome, records, state_of
from tunesmith.problem.plan import Status
from tunesmith.run.events import Event, Pruned, Surveyed, SurveyedBuild
from tunesmith.run.outcome import Outcome, Result
from tunesmith.run.scores import FAR, LOW, WITNESSES, prune, scores
from tunesmith.run.state import State, apply
from tunesmith.space.params import Config

PROBLEM = a_problem()
A, B, C = config(32), config(64), config(128)
REFUSED = {"small": Status.OVER_LIMITS, "wide": Status.OVER_LIMITS}


def pruned(*events: Event | Outcome) -> list[Pruned]:
    return pruned_in(state_of(*events))


def pruned_in(state: State) -> list[Pruned]:
    return list(prune(state, lambda: scores(PROBLEM, state)))


def measured(number: int, chosen: Config, small: float | Status, wide: float | Status) -> Outcome:
    """By speed-up over an original that takes one second."""
    seconds = {n: v if isinstance(v, Status) else 1 / v for n, v in (("small", small), ("wide", wide))}
    return outcome(number, chosen, seconds)


def test_nothing_is_said_of_what_could_be_good() -> None:
    assert pruned() == []
    assert pruned(built(None), built(A), built(B, occupancy=100), built(C, spills=512, occupancy=3)) == []


class TestCannotRun:
    def test_what_no_workload_can_use(self) -> None:
        assert pruned(built(None), built(A, refused=REFUSED), built(B)) == [
            Pruned(A, "cannot_run", "over_limits: too much")
        ]

    def test_what_some_workload_can_use_is_measured(self) -> None:
        assert pruned(built(A, refused={"wide": Status.INFEASIBLE})) == []

    def test_the_original_is_no_candidate(self) -> None:
        assert pruned(built(None, refused=REFUSED)) == []

    def test_two_that_do_not_build_are_no_twins(self) -> None:
        broken = SurveyedBuild(("small", "wide"), "source")
        no = tuple(Result(name, Status.BUILD_FAILED, detail="error: no") for name in broken.workloads)
        found = pruned(Surveyed(A, (broken,), no), Surveyed(B, (broken,), no))
        assert found == [Pruned(one, "cannot_run", "build_failed: error: no") for one in (A, B)]


class TestSameCode:
    def test_the_first_under_its_name_stays(self) -> None:
        found = pruned(built(A, "x"), built(B, "x"), built(C, "x"))
        assert found == [Pruned(one, "same_code", f"builds and launches the same as {A}") for one in (B, C)]

    def test_launched_otherwise_it_is_another(self) -> None:
        assert pruned(built(A, "x", launches="in two"), built(B, "x", launches="in four")) == []

    def test_a_twin_of_one_measured_or_on_the_way_is_known_as_well(self) -> None:
        done = measured(0, A, 2.0, 2.0)
        assert [p.config for p in pruned(built(A, "x"), done, built(B, "x"))] == [B]

    def test_one_that_is_measured_already_is_not_pruned(self) -> None:
        twins = [built(A, "x"), built(B, "x")]
        assert pruned(*twins, measured(0, A, 2.0, 2.0), measured(1, B, 2.0, 2.0)) == []

    def test_where_sizes_are_baked_in_all_builds_must_be_alike(self) -> None:
        def baked(chosen: Config, small: str, wide: str) -> Surveyed:
            builds = [
                SurveyedBuild((name,), f"{chosen} {name}", code, launches="as always")
                for name, code in (("small", small), ("wide", wide))
            ]
            return Surveyed(chosen, tuple(builds))

        assert pruned(baked(A, "x", "y"), baked(B, "x", "z"), baked(C, "y", "x")) == []
        assert [p.config for p in pruned(baked(A, "x", "y"), baked(B, "x", "y"))] == [B]


BEST = [built(config(1)), measured(0, config(1), 2.0, 2.0)]


def witnesses(
    count: int, small: float | Status = 1.0, wide: float | Status = 1.0, **known: int
) -> list[Event | Outcome]:
    """Measured, built with this, each with code of its own."""
    found: list[Event | Outcome] = []
    for n in range(count):
        chosen = config(1000 + n)
        found += [built(chosen, **known), measured(10 + n, chosen, small, wide)]  # type: ignore[arg-type]
    return found


class TestSpills:
    def test_where_all_that_spill_no_more_are_far_behind(self) -> None:
        words = (
            "spills 96 bytes of registers; the 4 measured that spill no more are all far behind the best at "
            "every workload"
        )
        assert WITNESSES == 4
        assert pruned(*BEST, *witnesses(4, spills=64), built(A, spills=96)) == [Pruned(A, "spills", words)]
        assert [p.rule for p in pruned(*BEST, *witnesses(4, spills=64), built(A, spills=64))] == ["spills"]

    @pytest.mark.parametrize("count", [0, 1, 3])
    def test_a_few_witnesses_are_none(self, count: int) -> None:
        assert pruned(*BEST, *witnesses(count, spills=64), built(A, spills=96)) == []

    def test_one_that_spills_less_or_nothing_may_be_better(self) -> None:
        assert pruned(*BEST, *witnesses(9, spills=64), built(A, spills=63), built(B)) == []

    def test_one_witness_that_is_not_far_behind_somewhere_acquits(self) -> None:
        near = 2.0 * (1 - 0.8 * FAR)
        acquits = [built(C, spills=8), measured(9, C, 0.1, near)]
        assert pruned(*BEST, *witnesses(9, spills=64), *acquits, built(A, spills=96)) == []
        convicts = [built(C, spills=8), measured(9, C, 0.1, 1.0)]
        assert len(pruned(*BEST, *witnesses(9, spills=64), *convicts, built(A, spills=96))) == 1

    def test_one_that_failed_is_no_witness(self) -> None:
        """Why it failed may have nothing to do with it."""
        failed = witnesses(9, Status.WRONG, Status.WRONG, spills=64)
        assert pruned(*BEST, *failed, built(A, spills=96)) == []

    def test_at_a_workload_where_a_witness_did_not_run_it_says_nothing(self) -> None:
        half = witnesses(4, Status.INFEASIBLE, 1.0, spills=64)
        assert len(pruned(*BEST, *half, built(A, spills=96))) == 1
        half = witnesses(4, Status.INFEASIBLE, 1.9, spills=64)
        assert pruned(*BEST, *half, built(A, spills=96)) == []

    def test_where_the_best_spills_too_nobody_is_condemned_for_it(self) -> None:
        best = [built(config(1), spills=32), measured(0, config(1), 2.0, 2.0)]
        assert pruned(*best, *witnesses(9, spills=64), built(A, spills=96)) == []

    def test_the_worst_of_several_builds_counts(self) -> None:
        one = built(A, spills=0, workloads=("small",)).builds[0]
        other = built(A, spills=96, workloads=("wide",)).builds[0]
        found = pruned(*BEST, *witnesses(4, spills=64), Surveyed(A, (one, other)))
        assert [p.rule for p in found] == ["spills"]


class TestOccupancy:
    def test_where_all_from_there_up_to_a_quarter_are_far_behind(self) -> None:
        words = (
            "15 % occupancy; the 8 measured from there up to 25 % are all far behind the best at every "
            "workload"
        )
        assert LOW == 25
        found = pruned(*BEST, *witnesses(8, occupancy=20), built(A, occupancy=15))
        assert found == [Pruned(A, "occupancy", words)]
        assert pruned(*BEST, *witnesses(7, occupancy=20), built(A, occupancy=15)) == []

    def test_from_a_quarter_on_nobody_is_condemned_for_it(self) -> None:
        assert pruned(*BEST, *witnesses(20, occupancy=LOW), built(A, occupancy=LOW)) == []
        assert pruned(*BEST, *witnesses(20, occupancy=LOW), built(A, occupancy=LOW - 1)) == []

    def test_witnesses_with_less_say_nothing_of_one_with_more(self) -> None:
        assert pruned(*BEST, *witnesses(20, occupancy=14), built(A, occupancy=15)) == []

    def test_an_unknown_occupancy_is_no_reason(self) -> None:
        assert pruned(*BEST, *witnesses(20, occupancy=20), built(A)) == []
        assert pruned(*BEST, *witnesses(20), built(A, occupancy=15)) == []

    def test_one_witness_that_is_near_the_best_acquits(self) -> None:
        near = [built(C, occupancy=22), measured(9, C, 1.9, 0.1)]
        assert pruned(*BEST, *witnesses(20, occupancy=20), *near, built(A, occupancy=15)) == []


def all_pruned(state: State) -> State:
    """Verdict by verdict, as the journal has them."""
    while found := pruned_in(state):
        (record,) = records([found[0]])
        state = apply(state, replace(record, number=state.events))
    return state


def test_every_verdict_is_said_once_and_alike_when_it_is_asked_for_again_in_between() -> None:
    events = [
        *BEST,
        *witnesses(8, spills=64, occupancy=20),
        built(A, "x"),
        built(B, "x"),
        built(C, refused=REFUSED),
        built(config(2), spills=512),
        built(config(3), occupancy=3),
    ]
    at_once = pruned(*events)
    assert [p.rule for p in at_once] == ["same_code", "cannot_run", "spills", "occupancy"]
    assert list(all_pruned(state_of(*events)).pruned) == at_once
    assert pruned(*events, *at_once) == []


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("ab"), st.booleans()), max_size=12))
def test_of_each_code_that_can_run_one_is_left(found: list[tuple[str, str, bool]]) -> None:
    builds = [
        built(config(n + 1), code, launches=launches, refused=REFUSED if bad else None)
        for n, (code, launches, bad) in enumerate(found)
    ]
    left = all_pruned(state_of(*builds)).pool
    left_builds = [(s.builds[0].code_digest, s.builds[0].launches) for s in left]
    assert len(left_builds) == len(set(left_builds))
    assert set(left_builds) == {(code, launches) for code, launches, bad in found if not bad}
