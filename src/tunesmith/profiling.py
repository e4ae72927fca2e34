"""`tunesmith profile`: a problem's kernel or a run's winners, against what their device can do."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tunesmith import machine, registry
from tunesmith.config import RunConfig
from tunesmith.core.candidates import Templates
from tunesmith.core.choose import verified_choice
from tunesmith.core.codec import encode
from tunesmith.core.device import Device
from tunesmith.core.errors import BadInput
from tunesmith.core.ports import Listener
from tunesmith.core.problem import Problem, Workload
from tunesmith.core.profile.counting import NoCounting
from tunesmith.core.profile.diagnose import diagnose
from tunesmith.core.profile.facts import Ceilings
from tunesmith.core.profile.page import ProfilePage, View, WorkloadPage
from tunesmith.core.space import Config
from tunesmith.core.state import fold
from tunesmith.core.template import Template
from tunesmith.deliver.profile_page import page_lines
from tunesmith.deliver.roofline_plot import roofline_svg
from tunesmith.lab.builders import Builders
from tunesmith.lab.ceilings import kept_or_measured
from tunesmith.lab.profiling import Profiler, Subject
from tunesmith.lab.runner import Runner
from tunesmith.machine import temporary_scratch
from tunesmith.problems import load_problem, load_template, reload
from tunesmith.store import JOURNAL, CeilingsCache, FolderTexts, RunFolder, explained

NOT_WANTED = "--no-counters was given"


@dataclass(frozen=True)
class Asked:
    """What to look at. `folder` is where the plot goes unless the user says otherwise."""

    problem: Problem
    subjects: dict[str, tuple[Subject, ...]]  # by workload, the original first
    spec: str
    folder: Path
    plot: str
    template: Template | None = None
    device: Device | None = None  # of a run: no other will do
    compiler: str | None = None  # of a run
    notes: tuple[str, ...] = ()


def profile(
    target: Path,
    config: RunConfig,
    listener: Listener,
    *,
    template: Path | None = None,
    values: str | None = None,
    workloads: Sequence[str] = (),
    counters: bool = True,
    out: Path | None = None,
) -> ProfilePage:
    """`target` is a problem, with or without a template and its `values`, or the folder of a run."""
    if (target / JOURNAL).is_file():
        if template is not None or values is not None:
            raise BadInput(
                "a run has its own template and configurations: --template and --config go with a problem",
                where=str(target),
                hint="leave them out, or name the problem instead of the run",
            )
        asked = _of_run(target)
    else:
        asked = _of_problem(target, template, values, config)
    chosen = _workloads(asked.problem, workloads)
    if out is not None:  # better told now than when all is measured
        with explained("make the folder for the plot", out):
            out.mkdir(parents=True, exist_ok=True)
    with temporary_scratch() as scratch:
        page = _Session(asked, config, listener, scratch, counters).page(chosen)
    if not any(v.profile.seconds for w in page.workloads for v in w.views):
        return page  # there is no point to draw
    return _with_plot(page, out or asked.folder, asked.plot)


def rendered_json(page: ProfilePage) -> bytes:
    return encode(page)


def rendered_lines(page: ProfilePage) -> list[str]:
    return page_lines(page)


# -- what is asked for ----------------------------------------------------------------------------------


def _of_problem(path: Path, template_path: Path | None, values: str | None, config: RunConfig) -> Asked:
    problem, files = load_problem(path)
    template = load_template(template_path, problem, files) if template_path is not None else None
    if template is None and values is not None:
        raise BadInput(
            "--config needs the template whose parameters it sets", hint="name it: --template FILE"
        )
    subjects: tuple[Subject, ...] = (Subject(),)
    notes: tuple[str, ...] = ()
    if template is not None:
        subjects = (Subject(), Subject(template, parse_config(template, values or "")))
        notes = ("the results of the template's kernel were not checked: tunesmith tune does that",)
    return Asked(
        problem,
        {w.name: subjects for w in problem.workloads},
        registry.backend_for(problem.kernel.language, config.backend),
        Path(),
        f"{problem.name}-roofline.svg",
        template,
        notes=notes,
    )


def _of_run(path: Path) -> Asked:
    folder = RunFolder.open(path)
    state = fold(folder.journal().read())
    problem, template = reload(folder, state.started)
    assert state.started is not None
    template_of = Templates(problem, state.device, template, FolderTexts(folder)).lookup(state)
    if state.started.backend == "replay":
        raise BadInput(
            "a run of recorded times has nothing to profile", where=str(path), hint="name another run"
        )
    picked: dict[str, Config | None] = dict.fromkeys((w.name for w in problem.workloads), None)
    notes: tuple[str, ...] = ()
    if state.stopped is None:
        notes = ("the run is not finished: only the original is shown",)
    else:
        picked |= {pick.workload: pick.config for pick in verified_choice(problem, state).picks}
    subjects = {
        name: (Subject(), *([Subject(template_of(config), config)] if config is not None else []))
        for name, config in picked.items()
    }
    spec = registry.ABSENT_FAKE if _is_absent_fake(state.device) else state.started.backend
    own = (state.device, state.compiler)
    return Asked(problem, subjects, spec, path, "roofline.svg", template, *own, notes)


def _is_absent_fake(device: Device) -> bool:
    return device.backend == "fake" and device.absent


def parse_config(template: Template, text: str) -> Config:
    """`BLOCK=128 VEC=4`: values for some parameters, the template's defaults for the others."""
    config = template.default
    known = {p.name: p for p in template.space.params}
    for word in text.replace(",", " ").split():
        name, equals, value = word.partition("=")
        if name not in known:
            raise BadInput(
                f"--config: the template has no parameter {name!r}; it has {', '.join(known)}",
                where=template.path,
                hint='write it as --config "NAME=VALUE NAME=VALUE"',
            )
        try:
            number = int(value, 0)
        except ValueError:
            got = f"{word!r}" if equals else f"{word!r} without a value"
            raise BadInput(
                f"--config: a parameter's value is an integer, got {got}",
                hint=f"write e.g. {name}={known[name].values[0]}",
            ) from None
        known[name].position(number)  # says what is allowed
        config = config.replace(name, number)
    return config


def _workloads(problem: Problem, wanted: Sequence[str]) -> list[Workload]:
    known = {w.name: w for w in problem.workloads}
    for name in wanted:
        if name not in known:
            raise BadInput(
                f"--workload {name!r} is none of the problem's; they are {', '.join(known)}",
                hint="name one of these, or leave it out for all of them",
            )
    return [known[name] for name in dict.fromkeys(wanted)] or list(problem.workloads)


# -- looking --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Session:
    """One device, one pool of builders, everything that is asked for."""

    asked: Asked
    config: RunConfig
    listener: Listener
    scratch: Path
    counters: bool

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
            return kept_or_measured(kept, device, builders, runner, self.listener.note)

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
            registry.instructions_reader(spec),
            ceilings=ceilings,
            seed=self.config.seed,
            progress=self.listener.note,
        )
        try:
            return tuple(self._one(profiler, workload) for workload in workloads)
        finally:
            if runner is not None:
                runner.close()

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
