"""What a run claims and what that rests on: digests, samples, cases, seeds and the journal's head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tunesmith.problem.device import Clock, Device
from tunesmith.problem.dispatch import DispatchEntry, read_dispatch
from tunesmith.problem.problem import Problem
from tunesmith.run.candidates import Templates
from tunesmith.run.events import (
    NOT_IN_FORCE,
    NOTE,
    CaseSeen,
    Sanitized,
    SanitizerFinding,
    Verified,
    VerifiedBuild,
)
from tunesmith.run.journal import ChainHead
from tunesmith.run.race import Pick, interval_seed, sittings_of, timing_of, verified_choice
from tunesmith.run.report import judged_by
from tunesmith.run.state import State, run_protections

CERTIFICATE_VERSION = 1
DISPATCH = "tuned/dispatch.json"


@dataclass(frozen=True)
class Sitting:
    """In another process, at another time."""

    candidate_seconds: tuple[float, ...]
    original_seconds: tuple[float, ...]
    disturbance: str  # empty: it was quiet
    draws: tuple[int, ...] = ()  # how many of these samples each draw of the inputs has


@dataclass(frozen=True)
class Claim:
    """What serves a workload, and how much faster than the original that is, by these samples."""

    workload: str
    sizes: dict[str, int]
    status: Literal["faster", "faster, not certified", "the original stays"]
    speedup: float
    interval: tuple[float, float]  # 95 %, by bootstrap with `seed`
    seed: int
    candidate_seconds: tuple[float, ...]  # for a launch, taken in alternation with the original, pair by pair
    original_seconds: tuple[float, ...]
    discarded: int  # rounds taken again because the clock was held down
    config: dict[str, int] | None
    template: str  # digest of its text
    source: str  # digest of the variant that is delivered
    code: str  # digest of the machine code that was loaded; empty in journals of earlier versions
    file: str  # in the run's folder
    clocks: tuple[Clock, ...] = ()  # of the device, right after the last of these samples; empty: unknown
    doubt: str = ""  # why it is not certified: what was seen, in a sentence
    disturbed: int = 0  # rounds taken again because others used the device
    draws: tuple[int, ...] = ()  # how many of its samples each draw of the inputs has; empty: one
    others: tuple[Sitting, ...] = ()  # beside the verification, whose samples are above


@dataclass(frozen=True)
class VerifiedConfig:
    """A configuration that was rebuilt and proven, or found wrong, with every case it was tried on."""

    config: dict[str, int]
    template: str
    statuses: dict[str, str]  # workload -> what came of it
    builds: tuple[VerifiedBuild, ...]
    cases: tuple[CaseSeen, ...]
    sanitizer: str = NOT_IN_FORCE  # what watched it, or why nothing did
    findings: tuple[SanitizerFinding, ...] = ()  # of sanitizers
    unmet: str = ""  # sides of conditions on data that no case has taken


@dataclass(frozen=True)
class Certificate:
    problem: str
    judged_by: str
    claims: tuple[Claim, ...]
    general: dict[str, int] | None  # what serves sizes that no workload has; None: the original
    verified: tuple[VerifiedConfig, ...]
    journal: ChainHead
    inputs: dict[str, str]  # what was read, by name: digests of the copies in objects/
    problem_digest: str
    original_source: str
    original_code: str
    templates: dict[str, str]  # of every candidate: digest of its text, in objects/
    files: dict[str, str]  # delivered, by their path from here: SHA-256 of the bytes
    seed: int  # that the run's randomness derives from
    device: Device
    compiler: str
    versions: dict[str, str]
    sanitizer: str
    sandbox: str
    ended: str  # why the run ended
    version: int = CERTIFICATE_VERSION


def make_certificate(
    problem: Problem,
    state: State,
    templates: Templates,
    dispatch: bytes,
    files: Mapping[str, str],
    head: ChainHead,
) -> Certificate:
    """Of a run that has ended; the rest follows from its journal. `files`: digests of what is delivered."""
    started, stopped = state.started, state.stopped
    assert started and state.baseline and stopped, "only a run that has ended has a certificate"
    choice, before = verified_choice(problem, state), state.baseline.outcome
    made = read_dispatch(dispatch)
    served = [(p, made.entry_for(problem.workload(p.workload).as_dict())) for p in choice.picks]
    return Certificate(
        problem=started.problem,
        judged_by=judged_by(problem, state),
        claims=tuple(_make_claim(problem, state, templates, pick, entry) for pick, entry in served),
        general=choice.general.as_dict() if choice.general else None,
        verified=tuple(_verified_config(state, templates, v) for v in state.verified),
        journal=head,
        inputs=dict(started.files),
        problem_digest=problem.digest,
        original_source=before.source_digest,
        original_code=before.code_digest,
        templates={candidate.id or "given": candidate.template for candidate in state.candidates},
        files=dict(sorted(files.items())),
        seed=started.settings.seed,
        device=state.device,
        compiler=state.compiler,
        versions=dict(started.versions),
        sanitizer=_sanitizer_sentence(state),
        sandbox="; ".join(held.sentence for held in run_protections(state)) or NOT_IN_FORCE,
        ended=stopped.reason,
    )


def _make_claim(
    problem: Problem, state: State, templates: Templates, pick: Pick, entry: DispatchEntry
) -> Claim:
    proven = timing_of(state, pick.config, pick.workload) if pick.config is not None else None
    timing = proven.timing if proven is not None else None
    return Claim(
        workload=pick.workload,
        sizes=problem.workload(pick.workload).as_dict(),
        status=_claim_status(pick),
        speedup=pick.speedup.value,
        interval=(pick.speedup.low, pick.speedup.high),
        seed=interval_seed(state, pick.workload),
        candidate_seconds=timing.samples if timing is not None else (),
        original_seconds=timing.paired if timing is not None else (),
        discarded=timing.discarded if timing is not None else 0,
        config=pick.config.as_dict() if pick.config is not None else None,
        template=templates.lookup(state)(pick.config).digest if pick.config is not None else "",
        source=entry.digest,
        code=_delivered_code_digest(state, pick, entry),
        file=f"tuned/{entry.file}",
        clocks=timing.clocks if timing is not None else (),
        doubt=pick.doubt,
        disturbed=timing.disturbed if timing is not None else 0,
        draws=timing.draws if timing is not None else (),
        others=_other_sittings(state, pick) if timing is not None and timing.draws else (),
    )


def _claim_status(pick: Pick) -> Literal["faster", "faster, not certified", "the original stays"]:
    if pick.config is None:
        return "the original stays"
    return "faster, not certified" if pick.doubt else "faster"


def _other_sittings(state: State, pick: Pick) -> tuple[Sitting, ...]:
    assert pick.config is not None, "the original has no sittings"
    found = sittings_of(state, pick.config, pick.workload)[1:]
    return tuple(Sitting(timing.samples, timing.paired, timing.disturbance, timing.draws) for timing in found)


def _delivered_code_digest(state: State, pick: Pick, entry: DispatchEntry) -> str:
    """That of the very source that is delivered."""
    if pick.config is None:
        return state.baseline.outcome.code_digest if state.baseline is not None else ""
    builds = [b for v in state.verified if v.outcome.trial.config == pick.config for b in v.builds]
    own = [b.code_digest for b in builds if pick.workload in b.workloads and b.source_digest == entry.digest]
    return own[-1] if own else ""


def _verified_config(state: State, templates: Templates, found: Verified) -> VerifiedConfig:
    config = found.outcome.trial.config
    assert config is not None, "the original is not verified"
    statuses = {result.workload: result.status.value for result in found.outcome.results}
    template = templates.lookup(state)(config).digest
    watched = found.sanitized or Sanitized()
    said = (watched.sentence, watched.findings, found.sides.sentence)
    return VerifiedConfig(config.as_dict(), template, statuses, found.builds, found.seen, *said)


def _sanitizer_sentence(state: State) -> str:
    """What watched those that were verified; where nobody says, what was there when the run began."""
    said = dict.fromkeys(v.sanitized.sentence for v in state.verified if v.sanitized is not None)
    notes = state.started.notes if state.started is not None else ()
    noted = [note.removeprefix(NOTE) for note in notes if note.startswith(NOTE)]
    return "; ".join(said) or next(iter(noted), NOT_IN_FORCE)
