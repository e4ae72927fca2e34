"""The facts of a run, in the order they happened. The journal holds these and nothing else remembers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, Protocol, get_args

from tunesmith.base.text import digest_of, format_count
from tunesmith.problem.device import Device, Resources
from tunesmith.problem.plan import ExtraCase, OutputErrors, Status
from tunesmith.problem.template import Combination
from tunesmith.profiles.facts import Diagnosis
from tunesmith.run.outcome import NO_SIDES, DataSides, Outcome, Result, Trial
from tunesmith.run.outcome import AskedOf as AskedOf
from tunesmith.run.outcome import Enlisted as Enlisted
from tunesmith.run.outcome import LeftOut as LeftOut
from tunesmith.run.outcome import Rehearsed as Rehearsed
from tunesmith.run.protection import Protection
from tunesmith.space.configset import Config
from tunesmith.space.space import Focus

Role = Literal["planner", "author", "tester", "analyst", "single", "extractor"]
ROLES: tuple[Role, ...] = ("planner", "author", "tester", "analyst")
SINGLE: Role = "single"  # plays all of them, in one conversation
Speaker = Literal["system", "user", "assistant"]
Expects = Literal["json", "file", "turn"]

LONGEST = 256 << 10  # characters of a reply that are looked at: no template and no plan is longer
PER_TOKEN = 3.5  # characters, in a mixture of code and words


@dataclass(frozen=True)
class Message:
    speaker: Speaker
    text: str
    digest: str = ""  # in a journal: the digest of a long text that stands beside it


@dataclass(frozen=True)
class Request:
    """One question to a model, with everything it is told. Models remember nothing between requests."""

    number: int  # within the run, from 1
    role: Role
    messages: tuple[Message, ...]
    expects: Expects  # one JSON object, one fenced block that is a whole file, or words and either
    example: str = ""  # of a reply that would be understood
    most_tokens: int = 16384
    branch: int = 0  # of several plans that a round of an old journal has, the one it is about

    @property
    def digest(self) -> str:
        """What is asked, whoever is asked and when: equal for equal questions."""
        said = [part for m in self.messages for part in (m.speaker, m.text)]
        return digest_of(self.role, self.expects, *said)

    @property
    def name(self) -> str:
        """For files: sorted as they were asked."""
        return f"{self.number:04d}-{self.role}"


@dataclass(frozen=True)
class Question:
    """What a role wants to know from its model before it can go on; asked, it becomes a `Request`."""

    role: Role
    messages: tuple[Message, ...]
    expects: Expects
    example: str = ""

    def request(self, number: int) -> Request:
        return Request(number, self.role, self.messages, self.expects, self.example)


@dataclass(frozen=True)
class Usage:
    """None: nobody said. Never zero for what is not known."""

    sent: int | None = None  # tokens
    received: int | None = None
    dollars: float | None = None
    cached: int | None = None  # of those sent: read from the other side's cache of prompts
    stored: int | None = None  # of those sent: written to it
    reasoning: int | None = None  # of those received: thought, not said


@dataclass(frozen=True)
class Reply:
    text: str
    usage: Usage = Usage()
    seconds: float | None = None
    is_cut: bool = False  # it ran into the limit on its length, or broke off behind what was asked for
    note: str = ""  # what is to be known of it beside its text
    digest: str = ""  # as of a message


@dataclass(frozen=True)
class Requested:
    """A question to a model, before it is sent. It stays open until it is answered or given up."""

    request: Request


@dataclass(frozen=True)
class Replied:
    number: int  # of the request
    reply: Reply


@dataclass(frozen=True)
class Unanswered:
    """An attempt that brought no reply; `final`: there will be no other."""

    number: int  # of the request
    reason: str
    lasts: bool  # asking again would give the same
    attempt: int  # from 1
    final: bool = False
    usage: Usage = Usage()  # what it took all the same, where somebody says
    came: int = 0  # characters that had come, said or thought


@dataclass(frozen=True)
class Lost:
    usage: Usage
    came: int  # characters


@dataclass(frozen=True)
class Exchange:
    """A request and what came of it: a reply, a reason why there will be none, or nothing so far."""

    request: Request
    turn: int  # decisions of the run before it was asked: whatever follows from it belongs to the next
    drafts: int  # templates written before it
    reply: Reply | None = None
    failed: str = ""  # why there is no reply, once no more is asked
    attempts: int = 0  # that failed
    lost: tuple[Lost, ...] = ()  # what attempts took that failed

    @property
    def is_open(self) -> bool:
        return self.reply is None and not self.failed


@dataclass(frozen=True)
class Pending:
    """There is no reply yet; `where` says what is waited for, `found` what is there instead."""

    where: str
    found: str = ""


@dataclass(frozen=True)
class NoReply:
    """The model did not answer. `lasts`: asking again would give the same (a wrong key, an unknown model)."""

    reason: str
    lasts: bool = False
    wait: float | None = None  # seconds the other side asked us to wait
    usage: Usage = Usage()  # what it took all the same, where somebody says
    came: int = 0  # characters that had come, said or thought


class LanguageModel(Protocol):
    @property
    def name(self) -> str: ...

    def reply(self, request: Request) -> Reply | Pending | NoReply: ...


def tokens_of(text: str) -> int:
    """An estimate by length, for before a model has told."""
    return int(len(text) / PER_TOKEN) + 1


InstructionKind = Literal["stop", "finish", "hint"]


@dataclass(frozen=True)
class RunInstruction:
    id: str
    what: InstructionKind
    text: str = ""  # of a hint: values of parameters


@dataclass(frozen=True)
class Instructed:
    """What whoever watches has asked of the run, taken up once. A `stop` holds until the run goes on: then
    there is a `resume`."""

    id: str  # of what lay in the inbox; empty: a resume
    what: Literal["stop", "finish", "hint", "resume"]
    text: str = ""  # of a hint, as it was written
    config: Config | None = None  # that it names, to be tried next
    refused: str = ""  # why nothing comes of it


NOT_IN_FORCE = "not in force"
NOTE = "sanitizer: "  # what a run's note on them begins with
_OF_ONE = re.compile(r"\s+(?:at )?(?:address )?0x[0-9a-f]+|\s+of size \d+(?: bytes?)?", re.IGNORECASE)
MAX_FINDINGS = 12  # of one kernel; one is enough to convict


@dataclass(frozen=True)
class SanitizerFinding:
    """One fault, as often as it was seen. The same tool and kind in the original judges nobody."""

    tool: str
    kind: str  # what is wrong, without addresses and threads
    kernel: str = ""
    place: str = ""  # in the source or the code, as far as the tool says
    words: str = ""  # the tool's own, in one line
    shared: bool = False  # the original has it too
    doubted: bool = False  # of a kind that a tool is known to imagine, and a second look did not confirm it

    @property
    def sentence(self) -> str:
        of = f" in {self.kernel}" if self.kernel else ""
        at = f" at {self.place}" if self.place else ""
        said = f": {self.words}" if self.words else ""
        return f"{self.tool} finds {self.kind}{of}{at}{said}"


@dataclass(frozen=True)
class Sanitized:
    by: str = ""  # program and version; empty: none
    tools: tuple[str, ...] = ()  # that watched it to the end
    absent: tuple[tuple[str, str], ...] = ()  # those that did not, and why; all of them have an empty name
    cases: tuple[tuple[tuple[str, int], ...], ...] = ()  # sizes at which it ran
    findings: tuple[SanitizerFinding, ...] = ()
    disagreement: str = ""  # of two that watched the same kernel, in one sentence

    @property
    def own(self) -> tuple[SanitizerFinding, ...]:
        """Those that convict: nobody doubts them, and the original does not have them."""
        return tuple(finding for finding in self.findings if not finding.shared and not finding.doubted)

    @property
    def sentence(self) -> str:
        """What was in force, or why nothing was."""
        missing = "; ".join(f"{tool} was not: {why}" if tool else why for tool, why in self.absent)
        if not self.tools:
            return f"{NOT_IN_FORCE}: {missing}" if missing else NOT_IN_FORCE
        held = f"{self.by} ({', '.join(self.tools)}), on {format_count(len(self.cases), 'small case')}"
        return "; ".join(part for part in (held, missing, self.disagreement) if part)


def kind_of(words: str) -> str:
    """A fault's first line without what differs from thread to thread and with the width of a load."""
    kind = _OF_ONE.sub("", words.strip().rstrip("."))
    return kind[:1].lower() + kind[1:]


def distinct_findings(findings: Iterable[SanitizerFinding]) -> tuple[SanitizerFinding, ...]:
    """The first of each kind in each kernel: a fault is reported for every thread that commits it."""
    found: dict[tuple[str, str, str], SanitizerFinding] = {}
    for finding in findings:
        found.setdefault((finding.tool, finding.kind, finding.kernel), finding)
    return tuple(found.values())[:MAX_FINDINGS]


def mark_shared_findings(
    findings: Iterable[SanitizerFinding], original: Iterable[SanitizerFinding]
) -> tuple[SanitizerFinding, ...]:
    known = {(finding.tool, finding.kind) for finding in original}
    return tuple(replace(f, shared=(f.tool, f.kind) in known) for f in findings)


def merge_sanitized(parts: Sequence[Sanitized]) -> Sanitized | None:
    """Of several builds of one configuration: a tool was in force where it was for all of them."""
    if not parts:
        return None
    absent = dict(pair for part in parts for pair in part.absent)
    tools = dict.fromkeys(tool for part in parts for tool in part.tools if tool not in absent)
    return Sanitized(
        next((part.by for part in parts if part.by), ""),
        tuple(tools) if "" not in absent else (),
        tuple(absent.items()),
        tuple(dict.fromkeys(sizes for part in parts for sizes in part.cases)),
        distinct_findings(f for part in parts for f in part.findings),
        "; ".join(dict.fromkeys(part.disagreement for part in parts if part.disagreement)),
    )


def combine_device_and_host(device: Sanitized, host: Sanitized) -> Sanitized:
    """What two say of one kernel: the device's own tools, and the host's watch of the same text. What either
    of them finds counts; where only one of two that saw all finds anything, that is said."""
    words = ""
    if device.tools and host.tools and bool(device.own) != bool(host.own):
        finder, other = (device, host) if device.own else (host, device)
        words = f"{other.by} does not find what {finder.by} finds, which counts"
    missing = [(tool or "the device's sanitizer", why) for tool, why in device.absent]
    missing += [(f"the cpu device's {tool or 'watch'}", why) for tool, why in host.absent]
    return Sanitized(
        " and ".join(part.by for part in (device, host) if part.by and part.tools),
        (*device.tools, *host.tools),
        tuple(missing),
        tuple(dict.fromkeys((*device.cases, *host.cases))),
        distinct_findings((*device.findings, *host.findings)),
        words,
    )


def sanitizer_lines(watched: Iterable[tuple[str, Sanitized | None]]) -> tuple[str, ...]:
    """Of configurations by name: what was in force for those that were verified, and what it found."""
    known = [(name, one) for name, one in watched if one is not None]
    lines = dict.fromkeys(f"sanitizers in force: {one.sentence}" for _, one in known if one.tools)
    lines |= dict.fromkeys(f"sanitizers were {one.sentence}" for _, one in known if not one.tools)
    lines |= dict.fromkeys(f"{name}: {one.disagreement}" for name, one in known if one.disagreement)
    for name, one in known:
        for finding in one.findings:
            also = "; so in the original: that judges nobody" if finding.shared else ""
            doubt = "; a second look did not confirm it: that judges nobody" if finding.doubted else ""
            lines[f"{name}: {finding.sentence}{also or doubt}"] = None
    return tuple(lines)


def notes_beside(notes: Sequence[str], lines: Sequence[str]) -> tuple[str, ...]:
    """A run's notes, each once; what was expected of sanitizers gives way to `lines` on what came of it."""
    return tuple(dict.fromkeys(note for note in notes if not lines or not note.startswith(NOTE)))


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
    # In full, before the next round; `tune` does, journals from before it do not say.
    checks_best: bool = False
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
        plan = asdict(self.plans[number]) if self.plans else {}
        return replace(self, **plan, plans=())

    @property
    def is_stored(self) -> bool:
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


OfRun = Started | Surveyed | Rehearsed | Attached | Protected | Baseline | Extended | Served | Stopped
OfCandidate = Admitted | Decided | Drafted | Declined | Rejected | Searched
OfDialogue = Requested | Replied | Unanswered
OfSearch = Primed | Profiled | Steered | Asked | Pruned | Measured
OfDevices = Enlisted | AskedOf | LeftOut
Event = OfRun | Verified | OfCandidate | OfDialogue | OfSearch | OfDevices | Instructed
EVENT_TYPES: dict[str, type[Event]] = {t.__name__: t for t in get_args(Event)}


@dataclass(frozen=True)
class Recorded:
    """An event with its number and the seconds the run had been active when it was written."""

    number: int
    at: float
    event: Event
    fault: str = ""  # why the journal's chain does not carry it
