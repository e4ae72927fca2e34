"""Profiles of a problem's kernel, one configuration or a run's winners, against what their device can do."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tunesmith import backends
from tunesmith.backends.port import NoCounting
from tunesmith.base.errors import BadInput
from tunesmith.base.files import explain_disk_errors, write_whole
from tunesmith.deliver.pages.plots import roofline_svg
from tunesmith.lab.profile import Profiler, ProfileSubject, known_or_measured
from tunesmith.lab.runner import Runner
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem, Workload
from tunesmith.problem.template import Template
from tunesmith.profiles.diagnose import diagnose_profile
from tunesmith.profiles.facts import Ceilings, ProfilePage, View, WorkloadPage
from tunesmith.run.candidates import Templates, parse_config
from tunesmith.run.config import RunConfig
from tunesmith.run.folder import CeilingsCache, RunFolder
from tunesmith.run.ports import Listener
from tunesmith.run.prior import best_config
from tunesmith.run.race import verified_choice
from tunesmith.run.state import State
from tunesmith.session import place as machine
from tunesmith.session.problems import LoadedProblem, load_template, state_and_templates
from tunesmith.space.configset import Config

NOT_WANTED = "--no-counters was given"
NOT_CHECKED = "the results of the template's kernel were not checked: tunesmith tune does that"


def profile_target(
    target: ProfileTarget,
    config: RunConfig,
    listener: Listener,
    *,
    workloads: Sequence[str] = (),
    counters: bool = True,
    remeasure: bool = False,
    out: Path | None = None,
) -> ProfilePage:
    chosen = workloads_of(target.problem, workloads)
    if out is not None:  # better told now than when all is measured
        with explain_disk_errors("make the folder for the plot", out):
            out.mkdir(parents=True, exist_ok=True)
    with machine.temporary_scratch() as scratch:
        page = _profile_page(target, config, listener, scratch, chosen, counters, remeasure)
    if not any(v.profile.seconds for w in page.workloads for v in w.views):
        return page  # there is no point to draw
    plot = (out or target.folder) / target.plot
    try:
        write_whole(plot, roofline_svg(page))
    except OSError as error:  # what was measured is worth more than its picture
        said = f"the plot was not written to {plot}: {error.strerror or error}; try --out DIR"
        return replace(page, notes=(*page.notes, said))
    return replace(page, plot=str(plot))


# -- what to look at -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProfileTarget:
    """What to look at. `folder` is where the plot goes unless the user says otherwise."""

    problem: Problem
    subjects: dict[str, tuple[ProfileSubject, ...]]  # by workload, the original first
    spec: str
    folder: Path
    plot: str
    template: Template | None = None
    device: Device | None = None  # of a run: no other will do
    compiler: str | None = None  # of a run
    notes: tuple[str, ...] = ()
    wanted: ProfileSubject | None = None  # a configuration that the user names: it must run somewhere


def of_problem(
    loaded: LoadedProblem, template_path: Path | None, values: str | None, config: RunConfig
) -> ProfileTarget:
    """`values` are those of the template's parameters that are not to be the default's."""
    problem, files = loaded
    template = load_template(template_path, problem, files) if template_path is not None else None
    if template is None and values is not None:
        raise BadInput(
            "--config needs the template whose parameters it sets", hint="name it: --template FILE"
        )
    wanted = (
        ProfileSubject(template, parse_config(template, values or "", "--config: "))
        if template is not None
        else None
    )
    return ProfileTarget(
        problem,
        {w.name: _each_once(wanted) for w in problem.workloads},
        backends.backend_for(problem.kernel.language, config.backend),
        Path(),
        f"{problem.name}-roofline.svg",
        template,
        notes=(NOT_CHECKED,) if wanted is not None else (),
        wanted=wanted,
    )


def of_run(path: Path, values: str | None) -> ProfileTarget:
    """`values` are of the template of the run's winner."""
    state, templates = state_and_templates(RunFolder.open(path))
    problem = templates.problem
    assert state.started is not None, "a run that can be read has begun"
    if backends.find_backend_kind(state.started.backend).from_file:
        raise BadInput(
            "a run of recorded times has nothing to profile", where=str(path), hint="name another run"
        )
    picked: dict[str, Config | None] = dict.fromkeys((w.name for w in problem.workloads), None)
    notes: tuple[str, ...] = ()
    winners: tuple[Config, ...] = ()
    if state.stopped is None:
        notes = ("the run is not finished: its winners are not known yet",)
    else:
        choice = verified_choice(problem, state)
        picked |= {pick.workload: pick.config for pick in choice.picks}
        winners = choice.configs()
    wanted: ProfileSubject | None = None
    if values is not None:
        named = _template_of_winner(problem, state, templates, winners, path)
        wanted = ProfileSubject(named, parse_config(named, values, "--config: "))
        notes = (*notes, NOT_CHECKED) if wanted.config not in winners else notes
    template_of = templates.lookup(state)
    subjects = {
        name: _each_once(ProfileSubject(template_of(config), config) if config is not None else None, wanted)
        for name, config in picked.items()
    }
    spec = backends.spec_of(state.device)
    seen = (templates.given, state.device, state.compiler, notes, wanted)
    return ProfileTarget(problem, subjects, spec, path, "roofline.svg", *seen)


def _template_of_winner(
    problem: Problem, state: State, templates: Templates, winners: Sequence[Config], path: Path
) -> Template:
    """Of the general winner; where there is none, of the best so far, or the one that was given."""
    best = winners[0] if winners else best_config(problem, state) if state.baseline is not None else None
    if best is not None:
        return templates.lookup(state)(best)
    if templates.given is not None:
        return templates.given
    raise BadInput(
        "--config sets parameters of the winner's template, and this run has no template that was searched",
        where=str(path),
        hint="leave it out, or name the problem and --template FILE instead of the run",
    )


def _each_once(*others: ProfileSubject | None) -> tuple[ProfileSubject, ...]:
    """The original first; a configuration that is also the winner stands there once."""
    found = [ProfileSubject()]
    for subject in others:
        if subject is not None and subject.config not in [known.config for known in found]:
            found.append(subject)
    return tuple(found)


def workloads_of(problem: Problem, wanted: Sequence[str]) -> list[Workload]:
    known = {w.name: w for w in problem.workloads}
    for name in wanted:
        if name not in known:
            fault = f"--workload {name!r} is none of the problem's; they are {', '.join(known)}"
            raise BadInput(fault, hint="name one of these, or leave it out for all of them")
    return [known[name] for name in dict.fromkeys(wanted)] or list(problem.workloads)


# -- looking --------------------------------------------------------------------------------------------


def _profile_page(
    target: ProfileTarget,
    config: RunConfig,
    listener: Listener,
    scratch: Path,
    workloads: Sequence[Workload],
    counters: bool,
    remeasure: bool,
) -> ProfilePage:
    """One device, one pool of builders, everything that is asked for."""
    problem, spec, note = target.problem, target.spec, listener.note
    place = machine.WorkerSite(spec, scratch, config.sandbox)
    device, missing = _profile_device(target, config, machine.find_local_devices(place))
    compiler = target.compiler
    if compiler is None:
        compiler = machine.choose_compiler(problem, target.template, device, place, note)
    with ExitStack() as opened:
        builders = machine.make_builders(place, device, 1, compiler)
        opened.callback(builders.close)

        def runner(closed_by: ExitStack) -> Runner:
            made = machine.make_runner(place, device)
            closed_by.callback(made.close)
            return made

        ceilings, notes = Ceilings(), tuple[str, ...]()
        if not missing:
            stored = CeilingsCache(Path(config.cache_dir), note) if config.cache else None
            with ExitStack() as once:
                begin = partial(runner, once)
                ceilings, notes = known_or_measured(stored, device, builders, begin, note, again=remeasure)
        profiler = Profiler(
            problem,
            device,
            builders,
            None if missing else runner(opened),
            place.counting() if counters else NoCounting(NOT_WANTED),
            backends.instructions_reader(spec),
            ceilings=ceilings,
            seed=config.seed,
            progress=note,
        )
        _refuse_what_runs_nowhere(target.wanted, profiler, workloads)
        pages = tuple(_workload_page(target.subjects[each.name], profiler, each) for each in workloads)
    return ProfilePage(
        problem=problem.name,
        device=device.name,
        driver=device.driver,
        compiler=compiler,
        ceilings=ceilings,
        workloads=pages,
        notes=(*target.notes, *notes),
        missing=missing,
    )


def _profile_device(
    target: ProfileTarget, config: RunConfig, here: machine.LocalDevices
) -> tuple[Device, str]:
    """The device, and why nothing can be measured on it."""
    wanted = target.device
    if wanted is None:
        device = machine.choose_device(here, config.device)
        return device, f"{device.name} is not here: {here.trouble}" if device.absent else ""
    same = [d for d in here.devices if d.key == wanted.key]
    if same:
        return same[0], ""
    others = "; ".join(f"{d.name} ({d.driver})" for d in here.devices)
    why = f"here there is {others}" if others else here.trouble
    return wanted, f"the run's device, {wanted.name} ({wanted.driver}), is not here: {why}"


def _refuse_what_runs_nowhere(
    wanted: ProfileSubject | None, profiler: Profiler, workloads: Sequence[Workload]
) -> None:
    if wanted is None or wanted.template is None:
        return
    reasons = [profiler.refusal(wanted, workload) for workload in workloads]
    if all(reasons):
        where = " or ".join(workload.name for workload in workloads)
        fault = f"{wanted.name} cannot run at {where}: {'; '.join(dict.fromkeys(reasons))}"
        hint = 'choose another configuration: --config "NAME=VALUE ..."'
        raise BadInput(fault, where=wanted.template.path, hint=hint)


def _workload_page(
    subjects: Sequence[ProfileSubject], profiler: Profiler, workload: Workload
) -> WorkloadPage:
    looks = (profiler.profile(subject, workload) for subject in subjects)
    views = tuple(View(looked.profile, diagnose_profile(looked.profile), looked.notes) for looked in looks)
    return WorkloadPage(workload.name, workload.as_dict(), workload.cache == "warm", views)
