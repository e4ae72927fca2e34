"""A framework that is missing: skipped, but a failure of the GPU's tests unless it is named."""

from __future__ import annotations

import math

import pytest

from tests import frameworks


@pytest.mark.parametrize(
    ("markers", "gpu", "without", "outcome"),
    [
        ("", True, "", pytest.skip.Exception),
        ("not long", True, "", pytest.skip.Exception),
        ("gpu", False, "", pytest.skip.Exception),
        ("gpu", True, "", pytest.fail.Exception),
        ("gpu", True, "torch", pytest.fail.Exception),
        ("gpu", True, "torch, no_such_framework", pytest.skip.Exception),
    ],
)
def test_what_is_missing_skips_or_fails(
    markers: str, gpu: bool, without: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frameworks, "_insists", False)
    monkeypatch.setattr(frameworks, "_WITHOUT", without)
    frameworks.insist(markers, lambda: gpu)
    with pytest.raises(outcome, match="needs no_such_framework: No module named 'no_such_framework'; pip"):
        frameworks.need("no_such_framework")
    assert frameworks.need("math") is math


def test_the_failure_says_how_to_go_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frameworks, "_insists", True)
    with pytest.raises(pytest.fail.Exception) as caught:
        frameworks.absent("torch", "it sees no CUDA device")
    assert str(caught.value) == (
        "needs torch: it sees no CUDA device. To go without: TUNESMITH_GPU_TESTS_WITHOUT=torch"
    )
