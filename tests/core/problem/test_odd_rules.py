"""What candidates are held to at exact ties, and in rows that amplify every rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.core.problem.test_draws import buffer
from tunesmith.problem.compare import judge_odd
from tunesmith.problem.inputs import MIXED, draw_array
from tunesmith.problem.plan import BufferPlan

Array = NDArray[Any]
ROWS, D = 60, 128


def _rows(type: str, **rules: Any) -> BufferPlan:
    return replace(buffer(type, ROWS * D), shape=(ROWS, D), strides=(D, 1), **rules)


def _quantised(x: Array, rounding: Callable[[Array], Array]) -> Array:
    scaled = x * (np.float32(127) / np.abs(x).max(axis=1, keepdims=True))
    return np.clip(rounding(scaled), -128, 127).astype(np.int8)


ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "to even": np.rint,
    "up": lambda v: np.floor(v + np.float32(0.5)),
    "away from zero": lambda v: np.copysign(np.floor(np.abs(v) + np.float32(0.5)), v),
    "down": lambda v: np.ceil(v - np.float32(0.5)),
}
CODES = _rows("int8", compare="codes", rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("original", ROUNDINGS)
def test_at_exact_ties_a_candidate_rounds_as_the_original_does(original: str, seed: int) -> None:
    x = draw_array(_rows("float32"), "halves", seed).reshape(ROWS, D)
    exact = x.astype(np.float64)
    exact /= np.abs(exact).max(axis=1, keepdims=True) / 127.0
    given = _quantised(x, ROUNDINGS[original])
    for name, rounding in ROUNDINGS.items():
        got = _quantised(x, rounding)
        reason = judge_odd(CODES, got, exact, given, distribution="halves")
        assert (reason is None) is (name == original), reason
        assert reason is None or f"exact tie, and the original rounds these {original}" in reason
        if original == "to even":
            assert judge_odd(replace(CODES, atol=0.5), got, exact, given, distribution="halves") is None
            without = judge_odd(CODES, got, None, given, distribution="halves")
            assert (without is None) is (name == original)


@pytest.mark.parametrize("seed", range(5))
def test_ties_are_open_where_the_original_computes_the_quotient_less_exactly(seed: int) -> None:
    x = draw_array(_rows("float32"), "halves", seed).reshape(ROWS, D)
    exact = x.astype(np.float64)
    exact /= np.abs(exact).max(axis=1, keepdims=True) / 127.0
    noise = np.random.default_rng(seed)
    roughly = (exact + noise.normal(0, 1e-6, x.shape)).astype(np.float32)
    given = np.clip(np.rint(roughly), -128, 127).astype(np.int8)
    assert judge_odd(CODES, _quantised(x, np.rint), exact, given, distribution="halves") is None


def test_ties_of_a_small_float_are_between_its_own_numbers() -> None:
    types = pytest.importorskip("ml_dtypes")
    x = draw_array(_rows("float32"), "halves", 3).reshape(ROWS, D).astype(np.float64)
    exact = x / (np.abs(x).max(axis=1, keepdims=True) / 448.0)
    codes = _rows("float8_e4m3", compare="codes", rtol=1e-5, atol=1e-4)
    given = exact.astype(types.float8_e4m3fn)
    assert judge_odd(codes, given, exact, given, distribution="halves") is None
    away = (exact * (1 + 1e-6)).astype(types.float8_e4m3fn)
    reason = judge_odd(codes, away, exact, given, distribution="halves")
    assert "rounds these to even" in str(reason)


def _normalised(x: Array, one_pass: bool, dtype: type[np.floating[Any]]) -> Array:
    """A row less its mean over its deviation, added up in this type."""
    x = x.astype(dtype)
    mean = x.mean(axis=1, keepdims=True, dtype=dtype)
    if one_pass:
        variance = (x * x).mean(axis=1, keepdims=True, dtype=dtype) - mean * mean
    else:
        variance = ((x - mean) ** 2).mean(axis=1, keepdims=True, dtype=dtype)
    made: Array = (x - mean) / np.sqrt(np.maximum(variance, 0) + dtype(1e-5))
    return made


@pytest.mark.parametrize("one_pass", [True, False])
def test_an_unsteady_kernel_is_as_good_in_another_order_and_zeros_are_not(one_pass: bool) -> None:
    """Rows far from zero amplify what a sum rounds: an original that is off there accuses nobody."""
    zeros_seen = 0
    for seed in range(100):
        x = draw_array(_rows("float32"), MIXED, seed).reshape(ROWS, D)
        with np.errstate(all="ignore"):
            exact = _normalised(x, False, np.float64)
            given = _normalised(x, one_pass, np.float32)
            got = _normalised(x[:, ::-1].copy(), one_pass, np.float32)[:, ::-1]
        out = _rows("float32", rtol=1e-4, atol=1e-5)
        reason = judge_odd(out, got, exact, given, distribution=MIXED)
        assert reason is None, (seed, reason)
        far = (np.ptp(x, axis=1) > 0) & (np.ptp(x, axis=1) < 0.05 * np.abs(x.mean(axis=1)))
        wrong = np.where(far[:, np.newaxis], np.float32(0), got)
        zeros_seen += judge_odd(out, wrong, exact, given, distribution=MIXED) is not None
    assert zeros_seen >= (45 if one_pass else 60)
