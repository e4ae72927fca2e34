"""A library that a team shares, as its users meet it: one leaves what it found, another starts from there and
verifies it; what others wrote is vetted; without the library runs go on, and nothing measured is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.end_to_end import kept
from tests.running import Ended, events_in, expect_success, journal, report_in, tunesmith
from tunesmith.run.config import RunConfig
from tunesmith.session.library import open_library

INCLUDE = "#include </etc/passwd>\n"


def shared_folder(folder: Path) -> Path:
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def member(folder: Path, library: Path) -> Path:
    """Somebody of the team, in a folder of their own."""
    kept.problem(folder / "problem")
    (folder / "user-library").symlink_to(library)  # where tests have the user's own
    return folder


def tuned(folder: Path, *words: object, out: str = "run") -> Ended:
    own = ("tune", "problem", "--template", "problem/template.fake", "--out", out)
    return expect_success(folder, *own, *words)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared_folder(tmp_path_factory.mktemp("team") / "library")


@pytest.fixture(scope="module")
def first(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = member(tmp_path_factory.mktemp("first"), library)
    ended = tuned(folder)
    assert "library          stored as tiny-" in ended.out
    assert "12 timings in " in ended.out
    return folder


def named(folder: Path) -> str:
    (entry,) = tunesmith(folder, "library", "--json").json
    name: str = entry["name"]
    return name


def test_the_second_starts_from_what_the_first_found_and_verifies_it(
    first: Path, library: Path, tmp_path: Path
) -> None:
    second = member(tmp_path, library)
    tuned(second, "--evals", 4, "--no-cache")
    assert events_in(first / "run", "Primed") == []
    (prior,) = events_in(second / "run", "Primed")
    assert str(prior["name"]).startswith("run of ")
    assert "in the library, on simulated device" in str(prior["name"])
    best = report_in(first / "run")["general"]
    found = report_in(second / "run")
    assert found["general"] == best, "four evaluations are enough, since the best are tried first"
    assert found["known_first"] > 0
    events = journal(second / "run")
    assert sum(e["type"] == "Measured" for e in events) >= 4
    assert any(e["type"] == "Verified" for e in events)
    told = tunesmith(second, "library", "runs", "--json").json
    assert [one["timings"] for one in told] == [4, 12] or [one["timings"] for one in told] == [12, 4]
    assert told[0]["run"]["provenance"]["certificate"]
    tuned(second, "--evals", 4, "--no-prior", out="without")
    assert events_in(second / "without", "Primed") == []


def test_an_entry_is_retuned_for_ones_own_problem_only(first: Path, library: Path, tmp_path: Path) -> None:
    third = member(tmp_path, library)
    name = named(third)
    refused = tunesmith(third, "retune", name)
    assert refused.code == 2
    assert "its own problem is not taken for true" in refused.err
    shown = tunesmith(third, "library", "show", name)
    assert f"tunesmith retune {name} --problem PROBLEM" in shown.out
    assert "nothing of it is taken for true here" in shown.out
    words = ("--problem", "problem", "--evals", 3, "--no-library", "--out", "again")
    expect_success(third, "retune", name, *words)
    assert journal(third / "again")[0]["event"]["authors"] == [["", "an unknown author"]]


def test_what_others_wrote_is_vetted_whoever_they_say_they_are(first: Path, tmp_path: Path) -> None:
    """A template that says it is the expert's."""
    folder = member(tmp_path / "own", shared_folder(tmp_path / "library"))
    tuned(folder)
    name = named(folder)
    with open_library(RunConfig(library_dir=str(tmp_path / "library"))) as library:
        entry = replace(library.get(name), author="", template=library.get(name).template + INCLUDE)
        library.remove(name)
        library.add(entry)
    words = ("--problem", "problem", "--evals", 3, "--no-cache", "--no-library", "--out", "again")
    assert tunesmith(folder, "retune", name, *words).code == 0
    assert "#include </etc/passwd> is not among" in (folder / "again" / "journal.jsonl").read_text()
    words = ("--from-library", "--no-cache", "--no-prior", "--evals", 3, "--rounds", 1, "--out", "begun")
    expect_success(folder, "tune", "problem", *words)
    rejected = [event["reason"] for event in events_in(folder / "begun", "Rejected")]
    assert any("#include </etc/passwd> is not among" in why for why in rejected), rejected


def test_without_the_library_a_run_goes_on_and_is_put_in_later(tmp_path: Path) -> None:
    place = tmp_path / "library"
    place.write_text("in its way")
    folder = member(tmp_path / "own", place)
    ended = tuned(folder)
    assert "library          not stored: " in ended.out
    assert "tunesmith library add " in ended.out
    place.unlink()
    shared_folder(place)
    added = expect_success(folder, "library", "add", "run", "--json")
    assert added.json[0]["stored"]["timings"] == added.json[0]["stored"]["new"] == 12
    again = tunesmith(folder, "library", "add", "run", "--json").json[0]["stored"]
    assert (again["new"], again["names"]) == (0, added.json[0]["stored"]["names"])
    pruned = tunesmith(folder, "library", "prune", "--older-than", 1, "--json").json
    assert pruned["runs"] == 0
