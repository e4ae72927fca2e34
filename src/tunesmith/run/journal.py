"""The chain of a journal: each line carries the digest of the one before, so that none can be changed alone.

A chain holds no secret: who changes a line can write all that follow it anew. Then its head is another, and
the certificate, which names the head, no longer belongs to it; a signature of that is the user's alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import msgspec

from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.text import sha256_hex
from tunesmith.problem.device import Device
from tunesmith.problem.plan import OutputErrors, Status
from tunesmith.problem.template import Template
from tunesmith.run import events as ev
from tunesmith.run.candidates import Templates
from tunesmith.run.events import EVENT_TYPES, Event, Recorded, Replied, Request, Requested
from tunesmith.run.outcome import Outcome, Timing, Trial
from tunesmith.run.state import State
from tunesmith.space.configset import Config

UNCHAINED = "recorded before journals were chained: nothing here is proven"
ALONE = "a report without its journal beside it: nothing here is proven"


def is_broken(unproven: str) -> bool:
    """Whether that is why nothing of a run counts: its journal was changed. An old one was never chained, and
    a report alone has none."""
    return unproven not in ("", UNCHAINED, ALONE)


FIRST = sha256_hex(b"tunesmith journal 1")  # what the first line carries


@dataclass(frozen=True)
class ChainHead:
    """Where a chain ends: the digest of its last line, and which line that is."""

    lines: int = 0
    head: str = FIRST


def head_of(journal: bytes) -> ChainHead:
    """Of its whole lines."""
    lines = journal.split(b"\n")[:-1]
    return ChainHead(len(lines), sha256_hex(lines[-1])) if lines else ChainHead()


@dataclass(frozen=True)
class ChainFault:
    """From which place on a chain carries nothing, and why; places count from 0."""

    place: int
    reason: str


def chain_fault(lines: Sequence[bytes], carried: Sequence[str]) -> ChainFault | None:
    """`carried` are the digests that the lines say stand before them; empty where one says nothing."""
    if not lines:
        return None
    if not carried[0]:
        return ChainFault(0, UNCHAINED)
    if carried[0] != FIRST:
        return ChainFault(0, "the journal was changed at line 1: it does not carry what a first line carries")
    for place, ((line, _), (_, before)) in enumerate(pairwise(zip(lines, carried, strict=True))):
        if before != sha256_hex(line):
            number = place + 1
            why = f"line {number + 1} does not carry its digest"
            return ChainFault(place, f"the journal was changed at line {number}: {why}")
    return None


class _Certified(msgspec.Struct):
    journal: ChainHead


def head_in(certificate: bytes) -> ChainHead | None:
    """The head that a certificate names; None where it is none."""
    try:
        return decode_json(certificate, _Certified).journal
    except Malformed:
        return None


def certificate_mismatch(named: ChainHead, lines: Sequence[bytes], ended: bool) -> ChainFault | None:
    """Of a chain that is whole: why it is not the one that a certificate was made of. One that is shorter and
    has not `ended` claims nothing yet."""
    if len(lines) < named.lines:
        missing = f"its certificate names {named.lines} lines, and it ends at line {len(lines)}"
        return ChainFault(0, f"the journal was changed at line {len(lines)}: {missing}") if ended else None
    if named.lines > 0 and sha256_hex(lines[named.lines - 1]) == named.head:
        return None
    why = "its chain ends otherwise than the certificate says, there or before"
    return ChainFault(0, f"the journal was changed at line {named.lines}: {why}")


# -- Events as lines of a journal. What models are told and say, where it is long, stands beside it.


# Characters of a model's text; a longer one stands in a file of its own, the journal has its digest.
LONG = 4096


class _JournalLine(msgspec.Struct):
    number: int
    at: float
    type: str
    event: msgspec.Raw
    before: str = ""


def encode_record(record: Recorded, before: str = "") -> bytes:
    """`before`: the digest of the line before it (run/journal); empty in journals of earlier versions."""
    head = {"number": record.number, "at": round(record.at, 3), "type": type(record.event).__name__}
    return encode_json({**head, "before": before, "event": record.event})


def decode_record(data: bytes) -> Recorded:
    return decode_line(data)[0]


def decode_line(data: bytes) -> tuple[Recorded, str]:
    """The record, and the digest of the line before it."""
    line = decode_json(data, _JournalLine, "line of a journal")
    kind = EVENT_TYPES.get(line.type)
    if kind is None:
        raise Malformed(f"unknown event {line.type!r}")
    # Earlier versions wrote `kept` for the digest of a long text; within a string its quotes are escaped.
    event = bytes(line.event)
    if b'"kept":' in event:
        event = event.replace(b'"kept":', b'"digest":')
    return Recorded(line.number, line.at, decode_json(event, kind)), line.before


def without_long_texts(event: Event, put: Callable[[str], str]) -> Event:
    """The event as a journal holds it. `put` has the text on disk when it returns its digest."""
    match event:
        case Requested(request):
            said = [
                replace(m, text="", digest=put(m.text)) if len(m.text) > LONG else m for m in request.messages
            ]
            return Requested(replace(request, messages=tuple(said)))
        case Replied(number, reply) if len(reply.text) > LONG:
            return Replied(number, replace(reply, text="", digest=put(reply.text)))
    return event


def with_long_texts(event: Event, get: Callable[[str], str]) -> Event:
    """The event with its texts; one that has them, as in journals of earlier versions, as it is."""
    match event:
        case Requested(request):
            said = (replace(m, text=get(m.digest), digest="") if m.digest else m for m in request.messages)
            return Requested(replace(request, messages=tuple(said)))
        case Replied(number, reply) if reply.digest:
            return Replied(number, replace(reply, text=get(reply.digest), digest=""))
    return event


# -- Which events cannot be meant, though each can be read: rules in words, by the state before the event.


LONGEST_SAMPLE = 1e6  # seconds of one launch
LARGEST = 1 << 62  # of a whole number, as in expressions


def broken_rule(state: State, record: ev.Recorded) -> str | None:
    """The rule that it breaks; None where it may well have happened."""
    return next(_event_faults(state, record), None)


def _event_faults(state: State, record: ev.Recorded) -> Iterator[str]:
    event = record.event
    if not 0 <= record.at < math.inf:
        yield f"a run's clock does not show {record.at}"
    if (state.started is None) != isinstance(event, ev.Started):
        yield "a run begins with Started, once"
        return
    if state.stopped is not None:
        yield f"nothing follows Stopped, but here is {type(event).__name__}"
    if isinstance(event, ev.OfCandidate):
        yield from _of_candidate(state, event)
    elif isinstance(event, ev.OfDialogue):
        yield from _dialogue_faults(state, event)
    elif isinstance(event, ev.OfSearch):
        yield from _search_faults(state, event)
    elif isinstance(event, ev.OfDevices):
        yield from _enlisting_faults(state, event)
    elif isinstance(event, ev.Instructed):
        yield from _instruction_faults(state, event)
    else:
        yield from _run_faults(state, event)


def _run_faults(state: State, event: ev.OfRun | ev.Verified) -> Iterator[str]:
    match event:
        case ev.Started():
            yield from _started_faults(event)
        case ev.Attached():
            yield from _device_faults(event.device)
            yield from _of_configs(state, event.unable)
            if not 0 <= event.ahead <= LARGEST:
                yield f"so many cannot be built ahead: {event.ahead}"
        case ev.Surveyed():
            yield from _survey_faults(state, event)
        case ev.Rehearsed(config):
            yield from _of_configs(state, [config])
            if not state.device.absent:
                yield "a kernel is rehearsed only where the device is absent"
            if not 0 <= event.cases <= LARGEST:
                yield f"so many cases cannot be tried: {event.cases}"
            if not (0 <= event.left <= LARGEST and 0 <= event.seconds < math.inf):
                yield f"a rehearsal does not take {event.seconds} s and leave {event.left}"
        case ev.Baseline(outcome):
            yield from _baseline_faults(state, outcome)
        case ev.Verified(outcome):
            yield from _outcome_faults(state, outcome)
            if outcome.trial.config is None or not state.known.count(outcome.trial.config):
                yield "what is verified was measured before"
            yield from _output_error_faults(errors for case in event.seen for errors in case.errors)
        case ev.Served(general, _, calls):
            yield from _of_configs(state, [general, *(call.config for call in calls)])
        case ev.Extended():
            if state.extended is not None:
                yield "cases are added once"
        case ev.Stopped():
            if not state.decided:
                yield "a run stops by a decision"


def _search_faults(state: State, event: ev.OfSearch) -> Iterator[str]:
    match event:
        case ev.Measured(outcome):
            if outcome.trial not in state.in_flight:
                yield f"trial {outcome.trial.id} is measured as it was asked for, and once"
            yield from _outcome_faults(state, outcome)
            left_out = [gone.device for gone in state.left_out]  # which end what they have begun
            if state.enlisted is not None and outcome.device not in (*state.enlisted.devices, *left_out):
                yield f"trial {outcome.trial.id} was measured by {outcome.device!r}, which is not enlisted"
            if dict(state.bound).get(outcome.trial.id, outcome.device) != outcome.device:
                yield f"trial {outcome.trial.id} is measured by the device that was asked"
        case ev.Asked(trials):
            yield from _trial_faults(state, trials)
        case ev.Pruned(config):
            if not any(found.config is not None for found in state.surveyed.of(config)):
                yield f"{config.label} is pruned before it was built"
        case ev.Profiled(config, workload):
            yield from _of_configs(state, [config])
            yield from _workload_faults(state, [workload])
        case ev.Primed():
            if len(state.primed) >= (state.started.priors if state.started else 0):
                yield "there are more priors than the run began with"
            configs = (*(config for config, _ in event.rows), *event.first)
            if len({tuple(name for name, _ in config.items) for config in configs}) > 1:
                yield "all its configurations have the same parameters"
        case ev.Steered():
            if not 0 <= event.profiled <= len(state.profiled):
                yield f"it follows from {event.profiled} profiles, and there are {len(state.profiled)}"


def _enlisting_faults(state: State, event: ev.OfDevices) -> Iterator[str]:
    match event:
        case ev.Enlisted(devices):
            if not devices or not all(devices) or len(set(devices)) != len(devices):
                yield "the devices of a run are some, each with a name of its own"
        case ev.LeftOut(device):
            if device not in state.devices or len(state.devices) < 2:
                yield f"{device!r} cannot be left out of {', '.join(state.devices) or 'one device'}"
        case ev.AskedOf(trial, device):
            yield from _trial_faults(state, [trial])
            if device not in state.devices or trial.purpose != "sentinel":
                yield f"only the original is asked of one device, which is in force: {device!r}"


def _started_faults(event: ev.Started) -> Iterator[str]:
    asked = event.settings
    counts = (asked.evals, asked.rounds, asked.tokens, asked.width, asked.finalists, asked.drafts)
    whole = (asked.seed, asked.ahead, asked.repairs, event.priors)
    amounts = (asked.seconds, asked.dollars, *whole, asked.device_seconds)
    if any(count is not None and count < 1 for count in counts):
        yield f"evals, rounds, tokens, width, finalists and drafts are 1 or more: {counts}"
    if any(amount is not None and not 0 <= amount < math.inf for amount in amounts):
        what = "seconds, dollars, seed, ahead, repairs, priors and seconds on the device"
        yield f"{what} are 0 or more: {amounts}"
    names = [name for name, _ in event.files]
    if len(set(names)) != len(names):
        yield "a file of the problem is there once"
    if event.template and event.template not in names:
        yield f"the template {event.template!r} is among the files"
    yield from _digest_faults(digest for _, digest in event.files)
    yield from _device_faults(event.device)


def _device_faults(device: Device) -> Iterator[str]:
    limits = device.limits
    sizes = (*limits.max_block, *limits.max_grid, limits.max_threads, limits.memory, limits.max_allocation)
    if not all(1 <= size <= LARGEST for size in (*sizes, limits.sms, limits.warp, limits.alignment)):
        yield "the limits of a device are 1 or more"
    if not all(0 <= size <= LARGEST for size in (limits.shared, limits.llc)):
        yield "memory on a device's chip is 0 bytes or more"


def _digest_faults(digests: Iterable[str]) -> Iterator[str]:
    for digest in digests:
        if not digest.isalnum():
            yield f"{digest[:20]!r} is no digest"


def _baseline_faults(state: State, outcome: Outcome) -> Iterator[str]:
    if state.baseline is not None or outcome.trial.config is not None:
        yield "the baseline is the original's, once"
    names = outcome.trial.workloads
    if not names or [r.workload for r in outcome.results] != list(names) or len(set(names)) != len(names):
        yield "the baseline has every workload once"
    if not all(r.timing is not None for r in outcome.results):
        yield "the baseline has a time at every workload"
    yield from _duration_faults(outcome)


def _trial_faults(state: State, trials: Sequence[Trial]) -> Iterator[str]:
    texts = {c.id: c.template for c in state.candidates}
    for number, trial in enumerate(trials, state.next_trial):
        if trial.id != number:
            yield f"trial {trial.id} stands in place {number}"
        if (trial.config is None) != (trial.purpose == "sentinel"):
            yield f"trial {trial.id}: a sentinel is the original, and nothing else is"
        if trial.effort == "build" and trial.purpose != "search":
            yield f"trial {trial.id}: what is built ahead is to be searched"
        yield from _workload_faults(state, trial.workloads)
        yield from _of_configs(state, [trial.config])
        if trial.config is not None and trial.template != texts[trial.config.candidate]:
            yield f"trial {trial.id} has the template of its candidate"


def _outcome_faults(state: State, outcome: Outcome) -> Iterator[str]:
    names = [r.workload for r in outcome.results]
    if not names or len(set(names)) != len(names) or not set(names) <= set(outcome.trial.workloads):
        yield f"trial {outcome.trial.id} has results at its own workloads, one at each"
    yield from _workload_faults(state, names)
    yield from _of_configs(state, [outcome.trial.config])
    yield from _duration_faults(outcome)


def _duration_faults(outcome: Outcome) -> Iterator[str]:
    if not (0 <= outcome.seconds <= LARGEST and 0 <= outcome.busy <= LARGEST):
        yield f"trial {outcome.trial.id} took {outcome.seconds} s, {outcome.busy} s of them in kernels"
    if not 0 <= outcome.waited <= outcome.seconds:
        yield f"trial {outcome.trial.id} waited {outcome.waited} s of {outcome.seconds} s"
    for result in outcome.results:
        if result.timing is not None:
            yield from _sample_faults(outcome.trial, result.timing)
            if outcome.trial.purpose == "finalist" and not result.timing.paired:
                yield f"trial {outcome.trial.id}: a finalist is timed in pairs with the original"


def _output_error_faults(found: Iterable[OutputErrors]) -> Iterator[str]:
    for one in found:
        pairs = ((one.max_error, one.rms_error), (one.original_max_error, one.original_rms_error))
        for largest, rms in pairs:
            top = math.inf if largest is None else largest * (1 + 1e-9)  # a mean of equal parts is rounded
            if not 0 <= (0.0 if rms is None else rms) <= top:
                yield f"{one.array} has an rms error of {rms}, and the largest is {largest}"


def _sample_faults(trial: Trial, timing: Timing) -> Iterator[str]:
    for samples in (timing.samples, timing.paired) if timing.paired else (timing.samples,):
        if not 1e-12 <= min(samples) <= max(samples) <= LONGEST_SAMPLE:
            yield f"trial {trial.id}: no launch takes {min(samples):g} to {max(samples):g} s"


def _survey_faults(state: State, event: ev.Surveyed) -> Iterator[str]:
    names = [name for build in event.builds for name in build.workloads]
    if not names or len(set(names)) != len(names):
        yield "a configuration has one build at each workload"
    refused = [r.workload for r in event.refused]
    if len(set(refused)) != len(refused) or not set(refused) <= set(names):
        yield "it is refused where it was built, once at each workload"
    if any(r.status is Status.OK or r.timing is not None for r in event.refused):
        yield "what is refused was not run"
    yield from _of_configs(state, [event.config])


def _workload_faults(state: State, names: Sequence[str]) -> Iterator[str]:
    if state.baseline is None:
        yield "the original is measured first"
        return
    known = state.baseline.outcome.trial.workloads
    if not names or len(set(names)) != len(names) or not set(names) <= set(known):
        yield f"its workloads are some of {', '.join(known)}, each once: {', '.join(names)}"


def _of_configs(state: State, configs: Iterable[Config | None]) -> Iterator[str]:
    for config in configs:
        if config is not None and not any(c.id == config.candidate for c in state.candidates):
            yield f"there is no template {config.candidate!r} before"


def _of_candidate(state: State, event: ev.OfCandidate) -> Iterator[str]:
    status = {c.id: c.status for c in state.candidates}
    doing = state.under_way.decision if state.under_way is not None else None
    match event:
        case ev.Decided():
            yield from _decision_faults(state, event)
        case ev.Drafted():
            if doing != "refactor" or not event.candidate or event.candidate in status:
                yield "a draft is a new template, of a refactoring that was decided on"
            yield from _of_branch(state, event.branch)
            if event.parent and event.parent not in status:
                yield f"there is no template {event.parent!r} to go on from"
            yield from _digest_faults([event.template])
        case ev.Declined():
            if doing != "refactor":
                yield "what is declined was decided on"
            yield from _of_branch(state, event.branch)
        case ev.Rejected():
            if status.get(event.candidate) != "drafted":
                yield f"template {event.candidate!r} is no draft that could be rejected"
            yield from _at_gate(state, event.candidate)
            if not all(0 <= trial < state.next_trial for trial in event.trials):
                yield "trials that show a fault were asked for"
        case ev.Admitted():
            if status.get(event.candidate, "given") == "rejected":
                yield f"template {event.candidate!r} was rejected"
            yield from _at_gate(state, event.candidate)
            if not 0 <= event.feasible <= event.combinations:
                yield f"of {event.combinations} combinations {event.feasible} cannot be feasible"
            yield from _digest_faults([event.template])
        case ev.Searched():
            if doing != "search" or state.under_way is None or state.under_way.candidate != event.candidate:
                yield f"the search of {event.candidate!r} was not decided on"


def _decision_faults(state: State, event: ev.Decided) -> Iterator[str]:
    status = {c.id: c.status for c in state.candidates}
    if state.under_way is not None:
        yield f"nothing is decided while {state.under_way.decision} is under way"
    searched = event.decision == "search"
    if searched and status.get(event.candidate) not in ("admitted", "searched"):
        yield f"there is no template {event.candidate!r} to search"
    bases = (event.candidate, *(plan.candidate for plan in event.plans))
    unknown = [base for base in bases if base and base not in status]
    if event.decision == "refactor" and unknown:
        yield f"there is no template {unknown[0]!r} to go on from"
    if event.plans and (event.decision != "refactor" or len(event.plans) > state.settings.drafts):
        most = state.settings.drafts
        yield f"a refactoring has at most {most} plans, nothing else has any: {len(event.plans)}"
    if not event.plain:
        return
    if event.decision != "refactor" or event.moves or event.candidate or event.plans:
        yield "a plain rewrite is one refactoring of the original, without moves"
    if state.plain_kernel is not None:
        yield f"template {state.plain_kernel.id} is the plain kernel already"


def _of_branch(state: State, branch: int) -> Iterator[str]:
    """Of what is written or given up: it is its turn, and nobody is asked about it any more."""
    at_gate = {c.branch for c in state.candidates if c.status == "drafted"}
    if branch not in state.open_branches or branch in at_gate:
        yield f"nothing is to be written of plan {branch + 1}"
    if any(e.request.branch == branch for e in state.dialogue if e.is_open):
        yield f"the author of plan {branch + 1} has not answered"


def _at_gate(state: State, candidate: str) -> Iterator[str]:
    """Drafts are judged one after another, while nobody is asked."""
    drafts = [c.id for c in state.candidates if c.status == "drafted"]
    if candidate in drafts and (candidate != drafts[0] or any(e.is_open for e in state.dialogue)):
        yield f"it is not the turn of template {candidate!r} at the gate"


def _dialogue_faults(state: State, event: ev.OfDialogue) -> Iterator[str]:
    if isinstance(event, ev.Requested):
        yield from _request_faults(state, event.request)
        return
    asked = next((e for e in state.dialogue if e.is_open and e.request.number == event.number), None)
    if asked is None:
        yield f"request {event.number} is not open"
    elif isinstance(event, ev.Unanswered) and (event.attempt != asked.attempts + 1 or not event.reason):
        yield f"attempt {event.attempt} follows attempt {asked.attempts}, and failed for a reason"


def _instruction_faults(state: State, event: ev.Instructed) -> Iterator[str]:
    yield from _of_configs(state, [event.config])
    if event.id and any(event.id == other.id for other in state.instructed):
        yield f"{event.id!r} is taken up once"
    if (event.config is not None) != (event.what == "hint" and not event.refused):
        yield "a configuration is what a hint names that is not refused"


def _request_faults(state: State, request: Request) -> Iterator[str]:
    """Several are open at a time where a round has several plans: one each."""
    number, open_ = request.number, [e for e in state.dialogue if e.is_open]
    beside = request.role == "author" and len(state.open_branches) > 1
    if open_ and (not beside or any(e.request.branch == request.branch for e in open_)):
        yield f"request {number} comes before request {open_[0].request.number} is answered"
    if number != len(state.dialogue) + 1:
        yield f"request {number} stands in place {len(state.dialogue) + 1}"
    if request.branch and request.branch not in state.open_branches:
        yield f"request {number} is about plan {request.branch + 1}, which is not open"


def template_mismatch(templates: Templates, state: State, event: ev.Event) -> str | None:
    """The rule that an event breaks by the problem and the templates of its run, folded to its end."""
    match event:
        case ev.Baseline(outcome):
            named = tuple(w.name for w in templates.problem.workloads)
            return None if outcome.trial.workloads == named else f"the workloads are {', '.join(named)}"
        case ev.Admitted(candidate=id_):
            given = templates.given is not None if not id_ else id_ in templates.beside
            is_known = given or any(c.id == id_ and c.drafted for c in state.candidates)
            return None if is_known else f"no template {id_!r} was given or drafted"
        case ev.Asked(trials):
            configs = [trial.config for trial in trials]
        case ev.Surveyed(config) | ev.Rehearsed(config) | ev.Instructed(config=config):
            configs = [config]
        case _:
            return None
    lookup = templates.lookup(state)
    for config in configs:
        if config is not None and not _is_of(lookup(config), config):
            return f"{config.label} has other parameters or values than its template"
    return None


def _is_of(template: Template, config: Config) -> bool:
    params = template.space.params
    if [name for name, _ in config.items] != [param.name for param in params]:
        return False
    return all(value in param.positions for (_, value), param in zip(config.items, params, strict=True))
