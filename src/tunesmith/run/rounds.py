"""How a search went: the speed-up of every evaluation, and the best so far, over all and at each workload."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff

from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, without_block
from tunesmith.run.budget import candidate_noun, last_written
from tunesmith.run.candidates import Templates, rule_text
from tunesmith.run.events import STORED, Decided
from tunesmith.run.outcome import Result
from tunesmith.run.ports import Tried
from tunesmith.run.race import SOUND, doubted_finalists, merge_measurements, sound_scores
from tunesmith.run.scores import measurement_noise, score_configs
from tunesmith.run.state import Candidate, State
from tunesmith.space.configset import Config

BY_SEARCH = "by the search, not verified"  # what is said of every speed-up that short measurements gave
MAX = 50.0  # log: beyond it a ratio is no measurement


@dataclass(frozen=True)
class Best:
    workload: str  # empty: the weighted geometric mean over all
    steps: tuple[tuple[int, float], ...]  # evaluation, counted from 1, and the speed-up it reached


@dataclass(frozen=True)
class History:
    """By the short measurements of the search, against the original around each."""

    speedups: tuple[float | None, ...] = ()  # of every evaluation, over all workloads; None: it failed
    best: tuple[Best, ...] = ()
    starts: tuple[tuple[int, str], ...] = ()  # evaluation, counted from 1, at which a candidate came first
    gated: tuple[int, ...] = ()  # evaluations that were the gate's

    @property
    def failed(self) -> int:
        return self.speedups.count(None)


def search_history(tried: Sequence[Tried], workloads: Sequence[str]) -> History:
    overall = [finite_log(t.score) for t in tried]
    best = [Best("", _improvement_steps(overall))]
    for place, name in enumerate(workloads if len(workloads) > 1 else ()):
        best.append(Best(name, _improvement_steps([score_at(t, place) for t in tried])))
    return History(tuple(None if log is None else speedup_from_log(log) for log in overall), tuple(best))


def score_at(tried: Tried, place: int) -> float | None:
    """The log speed-up at a workload; where there is one alone it is the overall score."""
    if not tried.at:
        return finite_log(tried.score) if place == 0 else None
    return finite_log(tried.at[place]) if place < len(tried.at) else None


def finite_log(log: float | None) -> float | None:
    return log if log is not None and math.isfinite(log) else None


def speedup_from_log(log: float) -> float:
    """As it is written down: six digits are more than a clock can tell, and the same on every machine."""
    return float(f"{math.exp(min(max(log, -MAX), MAX)):.6g}")


def _improvement_steps(logs: Sequence[float | None]) -> tuple[tuple[int, float], ...]:
    steps: list[tuple[int, float]] = []
    best = -math.inf
    for number, log in enumerate(logs, 1):
        if log is not None and log > best:
            best = log
            steps.append((number, speedup_from_log(log)))
    return tuple(steps)


MAX_LINES = 160
LONGEST_LINE = 200
MAX_COMPARED = 4000  # lines: beyond it a comparison takes too long


@dataclass(frozen=True)
class RefusedFinalist:
    """A configuration that is right by a short look and not by a long one."""

    config: Config
    speedup: float | None  # log, by the short look
    result: Result

    @property
    def words(self) -> str:
        detail = f": {self.result.detail.strip()}" if self.result.detail.strip() else ""
        return f"{self.result.status} (workload {self.result.workload}){detail}"


def refusals_by_candidate(problem: Problem, state: State) -> dict[str, tuple[RefusedFinalist, ...]]:
    """By candidate, of each in the order in which they were looked at."""
    refused = {
        config: bad
        for config, results in merge_measurements(state).items()
        if (bad := next((r for r in results.values() if r.status not in SOUND), None)) is not None
    }
    if not refused:
        return {}
    speeds = {t.config: t.score for t in score_configs(problem, state)}
    found: dict[str, tuple[RefusedFinalist, ...]] = {}
    for config, bad in refused.items():
        before = found.get(config.candidate, ())
        found[config.candidate] = (*before, RefusedFinalist(config, speeds.get(config), bad))
    return found


@dataclass(frozen=True)
class RoundOutcome:
    """A refactoring and what came of it; scores are log speed-ups by the short measurements. Of several that
    were written side by side it is the best, and all are its branches."""

    number: int  # from 1
    decision: Decided  # of the branch
    drafts: tuple[Candidate, ...]  # the first, and those that mend it
    declined: str = ""  # why there is no template
    before: float = 0.0  # the best before it; 0 is the original
    best: float | None = None  # of its own configurations; None: none is right
    tried: int = 0  # configurations measured
    noticed: float = 0.0  # a smaller gain may be chance
    refused: tuple[RefusedFinalist, ...] = ()  # by a longer look
    branches: tuple[RoundOutcome, ...] = ()  # each as if there were no other; empty: there is one alone
    on: str = ""  # the plain kernel that its moves are made on; empty: the original, or no moves

    @property
    def last(self) -> Candidate | None:
        return self.drafts[-1] if self.drafts else None

    @property
    def candidate(self) -> Candidate | None:
        """What is left of it to be searched."""
        return self.last if self.last is not None and self.last.status in ("admitted", "searched") else None

    @property
    def pays(self) -> bool:
        """Whether it is better than all before it, beyond chance."""
        return self.best is not None and self.best > self.before + self.noticed


def round_outcomes(problem: Problem, state: State) -> tuple[RoundOutcome, ...]:
    scored, refused = best_scores(sound_scores(problem, state)), refusals_by_candidate(problem, state)
    declined = {(place, event.branch): event.reason for place, event in state.declined}
    noticed, best_before = measurement_noise(state), max(0.0, scored.get("", 0.0))
    found: list[RoundOutcome] = []
    for place, decision in enumerate(state.decided):
        if decision.decision != "refactor":
            continue
        branches: list[RoundOutcome] = []
        for branch in decision.branches:
            written = (c for c in state.candidates if c.drafted is not None)
            drafts = tuple(c for c in written if c.round == place and c.branch == branch)
            branches.append(
                RoundOutcome(
                    number=len(found) + 1,
                    decision=decision.branch(branch),
                    drafts=drafts,
                    declined=declined.get((place, branch), ""),
                    before=best_before,
                    best=max((scored[c.id] for c in drafts if c.id in scored), default=None),
                    tried=sum(state.searched.count(("of", c.id)) for c in drafts),
                    noticed=noticed,
                    refused=tuple(r for c in drafts for r in refused.get(c.id, ())),
                    on=_made_on(state, decision.branch(branch)),
                )
            )
        found.append(_best_branch(branches))
        best_before = max(best_before, found[-1].best or 0.0)
    return tuple(found)


def _made_on(state: State, decision: Decided) -> str:
    if state.plain_kernel is None or not (decision.by_moves or decision.handed):
        return ""
    kernel = made_on(state, decision.candidate)
    return kernel.id if kernel is not None else ""


def _best_branch(branches: Sequence[RoundOutcome]) -> RoundOutcome:
    """What the round comes to: the best of its branches; else one that may still come to something."""
    if len(branches) == 1:
        return branches[0]

    def standing(one: RoundOutcome) -> tuple[bool, float, bool, bool]:
        return one.best is not None, one.best or 0.0, one.candidate is not None, bool(one.drafts)

    best = max(branches, key=standing)
    return replace(best, tried=sum(b.tried for b in branches), branches=tuple(branches))


def best_scores(tried: tuple[Tried, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in tried:
        if one.score is not None:
            candidate = one.config.candidate
            found[candidate] = max(found.get(candidate, one.score), one.score)
    return found


def leading_candidate(problem: Problem, state: State) -> Candidate | None:
    """The candidate to go on from: the best correct one; None: the original is still ahead of all."""
    scored = best_scores(sound_scores(problem, state))
    ahead = [c for c in state.candidates if scored.get(c.id, 0.0) > measurement_noise(state)]
    return max(ahead, key=lambda c: scored[c.id], default=None)


def to_check(problem: Problem, state: State) -> tuple[Config, tuple[str, ...]] | None:
    """The best so far, and where it runs, if a model wrote it and nobody has looked at it for long: whoever
    plans what comes next is to go on from what is right. One that is refused gives way to the next."""
    written = {c.id for c in state.candidates if c.drafted is not None and c.drafted.author}
    if not written or not state.settings.checks_best:
        return None
    ahead = [t for t in sound_scores(problem, state) if t.score is not None and t.score > 0]
    if doubts := doubted_finalists(state):
        ahead = [t for t in ahead if t.config not in doubts]
    best = max(ahead, key=lambda t: t.score or 0.0, default=None)
    if best is None or best.config.candidate not in written or best.config in merge_measurements(state):
        return None
    outcome = state.searched.of(best.config)[-1]
    return best.config, tuple(result.workload for result in outcome.results if result.ok)


@dataclass(frozen=True)
class DraftReport:
    template: str  # its number
    status: str
    why: str  # it was turned away, or its search ended
    notes: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()  # values that the gate found wrong, and the template now excludes
    feasible: int | None = None


@dataclass(frozen=True)
class RoundReport:
    number: int
    reason: str  # why it was tried
    moves: tuple[str, ...]  # those in its template, or asked for where there is none
    base: str  # the template it goes on from; empty: the original
    drafts: tuple[DraftReport, ...]
    refused: dict[str, str]  # moves that do not apply, and why
    evaluations: int
    speedup: float | None  # of its best, by short measurements; None: none of it is right
    best: float  # after it, of all rounds so far
    kept: bool
    verdict: str
    what: str = ""  # the author was told to change
    expected: float | None = None  # the speed-up that was hoped for
    author: str = ""  # the model that wrote it; empty: the expert
    default: float | None = None  # the template's speed-up before it was searched: what refactoring gave
    changes: tuple[str, ...] = ()  # against the text it goes on from, as a diff
    library: str = ""  # the library's name for its template
    gain: float | None = None  # its best over the best before it; below 1: it lost
    analysis: str = ""  # what a model as analyst said before it was planned; nobody measured that
    # Where several were written side by side, each as a round of its own: the round is the best of them.
    branches: tuple[RoundReport, ...] = ()
    plain: bool = False  # the author was only asked for the kernel in plain words, for the expert to read
    on: str = ""  # the template that is the plain kernel its moves are made on; empty: the original

    def has(self, template: str) -> bool:
        """Whether a template was written in it, on whichever branch."""
        drafts = (d for one in (self, *self.branches) for d in one.drafts)
        return any(draft.template == template for draft in drafts)


@dataclass(frozen=True)
class ChainEnd:
    """The last kernel of a chain, which need not be the best."""

    kernel: str  # its number
    speedup: float | None  # by short measurements; None: it is broken
    why: str = ""  # it is broken

    @property
    def words(self) -> str:
        broken = f"nothing, it is broken: {self.why}"
        gave = f"{self.speedup:.2f}× {BY_SEARCH}" if self.speedup is not None else broken
        return f"The last of the chain, kernel {self.kernel}, gave {gave}"


def chain_end(problem: Problem, state: State) -> ChainEnd | None:
    """What the published chain would have delivered; None: nothing is chained, or nothing was written."""
    last = last_written(state)
    if not state.settings.linear or last is None:
        return None
    scored = best_scores(sound_scores(problem, state))
    if last.id in scored:
        return ChainEnd(last.id, speedup_from_log(scored[last.id]))
    return ChainEnd(last.id, None, last.rejected.reason if last.rejected else "it has not been measured")


def round_reports(
    problem: Problem, state: State, templates: Templates | None = None
) -> tuple[RoundReport, ...]:
    """Without templates nothing is said of their texts."""
    word = candidate_noun(state.settings)
    found = [(one, _round_report(one, word)) for one in round_outcomes(problem, state)]
    if templates is None:
        return tuple(report for _, report in found)
    scored = {t.config: t.score for t in sound_scores(problem, state)}
    return tuple(_with_text(one, report, problem, state, templates, scored) for one, report in found)


def _with_text(
    one: RoundOutcome,
    report: RoundReport,
    problem: Problem,
    state: State,
    templates: Templates,
    scored: Mapping[Config, float | None],
) -> RoundReport:
    """What changed, and how fast it is before anything is searched."""
    if one.branches:
        pairs = zip(one.branches, report.branches, strict=True)
        each = tuple(_with_text(o, r, problem, state, templates, scored) for o, r in pairs)
        report = replace(report, branches=each)
    if (last := one.last) is None:
        return report
    base = next((c for c in state.candidates if c.id == report.base and c.drafted), None)
    before = templates.text(base) if base else problem.kernel.text
    word = candidate_noun(state.settings)
    name = f"{word} {base.id}" if base else problem.kernel.path
    score = scored.get(templates.of(one.candidate).default) if one.candidate is not None else None
    return replace(
        report,
        default=None if score is None else speedup_from_log(score),
        changes=diff_lines(before, templates.text(last), name, f"{word} {last.id}"),
    )


def _round_report(one: RoundOutcome, word: str) -> RoundReport:
    last = one.last
    drafted = last.drafted if last is not None else None
    return RoundReport(
        number=one.number,
        reason=one.decision.reason,
        moves=last.moves if last is not None else one.decision.moves,
        base=one.decision.candidate,
        drafts=tuple(_draft_report(draft) for draft in one.drafts),
        refused=dict(drafted.refused) if drafted is not None else {},
        evaluations=one.tried,
        speedup=None if one.best is None else speedup_from_log(one.best),
        best=speedup_from_log(max(one.before, one.best or 0.0)),
        kept=one.pays,
        verdict=_round_verdict(one, word),
        what=one.decision.what,
        expected=one.decision.expected,
        author=drafted.author if drafted is not None else "",
        library=next((m.removeprefix(STORED) for m in one.decision.moves if m.startswith(STORED)), ""),
        gain=None if one.best is None else speedup_from_log(one.best - one.before),
        analysis=one.decision.analysis,
        branches=tuple(_branch_report(branch, one, word) for branch in one.branches),
        plain=one.decision.plain,
        on=one.on,
    )


def _branch_report(branch: RoundOutcome, whole: RoundOutcome, word: str) -> RoundReport:
    """One of several: kept is the best of them, if that pays; the analyst spoke to all."""
    found, best = replace(_round_report(branch, word), analysis=""), whole.candidate
    if branch.best is None or branch.last is None or best is None or branch.last is best or found.plain:
        return found
    lost = f"left behind: {speedup_from_log(branch.best):.2f}×, {word} {best.id} of the same round has"
    return replace(found, kept=False, verdict=f"{lost} {speedup_from_log(whole.best or 0.0):.2f}×")


def _draft_report(draft: Candidate) -> DraftReport:
    why = draft.rejected.reason if draft.rejected else draft.searched.reason if draft.searched else ""
    rules = draft.admitted.rules if draft.admitted else ()
    notes = draft.drafted.notes if draft.drafted else ()
    feasible = draft.admitted.feasible if draft.admitted else None
    return DraftReport(draft.id, draft.status, why, notes, tuple(map(rule_text, rules)), feasible)


def _round_verdict(one: RoundOutcome, word: str) -> str:
    last = one.last
    if one.declined:
        return f"no {word}: {one.declined}"
    if last is None:
        return "not written yet"
    if last.rejected is not None:
        mine = {draft.id for draft in one.drafts}
        found = [d.rejected for d in one.drafts if d.rejected is not None]
        # An author that wrote the same again has added nothing to what was said before.
        why = next((r for r in reversed(found) if r.same_as not in mine), last.rejected)
        return f"dropped: {why.reason}" if why.same_as else f"turned away: {why.reason}"
    if one.decision.plain and last.status in ("admitted", "searched"):
        gave = f"; by itself {speedup_from_log(one.best):.2f}×" if one.best is not None else ""
        return f"plain: the expert reads it, and makes its moves on it from here on{gave}"
    if one.best is None:
        is_new = last.status == "drafted"
        fault = refused_words(one.refused) or "none of its configurations is right"
        return "not searched yet" if is_new else f"dropped: {fault}"
    before = f"{speedup_from_log(one.before):.2f}× before it"
    also = f"; {refused_words(one.refused)}" if one.refused else ""
    if one.pays:
        return f"kept: {speedup_from_log(one.best):.2f}×, {before}{also}"
    return f"dropped: {speedup_from_log(one.best):.2f}× is no gain over {before}{also}"


def refused_words(refused: Sequence[RefusedFinalist]) -> str:
    """What a longer look said of them; empty where there are none."""
    if not refused:
        return ""
    first = refused[0]
    speed = f" ({speedup_from_log(first.speedup):.2f}× {BY_SEARCH})" if first.speedup is not None else ""
    whose = f"{first.config}{speed}" if first.config.items else f"it{speed}"
    more = f", and {len(refused) - 1} more" if len(refused) > 1 else ""
    return f"the full check refused {whose}{more}: {first.words}"


def diff_lines(before: str, after: str, name_before: str, name_after: str) -> tuple[str, ...]:
    """A unified diff; the last line says what is left out."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > MAX_COMPARED:
        return (f"… {len(old)} lines before, {len(new)} after: too many to compare",)
    found = list(unified_diff(old, new, name_before, name_after, lineterm="", n=2))
    shown = [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…" for line in found[:MAX_LINES]]
    left = len(found) - len(shown)
    return (*shown, f"… {left} more lines") if left else tuple(shown)


# -- A kernel that a model has rewritten plainly, so that the expert reads it: what is made on it, and how
# it is a problem of its own for the expert.
#
# Nothing but the expert sees that problem: templates are compared with the original, and timed against it.


def made_on(state: State, candidate: str) -> Candidate | None:
    """The plain kernel that a candidate is, or goes back to; None: it goes back to the original."""
    known = {c.id: c for c in state.candidates if c.drafted is not None}
    found = known.get(candidate)
    while found is not None and not (found.status in ("admitted", "searched") and state.is_plain(found)):
        found = known.get(found.parent)
    return found


def moves_on(state: State, candidate: Candidate) -> Candidate | None:
    """The plain kernel on which the expert made it by moves; None: it did not."""
    if candidate.drafted is None or not state.decided[candidate.round].by_moves:
        return None
    return made_on(state, candidate.parent)


def plain_problem(problem: Problem, template: Template) -> Problem:
    """With the plain kernel in place of the original; lines keep their numbers."""
    kernel = replace(problem.kernel, text=without_block(template.source), path=template.path)
    return replace(problem, kernel=kernel, launches=template.launches)


def problem_of(problem: Problem, templates: Templates, kernel: Candidate | None) -> Problem:
    return problem if kernel is None else plain_problem(problem, templates.of(kernel))


def on_plain(found: Decided, state: State) -> Decided:
    """What is made by moves goes on from the plain kernel, or from what was made on it."""
    kernel = state.plain_kernel
    if kernel is None or found.decision != "refactor" or found.is_stored:
        return found
    is_elsewhere = (found.by_moves or found.handed) and made_on(state, found.candidate) != kernel
    return replace(found, candidate=kernel.id) if is_elsewhere else found
