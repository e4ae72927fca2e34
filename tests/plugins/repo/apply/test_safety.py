"""What `tunesmith apply` leaves behind where commands edit files, fail late, or run twice at once."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.exports.cuda_users import USERS
from tests.plugins.repo.apply.repositories import a_run, applied, delivered, git, origin, python, repository
from tunesmith.base.errors import BadInput
from tunesmith.plugins.repo.apply import apply
from tunesmith.plugins.repo.apply.apply import apply_result, apply_run, undo_run
from tunesmith.plugins.repo.apply.changes import (
    RepositoryChanges,
    repository_locked,
    run_locked,
    uncommitted_files,
)
from tunesmith.plugins.repo.git import run_git as git_safely
from tunesmith.session.progress import listener_of
from tunesmith.session.result import Run

FILE = "csrc/scale.cu"


def only_patched(command: str) -> str:
    return f"[ ! -f csrc/scale_tuned.cuh ] || {{ {command}; }}"


def test_a_test_that_edits_the_patched_file_and_fails_leaves_only_its_edit(repo: Path, run: Run) -> None:
    done = applied(run, repo, test=only_patched(f"printf '\\n\\n\\n// more\\n' >> {FILE}; exit 1"))
    assert (done.ending, done.still_patched) == ("rolled back", ())
    assert (repo / FILE).read_text() == USERS + "\n\n\n// more\n"
    assert not (repo / "csrc" / "scale_tuned.cuh").exists()


def test_what_cannot_be_taken_out_is_named_and_can_be_by_hand(repo: Path, run: Run) -> None:
    edit = f"sed -i s/scale_tuned::launch/other::launch/ {FILE}; exit 1"
    done = applied(run, repo, test=only_patched(edit))
    assert (done.ending, done.still_patched) == ("rolled back", ("csrc/scale_tuned.cuh", FILE))
    assert any("still patched" in note for note in done.notes)
    with pytest.raises(BadInput, match="cannot be taken out"):
        undo_run(run)
    git(repo, "checkout", FILE)
    (repo / "csrc" / "scale_tuned.cuh").unlink()
    assert undo_run(run).ending == "undone"
    assert applied(run, repo).ending == "applied"


def test_an_edit_before_anything_is_switched_does_not_lock_the_run(repo: Path, run: Run) -> None:
    where = origin(repo)
    with pytest.raises(BadInput, match="changed by somebody else meanwhile"):
        applied(run, repo, where=where, test=f"echo '// mine' >> {FILE}")
    assert (repo / FILE).read_text() == USERS + "// mine\n"
    with pytest.raises(BadInput, match="this run is not applied"):
        undo_run(run)
    git(repo, "checkout", FILE)
    assert applied(run, repo, where=where).ending == "applied"


def test_one_at_a_time_by_run_and_by_repository(repo: Path, run: Run, tmp_path: Path) -> None:
    with run_locked(run.folder), pytest.raises(BadInput, match="another process applies this run"):
        applied(run, repo)
    other = a_run(tmp_path / "elsewhere" / "other")
    with repository_locked(repo), pytest.raises(BadInput, match="applies a run to this repository"):
        applied(other, repo)
    assert applied(other, repo).ending == "applied"
    with repository_locked(repo), pytest.raises(BadInput, match="applies a run to this repository"):
        undo_run(other)


def test_a_run_may_be_named_from_where_one_is(repo, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(apply, "result_of", lambda run, target: delivered(origin(repo)))
    near = replace(run, folder=Path("runs") / "scale")
    done = apply_run(near, listener_of(None), repo=repo)
    assert Path(done.patch).is_absolute()
    (repo / FILE).write_text((repo / FILE).read_text() + "\n\n\n\n// more\n")
    apply_run(near, listener_of(None), undo=True, repo="repo")
    assert (repo / FILE).read_text() == USERS + "\n\n\n\n// more\n"


def test_a_failure_after_patched_files_is_not_called_one_before(repo: Path, run: Run) -> None:
    bench = f"[ -f csrc/scale_tuned.cuh ] || [ ! -f tried ] || exit 1; {only_patched('touch tried')}"
    with pytest.raises(BadInput, match="fails on the files as they were, after patched ones"):
        applied(run, repo, bench=bench, rounds=2)
    (repo / "tried").unlink()
    build = f"[ -f csrc/scale_tuned.cuh ] || [ ! -f tried ] || exit 1; {only_patched('touch tried')}"
    with pytest.raises(BadInput, match="what was built is of patched files: build it again"):
        applied(run, repo, build=build, bench=python("bench.py"), rounds=2)
    assert not git(repo, "status", "--porcelain", "csrc")


def test_a_header_may_be_a_link(repo: Path, run: Run, tmp_path: Path) -> None:
    (repo / "real.h").write_text("#define OTHER 1\n")
    os.symlink("../real.h", repo / "csrc" / "linked.h")
    os.symlink("/etc/hostname", repo / "csrc" / "outside.h")
    (repo / FILE).write_text('#include "linked.h"\n#include "outside.h"\n' + USERS)
    assert applied(run, repo, force=True).ending == "applied"


def test_a_repository_may_be_a_folder_of_a_checkout(tmp_path: Path, run: Run) -> None:
    top = tmp_path / "top"
    repo = repository(top / "below", committed=False)
    git(top, "init", "-q")
    git(top, "add", ".")
    git(top, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", "first")
    assert uncommitted_files(repo, (FILE,)) == []
    (repo / FILE).write_text(USERS + "// mine\n")
    assert uncommitted_files(repo, (FILE,)) == [FILE]


def test_a_git_that_does_not_answer_is_said(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tunesmith.plugins.repo.git.SECONDS", 1e-6)
    with pytest.raises(BadInput, match="git did not say within"):
        uncommitted_files(repo, (FILE,))


TRAPS = {
    "core.fsmonitor": ".git/trap",
    "core.hooksPath": ".git/hooks-of-mine",
    "diff.external": ".git/trap",
    "filter.a=b.clean": ".git/trap",
    "filter.a=b.process": ".git/trap",
    "filter.a=b.required": "true",
    "filter.a=b.smudge": ".git/trap",
    "core.pager": ".git/trap",
}


@pytest.mark.parametrize("where", ["config", "included"])
def test_what_a_repository_has_set_up_is_not_run(repo: Path, tmp_path: Path, where: str) -> None:
    mark, trap = tmp_path / "mark", repo / ".git" / "trap"
    trap.write_text(f"#!/bin/sh\necho $0 >> {mark}\ncat 2> /dev/null\n")
    (repo / ".git" / "hooks-of-mine").mkdir()
    (repo / ".git" / "hooks-of-mine" / "post-index-change").write_text(trap.read_text())
    for program in (trap, repo / ".git" / "hooks-of-mine" / "post-index-change"):
        program.chmod(0o755)
    file = repo / ".git" / where
    for name, value in TRAPS.items():
        git(repo, "config", "--file", str(file), name, value.replace(".git", str(repo / ".git")))
    if where == "included":
        git(repo, "config", "include.path", "included")
    (repo / ".git" / "info" / "attributes").write_text("* filter=a=b\n")
    (repo / FILE).write_text(USERS + "// mine\n")
    assert uncommitted_files(repo, (FILE,)) == [FILE]
    git_safely(repo, "apply", "-R", "--check", str(trap))
    assert not mark.exists()
    subprocess.run(["git", "status"], cwd=repo, capture_output=True, check=False)
    assert mark.exists(), "the trap is none: git itself does not spring it"


@pytest.mark.parametrize(
    ("place", "named", "is_allowed"),
    [
        (".", None, False),
        ("repo", None, True),
        ("repo/csrc", None, True),
        (".", "repo", True),
        (".", "runs", False),
        ("repo/vendored", None, False),  # a repository in it: what lies around is another's
        ("runs", None, False),
    ],
)
def test_what_only_a_file_names_is_not_changed(repo, run, tmp_path, monkeypatch, place, named, is_allowed):
    (repo / "vendored" / ".git").mkdir(parents=True)
    where = origin(repo)
    monkeypatch.chdir(tmp_path / place)
    wish: Any = {} if named is None else {"repo": tmp_path / named}
    before = (repo / FILE).read_bytes()
    if is_allowed:
        assert apply_result(run, delivered(where), listener_of(None), **wish).ending == "applied"
        return
    with pytest.raises(BadInput):
        apply_result(run, delivered(where), listener_of(None), **wish)
    assert (repo / FILE).read_bytes() == before


@pytest.mark.parametrize("status", ["begun", "applied"])
def test_a_record_that_came_with_a_run_changes_nothing_elsewhere(run, repo, tmp_path, monkeypatch, status):
    """A forged record of an application puts back what its author wants to see in a user's file."""
    assert applied(run, repo).ending == "applied"
    kept = RepositoryChanges.of(run.folder)
    kept.mark(status)
    patched = (repo / FILE).read_bytes()
    monkeypatch.chdir(tmp_path)
    for attempt in (lambda: undo_run(run), lambda: applied(run, repo)):
        with pytest.raises(BadInput) as refused:
            attempt()
        assert f"--repo {repo}" in (refused.value.hint or "")
        assert (repo / FILE).read_bytes() == patched
    assert undo_run(run, repo).ending == "undone"
