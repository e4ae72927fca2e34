"""Comparing strategies: what is compared with what, in which order, and what one run of it has to tell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Literal

from tunesmith.base.errors import BadInput
from tunesmith.base.text import format_count, named_values
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.run.budget import (
    count_evaluations,
    exchange_tokens,
    exhausted_budget,
    is_concrete,
    no_more_rounds,
    sum_model_usage,
    tokens_used,
)
from tunesmith.run.candidates import Templates
from tunesmith.run.events import SINGLE, Exchange
from tunesmith.run.figures import run_figure
from tunesmith.run.outcome import DISTRUSTED, Outcome
from tunesmith.run.race import Winners, verified_choice
from tunesmith.run.report import judged_by
from tunesmith.run.rounds import RoundReport, round_reports
from tunesmith.run.state import Candidate, State

# What the journal of one run tells an experiment beyond its speed-up: what was stopped before it could count,
# what each template had before and after its search, and the tokens spent by the end of each round.
Fault = Literal["form", "build", "wrong", "broken", "unfit", "repeated"]
BROKEN = (Status.CRASHED, Status.TIMED_OUT)


@dataclass(frozen=True)
class StoppedCounts:
    """What was not let through. Each draft that was turned away is counted once, by what was found first."""

    replies: int = 0  # of models, questions to the laboratory not among them
    unusable: int = 0  # of these, not the JSON or the file asked for: asked for again, or given up
    drafts: int = 0  # files that were written
    admitted: int = 0
    form: int = 0  # turned away by reader or vetting, before anything was built
    build: int = 0  # by the compiler
    wrong: int = 0  # by the oracle: wrong, unstable, or faster than can be
    broken: int = 0  # crashed, or did not come to an end
    unfit: int = 0  # nothing of it fits the device
    repeated: int = 0  # the same text as one before it
    forbidden: int = 0  # combinations of values, in templates that were let in
    tried: int = 0  # configurations and kernels, by gates and searches
    tried_build: int = 0  # of these, stopped by the compiler,
    tried_wrong: int = 0  # by the oracle,
    tried_broken: int = 0  # by a crash or a deadline
    late: int = 0  # right by the short check, stopped by a full one or by the verification

    @property
    def turned_away(self) -> int:
        return self.form + self.build + self.wrong + self.broken + self.unfit + self.repeated


@dataclass(frozen=True)
class SearchGain:
    """A template by the short measurements of one search: as it was written, and the best of it."""

    template: str  # its number
    default: float
    best: float
    evaluations: int


def add_counts(counts: Iterable[StoppedCounts]) -> StoppedCounts:
    every = list(counts)
    return StoppedCounts(*(sum(getattr(one, field.name) for one in every) for field in fields(StoppedCounts)))


def stopped_counts(state: State) -> StoppedCounts:
    drafts = [c for c in state.candidates if c.drafted is not None]
    faults = Counter(fault for c in drafts if (fault := draft_fault(state, c)) is not None)
    tried = [*state.outcomes.of("search"), *state.outcomes.of("gate")]
    late = [*state.outcomes.of("finalist"), *(v.outcome for v in state.verified)]
    found = {(o.trial.config, _trial_fault(o)) for o in late if _trial_fault(o) in ("wrong", "broken")}
    how = Counter(map(_trial_fault, tried))
    return StoppedCounts(
        replies=sum(e.reply is not None for e in state.dialogue),
        unusable=_count_unusable_replies(state),
        drafts=len(drafts),
        admitted=sum(c.admitted is not None for c in drafts),
        **{str(fault): count for fault, count in faults.items()},
        forbidden=sum(len(c.admitted.rules) for c in drafts if c.admitted is not None),
        tried=len(tried),
        tried_build=how["build"],
        tried_wrong=how["wrong"],
        tried_broken=how["broken"],
        late=len({config for config, _ in found}),
    )


def draft_fault(state: State, draft: Candidate) -> Fault | None:
    """Why a draft was turned away; None: it was not, or not yet."""
    rejected = draft.rejected
    if rejected is None:
        return None
    if rejected.same_as:
        return "repeated"
    shown = [o for o in state.outcomes.of(("gate", draft.id)) if o.trial.id in rejected.trials]
    if not shown:
        return "form"
    return _trial_fault(shown[0]) or "unfit"


def _trial_fault(outcome: Outcome) -> Fault | None:
    """What stopped a trial: the first fault that is not that it does not fit."""
    for result in outcome.results:
        if result.status in DISTRUSTED:
            return "wrong"
        if result.status in BROKEN:
            return "broken"
        if result.status is Status.BUILD_FAILED:
            return "build"
    return None if any(r.ok for r in outcome.results) else "unfit"


def _count_unusable_replies(state: State) -> int:
    """Replies without what was asked for: after them the same role was asked again though nothing was
    written, or the branch was given up."""
    by_place: dict[tuple[str, int, int], list[Exchange]] = {}
    for exchange in state.dialogue:
        if exchange.reply is not None:
            place = (exchange.request.role, exchange.turn, exchange.request.branch)
            by_place.setdefault(place, []).append(exchange)
    again = sum(one.drafts == two.drafts for asked in by_place.values() for one, two in pairwise(asked))
    given_up = {("author", place + 1, declined.branch) for place, declined in state.declined}
    last = [asked[-1] for place, asked in by_place.items() if place in given_up]
    return again + sum(not _has_template_after(state, exchange) for exchange in last)


def _has_template_after(state: State, exchange: Exchange) -> bool:
    """Whether a template of its branch and round came after it."""
    drafted = [c for c in state.candidates if c.drafted and c.branch == exchange.request.branch]
    return any(c.round + 1 == exchange.turn for c in drafted[exchange.drafts :])


def search_gains(rounds: Sequence[RoundReport]) -> tuple[SearchGain, ...]:
    """Of every template whose default is right and was measured."""
    every = [branch for r in rounds for branch in (r.branches or (r,))]
    return tuple(
        SearchGain(r.drafts[-1].template, r.default, r.speedup, r.evaluations)
        for r in every
        if r.drafts and r.default is not None and r.speedup is not None
    )


def tokens_by_round(state: State) -> tuple[int, ...]:
    """Spent by the end of each round, as told and else by length."""
    begun = (place for place, decision in enumerate(state.decided) if decision.decision == "refactor")
    return tuple(sum(sum(exchange_tokens(e)) for e in state.dialogue if _is_by(e, place)) for place in begun)


def _is_by(exchange: Exchange, place: int) -> bool:
    """Whether it was asked by the end of the round that a decision began: who writes is asked after it, who
    plans for the next one."""
    writes = exchange.request.role in ("author", SINGLE)
    return exchange.turn <= place or (writes and exchange.turn == place + 1)


FORMAT = 1  # counts changes of how a plan is written


@dataclass(frozen=True)
class Arm:
    """One side of a comparison: a strategy, and what of the budget it has no use for."""

    name: str
    strategy: str
    says: str
    unused: str = ""
    talks: bool = True  # to a model
    linear: bool = False


_NO_SEARCH = "nothing is searched: each kernel that is written is one evaluation"
_NO_MODEL = "no model is asked: no tokens, no money"
_FROM_BEST = "a model plans and rewrites the kernel, from the best so far"
_FROM_LAST = "a model rewrites the kernel, each time from the last one"
_BY_EXPERT = "the built-in expert plans and writes templates, a searcher tunes them"
_ARMS = (
    Arm("template", "template", "a model plans and writes templates, a searcher tunes them"),
    Arm("rewrite", "rewrite", _FROM_BEST, _NO_SEARCH),
    Arm("rewrite-linear", "rewrite", _FROM_LAST, _NO_SEARCH, linear=True),
    Arm("single", "single", "one conversation plays every role", _NO_SEARCH),
    Arm("expert", "template", _BY_EXPERT, _NO_MODEL, talks=False),
)
ARMS = {arm.name: arm for arm in _ARMS}


@dataclass(frozen=True)
class Allowance:
    """What each run of each arm may spend at most; None: no limit."""

    evals: int | None
    seconds: float | None
    rounds: int
    tokens: int | None = None
    dollars: float | None = None
    device_seconds: float | None = None


@dataclass(frozen=True)
class PlannedProblem:
    folder: str  # for its runs: its name, made distinct
    name: str
    digest: str
    files: tuple[tuple[str, str], ...]  # as the problem spells them -> digest of the copy that is saved


@dataclass(frozen=True)
class ComparisonPlan:
    """A comparison as it was begun; never changed."""

    problems: tuple[PlannedProblem, ...]
    arms: tuple[str, ...]
    repeats: int
    seed: int
    budget: Allowance
    model: str = ""
    backend: str = ""  # empty: by the kernel's language
    device: str = ""  # empty: any
    search: str = "default"
    prune: bool = True
    steer: bool = True
    counters: bool = False
    prompts: tuple[tuple[str, str], ...] = ()  # of the user's own -> digest of the copy that is saved
    versions: tuple[tuple[str, str], ...] = ()
    drafts: int = 1  # of a round, where templates are written; in old comparisons several
    moves: str = "usual"  # of the expert's, what models are told
    format: int = FORMAT


@dataclass(frozen=True)
class Planned:
    """One run of a comparison."""

    problem: str  # its folder
    arm: str
    repeat: int  # from 1

    @property
    def name(self) -> str:
        return f"{self.arm}-{self.repeat}"

    @property
    def place(self) -> str:
        """Below the folder of runs, of mailboxes, of recordings."""
        return f"{self.problem}/{self.name}"


def parse_arms(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    known = f"known are {', '.join(ARMS)}"
    for name in names:
        if name not in ARMS:
            raise BadInput(f"unknown strategy {name!r}; {known}", hint="e.g. --strategies template,expert")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise BadInput(f"the strategy {twice[0]} is named twice", hint="name each once; see --repeats")
    if not names:
        raise BadInput(f"--strategies names none; {known}", hint="e.g. --strategies template,expert")
    return names


def schedule_runs(plan: ComparisonPlan) -> tuple[Planned, ...]:
    """Repeat by repeat, so that drift hits all arms alike, and another arm first each time."""
    count = len(plan.arms)
    return tuple(
        Planned(problem.folder, plan.arms[(place + repeat - 1) % count], repeat)
        for repeat in range(1, plan.repeats + 1)
        for problem in plan.problems
        for place in range(count)
    )


def list_plan_differences(plan: ComparisonPlan, wanted: ComparisonPlan) -> tuple[str, ...]:
    """In which respects a plan is not the one that is wanted, in words: what it has, what is asked for."""
    found: list[str] = []
    if [p.digest for p in plan.problems] != [p.digest for p in wanted.problems]:
        has, asked = (", ".join(p.folder for p in one.problems) for one in (plan, wanted))
        changed = "the same as they are now" if has == asked else asked
        found.append(f"it has the problems {has} as they were then, you ask for {changed}")
    if plan.arms != wanted.arms:
        found.append(f"it compares {','.join(plan.arms)}, you ask for {','.join(wanted.arms)}")
    for name, what in _OPTIONS.items():
        has, asked = getattr(plan, name), getattr(wanted, name)
        if has != asked:
            found.append(f"its {what} is {_option_text(has)}, you ask for {_option_text(asked)}")
    for name, what in _LIMITS.items():
        every = (one if name in _OF_PLAN else one.budget for one in (plan, wanted))
        has, asked = (getattr(one, name) for one in every)
        if has != asked:
            found.append(f"it has {_limit_text(has, what)}, you ask for {_limit_text(asked, what)}")
    if plan.prompts != wanted.prompts:
        found.append("its prompts are others")
    return tuple(found)


_OPTIONS = {
    **{name: name for name in ("seed", "model", "backend", "device", "search")},
    "prune": "pruning", "steer": "steering", "counters": "use of counters", "moves": "offer of moves",
}  # fmt: skip
_OF_PLAN = ("repeats", "drafts")  # the other limits are of its budget
_LIMITS = {
    "repeats": "repeat", "drafts": "draft", "evals": "evaluation", "seconds": "second", "rounds": "round",
    "tokens": "token", "dollars": "dollar", "device_seconds": "device-second",
}  # fmt: skip


def _option_text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "not given" if value == "" else str(value)


def _limit_text(value: float | None, what: str) -> str:
    return f"no limit on {what}s" if value is None else format_count(value, what)


# -- one run ------------------------------------------------------------------------------------------------

RunStatus = Literal["finished", "failed", "waiting", "no device", "stopped", "not begun"]


@dataclass(frozen=True)
class WorkloadGain:
    name: str
    speedup: float  # verified; 1 where the original stays
    low: float
    high: float
    stays: bool


@dataclass(frozen=True)
class OriginalTime:
    workload: str
    sizes: str
    seconds: float  # of one launch, before anything else is timed


@dataclass(frozen=True)
class RunFacts:
    """What the journal of a run tells, finished or not. None: nobody said."""

    speedup: float | None  # verified, weighted geometric mean over the workloads; None before the end
    success: bool  # verified to be faster than the original at some workload: its interval is above 1.01
    early: bool  # it stopped before any budget was used up
    reason: str  # why it stopped
    judged_by: str
    originals: tuple[OriginalTime, ...]
    workloads: tuple[WorkloadGain, ...]
    rounds: tuple[float, ...]  # the best so far after each, by short measurements
    refactoring: float | None  # speed-up of the winning template before it is searched
    search: float | None  # on top of that, up to the verified speed-up
    evaluations: int  # by searches and gates, what was wrong or turned away included
    of_budget: int  # of these, what the budget counts: what searches tried, or every concrete kernel
    requests: int
    unanswered: int
    repairs: int  # times an author was asked again within a round
    tokens: int | None
    tokens_by_length: int  # as told, and estimated where nobody told
    dollars: float | None
    device_seconds: float  # in which an evaluation had the device: baseline, trials, races, verification
    kernel_seconds: float | None  # of these in kernels, as far as trials say
    seconds: float  # in which somebody worked on the run; none in which it was left waiting
    device: str
    driver: str
    compiler: str
    backend: str
    versions: tuple[tuple[str, str], ...]
    # Of the device's seconds what a budget counts: before races and verification. None, here and below: the
    # facts were written down before that was counted.
    searched_seconds: float | None = None
    sent: int | None = None  # tokens, as told and else by length
    received: int | None = None
    round_tokens: tuple[int, ...] | None = None  # sent and received by the end of each round
    searches: tuple[SearchGain, ...] | None = None  # of every template with parameters, also those that lost
    stopped: StoppedCounts | None = None


@dataclass(frozen=True)
class RunResult:
    planned: Planned
    status: RunStatus
    reason: str = ""  # why it is not finished
    facts: RunFacts | None = None  # None: it has no journal

    @property
    def counts(self) -> bool:
        return self.status in ("finished", "failed")

    @property
    def speedup(self) -> float | None:
        """A run that failed leaves the user with the original."""
        if self.status == "failed":
            return 1.0
        return self.facts.speedup if self.facts is not None and self.status == "finished" else None

    @property
    def success(self) -> bool:
        return self.status == "finished" and self.facts is not None and self.facts.success


def facts_of(problem: Problem, state: State, templates: Templates) -> RunFacts:
    assert state.started is not None, "the run has not begun"
    choice = verified_choice(problem, state) if state.stopped is not None else Winners(None, ())
    gains = tuple(
        WorkloadGain(p.workload, p.speedup.value, p.speedup.low, p.speedup.high, p.config is None)
        for p in choice.picks
    )
    figure = run_figure(problem, choice)
    mean = figure.value if figure is not None else None
    rounds = round_reports(problem, state, templates)
    refactoring, search = _attribute_speedup(choice, rounds, mean, is_concrete(state))
    outcomes = [*state.outcomes, *(v.outcome for v in state.verified)]
    outcomes += [state.baseline.outcome] if state.baseline else []
    kernels = sum(o.busy for o in outcomes)
    tokens = [exchange_tokens(e) for e in state.dialogue]
    cost, silent = sum_model_usage(state), not state.dialogue  # where none was asked, nothing was spent on it
    return RunFacts(
        speedup=mean,
        success=any(not g.stays for g in gains),
        early=state.stopped is not None
        and not (exhausted_budget(state) or no_more_rounds(state, bool(state.settings.models))),
        reason=state.stopped.reason if state.stopped else "",
        judged_by=judged_by(problem, state),
        originals=_original_times(problem, state),
        workloads=gains,
        rounds=tuple(r.best for r in rounds),
        refactoring=refactoring,
        search=search,
        evaluations=state.outcomes.count("search") + state.outcomes.count("gate"),
        of_budget=count_evaluations(state),
        requests=cost.requests,
        unanswered=sum(bool(e.failed) for e in state.dialogue),
        repairs=_count_repairs(state),
        tokens=0 if silent else cost.tokens,
        tokens_by_length=tokens_used(state),
        dollars=0.0 if silent else cost.dollars,
        device_seconds=round(sum(o.seconds for o in outcomes), 3),
        searched_seconds=round(state.device_seconds, 3),
        kernel_seconds=round(kernels, 6) if kernels else None,
        seconds=state.elapsed,
        sent=sum(sent for sent, _ in tokens),
        received=sum(received for _, received in tokens),
        round_tokens=tokens_by_round(state),
        searches=() if is_concrete(state) else search_gains(rounds),
        stopped=stopped_counts(state),
        device=state.device.name,
        driver=state.device.driver,
        compiler=state.compiler,
        backend=state.started.backend,
        versions=state.started.versions,
    )


def _original_times(problem: Problem, state: State) -> tuple[OriginalTime, ...]:
    outcome = state.baseline.outcome if state.baseline else None
    timed = [(w, outcome.result(w.name) if outcome else None) for w in problem.workloads]
    return tuple(
        OriginalTime(w.name, named_values(w.sizes), result.timing.seconds)
        for w, result in timed
        if result is not None and result.timing is not None
    )


def _attribute_speedup(
    choice: Winners, rounds: Sequence[RoundReport], verified: float | None, concrete: bool
) -> tuple[float | None, float | None]:
    """Of the general winner, else of the first: what its template gave as it was written, and the rest."""
    if not choice.configs() or verified is None:
        return None, None
    if concrete:
        return verified, 1.0
    winner = choice.configs()[0].candidate
    every = [branch for r in rounds for branch in (r.branches or (r,))]
    won = next((r for r in every if r.has(winner)), None)
    if won is None or not won.default or not won.speedup:
        return None, None
    return divide_speedup(won.default, won.speedup, verified)


def divide_speedup(default: float, best: float, verified: float) -> tuple[float, float]:
    """A verified speed-up, divided as short measurements divide theirs: by how much they are off each part is
    corrected, the larger one by more. Their best alone would not do: of many it is the luckiest."""
    first, rest = math.log(default), math.log(best / default)
    both, off = abs(first) + abs(rest), math.log(verified / best)
    share = abs(first) / both if both else 1.0
    return math.exp(first + off * share), math.exp(rest + off * (1 - share))


def _count_repairs(state: State) -> int:
    """Replies that were no template count as well as drafts that were turned away."""
    author = ("author", SINGLE)
    asked = Counter((e.turn, e.request.branch) for e in state.dialogue if e.request.role in author)
    drafts = Counter((c.round + 1, c.branch) for c in state.candidates if c.drafted is not None)
    return sum(max(asked[place], drafts[place]) - 1 for place in asked.keys() | drafts.keys())
