"""What roles are told of what was measured and tried before: times, the diagnosis, templates or kernels, and
rounds."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

from tunesmith.agents import task
from tunesmith.agents.prompting import PromptPart, fenced, shortened
from tunesmith.problem.device import Resources
from tunesmith.problem.plan import necessary_traffic
from tunesmith.problem.problem import Problem
from tunesmith.profiles.facts import Diagnosis
from tunesmith.run.budget import budget_uses, evals_left, is_concrete, next_share, noun, rounds_begun
from tunesmith.run.candidates import Templates
from tunesmith.run.figures import best_so_far, candidate_speedups
from tunesmith.run.plain import moves_on
from tunesmith.run.ports import Catalogue
from tunesmith.run.prior import best_config, diagnoses, in_view
from tunesmith.run.racing import sound_scores
from tunesmith.run.rounds import (
    RoundReport,
    leader,
    ratio,
    refusals,
    refused_words,
    round_reports,
    score_at,
)
from tunesmith.run.scores import Yardstick
from tunesmith.run.state import Candidate, State
from tunesmith.space.params import Config
from tunesmith.text import counted

NO_COUNTERS = "no hardware counters"  # how a note begins that is of use only where nothing else is known
WHOLE = 2  # of the latest rounds; older ones give way to a line each
FINDINGS = 6  # of a diagnosis
BROKEN = 60_000  # characters of a kernel that was turned away; one that is right is shown whole
LONGEST_REASON = 6000  # of the words about the kernel that is gone on from
NOTHING = "Nothing yet: the device is not where this was written. It will be measured on it, later."


def task_parts(problem: Problem, state: State, moves: Catalogue | None = None) -> list[PromptPart]:
    """What planners, authors and a conversation are told alike; an analyst without how the kernel is read.
    All of it stays the same in a run, so that caches of prompts hold it: what changes stands behind."""
    return [
        *task.kernel_parts(problem),
        task.problem_part(problem, state),
        *([task.reading_part(moves)] if moves else []),
        task.device_part(state.device),
    ]


def standing_parts(problem: Problem, state: State) -> list[PromptPart]:
    """Where things stand now: other in each round."""
    return [times_part(problem, state), diagnosis_part(problem, state)]


# -- times and the diagnosis --------------------------------------------------------------------------------


def times_part(problem: Problem, state: State) -> PromptPart:
    """What the original takes, and the best so far, with what each value of a parameter gave."""
    lines = [*_original(problem, state), *task.floors_since(problem, state)]
    best = best_config(problem, state)
    if best is not None:
        gain = f"{candidate_speedups(problem, state)[best.candidate]:.2f}× the speed of the original"
        lines.append(f"- the best so far: {_where(best)}, {gain} in the mean")
        lines += _at_workloads(problem, state, best)
        built = next((o.resources for o in reversed(state.outcomes) if o.trial.config == best), None)
        lines += _resources(str(best) if best.items else best.label, built)
        lines += _clusters(state, best)
        lines += _by_value(problem, state, best)
        lines += _failed(state, best.candidate) if best.items else []
    return PromptPart("Measured", "\n".join(lines) or NOTHING)


def _original(problem: Problem, state: State) -> list[str]:
    if state.baseline is None:
        found = next((s for s in state.surveyed if s.config is None), None)
        built = found.builds[0] if found is not None and found.builds else None
        lines = _resources("the original", built.resources if built else None)
        if built is not None and built.occupancy is not None:
            lines.append(f"- so its blocks fill {built.occupancy} % of a multiprocessor's threads at most")
        return [f"- {NOTHING}", *lines] if lines else []
    lines, least = [], task.least_times(problem, state)
    for name, seconds in _seconds(state).items():
        moved = necessary_traffic(problem, problem.workload(name).as_dict())
        rate = f" ({_rate(moved / seconds / 1e9)} GB/s of what must move)" if seconds else ""
        away = task.times_least(least.get(name), seconds)
        lines.append(f"- {name}: the original takes {seconds * 1e6:.2f} µs{rate}{away}")
    lines += _resources("the original", state.baseline.outcome.resources)
    return lines + _clusters(state, None)


def _rate(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _at_workloads(problem: Problem, state: State, general: Config) -> list[str]:
    """The best at each workload by itself, which may be another configuration, and the one that is best in
    the mean."""
    tried, lines, timed = sound_scores(problem, state), [], _seconds(state)
    least, best = task.least_times(problem, state), best_so_far(state)
    longer = best.at if best is not None and best.config == general else {}
    for place, workload in enumerate(problem.workloads):
        scored = [(found, t.config) for t in tried if (found := score_at(t, place)) is not None]
        if not scored:
            continue
        if workload.name in longer:  # what it took when it was timed for long
            scored = [(math.log(longer[workload.name]) if c == general else s, c) for s, c in scored]
        score, config = max(scored, key=lambda pair: pair[0])
        before = timed.get(workload.name)

        own = max((found for found, other in scored if other == general), default=None)
        takes = _takes(score, before, least.get(workload.name))
        line = f"- {workload.name}: {ratio(score):.2f}× at best{takes}, with {_where(config)}"
        if config != general and own is not None:
            takes = _takes(own, before, least.get(workload.name))
            line += f"; {ratio(own):.2f}×{takes} with the best in the mean"
        lines.append(line)
    return lines


def _takes(score: float, before: float | None, least: task.LeastTime | None) -> str:
    if before is None:
        return ""
    seconds = before / ratio(score)
    return f", about {seconds * 1e6:.2f} µs{task.times_least(least, seconds)}"


def _seconds(state: State) -> dict[str, float]:
    """What the original takes at each workload."""
    found = state.baseline.outcome.results if state.baseline is not None else ()
    return {result.workload: result.timing.seconds for result in found if result.timing}


def _where(config: Config) -> str:
    return f"template {config.candidate} at {config}" if config.items else config.label


def _resources(what: str, used: Resources | None) -> list[str]:
    if used is None:
        return []
    names = ("registers", "shared", "spills", "occupancy", "blocks_per_sm")
    shown = [f"{name} {value}" for name in names if (value := getattr(used, name)) is not None]
    return [f"- the compiler on {what}: {', '.join(shown)}"] if shown else []


def _clusters(state: State, config: Config | None) -> list[str]:
    """How many run at once, where it was looked at and has any; workloads that differ are each told."""
    found: dict[str, list[str]] = {}
    for one in state.profiled:
        if one.config == config and one.diagnosis is not None and one.diagnosis.clusters:
            found.setdefault(one.diagnosis.clusters, []).append(one.workload)
    whose = "the original" if config is None else str(config) if config.items else config.label
    return [f"- {whose} at {', '.join(dict.fromkeys(names))}, {words}" for words, names in found.items()]


def _by_value(problem: Problem, state: State, best: Config) -> list[str]:
    """For each parameter of the best template: the best that was tried with each of its values."""
    own = [t for t in sound_scores(problem, state) if t.config.candidate == best.candidate]
    lines = []
    for name, _ in best.items:
        found: dict[int, float] = {}
        for t in own:
            if t.score is not None:
                found[t.config[name]] = max(found.get(t.config[name], t.score), t.score)
        if len(found) > 1:
            shown = ", ".join(f"{value}: {ratio(found[value]):.2f}×" for value in sorted(found))
            lines.append(f"- the best with each {name}: {shown}")
    return lines


def _failed(state: State, candidate: str) -> list[str]:
    """Configurations of a template that gave no time, and the first of them in its own words."""
    own = state.searched.of(("of", candidate))
    bad = [(o, r) for o in own if (r := next((r for r in o.results if not r.ok), None))]
    if not bad:
        return []
    counts = ", ".join(f"{n} {status}" for status, n in Counter(str(r.status) for _, r in bad).items())
    first, why = bad[0]
    words = shortened(why.detail.strip(), 300) or str(why.status)
    return [f"- of template {candidate} gave no time: {counts}; first {first.trial.config}: {words}"]


def diagnosis_part(problem: Problem, state: State) -> PromptPart:
    """Workloads of which the same is found are told together."""
    found, seen = diagnoses(problem, state), in_view(problem, state)
    is_known = seen is not None and any(p.config == seen and p.diagnosis for p in state.profiled)
    whose = _where(seen) if seen is not None and is_known else "the original"
    alike: dict[tuple[str, str], dict[str, Diagnosis]] = {}
    for name, diagnosis in found.items():
        alike.setdefault((diagnosis.bound, _findings(diagnosis)), {})[name] = diagnosis
    several = [
        f"{', '.join(own)}: bound by {bound}{words or _without_fault(own)}"
        for (bound, words), own in alike.items()
    ]
    text = "\n\n".join(several)
    short = "\n".join(f"- {name}: {diagnosis.summary}" for name, diagnosis in found.items())
    return PromptPart(f"Diagnosis of {whose}", text, 1, short)


def _findings(found: Diagnosis) -> str:
    """Empty where no fault is found."""
    if not found.findings:
        return ""
    lines = [f", in {found.launch}" if found.launch else ""]
    for finding in found.findings[:FINDINGS]:
        evidence, remedies = "; ".join(finding.evidence), ", ".join(finding.remedies)
        stake = f"{finding.gain:.0%} of the time at stake"
        lines.append(f"- {finding.kind} ({stake}): {evidence}. Remedies: {remedies}")
    return "\n".join(lines)


def _without_fault(found: Mapping[str, Diagnosis]) -> str:
    """Of workloads with one bound, and what was looked at where there is most to be gained."""
    away = ", ".join(f"{d.distance:.2f}" for d in found.values() if d.distance is not None)
    name, worst = max(found.items(), key=lambda pair: pair[1].distance or 0.0)
    where = f"at {name} " if len(found) > 1 else ""
    told = [note for note in worst.notes if worst.bound == "unknown" or not note.startswith(NO_COUNTERS)]
    notes = f" ({where}{'; '.join(told)})" if told else ""
    summary = re.split("[;:]", worst.summary)[0]
    return (f", {away} × the floor" if away else "") + f": {summary}{notes}"


# -- what was written ---------------------------------------------------------------------------------------


def base_part(problem: Problem, state: State, templates: Templates, base: Candidate) -> PromptPart:
    heading = f"{noun(state.settings).title()} {base.id}, which this goes on from"
    text = templates.text(base)
    if base.rejected is None:
        lines = [*measured_lines(problem, state, base.id), ""] if is_concrete(state) else []
        if refused := refused_words(refusals(problem, state).get(base.id, ())):
            lines += [shortened(refused[0].upper() + refused[1:], LONGEST_REASON), ""]
        return PromptPart(heading, "\n".join([*lines, fenced(text)]))
    why = shortened(base.rejected.reason, LONGEST_REASON)
    return PromptPart(heading, f"It is broken:\n\n{why}\n\n{fenced(shortened(text, BROKEN))}")


def measured_lines(problem: Problem, state: State, candidate: str) -> list[str]:
    """Time and speed-up of a concrete kernel at each workload; where it does not run, why."""
    own = state.searched.of(Config((), candidate))
    if not own:
        return ["It has not been measured."]
    outcome = own[-1]
    speedups, lines = Yardstick(state).speedups(outcome), []
    for workload in problem.workloads:
        found = outcome.result(workload.name)
        if found is not None and found.timing is not None:
            time = f"{found.timing.seconds * 1e6:.2f} µs"
            lines.append(f"- {workload.name}: {time}, a speed-up of {speedups[workload.name]:.2f}×")
        elif found is not None:
            lines.append(f"- {workload.name}: {found.status}. {shortened(found.detail)}".rstrip(". "))
    return lines


def candidates_part(problem: Problem, state: State) -> PromptPart:
    """What each goes on from, and what it reached."""
    word, scored = noun(state.settings), candidate_speedups(problem, state)
    lines, refused = [], refusals(problem, state)
    for c in state.candidates:
        base = f"{word} {c.parent}" if c.parent else "the original"
        is_refused = c.id in refused
        none = "refused by the full check" if is_refused else "nothing measured"
        gain = f"{scored[c.id]:.2f}×" if c.id in scored else none
        if is_concrete(state):
            by, status = (
                "",
                f"right, {gain}" if c.id in scored else none if is_refused else "turned away",
            )
        else:
            by, status = _by(state, c), f"{c.status}, {gain}"
        lines.append(f"- {word} {c.id or 'given'} from {base}{by}: {status}")
    lines.append(f"- {best_line(problem, state)}")
    return PromptPart(f"{word.title()}s so far", "\n".join(lines), 1, lines[-1])


def _by(state: State, candidate: Candidate) -> str:
    """Whatever the model is called: what a recording was asked is asked again when it is played."""
    if candidate.drafted is None or not candidate.drafted.author:
        return f", moves {', '.join(candidate.moves) or 'none'}"
    if state.is_plain(candidate):
        return ", the kernel written plainly by a model"
    on = moves_on(state, candidate)
    return f", moves {', '.join(candidate.moves)} on template {on.id}" if on is not None else ", by a model"


def best_line(problem: Problem, state: State) -> str:
    best = leader(problem, state)
    if best is None:
        return "the best that is right: the original"
    gain = candidate_speedups(problem, state)[best.id]
    return f"the best that is right: {noun(state.settings)} {best.id}, {gain:.2f}×"


def round_parts(problem: Problem, state: State) -> list[PromptPart]:
    """A part for each round that is over, the older the sooner it is shortened."""
    rounds, word = round_reports(problem, state), noun(state.settings)
    if state.under_way is not None and state.under_way.decision == "refactor":
        rounds = rounds[:-1]
    return [_round(one, word, 2 if place < len(rounds) - WHOLE else 1) for place, one in enumerate(rounds)]


def _round(one: RoundReport, word: str, rank: int) -> PromptPart:
    lines = [f"Plan: {one.reason}", *([f"What to change: {one.what}"] if one.what else [])]
    lines.append(f"From: {f'{word} {one.base}' if one.base else 'the original'}")
    lines += ["Only to rewrite the kernel plainly, for a program to read"] if one.plain else []
    lines += [f"Moves: {', '.join(one.moves)}"] if one.moves else []
    for draft in one.drafts:
        status = "turned away" if draft.status == "rejected" else draft.status
        if word == "template" or draft.status == "rejected":
            lines.append(f"{word.title()} {draft.template}: {status}. {shortened(draft.why)}".rstrip())
    after = f" after {counted(one.evaluations, 'evaluation')}" if word == "template" else ""
    lines.append(f"Result{after}: {shortened(one.verdict)}")
    return PromptPart(f"Round {one.number}", "\n".join(lines), rank, shortened(one.verdict, 200))


def left_words(state: State) -> str:
    """Of the budgets that a plan has to fit in."""
    most, evals = state.settings.rounds, None if is_concrete(state) else evals_left(state)
    rounds = f"{counted(rounds_begun(state), 'round')} begun"
    rounds += f", {most} at most" if most is not None else ""
    words = [rounds]
    if evals is not None:
        share = next_share(state)
        gets = "" if share is None else f", of which the next template's search gets {share}"
        words.append(f"{counted(evals, 'evaluation')} left for searches{gets}")
    return "; ".join([*words, *still_left(state)])


_LEFT = {
    "seconds": "{left:.0f} of {limit:g} s of the run left",
    "device_seconds": "{left:.1f} of {limit:g} s on the device left",
    "tokens": "{about}{left:.0f} of {limit:g} tokens left, this request and its reply not counted",
    "dollars": "${left:.2f} of ${limit:g} left",
}


def still_left(state: State) -> list[str]:
    """Of the limits that the user has set, beside rounds and evaluations."""
    return [
        _LEFT[one.what].format(
            left=max(0.0, one.limit - (one.used or 0)),
            limit=one.limit,
            about="about " if one.by_length and one.used else "",
        )
        for one in budget_uses(state, with_models=True)
        if one.what in _LEFT and one.limit is not None
    ]
