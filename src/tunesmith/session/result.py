"""A run as a user holds it, what it leaves in its folder, and a run as it stands: all from its journal."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TextIO

from tunesmith.base.errors import BadInput, DeviceMissing, WaitingForModel
from tunesmith.base.files import write_whole
from tunesmith.base.text import format_count
from tunesmith.deliver import names_for, no_target_takes, target_named
from tunesmith.deliver.artefact import DeviceResult, Target, one_artefact
from tunesmith.deliver.certificate import DISPATCH
from tunesmith.deliver.pages.page import (
    NO_TEXTS,
    PLOTS,
    PageTexts,
    report_html,
    report_json,
    report_markdown,
    report_page,
)
from tunesmith.deliver.results import TUNED, build_results
from tunesmith.deliver.runtime.manifest import BadDispatch
from tunesmith.deliver.runtime.manifest import read_dispatch as read_manifest
from tunesmith.deliver.runtime.operator import Delivered, Operator
from tunesmith.problem.dispatch import Dispatch, ReadyKernel, kernel_for, read_dispatch
from tunesmith.run.candidates import Templates, draft_name
from tunesmith.run.config import RunConfig
from tunesmith.run.folder import CERTIFICATE, OBJECTS, RunFolder
from tunesmith.run.report import Report, WorkloadReport, unfinished_name
from tunesmith.run.state import State
from tunesmith.session import certify, library, problems
from tunesmith.session.certify import NotCertified, certified_file, read_certificate


@dataclass(frozen=True)
class BestKernel:
    """What a run delivers: `speedup` is the geometric mean over the workloads, verified; where little is
    known of it, what it is at least."""

    speedup: float
    config: dict[str, int] | None  # the general one; None: the original serves sizes that no workload has
    workloads: tuple[WorkloadReport, ...]
    folder: Path  # the kernels, and dispatch.json, which says which of them serves which sizes
    files: tuple[str, ...]  # in the run's folder
    interval: tuple[float, float] = (0.0, math.inf)  # 95 %
    headline: str = ""  # the speed-up in words

    def __repr__(self) -> str:
        return f"<BestKernel: {self.headline}, {len(self.files)} files in {self.folder}>"

    def kernel_for(self, sizes: Mapping[str, int]) -> ReadyKernel:
        """Which of the kernels serves a call with these sizes, and how it is launched."""
        return kernel_for(read_dispatch((self.folder / "dispatch.json").read_bytes()), sizes)


@dataclass(frozen=True)
class Run:
    """A run as it stands: finished, or as far as it went."""

    result: Report
    folder: Path
    resume_command: str  # what to type in a shell, where it is not finished
    missing: DeviceMissing | WaitingForModel | None = None  # why it goes no further here
    library: tuple[str, ...] = ()  # what has become of its templates in the library
    texts: PageTexts = field(default=NO_TEXTS, repr=False)  # what its page shows beside the report

    def __repr__(self) -> str:
        found = self.result
        nothing = "nothing better found" if found.finished else "running" if found.live else "not finished"
        gave = self.best.headline if self.best else nothing
        return f"<Run of {found.problem} on {found.device}: {gave}, in {self.folder}>"

    @property
    def best(self) -> BestKernel | None:
        """The kernels delivered; None: the run is not finished, or found nothing better than the original."""
        found, figure = self.result, self.result.figure
        if not found.finished or figure is None or not found.tuned:
            return None
        what = figure.shown, found.general, found.workloads, self.folder / "tuned", found.tuned
        return BestKernel(*what, (figure.low, figure.high), figure.words)

    def kernel(self, /, *arrays: Any, **named: Any) -> Any:
        """Call what the run delivered, on the arrays' device: the kernel for their sizes, or the original.

        Arrays are PyTorch tensors, CuPy arrays, or for OpenCL pyopencl's or NumPy's: all of them in the
        kernel's order, or without the outputs, which are then returned. Scalars, and sizes that no shape
        tells, are passed by name.
        """
        if not self.result.finished:
            fault = "this run is not finished, so nothing can be called yet"
            raise BadInput(fault, where=str(self.folder), hint=f"go on with: {self.resume_command}")
        if self.best is None:
            words = f"{self.result.problem}: the run found nothing better, the original serves every call"
            warnings.warn(words, RuntimeWarning, stacklevel=2)
        framework = framework_of((*arrays, *named.values()))
        return calls_of(self.folder.resolve(), framework)(*arrays, **named)

    def export(self, to: str, out: str | Path | None = None) -> Exported:
        """As `tunesmith export` writes it, into a new folder."""
        return export_runs([self], to, Path(out) if out is not None else None)

    def templates(self, winner: bool = False, still_open: Sequence[str] = ()) -> dict[str, str]:
        """The templates that won, by the names of their files, as they were searched; with `winner` reduced
        to what won, with only the choices open in which the winners differ and those that are named."""
        from tunesmith.session.check import kept_templates

        return kept_templates(self.folder, winner, tuple(still_open))

    def template(self, winner: bool = False, still_open: Sequence[str] = ()) -> str:
        """The one that won; BadInput where several did."""
        found = self.templates(winner, still_open)
        if len(found) > 1:
            fault = f"{len(found)} templates won: {', '.join(found)}"
            raise BadInput(fault, where=str(self.folder), hint="ask for them all: run.templates()")
        return next(iter(found.values()))

    def report(
        self,
        form: Literal["text", "md", "html", "json"] = "text",
        stream: TextIO | None = None,
        full: bool = False,
    ) -> str:
        """As `tunesmith report` prints it; a table as wide as suits the stream it is for. With `full` the
        text has all that was tried behind what was verified; the other forms always have."""
        if form == "json":
            return report_json(self.result).decode()
        if form == "md":
            return report_markdown(self.result)
        if form == "html":
            return report_page(self.result, self.texts)
        if form != "text":
            raise BadInput(f"a report is text, md, html or json; got {form!r}", hint='pass e.g. "md"')
        from tunesmith.deliver.pages.terminal import report_text

        folder = str(self.folder)
        return report_text(self.result, folder, self.resume_command, self.library, stream, full)

    def follow(self) -> Run:
        """Wait until nobody is at work on it any more, and show it meanwhile in a notebook, drawn anew as it
        goes on; the run as it then stands."""
        from tunesmith.session import progress

        found = [self]

        def look_again() -> tuple[str, bool]:
            found[0] = as_it_stands(RunFolder.open(self.folder))
            return found[0]._repr_html_(), found[0].result.live

        progress.follow_display(look_again, progress.notebook_area())
        return found[0]

    def _repr_html_(self) -> str:
        """What a notebook shows: the table and the plot."""
        return report_html(self.result, str(self.folder), self.resume_command)


# -- delivering ---------------------------------------------------------------------------------------------


def deliver_run(folder: RunFolder, templates: Templates, state: State, config: RunConfig) -> Run:
    """Derived from the journal alone, so writing it twice changes nothing."""
    made = build_results(templates, state, folder.get)
    files = made.files(templates, state)
    for name in (TUNED, PLOTS):
        inside = {file: data for file, data in files.items() if file.startswith(f"{name}/")}
        folder.replace_folder(name, {file.removeprefix(f"{name}/"): data for file, data in inside.items()})
    for name, data in files.items():
        if "/" not in name:
            folder.write(name, data)
    certify.write_certificate(folder, templates, state, files)
    stored = library.keep_run(config, folder, templates.problem, templates, state)
    return Run(made.report, folder.path, folder.go_on, library=tuple(stored), texts=made.texts)


def as_it_stands(folder: RunFolder, missing: DeviceMissing | WaitingForModel | None = None) -> Run:
    """A run, finished or not, from its journal. `missing` is why it goes no further here, and may stay so:
    then the best template becomes a file of its own; else nothing is written."""
    state, templates = problems.state_and_templates(folder)
    return run_of(folder, templates, state, missing)


def run_of(
    folder: RunFolder,
    templates: Templates,
    state: State,
    missing: DeviceMissing | WaitingForModel | None = None,
) -> Run:
    """The same, of a journal that has been read."""
    made = build_results(templates, state, folder.get)
    report, texts = made.report, made.texts
    if (found := report.so_far) is not None:  # its template is in its file, or still among the objects alone
        # The name that a finished run delivers; of a draft, which no gate has seen, its own.
        problem, drafted = templates.problem, found.status == "drafted"
        name = draft_name(problem, found.template) if drafted else unfinished_name(problem)
        if missing is not None:
            folder.write(name, folder.get(found.digest))
        file = name if folder.holds(name, found.digest) else f"{OBJECTS}/{found.digest}"
        report = replace(report, so_far=replace(found, file=file))
    if missing is None and not report.finished and (since := folder.held_for()) is not None:
        report = replace(report, live=True, reason="running", seconds=report.seconds + since)
    return Run(report, folder.path, folder.go_on, missing, texts=texts)


_FRAMEWORKS = ("torch", "cupy", "pyopencl", "numpy")


def delivered_files(folder: Path) -> dict[str, bytes]:
    """What lies below `tuned/`, by name; each to the byte what the certificate names."""
    start = "tuned/"
    try:
        return {
            name.removeprefix(start): certified_file(folder, name, digest)
            for name, digest in read_certificate(folder / CERTIFICATE).files.items()
            if name.startswith(start)
        }
    except NotCertified as error:
        hint = "put it back, or tune again; see: tunesmith verify RUN"
        fault = f"{error}: it is not what the run's certificate names"
        raise BadInput(fault, where=str(folder), hint=hint) from error


def dispatch_in(folder: Path, files: dict[str, bytes]) -> Dispatch:
    if "dispatch.json" not in files:
        raise BadInput("this run delivered no dispatch", where=str(folder), hint="tune again")
    return read_dispatch(files["dispatch.json"], where=str(folder / DISPATCH))


def operator_of(folder: Path) -> Operator:
    files = delivered_files(folder)
    dispatch = dispatch_in(folder, files)
    builds: Iterable[Any] = ()
    if dispatch.language == "cuda":
        from tunesmith.deliver.cuda.original_ptx import builds_of  # which few runs need

        builds = builds_of(dispatch.entries, files, dispatch.architecture)
    try:
        manifest = read_manifest(files["dispatch.json"], str(folder / DISPATCH))
        return Operator([Delivered(manifest, files.__getitem__, tuple(builds))])
    except BadDispatch as error:
        raise BadInput(str(error), where=str(folder), hint="tune again") from error


@lru_cache(maxsize=64)
def calls_of(folder: Path, framework: str) -> Any:
    """What is called with that framework's arrays. Kept: a second call loads nothing."""
    operator = operator_of(folder)
    language = operator.results[0].dispatch.language
    if language == "opencl":
        from tunesmith.deliver.runtime.opencl_op import OpenclCalls

        return OpenclCalls(operator)
    if framework == "torch":
        from tunesmith.deliver.runtime.torch_op import TorchCalls

        return TorchCalls(operator)
    if framework == "cupy":
        from tunesmith.deliver.runtime.cupy_op import CupyCalls

        return CupyCalls(operator)
    raise TypeError(
        f"{operator.name} is a {language} kernel: pass PyTorch tensors or CuPy arrays on the device, "
        f"got arrays of {framework}"
    )


def framework_of(values: Iterable[object]) -> str:
    """Whose arrays they are; the first that is one tells."""
    for value in values:
        for kind in type(value).__mro__:
            package = kind.__module__.partition(".")[0]
            if package in _FRAMEWORKS and not isinstance(value, int | float):
                return "pyopencl" if package == "numpy" else package
    raise TypeError(
        "no array is passed: pass PyTorch tensors, CuPy arrays, or for OpenCL pyopencl's or NumPy's"
    )


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
        return f"delivered: {self.kernels} of {format_count(self.winners, 'tuned kernel')}"


def export_runs(runs: Sequence[Run], name: str, out: Path | None) -> Exported:
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
    files = delivered_files(run.folder)
    dispatch = dispatch_in(run.folder, files)
    if dispatch.language not in target.languages:
        others = ", ".join(names_for(dispatch.language))
        languages = " and ".join(target.languages)
        fault = f"the export {target.name} is for {languages}, this kernel is {dispatch.language}"
        hint = f"name one of: {others}" if others else no_target_takes(dispatch.language)
        raise BadInput(fault, where=where, hint=hint)
    if not dispatch.tuned:
        hint = "tune longer, with other sizes, or with a model; the report says what was tried"
        raise BadInput("this run found nothing better than the original", where=where, hint=hint)
    found = DeviceResult(run.folder.name, dispatch, files)
    if not target.from_journal:
        return found
    state, templates = problems.state_and_templates(RunFolder(run.folder))
    kernel = templates.problem.kernel
    return replace(found, kernel_path=kernel.path, kernel_text=kernel.text, state=state, templates=templates)
