"""The ports: what the loop needs from searchers, labs, planners and journals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, runtime_checkable

from tunesmith.base.codec import encode_json
from tunesmith.base.text import digest_of
from tunesmith.problem.device import Device
from tunesmith.problem.dispatch import Dispatch
from tunesmith.problem.plan import show_sizes
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run import events as ev
from tunesmith.run.events import Declined as Declined
from tunesmith.run.outcome import Outcome, Timing, Trial
from tunesmith.run.state import State, apply_record
from tunesmith.space.configset import Config, ConfigSet
from tunesmith.space.space import Focus, Region, Side, Space, build_region


@dataclass(frozen=True)
class Delivery:
    """The dispatch and the files it names; `binaries` are stored by digest, and named here."""

    dispatch: Dispatch
    files: dict[str, bytes]
    binaries: dict[str, str]
    builds: dict[str, ev.VerifiedBuild]  # by the digest of an entry
    configs: dict[str, Config]  # of tuned entries, by digest
    general: Config | None
    made_from: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of a stranger's entries, by digest

    @property
    def entries_digest(self) -> str:
        return digest_of(encode_json(self.dispatch.entries))


@dataclass(frozen=True)
class SizedCall:
    """A call of what is delivered, with these sizes."""

    sizes: tuple[tuple[str, int], ...]
    workload: str = ""  # whose sizes these are
    cache: Literal["cold", "warm"] = "cold"

    @property
    def name(self) -> str:
        return self.workload or show_sizes(dict(self.sizes)) + (", warm" if self.cache == "warm" else "")


Power = Literal["build", "rehearse", "time", "serve", "profile"]  # of a lab


class Lab(Protocol):
    """Experiments. Outcomes come back in the order the trials were submitted, so that a run's decisions
    depend on its measurements alone and never on which process happened to be faster. With several devices
    they come as they are ready; then decisions depend on the order in which the journal has them, too."""

    @property
    def lacks(self) -> Mapping[Power, str]:
        """What this lab cannot do, and why: to time anything, to call what is delivered, to profile."""
        ...

    def baseline(self) -> ev.Baseline: ...
    def extend(self, wanted: ev.Extended) -> ev.Extended:
        """Try further cases on the original: what it fails is set aside, the rest is tested from now on."""
        ...

    def admit(self, template: Template) -> None: ...
    def build(self, trial: Trial) -> None: ...
    def built(self) -> ev.Surveyed: ...
    def drop_builds(self) -> None:
        """Nobody will ask for what was to be built and has not been collected."""
        ...

    def submit(self, trial: Trial, device: str = "") -> None:
        """To the device of that name, where the trial is for one of several."""
        ...

    def collect(self) -> Outcome | None:
        """None: one of several devices was lost or has joined meanwhile, and `changed` tells."""
        ...

    def changed(self) -> ev.LeftOut | ev.Enlisted | None:
        """One of several devices that no longer answers, or all of them where one has joined. Each is told
        once; of the last that is left it is never told that it is lost."""
        ...

    def leave_out(self, device: str) -> None:
        """One of several, from now on; what it has begun it ends."""
        ...

    def verify(self, trial: Trial, later: Sequence[Trial] = ()) -> ev.Verified:
        """Those that come after it may be built meanwhile."""
        ...

    def serve(self, delivery: Delivery, calls: Sequence[SizedCall]) -> ev.Served:
        """Make the calls through the delivered dispatch, and time what serves against the original."""
        ...

    def profile(self, config: Config | None, workload: str, seconds: float) -> ev.Profiled:
        """What bounds a kernel that takes so long; asked for only while nothing is being measured."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Tried:
    """What came of a configuration, as log speed-ups: over all workloads, and at each. None: it failed."""

    config: Config
    score: float | None
    at: tuple[float | None, ...] = ()  # in the order of the problem's workloads; empty where there is one


@dataclass(frozen=True)
class Prior:
    """An earlier run's scores for a template with the same parameters: another device, other sizes. Its
    scale is its own; what may carry over is the order."""

    name: str
    rows: tuple[tuple[Config, float | None], ...]


@dataclass(frozen=True)
class SearchView:
    """All a searcher may see."""

    space: Space
    configs: ConfigSet
    default: Config
    tried: tuple[Tried, ...]
    in_flight: tuple[Config, ...]
    budget_left: int | None
    seed: int
    closed: frozenset[Config] = frozenset()  # never to be asked for, and nothing will be known of them
    weights: tuple[float, ...] = ()  # of the workloads
    priors: tuple[Prior, ...] = ()
    asked: int | None = None  # so many it has picked, for this purpose; None: all that is tried or in flight
    pool: tuple[Config, ...] | None = None  # built, of which alone it may ask; None: of everything
    # Of what is built, by the compiler.
    static: Mapping[Config, tuple[float, ...]] = field(default_factory=dict)
    focus: Focus | None = None  # the prior by profiles: where to look first
    part: Region | None = None  # of which alone it may ask; None: of everything
    first: tuple[Config, ...] = ()  # known to be good elsewhere

    @property
    def seen(self) -> frozenset[Config]:
        return self.closed.union(self.in_flight, (tried.config for tried in self.tried))

    @property
    def open(self) -> Sequence[Config] | ConfigSet | Region:
        """What may be asked for, seen or not."""
        if self.pool is not None:
            return self.pool
        return self.configs if self.part is None else self.part

    def on(self, side: Side) -> SearchView:
        """The same with nothing open but one side of the focus."""
        if self.focus is None:
            return self
        if self.pool is None:
            return replace(self, part=build_region(self.configs, self.space.params, self.focus.texts, side))
        return replace(self, pool=tuple(c for c in self.pool if self.focus.holds(c) == (side == "inside")))

    @property
    def untried_first(self) -> tuple[Config, ...]:
        """The default, to be asked for first: the author's own guess shows early whether anything works. Then
        what is known to be good elsewhere."""
        asked, seen, open_ = dict.fromkeys((self.default, *self.first)), self.seen, self.open
        return tuple(config for config in asked if config not in seen and config in open_)

    @property
    def turn(self) -> int:
        """The number of the searcher's next pick: what a gate tried, or a compiler refused, was none."""
        return len(self.tried) + len(self.in_flight) if self.asked is None else self.asked

    def with_asked(self, proposal: Proposal) -> SearchView:
        """The same once this has been asked for."""
        return replace(
            self,
            in_flight=(*self.in_flight, *proposal.configs),
            asked=None if self.asked is None else self.asked + len(proposal.configs),
        )

    def room(self, n: int) -> int:
        """How many of n the budget leaves."""
        return n if self.budget_left is None else min(n, self.budget_left)


@dataclass(frozen=True)
class Proposal:
    """What to try next, the most promising first, and the log speed-up that the best of it may still add;
    None where the searcher has no idea."""

    configs: tuple[Config, ...]
    gain: float | None = None
    followed: frozenset[Config] = frozenset()  # of these: picked by what earlier runs say


class Searcher(Protocol):
    name: str

    def ask(self, view: SearchView, n: int) -> Proposal:
        """Up to n configurations never tried before, the default first of all; fewer or none when nothing is
        left to try or the budget is."""
        ...


class Planner(Protocol):
    """A question is answered by a model; then the planner is asked again: the reply is in the state."""

    def decide(self, state: State) -> ev.Decided | ev.Question: ...


@dataclass(frozen=True)
class Refactoring:
    """What an author is asked for: the kernel as a template with these moves, in this order."""

    moves: tuple[str, ...]
    without: tuple[tuple[str, int], ...] = ()  # values of parameters that proved wrong: left out
    failure: str = ""  # the gate's words about the last draft, where this is another try


@dataclass(frozen=True)
class Written:
    """A template file. `moves` are those in it; `refused` those that do not apply, and why."""

    text: str
    moves: tuple[str, ...]
    refused: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    author: str = ""  # the model that wrote it; empty: the expert
    skipped: tuple[tuple[str, str], ...] = ()  # moves in it, and a kernel of the call that they leave alone


class Author(Protocol):
    """Turns a kernel into a template. The same task gives the same text."""

    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined: ...


class Tester(Protocol):
    """Cases beyond those that are tested anyway, as far as they can be cases of the problem."""

    def cases(self, state: State) -> ev.Extended | ev.Question: ...


class ModelWriter(Protocol):
    """Writes what was decided by asking a model. It looks at the state, where the replies are."""

    def write(self, state: State, decision: ev.Decided) -> Written | Declined | ev.Question: ...

    def faults(self, template: Template) -> str | None:
        """Why a template that a model wrote must not be built, in words; None where it may."""
        ...


class MoveAuthor(Author, Protocol):
    """One that works by moves."""

    def available(
        self, problem: Problem, device: Device
    ) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Moves that apply to a kernel, and those that do not with the reason."""
        ...


class OwnAuthor(MoveAuthor, Protocol):
    """Of kernels that only one backend has, in place of the expert."""

    reading: tuple[str, ...]  # what such a kernel is, in words

    def moves_in(self, problem: Problem) -> tuple[str, ...]:
        """In the order in which they are tried."""
        ...


class Texts(Protocol):
    """Texts that a run keeps, by digest."""

    def put(self, text: str) -> str: ...
    def get(self, digest: str) -> str: ...


class Journal(Protocol):
    def read(self) -> Iterator[ev.Recorded]: ...
    def append(self, event: ev.Event) -> ev.Recorded: ...


class ResultCache(Protocol):
    """Timings of earlier runs, by result key."""

    def get(self, key: str) -> Timing | None: ...
    def put(self, key: str, timing: Timing) -> None: ...


class Inbox(Protocol):
    """Where whoever watches leaves instructions for the run."""

    def waiting(self) -> Sequence[ev.RunInstruction]: ...
    def drop(self, id: str) -> None:
        """It is in the journal."""


@runtime_checkable
class Listener(Protocol):
    """Whoever shows progress."""

    def event(self, record: ev.Recorded, state: State) -> None: ...
    def note(self, text: str) -> None:
        """True only for now, and may be left out."""

    def say(self, text: str) -> None:
        """Worth a line of its own."""


@dataclass(frozen=True)
class MoveOffer:
    """A move that applies to a kernel. What is not known is left empty."""

    name: str
    about: str = ""  # what it does
    place: str = ""  # where: arrays, loops with their lines, sizes
    parameters: tuple[str, ...] = ()  # that it adds, as a template declares them
    remedies: tuple[str, ...] = ()  # of a diagnosis, that it can be

    @property
    def words(self) -> str:
        """What it does, and where."""
        about = self.about.rstrip(".")
        return f"{about} ({self.place})" if about and self.place else about


@dataclass(frozen=True)
class MoveCatalogue:
    reading: tuple[str, ...] = ()  # what the expert makes of the kernel, in words with line numbers
    offers: tuple[MoveOffer, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # moves that do not apply, and why
    skipped: tuple[tuple[str, str], ...] = ()  # moves that leave a kernel of the call alone: which, and why
    beyond: tuple[str, ...] = ()  # what keeps the expert from reading it, with lines; empty: it is read
    of: str = ""  # the kernel that this is of, in words; empty: the original
    text: str = ""  # of that kernel, where it is not the original

    @property
    def available(self) -> tuple[str, ...]:
        return tuple(offer.name for offer in self.offers)

    def offer(self, name: str) -> MoveOffer:
        """One that does not apply is its name and nothing more."""
        return next((offer for offer in self.offers if offer.name == name), MoveOffer(name))


@dataclass
class RunLog:
    """The journal of a run, and the state it comes to."""

    journal: Journal
    state: State
    listener: Listener

    def write(self, event: ev.Event) -> None:
        """It is in the journal before anybody acts on it."""
        record = self.journal.append(event)
        self.state = apply_record(self.state, record)
        self.listener.event(record, self.state)
