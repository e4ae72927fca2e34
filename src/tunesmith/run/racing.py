"""Who wins: the general configuration and the best of each workload, by the race of the finalists."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.run.boundary import SLOWER, TimedSize, boundary_of, probes_of, ratio_of, rounds_of
from tunesmith.run.outcome import (
    Interval,
    Outcome,
    Result,
    Timing,
    all_or_nothing,
    joined,
    median,
    median_interval,
    speedup_interval,
)
from tunesmith.run.ports import Tried
from tunesmith.run.scores import Yardstick, noise, score, scores
from tunesmith.run.sittings import Settled, later_sittings, settle
from tunesmith.run.state import State
from tunesmith.space.expr import parse
from tunesmith.space.grammar import tidy
from tunesmith.space.params import Config
from tunesmith.text import seed_of

Finalists = dict[Config, dict[str, Result]]

NOT_TIMED = "it was not timed at other sizes than the workloads"
CLAIM = 1.01  # a speed-up is claimed only where its interval lies above this
SPECIAL = 1.01  # a workload gets its own configuration only for at least this much over the general one


@dataclass(frozen=True)
class Pick:
    """What serves one workload; `config` None: the original stays."""

    workload: str
    config: Config | None
    speedup: Interval
    doubt: str = ""  # why the speed-up is not certified, in a sentence; empty: it is


@dataclass(frozen=True)
class Winners:
    general: Config | None
    picks: tuple[Pick, ...]
    where: tuple[str, ...] = ()  # the general one serves other sizes only where all of these hold
    shown: str = ""  # what that rests on, in words
    timed: int = 0  # sizes at which it was timed there, and the least that it gained
    least: float | None = None

    def serves(self, sizes: Mapping[str, int]) -> bool:
        return all(parse(text).holds(sizes) for text in self.where)

    def configs(self) -> tuple[Config, ...]:
        """Every configuration delivered, the general one first."""
        picked = [self.general, *(pick.config for pick in self.picks)]
        return tuple(dict.fromkeys(config for config in picked if config is not None))


def choose(problem: Problem, state: State) -> Winners:
    """The winners by the alternating measurements, without those that failed verification, or are sure to."""
    barred = failed_verification(state) | doubted_finalists(state)
    field = {config: results for config, results in merged(state).items() if config not in barred}
    # The general one also serves sizes nobody timed: one that failed anywhere inside its domain is no such.
    sound = {
        config: found
        for config in general_entries(problem, state)
        if config in field and all(r.ok for r in field[config].values()) and (found := medians(field[config]))
    }
    ranked = {config: s for config, found in sound.items() if (s := score(problem, found)) is not None}
    general = max(ranked, key=lambda config: ranked[config]) if ranked else None
    picks = [_pick(state, w.name, field, general) for w in problem.workloads]
    gains = general is not None and any(_claim(state, result) for result in field[general].values())
    return Winners(general if gains else None, tuple(picks))


def _pick(state: State, workload: str, field: Finalists, general: Config | None) -> Pick:
    """The general configuration, unless another is clearly better here; else the original."""
    times = {config: medians(results).get(workload, 0.0) for config, results in field.items()}
    best, to_beat = general, SPECIAL * (times[general] or 1.0 if general else 1.0)
    for config, here in times.items():
        if here > to_beat:
            best, to_beat = config, here
    speedup = _claim(state, field[best].get(workload)) if best else None
    return Pick(workload, best, speedup) if best and speedup else _stays(workload)


def verified_choice(problem: Problem, state: State) -> Winners:
    """The same winners with the speed-ups of the verification; the original stays where they do not hold."""
    choice = choose(problem, state)
    picks = []
    for pick in choice.picks:
        settled = settled_at(state, pick.config, pick.workload)
        holds = settled is not None and settled.speedup.low > CLAIM and not _slower_when_served(state, pick)
        picks.append(
            Pick(pick.workload, pick.config, settled.speedup, settled.doubt)
            if settled and holds
            else _stays(pick.workload)
        )
    gains = any(_claim(state, timing_of(state, choice.general, w.name)) for w in problem.workloads)
    if choice.general is None or not gains:
        return Winners(None, tuple(picks))
    tested = tuple(f"{tidy(text)} <= {most}" for text, most in _reach(problem, state, choice.general))
    if not any(probes_of(problem, served) for served in rounds_of(state, choice.general)):
        return Winners(choice.general, tuple(picks), tested, NOT_TIMED)
    own = ((w.sizes, timing_of(state, choice.general, w.name)) for w in problem.workloads)
    timed = [TimedSize(sizes, ratio_of(result)) for sizes, result in own if result is not None]
    boundary = boundary_of(problem, state, choice.general, timed)
    if boundary is None:
        return Winners(None, tuple(picks))
    # Nothing was timed where nothing was verified: the boundary's own bounds are never wider.
    bounded = {text.rpartition(" ")[0] for text in boundary.conditions}
    where = (*(text for text in tested if text.rpartition(" ")[0] not in bounded), *boundary.conditions)
    return Winners(choice.general, tuple(picks), where, boundary.in_words, boundary.inside, boundary.least)


def _slower_when_served(state: State, pick: Pick) -> bool:
    """Whether the delivered kernel, called through its dispatch, was slower at the workload after all."""
    served = later_sittings(state, pick.config, pick.workload) if pick.config is not None else ()
    return any(median(timing.ratios) < SLOWER for timing in served)


def verified_cases(state: State, choice: Winners) -> int:
    """On which what is delivered was right: cases of one that fell, or gained nothing, prove nothing."""
    return sum(v.cases for v in state.verified if v.outcome.trial.config in choice.configs())


def _reach(problem: Problem, state: State, config: Config | None) -> tuple[tuple[str, int], ...]:
    """The largest sizes and arrays that were verified, as far as the contract promises larger ones."""
    furthest: dict[str, int] = {}
    for text, most in (one for v in state.verified if v.outcome.trial.config == config for one in v.reach):
        furthest[text] = max(most, furthest.get(text, most))
    promised = {rule.name: max(rule.one_of or (rule.max,)) for rule in problem.contract.sizes}
    return tuple((text, most) for text, most in furthest.items() if parse(text).evaluate(promised) > most)


def unverified(problem: Problem, state: State) -> tuple[tuple[Config, tuple[str, ...]], ...]:
    """What still has to be verified: configurations with the workloads they are delivered for."""
    choice, raced = choose(problem, state), merged(state)
    done = {(v.outcome.trial.config, name) for v in state.verified for name in v.outcome.trial.workloads}
    wanted: dict[Config, tuple[str, ...]] = {}
    for config in choice.configs():
        runs = [name for name, result in raced[config].items() if result.ok]
        picked = [p.workload for p in choice.picks if p.config == config]
        serves = runs if config == choice.general else picked
        if left := tuple(name for name in serves if (config, name) not in done):
            wanted[config] = left
    return tuple(wanted.items())


def timing_of(state: State, config: Config | None, workload: str) -> Result | None:
    """The verified result of a configuration at a workload."""
    outcomes = [v.outcome for v in state.verified if v.outcome.trial.config == config]
    found = [result for outcome in outcomes if (result := outcome.result(workload)) is not None]
    return found[-1] if found else None


def sittings_of(state: State, config: Config, workload: str) -> tuple[Timing, ...]:
    """The verification first, then the heats and the calls of what is delivered; none where it has none."""
    proven = timing_of(state, config, workload)
    if proven is None or proven.timing is None or not proven.timing.ratios:
        return ()
    heats = merged(state).get(config, {}).get(workload)
    raced = (heats.timing,) if heats is not None and heats.timing and heats.timing.ratios else ()
    return (proven.timing, *raced, *later_sittings(state, config, workload))


def settled_at(state: State, config: Config | None, workload: str) -> Settled | None:
    """What is claimed there by all sittings; None where nothing is."""
    if config is None or not (sittings := sittings_of(state, config, workload)):
        return None
    return settle(sittings[0], sittings[1:], interval_seed(state, workload))


def _claim(state: State, result: Result | None) -> Interval | None:
    """The speed-up by the paired measurements, where it may be claimed."""
    if result is None or result.timing is None or not result.timing.ratios:
        return None
    speedup = speedup_interval(result.timing, interval_seed(state, result.workload))
    return speedup if speedup.low > CLAIM else None


def interval_seed(state: State, workload: str) -> int:
    """Of the bootstrap behind a claim."""
    return seed_of(state.started.settings.seed if state.started else 0, "interval", workload)


def _stays(workload: str) -> Pick:
    return Pick(workload, None, Interval(1.0, 1.0, 1.0))


HEATS = 3
TIE = 0.005  # log speed-ups closer than this: it does not matter who wins
MARGIN = 0.05  # log: who is further behind by a short measurement, and its noise, does not enter
DEVIATIONS = 4  # of that noise
PER_WORKLOAD = 3  # contenders of each workload beside the general ones
DISBELIEVED = 4  # finalists of a template that are refused, and none that is not: no other is believed
PATIENCE = 20  # finalists that may fail before the rest are given up: by then the template is at fault


SOUND = (Status.OK, Status.INFEASIBLE)  # where a configuration may not run, nobody runs it


@dataclass
class Finalist:
    """A finalist, and the workloads it is timed at."""

    outcome: Outcome  # its short measurement
    workloads: set[str] = field(default_factory=set)
    is_general: bool = False


def merged(state: State) -> dict[Config, dict[str, Result]]:
    """All alternating measurements of each finalist taken together; a failure in any of them counts."""
    found: dict[Config, dict[str, Result]] = {}
    for outcome in state.finalists():
        assert outcome.trial.config is not None, "the original is not in the race"
        own = found.setdefault(outcome.trial.config, {})
        for result in outcome.results:
            before = own.get(result.workload)
            own[result.workload] = result if before is None else _both(before, result)
    believed = {config: all_or_nothing(tuple(own.values())) for config, own in found.items()}
    return {config: {r.workload: r for r in results} for config, results in believed.items()}


def _both(first: Result, second: Result) -> Result:
    if first.timing is None or second.timing is None:
        return first if first.timing is None else second
    return replace(second, timing=joined(first.timing, second.timing))


def entries(problem: Problem, state: State, count: int) -> dict[Config, Finalist]:
    """The `count` best in general, then the best of each workload; none that nobody would bet on.

    One that fails its long look, there or anywhere, gives its place to the next in line that is not like it
    (`refusals`), as long as the patience lasts; then those that have raced are all there will be. One with
    sizes built in serves nobody else, so it contends in general only where all are such.
    """
    raced = merged(state)
    fell = {(config, name) for config, found in raced.items() for name, r in found.items() if not r.ok}
    failed = {config for config, found in raced.items() if not any(r.ok for r in found.values())}
    failed |= failed_verification(state)
    is_over = len(failed | {config for config, _ in fell}) > PATIENCE
    failed |= doubted_finalists(state)
    yardstick = Yardstick(state)
    field = [
        (o, yardstick.speedups(o))
        for o in state.searched
        if o.trial.config not in failed and (o.trial.config in raced or not is_over)
    ]
    margin = MARGIN + DEVIATIONS * noise(state)
    chosen: dict[Config, Finalist] = {}
    everywhere = [
        (o, found)
        for o, found in field
        if all(r.status in SOUND and (o.trial.config, r.workload) not in fell for r in o.results)
    ]
    defines = {c.id: c.admitted.baking for c in state.candidates if c.admitted is not None}
    serving = [
        (o, found)
        for o, found in everywhere
        if (c := o.trial.config) is None or not _names_sizes(defines.get(c.candidate, ()), c)
    ]
    if not any(score(problem, found) is not None for _, found in serving):
        serving = everywhere
    ranked = _best(((s, o) for o, found in serving if (s := score(problem, found)) is not None), margin)
    for outcome in _distinct(ranked, count):
        entry = _enter(chosen, outcome)
        entry.is_general = True
        entry.workloads.update(r.workload for r in outcome.results if r.ok)
    for workload in problem.workloads:
        name = workload.name
        standing = [(o, found) for o, found in field if (o.trial.config, name) not in fell]
        here = _best(((math.log(found[name]), o) for o, found in standing if name in found), margin)
        for outcome in _distinct(here, PER_WORKLOAD, name):
            _enter(chosen, outcome).workloads.add(name)
    return chosen


@lru_cache(maxsize=4096)
def _names_sizes(defines: tuple[str, ...], config: Config) -> bool:
    return any(parse(text).bind(config.as_dict()).names for text in defines)


def general_entries(problem: Problem, state: State) -> list[Config]:
    entered = entries(problem, state, state.settings.finalists)
    return [config for config, entry in entered.items() if entry.is_general]


def doubted_finalists(state: State) -> frozenset[Config]:
    """Those that have everything in common with finalists that were refused."""
    raced = merged(state)
    statuses = {config: {result.status for result in found.values()} for config, found in raced.items()}
    wrong = [c for c, own in statuses.items() if Status.WRONG in own and Status.OK not in own]
    if not wrong and all(r.ok for v in state.verified for r in v.outcome.results):
        return frozenset()
    from tunesmith.run.refusals import doubted

    return doubted(state, wrong)


def failed_verification(state: State) -> set[Config]:
    outcomes = [v.outcome for v in state.verified if any(not r.ok for r in v.outcome.results)]
    failed = {o.trial.config for o in outcomes if o.trial.config is not None}
    calls = (call for served in state.served for call in served.calls)
    cannot = (Status.INFEASIBLE, Status.OVER_LIMITS)  # at that size, where the original serves
    return failed | {
        call.config
        for call in calls
        if call.config is not None and not call.result.ok and call.result.status not in cannot
    }


def sound_scores(problem: Problem, state: State) -> tuple[Tried, ...]:
    """What was tried. What a longer look found wrong counts as failed: nothing wrong may count as fast."""
    raced, barred = merged(state), failed_verification(state)
    names, unbelieved = [w.name for w in problem.workloads], _unbelieved(raced)
    checked: list[Tried] = []
    for tried in scores(problem, state):
        bad = _unsound(raced.get(tried.config, {}))
        if tried.config in barred or tried.config.candidate in unbelieved:
            bad.update(names)
        at = tuple(None if n in bad else log for n, log in zip(names, tried.at, strict=False))
        checked.append(Tried(tried.config, None if bad else tried.score, at))
    return tuple(checked)


def _unsound(results: Mapping[str, Result]) -> set[str]:
    return {name for name, result in results.items() if result.status not in SOUND}


def refused_finalists(state: State, raced: Finalists) -> tuple[set[Config], set[str]]:
    """Configurations that a longer look found wrong somewhere, and candidates of which it believes none."""
    refused = {config for config, results in raced.items() if _unsound(results)}
    return refused | failed_verification(state), _unbelieved(raced)


def _unbelieved(raced: Finalists) -> set[str]:
    """Candidates of which every finalist was refused, and enough of them: nor are the others right."""
    sound = {c.candidate for c, found in raced.items() if all(r.status in SOUND for r in found.values())}
    refused = Counter(config.candidate for config in raced if config.candidate not in sound)
    return {candidate for candidate, count in refused.items() if count >= DISBELIEVED}


def _enter(chosen: dict[Config, Finalist], outcome: Outcome) -> Finalist:
    assert outcome.trial.config is not None, "the original is not in the race"
    return chosen.setdefault(outcome.trial.config, Finalist(outcome))


def _best(scored: Iterable[tuple[float, Outcome]], margin: float) -> list[Outcome]:
    ranked = sorted(scored, key=lambda pair: -pair[0])
    return [outcome for value, outcome in ranked if value >= ranked[0][0] - margin]


def _distinct(outcomes: Sequence[Outcome], count: int, workload: str | None = None) -> list[Outcome]:
    """The first `count`: equal code, launched alike, is one contender under two names."""
    taken: dict[tuple[str, ...], Outcome] = {}
    for outcome in outcomes:
        results = [r for r in outcome.results if r.ok and workload in (None, r.workload)]
        if len(taken) < count:
            taken.setdefault(tuple(r.key for r in results), outcome)
    return list(taken.values())


def heat(problem: Problem, state: State) -> tuple[tuple[Config, tuple[str, ...]], ...]:
    """Who is timed next, and at which workloads; nobody when the race is over."""
    entered, known = entries(problem, state, state.settings.finalists), merged(state)
    wanted = {c: {w for w in e.workloads if w not in known.get(c, {})} for c, e in entered.items()}
    if not any(wanted.values()):
        wanted = _again(problem, state, entered, known)
    names = [w.name for w in problem.workloads]
    return tuple((c, tuple(n for n in names if n in here)) for c, here in wanted.items() if here)


def _again(
    problem: Problem, state: State, entered: dict[Config, Finalist], known: dict[Config, dict[str, Result]]
) -> dict[Config, set[str]]:
    """Those whose places are open, the leader with them."""
    seed = state.started.settings.seed if state.started else 0
    times = Counter((o.trial.config, r.workload) for o in state.finalists() for r in o.results)
    logs: dict[Config, dict[str, Interval]] = {
        config: {
            name: _log(median_interval(r.timing.ratios, seed_of(seed, "heat", name)))
            for name, r in known.get(config, {}).items()
            if r.timing is not None and r.timing.ratios
        }
        for config in entered
    }
    wanted: dict[Config, set[str]] = {config: set() for config in entered}
    decisions: list[tuple[tuple[str, ...], dict[Config, Interval]]] = [
        ((w.name,), {c: found[w.name] for c, found in logs.items() if w.name in found})
        for w in problem.workloads
    ]
    general = [config for config, entry in entered.items() if entry.is_general and logs[config]]
    all_names = tuple(w.name for w in problem.workloads)
    decisions.append((all_names, {config: _general(problem, logs[config]) for config in general}))
    for names, standings in decisions:
        undecided = _open(standings)
        meeting = [c for c in undecided if any(times[c, name] < HEATS for name in names)]
        # One alone only where the leader has had its heats: each is timed against the original anyway.
        is_late = meeting != undecided[-1:]
        for config in meeting if is_late else ():
            wanted[config].update(n for n in names if n in logs[config] and times[config, n] < HEATS)
    return wanted


def _open(standings: dict[Config, Interval]) -> list[Config]:
    """The leader and all who may yet pass it; nobody where the first place is settled."""
    if not standings:
        return []
    leader = max(standings.values(), key=lambda interval: interval.value)
    behind = [
        config
        for config, own in standings.items()
        if own is not leader
        and own.high >= leader.low
        and max(own.high - leader.low, leader.high - own.low) > TIE  # how far apart they may be
    ]
    return [*behind, *(c for c, own in standings.items() if own is leader)] if behind else []


def _general(problem: Problem, logs: dict[str, Interval]) -> Interval:
    """The weighted mean over the workloads; one where it does not run counts as the original there."""
    total = sum(w.weight for w in problem.workloads)
    value = variance = 0.0
    for workload in problem.workloads:
        if workload.name in logs:
            own, share = logs[workload.name], workload.weight / total
            value += share * own.value
            variance += (share * (own.high - own.low) / 2) ** 2
    return Interval(value, value - math.sqrt(variance), value + math.sqrt(variance))


def _log(ratio: Interval) -> Interval:
    low = math.log(ratio.low) if ratio.low > 0 else -math.inf
    return Interval(math.log(ratio.value), low, math.log(ratio.high))


def medians(results: dict[str, Result]) -> dict[str, float]:
    return {name: median(r.timing.ratios) for name, r in results.items() if r.timing and r.timing.ratios}
