"""Several devices of one kind in one run: which ones the user means, and the lab that has them all."""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tunesmith.base.errors import BadInput, DeviceMissing, TunesmithError
from tunesmith.base.text import first_line
from tunesmith.lab.build import Builders
from tunesmith.lab.lab import LabSettings
from tunesmith.lab.pool import BuildHost, DeviceLab, LabPool, SpreadBuilders
from tunesmith.lab.process import WorkerDied
from tunesmith.lab.references import References, references_of
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Enlisted, LeftOut
from tunesmith.run.outcome import Outcome
from tunesmith.run.ports import RunLog
from tunesmith.run.state import State
from tunesmith.session import place as machine
from tunesmith.session.place import HERE, DeviceSlot, Place, WorkerSite, WorkerSource

_NUMBERED = re.compile(r" \([0-9]+\)$")  # of the second and later workers of a device


def posts_for(
    config: RunConfig,
    sources: Sequence[WorkerSource],
    place: WorkerSite,
    compiler: str,
    state: State | None = None,
    say: Callable[[str], None] = lambda _words: None,
) -> tuple[DeviceSlot, ...]:
    """The devices that are meant, where they are several; else nothing. A run that goes on does without those
    that cannot be used, and says so; for one that begins, all must be there."""
    if not is_wanted(config, sources, state):
        return ()
    missing: list[DeviceMissing] | None = [] if state is not None and state.enlisted is not None else None
    posts = posts_of(config, sources, place, state, missing)
    posts = without_other_compilers(posts, compiler, missing)
    for one in missing or ():
        say(f"{one.message}; the run does without it")
    return posts


def is_wanted(config: RunConfig, sources: Sequence[WorkerSource], state: State | None = None) -> bool:
    """Whether several devices are meant, or the run has had several."""
    listed = (machine.device_ids(config.device or source.device) for source in sources)
    may_grow = sources[0].arrivals is not None
    several = len(sources) > 1 or may_grow or any(len(ids) > 1 for ids in listed)
    return several or bool(state and state.enlisted)


def still_there(
    config: RunConfig,
    sources: Sequence[WorkerSource],
    place: WorkerSite,
    state: State,
    say: Callable[[str], None],
) -> Sequence[WorkerSource]:
    """For a run that goes on, where another is left: without those whose devices or compiler are gone."""
    found: list[WorkerSource] = []
    missing: list[DeviceMissing] = []
    for source in sources:
        try:
            if source.measures:
                posts = posts_of(config, (source,), place, state, [])
                _refuse_others(state, posts)
            found.append(source)
        except DeviceMissing as error:
            missing.append(error)
    if not any(source.measures for source in found):
        return sources
    for one in missing:
        say(f"{one.message}; the run does without it")
    return found


def _refuse_others(state: State, posts: Sequence[DeviceSlot]) -> None:
    """What this run has timed elsewhere it does not compare with another driver or compiler."""
    wanted, first = state.device, posts[0]
    if not wanted.absent and wanted.key not in {post.device.key for post in posts}:
        fault = (
            f"{first.name} is {first.device.name} ({first.device.driver}), and the run is on {wanted.name}"
        )
        raise DeviceMissing(f"{fault} ({wanted.driver})")
    if state.baseline is not None:
        without_other_compilers(posts, state.compiler)


def posts_of(
    config: RunConfig,
    sources: Sequence[WorkerSource],
    place: WorkerSite,
    state: State | None = None,
    missing: list[DeviceMissing] | None = None,
) -> tuple[DeviceSlot, ...]:
    """Every device that is meant, in the order in which they were named, all of one kind. Those that are not
    there are put into `missing`, as long as one is; without such a list all must be."""
    found: list[DeviceSlot] = []
    for source in (one for one in sources if one.measures):
        there = replace(place, source=source)
        try:
            listed = machine.ask_devices(there)
            if not listed.devices:
                fault = f"the {place.spec.partition(':')[0]} backend sees no device"
                raise DeviceMissing(fault, hint=machine.DOCTOR)
        except DeviceMissing as error:
            _record_missing(_locate_error(source, error), missing)
            continue
        cards = listed.cards if len(listed.cards) == len(listed.devices) else ("",) * len(listed.devices)
        for device in _wanted_devices(config, source, listed.devices, state, missing):
            name = _post_name(source, device)
            count = sum(post.device == device and post.place.source is source for post in found)
            card = cards[listed.devices.index(device)] or f"{source.machine} {device.platform} {device.id}"
            found.append(DeviceSlot(f"{name} ({count + 1})" if count else name, device, there, card))
    if missing and not found:
        raise missing[0]
    refuse_other_kinds(found)
    return tuple(found)


def _wanted_devices(
    config: RunConfig,
    source: WorkerSource,
    devices: Sequence[Device],
    state: State | None,
    missing: list[DeviceMissing] | None,
) -> list[Device]:
    wanted = config.device or source.device
    ids = machine.device_ids(wanted)
    if not ids and wanted is None and state is not None and state.enlisted is not None:
        there = {_post_name(source, device): device.id for device in devices}
        prefix = f"{source.name} (" if source is not HERE else f"{devices[0].backend} "
        had = [_NUMBERED.sub("", name) for name in state.enlisted.devices if name.startswith(prefix)]
        ids = tuple(there[name] for name in had if name in there)  # the run's own, as it names them
        gone = (name for name in dict.fromkeys(had) if name not in there)
        for name in gone:
            _record_missing(DeviceMissing(f"{name} is not there any more"), missing)
    found: list[Device] = []
    for one in ids or (wanted,):
        try:
            found.append(machine.pick_device(devices, one))
        except DeviceMissing as error:
            _record_missing(_locate_error(source, error), missing)
    return found


def _post_name(source: WorkerSource, device: Device) -> str:
    """As outcomes carry it."""
    return source.identity(device.id) or f"{device.backend} {device.id}"


def _record_missing(error: DeviceMissing, missing: list[DeviceMissing] | None) -> None:
    """Put it to what is missing, where something may be."""
    if missing is None:
        raise error
    missing.append(error)


def _locate_error(source: WorkerSource, error: DeviceMissing) -> DeviceMissing:
    where = f"worker {source.name!r}: " if source.name else ""
    return DeviceMissing(f"{where}{error.message}", hint=error.hint)


def refuse_other_kinds(posts: Sequence[DeviceSlot]) -> None:
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
    posts: Sequence[DeviceSlot], wanted: int, sources: Sequence[WorkerSource] = ()
) -> dict[WorkerSource, int]:
    """Parallel builds on each machine: beside each of its devices a core is left free, up to half of them. Of
    `sources` those that only build have all of theirs."""
    found: dict[WorkerSource, int] = {one: wanted or one.cores for one in sources if not one.measures}
    for source in dict.fromkeys(post.place.source for post in posts):
        count = sum(post.place.source is source for post in posts)
        usual = machine.builder_count(posts[0].device, wanted, source)
        found[source] = wanted or max(1, min(usual, source.cores - count), usual // 2)
    return found


def without_other_compilers(
    posts: Sequence[DeviceSlot], compiler: str, missing: list[DeviceMissing] | None = None
) -> tuple[DeviceSlot, ...]:
    """One compiler builds for all, wherever it runs. `missing` as for `posts_of`."""
    found: list[DeviceSlot] = []
    for post in posts:
        known = post.place.compilers() if compiler else ()
        if compiler and not machine.has_compiler(known, compiler):
            fault = (
                f"the run builds with {compiler}; where {post.name} is there is: "
                f"{machine.format_compilers(known)}"
            )
            _record_missing(DeviceMissing(fault, hint="install the same there, or leave it out"), missing)
        else:
            found.append(post)
    if missing and not found:
        raise missing[0]
    return tuple(found)


def builder_devices(
    sources: Sequence[WorkerSource], posts: Sequence[DeviceSlot], compiler: str, say: Callable[[str], None]
) -> dict[WorkerSource, Device]:
    """Who builds, and for which device there. Of those that only build, whoever has the run's compiler; where
    a backend has but its driver's, whoever has a device of the kind."""
    found = {post.place.source: post.device for post in reversed(posts)}
    for source in (one for one in sources if not one.measures):
        place = replace(posts[0].place, source=source)
        try:
            if compiler:
                known = place.compilers()
                fault = (
                    f"it has {machine.format_compilers(known)}"
                    if not machine.has_compiler(known, compiler)
                    else ""
                )
                found |= {} if fault else {source: posts[0].device}
            else:
                fitting = [d for d in machine.ask_devices(place).devices if d.key == posts[0].device.key]
                fault = "" if fitting else "it has no such device"
                found |= {source: fitting[0]} if fitting else {}
        except DeviceMissing as error:
            fault = first_line(error.message)
        if fault:
            by = compiler or f"the driver of {posts[0].device.name}"
            say(f"worker {source.name!r} does not build: the run does so with {by}, and {fault}")
    return found


def enlist_posts(posts: Sequence[DeviceSlot], log: RunLog) -> tuple[DeviceSlot, ...]:
    """As the journal has them, the first of which times finalists; where others measure from here on, that is
    written down."""
    names, state = tuple(post.name for post in posts), log.state
    if state.enlisted is not None and set(names).isdisjoint(state.devices):
        before = ", ".join(state.devices)
        how = "--workers or --ray, as it was given, goes on there"
        log.listener.say(f"note: measured by {before} so far; {how}")
    if set(names) != set(state.devices):
        log.write(Enlisted(names))
    return tuple(sorted(posts, key=lambda post: log.state.devices.index(post.name)))


@dataclass
class PoolParts:
    """What the labs of a pool have in common. Each knows what its own device has measured: times of another,
    or of an earlier run, are a few per cent off."""

    problem: Problem
    settings: LabSettings
    known: Sequence[Outcome]
    builders: Builders
    options: machine.LabOptions
    references: dict[WorkerSource, References] = field(default_factory=dict)
    turns: dict[str, threading.Lock] = field(default_factory=dict)  # by card

    def lab(self, post: DeviceSlot, count: int) -> DeviceLab:
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
    place: Place,
    settings: LabSettings,
    known: Sequence[Outcome],
    say: Callable[[str], None],
    options: machine.LabOptions,
) -> LabPool:
    """Of the place's sources some may only build: those that have the run's compiler."""
    posts = place.posts
    devices = builder_devices(place.sources, posts, place.compiler, say)
    counts = builders_at(posts, config.builders, [one for one in place.sources if one in devices])
    places = {one: replace(posts[0].place, source=one) for one in counts}
    hosts = [_build_host(places[one], count, devices[one]) for one, count in counts.items()]
    builders = SpreadBuilders(hosts, posts[0].device, compiler=settings.compiler, say=say)
    parts = PoolParts(problem, settings, known, builders, options)
    pool = LabPool(*_open_labs(parts, posts, counts))
    if posts[0].place.source.arrivals is not None:
        recruit_workers(pool, parts, posts, config)
    return pool


def _open_labs(
    parts: PoolParts, posts: Sequence[DeviceSlot], counts: Mapping[WorkerSource, int]
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


def _build_host(place: WorkerSite, count: int, device: Device) -> BuildHost:
    source = place.source
    return BuildHost(
        lambda: place.spawn("build"), lambda: source.gone, count, source.name, source.measures, device
    )


MOMENT = 0.5  # seconds between two looks whether the run is over


def recruit_workers(pool: LabPool, parts: PoolParts, posts: Sequence[DeviceSlot], config: RunConfig) -> None:
    """By a thread of its own, as long as the pool is open: to reach a machine takes seconds."""
    arrivals = posts[0].place.source.arrivals
    assert arrivals is not None
    note = parts.options["progress"]

    def work() -> None:
        taken: list[WorkerSource] = []
        while not pool.is_closing:
            try:
                source = arrivals.get(timeout=MOMENT)
            except queue.Empty:
                continue
            taken.append(source)
            try:
                _take_in(source, pool, parts, posts, config)
            except (TunesmithError, WorkerDied) as error:
                source.close()
                if not pool.is_closing:
                    note(f"the run does without worker {source.name!r}: {error}")
        for source in taken:
            source.close()  # threads of the pool may wait for one that is lost

    threading.Thread(target=work, name="recruit", daemon=True).start()


def _take_in(
    source: WorkerSource, pool: LabPool, parts: PoolParts, posts: Sequence[DeviceSlot], config: RunConfig
) -> None:
    if not source.measures:
        return  # how many build was settled when the run began
    new = posts_of(config, (source,), posts[0].place)
    refuse_other_kinds((posts[0], *new))
    for post in new:
        lab = parts.lab(post, 1)
        if pool.join(lab):
            parts.options["progress"](f"{post.name} measures too from here on")
        else:
            lab.close_own()
