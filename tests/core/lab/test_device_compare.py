"""What the device finds unlike the original, by stretches, is what the host finds in all of it."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.core.lab.numpy_inspector import NumpyInspector
from tests.core.problem.test_compare import buffer
from tunesmith.backends.fake import FakeMemory
from tunesmith.backends.port import Pointer
from tunesmith.lab.worker import device_cases
from tunesmith.lab.worker.device_cases import is_like, unlike_spans
from tunesmith.problem.compare import Stretch, judge_other_rows, judge_stretches
from tunesmith.problem.plan import BufferPlan

ROWS, SIZE = 64, 16


def at(array: NDArray[np.generic]) -> Pointer:
    return Pointer(FakeMemory(bytearray(array.tobytes())), 0, array.nbytes)


def stretches(
    b: BufferPlan, got: NDArray[np.generic], other: NDArray[np.generic]
) -> tuple[list[Stretch], bool]:
    spans, is_all = unlike_spans(NumpyInspector(), b, at(got), at(other))
    g, o = got.reshape(-1), other.reshape(-1)
    return [Stretch(first, g[first:end], o[first:end]) for first, end in spans], is_all


@pytest.mark.parametrize("compare", ["close", "codes", "exact"])
@pytest.mark.parametrize("judged", [(), (0, 3, 40)])
@pytest.mark.parametrize("faults", [0, 1, 3, 9])
@pytest.mark.few(8)
def test_stretches_tell_the_same_as_all_of_it(
    compare: str, judged: tuple[int, ...], faults: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_cases, "SPAN", 8)
    rng = np.random.default_rng([faults, len(judged), len(compare)])
    if compare == "exact":
        b, other = buffer("int32", (ROWS, SIZE)), rng.integers(-9, 9, (ROWS, SIZE)).astype(np.int32)
    elif compare == "codes":
        b = buffer("int8", (ROWS, SIZE), compare="codes")
        other = rng.integers(-90, 90, (ROWS, SIZE)).astype(np.int8)
    else:
        b = buffer("float32", (ROWS, SIZE), rtol=1e-3, atol=1e-5)
        other = rng.standard_normal((ROWS, SIZE)).astype(np.float32)
    for _ in range(10):
        got = other.copy()
        if compare == "close":
            got *= np.float32(1 + 1e-4)
        places = rng.integers(0, got.size, faults)
        got.reshape(-1)[places] += got.dtype.type(3)
        found, is_all = stretches(b, got, other)
        assert is_all
        assert judge_stretches(b, found, judged, 5) == judge_other_rows(b, got, other, judged, 5)


def test_codes_that_differ_too_often_are_left_to_the_host() -> None:
    b, other = buffer("int8", (ROWS, SIZE), compare="codes"), np.zeros((ROWS, SIZE), np.int8)
    got = other.copy()
    got[:2] += 1  # each of them a neighbour
    assert stretches(b, got, other) == ([], False)
    assert not is_like(NumpyInspector(), b, at(got), at(other))


def test_where_all_is_wrong_not_all_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_cases, "SPAN", 8)
    monkeypatch.setattr(device_cases, "SPANS", 12)
    b, other = buffer("float32", (ROWS, SIZE)), np.ones((ROWS, SIZE), np.float32)
    found, is_all = stretches(b, other * 2, other)
    assert (len(found), is_all) == (12, False)
    reason, contested = judge_stretches(b, found, (0,), 5)
    assert "out[1, 0] is 2, expected 1" in str(reason)
    assert contested == (1, 2, 3, 4, 5)
    assert judge_stretches(b, found, (0,), 4)[1] == ()
