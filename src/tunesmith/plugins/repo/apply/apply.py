"""`tunesmith apply`: a repository patched, built, tested and timed; rolled back where that fails."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack

from tunesmith.backends.cuda.toolkit import find_nvcc
from tunesmith.base.errors import BadInput, Interrupted
from tunesmith.base.files import explain_disk_errors, write_whole
from tunesmith.base.text import format_count
from tunesmith.deliver.artefact import DeviceResult
from tunesmith.plugins.exports.patch import TARGET
from tunesmith.plugins.repo.apply.changes import (
    FOLDER,
    RepositoryChanges,
    Side,
    refuse_unnamed,
    repository_locked,
    run_locked,
)
from tunesmith.plugins.repo.apply.commands import (
    Applied,
    CommandEnd,
    Ending,
    WishedApply,
    foretold_by,
    run_command,
)
from tunesmith.plugins.repo.apply.gain import BenchMetric, BenchSeries, ForetoldGain, alternate_measurements
from tunesmith.plugins.repo.apply.prepare import PreparedPatch, prepare_patch, prepared_repository
from tunesmith.plugins.repo.apply.swap import swap_result
from tunesmith.run.ports import Listener
from tunesmith.session.result import Run, result_of

_COMPILE_SECONDS = 180.0


class _PatchFails(Exception):
    """What a command of the user's makes of the patched files."""


@dataclass
class _Application:
    """One application, as far as it has come."""

    ready: PreparedPatch
    changes: RepositoryChanges
    listener: Listener
    test: str
    bench: str
    build: str
    metric: BenchMetric
    rounds: int
    timeout: float
    side: Side = "before"
    number: int = 0  # of commands that were run
    is_tried: bool = False  # the patched files were compiled and tested
    is_stale: bool = False  # what is built may be of patched files
    notes: list[str] = field(default_factory=list)
    tested: list[float] = field(default_factory=list)

    def command(self, what: str, command: str, timeout: float | None = None) -> CommandEnd:
        self.number += 1
        log = self.changes.folder / f"{self.number:02d}-{what}-{self.side}.log"
        self.listener.say(f"{what} {self.side}: {command}")
        limit = timeout or self.timeout
        return run_command(command, self.ready.repository, log, limit, self.listener.note)

    def needed(self, what: str, command: str) -> CommandEnd:
        """A command that must succeed: before the patch or it is the user's to mend, after it or it goes."""
        ended = self.command(what, command)
        if ended.ok:
            return ended
        if self.side == "after":
            raise _PatchFails(f"the {what} command {ended.fault}; {ended.log}")
        later = "on the files as they were, after patched ones"
        when = later if self.is_tried else "before anything is changed"
        fault = f"the {what} command fails {when}: it {ended.fault}"
        raise BadInput(fault, where=str(ended.log), hint=f"mend it, or correct --{what}")

    def switched(self, side: Side) -> None:
        """The files as they were, or as they are made: built, and the first time tested."""
        if side == self.side:
            return
        self.changes.switch(side)
        self.side = side
        if self.build:
            self.is_stale = True
            self.needed("build", self.build)
            self.is_stale = side == "after"
        if side == "after" and not self.is_tried:
            self.is_tried = True
            if not self.build:
                self.compiled()
            if self.test:
                self.tested.append(self.needed("test", self.test).seconds)

    def measured(self) -> float:
        ended = self.needed("bench", self.bench)
        value = self.metric.read(ended.output, ended.seconds)
        if value is None and self.side == "before":
            fault = f"the benchmark prints no positive number where --metric {self.metric.pattern!r} looks"
            raise BadInput(fault, where=str(ended.log), hint="correct --metric; the file has what it prints")
        if value is None:
            raise _PatchFails(f"the benchmark prints no number for --metric any more; {ended.log}")
        return value

    def before(self) -> None:
        """That everything works as it is."""
        if self.build:
            self.needed("build", self.build)
        if self.test:
            self.tested.append(self.needed("test", self.test).seconds)

    def compiled(self) -> None:
        """Each file that launches it, where nvcc takes it as it was: else that says nothing."""
        nvcc = find_nvcc()
        units = [file.path for file in self.ready.files if file.path.endswith(".cu")]
        if nvcc is None or not units:
            self.notes.append("not compiled here: there is no nvcc" if units else "not compiled by itself")
            return
        flags = [*self.ready.problem.kernel.flags]
        arch = self.ready.artefact.first.dispatch.architecture
        flags += [f"-arch={arch}"] if arch and not any("arch" in flag for flag in flags) else []
        out = self.changes.folder / "compiled.o"
        for unit in units:
            command = shlex.join([nvcc, *flags, "-I.", "-c", unit, "-o", str(out)])
            ended = self.command("compile", command, _COMPILE_SECONDS)
            if ended.ok:
                continue
            self.changes.switch("before")
            self.side = "before"
            plain = self.command("compile", command, _COMPILE_SECONDS)
            if plain.ok:
                raise _PatchFails(f"{unit} does not compile any more, nvcc {ended.fault}; {ended.log}")
            self.changes.switch("after")
            self.side = "after"
            self.notes.append(f"{unit} does not compile by itself, also not as it was: --build says how")
        out.unlink(missing_ok=True)

    def series(self) -> BenchSeries:
        """In alternation. After every change of files the first run is for caches and builds, not counted."""
        warm: list[Side] = []

        def measure(side: Side) -> float:
            self.switched(side)
            if warm != [side]:
                self.measured()
                warm[:] = [side]
            return self.measured()

        def say(side: Side, words: str) -> None:
            self.listener.say(f"bench {side}, {words}")

        return alternate_measurements(self.rounds, self.metric, measure, say)


def apply_run(run: Run, listener: Listener, **wish: Unpack[WishedApply]) -> Applied:
    """The patch is written whatever happens; the repository is as it was unless it ends as `applied`."""
    run = replace(run, folder=run.folder.resolve())  # commands run in another folder
    if wish.get("undo", False):
        return undo_run(run, wish.get("repo"))
    if wish.get("swap") is not None:
        return swap_result(run, result_of(run, TARGET), listener, **wish)
    return apply_result(run, result_of(run, TARGET), listener, **wish)


def apply_result(run: Run, result: DeviceResult, listener: Listener, **wish: Unpack[WishedApply]) -> Applied:
    """The same with what the run delivered."""
    with run_locked(run.folder):
        return _apply_locked(run, result, listener, **wish)


def _apply_locked(run: Run, result: DeviceResult, listener: Listener, **wish: Unpack[WishedApply]) -> Applied:
    metric = BenchMetric(wish.get("metric") or "", wish.get("higher", False))
    repo = wish.get("repo")
    _recover_interrupted(run, listener, repo)
    repository = prepared_repository(run.folder, result, None if repo is None else Path(repo))
    with repository_locked(repository):
        listener.note("making the patch")
        ready = prepare_patch(run.folder, result, repository, wish.get("force", False))
        return _carried_out(run, ready, metric, listener, **wish)


def _carried_out(
    run: Run, ready: PreparedPatch, number: BenchMetric, listener: Listener, **wish: Unpack[WishedApply]
) -> Applied:
    capture = wish.get("capture") or ready.origin.capture or None
    kernel = ready.origin.kernel
    foretold, notes = foretold_by(run, kernel, None if capture is None else Path(capture), number)
    told = (foretold, (*ready.patch.notes, *notes))
    if wish.get("dry_run", False):
        return _applied_summary(run, ready, "dry run", _write_run_patch(run, ready), *told)
    text = _patch_header(ready) + ready.patch.diff
    changes = RepositoryChanges.begin(run.folder, ready.repository, ready.artefact.name, text, ready.files)
    test, bench, build = (wish.get("test") or "", wish.get("bench") or "", wish.get("build") or "")
    often, long = wish.get("rounds", 3), wish.get("timeout", 600.0)
    work = _Application(ready, changes, listener, test, bench, build, number, often, long)
    with _kept_safe(work):
        listener.say(f"changes {', '.join(file.path for file in ready.files)} in {ready.repository}")
        try:
            work.before()
            series = work.series() if work.bench else None
            work.switched("after")
        except _PatchFails as failed:
            left = _rolled_back(work)
            made = _applied_summary(run, ready, "rolled back", changes.patch, *told, work)
            return replace(made, fault=str(failed), still_patched=tuple(left))
        changes.mark("applied")
    return _applied_summary(run, ready, "applied", changes.patch, *told, work, series)


def undo_run(run: Run, repo: str | os.PathLike[str] | None = None) -> Applied:
    """Takes the patch of a run back."""
    changes = RepositoryChanges.of(run.folder)
    if changes is None or changes.record.status == "undone":
        fault = "this run is not applied, so there is nothing to undo"
        raise BadInput(fault, where=str(run.folder), hint="apply it: tunesmith apply RUN")
    if not changes.repository.is_dir():
        fault = "the repository that it was applied to is not there"
        raise BadInput(fault, where=str(changes.repository), hint=f"git apply -R {changes.patch}, in it")
    refuse_unnamed(changes.repository, repo, run.folder)
    with run_locked(run.folder), repository_locked(changes.repository):
        changes.undo()
    files = tuple(file.path for file in changes.record.files)
    where = str(run.folder), run.result.problem, str(changes.repository)
    return Applied(*where, "undone", str(changes.patch), "", files, (), 0, 0)


@contextmanager
def _kept_safe(work: _Application) -> Iterator[None]:
    """Whatever ends it, the files are as they were, unless they are marked as applied."""
    try:
        yield
    except KeyboardInterrupt as error:
        left = _rolled_back(work, build=False)
        as_it_is = f"{', '.join(left)} still patched" if left else "the repository is as it was"
        fault = f"interrupted; {as_it_is}{_stale_build_note(work)}"
        hint = f"git apply -R {work.changes.patch}" if left else "run the same command again"
        raise Interrupted(fault, hint=hint, where=str(work.ready.repository)) from error
    except BadInput as error:
        left = _rolled_back(work, build=False)
        if not (left or _stale_build_note(work)):
            raise
        more = f"; still patched: {', '.join(left)}" if left else ""
        advice = f"git apply -R {work.changes.patch}" if left else error.hint
        fault = f"{error.message}{more}{_stale_build_note(work)}"
        raise BadInput(fault, where=error.where, hint=advice) from error
    except BaseException:
        _rolled_back(work, build=False)
        raise


def _stale_build_note(work: _Application) -> str:
    """Where what was built last may have been built of patched files."""
    return "; what was built is of patched files: build it again" if work.is_stale else ""


def _rolled_back(work: _Application, build: bool = True) -> list[str]:
    """Files that still have the patch, because others changed them meanwhile."""
    was = work.side
    left = work.changes.restored()
    work.side = "before"
    if left:
        work.notes.append(f"changed by somebody else meanwhile, and still patched: {', '.join(left)}")
    if build and work.build and was == "after":
        ended = work.command("build", work.build)
        if not ended.ok:
            work.notes.append(f"the build command fails on the files as they were, too: {ended.log}")
    return left


def _recover_interrupted(run: Run, listener: Listener, repo: str | os.PathLike[str] | None) -> None:
    """Of a call that was killed, the files as they were."""
    changes = RepositoryChanges.of(run.folder)
    if changes is None or changes.record.status == "undone":
        return
    if changes.record.status == "applied":
        fault = f"this run is applied already, to {changes.repository}"
        hint = f"take it back first: tunesmith apply --undo {shlex.quote(str(run.folder))}"
        hint += f" --repo {shlex.quote(str(changes.repository))}"
        raise BadInput(fault, where=str(run.folder), hint=hint)
    refuse_unnamed(changes.repository, repo, run.folder)
    with repository_locked(changes.repository):
        changes.undo()
    listener.say("an earlier call was killed: the repository is as it was before it")


def _patch_header(ready: PreparedPatch) -> str:
    patch, artefact = ready.patch, ready.artefact
    devices = ", ".join(result.dispatch.device for result in artefact.results)
    tuned = format_count(len(artefact.tuned), "tuned kernel")
    lines = [f"{artefact.problem}, tuned by Tunesmith on {devices}; {patch.delivered} of {tuned}."]
    return "".join(f"# {line}\n" for line in (*lines, *patch.notes))


def _write_run_patch(run: Run, ready: PreparedPatch) -> Path:
    path = run.folder / FOLDER / f"{ready.artefact.name}.patch"
    with explain_disk_errors("write the patch", path):
        path.parent.mkdir(exist_ok=True)
        write_whole(path, (_patch_header(ready) + ready.patch.diff).encode("utf-8", "surrogatepass"))
    return path


def _applied_summary(
    run: Run,
    ready: PreparedPatch,
    ending: Ending,
    patch: Path,
    foretold: ForetoldGain | None,
    notes: tuple[str, ...],
    work: _Application | None = None,
    series: BenchSeries | None = None,
) -> Applied:
    return Applied(
        run=str(run.folder),
        problem=ready.artefact.problem,
        repository=str(ready.repository),
        ending=ending,
        patch=str(patch),
        diff=ready.patch.diff,
        files=tuple(file.path for file in ready.files),
        launches=ready.patch.launches,
        delivered=ready.patch.delivered,
        winners=len(ready.artefact.tuned),
        notes=(*notes, *(work.notes if work is not None else ())),
        tested=tuple(work.tested) if work is not None else (),
        bench=series,
        foretold=foretold,
    )
