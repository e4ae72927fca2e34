"""Problems built in Python: the same rules as for files, and functions that go where the run goes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from math import sqrt as root
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.api.problems import built, twice
from tests.end_to_end import tiny
from tunesmith import BadInput, Problem
from tunesmith.problem.problem_text import function_file, toml_text

SCALE, OFFSETS, UNSENDABLE = 3, (1.0, 2.0), np.ones(2)


def helper(x: np.ndarray) -> float:
    return root(abs(float(x))) * SCALE


def with_helpers(x, eps=math.pi):  # type: ignore[no-untyped-def]
    return [helper(value) + OFFSETS[0] for value in x] + [np.float64(eps)]


def test_what_is_built_is_what_is_read(tmp_path: Path) -> None:
    problem, read = built().definition, Problem.load(tiny.fake(tmp_path / "tiny")).definition
    for part in ("name", "arguments", "launches", "contract", "workloads"):
        assert getattr(problem, part) == getattr(read, part)
    assert (problem.kernel.text, problem.kernel.language) == (read.kernel.text, "fake")
    assert problem.accuracy.rtol == read.accuracy.rtol


def test_a_source_that_is_a_file_brings_its_folder(tmp_path: Path) -> None:
    (tmp_path / "scale.fake").write_text(tiny.FAKE_KERNEL)
    problem = built(source=tmp_path / "scale.fake", kernel={})
    assert problem.definition.kernel.path == "scale.fake"
    assert problem.definition.digest != built().definition.digest


def run_file(text: str, name: str) -> Callable[..., Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "reference.py", "exec"), names)
    return names[name]  # type: ignore[no-any-return]


class TestFunctions:
    def test_bring_what_they_use(self) -> None:
        text = function_file(with_helpers, "reference")
        assert run_file(text, "with_helpers")([4.0, 9.0], 1.0) == with_helpers([4.0, 9.0], 1.0)
        assert "UNSENDABLE" not in text

    def test_bring_what_is_around_them(self) -> None:
        factor = 5

        def inner(x):  # type: ignore[no-untyped-def]
            return [x * factor for x in x]

        assert run_file(function_file(inner, "reference"), "inner")([1, 2]) == [5, 10]

    def test_of_a_problem_are_in_its_files(self) -> None:
        problem = built()
        reference = problem.definition.accuracy.reference
        assert reference is not None
        assert (reference.path, reference.function) == ("reference.py", "twice")
        assert run_file(problem.files.texts["reference.py"], "twice")(np.ones(2)).tolist() == [2.0, 2.0]

    def test_that_have_no_source_are_refused(self) -> None:
        def uses_an_array(x):  # type: ignore[no-untyped-def]
            return x * UNSENDABLE

        @functools.wraps(twice)
        def wrapped(x):  # type: ignore[no-untyped-def]
            return twice(x)

        made: dict[str, Any] = {}
        exec("def typed_in(x):\n    return x\n", made)
        for function, why in (
            (lambda x: x, "lambda"),
            (uses_an_array, "UNSENDABLE"),
            (wrapped, "decorated"),
            (made["typed_in"], "source"),
            (np.sqrt, "plain function"),
        ):
            with pytest.raises(BadInput, match=why) as refused:
                built(reference=function)
            assert refused.value.hint is not None
            assert "def" in refused.value.hint


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"workloads": {"only": {"n": 65}}}, "n = 65"),
        ({"contract": {"n": {"min": 1}}}, "max"),
        ({"arguments": []}, "no arguments"),
        ({"launch": {"grid": ["m"], "block": [64]}}, "'m'"),
        ({"launch": {"grid": [object()], "block": [64]}}, "launch.grid must be"),
        ({"source": "kernel.fake"}, "Path"),
        ({"kernel": {}}, "language"),
        ({"source": Path("nowhere.fake")}, "no such file"),
        ({"accuracy": {"tolerance": 1}}, "tolerance"),
    ],
)
def test_faults_are_named(changed: dict[str, object], why: str) -> None:
    with pytest.raises(BadInput) as refused:
        built(**changed)
    assert why in str(refused.value)


def test_toml_holds_what_python_gives() -> None:
    import tomllib

    tables = {
        "name": 'q"\n\x7f',
        "none": None,
        "number": np.int64(3),
        "small": np.float32(0.5),
        "table": {"a.b": [1, "x"], "flag": True, "inner": {"min": 1}},
        "list": [{"x": 1}, {"x": 2}],
    }
    read = tomllib.loads(toml_text(tables))
    assert read == {**{k: v for k, v in tables.items() if v is not None}, "number": 3, "small": 0.5}
