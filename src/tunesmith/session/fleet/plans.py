"""A fleet as it is planned: problems, devices, authors, and the cells that are made of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

FLEET_FORMAT = 1  # counts changes of the stored plan
HOUR = 3600.0
# Of devices and authors: part of folders' names and of job scripts.
PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
Setting = bool | int | float | str
Settings = tuple[tuple[str, Setting], ...]  # as `tunesmith tune` takes them, by name


@dataclass(frozen=True)
class FleetProblem:
    folder: str  # its own name in this fleet
    name: str
    digest: str
    weight: float
    files: tuple[tuple[str, str], ...]  # name -> digest: all that it needs to be read again
    template: str = ""  # the one to search, among the files; empty: it is still to be written


@dataclass(frozen=True)
class FleetDevice:
    """One kind of device; a cell may go on at any of its places."""

    name: str
    backend: str = ""
    device: str = ""  # as for --device
    hosts: tuple[tuple[str, str], ...] = ()  # files as for --workers: name -> digest; none: this machine
    gpus: tuple[str, ...] = ()  # of this machine, each a place: as CUDA_VISIBLE_DEVICES names them
    slots: int = 1  # runs at once, at each place
    weight: float = 1.0

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.hosts) or tuple(f"gpu-{g}" for g in self.gpus) or ("here",)


@dataclass(frozen=True)
class FleetAuthor:
    name: str
    settings: Settings = ()


@dataclass(frozen=True)
class FleetCell:
    """One problem on one kind of device by one author: an ordinary run."""

    number: int
    problem: FleetProblem
    device: FleetDevice
    author: FleetAuthor

    @cached_property
    def name(self) -> str:
        return f"{self.problem.folder}@{self.device.name}+{self.author.name}"

    @property
    def weight(self) -> float:
        return self.problem.weight * self.device.weight


@dataclass(frozen=True)
class FleetSlot:
    """Where one cell runs at a time."""

    device: str
    place: str
    number: int
    gpu: str = ""  # the only one that may be seen there; empty: all

    @property
    def name(self) -> str:
        return f"{self.device}/{self.place}/{self.number}"


@dataclass(frozen=True)
class FleetPlan:
    hours: float  # of devices, of all cells together
    problems: tuple[FleetProblem, ...]
    devices: tuple[FleetDevice, ...]
    authors: tuple[FleetAuthor, ...]
    settings: Settings = ()  # of every run
    versions: dict[str, str] = field(default_factory=dict)
    format: int = FLEET_FORMAT


def cells_of(plan: FleetPlan) -> tuple[FleetCell, ...]:
    """Numbered, problem by problem."""
    each = ((p, d, a) for p in plan.problems for d in plan.devices for a in plan.authors)
    return tuple(FleetCell(number, *own) for number, own in enumerate(each))


def slots_of(plan: FleetPlan) -> Iterator[FleetSlot]:
    """One of each place first, so that devices that few cells need are not all taken by one kind."""
    most = max((device.slots for device in plan.devices), default=0)
    for number in range(most):
        for device in plan.devices:
            if number < device.slots:
                gpus = device.gpus or ("",) * len(device.places)
                pairs = zip(device.places, gpus, strict=True)
                yield from (FleetSlot(device.name, place, number, gpu) for place, gpu in pairs)


def other_plan(plan: FleetPlan, wanted: FleetPlan) -> tuple[str, ...]:
    """In which respects a plan is not the one that is wanted, in words. The budget, weights and places may
    change while a fleet is under way."""
    found: list[str] = []
    if [(p.folder, p.digest, p.template) for p in plan.problems] != [
        (p.folder, p.digest, p.template) for p in wanted.problems
    ]:
        own, other = (", ".join(p.folder for p in one.problems[:8]) for one in (plan, wanted))
        changed = "the same as they are now" if own == other else other
        found.append(f"it has the problems {own} as they were then, you ask for {changed}")
    if [(d.name, d.backend) for d in plan.devices] != [(d.name, d.backend) for d in wanted.devices]:
        own, other = (", ".join(d.name for d in one.devices) for one in (plan, wanted))
        found.append(f"it has the devices {own}, you ask for {other}, or for other backends")
    if plan.authors != wanted.authors:
        own, other = (", ".join(a.name for a in one.authors) for one in (plan, wanted))
        found.append(f"it has the authors {own}, you ask for {other}, or for other settings of them")
    if plan.settings != wanted.settings:
        own, other = (", ".join(f"{k}={v}" for k, v in p.settings) or "nothing" for p in (plan, wanted))
        found.append(f"its [tune] is {own}, you ask for {other}")
    return tuple(found)
