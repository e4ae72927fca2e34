"""A reading before it is a `Kernel`: what both ways of reading come to, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tunesmith.csource.nodes import Expr
from tunesmith.expert.model.kernel import Kept, Step, Task, Team
from tunesmith.expert.model.reach import OutOfReach, Reach
from tunesmith.expert.model.scenario import Scenario, Unknown, number_of


@dataclass(frozen=True)
class Reading:
    tasks: tuple[Task, ...]
    steps: tuple[Step, ...]
    team: Team
    lanes: Expr | None
    kept: tuple[Kept, ...] = ()
    barriers: int = 0
    notes: tuple[str, ...] = ()
    reach: tuple[Reach, ...] = ()
    apart: tuple[tuple[Reach, ...], ...] = ()  # `reach` by loop, where each is over the whole grid


def check_reach(reading: Reading, launches: Iterable[Scenario]) -> None:
    for scenario in launches:
        numbers = {**dict(scenario.parameters), **scenario.builtins((0, 0, 0), 0)}
        for reach in reading.reach:
            if reach.goes_on:
                continue
            try:
                bound, count = number_of(reach.bound, numbers), number_of(reach.count, numbers)
            except Unknown:
                continue
            if count < bound:
                sizes = ", ".join(f"{name} = {value}" for name, value in scenario.sizes)
                raise OutOfReach(
                    f"with {sizes} the launch comes to {count} values of '{reach.name}', and the kernel's "
                    f"own test allows {bound}"
                )
