"""The library as a user meets it: runs fill it, kernels are recognised, entries are retuned."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.end_to_end import kept, tiny, written
from tests.end_to_end.asking import quickly, refused
from tests.running import events_in, expect_success, journal, report_in, tunesmith
from tests.wording import says
from tunesmith.run.config import RunConfig
from tunesmith.session.library import open_library
from tunesmith.session.problems import load_problem
from tunesmith.session.retune import format_library_offers

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder whose library has one entry, from a run that is gone; and the entry's name."""
    folder = tmp_path_factory.mktemp("filled")
    kept.problem(folder / "problem")
    words = ("--template", "problem/template.fake", "--evals", 5, "--out", "run")
    expect_success(folder, "tune", "problem", *words)
    shutil.rmtree(folder / "run")
    (entry,) = quickly(folder, "library", "--json").json
    return folder, entry["name"]


def test_it_is_listed_shown_exported_and_removed(filled: tuple[Path, str], tmp_path: Path) -> None:
    folder, name = filled
    shutil.copytree(folder / "user-library", tmp_path / "user-library")
    listed = quickly(tmp_path, "library")
    assert name in listed.out
    assert "simulated device" in listed.out
    shown = quickly(tmp_path, "library", "show", name)
    assert "kernel           fake scale(out: output float32[n]" in shown.out
    assert f"again with       tunesmith retune {name}" in shown.out
    assert quickly(tmp_path, "library", "show", name, "--json").json["problem"] == "tiny"
    text = (folder / "problem" / "template.fake").read_text()
    assert quickly(tmp_path, "library", "export", name, "--out", "t.fake").code == 0
    assert (tmp_path / "t.fake").read_text() == text
    assert quickly(tmp_path, "library", "export", name).out.strip() == text.strip()
    refused(quickly(tmp_path, "library", "export", name, "--out", "t.fake"), 2, "would be overwritten")
    refused(quickly(tmp_path, "library", "show", "../t"), 2, "cannot be a name in the library")
    assert quickly(tmp_path, "library", "remove", name).code == 0
    assert "has no template yet" in quickly(tmp_path, "library").out
    refused(quickly(tmp_path, "library", "remove", name), 2, f"there is no '{name}' in the library")


def test_an_entry_is_retuned_without_any_of_its_files(filled: tuple[Path, str], tmp_path: Path) -> None:
    folder, name = filled
    shutil.copytree(folder / "user-library", tmp_path / "user-library")
    (tmp_path / "sizes.toml").write_text(kept.SIZES)
    words = ("--workloads", "sizes.toml", "--evals", 6, "--no-library", "--out", "again")
    expect_success(tmp_path, "retune", name, *words)
    written = report_in(tmp_path / "again")
    assert written["origin"] == f"{name} of the library, on simulated device"
    assert written["known_first"] > 0
    assert [w["name"] for w in written["workloads"]] == ["tall", "flat"]
    refused(
        quickly(tmp_path, "retune", name, "--problem", tiny.opencl(tmp_path / "other")), 2, "another kernel"
    )


HOSTILE = "#include </etc/passwd>\n"  # what a template of a model's must not have


@pytest.mark.parametrize("author", ["a model", ""])
def test_what_a_model_wrote_is_vetted_again_whoever_searches_it(
    author: str, filled: tuple[Path, str], tmp_path: Path
) -> None:
    """Retuned from the library, from the run that did so, and at the gate of a run that begins from it."""
    folder, name = filled
    shutil.copytree(folder / "user-library", tmp_path / "user-library")
    shutil.copytree(folder / "problem", tmp_path / "problem")
    with open_library(RunConfig(library_dir=str(tmp_path / "user-library"))) as library:
        entry = library.get(name)
        library.remove(name)
        library.add(replace(entry, author=author, template=entry.template + HOSTILE))
    words = ("--evals", 3, "--no-cache", "--no-library")
    assert tunesmith(tmp_path, "retune", name, *words, "--out", "again").code == 0
    assert tunesmith(tmp_path, "retune", "again", *words, "--out", "once-more").code == 0
    for run in ("again", "once-more"):
        assert journal(tmp_path / run)[0]["event"]["authors"] == ([["", author]] if author else [])
        found = (tmp_path / run / "journal.jsonl").read_text()
        assert ("#include </etc/passwd> is not among" in found) is bool(author), found
    words = ("--from-library", "--no-cache", "--evals", 3, "--rounds", 1, "--out", "begun")
    expect_success(tmp_path, "tune", "problem", *words)
    drafted = events_in(tmp_path / "begun", "Drafted")
    assert drafted[0]["author"] == author
    rejected = [event["reason"] for event in events_in(tmp_path / "begun", "Rejected")]
    assert any("#include </etc/passwd> is not among" in why for why in rejected) is bool(author), rejected


class TestTheKernelComesAgain:
    """With an author of its own, and a template in the library that is better than that author's."""

    @pytest.fixture(scope="class")
    @classmethod
    def again(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("again")
        written.problem(
            folder / "problem", tiny.FAKE_KERNEL + written.scripted("draft", "slow", written.SLOW)
        )
        (folder / "own.fake").write_text(tiny.FAKE_TEMPLATE)
        words = ("--template", "own.fake", "--no-cache", "--out", "first")
        expect_success(folder, "tune", "problem", *words)
        return folder

    def test_it_is_offered_with_the_one_command(self, again: Path) -> None:
        config = RunConfig(library_dir=str(again / "user-library"))
        problem, _ = load_problem(again / "problem")
        path = "problem"
        assert len(format_library_offers(problem, path, config)) == 2
        assert format_library_offers(problem, path, replace(config, library=False)) == []
        assert format_library_offers(problem, path, replace(config, strategy="single")) == []
        ended = expect_success(again, "tune", "problem", "--no-cache", "--no-prior", "--out", "offered")
        says(ended.err, "library has", "tiny-")
        assert "tunesmith retune tiny-" in ended.err
        assert "--problem problem" in ended.err
        assert report_in(again / "offered")["general"]["BLOCK"] == 32

    def test_a_run_can_begin_from_it_through_the_gate(self, again: Path) -> None:
        expect_success(again, "tune", "problem", "--from-library", "--no-cache", "--out", "begun")
        events = journal(again / "begun")
        reason = next(e["event"]["reason"] for e in events if e["type"] == "Decided")
        assert reason.startswith("the library has")
        gated = [
            t for e in events if e["type"] == "Asked" for t in e["event"]["trials"] if t["purpose"] == "gate"
        ]
        assert gated
        assert report_in(again / "begun")["general"] == {"BLOCK": 32}
        says((again / "begun" / "report.md").read_text(), "of the library", "kept:")
        shutil.rmtree(again / "user-library")  # what a run begins from lies in its own folder
        lines = (again / "begun" / "journal.jsonl").read_bytes().splitlines(keepends=True)
        first = next(i for i, e in enumerate(events) if e["type"] == "Decided")
        half = again / "half"
        shutil.copytree(again / "begun", half)
        (half / "journal.jsonl").write_bytes(b"".join(lines[: first + 1]))
        assert tunesmith(again, "resume", half).code == 0
        assert [e["type"] for e in journal(half)] == [e["type"] for e in events]

    def test_another_type_or_a_changed_kernel_is_not_recognised(self, again: Path) -> None:
        other = shutil.copytree(again / "problem", again / "other")
        tiny.spoil(other / "problem.toml", 'name = "tiny"', 'name = "another"')
        tiny.spoil(other / "kernel.fake", "// op", "// # changed\n// op")
        refused(
            quickly(again, "tune", "other", "--from-library"),
            2,
            "the library has no template of another's kernel",
        )
        given = ("--from-library", "--template", "own.fake")
        refused(quickly(again, "tune", "problem", *given), 2, "the template is given (--template)")
        refused(quickly(again, "tune", "problem", "--from-library", "--no-library"), 2, "switched off")


def test_a_planner_is_told_what_won_before_unless_the_library_is_left_out(
    filled: tuple[Path, str], tmp_path: Path
) -> None:
    folder, _ = filled
    shutil.copytree(folder / "user-library", tmp_path / "user-library")
    shutil.copytree(folder / "problem", tmp_path / "problem")
    words = ("--model", "planner=mailbox,author=mailbox", "--no-wait", "--no-prior")
    for name, more in (("with", ()), ("without", ("--no-library",))):
        assert tunesmith(tmp_path, "tune", "problem", *words, *more, "--out", name).code == 4
        asked = (tmp_path / name / "mailbox" / "0001-planner.request.md").read_text()
        assert ("- won, this kernel:" in asked) is (name == "with")
    again = tunesmith(tmp_path, "resume", "with", "--no-wait")
    assert again.code == 4, again.err
