"""A run as a user holds it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from tunesmith.deliver.page import report_page
from tunesmith.deliver.page_texts import NO_TEXTS, PageTexts
from tunesmith.deliver.report import report_html, report_json, report_markdown
from tunesmith.errors import BadInput, DeviceMissing, WaitingForModel
from tunesmith.problem.dispatch import ReadyKernel, kernel_for, read_dispatch
from tunesmith.run.report import Report, WorkloadReport
from tunesmith.run.store import RunFolder

if TYPE_CHECKING:
    from tunesmith.session.exporting import Exported


@dataclass(frozen=True)
class BestKernel:
    """What a run delivers: `speedup` is the geometric mean over the workloads, verified."""

    speedup: float
    config: dict[str, int] | None  # the general one; None: the original serves sizes that no workload has
    workloads: tuple[WorkloadReport, ...]
    folder: Path  # the kernels, and dispatch.json, which says which of them serves which sizes
    files: tuple[str, ...]  # in the run's folder

    def __repr__(self) -> str:
        return f"<BestKernel: {self.speedup:.2f}×, {len(self.files)} files in {self.folder}>"

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
        gave = f"{self.best.speedup:.2f}×" if self.best else nothing
        return f"<Run of {found.problem} on {found.device}: {gave}, in {self.folder}>"

    @property
    def best(self) -> BestKernel | None:
        """The kernels delivered; None: the run is not finished, or found nothing better than the original."""
        found = self.result
        if not found.finished or found.geometric_mean is None or not found.tuned:
            return None
        own = self.folder / "tuned"
        return BestKernel(found.geometric_mean, found.general, found.workloads, own, found.tuned)

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
        from tunesmith.session import delivering, notebook

        found = [self]

        def look() -> tuple[str, bool]:
            found[0] = delivering.as_it_stands(RunFolder.open(self.folder))
            return found[0]._repr_html_(), found[0].result.live

        notebook.follow(look, notebook.area())
        return found[0]

    def _repr_html_(self) -> str:
        """What a notebook shows: the table and the plot."""
        return report_html(self.result, str(self.folder), self.resume_command)
