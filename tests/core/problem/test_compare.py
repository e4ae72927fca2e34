import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.problem.test_draws import buffer as drawn_buffer
from tests.wording import says
from tunesmith.problem import compare
from tunesmith.problem.compare import ErrorStats, error_stats, judge_against_original, judge_odd, judge_output
from tunesmith.problem.plan import BufferPlan
from tunesmith.problem.problem import Compare, element_type

FLOATS = ("float16", "float32")
LARGEST = {"float16": 6e4, "float32": 3e38}


def buffer(
    type: str, shape: tuple[int, ...], rtol: float = 0.0, atol: float = 0.0, compare: Compare | None = None
) -> BufferPlan:
    strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    flat = drawn_buffer(type, math.prod(shape), "out")
    rules = {"rtol": rtol, "atol": atol, "compare": compare or flat.compare}
    return replace(flat, role="output", shape=shape, strides=strides, **rules)  # type: ignore[arg-type]


def references(type: str, size: float | None = None) -> st.SearchStrategy[list[float]]:
    limit = size or LARGEST[type]
    return st.lists(st.floats(-limit, limit, allow_subnormal=False), min_size=1, max_size=40)


def rounded(values: list[float], type: str) -> np.ndarray:
    return np.array(values, dtype=np.float64).astype(type)


# -- against the reference ----------------------------------------------------------------------------


@pytest.mark.parametrize("type", FLOATS)
@given(data=st.data())
def test_the_reference_rounded_to_the_type_is_always_accepted(type: str, data: st.DataObject) -> None:
    special = st.sampled_from([math.inf, -math.inf, math.nan, 1e39, -1e39, 0.0])
    values = data.draw(references(type)) + data.draw(st.lists(special, max_size=5))
    expected = np.array(values)
    with np.errstate(over="ignore"):
        got = expected.astype(type)
    assert judge_output(buffer(type, got.shape), got, expected, None) is None
    assert judge_output(buffer(type, got.shape), got, expected, error_stats(got, expected)) is None
    assert judge_against_original(buffer(type, got.shape), got, got) is None


@pytest.mark.parametrize("type", FLOATS)
@given(data=st.data())
def test_an_error_above_the_tolerance_is_always_caught(type: str, data: st.DataObject) -> None:
    expected = np.array(data.draw(references(type, 1e3)))
    rtol, atol = data.draw(st.floats(1e-3, 0.1)), data.draw(st.floats(1e-3, 0.1))
    place = data.draw(st.integers(0, expected.size - 1))
    limit = atol + rtol * abs(expected[place])
    got = expected.astype(type)
    ulp = float(np.spacing(np.abs(got[place]) + np.ones((), type)))
    got[place] += (limit + 2 * ulp) * data.draw(st.sampled_from([-1, 1]))
    reason = judge_output(buffer(type, got.shape, rtol, atol), got, expected, None)
    assert reason is not None
    assert f"out[{place}] is " in reason
    assert f"1 of {got.size} elements" in reason


@pytest.mark.parametrize("type", FLOATS)
@given(data=st.data())
def test_an_error_above_twice_the_originals_is_always_caught(type: str, data: st.DataObject) -> None:
    expected = np.array(data.draw(references(type, 1e3)))
    place = data.draw(st.integers(0, expected.size - 1))
    own = data.draw(st.floats(0, 1))
    got = expected.astype(type)
    ulp = float(np.spacing(np.maximum(np.abs(got[place]), np.ones((), type))))
    got[place] += 2 * own + 3 * ulp
    generous = buffer(type, got.shape, rtol=1.0, atol=1e4)  # the tolerance alone allows all
    assert judge_output(generous, got, expected, None) is None
    reason = judge_output(generous, got, expected, ErrorStats(own, 1e3))
    assert reason is not None
    assert "twice the original's" in reason


@pytest.mark.parametrize("type", FLOATS)
@given(data=st.data())
def test_an_rms_above_the_originals_is_always_caught(type: str, data: st.DataObject) -> None:
    expected = np.array(data.draw(references(type, 1e3)))
    got = (expected + data.draw(st.floats(0, 1))).astype(type)
    own = error_stats(got, expected)
    ulp = math.sqrt(float(np.mean(element_type(type).ulp(expected) ** 2)))
    generous = buffer(type, got.shape, rtol=1.0, atol=1e4)
    limit = (own.rms_error - 0.25 * ulp) / 1.25  # the original's rms that just allows this one
    if limit > 0:
        assert judge_output(generous, got, expected, ErrorStats(own.max_error, 1.001 * limit)) is None
        assert "rms" in str(judge_output(generous, got, expected, ErrorStats(own.max_error, 0.999 * limit)))


@pytest.mark.parametrize(
    ("got", "expected", "right"),
    [
        (math.nan, math.nan, True),
        (math.inf, math.inf, True),
        (math.inf, 1e6, True),  # rounds to infinity in float16
        (-math.inf, -1e6, True),
        (math.nan, 1.0, False),
        (1.0, math.nan, False),
        (math.inf, -math.inf, False),
        (math.inf, 65504.0, False),
        (65504.0, 1e6, False),
        (65504.0, 65519.0, True),
        (math.nan, math.inf, False),
    ],
)
def test_nan_and_infinity_classes_must_agree(got: float, expected: float, right: bool) -> None:
    output, reference = np.array([1.0, got], dtype=np.float16), np.array([1.0, expected])
    generous = buffer("float16", (2,), rtol=1.0, atol=1e5)
    assert (judge_output(generous, output, reference, None) is None) == right
    assert (judge_output(generous, output, reference, ErrorStats(1e5, 1e5)) is None) == right


@pytest.mark.parametrize(("got", "right"), [(math.nan, True), (math.inf, False), (0.0, False)])
def test_classes_must_agree_with_the_original_too(got: float, right: bool) -> None:
    output, other = np.array([got], dtype=np.float32), np.array([math.nan], dtype=np.float32)
    assert (judge_against_original(buffer("float32", (1,), atol=9), output, other) is None) == right


def test_the_reason_names_the_first_wrong_element_and_counts_all_of_them() -> None:
    expected = np.zeros((3, 4))
    got = np.zeros((3, 4), dtype=np.float32)
    got[1, 2] = 0.5
    got[2, 0] = math.nan
    reason = judge_output(buffer("float32", (3, 4), atol=0.25), got, expected, None)
    says(reason, "out[1, 2] is 0.5", "expected 0", "off by 0.5", "allowed is 0.25", "rtol and atol")
    says(reason, "2 of 12 elements", "wrong")


def test_an_output_larger_than_a_chunk_is_judged_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "CHUNK", 16)
    expected = np.arange(100.0).reshape(10, 10)
    got = expected.astype(np.float32)
    whole = error_stats(got + np.float32(1), expected)
    assert whole == ErrorStats(1.0, 1.0)
    got[9, 9] = -1
    assert "out[9, 9] is -1" in str(judge_output(buffer("float32", (10, 10)), got, expected, None))


def test_a_strided_output_is_judged_by_its_logical_elements() -> None:
    memory = np.full((4, 8), math.nan, dtype=np.float32)
    memory[:, :5] = 1
    assert judge_output(buffer("float32", (4, 5)), memory[:, :5], np.ones((4, 5)), None) is None


def test_nothing_and_a_single_number_can_be_judged() -> None:
    nothing = np.empty(0, np.float32)
    assert judge_output(buffer("float32", (0,)), nothing, np.empty(0), ErrorStats(0, 0)) is None
    wrong = judge_output(buffer("float32", ()), np.array(2, np.float32), np.array(1.0), None)
    assert "out[] is 2" in str(wrong)


def test_shapes_that_differ_are_our_own_fault() -> None:
    with pytest.raises(ValueError, match="shape"):
        judge_output(buffer("float32", (2,)), np.zeros(2, np.float32), np.zeros((2, 1)), None)


def test_error_stats_leave_out_what_is_not_finite() -> None:
    got = np.array([1.5, math.nan, math.inf, 65504, 2.0], dtype=np.float16)
    expected = np.array([1.0, 1.0, 1e6, 1e6, 2.0])
    found = error_stats(got, expected)
    assert found.max_error == 0.5
    assert found.rms_error == pytest.approx(0.5 / math.sqrt(2))


# -- integers and codes ---------------------------------------------------------------------------------


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.data())
def test_integers_are_exact_also_beyond_the_reach_of_float64(values: list[int], data: st.DataObject) -> None:
    expected = np.array(values, dtype=np.int64)
    got = expected.copy()
    whole = buffer("int64", got.shape)
    assert judge_output(whole, got, expected, None) is None
    got[data.draw(st.integers(0, got.size - 1))] ^= 1
    assert "must be equal" in str(judge_output(whole, got, expected, None))
    assert "must be equal" in str(judge_against_original(whole, got, expected))


def test_an_integer_must_equal_the_rounded_reference() -> None:
    expected = np.array([2.4, 2.6, 2.0**53, 255.0])
    got = np.array([2, 3, 2**53, 255], dtype=np.int64)
    assert judge_output(buffer("int64", (4,)), got, expected, None) is None
    assert judge_output(buffer("int64", (4,)), got + np.array([0, 0, 1, 0]), expected, None) is not None


@pytest.mark.parametrize("expected", [256.0, -1.0, math.nan, math.inf])
def test_no_integer_is_right_where_the_reference_does_not_fit_the_type(expected: float) -> None:
    for value in (0, 255):
        got = np.array([value], dtype=np.uint8)
        assert judge_output(buffer("uint8", (1,)), got, np.array([expected]), None) is not None


@given(st.lists(st.floats(-128.4, 127.4), min_size=1), st.data())
def test_a_code_may_be_the_neighbour_only_next_to_a_tie(values: list[float], data: st.DataObject) -> None:
    expected = np.array(values)
    near = data.draw(st.floats(0, 0.4))
    codes = buffer("int8", expected.shape, atol=near, compare="codes")
    clipped = np.clip(expected, -128, 127)
    got = np.rint(clipped).astype(np.int8)
    assert judge_output(codes, got, expected, error_stats(got, expected)) is None
    place = data.draw(st.integers(0, got.size - 1))
    step = data.draw(st.sampled_from([-2, -1, 1, 2]))
    moved = int(got[place]) + step
    if -128 <= moved <= 127:
        got[place] = moved
        from_tie = abs(moved - clipped[place]) - 0.5
        allowed = abs(step) == 1 and from_tie <= near
        if abs(from_tie - near) > 1e-9:
            assert (judge_output(codes, got, expected, None) is None) == allowed


def test_codes_may_not_be_worse_on_the_whole() -> None:
    expected = np.full(100, 10.45)
    codes = buffer("int8", (100,), atol=0.1, compare="codes")
    right, other = np.full(100, 10, np.int8), np.full(100, 11, np.int8)
    original = error_stats(right, expected)
    assert judge_output(codes, right, expected, original) is None
    assert judge_output(codes, other, expected, original) is None  # 0.55 against 1.25 * 0.45 + 0.25
    assert "rms" in str(judge_output(codes, other, expected, ErrorStats(0.2, 0.2)))


def test_without_a_reference_few_codes_may_differ_from_the_original() -> None:
    codes = buffer("int8", (1000,), compare="codes")
    original = np.zeros(1000, np.int8)
    for count, step, right in ((10, 1, True), (11, 1, False), (1, 2, False), (1, -1, True)):
        got = original.copy()
        got[:count] = step
        assert (judge_against_original(codes, got, original) is None) == right


@given(st.lists(st.floats(-20, 20), min_size=1), st.data())
def test_codes_of_four_bits_end_where_four_bits_do(values: list[float], data: st.DataObject) -> None:
    expected = np.array(values)
    codes = buffer("int4", expected.shape, atol=0.1, compare="codes")
    got = np.rint(np.clip(expected, -8, 7)).astype(np.int8)
    own = error_stats(got, expected, codes)
    assert own.max_error <= 0.5
    assert judge_output(codes, got, expected, own) is None
    place = data.draw(st.integers(0, got.size - 1))
    got[place] += 2 if got[place] < 0 else -2
    assert "codes from the nearest, allowed is 1" in str(judge_output(codes, got, expected, None))


def test_numbers_of_four_bits_are_exact() -> None:
    whole = buffer("uint4", (3,))
    got = np.array([0, 9, 15], dtype=np.uint8)
    assert judge_output(whole, got, np.array([0, 9, 15]), None) is None
    assert judge_output(whole, got, np.array([0.2, 9.4, 14.6]), None) is None
    assert judge_output(whole, got, np.array([0, 9, 16]), None) is not None
    assert judge_against_original(whole, got, got ^ np.uint8(1)) is not None


# -- float8 codes ---------------------------------------------------------------------------------------

EIGHT = {"float8_e4m3": 448.0, "float8_e5m2": 57344.0}


def eight(values: object, type: str) -> np.ndarray:
    pytest.importorskip("ml_dtypes")
    return np.asarray(values, dtype=np.float64).astype(element_type(type).numpy)


def every_number(type: str) -> np.ndarray:
    """All finite values there are, in order, both zeros among them."""
    pytest.importorskip("ml_dtypes")
    values = np.arange(256, dtype=np.uint8).view(element_type(type).numpy).astype(np.float64)
    return np.sort(values[np.isfinite(values)])


@pytest.mark.parametrize("type", EIGHT)
@given(data=st.data())
def test_the_nearest_code_is_right_and_no_other_is(type: str, data: st.DataObject) -> None:
    expected = np.array(data.draw(st.lists(st.floats(-2 * EIGHT[type], 2 * EIGHT[type]), min_size=1)))
    clipped = np.clip(expected, -EIGHT[type], EIGHT[type])
    got = eight(clipped, type)
    codes = buffer(type, got.shape, compare="codes")
    assert judge_output(codes, got, expected, None) is None
    assert judge_output(codes, got, expected, error_stats(got, expected, codes)) is None
    numbers = np.unique(every_number(type))
    place = data.draw(st.integers(0, got.size - 1))
    distances = np.abs(numbers - clipped[place])
    nearest, second = np.argsort(distances, kind="stable")[:2]
    got[place] = eight(numbers[second], type)
    tie = bool(distances[second] == distances[nearest])
    # Just above a power of two the step down is half the step up, which is what counts.
    within = bool(distances[second] <= 0.5 * element_type(type).ulp(clipped[place : place + 1])[0])
    assert (judge_output(codes, got, expected, None) is None) == (tie or within)


@pytest.mark.parametrize("type", EIGHT)
def test_next_to_a_tie_both_codes_are_right(type: str) -> None:
    step = float(element_type(type).ulp(np.array([1.0]))[0])
    tie = 1 + step / 2
    for off, right in ((0.0, True), (0.9e-3, True), (1.2e-3, False)):
        for side, code in ((-1, 1 + step), (1, 1.0)):
            strict = buffer(type, (1,), atol=1e-3, compare="codes")
            reason = judge_output(strict, eight([code], type), np.array([tie + side * off]), None)
            assert (reason is None) == right
            if reason:
                says(reason, "nearest code", "0.0012 from a tie", "allowed is 0.001")


@pytest.mark.parametrize("type", EIGHT)
def test_beyond_the_largest_number_the_largest_is_right(type: str) -> None:
    largest = EIGHT[type]
    codes = buffer(type, (1,), compare="codes")
    for value in (largest, 1.3 * largest, 1e30, math.inf):
        assert judge_output(codes, eight([largest], type), np.array([value]), None) is None
        assert judge_output(codes, eight([-largest], type), np.array([-value]), None) is None
        assert judge_output(codes, eight([-largest], type), np.array([value]), None) is not None
    overflown = eight([1e30], type)  # to NaN, or to infinity where the type has one
    assert "that is no code" in str(judge_output(codes, overflown, np.array([1e30]), None))
    assert judge_output(codes, eight([math.nan], type), np.array([math.nan]), None) is None
    assert judge_output(codes, eight([0.0], type), np.array([math.nan]), None) is not None
    assert judge_output(codes, eight([math.nan], type), np.array([0.0]), None) is not None


@pytest.mark.parametrize(("type", "smallest"), [("float8_e4m3", 2.0**-9), ("float8_e5m2", 2.0**-16)])
def test_codes_near_zero_are_a_smallest_step_apart(type: str, smallest: float) -> None:
    codes = buffer(type, (1,), compare="codes")
    assert judge_output(codes, eight([0.0], type), np.array([0.49 * smallest]), None) is None
    assert judge_output(codes, eight([-0.0], type), np.array([0.49 * smallest]), None) is None
    assert judge_output(codes, eight([0.0], type), np.array([0.51 * smallest]), None) is not None
    assert judge_output(codes, eight([smallest], type), np.array([0.51 * smallest]), None) is None
    assert judge_output(codes, eight([3 * smallest], type), np.array([2.6 * smallest]), None) is None
    assert judge_output(codes, eight([2 * smallest], type), np.array([2.6 * smallest]), None) is not None


def test_float8_codes_may_not_be_worse_on_the_whole() -> None:
    expected = np.full(100, 1.0624)  # a tie is at 1.0625
    codes = buffer("float8_e4m3", (100,), atol=1e-3, compare="codes")
    right, other = eight(np.full(100, 1.0), "float8_e4m3"), eight(np.full(100, 1.125), "float8_e4m3")
    original = error_stats(right, expected, codes)
    assert original.rms_error == pytest.approx(0.0624)
    assert judge_output(codes, other, expected, original) is None  # a step is an eighth
    assert "plus a quarter step" in str(judge_output(codes, other, expected, ErrorStats(0.01, 0.01)))


def test_the_originals_own_error_is_clipped_like_the_candidates() -> None:
    codes = buffer("float8_e4m3", (2,), compare="codes")
    own = error_stats(eight([448, 1], "float8_e4m3"), np.array([1e6, 1.0]), codes)
    assert own == ErrorStats(0.0, 0.0)


@pytest.mark.parametrize("type", EIGHT)
def test_without_a_reference_float8_codes_are_a_step_from_the_originals(type: str) -> None:
    numbers = np.unique(every_number(type))
    original = eight(np.resize(numbers, 2000), type)
    codes = buffer(type, original.shape, compare="codes")
    assert judge_against_original(codes, original, original) is None
    for count, step, right in ((20, 1, True), (21, 1, False), (1, 2, False)):
        got = original.copy()
        got[50 : 50 + count] = eight(numbers[50 + step : 50 + step + count], type)  # over the zeros, too
        assert (judge_against_original(codes, got, original) is None) == right


@pytest.mark.parametrize(
    ("got", "other", "right"),
    [
        (math.nan, math.nan, True),
        (math.inf, math.inf, True),
        (-math.inf, math.inf, False),
        (57344.0, math.inf, False),  # the neighbour by its bits
        (math.inf, 57344.0, False),
        (math.nan, math.inf, False),
        (math.nan, 1.0, False),
        (-0.0, 0.0, True),
        (2.0**-16, -0.0, True),
        (2.0**-16, -(2.0**-16), False),
    ],
)
def test_classes_of_codes_must_agree_with_the_originals(got: float, other: float, right: bool) -> None:
    codes = buffer("float8_e5m2", (1,), compare="codes")
    found = judge_against_original(codes, eight([got], "float8_e5m2"), eight([other], "float8_e5m2"))
    assert (found is None) == right


# -- against the original -------------------------------------------------------------------------------


@pytest.mark.parametrize("type", FLOATS)
@given(data=st.data())
def test_two_ulp_from_the_original_are_fine_and_three_are_not(type: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.floats(2.0**-10, 2.0**10), min_size=1))
    original = rounded(values, type)
    strict = buffer(type, original.shape)
    # Away from powers of two, so that a step up is one ulp.
    original = np.nextafter(original, np.dtype(type).type(np.inf))
    step = np.spacing(original)
    got = original.copy()
    place = data.draw(st.integers(0, got.size - 1))
    got[place] += 2 * step[place]
    assert judge_against_original(strict, got, original) is None
    got[place] += 2 * step[place]
    assert "2 ulp" in str(judge_against_original(strict, got, original))
    loose = buffer(type, original.shape, rtol=0.1)
    assert judge_against_original(loose, got, original) is None


def test_integers_that_may_be_close_get_the_tolerance_and_nothing_more() -> None:
    near = buffer("int32", (1,), atol=1, compare="close")
    assert judge_against_original(near, np.array([6], np.int32), np.array([5], np.int32)) is None
    assert judge_against_original(near, np.array([7], np.int32), np.array([5], np.int32)) is not None


# -- odd values: like the original or like the reference ------------------------------------------------


def odd(got: list[float], expected: list[float] | None, original: list[float], **rules: float) -> str | None:
    out, first = np.array(got, dtype=np.float32), np.array(original, dtype=np.float32)
    wanted = None if expected is None else np.array(expected, dtype=np.float64)
    with np.errstate(all="ignore"):
        return judge_odd(buffer("float32", out.shape, **rules), out, wanted, first)


@pytest.mark.parametrize("expected", [None, [math.nan, math.inf, 1.0]])
def test_what_is_no_number_stays_none(expected: list[float] | None) -> None:
    right = [math.nan, math.inf, 1.0]
    assert odd(right, expected, right) is None
    for wrong in ([0.0, math.inf, 1.0], [math.nan, -math.inf, 1.0], [math.nan, 3e38, 1.0], [math.nan] * 3):
        assert odd(wrong, expected, right) is not None


def test_an_original_that_overflows_on_its_way_may_be_followed_or_not() -> None:
    expected, original = [2.0, 4.0], [math.inf, 4.0]
    assert odd([math.inf, 4.0], expected, original) is None
    assert odd([2.0, 4.0], expected, original) is None
    assert odd([math.nan, 4.0], expected, original) is not None


def test_denormals_may_be_flushed_where_the_original_does_so_or_the_tolerance_allows() -> None:
    tiny = [1e-39, 1.0]
    assert odd([0.0, 1.0], tiny, [0.0, 1.0]) is None
    assert odd([0.0, 1.0], tiny, tiny) is not None
    assert odd([0.0, 1.0], tiny, tiny, atol=1e-6) is None


def test_an_original_off_the_reference_allows_as_much_twice_and_no_more() -> None:
    expected, original = [100.0] * 4, [100.3, 100.0, 100.0, 100.0]
    assert odd([99.5, 100.0, 100.0, 100.0], expected, original, rtol=1e-3) is None
    assert odd([99.0, 100.0, 100.0, 100.0], expected, original, rtol=1e-3) is not None
    assert odd([99.0, 90.0, 100.0, 100.0], expected, [0.0, 100.0, 100.0, 100.0], rtol=1e-3) is not None


def test_no_integer_is_wrong_where_there_is_no_number() -> None:
    plan = buffer("int8", (2,), compare="codes")
    exact, original = np.array([math.nan, 7.0]), np.array([-128, 7], dtype=np.int8)
    assert judge_odd(plan, np.array([0, 7], dtype=np.int8), exact, original) is None
    assert judge_odd(plan, np.array([0, 9], dtype=np.int8), exact, original) is not None


def test_what_a_language_leaves_open_for_nan_judges_nobody_where_the_original_lost_it() -> None:
    exact, original = np.array([math.nan, math.nan, 2.0]), np.array([3.0, math.nan, 2.0], dtype=np.float32)
    plan = buffer("float32", (3,))
    for got in ([5.0, math.nan, 2.0], [3.0, 0.0, 2.0]):
        out = np.array(got, dtype=np.float32)
        assert judge_odd(plan, out, exact, original) is not None
        assert judge_odd(plan, out, exact, original, nan_is_open=True) is None
        assert judge_odd(plan, out + np.float32(1), exact, original, nan_is_open=True) is not None
        assert judge_odd(plan, out, exact, exact.astype(np.float32), nan_is_open=True) is not None


def test_odd_integers_are_equal_to_one_of_the_two() -> None:
    plan = buffer("int32", (2,))
    exact, original = np.array([5, 7]), np.array([5, 8], dtype=np.int32)
    assert judge_odd(plan, np.array([5, 7], dtype=np.int32), exact, original) is None
    assert judge_odd(plan, original, exact, original) is None
    assert judge_odd(plan, np.array([5, 9], dtype=np.int32), exact, original) is not None
