"""`tunesmith profile`: a problem's kernel or a run's winners, against what their device can do."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tunesmith import backends, machine, registry
from tunesmith.caches import CeilingsCache
from tunesmith.config import RunConfig
from tunesmith.core.codec import encode
from tunesmith.core.device import Device
from tunesmith.core.errors import BadInput
from tunesmith.core.ports import Listener
from tunesmith.core.problem import Workload
from tunesmith.core.profile.diagnose import ProfilePage, View, WorkloadPage, diagnose
from tunesmith.core.profile.facts import Ceilings, NoCounting
from tunesmith.deliver.profile_page import page_lines
from tunesmith.deliver.roofline_plot import roofline_svg
from tunesmith.lab.builders import Builders
from tunesmith.lab.ceilings import kept_or_measured
from tunesmith.lab.profiling import Profiler
from tunesmith.lab.runner import Runner
from tunesmith.machine import temporary_scratch
from tunesmith.profile_targets import Asked, of_problem, of_run, workloads_of
from tunesmith.store import JOURNAL, explained

NOT_WANTED = "--no-counters was given"


def profile(
    target: Path,
    config: RunConfig,
    listener: Listener,
    *,
    template: Path | None = None,
    values: str | None = None,
    workloads: Sequence[str] = (),
    counters: bool = True,
    remeasure: bool = False,
    out: Path | None = None,
    chosen_by_flag: Sequence[str] = (),
) -> ProfilePage:
    """`target` is a problem, with or without a template, or the folder of a run; `values` are of the template
    or of that of the run's winner. `chosen_by_flag`: flags that say where, which a run says itself."""
    if (target / JOURNAL).is_file():
        if template is not None or chosen_by_flag:
            flags = [*(["--template"] if template is not None else []), *chosen_by_flag]
            go = "goes" if len(flags) == 1 else "go"
            raise BadInput(
                f"a run has its own template, backend and device: {' and '.join(flags)} {go} with a problem",
                where=str(target),
                hint="leave them out, or name the problem instead of the run",
            )
        asked = of_run(target, values)
    else:
        asked = of_problem(target, template, values, config)
    chosen = workloads_of(asked.problem, workloads)
    if out is not None:  # better told now than when all is measured
        with explained("make the folder for the plot", out):
            out.mkdir(parents=True, exist_ok=True)
    with temporary_scratch() as scratch:
        page = _Session(asked, config, listener, scratch, counters, remeasure).page(chosen)
    if not any(v.profile.seconds for w in page.workloads for v in w.views):
        return page  # there is no point to draw
    return _with_plot(page, out or asked.folder, asked.plot)


def rendered_json(page: ProfilePage) -> bytes:
    return encode(page)


def rendered_lines(page: ProfilePage) -> list[str]:
    return page_lines(page)


# -- looking --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Session:
    """One device, one pool of builders, everything that is asked for."""

    asked: Asked
    config: RunConfig
    listener: Listener
    scratch: Path
    counters: bool
    remeasure: bool

    def page(self, workloads: Sequence[Workload]) -> ProfilePage:
        asked, note = self.asked, self.listener.note
        here = machine.look(asked.spec, self.scratch)
        device, missing = self._device(here)
        compiler = asked.compiler
        if compiler is None:
            compiler = machine.choose_compiler(
                asked.problem, asked.template, device, asked.spec, self.scratch, note
            )
        builders = registry.builders(asked.spec, self.scratch, device, 1, compiler)
        try:
            ceilings, notes = (Ceilings(), ()) if missing else self._ceilings(device, builders)
            pages = self._look(device, builders, ceilings, workloads, present=not missing)
        finally:
            builders.close()
        return ProfilePage(
            problem=asked.problem.name,
            device=device.name,
            driver=device.driver,
            compiler=compiler,
            ceilings=ceilings,
            workloads=pages,
            notes=(*asked.notes, *notes),
            missing=missing,
        )

    def _device(self, here: machine.Here) -> tuple[Device, str]:
        """The device, and why nothing can be measured on it."""
        wanted = self.asked.device
        if wanted is None:
            device = machine.choose_device(here, self.config.device)
            return device, f"{device.name} is not here: {here.trouble}" if device.absent else ""
        same = [d for d in here.devices if d.key == wanted.key]
        if same:
            return same[0], ""
        others = "; ".join(f"{d.name} ({d.driver})" for d in here.devices)
        why = f"here there is {others}" if others else here.trouble
        return wanted, f"the run's device, {wanted.name} ({wanted.driver}), is not here: {why}"

    def _ceilings(self, device: Device, builders: Builders) -> tuple[Ceilings, tuple[str, ...]]:
        cache = CeilingsCache(Path(self.config.cache_dir), self.listener.note)
        with ExitStack() as opened:

            def runner() -> Runner:
                made = registry.runner(self.asked.spec, self.scratch, device)
                opened.callback(made.close)
                return made

            kept = cache if self.config.cache else None
            note = self.listener.note
            return kept_or_measured(kept, device, builders, runner, note, again=self.remeasure)

    def _look(
        self,
        device: Device,
        builders: Builders,
        ceilings: Ceilings,
        workloads: Sequence[Workload],
        *,
        present: bool,
    ) -> tuple[WorkloadPage, ...]:
        spec = self.asked.spec
        runner = registry.runner(spec, self.scratch, device) if present else None
        counting = registry.counting(spec, self.scratch) if self.counters else NoCounting(NOT_WANTED)
        profiler = Profiler(
            self.asked.problem,
            device,
            builders,
            runner,
            counting,
            backends.instructions_reader(spec),
            ceilings=ceilings,
            seed=self.config.seed,
            progress=self.listener.note,
        )
        try:
            self._refuse_what_runs_nowhere(profiler, workloads)
            return tuple(self._one(profiler, workload) for workload in workloads)
        finally:
            if runner is not None:
                runner.close()

    def _refuse_what_runs_nowhere(self, profiler: Profiler, workloads: Sequence[Workload]) -> None:
        wanted = self.asked.wanted
        if wanted is None or wanted.template is None:
            return
        reasons = [profiler.refusal(wanted, workload) for workload in workloads]
        if all(reasons):
            where = " or ".join(workload.name for workload in workloads)
            raise BadInput(
                f"{wanted.name} cannot run at {where}: {'; '.join(dict.fromkeys(reasons))}",
                where=wanted.template.path,
                hint='choose another configuration: --config "NAME=VALUE ..."',
            )

    def _one(self, profiler: Profiler, workload: Workload) -> WorkloadPage:
        views: list[View] = []
        for subject in self.asked.subjects[workload.name]:
            looked = profiler.profile(subject, workload)
            views.append(View(looked.profile, diagnose(looked.profile), looked.notes))
        return WorkloadPage(workload.name, workload.as_dict(), workload.cache == "warm", tuple(views))


def _with_plot(page: ProfilePage, folder: Path, name: str) -> ProfilePage:
    target = folder / name
    try:
        target.write_bytes(roofline_svg(page))
    except OSError as error:  # what was measured is worth more than its picture
        said = f"the plot was not written to {target}: {error.strerror or error}; try --out DIR"
        return replace(page, notes=(*page.notes, said))
    return replace(page, plot=str(target))
