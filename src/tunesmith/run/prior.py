"""The prior of a search: what profiles suggest to try first, until measurements say otherwise. Pure.

A diagnosis names remedies, a template's `[answers]` say which configurations have them, and those are what
the search looks at first. One configuration in eight is from elsewhere, so a wrong prior shows, and is
withdrawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tunesmith.base.text import format_count
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Remedy
from tunesmith.profiles.facts import Diagnosis, Finding
from tunesmith.run.budget import is_chain, last_right
from tunesmith.run.events import Profiled, Settings, Steered
from tunesmith.run.outcome import median
from tunesmith.run.ports import Tried
from tunesmith.run.race import sound_scores
from tunesmith.run.scores import measurement_noise
from tunesmith.run.state import PriorChange, State
from tunesmith.space.configset import Config, ConfigSet, Param
from tunesmith.space.expr import Expr
from tunesmith.space.space import Condition, Focus, count_configs, meets_conditions

WORTH = 0.05  # share of the time × confidence, over all workloads: below it a finding changes nothing
FEWEST = 16  # configurations that must be left,
SHARE = 1 / 16  # and this share of all
# Outcomes before a prior is judged: by its best, and by the middle of each side.
BEFORE_BEST, BEFORE_MIDDLE, OUTSIDE_MIDDLE = 8, 16, 3
BEYOND = 2.0  # times the noise: how much better the outside must be
STALLED = 24  # outcomes without a better one: what the prior could give it has given
PART = 1 / 3  # of the budget, after which the best so far is profiled,
SOONEST, USUALLY = 16, 48  # after so many outcomes at least; where there is no budget, after so many
CHANGED = math.log(1.1)  # if it is so much better than the original: else there is nothing new to see
NO_ANSWERS = "the template has no [answers]: nothing tells which configurations have which remedy"


@dataclass(frozen=True)
class Answers:
    """Which configurations of a template have which remedy."""

    conditions: Mapping[Remedy, Expr]
    params: tuple[Param, ...]
    configs: ConfigSet

    def count(self, conditions: Sequence[Condition]) -> int:
        return count_configs(self.configs, self.params, tuple(c.text for c in conditions))


def focus_of(
    diagnoses: Mapping[str, Diagnosis],
    weights: Mapping[str, float],
    answers: Answers,
    *,
    base: Focus | None = None,
    dropped: frozenset[str] = frozenset(),
    subject: Config | None = None,
) -> Focus | None:
    """The conditions that answer the findings, those that cost most first, beside those of the base.

    Of a finding's remedies the likeliest counts that the template answers and that leaves enough beside
    those before it; so where two contradict each other the costlier finding wins. What the configuration
    that was profiled has already is no remedy for it.
    """
    total = len(answers.configs)
    least = max(FEWEST, total * SHARE)
    conditions: list[Condition] = list(base.conditions) if base else []
    left = answers.count(conditions)
    for finding, workloads, score in weigh_findings(diagnoses, weights):
        if score < WORTH:
            break
        for remedy in finding.remedies:
            if remedy not in answers.conditions or remedy in dropped:
                continue
            text = answers.conditions[remedy].text
            if subject is not None and meets_conditions(subject, (text,)):
                continue
            where = "every workload" if 1 < len(workloads) == len(diagnoses) else ", ".join(workloads)
            evidence = f"{finding.evidence[0]} (at {where})"
            condition = Condition(remedy.value, text, finding.kind.value, evidence, score)
            remaining = answers.count([*conditions, condition])
            if remaining == left:
                break  # met by all that is left: answered
            if remaining >= least:
                conditions.append(condition)
                left = remaining
                break
    return Focus(tuple(conditions), left, total) if conditions else None


def weigh_findings(
    diagnoses: Mapping[str, Diagnosis], weights: Mapping[str, float]
) -> list[tuple[Finding, tuple[str, ...], float]]:
    """Each kind of finding once, as it is where it costs most; where it shows; what it costs over all."""
    total = sum(weights[name] for name in diagnoses) or 1.0
    found: dict[str, list[tuple[float, str, Finding]]] = {}
    for name, diagnosis in diagnoses.items():
        for finding in diagnosis.findings:
            cost = weights[name] / total * finding.score
            found.setdefault(finding.kind, []).append((cost, name, finding))
    rows = []
    for each in found.values():
        worst = max(each, key=lambda one: one[0])[2]
        rows.append((worst, tuple(name for _, name, _ in each), sum(cost for cost, _, _ in each)))
    return sorted(rows, key=lambda row: -row[2])


@dataclass(frozen=True)
class Doubt:
    """What proved wrong of a prior, or has had its time."""

    remedies: frozenset[str]
    reason: str


def doubt_focus(focus: Focus, tried: Sequence[Tried], noise: float, before: int = 0) -> Doubt | None:
    """Whether what was measured speaks against a prior. `tried` is in the order of measuring, and so many of
    it were there before the prior was."""
    holds = [focus.holds(t.config) for t in tried]
    inside = [t.score for t, is_in in zip(tried, holds, strict=True) if is_in and t.score is not None]
    others = [(t.score, t.config) for t, is_in in zip(tried, holds, strict=True) if not is_in]
    outside = [(score, config) for score, config in others if score is not None]
    everything = frozenset(condition.remedy for condition in focus.conditions)
    if sum(holds) >= focus.inside:
        every = format_count(focus.inside, "configuration inside has", "configurations inside have")
        return Doubt(everything, f"all {every} been tried")
    if len(inside) >= BEFORE_BEST and outside:
        score, best = max(outside, key=lambda pair: pair[0])
        if score > max(inside) + BEYOND * noise:
            broken = [c for c in focus.conditions if not meets_conditions(best, (c.text,))]
            texts = " and ".join(condition.text for condition in broken)
            more = f"{100 * math.expm1(score - max(inside)):.1f} %"
            return Doubt(
                frozenset(condition.remedy for condition in broken),
                f"{best}, without {texts}, is {more} faster than the best with it",
            )
    enough = len(inside) >= BEFORE_MIDDLE and len(outside) >= OUTSIDE_MIDDLE
    if enough and median(inside) <= median([score for score, _ in outside]):
        return Doubt(everything, f"the middle of {len(inside)} inside is no better than outside")
    since = min(_since_best(tried, noise), len(tried) - before)
    return Doubt(everything, f"the last {since} found nothing better") if since >= STALLED else None


def widen_focus(focus: Focus, found: Doubt, answers: Answers) -> Focus | None:
    """The same without what is doubted."""
    rest = focus.without(found.remedies)
    return Focus(rest, answers.count(rest), focus.of) if rest else None


def _since_best(tried: Sequence[Tried], noise: float) -> int:
    """Outcomes since one was better than all before it, in general, by more than noise."""
    best, last = float("-inf"), 0
    for number, one in enumerate(tried, 1):
        if one.score is not None and one.score > best + noise:
            best, last = one.score, number
    return len(tried) - last


@dataclass(frozen=True)
class ToProfile:
    config: Config | None  # None: the original
    workload: str
    seconds: float  # what it is known to take


@dataclass(frozen=True)
class PriorStep:
    """A search by itself: what other templates of the run have shown plays no part."""

    problem: Problem
    state: State
    answers: Answers
    tried: Sequence[Tried]

    def next(self) -> ToProfile | Steered | None:
        """What the search under way does about its prior, by the state alone: profile a kernel, change the
        prior, or nothing. The original is profiled before anything is tried, the best so far once, later."""
        state, changes = self.state, self.state.own_changes
        if not state.settings.steer:
            return None
        if (wanted := self._to_profile()) is not None:
            return wanted
        if len(self._profiled) > max((change.event.profiled for change in changes), default=0):
            return self._by_diagnosis()
        if state.focus is None:
            return None
        before = len(self.tried) - (len(state.searched) - changes[-1].tried)
        found = doubt_focus(state.focus, self.tried, measurement_noise(state), before)
        if found is None:
            return None
        focus = widen_focus(state.focus, found, self.answers)
        return Steered(focus, found.reason, dropped=tuple(sorted(found.remedies)))

    @property
    def _candidate(self) -> str:
        assert self.state.under_way is not None, "nothing is under way"
        return self.state.under_way.candidate

    @property
    def _profiled(self) -> list[Profiled]:
        name = self._candidate
        return [p for p in self.state.profiled if p.config is None or p.config.candidate == name]

    def _to_profile(self) -> ToProfile | None:
        asked = self.state.asked
        # Each of several devices times the original before anything is tried.
        begun = not self.state.devices and asked.count("sentinel")
        if not asked.count(("of", self._candidate)) and not begun:
            return missing_profile(self.problem, self.state, None)
        # From before there were profiles; or nothing would follow, and nobody waits for what is under way.
        if not self._profiled or not self.answers.conditions:
            return None
        subject = self._profiled[-1].config or self._much_better()
        return missing_profile(self.problem, self.state, subject) if subject is not None else None

    def _much_better(self) -> Config | None:
        """The best so far, when it is time to look at it and there is something new to see. What the gate
        tried before the search began does not count."""
        decision, right = self.state.under_way, [t for t in self.tried if t.score is not None]
        evals = decision.evals if decision and decision.evals is not None else self.state.settings.evals
        due = USUALLY if evals is None else max(SOONEST, evals * PART)
        if len(self.tried) - len(self.state.gated(self._candidate)) < due or not right:
            return None
        best = max(right, key=lambda t: t.score or 0.0)
        return best.config if best.score is not None and best.score >= CHANGED else None

    def _by_diagnosis(self) -> Steered:
        """What follows from the last kernel that was profiled."""
        subject, done = self._profiled[-1].config, len(self._profiled)
        looked = [p for p in self._profiled if p.config == subject]
        diagnoses = {p.workload: p.diagnosis for p in looked if p.diagnosis is not None}
        whose = "the original" if subject is None else f"the best so far, {subject},"
        base = self.state.focus
        if not self.answers.conditions:
            return Steered(None, NO_ANSWERS, done)
        if not diagnoses:
            why = "; ".join(dict.fromkeys(note for p in looked for note in p.notes))
            return Steered(base, f"{whose} could not be profiled: {why or 'nothing is known of it'}", done)
        weights = {w.name: w.weight for w in self.problem.workloads}
        dropped = frozenset(r for change in self.state.own_changes for r in change.event.dropped)
        focus = focus_of(diagnoses, weights, self.answers, base=base, dropped=dropped, subject=subject)
        found = None
        if focus is not None:  # much may have been tried by now that answers what this one suffers from
            found = doubt_focus(focus, self.tried, measurement_noise(self.state), len(self.tried))
        dropped_now = tuple(sorted(found.remedies)) if found else ()
        if focus is not None and found is not None:
            focus = widen_focus(focus, found, self.answers)
            if focus is None or focus.texts == (base.texts if base else ()):
                why = f"{whose} shows what has been answered: {found.reason}"
                return Steered(focus, why, done, dropped_now)
        if focus == base:
            said = [f"{f.kind.value} ({score:.2f})" for f, _, score in weigh_findings(diagnoses, weights)]
            findings = f"shows {', '.join(said)}" if said else "shows no fault"
            return Steered(base, f"{whose} {findings}: nothing more that the template answers", done)
        old = base.conditions if base else ()
        new = [c for c in (focus.conditions if focus else ()) if c not in old]
        reasons = [f"{c.finding}, {c.evidence}: {c.remedy}" for c in new]
        return Steered(focus, f"{whose} shows {'; '.join(reasons)}", done, dropped_now)


def missing_profile(problem: Problem, state: State, subject: Config | None) -> ToProfile | None:
    """A workload at which a kernel was timed and has not been profiled."""
    assert state.baseline is not None, "the original is timed before anything is searched"
    done = {p.workload for p in state.profiled if p.config == subject}
    searched = state.searched.of(subject) if subject else ()
    results = (searched[0] if searched else state.baseline.outcome).results
    known = {r.workload: r.timing.seconds for r in results if r.timing is not None}
    open_ = [w.name for w in problem.workloads if w.name in known and w.name not in done]
    return ToProfile(subject, open_[0], known[open_[0]]) if open_ else None


def to_look_at(problem: Problem, state: State) -> ToProfile | None:
    """What has to be profiled before it is decided what comes next: what is in view, or else the original."""
    return missing_profile(problem, state, in_view(problem, state)) if state.settings.steer else None


def diagnoses_in_view(problem: Problem, state: State) -> dict[str, Diagnosis]:
    """Of the kernel in view, by workload, as far as they are known; before that of the original."""
    seen = in_view(problem, state)
    looked = [p for p in state.profiled if p.config == seen]
    looked = looked or [p for p in state.profiled if p.config is None]
    return {p.workload: p.diagnosis for p in looked if p.diagnosis is not None}


def in_view(problem: Problem, state: State) -> Config | None:
    """The kernel by which the next round is decided: the best so far, in a chain its last that is right."""
    if not is_chain(state):
        return best_config(problem, state)
    last = last_right(state)
    return Config((), last.id) if last is not None else None


def best_config(problem: Problem, state: State) -> Config | None:
    """By the short measurements; None: the original is still the best."""
    scored = [(t.score, t.config) for t in sound_scores(problem, state) if t.score and t.score > 0]
    return max(scored, key=lambda pair: pair[0])[1] if scored else None


def without_profiles(settings: Settings, why: str) -> str:
    """What a run does without where nothing can be profiled; empty where it wanted no profiles."""
    if not settings.steer or not why:
        return ""
    what = "the search has no prior" if settings.strategy == "template" else "nothing is profiled"
    return f"{what}: {why}"


def change_text(change: PriorChange) -> str:
    """A line of progress."""
    focus, where = change.event.focus, "looks everywhere"
    if focus and not change.moved:
        where = "goes on as before"
    elif focus:
        where = f"looks first at {focus} ({focus.inside} of {focus.of})"
    return f"the search {where}: {change.event.reason}"
