"""From a profile to a diagnosis: what bounds a workload, how far from its floor it is, and what to do.

Every rule looks for one fault and says what share of the time is at stake. Findings are ranked by that share
and how sure it is; none can gain more than the distance to the floor. A kernel near its floor has no fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tunesmith.profiles import kernel_rules, launch_rules
from tunesmith.profiles.costs import ABOUT, RuleInput, costs_of, percent
from tunesmith.profiles.facts import Bound, Ceilings, Diagnosis, Finding, Kind, Profile
from tunesmith.profiles.roofline import OF_OPERATIONS, Ceiling, Floor, roofline, unmeasured_operations

# Times the floor. The best kernels in docs/results.md take 0.96 to 1.1 of a copy's time above a megabyte.
NEAR = 1.15
# A data sheet promises what no kernel gets: copies reach 85 to 90 % of it.
NEAR_DATA_SHEET = 1.3
SATURATED_MEMORY = 0.85  # of the peak, by the counters: what large copies show
# Below this the floor is not one: noise and a cache that helps account for a few per cent.
FASTER = 0.9
WORTH_SHOWING = 0.03  # share of the time
FASTER_THAN_POSSIBLE = (
    "faster than its floor: traffic or ceilings are wrong; measure again with --remeasure, or state `traffic`"
)

TOO_MUCH_STATED = (
    "faster than its floor: `operations` or ceilings are wrong; correct what is stated, or measure again "
    "with --remeasure"
)

RULES: tuple[Callable[[RuleInput], Finding | None], ...] = (
    *launch_rules.LAUNCH_RULES,
    *kernel_rules.MEMORY_RULES,
    *kernel_rules.COMPUTE_RULES,
    *launch_rules.EXPERIMENT_RULES,
)

EXPLAINS = 0.5  # of a symptom's score: a cause of less cannot be all there is to it
_OF_CEILINGS = {Ceiling.LAUNCH: Bound.LAUNCH, Ceiling.MEMORY: Bound.BANDWIDTH, Ceiling.CACHE: Bound.BANDWIDTH}


def diagnose(profile: Profile) -> Diagnosis:
    """Of any profile, however little it knows."""
    roof = roofline(profile)
    floor, distance = roof.floor, roof.distance
    if distance is not None and not 0 < distance < math.inf:
        distance = None
    main = profile.main
    found = Diagnosis(
        bound=Bound.UNKNOWN,
        summary="",
        confidence=0.2,
        findings=(),
        distance=distance,
        floor=floor.seconds if floor is not None else None,
        ceiling=floor.ceiling if floor is not None else "",
        launch=main.entry if main is not None else "",
    )
    if profile.cannot_run:
        return replace(found, summary=f"cannot run: {profile.cannot_run}", confidence=1.0)
    found = replace(found, notes=_notes(profile, floor))
    if floor is not None and distance is not None and _near(profile, floor, distance):
        return _at_the_floor(found, floor, distance)
    findings = _ranked(RuleInput(profile, costs_of(profile), roof), distance)
    away = _away(profile, floor, distance)
    if not findings:
        return replace(found, summary=f"no fault found; {away}")
    if profile.seconds is None:
        found = replace(found, notes=(*found.notes, "shares of the time are estimates from the code alone"))
    first = findings[0]
    where = f"in {main.entry}, " if main is not None else ""
    summary = f"{where}{first.kind.replace('_', ' ')}: {first.evidence[0]}; {away}"
    return replace(found, bound=first.bound, summary=summary, confidence=first.confidence, findings=findings)


def _at_the_floor(found: Diagnosis, floor: Floor, distance: float) -> Diagnosis:
    bound = _OF_CEILINGS.get(floor.ceiling, Bound.COMPUTE)
    if distance < FASTER:
        said = f"faster than its floor of {floor}: {distance:.2f} × that"
        wrong = TOO_MUCH_STATED if floor.ceiling in OF_OPERATIONS.values() else FASTER_THAN_POSSIBLE
        return replace(found, bound=bound, summary=said, confidence=0.3, notes=(*found.notes, wrong))
    near = f"near the ceiling of {floor}: {distance:.2f} × its floor"
    return replace(found, bound=bound, summary=near, confidence=0.9 if floor.measured else 0.6)


def _away(profile: Profile, floor: Floor | None, distance: float | None) -> str:
    if floor is not None and distance is not None:
        return f"{distance:.2f} × the floor of {floor}"
    if profile.seconds is None:
        return "not timed"
    return "no floor is known"


def _near(profile: Profile, floor: Floor, distance: float) -> bool:
    if distance <= (NEAR if floor.measured else NEAR_DATA_SHEET):
        return True
    counters, work = profile.counters, profile.work
    if counters is None or counters.dram is None or work is None or floor.ceiling is not Ceiling.MEMORY:
        return False
    # Of several launches the share of the peak is that of one: it says nothing of the others.
    if counters.dram_read is None or counters.dram_written is None or profile.parts:
        return False
    moved = counters.dram_read + counters.dram_written
    return counters.dram >= SATURATED_MEMORY and moved <= kernel_rules.EXTRA * work.bytes


def _ranked(given: RuleInput, distance: float | None) -> tuple[Finding, ...]:
    """What is shown is what is ranked: no gain above what the distance to the floor allows."""
    found = _merged([f for rule in RULES if (f := rule(given)) is not None and f.gain >= WORTH_SHOWING])
    shown = [f for f in found if not any(_explains(cause, f) for cause in found)]
    most = 1.0 if distance is None else max(0.0, 1 - 1 / distance)
    capped = [replace(f, gain=min(f.gain, most)) for f in shown]
    return tuple(sorted(capped, key=lambda f: -f.score))


def _merged(found: Sequence[Finding]) -> list[Finding]:
    """A kind once: as the rule has it that is surer of more, with the evidence of the other."""
    by_kind: dict[Kind, Finding] = {}
    for one in found:
        other = by_kind.get(one.kind)
        if other is None:
            by_kind[one.kind] = one
            continue
        best, rest = (other, one) if other.score >= one.score else (one, other)
        by_kind[one.kind] = replace(best, evidence=tuple(dict.fromkeys((*best.evidence, *rest.evidence))))
    return list(by_kind.values())


def _explains(cause: Finding, symptom: Finding) -> bool:
    enough = cause.score >= EXPLAINS * symptom.score
    return enough and cause.kind in ABOUT[symptom.kind].causes


def _notes(profile: Profile, floor: Floor | None) -> tuple[str, ...]:
    notes = [_launches(profile)] if profile.parts else []
    if profile.counters is None:
        notes.append(f"no hardware counters: {profile.no_counters or 'none were taken'}")
    if profile.static.instructions is None:
        notes.append(f"the machine code was not read: {profile.static.no_instructions or 'nobody did'}")
    if profile.seconds is None:
        notes.append("not timed")
    elif floor is None:
        notes.append("no ceiling is known, so neither is the distance to it")
    if unmeasured := unmeasured_operations(profile):
        kinds = " and ".join(unmeasured)
        notes.append(f"{kinds} operations are stated and their rate was not measured: no floor has them")
    given = RuleInput(profile, None, roofline(profile))
    if given.cached_share is not None:
        share = percent(given.cached_share)
        notes.append(f"{share} of the time goes when the data is in the cache (experiment)")
    elif profile.experiments.warm and profile.experiments.cold and profile.work and not given.fits_cache:
        notes.append("warm against cold tells nothing: the cache does not hold what must move")
    return tuple(notes)


def _launches(profile: Profile) -> str:
    """Which of several launches is shown, and what each takes where that is known."""
    main, count = profile.main, len(profile.parts)
    entry = main.entry if main is not None else profile.parts[0].entry
    known = [f"{part.entry} {percent(part.share)}" for part in profile.parts if part.share is not None]
    if len(known) == count:
        return f"of its {count} launches {entry} takes most and is shown; of the time: {', '.join(known)}"
    return f"of its {count} launches {entry} has the most threads and is shown: what each takes is not known"


@dataclass(frozen=True)
class View:
    """One kernel at one workload."""

    profile: Profile
    diagnosis: Diagnosis
    notes: tuple[str, ...] = ()  # what was not found out, and why


@dataclass(frozen=True)
class WorkloadPage:
    name: str
    sizes: dict[str, int]
    warm: bool
    views: tuple[View, ...]  # the original first


@dataclass(frozen=True)
class ProfilePage:
    problem: str
    device: str
    driver: str
    compiler: str
    ceilings: Ceilings
    workloads: tuple[WorkloadPage, ...]
    notes: tuple[str, ...] = ()
    missing: str = ""  # why nothing was measured
    plot: str = ""  # the file with the roofline

    @property
    def no_counters(self) -> tuple[str, ...]:
        """Why there are none, each reason once."""
        reasons = [v.profile.no_counters for w in self.workloads for v in w.views if not v.profile.counters]
        return tuple(dict.fromkeys(reason for reason in reasons if reason))
