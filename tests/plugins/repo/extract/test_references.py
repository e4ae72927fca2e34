"""References from functions that the user names."""

from __future__ import annotations

import numpy as np
import pytest

from tunesmith.base.errors import BadInput
from tunesmith.plugins.repo.extract.draft import reference_text


def test_a_call_over_the_problems_names() -> None:
    said = "torch.nn.functional.rms_norm(input, [hidden], weight, epsilon)"
    text = reference_text(said, "norm", ["input", "weight"], ["epsilon"], ["rows", "hidden"])
    assert "def norm(*, input, weight, epsilon, hidden):" in text
    assert "weight = torch.from_numpy(np.array(weight))" in text
    assert "return (torch.nn.functional.rms_norm(input, [hidden], weight, epsilon)).numpy()" in text
    compile(text, "reference.py", "exec")


def test_a_function_alone_is_called_with_arrays_and_numbers() -> None:
    text = reference_text("numpy.multiply", "scaled", ["x", "y"], [], ["n"])
    made: dict[str, object] = {}
    exec(compile(text, "reference.py", "exec"), made)
    scaled = made["scaled"]
    assert callable(scaled)
    assert np.array_equal(scaled(x=np.array([2.0, 3.0]), y=np.array([4.0, 5.0])), [8.0, 15.0])


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("softmax(x)", "calls a function of a module"),
        ("torch.softmax(x, dim)", "speaks of dim; the problem has x, n"),
        ("torch.softmax(x", "is a call in Python"),
        ("1 + 1(", "is a call in Python"),
    ],
)
def test_what_is_no_call_is_refused(said: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        reference_text(said, "k", ["x"], [], ["n"])
