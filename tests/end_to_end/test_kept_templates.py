"""`tunesmith template RUN`: the template that won, whole or reduced to what won, and why there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end import kept
from tests.end_to_end.asking import refused
from tests.running import expect_success, tunesmith
from tunesmith.api import load_run
from tunesmith.base.errors import BadInput

pytestmark = pytest.mark.long
GIVEN = ("--template", "problem/template.fake", "--no-cache", "--no-library")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    kept.problem(folder / "problem")
    expect_success(folder, "tune", "problem", *GIVEN, "--out", "run")
    return folder


def test_as_it_was_searched_and_reduced_to_what_won(made: Path) -> None:
    whole = tunesmith(made, "template", "run")
    assert whole.out.strip() == (made / "problem" / "template.fake").read_text().strip()
    expect_success(made, "template", "run", "--winner", "-o", "small.fake")
    small = (made / "small.fake").read_text()
    assert "UNROLL = { values = [1, 4], default = " in small
    assert "#define BLOCK 32\n#define VEC 8\n" in small
    assert load_run(made / "run").template(winner=True) == small
    refused(tunesmith(made, "template", "run", "-o", "small.fake"), 2, "the file exists already")
    left = tunesmith(made, "template", "run", "--winner", "--open", "VEC")
    assert "VEC    = { values = [1, 4, 8], default = 8 }" in left.out


def test_what_goes_with_a_run_and_what_with_a_problem(made: Path) -> None:
    refused(tunesmith(made, "template", "problem", "--winner"), 2, "only a run has winners")
    refused(tunesmith(made, "template", "run", "--moves", "vector"), 2, "--moves goes with a problem")
    refused(tunesmith(made, "template", "run", "--open", "VEC"), 2, "add --winner")
    refused(
        tunesmith(made, "template", "run", "--winner", "--open", "LANES"), 2, "there is no parameter 'LANES'"
    )


def test_a_reduced_template_can_be_searched_again(made: Path) -> None:
    text = load_run(made / "run").template(winner=True, still_open=["VEC"])
    (made / "again.fake").write_text(text)
    expect_success(made, "retune", "again.fake", "--problem", "problem", "--no-cache", "--out", "again")
    best = load_run(made / "again").best
    assert best is not None
    assert best.speedup == pytest.approx(load_run(made / "run").best.speedup, rel=0.1)  # type: ignore[union-attr]


def test_a_run_that_is_not_finished_or_found_nothing(made: Path, tmp_path: Path) -> None:
    kept.problem(tmp_path / "problem")
    ended = tunesmith(tmp_path, "tune", "problem", *GIVEN, "--backend", "fake:absent", "--out", "away")
    assert ended.code == 5, ended.err
    refused(
        tunesmith(tmp_path, "template", "away", "--winner"), 2, "this run is not finished", "tunesmith resume"
    )
    slow = (tmp_path / "problem" / "template.fake").read_text().replace("20 * (60", "900 * (60")
    (tmp_path / "problem" / "template.fake").write_text(slow)
    ended = tunesmith(tmp_path, "tune", "problem", *GIVEN, "--evals", 1, "--out", "nothing")
    assert ended.code in (0, 1, 3, 4), ended.err
    refused(tunesmith(tmp_path, "template", "nothing"), 2, "found nothing better than the original")


def test_several_templates_that_won_are_a_file_each(tmp_path: Path) -> None:
    kept.of_two_templates(tmp_path / "problem")
    expect_success(tmp_path, "tune", "problem", "--no-cache", "--out", "run")
    refused(tunesmith(tmp_path, "template", "run", "--winner"), 2, "2 templates won", "--out FILE")
    ended = tunesmith(tmp_path, "template", "run", "--winner", "--out", "won.fake")
    assert ended.out == "wrote won.fake, won-2.fake\n"
    assert (tmp_path / "won.fake").read_text() != (tmp_path / "won-2.fake").read_text()
    with pytest.raises(BadInput, match="2 templates won"):
        load_run(tmp_path / "run").template()
