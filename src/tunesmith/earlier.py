"""Earlier runs of a template with the same parameters: what they found tells the next search where to begin.

Another device, other sizes, an earlier version of the template: the order of configurations often carries
over, and the searcher finds out soon whether it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tunesmith.core.candidates import rows_for
from tunesmith.core.device import Device
from tunesmith.core.errors import BadInput, TunesmithError
from tunesmith.core.events import Primed
from tunesmith.core.library import best_of, rows_of, thinned
from tunesmith.core.ports import Tried
from tunesmith.core.problem import Problem
from tunesmith.core.racing import sound_scores
from tunesmith.core.rounds import best_scores
from tunesmith.core.state import State, fold
from tunesmith.core.template import Template
from tunesmith.problems import reload
from tunesmith.store import JOURNAL, RunFolder

LOOKED_AT = 40  # of the runs here, the newest
USED = 3
NOTHING = "it has measured no configuration that this template has"


def priors(
    root: Path,
    named: Sequence[Path],
    problem: Problem,
    template: Template | None,
    device: Device,
    note: Callable[[str], None] = lambda _text: None,
    first: bool = False,
) -> tuple[Primed, ...]:
    """What the runs `named` have found, or with none the newest ones below `root` that fit; of the same
    device first. Runs nobody named that cannot be read are passed over with a note. Where templates are still
    to be written, every run of the problem fits: which of them tells something, the loop will see.
    `first`: what they found best is tried before anything else."""
    if named:
        return tuple(_named(path, problem, template, first) for path in named)
    found: list[tuple[bool, Primed]] = []
    for path in _newest(root):
        try:
            state, own = read_run(path)
            primed = _primed(path.name, state, own, problem, template, first)
        except TunesmithError as error:
            note(f"the earlier run {path.name} is passed over: {error}")
            continue
        if isinstance(primed, Primed):
            found.append((state.device.name != device.name, primed))
    found.sort(key=lambda pair: pair[0])
    return tuple(primed for _, primed in found[:USED])


def _newest(root: Path) -> list[Path]:
    journals = [(_changed(path), path.parent) for path in root.glob(f"*/{JOURNAL}")]
    return [folder for _, folder in sorted(journals, reverse=True)[:LOOKED_AT]]


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:  # taken away while we look
        return 0


def _named(path: Path, problem: Problem, template: Template | None, first: bool) -> Primed:
    state, own = read_run(path)
    primed = _primed(path.resolve().name, state, own, problem, template, first)
    if isinstance(primed, str):
        about = template.path if template is not None else problem.name
        raise BadInput(
            f"this run says nothing about {about}: {primed}",
            where=str(path),
            hint="name a run of a template with the same parameters, or leave --prior-run out",
        )
    return primed


def read_run(path: Path) -> tuple[State, Problem]:
    """Whatever is wrong with a run that someone else wrote is bad input, and no fault of ours."""
    folder = RunFolder.open(path)
    try:
        state = fold(folder.journal().read())
        own, _ = reload(folder, state.started)
        sound_scores(own, state)
    except TunesmithError:
        raise
    except Exception as error:
        raise BadInput(f"this run cannot be read: {error!r}", where=str(path)) from error
    return state, own


def _primed(
    name: str, state: State, other: Problem, problem: Problem, template: Template | None, first: bool
) -> Primed | str:
    """The run's scores for this template, or for the best of its own; or why there are none."""
    if other.name != problem.name:
        return f"its problem is {other.name}, not {problem.name}"
    tried = sound_scores(other, state)
    searched = [t for t in tried if t.config.items]  # a kernel without parameters tells a search nothing
    fitting = [
        t for t in searched if template is None or _names(t) == {p.name for p in template.space.params}
    ]
    if tried and not fitting and template is not None:
        listed = ", ".join(tried[0].config.as_dict()) or "none"
        return f"its parameters are {listed}, not {', '.join(p.name for p in template.space.params)}"
    known = best_scores(tuple(fitting))
    if not known:
        return NOTHING
    best = max(
        known, key=lambda own: known[own]
    )  # of several templates one: their scores have little in common
    return primed_by(name, state, other, best, template, first) or NOTHING


def primed_by(
    name: str, state: State, problem: Problem, candidate: str, template: Template | None, first: bool
) -> Primed | None:
    """What a run found of one of its templates, as far as `template` has its parameters and values."""
    rows = rows_of(problem, state, candidate)
    if template is not None:
        rows = rows_for(template, rows)
    if not any(score is not None for _, score in rows):
        return None
    best = best_of(problem, state, candidate) if first else ()
    return Primed(f"{name} on {state.device.name}", tuple(thinned(rows)), best)


def _names(tried: Tried) -> set[str]:
    return set(tried.config.as_dict())
