"""What `tunesmith profile` is asked to look at: a problem's kernel, a configuration, a run's winners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith import backends
from tunesmith.config import RunConfig
from tunesmith.core.candidates import Templates
from tunesmith.core.choose import verified_choice
from tunesmith.core.device import Device
from tunesmith.core.errors import BadInput
from tunesmith.core.prior import best_config
from tunesmith.core.problem import Problem, Workload
from tunesmith.core.space import Config
from tunesmith.core.state import State, fold
from tunesmith.core.template import Template
from tunesmith.lab.profiling import ProfileSubject
from tunesmith.problems import load_problem, load_template, templates_of
from tunesmith.store import RunFolder

NOT_CHECKED = "the results of the template's kernel were not checked: tunesmith tune does that"


@dataclass(frozen=True)
class Asked:
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


def of_problem(path: Path, template_path: Path | None, values: str | None, config: RunConfig) -> Asked:
    problem, files = load_problem(path)
    template = load_template(template_path, problem, files) if template_path is not None else None
    if template is None and values is not None:
        raise BadInput(
            "--config needs the template whose parameters it sets", hint="name it: --template FILE"
        )
    subjects: tuple[ProfileSubject, ...] = (ProfileSubject(),)
    notes: tuple[str, ...] = ()
    wanted: ProfileSubject | None = None
    if template is not None:
        wanted = ProfileSubject(template, parse_config(template, values or ""))
        subjects = (ProfileSubject(), wanted)
        notes = (NOT_CHECKED,)
    return Asked(
        problem,
        {w.name: subjects for w in problem.workloads},
        backends.backend_for(problem.kernel.language, config.backend),
        Path(),
        f"{problem.name}-roofline.svg",
        template,
        notes=notes,
        wanted=wanted,
    )


def of_run(path: Path, values: str | None) -> Asked:
    folder = RunFolder.open(path)
    state = fold(folder.journal().read())
    templates = templates_of(folder, state)
    problem = templates.problem
    assert state.started is not None, "a run that can be read has begun"
    if backends.kind(state.started.backend).from_file:
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
        wanted = ProfileSubject(named, parse_config(named, values))
        notes = (*notes, NOT_CHECKED) if wanted.config not in winners else notes
    template_of = templates.lookup(state)
    subjects = {
        name: _each_once(ProfileSubject(template_of(config), config) if config is not None else None, wanted)
        for name, config in picked.items()
    }
    spec = backends.spec_of(state.device)
    own = (state.device, state.compiler)
    return Asked(problem, subjects, spec, path, "roofline.svg", templates.given, *own, notes, wanted)


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


def parse_config(template: Template, text: str) -> Config:
    """`BLOCK=128 VEC=4`: values for some parameters, the template's defaults for the others."""
    config = template.default
    known = {p.name: p for p in template.space.params}
    seen: set[str] = set()
    for word in text.replace(",", " ").split():
        name, equals, value = word.partition("=")
        if name in seen:
            raise BadInput(f"--config: {name} is set twice", hint=f"say once what {name} shall be")
        seen.add(name)
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
                where=template.path,
                hint=f"write e.g. {name}={known[name].values[0]}",
            ) from None
        if number not in known[name].positions:
            allowed = ", ".join(map(str, known[name].values))
            raise BadInput(
                f"--config: {name}={number} is not in its domain: allowed are {allowed}",
                where=template.path,
                hint="choose one of them, or add the value to the template's [params]",
            )
        config = config.replace(name, number)
    return config


def workloads_of(problem: Problem, wanted: Sequence[str]) -> list[Workload]:
    known = {w.name: w for w in problem.workloads}
    for name in wanted:
        if name not in known:
            raise BadInput(
                f"--workload {name!r} is none of the problem's; they are {', '.join(known)}",
                hint="name one of these, or leave it out for all of them",
            )
    return [known[name] for name in dict.fromkeys(wanted)] or list(problem.workloads)
