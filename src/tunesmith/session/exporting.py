"""Exports of runs: what was delivered, as the certificate names it, in the form that a program takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from tunesmith.deliver import names_for, target_named
from tunesmith.deliver.exports.artefact import DeviceResult, Target, one_artefact
from tunesmith.errors import BadInput
from tunesmith.run.files import write_whole
from tunesmith.run.store import RunFolder
from tunesmith.session import calling, problems
from tunesmith.session.run_result import Run
from tunesmith.text import counted


@dataclass(frozen=True)
class Exported:
    """What an export wrote. `kernels`: the tuned kernels in it, of all that won; `left_out`: why others are
    not; `notes`: what else is not as in the run."""

    target: str
    problem: str
    devices: tuple[str, ...]
    folder: str
    files: tuple[str, ...]
    kernels: int
    winners: int
    left_out: tuple[str, ...]
    notes: tuple[str, ...] = ()
    version: int = 1

    @property
    def delivered(self) -> str:
        return f"delivered: {self.kernels} of {counted(self.winners, 'tuned kernel')}"


def export(runs: Sequence[Run], name: str, out: Path | None) -> Exported:
    """The runs are of one problem, each on another kind of device."""
    target = target_named(name, runs[0].result.language if runs else "")
    artefact = one_artefact(tuple(result_of(run, target) for run in runs))
    made = target.export(artefact)
    folder = out if out is not None else Path(f"{artefact.name}-{name.replace('.', '-')}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        hint = "name an empty or a new folder with -o, or remove it"
        fault = "an export goes into an empty folder, and this one is not"
        raise BadInput(fault, where=str(folder), hint=hint)
    for file, data in made.files.items():
        path = folder.joinpath(*PurePosixPath(file).parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, data)
        except OSError as error:
            hint = "name another folder with -o"
            raise BadInput(f"cannot be written: {error.strerror}", where=str(path), hint=hint) from error
    left_out = (*(why for r in artefact.results for why in r.dispatch.left_out), *made.left_out)
    return Exported(
        target=name,
        problem=artefact.problem,
        devices=tuple(result.dispatch.device for result in artefact.results),
        folder=str(folder),
        files=tuple(made.files),
        kernels=len(artefact.tuned) - len(made.left_out) if made.delivered is None else made.delivered,
        winners=sum(result.dispatch.winners for result in artefact.results),
        left_out=left_out,
        notes=made.notes,
    )


def result_of(run: Run, target: Target) -> DeviceResult:
    """What a run delivered, for a target; BadInput where it has nothing for it."""
    where = str(run.folder)
    if not run.result.finished:
        fault = "this run is not finished, so it has delivered nothing yet"
        raise BadInput(fault, where=where, hint=f"go on with: {run.resume_command}")
    files = calling.delivered_files(run.folder)
    dispatch = calling.dispatch_in(run.folder, files)
    if dispatch.language not in target.languages:
        others = ", ".join(names_for(dispatch.language))
        own = " and ".join(target.languages)
        fault = f"the export {target.name} is for {own}, this kernel is {dispatch.language}"
        raise BadInput(fault, where=where, hint=f"name one of: {others}")
    if not dispatch.tuned:
        hint = "tune longer, with other sizes, or with a model; the report says what was tried"
        raise BadInput("this run found nothing better than the original", where=where, hint=hint)
    found = DeviceResult(run.folder.name, dispatch, files)
    if not target.from_journal:
        return found
    state, templates = problems.state_and_templates(RunFolder(run.folder))
    kernel = templates.problem.kernel
    return replace(found, kernel_path=kernel.path, kernel_text=kernel.text, state=state, templates=templates)
