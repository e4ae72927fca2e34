import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.core.checks import draws
from tunesmith.core.checks.draws import DISTRIBUTIONS, draw_array, logical
from tunesmith.core.dtypes import element_type
from tunesmith.core.plan import BufferPlan
from tunesmith.core.problem import Distribution

EVERY = (*DISTRIBUTIONS, "positive", "integers")


def buffer(
    type: str,
    count: int,
    name: str = "x",
    values: Distribution | None = None,
    range: tuple[float, float] | None = None,
) -> BufferPlan:
    element = element_type(type)
    return BufferPlan(
        name=name,
        type=type,
        role="input",
        shape=(count,),
        strides=(1,),
        extent=count,
        align=element.bytes,
        values=values,
        range=range,
        init=None,
        rtol=0.0,
        atol=0.0,
        compare="close" if element.kind == "float" else "exact",
        itemsize=element.bytes,
    )


@pytest.mark.parametrize("distribution", EVERY)
@pytest.mark.parametrize(
    "type", ["float16", "float32", "float64", "int8", "uint8", "int32", "int64", "uint64"]
)
def test_an_array_has_its_type_and_length_and_is_finite(type: str, distribution: str) -> None:
    for count in (0, 1, 1000):
        array = draw_array(buffer(type, count), distribution, 1)
        assert array.dtype == np.dtype(type)
        assert array.shape == (count,)
        assert np.isfinite(array).all()


@pytest.mark.parametrize("distribution", ["normal", "uniform", "wide", "spikes", "positive"])
def test_seed_and_name_decide_the_array_and_nothing_else(distribution: str) -> None:
    one = draw_array(buffer("float32", 100), distribution, 1)
    assert (draw_array(buffer("float32", 100), distribution, 1) == one).all()
    assert (draw_array(buffer("float32", 100), distribution, 2) != one).any()
    assert (draw_array(buffer("float32", 100, name="y"), distribution, 1) != one).any()


def test_another_process_draws_the_same_array() -> None:
    program = (
        "from tunesmith.core.checks.draws import draw_array; from tunesmith.core.plan import BufferPlan; "
        f"print(draw_array({buffer('float16', 64)!r}, 'normal', 5).tobytes().hex())"
    )
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == draw_array(buffer("float16", 64), "normal", 5).tobytes().hex()


def test_distributions_look_like_what_they_are_called() -> None:
    drawn = {name: draw_array(buffer("float32", 100_000), name, 3) for name in EVERY}
    assert abs(drawn["normal"].mean()) < 0.02
    assert abs(drawn["normal"].std() - 1) < 0.02
    assert drawn["uniform"].min() < -0.99
    assert 0.99 < drawn["uniform"].max() <= 1
    assert drawn["positive"].min() > 0
    assert drawn["positive"].max() <= 1
    magnitude = np.log10(np.abs(drawn["wide"]))
    assert -3.1 < magnitude.min() < -2.9
    assert 2.9 < magnitude.max() < 3.1
    assert abs(magnitude.mean()) < 0.05
    assert abs((drawn["wide"] > 0).mean() - 0.5) < 0.02
    assert (drawn["zeros"] == 0).all()
    assert (drawn["ones"] == 1).all()
    large = np.abs(drawn["spikes"]) == 50
    assert 0.005 < large.mean() < 0.03
    assert np.abs(drawn["spikes"][~large]).max() < 1
    assert set(np.unique(drawn["integers"])) == set(range(101))


def test_a_positive_number_stays_positive_in_a_small_type() -> None:
    assert draw_array(buffer("float16", 1 << 20), "positive", 1).min() > 0


@given(st.floats(-1e3, 1e3), st.floats(0.5, 1e3), st.sampled_from(EVERY))
def test_a_promised_range_is_kept_whatever_the_case_asks_for(low: float, span: float, asked: str) -> None:
    bounds = (low, low + span)
    for values in (None, "uniform", "normal", "positive"):
        array = draw_array(buffer("float64", 200, values=values, range=bounds), asked, 1)
        assert low <= array.min() <= array.max() <= low + span


def test_a_promised_distribution_replaces_the_cases_own() -> None:
    for asked in EVERY:
        assert (draw_array(buffer("float32", 10, values="ones"), asked, 1) == 1).all()
        whole = draw_array(buffer("float32", 500, values="integers", range=(-2, 2)), asked, 1)
        assert set(np.unique(whole)) == {-2, -1, 0, 1, 2}


@pytest.mark.parametrize("type", ["int8", "uint8", "int32", "int64"])
def test_integers_fill_their_range_and_fit_their_type(type: str) -> None:
    assert set(draw_array(buffer(type, 5000), "normal", 1).tolist()) == set(range(101))
    bounded = draw_array(buffer(type, 500, range=(3, 7)), "zeros", 1)
    assert set(bounded.tolist()) == {3, 4, 5, 6, 7}
    info = np.iinfo(type)
    extreme = draw_array(buffer(type, 500, range=(-1e30, 1e30)), "normal", 1)
    assert info.min <= extreme.min() < info.max // 3
    assert info.max // 2 < extreme.max() <= info.max


def test_an_unknown_distribution_is_our_own_fault() -> None:
    with pytest.raises(ValueError, match="cauchy"):
        draw_array(buffer("float32", 1), "cauchy", 1)


@pytest.mark.parametrize("distribution", ["normal", "uniform", "positive", "integers"])
def test_a_large_array_repeats_no_block_where_another_lies(
    distribution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "BLOCK", 1 << 10)
    count = 5 * (1 << 10) + 17
    array = draw_array(buffer("float32", count), distribution, 1)
    assert array.shape == (count,)
    blocks = [array[start : start + (1 << 10)] for start in range(0, count - 17, 1 << 10)]
    for number, block in enumerate(blocks):
        for other in blocks[:number]:
            assert (block == other).mean() < 0.1
    symmetric = distribution in ("normal", "uniform")
    for number, block in enumerate(blocks):
        sign = -1 if symmetric and number % 2 else 1
        assert (np.sort(sign * block) == np.sort(blocks[0])).all()


def test_a_logical_view_follows_the_strides_and_cannot_be_written() -> None:
    padded = replace(buffer("float32", 0), shape=(3, 4), strides=(10, 1), extent=24)
    memory = np.arange(24, dtype=np.float32)
    view = logical(memory, padded)
    assert view.shape == (3, 4)
    assert view[2, 3] == 23
    assert (view[1] == [10, 11, 12, 13]).all()
    assert np.shares_memory(view, memory)
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 1


def test_a_logical_view_never_reaches_beyond_its_memory() -> None:
    padded = replace(buffer("float32", 0), shape=(3, 4), strides=(10, 1), extent=24)
    with pytest.raises(ValueError, match="24 elements"):
        logical(np.zeros(23, dtype=np.float32), padded)


def test_an_empty_or_scalar_buffer_has_a_logical_view() -> None:
    empty = replace(buffer("float32", 0), shape=(0, 4), strides=(4, 1), extent=0)
    assert logical(np.zeros(0, dtype=np.float32), empty).shape == (0, 4)
    single = replace(buffer("float32", 0), shape=(), strides=(), extent=1)
    assert math.isclose(float(logical(np.ones(1, dtype=np.float32), single)), 1.0)
