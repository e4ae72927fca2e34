"""What need not be measured, by what its build tells: it cannot run, it is a twin of another, or all that
were like it in a bad respect are far behind.

Every verdict is an event with its reason, so the report can show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.core.events import Pruned, Surveyed
from tunesmith.core.ports import Tried
from tunesmith.core.space import Config
from tunesmith.core.state import State
from tunesmith.core.survey import most

WITNESSES = 4  # measured configurations it takes to condemn the others like them
FAR = 0.25  # log: how far behind the best, at every workload, each of them is
LOW = 25  # per cent of occupancy: from there on nobody is condemned for it


def prune(state: State, tried: Callable[[], Sequence[Tried]]) -> Iterator[Pruned]:
    """All that can be said now of those waiting to be measured. `tried` is called where it matters."""
    # What another template built and never measured vouches for nobody.
    own = {found.config.candidate for found in state.pool if found.config is not None}

    def vouches(config: Config) -> bool:
        return config.candidate in own or bool(state.searched().count(config))

    witnesses: list[_Witness] | None = None
    for found in state.pool:
        config = found.config
        if config is None:
            continue
        if found.unable:
            why = found.refused[0]
            yield Pruned(config, "cannot_run", f"{why.status}: {why.detail}")
            continue
        alike = (other.config for other in state.surveyed.of(found.what_runs))
        twin = next(other for other in alike if other is not None and vouches(other))
        if twin != config:
            name = twin if twin.candidate == config.candidate else twin.label
            yield Pruned(config, "same_code", f"builds and launches the same as {name}")
        elif (most(found, "spills") or 0) or (most(found, "occupancy") or LOW) < LOW:
            if witnesses is None:
                known = [t for t in tried() if vouches(t.config) and state.surveyed.count(t.config)]
                witnesses = _witnesses(known, {t.config: state.surveyed.of(t.config)[-1] for t in known})
            if verdict := _condemned(config, found, witnesses):
                yield verdict


@dataclass(frozen=True)
class _Witness:
    """A configuration that was measured, and whether it is far behind the best at every workload."""

    spills: int
    occupancy: int | None
    is_far: bool


def _witnesses(tried: Sequence[Tried], built: Mapping[Config, Surveyed]) -> list[_Witness]:
    measured = [t for t in tried if t.config in built and t.score is not None]
    places = range(len(measured[0].at)) if measured else range(0)
    values = [[v for t in measured if (v := t.at[place]) is not None] for place in places]
    best = [max(at, default=0.0) for at in values]
    return [
        _Witness(
            most(built[t.config], "spills") or 0,
            most(built[t.config], "occupancy"),
            all(here is None or here <= best[place] - FAR for place, here in enumerate(t.at)),
        )
        for t in measured
    ]


def _condemned(config: Config, found: Surveyed, witnesses: Sequence[_Witness]) -> Pruned | None:
    own = most(found, "spills") or 0
    alike = [w for w in witnesses if 0 < w.spills <= own]
    if len(alike) >= WITNESSES and all(w.is_far for w in alike):
        words = f"spills {own} bytes of registers; the {len(alike)} measured that spill no more are all far"
        return Pruned(config, "spills", f"{words} behind the best at every workload")
    share = most(found, "occupancy")
    if share is None or share >= LOW:
        return None
    alike = [w for w in witnesses if w.occupancy is not None and share <= w.occupancy < LOW]
    if len(alike) >= 2 * WITNESSES and all(w.is_far for w in alike):
        words = f"{share} % occupancy; the {len(alike)} measured from there up to {LOW} % are all far"
        return Pruned(config, "occupancy", f"{words} behind the best at every workload")
    return None
