"""Earlier runs of a template with the same parameters: what they found tells the next search where to begin.

Another device, other sizes, an earlier version of the template: the order of configurations often carries
over, and the searcher finds out soon whether it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tunesmith.core.device import Device
from tunesmith.core.errors import BadInput, TunesmithError
from tunesmith.core.events import Primed
from tunesmith.core.problem import Problem
from tunesmith.core.scores import scores
from tunesmith.core.space import Config
from tunesmith.core.state import State, fold
from tunesmith.core.template import Template
from tunesmith.problems import reload
from tunesmith.store import JOURNAL, RunFolder

LOOKED_AT = 40  # of the runs here, the newest
USED = 3
ROWS = 400  # of one run: its best half, and of the rest every so many


def priors(
    root: Path, named: Sequence[Path], problem: Problem, template: Template, device: Device
) -> tuple[Primed, ...]:
    """What the runs `named` have found, or with none the newest ones below `root` that fit; of the same
    device first."""
    if named:
        return tuple(_named(path, problem, template) for path in named)
    found: list[tuple[bool, Primed]] = []
    for path in _newest(root):
        try:
            state, own = _read(path)
            is_same = state.device.name == device.name
        except (TunesmithError, OSError, AssertionError):
            continue  # half written, of another version, or taken away while we look: there are others
        primed = _primed(path.name, state, own, problem, template)
        if isinstance(primed, Primed):
            found.append((not is_same, primed))
    found.sort(key=lambda pair: pair[0])
    return tuple(primed for _, primed in found[:USED])


def _newest(root: Path) -> list[Path]:
    journals = [(path.stat().st_mtime_ns, path.parent) for path in root.glob(f"*/{JOURNAL}")]
    return [folder for _, folder in sorted(journals, reverse=True)[:LOOKED_AT]]


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
    folder = RunFolder.open(path)
    state = fold(folder.journal().read())
    return state, reload(folder, state.started)


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
        for tried in scores(other_problem, state)
        if all((values := tried.config.as_dict())[key] in domain for key, domain in domains.items())
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
