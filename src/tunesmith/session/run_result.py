"""A run as a user holds it, what it leaves in its folder, and a run as it stands: all from its journal."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from tunesmith.deliver.page import report_page
from tunesmith.deliver.page_texts import NO_TEXTS, PageTexts
from tunesmith.deliver.report import PLOTS, report_html, report_json, report_markdown
from tunesmith.deliver.results import TUNED, results
from tunesmith.errors import BadInput, DeviceMissing, WaitingForModel
from tunesmith.problem.dispatch import ReadyKernel, kernel_for, read_dispatch
from tunesmith.run.candidates import Templates, draft_name
from tunesmith.run.config import RunConfig
from tunesmith.run.report import Report, WorkloadReport, unfinished_name
from tunesmith.run.state import State
from tunesmith.run.store import OBJECTS, RunFolder
from tunesmith.session import certificates, library, problems

if TYPE_CHECKING:
    from tunesmith.session.exporting import Exported


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
        from tunesmith.session import calling

        if not self.result.finished:
            fault = "this run is not finished, so nothing can be called yet"
            raise BadInput(fault, where=str(self.folder), hint=f"go on with: {self.resume_command}")
        if self.best is None:
            words = f"{self.result.problem}: the run found nothing better, the original serves every call"
            warnings.warn(words, RuntimeWarning, stacklevel=2)
        framework = calling.framework_of((*arrays, *named.values()))
        return calling.calls_of(self.folder.resolve(), framework)(*arrays, **named)

    def export(self, to: str, out: str | Path | None = None) -> Exported:
        """As `tunesmith export` writes it, into a new folder."""
        from tunesmith.session.exporting import export

        return export([self], to, Path(out) if out is not None else None)

    def templates(self, winner: bool = False, still_open: Sequence[str] = ()) -> dict[str, str]:
        """The templates that won, by the names of their files, as they were searched; with `winner` reduced
        to what won, with only the choices open in which the winners differ and those that are named."""
        from tunesmith.session.kept import kept_templates

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
        from tunesmith.deliver.display import report_text

        folder = str(self.folder)
        return report_text(self.result, folder, self.resume_command, self.library, stream, full)

    def follow(self) -> Run:
        """Wait until nobody is at work on it any more, and show it meanwhile in a notebook, drawn anew as it
        goes on; the run as it then stands."""
        from tunesmith.session import notebook

        found = [self]

        def look() -> tuple[str, bool]:
            found[0] = as_it_stands(RunFolder.open(self.folder))
            return found[0]._repr_html_(), found[0].result.live

        notebook.follow(look, notebook.area())
        return found[0]

    def _repr_html_(self) -> str:
        """What a notebook shows: the table and the plot."""
        return report_html(self.result, str(self.folder), self.resume_command)


# -- delivering ---------------------------------------------------------------------------------------------


def deliver(folder: RunFolder, templates: Templates, state: State, config: RunConfig) -> Run:
    """Derived from the journal alone, so writing it twice changes nothing."""
    made = results(templates, state, folder.get)
    files = made.files(templates, state)
    for name in (TUNED, PLOTS):
        inside = {file: data for file, data in files.items() if file.startswith(f"{name}/")}
        folder.replace_folder(name, {file.removeprefix(f"{name}/"): data for file, data in inside.items()})
    for name, data in files.items():
        if "/" not in name:
            folder.write(name, data)
    certificates.write(folder, templates, state, files)
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
    made = results(templates, state, folder.get)
    report, texts = made.report, made.texts
    if (found := report.so_far) is not None:  # its template is in its file, or still among the objects alone
        # The name that a finished run delivers; of a draft, which no gate has seen, its own.
        own, drafted = templates.problem, found.status == "drafted"
        name = draft_name(own, found.template) if drafted else unfinished_name(own)
        if missing is not None:
            folder.write(name, folder.get(found.digest))
        file = name if folder.holds(name, found.digest) else f"{OBJECTS}/{found.digest}"
        report = replace(report, so_far=replace(found, file=file))
    if missing is None and not report.finished and (since := folder.held_for()) is not None:
        report = replace(report, live=True, reason="running", seconds=report.seconds + since)
    return Run(report, folder.path, folder.go_on, missing, texts=texts)
