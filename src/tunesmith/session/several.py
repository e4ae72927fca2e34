"""Several devices of one kind in one run: which ones the user means, and the lab that has them all."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tunesmith.errors import BadInput, DeviceMissing
from tunesmith.lab.builders import Builders
from tunesmith.lab.lab import LabSettings
from tunesmith.lab.pool import BuildHost, DeviceLab, LabPool, SpreadBuilders
from tunesmith.lab.references import References, references_of
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Enlisted, LeftOut
from tunesmith.run.outcome import Outcome
from tunesmith.run.ports import Journal, Listener, write_down
from tunesmith.run.state import State
from tunesmith.session import machine
from tunesmith.session.workplace import HERE, WorkerSource, Workplace
from tunesmith.text import first_line


@dataclass(frozen=True)
class Post:
    """A device that measures, and where its worker is."""

    name: str  # as outcomes carry it
    device: Device
    place: Workplace
    card: str  # two workers of one card take turns

    def at(self, place: Workplace) -> Post:
        """The same for workers of another folder."""
        return replace(self, place=replace(place, source=self.place.source))


def posts_for(
    config: RunConfig, sources: Sequence[WorkerSource], place: Workplace, compiler: str, state: State | None
) -> tuple[Post, ...]:
    """The devices that are meant, where they are several; else nothing."""
    if not is_wanted(config, sources, state):
        return ()
    posts = posts_of(config, sources, place, state)
    refuse_other_compilers(posts, compiler)
    return posts


def is_wanted(config: RunConfig, sources: Sequence[WorkerSource], state: State | None = None) -> bool:
    """Whether several devices are meant, or the run has had several."""
    listed = (machine.device_ids(config.device or source.device) for source in sources)
    may_grow = sources[0].arrivals is not None
    several = len(sources) > 1 or may_grow or any(len(ids) > 1 for ids in listed)
    return several or bool(state and state.enlisted)


def posts_of(
    config: RunConfig, sources: Sequence[WorkerSource], place: Workplace, state: State | None = None
) -> tuple[Post, ...]:
    """Every device that is meant, in the order in which they were named; all are there, and of one kind."""
    found: list[Post] = []
    for source in (one for one in sources if one.measures):
        there = replace(place, source=source)
        listed = machine.ask_devices(there)
        cards = listed.cards or ("",) * len(listed.devices)
        for device in _meant(config, source, listed.devices, state):
            own = source.identity(device.id) or f"{device.backend} {device.id}"
            count = sum(post.device == device and post.place.source is source for post in found)
            card = cards[listed.devices.index(device)] or f"{source.machine} {device.platform} {device.id}"
            found.append(Post(f"{own} ({count + 1})" if count else own, device, there, card))
    refuse_other_kinds(found)
    return tuple(found)


def _meant(
    config: RunConfig, source: WorkerSource, devices: Sequence[Device], state: State | None
) -> list[Device]:
    wanted = config.device or source.device
    ids = machine.device_ids(wanted)
    if not ids and wanted is None and source is HERE and state is not None and state.enlisted is not None:
        here = [name.partition(" (")[0] for name in state.enlisted.devices]  # the run's own, as it names them
        ids = tuple(d.id for name in here for d in devices if name == f"{d.backend} {d.id}")
    try:
        return [machine.pick_device(devices, one) for one in ids or (wanted,)]
    except DeviceMissing as error:
        where = f"worker {source.name!r}: " if source.name else ""
        raise DeviceMissing(f"{where}{error.message}", hint=error.hint) from error


def refuse_other_kinds(posts: Sequence[Post]) -> None:
    def kind(device: Device) -> object:
        return device.key, replace(device.limits, memory=1, max_allocation=1)

    first = posts[0]
    other = next((post for post in posts if kind(post.device) != kind(first.device)), None)
    if other is not None:
        both = (f"{p.name} is {p.device.name} ({p.device.driver})" for p in (first, other))
        fault = f"the devices of a run are of one kind: {', and '.join(both)}"
        raise BadInput(
            fault, hint="name devices that are alike, and tune for the others in a run of their own"
        )
    if len(posts) > 1 and (first.device.is_host or first.device.untimed):
        fault = f"{first.device.name} is a processor: what is timed on it is disturbed by what else it does"
        raise BadInput(fault, hint="name one device; several must be GPUs")


def builders_at(
    posts: Sequence[Post], wanted: int, sources: Sequence[WorkerSource] = ()
) -> dict[WorkerSource, int]:
    """Parallel builds on each machine: beside each of its devices a core is left free, up to half of them. Of
    `sources` those that only build have all of theirs."""
    found: dict[WorkerSource, int] = {one: wanted or one.cores for one in sources if not one.measures}
    for source in dict.fromkeys(post.place.source for post in posts):
        own = sum(post.place.source is source for post in posts)
        usual = machine.builder_count(posts[0].device, wanted, source)
        found[source] = wanted or max(1, min(usual, source.cores - own), usual // 2)
    return found


def refuse_other_compilers(posts: Sequence[Post], compiler: str) -> None:
    """One compiler builds for all, wherever it runs."""
    for post in posts if compiler else ():
        known = post.place.compilers()
        if tuple(compiler.split(" ", 1)) not in known:
            fault = f"the run builds with {compiler}; where {post.name} is there is: {machine.listed(known)}"
            raise DeviceMissing(fault, hint="install the same there, or leave it out")


def enlisted(
    posts: Sequence[Post], state: State, journal: Journal, listener: Listener
) -> tuple[tuple[Post, ...], State]:
    """As the journal has them, the first of which times finalists; where others measure from here on, that is
    written down."""
    names = tuple(post.name for post in posts)
    if set(names) != set(state.devices):
        state = write_down(Enlisted(names), state, journal, listener)
    return tuple(sorted(posts, key=lambda post: state.devices.index(post.name))), state


@dataclass
class PoolParts:
    """What the labs of a pool have in common. Each knows what its own device has measured: times of another,
    or of an earlier run, are a few per cent off."""

    problem: Problem
    settings: LabSettings
    known: Sequence[Outcome]
    builders: Builders
    options: dict[str, Any]  # as `machine.make_lab` takes them
    references: dict[WorkerSource, References] = field(default_factory=dict)
    turns: dict[str, threading.Lock] = field(default_factory=dict)  # by card

    def lab(self, post: Post, count: int) -> DeviceLab:
        """`count` is how many builds its machine has at once."""
        source = post.place.source
        if source not in self.references:
            self.references[source] = references_of(self.problem, post.place.spawn, count)
        made = machine.make_lab(
            self.problem,
            post.device,
            post.place,
            settings=self.settings,
            known=[outcome for outcome in self.known if outcome.device == post.name],
            identity=post.name,
            shared={"builders": self.builders, "references": self.references[source]},
            make=DeviceLab,
            **self.options,
        )
        assert isinstance(made, DeviceLab)
        made.turn = self.turns.setdefault(post.card, threading.Lock())
        return made


def make_pool(
    config: RunConfig,
    problem: Problem,
    posts: Sequence[Post],
    settings: LabSettings,
    known: Sequence[Outcome],
    sources: Sequence[WorkerSource] = (),
    **options: Any,
) -> LabPool:
    """Of `sources` some may only build."""
    counts = builders_at(posts, config.builders, sources)
    hosts = [_build_host(replace(posts[0].place, source=one), count) for one, count in counts.items()]
    builders = SpreadBuilders(hosts, posts[0].device, compiler=settings.compiler)
    parts = PoolParts(problem, settings, known, builders, options)
    pool = LabPool(*_labs(parts, posts, counts))
    if posts[0].place.source.arrivals is not None:
        from tunesmith.session.recruiting import recruit  # which few runs need

        recruit(pool, parts, posts, config)
    return pool


def _labs(
    parts: PoolParts, posts: Sequence[Post], counts: Mapping[WorkerSource, int]
) -> tuple[list[DeviceLab], Builders, list[LeftOut]]:
    """One whose device is missing by now is done without, if another is left."""
    made: list[DeviceLab] = []
    missing: list[DeviceMissing] = []
    lost: list[LeftOut] = []
    try:
        for post in posts:
            try:
                made.append(parts.lab(post, counts[post.place.source]))
            except DeviceMissing as error:
                missing.append(error)
                lost.append(LeftOut(post.name, first_line(error.message), lost=True))
        if not made:
            raise missing[0]
    except BaseException:
        for lab in made:
            lab.close()
        parts.builders.close()
        raise
    return made, parts.builders, lost


def _build_host(place: Workplace, count: int) -> BuildHost:
    return BuildHost(lambda: place.spawn("build"), lambda: place.source.gone, count)
