"""Where the general configuration serves: never at a size that was slower, never beyond what was timed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import a_problem
from tunesmith.problem.problem import Contract, Problem, SizeRule
from tunesmith.run.boundary import Boundary, TimedSize, learn

PROBLEM = a_problem()  # rows and d


def at(rows: int, d: int, ratio: float | None) -> TimedSize:
    return TimedSize((("rows", rows), ("d", d)), ratio)


def learnt(*timed: TimedSize, problem: Problem = PROBLEM) -> Boundary:
    found = learn(problem, timed)
    assert found is not None
    return found


def test_where_nothing_is_slower_only_the_ends_are_bounds() -> None:
    found = learnt(at(1, 64, 1.5), at(4096, 4096, 2.0), at(64, 512, 1.0))
    assert found.holds((("rows", 64), ("d", 4096)))
    assert (found.inside, found.slower, found.cut_off, found.least) == (3, 0, 0, 1.0)
    assert found.in_words == "timed at 3 sizes inside, 1.00× at the least"


def test_beyond_the_largest_size_timed_it_does_not_serve() -> None:
    found = learnt(at(2, 64, 1.5), at(64, 512, 2.0))
    assert not found.holds((("rows", 65), ("d", 64)))
    assert not found.holds((("rows", 1), ("d", 64)))
    assert not found.holds((("rows", 64), ("d", 520)))
    assert found.holds((("rows", 64), ("d", 512)))


def test_a_small_size_that_is_slower_is_cut_off_at_the_good_one_beside_it() -> None:
    found = learnt(at(1, 8, 0.4), at(64, 512, 2.0), at(64, 2048, 3.0), at(32, 1024, 1.2))
    assert not found.holds((("rows", 1), ("d", 8)))
    assert found.holds((("rows", 64), ("d", 512)))
    assert (found.slower, found.unable, found.cut_off) == (1, 0, 0)


def test_sizes_that_were_faster_and_lie_outside_are_not_called_slower() -> None:
    few, narrow = (1, 2, 3, 4, 5, 6), (8, 16, 31, 32, 33, 64, 128)
    slow = [at(rows, d, 0.5) for rows in few for d in narrow if (rows, d) != (3, 32)]
    fast = [at(rows, d, 2.0) for rows in (64, 512, 4096) for d in narrow]
    found = learnt(*slow, *fast, at(3, 32, 1.3), at(1, 4, None))
    assert (found.inside, found.slower, found.unable, found.cut_off) == (len(fast), len(slow), 1, 1)
    assert found.in_words == (
        "timed at 21 sizes inside, 2.00× at the least; outside it was slower at 41 and unable to run at 1, "
        "and no slower at 1 beside these"
    )
    more = found.with_more([at(2, 64, 1.4), at(3, 8, 0.7), at(64, 64, 1.1), at(1, 8, None)])
    assert (more.inside, more.slower, more.unable, more.cut_off, more.least) == (22, 42, 2, 2, 1.1)


def test_a_size_that_is_no_multiple_is_left_out_and_the_others_stay() -> None:
    good = [at(rows, d, 1.5) for rows in (1, 64, 4096) for d in (8, 256, 1024, 4096)]
    found = learnt(*good, at(64, 1023, 0.7), at(4096, 9, 0.8), at(1, 255, 0.6))
    assert "d % 2 == 0" in found.conditions
    assert found.inside == len(good)


def test_one_of_a_few_values_may_be_left_out() -> None:
    sizes = (SizeRule("rows", 1, 4096), SizeRule("d", 64, 256, one_of=(64, 128, 256)))
    problem = Problem(**{**PROBLEM.__dict__, "contract": Contract(sizes)})
    good = [at(rows, d, 1.5) for rows in (1, 64, 4096) for d in (64, 256)]
    found = learnt(*good, *(at(rows, 128, 0.5) for rows in (1, 64, 4096)), problem=problem)
    assert "d in (64, 256,)" in found.conditions
    assert found.inside == len(good)


@pytest.mark.parametrize("ratio", [0.5, None])
def test_where_nothing_good_is_known_it_serves_nowhere(ratio: float | None) -> None:
    assert learn(PROBLEM, [at(1, 64, ratio)]) is None
    assert learn(PROBLEM, []) is None
    assert learn(PROBLEM, [at(1, 64, ratio), at(1, 64, 1.5)]) is None  # one size, both ways


TIMED = st.lists(
    st.builds(at, st.integers(1, 4096), st.integers(1, 512).map(lambda n: 8 * n), st.floats(0.5, 2.0)),
    max_size=25,
)


@given(TIMED, st.sampled_from([1.0, 2.0, 4.0]))
def test_no_slower_size_is_inside_and_every_condition_can_be_read(
    timed: list[TimedSize], margin: float
) -> None:
    found = learn(PROBLEM, timed, margin)
    if found is None:
        return
    inside = [p for p in timed if found.holds(p.sizes)]
    assert all(p.is_good for p in inside)
    assert len(inside) == found.inside
    assert found.inside + found.slower + found.unable + found.cut_off == len(timed)
    assert found.least == min(p.ratio for p in inside if p.ratio is not None)


def test_a_boundary_that_proved_too_wide_stays_clear_of_slower_sizes() -> None:
    lengths = (128, 256, 384, 512, 768, 1024, 2048)
    timed = [at(64, d, 0.9 if d <= 256 else 1.3) for d in lengths]
    for margin, served in ((1.0, lengths[2:]), (2.0, lengths[3:]), (4.0, lengths[5:])):
        found = learn(PROBLEM, timed, margin)
        assert tuple(d for d in lengths if found.holds((("rows", 64), ("d", d)))) == served
    near = [at(64, 16, 0.9), at(64, 24, 1.3)]
    assert learn(PROBLEM, near, 4.0).inside == 1  # there is nothing further out


def test_a_corner_that_is_cut_off_has_the_margin_on_both_sides() -> None:
    steps = (128, 1024, 8192, 65536)
    timed = [at(rows, d, 1.2) for rows in steps for d in steps if (rows, d) != (65536, 128)]
    timed += [at(32768, 256, 0.8)]
    near, far = (learn(PROBLEM, timed, margin) for margin in (1.0, 8.0))
    assert near.conditions[0] == "(d >= 1024 or rows <= 8192)"
    assert far.conditions[0] == "(d >= 8192 or rows <= 1024)"


def test_more_sizes_inside_change_the_words_and_not_the_box() -> None:
    found = learnt(at(1, 64, 1.5), at(64, 512, 2.0))
    more = found.with_more([at(32, 64, 1.1), at(4096, 64, 0.2)])
    assert more.conditions == found.conditions
    assert (more.inside, more.least) == (3, 1.1)
