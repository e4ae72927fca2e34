"""`tunesmith apply` on a small repository: what it changes, measures, refuses and takes back."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.exports.cuda_users import USERS
from tests.plugins.repo.apply.repositories import (
    BENCH,
    a_run,
    applied,
    delivered,
    git,
    origin,
    python,
    repository,
)
from tests.plugins.repo.capture.made_up import capture, kernel, launch
from tests.samples import a_problem
from tunesmith.base.errors import BadInput
from tunesmith.plugins.repo.apply.apply import apply_result, undo_run
from tunesmith.plugins.repo.apply.changes import RepositoryChanges
from tunesmith.plugins.repo.capture.records import write_capture
from tunesmith.plugins.repo.extract.draft import text_digest
from tunesmith.session.progress import listener_of
from tunesmith.session.result import Run

TEST, TIME = python("tests.py"), python("bench.py")


def is_clean(repo: Path) -> bool:
    return not git(repo, "status", "--porcelain", "csrc")


def test_it_is_patched_tested_and_timed_in_alternation(repo: Path, run: Run) -> None:
    done = applied(run, repo, test=TEST, bench=TIME, metric=r"step: ([\d.]+) ms")
    assert (done.ending, done.delivered, len(done.tested)) == ("applied", 1, 2)
    assert done.files == ("csrc/scale_tuned.cuh", "csrc/scale.cu")
    assert done.launches == ("csrc/scale.cu:13", "csrc/scale.cu:15")
    assert (done.bench.before, done.bench.after) == ((10.0,) * 3, (8.0,) * 3)
    assert done.bench.gain == 1.25
    # The first after each change of files is not counted.
    ran = "before before after after after before before before after after"
    assert (repo / "ran").read_text().split() == ran.split()
    assert "scale_tuned::launch(" in (repo / "csrc" / "scale.cu").read_text()
    assert Path(done.patch).read_text().endswith(done.diff)


def test_undo_gives_the_bytes_back_and_it_can_be_applied_again(repo: Path, run: Run) -> None:
    os.chmod(repo / "csrc" / "scale.cu", 0o755)
    git(repo, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qam", "mode")
    where = origin(repo)
    applied(run, repo, where=where)
    assert (repo / "csrc" / "scale.cu").stat().st_mode & 0o777 == 0o755
    with pytest.raises(BadInput, match="applied already"):
        applied(run, repo, where=where)
    assert undo_run(run).files == ("csrc/scale_tuned.cuh", "csrc/scale.cu")
    assert is_clean(repo)
    with pytest.raises(BadInput, match="not applied"):
        undo_run(run)
    assert applied(run, repo, where=where).ending == "applied"


def test_undo_takes_the_patch_out_of_what_has_changed_since(repo: Path, run: Run) -> None:
    applied(run, repo)
    path = repo / "csrc" / "scale.cu"
    path.write_text(path.read_text() + "\n\n\n\n// more\n")
    undo_run(run)
    assert path.read_text() == USERS + "\n\n\n\n// more\n"
    assert not (repo / "csrc" / "scale_tuned.cuh").exists()


def test_undo_refuses_where_the_patch_cannot_be_taken_out(repo: Path, run: Run) -> None:
    applied(run, repo)
    path = repo / "csrc" / "scale.cu"
    path.write_text(path.read_text().replace("scale_tuned::launch(", "other::launch("))
    with pytest.raises(BadInput, match="cannot be taken out of that") as caught:
        undo_run(run)
    assert "git apply -R" in (caught.value.hint or "")
    assert "other::launch(" in path.read_text()


def test_a_dry_run_writes_the_patch_and_nothing_else(repo: Path, run: Run) -> None:
    done = applied(run, repo, dry_run=True)
    assert done.ending == "dry run"
    assert is_clean(repo)
    assert '+#include "scale_tuned.cuh"' in done.diff
    ended = subprocess.run(["git", "apply", "--check", done.patch], cwd=repo, check=False, timeout=30)
    assert ended.returncode == 0


def test_tests_that_fail_afterwards_roll_it_back(repo: Path, run: Run) -> None:
    (repo / "wrong").touch()
    done = applied(run, repo, test=TEST, bench=TIME, metric="step: (.*) ms")
    assert done.ending == "rolled back"
    assert "the test command ended with exit code 1: the results differ" in done.fault
    assert is_clean(repo)
    assert Path(done.patch).is_file()


def test_a_benchmark_that_fails_or_falls_silent_afterwards_rolls_it_back(repo: Path, run: Run) -> None:
    (repo / "silent").touch()
    done = applied(run, repo, bench=TIME, metric="step: (.*) ms")
    assert (done.ending, is_clean(repo)) == ("rolled back", True)
    assert "no number for --metric any more" in done.fault
    (repo / "bench.py").write_text(BENCH + "import sys\nsys.exit(3 if tuned else 0)\n")
    done = applied(run, repo, bench=TIME, metric="step: (.*) ms")
    assert "the bench command ended with exit code 3" in done.fault


def test_what_fails_before_is_the_users_to_mend(repo: Path, run: Run) -> None:
    with pytest.raises(BadInput, match="the test command fails before anything is changed") as caught:
        applied(run, repo, test="echo no such module; exit 4")
    assert "exit code 4: no such module" in str(caught.value)
    with pytest.raises(BadInput, match="the bench command fails before"):
        applied(run, repo, bench="false")
    with pytest.raises(BadInput, match="ran past its deadline"):
        applied(run, repo, bench="sleep 60", timeout=0.2)
    with pytest.raises(BadInput, match="prints no positive number"):
        applied(run, repo, bench=TIME, metric=r"tokens/s: ([\d.]+)")
    with pytest.raises(BadInput, match="no regular expression"):
        applied(run, repo, bench=TIME, metric="(")
    assert is_clean(repo)


def test_a_build_is_made_whenever_files_change(repo: Path, run: Run) -> None:
    done = applied(run, repo, build="echo built >> ran", bench=TIME, rounds=1)
    assert done.bench.unit == "s"
    assert (repo / "ran").read_text().split() == ["built", "before", "before", "built", "after", "after"]


def test_a_file_that_changed_since_it_was_taken_is_not_touched(repo: Path, run: Run) -> None:
    where = origin(repo)
    (repo / "csrc" / "scale.cu").write_text(USERS + "// changed\n")
    with pytest.raises(BadInput, match=r"csrc/scale\.cu has changed") as caught:
        applied(run, repo, where=where)
    assert "tunesmith extract" in (caught.value.hint or "")
    (repo / "csrc" / "scale.cu").unlink()
    with pytest.raises(BadInput, match=r"csrc/scale\.cu is gone"):
        applied(run, repo, where=where)


def test_changes_that_are_not_committed_need_force(repo: Path, run: Run) -> None:
    (repo / "csrc" / "scale.cu").write_text(USERS + "// mine\n")
    with pytest.raises(BadInput, match=r"csrc/scale\.cu: changes that are not committed") as caught:
        applied(run, repo)
    assert "--force" in (caught.value.hint or "")
    applied(run, repo, force=True)
    undo_run(run)
    assert (repo / "csrc" / "scale.cu").read_text() == USERS + "// mine\n"


def test_a_second_run_may_change_what_the_first_has_changed(tmp_path: Path) -> None:
    """Two kernels of one file, taken from it before either was applied."""
    other = USERS.replace("scale", "shift").replace("both", "also")
    repo = repository(tmp_path / "repo", USERS + other)
    where = origin(repo)
    first, second = (a_run(tmp_path / "runs" / name) for name in ("one", "two"))
    applied(first, repo, where=where)
    result = delivered(where)
    *tuned, own = result.dispatch.entries
    launch = replace(own.launches[0], entry="mine::shift<float, 3>")
    entries = (*tuned, replace(own, launches=(launch,)))
    result = replace(result, dispatch=replace(result.dispatch, problem="shift", entries=entries))
    done = apply_result(second, result, listener_of(None))
    text = (repo / "csrc" / "scale.cu").read_text()
    assert done.files == ("csrc/shift_tuned.cuh", "csrc/scale.cu")
    assert (text.count("::scale_tuned::launch("), text.count("::shift_tuned::launch(")) == (2, 2)
    undo_run(first)
    undo_run(second)
    assert is_clean(repo)


def test_what_cannot_be_applied_is_said(repo: Path, run: Run, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not taken from a repository"):
        applied(run, repo, where=None)
    with pytest.raises(BadInput, match="is not there") as caught:
        applied(run, repo, where=replace(origin(repo), repository=str(tmp_path / "gone")))
    assert "--repo" in (caught.value.hint or "")
    result = delivered(None)
    (launch,) = result.templates.problem.launches
    launches = (replace(launch, entry="own::scale_of_fields"),)
    result.templates.problem = replace(result.templates.problem, launches=launches)
    with pytest.raises(BadInput, match="takes the fields of what scale takes by value") as caught:
        apply_result(run, result, listener_of(None), repo=repo)
    assert "tunesmith export" in (caught.value.hint or "")
    bare = delivered(origin(repo))
    bare = replace(bare, dispatch=replace(bare.dispatch, entries=bare.dispatch.entries[-1:]))
    with pytest.raises(BadInput, match="has no tuned kernel"):
        apply_result(run, bare, listener_of(None))
    (repo / "csrc" / "scale_tuned.cuh").write_text("// mine")
    with pytest.raises(BadInput, match="there already"):
        applied(run, repo)


def test_a_file_with_a_kernel_of_its_own_of_that_name_stays(tmp_path: Path, run: Run) -> None:
    repo = repository(tmp_path / "repo", committed=False)
    (repo / "b").mkdir()
    head, tail = USERS.split("// each", 1)
    (repo / "b" / "k.cuh").write_text(head + "}\n")
    (repo / "b" / "n.cu").write_text('#include "k.cuh"\nnamespace mine {\n// each' + tail)
    (repo / "b" / "m.cu").write_text('#include "csrc/scale.cu"\nnamespace mine {\n// each' + tail)
    where = origin(repo)
    digests = (
        *where.digests,
        *((f"b/{n}", text_digest((repo / "b" / n).read_text())) for n in ("n.cu", "m.cu")),
    )
    where = replace(where, launches=(*where.launches, "b/n.cu:7", "b/m.cu:7"), digests=digests)
    done = applied(run, repo, where=where)
    assert done.files == ("csrc/scale_tuned.cuh", "csrc/scale.cu", "b/m.cu")
    assert "b/n.cu:7 stays as it is: b/k.cuh defines a kernel of this name itself" in done.notes


@pytest.mark.parametrize("include", [("b/include",), ()])
def test_a_kernel_of_that_name_in_a_folder_of_headers_is_another_one(tmp_path, run, include):
    repo = repository(tmp_path / "repo", committed=False)
    (repo / "b" / "include" / "own").mkdir(parents=True)
    head, tail = USERS.split("// each", 1)
    (repo / "b" / "include" / "own" / "k.cuh").write_text(head + "}\n")
    (repo / "b" / "n.cu").write_text("#include <own/k.cuh>\nnamespace mine {\n// each" + tail)
    where = origin(repo)
    digests = (*where.digests, ("b/n.cu", text_digest((repo / "b" / "n.cu").read_text())))
    where = replace(where, launches=(*where.launches, "b/n.cu:7"), digests=digests, include=include)
    done = applied(run, repo, where=where, dry_run=True)
    assert done.files == ("csrc/scale_tuned.cuh", "csrc/scale.cu")
    why = "b/n.cu:7 stays as it is: b/include/own/k.cuh defines a kernel of this name itself"
    assert why in done.notes


def test_what_one_launch_promises_changes_that_launch_alone(repo: Path, run: Run) -> None:
    where = replace(origin(repo), unread=("x.is_sorted()",), read="csrc/scale.cu:15")
    done = applied(run, repo, where=where, dry_run=True)
    assert done.launches == ("csrc/scale.cu:15",)
    why = "csrc/scale.cu:13 stays as it is: the host asks for x.is_sorted() at csrc/scale.cu:15"
    assert any(note.startswith(why) for note in done.notes)
    assert done.diff.count("+        ::scale_tuned::launch(") == 1
    both = ("csrc/scale.cu:13", "csrc/scale.cu:15")  # the other is of another kernel
    assert applied(run, repo, where=replace(where, alone=True), dry_run=True).launches == both
    with pytest.raises(BadInput, match="which launch that was read from is not kept"):
        applied(run, repo, where=replace(where, read=""))
    problem = replace(a_problem(), origin=replace(where, unread=()))
    first, *rest = problem.arguments
    problem = replace(problem, arguments=(replace(first, init=0.0), *rest))
    result = delivered(where)
    result.templates.problem = problem
    done = apply_result(run, result, listener_of(None), dry_run=True)
    assert done.launches == ("csrc/scale.cu:15",)


def test_windows_line_ends_stay(tmp_path: Path, run: Run) -> None:
    repo = repository(tmp_path / "repo", USERS.replace("\n", "\r\n"))
    applied(run, repo)
    after = (repo / "csrc" / "scale.cu").read_bytes()
    assert after.count(b"\n") == after.count(b"\r\n") == USERS.count("\n") + 1
    undo_run(run)
    assert is_clean(repo)


def test_the_gain_is_foretold_from_the_capture(repo: Path, run: Run, tmp_path: Path) -> None:
    seen = capture(kernel("_Z5scale", launch(seconds=0.4)), span=1.0)
    write_capture(tmp_path, seen)
    where = origin(repo, capture=str(tmp_path), kernel="_Z5scale")
    done = applied(run, repo, where=where, bench=TIME, metric="step: (.*) ms", rounds=1)
    assert (done.foretold.share, done.foretold.speedup) == (0.4, 2.0)
    assert done.foretold.gain == pytest.approx(1 / 0.8)


def _apply_for_long(repo: Path, folder: Path) -> None:
    waits = "[ ! -f csrc/scale_tuned.cuh ] || sleep 3"
    apply_result(a_run(folder), delivered(origin(repo)), listener_of(None), test=waits)


def test_a_call_that_was_killed_is_made_good_by_the_next(repo: Path, run: Run) -> None:
    where = origin(repo)
    process = multiprocessing.get_context("fork").Process(target=_apply_for_long, args=(repo, run.folder))
    process.start()
    end = time.monotonic() + 30
    while "scale_tuned" not in (repo / "csrc" / "scale.cu").read_text():
        assert time.monotonic() < end
        time.sleep(0.02)
    process.kill()
    process.join(10)
    assert not is_clean(repo)
    changes = RepositoryChanges.of(run.folder)
    assert changes.record.status == "begun"
    assert applied(run, repo, where=where, test=TEST).ending == "applied"
    undo_run(run)
    assert is_clean(repo)


def test_an_interrupt_leaves_the_repository_as_it_was(repo: Path, run: Run) -> None:
    def interrupted(text: str) -> None:
        if text.startswith("test after"):
            signal.raise_signal(signal.SIGINT)

    class Talkative:
        def event(self, record: Any, state: Any) -> None: ...
        def note(self, text: str) -> None: ...
        def say(self, text: str) -> None:
            interrupted(text)

    with pytest.raises(KeyboardInterrupt, match="the repository is as it was"):
        apply_result(run, delivered(origin(repo)), Talkative(), test=TEST)
    assert is_clean(repo)
