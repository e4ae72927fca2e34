"""The facts of a run, in the order they happened. The journal holds these and nothing else remembers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Literal, get_args

from tunesmith.problem.cases import ExtraCase
from tunesmith.problem.device import Device, Resources
from tunesmith.problem.plan import OutputErrors, Status
from tunesmith.problem.template import Combination
from tunesmith.profiles.facts import Diagnosis
from tunesmith.run.dialogue import Instructed as Instructed
from tunesmith.run.dialogue import Replied as Replied
from tunesmith.run.dialogue import Requested as Requested
from tunesmith.run.dialogue import Unanswered as Unanswered
from tunesmith.run.outcome import NO_SIDES, DataSides, Outcome, Result, Trial
from tunesmith.run.outcome import AskedOf as AskedOf
from tunesmith.run.outcome import Enlisted as Enlisted
from tunesmith.run.outcome import LeftOut as LeftOut
from tunesmith.run.outcome import Rehearsed as Rehearsed
from tunesmith.run.protection import Protection
from tunesmith.run.sanitized import Sanitized
from tunesmith.space.params import Config
from tunesmith.space.space import Focus

# How a kernel is made faster: by templates that are searched, by kernels that roles write, or that one
# conversation writes.
Strategy = Literal["template", "rewrite", "single"]
MovesOffered = Literal["usual", "all", "none"]  # which models are told of the expert's: see `run/config`


@dataclass(frozen=True)
class Settings:
    """What the user asked of this run; fixed once it has started."""

    search: str = "default"
    evals: int | None = None
    seconds: float | None = None
    seed: int = 0
    width: int = 8  # trials in flight
    ahead: int = 0  # configurations built before it is decided which to measure; 0: as their turn comes
    finalists: int = 3
    use_cache: bool = True
    prune: bool = True
    steer: bool = False  # whether profiles are a prior of the search; old journals do not say, `tune` does
    profile: Literal["static", "counters"] = "static"  # counters cost seconds for each kernel and workload
    models: str = ""  # who plays the roles, as the user named them; empty: the expert plays all
    repairs: int = 3  # times a model may mend what it wrote, in one round
    rounds: int | None = None  # refactorings at most
    device_seconds: float | None = None  # in which trials may have the device
    moves: MovesOffered = "usual"
    drafts: int = 1  # of a round, side by side, in old journals; nothing asks for several any more
    tokens: int | None = None  # sent and received by models
    dollars: float | None = None  # that models may cost
    strategy: Strategy = "template"
    linear: bool = False  # with rewrite: a round goes on from the last kernel, not from the best
    library: bool = False  # whether winning templates are stored; journals from before it do not say
    checks_best: bool = (
        False  # in full, before the next round; `tune` does, journals from before it do not say
    )
    ceilings: bool = False  # those stored of the device are used, though timings of other runs are not
    plain: bool = False  # a model rewrites the kernel plainly, before anything else


STORED = "library:"  # begins the name of a stored template, among the moves of a decision


@dataclass(frozen=True)
class Started:
    problem: str
    files: tuple[tuple[str, str], ...]  # name as the problem spells it -> digest of the stored copy
    template: str  # name in `files`; empty when there is none
    backend: str
    device: Device
    settings: Settings
    versions: tuple[tuple[str, str], ...]
    compiler: str = ""  # name and version, where the backend has several: one for both sides
    priors: int = 0  # so many `Primed` follow
    origin: str = ""  # what it searches again: a run, a template; empty: it begins from the kernel
    notes: tuple[str, ...] = ()  # on the launch, for whoever reads the speed-ups
    salt: int = 0  # drawn for this run: values of its cases follow from it as well; 0: from the seed alone
    protection: Protection | None = None  # of workers, as this machine had it; None: an older run
    # Templates given that a model once wrote: name, empty the first one's, -> author.
    authors: tuple[tuple[str, str], ...] = ()
    weights: tuple[tuple[str, float], ...] = ()  # of the workloads; empty: equal, or an older run


@dataclass(frozen=True)
class SurveyedBuild:
    """One build of a configuration and the workloads it serves; several only where sizes are baked in."""

    workloads: tuple[str, ...]
    source_digest: str
    code_digest: str = ""  # empty: it does not build
    resources: Resources | None = None
    occupancy: int | None = None  # per cent, the least over its launches at its workloads
    launches: str = ""  # digest of all its launches: with the code, what will run


@dataclass(frozen=True)
class Surveyed:
    """What the compiler says of a configuration before anything has run: where the device is absent, or to
    choose what is worth its time."""

    config: Config | None  # None: the original
    builds: tuple[SurveyedBuild, ...]
    refused: tuple[Result, ...] = ()  # for each workload it cannot run at: the status, and why

    @property
    def what_runs(self) -> tuple[tuple[str, str], ...]:
        """Code and launches: two configurations for which they are the same are one."""
        return tuple((build.code_digest, build.launches) for build in self.builds)

    @property
    def unable(self) -> bool:
        """Whether there is no workload it could run at."""
        return len(self.refused) == sum(len(build.workloads) for build in self.builds)

    @property
    def status(self) -> Status:
        """One word for all of it, as for an outcome."""
        return self.refused[0].status if self.unable and self.refused else Status.OK

    def most(self, name: str) -> int | None:
        """The largest over its builds, by the names of `Resources`; of the occupancy the least."""
        if name == "occupancy":
            return min((b.occupancy for b in self.builds if b.occupancy is not None), default=None)
        values = [getattr(b.resources, name) for b in self.builds if b.resources is not None]
        return max((v for v in values if v is not None), default=None)

    @property
    def features(self) -> tuple[float, ...]:
        """What the compiler says, as numbers for a model: over all builds the most of each."""
        known = [self.most(name) for name in ("registers", "spills", "shared", "private")]
        occupancy = self.most("occupancy")
        return (*(float(value or 0) for value in known), -1.0 if occupancy is None else float(occupancy))


@dataclass(frozen=True)
class Attached:
    """From here on the run uses this device and compiler: the ones it started with were not there."""

    device: Device
    compiler: str
    ahead: int  # configurations built ahead: this machine may build faster
    unable: tuple[Config, ...] = ()  # surveyed before, and as unable to run here


@dataclass(frozen=True)
class Protected:
    """From here on workers are held back otherwise: on another machine, or with another --sandbox."""

    protection: Protection


@dataclass(frozen=True)
class Baseline:
    """The original, checked over the contract's edges and timed as it is."""

    outcome: Outcome
    judged_by: Literal["reference", "original"]
    builds: tuple[VerifiedBuild, ...] = ()  # journals of earlier versions do not say


@dataclass(frozen=True)
class Extended:
    """Cases that a tester added, after the original has proved right on them; others are set aside, with
    the reason."""

    cases: tuple[ExtraCase, ...]
    aside: tuple[tuple[ExtraCase, str], ...] = ()
    note: str = ""  # why there are none


@dataclass(frozen=True)
class Admitted:
    """A template may be searched: it was given, or has passed the gate."""

    template: str  # digest of its text
    feasible: int
    combinations: int
    candidate: str = ""  # empty: the one given
    rules: tuple[Combination, ...] = ()  # found wrong by the gate: the text forbids them
    baking: tuple[str, ...] = ()  # its defines that may put sizes into a build


@dataclass(frozen=True)
class Direction:
    """One of several plans that rounds of old journals have. Its place among them is its branch."""

    reason: str
    what: str = ""
    moves: tuple[str, ...] = ()
    candidate: str = ""  # the one it goes on from; empty: the original
    expected: float | None = None


@dataclass(frozen=True)
class Decided:
    """What is done next. `refactor`: the author writes a template with these moves; `search`: a candidate,
    within its share of the budget."""

    decision: Literal["refactor", "search", "finish"]
    reason: str
    moves: tuple[str, ...] = ()
    candidate: str = ""  # search: which; refactor: the one it goes on from, empty: from the original
    evals: int | None = None  # of a search: its share; None: all that is left
    seconds: float | None = None
    what: str = ""  # for an author that reads words: what to change
    expected: float | None = None  # the speed-up that the planner hopes for
    by_moves: bool = False  # the expert applies the moves, whoever else writes templates
    analysis: str = ""  # of a refactoring: what a model as analyst said before it; nobody measured that
    plans: tuple[Direction, ...] = ()  # of a refactoring in an old journal; empty: there is one plan
    device_seconds: float | None = None  # of a search, as evals and seconds
    handed: bool = False  # the author is handed what the expert makes by the moves
    plain: bool = False  # the author only rewrites the kernel plainly, so that the expert can read it

    @property
    def branches(self) -> range:
        """One for each plan of a refactoring."""
        return range(max(1, len(self.plans)))

    def branch(self, number: int) -> Decided:
        """One of several plans as if there were no other."""
        own = asdict(self.plans[number]) if self.plans else {}
        return replace(self, **own, plans=())

    @property
    def is_stored(self) -> bool:
        """Whether its template is one of the library's."""
        return any(name.startswith(STORED) for name in self.moves)


@dataclass(frozen=True)
class Drafted:
    """An author's template, stored beside the journal before this is written: it is never asked for again."""

    candidate: str
    parent: str  # the candidate it goes on from, or mends; empty: the original
    template: str  # digest of the text
    moves: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # moves that do not apply, and why
    notes: tuple[str, ...] = ()
    author: str = ""  # the model that wrote it, however long ago; empty: the expert
    branch: int = 0  # of several plans, the one it follows


@dataclass(frozen=True)
class Declined:
    """Why there is no template."""

    reason: str
    branch: int = 0


@dataclass(frozen=True)
class Rejected:
    """A draft that may not be searched, in the words of whoever found the fault."""

    candidate: str
    reason: str
    trials: tuple[int, ...] = ()  # that show it
    without: tuple[tuple[str, int], ...] = ()  # values that are wrong by themselves
    again: bool = False  # whether the author is asked to mend it
    same_as: str = ""  # the candidate that has the same text


@dataclass(frozen=True)
class Searched:
    """The search of a candidate has ended; `cut`: because its share was used up, and nothing else."""

    candidate: str
    reason: str
    cut: bool = False


@dataclass(frozen=True)
class Primed:
    """Log speed-ups of an earlier run of a template with the same parameters, as a prior for the search."""

    name: str
    rows: tuple[tuple[Config, float | None], ...]
    first: tuple[Config, ...] = ()  # its best, to be tried before the search has its say


@dataclass(frozen=True)
class Profiled:
    """What bounds a kernel at a workload, by its build, its launch and the time it is known to take."""

    config: Config | None  # None: the original
    workload: str
    diagnosis: Diagnosis | None  # None: it could not be found out
    notes: tuple[str, ...] = ()  # what was not found out, and why


@dataclass(frozen=True)
class Steered:
    """Where the search looks first from here on; None: everywhere alike."""

    focus: Focus | None
    reason: str
    profiled: int = 0  # so many `Profiled` it follows from; 0: it follows from what was measured
    dropped: tuple[str, ...] = ()  # remedies that proved wrong, or had their time: not taken up again


@dataclass(frozen=True)
class Asked:
    """Trials to issue now, and the log speed-up that the searcher thinks they may add; None: no idea."""

    trials: tuple[Trial, ...]
    gain: float | None = None


@dataclass(frozen=True)
class Pruned:
    """A configuration that was built and will not be measured."""

    config: Config
    rule: Literal["cannot_run", "same_code", "spills", "occupancy"]
    reason: str


@dataclass(frozen=True)
class Measured:
    outcome: Outcome


@dataclass(frozen=True)
class ReplacedCase:
    """A case on which the original itself failed: it judges nobody, and another was tried instead."""

    sizes: tuple[tuple[str, int], ...]
    distribution: str
    reason: str


@dataclass(frozen=True)
class CaseSeen:
    """A case of the verification, and what came of it; the status is empty where it was not reached."""

    sizes: tuple[tuple[str, int], ...]
    distribution: str
    seed: int
    status: str = ""
    errors: tuple[OutputErrors, ...] = ()  # of outputs that the reference gives, where it was reached


@dataclass(frozen=True)
class StoredBinary:
    """Machine code in the form in which it is delivered, stored by digest."""

    form: str
    digest: str
    symbols: tuple[tuple[str, str], ...]  # entry -> the kernel's symbol


@dataclass(frozen=True)
class VerifiedBuild:
    """One build of a verified configuration and the workloads it serves."""

    workloads: tuple[str, ...]
    source_digest: str
    code_digest: str  # of the loaded machine code; empty: it did not build
    binary: StoredBinary | None = None  # what is delivered of it, where machine code can be
    resources: Resources | None = None


@dataclass(frozen=True)
class Verified:
    """A finalist rebuilt from what is delivered, in a fresh process, on sizes and seeds never used before."""

    outcome: Outcome
    cases: int
    seed: int = 0  # drawn when the first winner was verified; sizes and values follow from it
    replaced: tuple[ReplacedCase, ...] = ()
    reach: tuple[tuple[str, int], ...] = ()  # sizes and lengths of arrays -> the largest found right
    seen: tuple[CaseSeen, ...] = ()  # journals of earlier versions do not say
    builds: tuple[VerifiedBuild, ...] = ()
    sanitized: Sanitized | None = None  # what sanitizers said; journals of earlier versions do not say
    sides: DataSides = NO_SIDES  # of its conditions on data


@dataclass(frozen=True)
class ServedSize:
    """A call with these sizes: the file that served it, checked and timed against the original."""

    sizes: tuple[tuple[str, int], ...]
    file: str
    config: Config | None  # None: the original, which is not timed against itself
    result: Result  # of the workload, where these are its sizes


@dataclass(frozen=True)
class Served:
    """What is delivered, called through its own dispatch."""

    general: Config | None
    dispatch: str  # digest of the entries that were chosen from
    calls: tuple[ServedSize, ...]


@dataclass(frozen=True)
class Stopped:
    reason: str


OfRun = (
    Started | Surveyed | Rehearsed | Attached | Protected | Baseline | Extended | Verified | Served | Stopped
)
OfCandidate = Admitted | Decided | Drafted | Declined | Rejected | Searched
OfDialogue = Requested | Replied | Unanswered
OfSearch = Primed | Profiled | Steered | Asked | Pruned | Measured
OfDevices = Enlisted | AskedOf | LeftOut
Event = OfRun | OfCandidate | OfDialogue | OfSearch | OfDevices | Instructed
EVENT_TYPES: dict[str, type[Event]] = {t.__name__: t for t in get_args(Event)}


@dataclass(frozen=True)
class Recorded:
    """An event with its number and the seconds the run had been active when it was written."""

    number: int
    at: float
    event: Event
    fault: str = ""  # why the journal's chain does not carry it
