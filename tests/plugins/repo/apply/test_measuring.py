"""Numbers of benchmarks, and words of the command that are for the wrong place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.plugins.repo.apply.repositories import a_run, delivered, origin, repository
from tunesmith.base.errors import BadInput
from tunesmith.plugins.repo.apply.apply import apply_result
from tunesmith.plugins.repo.apply.gain import BenchMetric, alternate_sides
from tunesmith.plugins.repo.commands import check_words
from tunesmith.session.progress import listener_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("latency-12 ms", 12.0),
        ("latency: 12, warm", 12.0),
        ("latency 1,234.5", 1234.5),
        ("latency 1_000", 1000.0),
        ("latency 1,5", None),
        ("latency 1e999", None),
        ("latency -3", None),
        ("latency 2e-3", 0.002),
    ],
)
def test_what_is_no_clear_positive_number_is_none(text: str, value: float | None) -> None:
    assert BenchMetric("latency.*").read(text, 1.0) == value


def test_there_is_at_least_one_round() -> None:
    with pytest.raises(BadInput, match="rounds must be 1 or more, got 0"):
        list(alternate_sides(0))


def test_swap_takes_the_first_word_for_the_run(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--swap needs the run before the program, and python is no run"):
        check_words(["bench.py"], True, None, Path("python"))
    check_words(["bench.py"], True, None, tmp_path)
    with pytest.raises(BadInput, match="without --swap"):
        check_words(["bench.py"], False, None, tmp_path)


def test_files_without_a_digest_are_not_changed(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo", committed=False)
    run = a_run(tmp_path / "runs" / "scale")
    for where in (replace(origin(repo), digests=()), replace(origin(repo), launches=("tests.py:1",))):
        with pytest.raises(BadInput, match="has none of"):
            apply_result(run, delivered(where), listener_of(None))
