"""Outputs in any order, pairs, and indices by their keys: what is compared is all that was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.core.problem.test_compare import buffer
from tunesmith.problem.compare import is_free, judge_output, judged_whole, key_arrays, views_of
from tunesmith.problem.plan import BufferPlan, Plan

Array = NDArray[Any]


def a_buffer(name: str, type_: str, shape: tuple[int, ...], role: str = "output", **more: Any) -> BufferPlan:
    rules = {"along": len(shape) - 1, **more}
    return replace(buffer(type_, shape, 1e-4, 1e-5), name=name, role=role, **rules)


def a_plan(*buffers: BufferPlan) -> Plan:
    return Plan((), buffers, (), (), (), ())


def wrong(
    plan: Plan, got: Mapping[str, Array], expected: Mapping[str, Array], keys: Mapping[str, Array] = {}
) -> str | None:
    given, wanted = views_of(plan, got, keys), views_of(plan, expected, keys)
    assert given.keys() == wanted.keys()
    reasons = [judge_output(v.buffer, v.array, wanted[n].array, None) for n, v in given.items()]
    return next((reason for reason in reasons if reason), None)


def ints(*rows: list[int]) -> Array:
    return np.array(rows, dtype=np.int32)


class TestAnyOrder:
    PLAN = a_plan(a_buffer("out", "int32", (2, 4), order="any"))

    def test_a_row_may_come_in_any_order_and_no_row_in_another(self) -> None:
        expected = {"out": ints([1, 2, 2, 3], [4, 5, 6, 7]).astype(np.int64)}
        assert wrong(self.PLAN, {"out": ints([2, 3, 1, 2], [7, 6, 5, 4])}, expected) is None
        assert wrong(self.PLAN, {"out": ints([4, 5, 6, 7], [1, 2, 2, 3])}, expected)

    @pytest.mark.parametrize("row", [[1, 2, 3, 3], [1, 1, 2, 3], [1, 2, 3, 9], [1, 2, 2, -1]])
    def test_what_is_left_out_or_repeated_shows(self, row: list[int]) -> None:
        expected = {"out": ints([1, 2, 2, 3], [4, 5, 6, 7])}
        assert "sorted out[0" in str(wrong(self.PLAN, {"out": ints(row, [4, 5, 6, 7])}, expected))

    def test_floats_meet_their_nearest_and_keep_their_tolerance(self) -> None:
        plan = a_plan(a_buffer("out", "float32", (5,), order="any"))
        expected = {"out": np.array([np.nan, 1.0, -np.inf, 2.0, 2.00001])}
        near = np.array([2.00002, -np.inf, 2.0, np.nan, 1.00001], dtype=np.float32)
        assert wrong(plan, {"out": near}, expected) is None
        for place, value in ((2, 2.1), (3, 0.0), (1, 5.0)):
            other = near.copy()
            other[place] = value
            assert wrong(plan, {"out": other}, expected)

    def test_large_integers_are_not_confused(self) -> None:
        plan = a_plan(a_buffer("out", "int64", (2,), order="any"))
        expected = {"out": np.array([2**60, 2**60 + 1])}
        assert wrong(plan, {"out": np.array([2**60 + 1, 2**60])}, expected) is None
        assert wrong(plan, {"out": np.array([2**60, 2**60])}, expected)

    def test_along_another_axis_whole_slices_move(self) -> None:
        plan = a_plan(a_buffer("out", "int32", (3, 2), order="any", along=0))
        expected = {"out": ints([1, 2], [3, 4], [5, 6])}
        assert wrong(plan, {"out": ints([5, 6], [1, 2], [3, 4])}, expected) is None
        assert wrong(plan, {"out": ints([5, 2], [1, 6], [3, 4])}, expected)  # columns alone would do

    def test_nothing_at_all(self) -> None:
        plan = a_plan(a_buffer("out", "int32", (0, 4), order="any"))
        assert wrong(plan, {"out": ints().reshape(0, 4)}, {"out": np.zeros((0, 4))}) is None


class TestPairs:
    FREE = a_plan(
        a_buffer("key", "float32", (4,), order="any"), a_buffer("value", "int32", (4,), order="key")
    )
    FIXED = a_plan(a_buffer("key", "int32", (4,)), a_buffer("value", "int32", (4,), order="key"))

    def test_they_stay_pairs(self) -> None:
        expected = {"key": np.array([0.5, 0.5, 1.5, 2.5]), "value": ints([1, 2, 3, 4])[0]}
        key = np.array([2.5, 0.5, 1.5, 0.5], dtype=np.float32)
        assert wrong(self.FREE, {"key": key, "value": ints([4, 2, 3, 1])[0]}, expected) is None
        assert wrong(self.FREE, {"key": key, "value": ints([4, 3, 2, 1])[0]}, expected)

    def test_keys_that_are_a_little_off_do_not_mix_up_their_partners(self) -> None:
        expected = {"key": np.array([1.0, 1.000001, 3.0, 4.0]), "value": ints([7, 8, 9, 10])[0]}
        key = np.array([1.000002, 1.000001, 3.0, 4.0], dtype=np.float32)  # the first is now the larger
        assert wrong(self.FREE, {"key": key, "value": ints([7, 8, 9, 10])[0]}, expected) is None

    def test_sorted_keys_stay_where_they_are(self) -> None:
        expected = {"key": ints([1, 1, 2, 2])[0], "value": ints([5, 6, 7, 8])[0]}
        key = ints([1, 1, 2, 2])[0]
        assert wrong(self.FIXED, {"key": key, "value": ints([6, 5, 8, 7])[0]}, expected) is None
        assert wrong(self.FIXED, {"key": key, "value": ints([7, 6, 5, 8])[0]}, expected)
        unsorted = {"key": ints([2, 1, 1, 2])[0], "value": ints([7, 5, 6, 8])[0]}
        assert "key[0]" in str(wrong(self.FIXED, unsorted, expected))


class TestKeys:
    PLAN = a_plan(
        a_buffer("x", "float32", (2, 5), "input"),
        a_buffer("index", "int32", (2, 3), keys="x", keys_by_row=True),
    )
    X: ClassVar[Mapping[str, Array]] = {"x": np.array([[3, 1, 3, 2, 1], [0, 0, 9, 9, 9]], dtype=np.float32)}
    EXPECTED: ClassVar[Mapping[str, Array]] = {"index": ints([0, 2, 3], [2, 3, 4])}

    @pytest.mark.parametrize(
        ("row", "is_right"),
        [
            ([0, 2, 3], True),
            ([2, 0, 3], True),  # of equal keys
            ([0, 0, 3], False),  # one twice
            ([0, 3, 2], False),  # another key there
            ([0, 2, 8], False),  # none at all
            ([0, 2, -1], False),
        ],
    )
    def test_equal_keys_are_as_good_and_none_comes_twice(self, row: list[int], is_right: bool) -> None:
        assert (wrong(self.PLAN, {"index": ints(row, [4, 3, 2])}, self.EXPECTED, self.X) is None) == is_right

    def test_places_that_point_nowhere_must_be_equal(self) -> None:
        expected = {"index": ints([0, -1, -1], [2, 3, -1])}
        assert wrong(self.PLAN, {"index": ints([2, -1, -1], [4, 2, -1])}, expected, self.X) is None
        assert wrong(self.PLAN, {"index": ints([2, -1, -2], [4, 2, -1])}, expected, self.X)
        assert wrong(self.PLAN, {"index": ints([-1, 2, -1], [4, 2, -1])}, expected, self.X)

    def test_over_a_whole_array_and_in_any_order(self) -> None:
        expert = a_buffer("expert", "int32", (3, 2), "input")
        plan = a_plan(expert, a_buffer("token", "int32", (8,), keys="expert"))
        keys = {"expert": ints([0, 1], [1, 0], [0, 2])}
        expected = {"token": ints([0, 3, 4, 6, 1, 2, 5, 6])[0]}  # by expert; 6 is nobody
        assert wrong(plan, {"token": ints([4, 0, 3, 6, 2, 1, 5, 6])[0]}, expected, keys) is None
        assert wrong(plan, {"token": ints([4, 0, 0, 6, 2, 1, 5, 6])[0]}, expected, keys)
        assert wrong(plan, {"token": ints([4, 0, 1, 6, 2, 3, 5, 6])[0]}, expected, keys)

    def test_rows_that_were_sampled_have_their_own_keys(self) -> None:
        whole = views_of(self.PLAN, self.EXPECTED, self.X)
        sampled = views_of(self.PLAN, {"index": self.EXPECTED["index"][[1]]}, self.X, np.array([1]))
        for name, view in sampled.items():
            assert np.array_equal(view.array, whole[name].array[[1]])


def test_what_is_judged_whole() -> None:
    plain = a_buffer("sum", "float32", (2,))
    assert not is_free(a_plan(plain))
    assert judged_whole(a_plan(plain, *TestPairs.FIXED.buffers)) == {"key", "value"}
    assert judged_whole(a_plan(plain, a_buffer("out", "float32", (2,), compare="function"))) == {"sum", "out"}
    assert key_arrays(TestKeys.PLAN) == ("x",)
    views = views_of(a_plan(plain), {"sum": np.zeros(2)}, {})
    assert [v.buffer for v in views.values()] == [plain]
