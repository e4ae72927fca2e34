"""A library that a team shares, as its users meet it: one leaves what it found, another starts from there and
verifies it; what others wrote is vetted; without the server runs go on, and nothing measured is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.end_to_end import kept
from tests.postgres_server import GUARDED, PASSWORD, Server, own_server, server
from tests.running import Ended, journal, tunesmith, write_own_settings
from tunesmith.run.config import RunConfig
from tunesmith.session.library import opened

pytestmark = pytest.mark.long
INCLUDE = "#include </etc/passwd>\n"


def member(folder: Path, url: str) -> Path:
    """Somebody of the team, with a machine of their own."""
    kept.problem(folder / "problem")
    write_own_settings(folder, f"library = {json.dumps(url)}\n")
    return folder


def tuned(folder: Path, *words: object, out: str = "run") -> Ended:
    own = ("tune", "problem", "--template", "problem/template.fake", "--out", out)
    ended = tunesmith(folder, *own, *words)
    assert ended.code == 0, ended.err
    return ended


@pytest.fixture(scope="module")
def url() -> str:
    return server().url(server().database(GUARDED), GUARDED, PASSWORD)


@pytest.fixture(scope="module")
def first(url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = member(tmp_path_factory.mktemp("first"), url)
    ended = tuned(folder)
    assert "library          stored as tiny-" in ended.out
    assert "12 timings in postgresql://guarded@" in ended.out
    return folder


def primed(run: Path) -> list[dict[str, object]]:
    return [e["event"] for e in journal(run) if e["type"] == "Primed"]


def named(folder: Path) -> str:
    (entry,) = tunesmith(folder, "library", "--json").json
    name: str = entry["name"]
    return name


def test_the_second_starts_from_what_the_first_found_and_verifies_it(
    first: Path, url: str, tmp_path: Path
) -> None:
    second = member(tmp_path, url)
    tuned(second, "--evals", 4, "--no-cache")
    assert primed(first / "run") == []
    (prior,) = primed(second / "run")
    assert str(prior["name"]).startswith("run of ")
    assert "in the library, on simulated device" in str(prior["name"])
    best = json.loads((first / "run" / "report.json").read_text())["general"]
    found = json.loads((second / "run" / "report.json").read_text())
    assert found["general"] == best, "four evaluations are enough, since the best are tried first"
    assert found["known_first"] > 0
    events = journal(second / "run")
    assert sum(e["type"] == "Measured" for e in events) >= 4
    assert any(e["type"] == "Verified" for e in events)
    told = tunesmith(second, "library", "runs", "--json").json
    assert [one["timings"] for one in told] == [4, 12] or [one["timings"] for one in told] == [12, 4]
    assert told[0]["run"]["provenance"]["certificate"]
    tuned(second, "--evals", 4, "--no-prior", out="without")
    assert primed(second / "without") == []


def test_the_password_is_in_nothing_that_is_written_or_said(first: Path) -> None:
    said = [tunesmith(first, *words) for words in (["library"], ["library", "runs"], ["doctor"])]
    assert "ok       library: postgresql://guarded@" in said[-1].out
    texts = [ended.out + ended.err for ended in said]
    files = [p for p in first.rglob("*") if p.is_file() and p.name != "tunesmith.toml"]
    for text in (*texts, *(p.read_text(errors="replace") for p in files)):
        assert PASSWORD not in text
        assert quote(PASSWORD, safe="") not in text


def test_an_entry_is_retuned_for_ones_own_problem_only(first: Path, url: str, tmp_path: Path) -> None:
    third = member(tmp_path, url)
    name = named(third)
    refused = tunesmith(third, "retune", name)
    assert refused.code == 2
    assert "its own problem is not taken for true" in refused.err
    shown = tunesmith(third, "library", "show", name)
    assert f"tunesmith retune {name} --problem PROBLEM" in shown.out
    assert "nothing of it is taken for true here" in shown.out
    words = ("--problem", "problem", "--evals", 3, "--no-library", "--out", "again")
    ended = tunesmith(third, "retune", name, *words)
    assert ended.code == 0, ended.err
    assert journal(third / "again")[0]["event"]["authors"] == [["", "an unknown author"]]


def test_what_others_wrote_is_vetted_whoever_they_say_they_are(first: Path, tmp_path: Path) -> None:
    """A template that says it is the expert's."""
    own = server().url(server().database())
    folder = member(tmp_path, own)
    tuned(folder)
    name = named(folder)
    with opened(RunConfig(library_url=own)) as library:
        entry = replace(library.get(name), author="", template=library.get(name).template + INCLUDE)
        library.remove(name)
        library.add(entry)
    words = ("--problem", "problem", "--evals", 3, "--no-cache", "--no-library", "--out", "again")
    assert tunesmith(folder, "retune", name, *words).code == 0
    assert "#include </etc/passwd> is not among" in (folder / "again" / "journal.jsonl").read_text()
    words = ("--from-library", "--no-cache", "--no-prior", "--evals", 3, "--rounds", 1, "--out", "begun")
    ended = tunesmith(folder, "tune", "problem", *words)
    assert ended.code == 0, ended.err
    rejected = [e["event"]["reason"] for e in journal(folder / "begun") if e["type"] == "Rejected"]
    assert any("#include </etc/passwd> is not among" in why for why in rejected), rejected


@pytest.fixture
def mortal() -> Iterator[Server]:
    server()  # or a skip
    found = own_server()
    yield found
    found.stop()


def test_without_the_server_a_run_goes_on_and_is_put_in_later(mortal: Server, tmp_path: Path) -> None:
    folder = member(tmp_path, mortal.url(mortal.database()))
    mortal.kill()
    ended = tuned(folder)
    assert ended.err.count("going on without the library") == 1
    assert "library          not stored: " in ended.out
    assert "tunesmith library add " in ended.out
    mortal.start()
    added = tunesmith(folder, "library", "add", "run", "--json")
    assert added.code == 0, added.err
    assert added.json[0]["stored"]["timings"] == added.json[0]["stored"]["new"] == 12
    again = tunesmith(folder, "library", "add", "run", "--json").json[0]["stored"]
    assert (again["new"], again["names"]) == (0, added.json[0]["stored"]["names"])
    pruned = tunesmith(folder, "library", "prune", "--older-than", 1, "--json").json
    assert pruned["runs"] == 0
    shutil.rmtree(folder / "run")
    assert tunesmith(folder, "library", "migrate", "--json").json["before"] > 0
