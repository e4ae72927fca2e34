"""From diagnoses to where a search looks first, and back when that proves wrong. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.core.counted import counted
from tunesmith.core.expr import Expr
from tunesmith.core.focus import Condition, Focus, count, meets
from tunesmith.core.ports import Tried
from tunesmith.core.profile.findings import Diagnosis, Finding
from tunesmith.core.profile.remedies import Remedy
from tunesmith.core.space import Config, ConfigSet, Param
from tunesmith.core.stats import median

WORTH = 0.05  # share of the time × confidence, over all workloads: below it a finding steers nothing
FEWEST = 16  # configurations that must be left,
SHARE = 1 / 16  # and this share of all
# Outcomes before a focus is judged: by its best, and by the middle of each side.
BEFORE_BEST, BEFORE_MIDDLE, OUTSIDE_MIDDLE = 8, 16, 3
BEYOND = 2.0  # times the noise: how much better the outside must be
STALLED = 24  # outcomes without a better one: what the focus could give it has given


@dataclass(frozen=True)
class Steerable:
    """What a template offers: its answers, and the configurations they are about."""

    answers: Mapping[Remedy, Expr]
    params: tuple[Param, ...]
    configs: ConfigSet

    def count(self, conditions: Sequence[Condition]) -> int:
        return count(self.configs, self.params, tuple(c.text for c in conditions))


def focus_of(
    diagnoses: Mapping[str, Diagnosis],
    weights: Mapping[str, float],
    offered: Steerable,
    *,
    base: Focus | None = None,
    dropped: frozenset[str] = frozenset(),
    subject: Config | None = None,
) -> Focus | None:
    """The conditions that answer the findings, those that cost most first, beside those of the base.

    Of a finding's remedies the likeliest counts that the template answers and that leaves enough beside
    those before it; so where two contradict each other the costlier finding wins. What the configuration
    that was looked at has already is no remedy for it.
    """
    total = len(offered.configs)
    least = max(FEWEST, total * SHARE)
    conditions: list[Condition] = list(base.conditions) if base else []
    left = offered.count(conditions)
    for finding, workloads, score in weighed(diagnoses, weights):
        if score < WORTH:
            break
        for remedy in finding.remedies:
            if remedy not in offered.answers or remedy in dropped:
                continue
            text = offered.answers[remedy].text
            if subject is not None and meets(subject, (text,)):
                continue
            where = "every workload" if 1 < len(workloads) == len(diagnoses) else ", ".join(workloads)
            evidence = f"{finding.evidence[0]} (at {where})"
            condition = Condition(remedy.value, text, finding.kind.value, evidence, score)
            remaining = offered.count([*conditions, condition])
            if remaining == left:
                break  # met by all that is left: answered
            if remaining >= least:
                conditions.append(condition)
                left = remaining
                break
    return Focus(tuple(conditions), left, total) if conditions else None


def weighed(
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
    """What proved wrong of a focus, or has had its time."""

    remedies: frozenset[str]
    reason: str


def doubt(focus: Focus, tried: Sequence[Tried], noise: float, before: int = 0) -> Doubt | None:
    """Whether what was measured speaks against a focus. `tried` is in the order of measuring, and so many of
    it were there before the focus was."""
    inside = [t.score for t in tried if t.score is not None and focus.holds(t.config)]
    others = [(t.score, t) for t in tried if t.score is not None and not focus.holds(t.config)]
    everything = frozenset(condition.remedy for condition in focus.conditions)
    known = sum(focus.holds(t.config) for t in tried)
    if known >= focus.inside:
        every = counted(focus.inside, "configuration inside has", "configurations inside have")
        return Doubt(everything, f"all {every} been tried")
    if len(inside) >= BEFORE_BEST and others:
        score, best = max(others, key=lambda pair: pair[0])
        if score > max(inside) + BEYOND * noise:
            broken = [c for c in focus.conditions if not replace(focus, conditions=(c,)).holds(best.config)]
            texts = " and ".join(condition.text for condition in broken)
            more = f"{100 * math.expm1(score - max(inside)):.1f} %"
            return Doubt(
                frozenset(condition.remedy for condition in broken),
                f"{best.config}, without {texts}, is {more} faster than the best with it",
            )
    enough = len(inside) >= BEFORE_MIDDLE and len(others) >= OUTSIDE_MIDDLE
    if enough and median(inside) <= median([score for score, _ in others]):
        return Doubt(everything, f"the middle of {len(inside)} inside is no better than outside")
    since = min(_since_best(tried, noise), len(tried) - before)
    if since >= STALLED:
        return Doubt(everything, f"the last {since} found nothing better")
    return None


def widened(focus: Focus, found: Doubt, offered: Steerable) -> Focus | None:
    """The same without what is doubted."""
    rest = focus.without(found.remedies)
    return Focus(rest, offered.count(rest), focus.of) if rest else None


def _since_best(tried: Sequence[Tried], noise: float) -> int:
    """Outcomes since one was better than all before it, in general, by more than noise."""
    best, last = float("-inf"), 0
    for number, one in enumerate(tried, 1):
        if one.score is not None and one.score > best + noise:
            best, last = one.score, number
    return len(tried) - last
