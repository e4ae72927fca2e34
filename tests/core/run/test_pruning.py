"""What need not be measured: each rule with its words, and nobody condemned without witnesses."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.samples import a_problem, built, config, outcome, records, state_of
from tunesmith.problem.plan import Status
from tunesmith.run.events import Event, Pruned, Surveyed, SurveyedBuild
from tunesmith.run.outcome import Outcome, Result
from tunesmith.run.scores import prune_pool, score_configs
from tunesmith.run.state import State, apply_record
from tunesmith.space.configset import Config

PROBLEM = a_problem()
A, B, C = config(32), config(64), config(128)
REFUSED = {"small": Status.OVER_LIMITS, "wide": Status.OVER_LIMITS}


def pruned(*events: Event | Outcome) -> list[Pruned]:
    return pruned_in(state_of(*events))


def pruned_in(state: State) -> list[Pruned]:
    return list(prune_pool(state, lambda: score_configs(PROBLEM, state)))


def measured(number: int, chosen: Config, small: float | Status, wide: float | Status) -> Outcome:
    """By speed-up over an original that takes one second."""
    seconds = {n: v if isinstance(v, Status) else 1 / v for n, v in (("small", small), ("wide", wide))}
    return outcome(number, chosen, seconds)


class TestCannotRun:
    def test_two_that_do_not_build_are_no_twins(self) -> None:
        broken = SurveyedBuild(("small", "wide"), "source")
        no = tuple(Result(name, Status.BUILD_FAILED, detail="error: no") for name in broken.workloads)
        found = pruned(Surveyed(A, (broken,), no), Surveyed(B, (broken,), no))
        assert found == [Pruned(one, "cannot_run", "build_failed: error: no") for one in (A, B)]


class TestSameCode:
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
        found += [built(chosen, **known), measured(10 + n, chosen, small, wide)]
    return found


class TestSpills:
    def test_the_worst_of_several_builds_counts(self) -> None:
        one = built(A, spills=0, workloads=("small",)).builds[0]
        other = built(A, spills=96, workloads=("wide",)).builds[0]
        found = pruned(*BEST, *witnesses(4, spills=64), Surveyed(A, (one, other)))
        assert [p.rule for p in found] == ["spills"]


def all_pruned(state: State) -> State:
    """Verdict by verdict, as the journal has them."""
    while found := pruned_in(state):
        (record,) = records([found[0]])
        state = apply_record(state, replace(record, number=state.events))
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
