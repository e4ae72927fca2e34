"""Where the general configuration serves: never at a size that was slower, never beyond what was timed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.samples import a_problem
from tunesmith.problem.problem import Problem
from tunesmith.run.race import Boundary, TimedSize, learn_boundary

PROBLEM = a_problem()  # rows and d


def at(rows: int, d: int, ratio: float | None) -> TimedSize:
    return TimedSize((("rows", rows), ("d", d)), ratio)


def learnt(*timed: TimedSize, problem: Problem = PROBLEM) -> Boundary:
    found = learn_boundary(problem, timed)
    assert found is not None
    return found


TIMED = st.lists(
    st.builds(at, st.integers(1, 4096), st.integers(1, 512).map(lambda n: 8 * n), st.floats(0.5, 2.0)),
    max_size=25,
)


@given(TIMED, st.sampled_from([1.0, 2.0, 4.0]))
def test_no_slower_size_is_inside_and_every_condition_can_be_read(
    timed: list[TimedSize], margin: float
) -> None:
    found = learn_boundary(PROBLEM, timed, margin)
    if found is None:
        return
    inside = [p for p in timed if found.holds(p.sizes)]
    assert all(p.is_good for p in inside)
    assert len(inside) == found.inside
    assert found.inside + found.slower + found.unable + found.cut_off == len(timed)
    assert found.least == min(p.ratio for p in inside if p.ratio is not None)


def test_more_sizes_inside_change_the_words_and_not_the_box() -> None:
    found = learnt(at(1, 64, 1.5), at(64, 512, 2.0))
    more = found.with_more([at(32, 64, 1.1), at(4096, 64, 0.2)])
    assert more.conditions == found.conditions
    assert (more.inside, more.least) == (3, 1.1)
