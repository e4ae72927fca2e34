"""Captured launches kept as cases of a problem without a reference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tunesmith
from tests.opencl_here import needs_opencl
from tests.plugins.repo.extract.test_proving import KERNEL, PROBLEM, N, Stored, captured
from tunesmith.base.errors import KernelWrong
from tunesmith.plugins.repo.capture.records import ARRAYS, Capture, write_capture
from tunesmith.plugins.repo.extract import seen
from tunesmith.plugins.repo.extract.draft import Extraction
from tunesmith.plugins.repo.extract.extract import record_cases
from tunesmith.plugins.repo.extract.seen import recorded_files, with_recorded
from tunesmith.plugins.repo.extract.slice import BuildAttempt
from tunesmith.problem.problem import Problem, decode_array
from tunesmith.session.problems import load_problem

SIZES = {5: {"n": N, "unused": 3}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kernel.cl").write_text(KERNEL)
    (tmp_path / "problem.toml").write_text(PROBLEM)
    return tmp_path


def definition(folder: Path) -> Problem:
    return load_problem(folder).definition


def recorded(folder: Path, capture: Capture, stored: Stored, sizes: dict[int, dict[str, int]] = SIZES):
    return recorded_files(definition(folder), capture, "scaled", sizes, stored.texts.__getitem__)


def stored_in(folder: Path, capture: Capture, stored: Stored) -> Path:
    found = folder / "capture"
    (found / ARRAYS).mkdir(parents=True)
    for digest, data in stored.texts.items():
        (found / ARRAYS / f"{digest}.bin").write_bytes(data)
    write_capture(found, capture)
    return found


def test_a_kept_launch_becomes_a_case(folder: Path) -> None:
    stored = Stored()
    capture = stored_in(folder, captured(stored), stored)
    found = Extraction(
        "a.cl:1", "scaled", (), 0, 1, 1, BuildAttempt("x"), (), (), ((5, (("n", N), ("unused", 3))),)
    )
    files, said = record_cases(folder, capture, "scaled", found)
    assert files == ["recorded_5.json"]
    assert said == ["1 launch is kept as a case: recorded_5.json, since there is no reference"]
    (case,) = definition(folder).recorded
    assert case.sizes == (("n", N),)
    x, out = np.arange(N, dtype=np.float32), 3 * np.arange(N, dtype=np.float32)
    data = {(array.name, array.when): decode_array(array) for array in case.arrays}
    assert data == {("out", "after"): out.tobytes(), ("x", "before"): x.tobytes()}


def test_what_the_problem_does_not_pass_is_no_case(folder: Path) -> None:
    stored = Stored()
    files, notes = recorded(folder, captured(stored, factor=2.0), stored)
    assert files == {}
    assert notes == ("launch 5 is not kept as a case: its factor is not what the problem passes there, 3.0",)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({}, "nobody saw n"),
        ({5: {"n": 4096}}, "n = 4096, the contract allows 1 to 1024"),
        ({5: {"n": 1000}}, "less of out was kept than the problem has"),
    ],
)
def test_why_a_launch_is_no_case(folder: Path, sizes: dict[int, dict[str, int]], words: str) -> None:
    stored = Stored()
    files, notes = recorded(folder, captured(stored), stored, sizes)
    assert files == {}
    assert notes == (f"launch 5 is not kept as a case: {words}",)


def test_few_and_small_ones_of_sizes_that_differ(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = Stored()
    capture = captured(stored)
    twice = replace(capture, kept=(capture.kept[0], replace(capture.kept[0], launch=6)))
    files, _ = recorded(folder, twice, stored, {**SIZES, 6: SIZES[5]})
    assert list(files) == ["recorded_5.json"]
    monkeypatch.setattr(seen, "MAX_OF_ALL", 10)
    files, notes = recorded(folder, capture, stored)
    assert files == {}
    assert notes == ("launch 5 is not kept as a case: larger than 64 MiB, 24 MB compressed",)


def test_memory_that_is_gone_makes_no_case(folder: Path) -> None:
    stored = Stored()
    capture = captured(stored)
    gone = replace(capture.kept[0].ranges[0], before="")
    bare = replace(capture, kept=(replace(capture.kept[0], ranges=(gone,)),))
    files, notes = recorded(folder, bare, stored)
    assert (files, notes) == ({}, ("launch 5 is not kept as a case: the memory behind x was not kept",))


@needs_opencl
@pytest.mark.long
def test_check_holds_the_original_to_them(folder: Path) -> None:
    stored = Stored()
    files, _ = recorded(folder, captured(stored), stored)
    (folder / "recorded_5.json").write_text(files["recorded_5.json"])
    (folder / "problem.toml").write_text(with_recorded(PROBLEM, list(files)))
    assert tunesmith.check(folder, backend="opencl").cases > 5
    (folder / "kernel.cl").write_text(KERNEL.replace("factor * x[i]", "factor * x[i] + (x[i] == 7.0f)"))
    with pytest.raises(KernelWrong, match="recorded recorded_5"):
        tunesmith.check(folder, backend="opencl")
