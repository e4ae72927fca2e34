"""Where the general configuration serves: never at a size that was slower, never beyond what was timed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.samples import a_problem
from tunesmith.run.race import TimedSize, learn_boundary

PROBLEM = a_problem()  # rows and d


def at(rows: int, d: int, ratio: float | None) -> TimedSize:
    return TimedSize((("rows", rows), ("d", d)), ratio)


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
