"""Earlier runs of a template with the same parameters: what they found tells the next search where to begin.

Another device, other sizes, an earlier version of the template: the order of configurations often carries
over, and the searcher finds out soon whether it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tunesmith.core.device import Device
from tunesmith.core.errors import BadInput, TunesmithError
from tunesmith.core.events import Primed
from tunesmith.core.problem import Problem
from tunesmith.core.racing import sound_scores
from tunesmith.core.space import Config
from tunesmith.core.state import State, fold
from tunesmith.core.template import Template
from tunesmith.problems import reload
from tunesmith.store import JOURNAL, RunFolder

LOOKED_AT = 40  # of the runs here, the newest
USED = 3
ROWS = 400  # of one run: its best half, and of the rest every so many


def priors(
    root: Path,
    named: Sequence[Path],
    problem: Problem,
    template: Template,
    device: Device,
    note: Callable[[str], None] = lambda _text: None,
) -> tuple[Primed, ...]:
    """What the runs `named` have found, or with none the newest ones below `root` that fit; of the same
    device first. Runs nobody named that cannot be read are passed over with a note."""
    if named:
        return tuple(_named(path, problem, template) for path in named)
    found: list[tuple[bool, Primed]] = []
    for path in _newest(root):
        try:
            state, own = _read(path)
            primed = _primed(path.name, state, own, problem, template)
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


def _named(path: Path, problem: Problem, template: Template) -> Primed:
    state, own = _read(path)
    primed = _primed(path.resolve().name, state, own, problem, template)
    if isinstance(primed, str):
        raise BadInput(
            f"this run says nothing about {template.path}: {primed}",
            where=str(path),
            hint="name a run of a template with the same parameters, or leave --prior-run out",
        )
    return primed


def _read(path: Path) -> tuple[State, tuple[Problem, Template]]:
    """Whatever is wrong with a run that someone else wrote is bad input, and no fault of ours."""
    folder = RunFolder.open(path)
    try:
        state = fold(folder.journal().read())
        own = reload(folder, state.started)
        sound_scores(own[0], state)
    except TunesmithError:
        raise
    except Exception as error:
        raise BadInput(f"this run cannot be read: {error!r}", where=str(path)) from error
    return state, own


def _primed(
    name: str, state: State, own: tuple[Problem, Template], problem: Problem, template: Template
) -> Primed | str:
    """The run's scores for this template, or why there are none."""
    other_problem, other = own
    if other_problem.name != problem.name:
        return f"its problem is {other_problem.name}, not {problem.name}"
    domains = {param.name: set(param.values) for param in template.space.params}
    if domains.keys() != {param.name for param in other.space.params}:
        listed = ", ".join(param.name for param in other.space.params)
        return f"its parameters are {listed}, not {', '.join(domains)}"
    rows = [
        (Config(tuple((key, values[key]) for key in domains)), tried.score)
        for tried in sound_scores(other_problem, state)
        if all((values := tried.config.as_dict()).get(key) in domain for key, domain in domains.items())
    ]
    if not any(score is not None for _, score in rows):
        return "it has measured no configuration that this template has"
    return Primed(f"{name} on {state.device.name}", tuple(_thinned(rows)))


def _thinned(rows: Sequence[tuple[Config, float | None]]) -> Iterator[tuple[Config, float | None]]:
    if len(rows) <= ROWS:
        yield from rows
        return
    ranked = sorted(rows, key=lambda row: (row[1] is None, -(row[1] or 0.0)))
    yield from ranked[: ROWS // 2]
    rest = ranked[ROWS // 2 :]
    yield from rest[:: -(-len(rest) // (ROWS // 2))]
