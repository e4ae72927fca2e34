"""What was measured and tried so far, in words: times, the diagnosis, templates and rounds."""

from __future__ import annotations

from collections import Counter

from tunesmith.agents.material import fenced, memory_rate, shortened
from tunesmith.agents.prompting import Part
from tunesmith.core.candidates import Templates
from tunesmith.core.counted import counted
from tunesmith.core.device import Resources
from tunesmith.core.history import ratio, score_at
from tunesmith.core.plan import necessary_traffic
from tunesmith.core.prior import best_config, diagnoses
from tunesmith.core.problem import Problem
from tunesmith.core.profile.findings import Diagnosis
from tunesmith.core.racing import sound_scores
from tunesmith.core.rounds import best_scores, leader
from tunesmith.core.space import Config
from tunesmith.core.state import Candidate, State
from tunesmith.core.told import RoundReport, told

WHOLE = 2  # of the latest rounds; older ones give way to a line each
FINDINGS = 6  # of a diagnosis
NOTHING = "Nothing yet: the device is not where this was written. It will be measured on it, later."


def times_part(problem: Problem, state: State) -> Part:
    """What the original takes, and the best so far, with what each value of a parameter gave."""
    lines = _original(problem, state)
    best = best_config(problem, state)
    if best is not None:
        scored = best_scores(sound_scores(problem, state))
        gain = f"{ratio(scored[best.candidate]):.2f}× the speed of the original"
        lines.append(f"- the best so far: {_where(best)}, {gain} in the mean")
        lines += _at_workloads(problem, state)
        lines += _resources(str(best) if best.items else best.label, _built(state, best))
        lines += _by_value(problem, state, best)
        lines += _failed(state, best.candidate) if best.items else []
    return Part("Measured", "\n".join(lines) or NOTHING)


def _original(problem: Problem, state: State) -> list[str]:
    if state.baseline is None:
        found = next((s for s in state.surveyed if s.config is None), None)
        built = found.builds[0] if found is not None and found.builds else None
        lines = _resources("the original", built.resources if built else None)
        if built is not None and built.occupancy is not None:
            lines.append(f"- so its blocks fill {built.occupancy} % of a multiprocessor's threads at most")
        return [f"- {NOTHING}", *lines] if lines else []
    lines = []
    for result in state.baseline.outcome.results:
        if not result.timing:
            continue
        seconds, workload = result.timing.seconds, problem.workload(result.workload)
        moved = necessary_traffic(problem, workload.as_dict())
        rate = f", so what must move moves at {moved / seconds / 1e9:.3g} GB/s" if seconds else ""
        told = f"{rate}{_away(state, moved, seconds)}"
        lines.append(f"- {workload.name}: the original takes {seconds * 1e6:.2f} µs{told}")
    return lines + _resources("the original", state.baseline.outcome.resources)


def _away(state: State, moved: int, seconds: float) -> str:
    pin = memory_rate(state.device)
    return f", {_number(seconds * pin / moved)} times the least time" if pin and moved else ""


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def diagnosis_part(problem: Problem, state: State) -> Part:
    found = diagnoses(problem, state)
    text = "\n\n".join(_diagnosis(name, diagnosis) for name, diagnosis in found.items())
    return Part(
        "Diagnosis of the best so far", text, 1, "\n".join(f"- {n}: {d.summary}" for n, d in found.items())
    )


def history_parts(problem: Problem, state: State) -> list[Part]:
    """A part for each round, the older the sooner it is shortened."""
    rounds = told(problem, state)
    return [_round(one, rank=2 if place < len(rounds) - WHOLE else 1) for place, one in enumerate(rounds)]


def candidates_part(problem: Problem, state: State) -> Part:
    """The tree: what each goes on from, and what it reached."""
    scored = best_scores(sound_scores(problem, state))
    lines = []
    for c in state.candidates:
        gain = f"{ratio(scored[c.id]):.2f}×" if c.id in scored else "nothing measured"
        # Whatever the model is called: what a recording was asked is asked again when it is played.
        is_model = c.drafted is not None and bool(c.drafted.author)
        by = "by a model" if is_model else f"moves {', '.join(c.moves) or 'none'}"
        lines.append(
            f"- template {c.id or 'given'} from {c.parent or 'the original'}, {by}: {c.status}, {gain}"
        )
    best = leader(problem, state)
    lines.append(f"- the best correct one: {f'template {best.id}' if best else 'the original'}")
    return Part("Templates so far", "\n".join(lines), 1, lines[-1])


def base_part(templates: Templates, base: Candidate) -> Part:
    return Part(f"Template {base.id}, which this goes on from", fenced(templates.text(base)))


def _at_workloads(problem: Problem, state: State) -> list[str]:
    """The best at each workload by itself, which may be another configuration."""
    tried, lines, timed = sound_scores(problem, state), [], _seconds(state)
    for place, workload in enumerate(problem.workloads):
        scored = [(found, t.config) for t in tried if (found := score_at(t, place)) is not None]
        if scored:
            score, config = max(scored, key=lambda pair: pair[0])
            takes = ""
            if (before := timed.get(workload.name)) is not None:
                seconds = before / ratio(score)
                moved = necessary_traffic(problem, workload.as_dict())
                takes = f", about {seconds * 1e6:.2f} µs{_away(state, moved, seconds)}"
            lines.append(f"- {workload.name}: {ratio(score):.2f}× at best{takes}, with {_where(config)}")
    return lines


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


def _built(state: State, config: Config) -> Resources | None:
    return next((o.resources for o in reversed(state.outcomes) if o.trial.config == config), None)


def _diagnosis(workload: str, found: Diagnosis) -> str:
    away = f"; {found.distance:.2f} times its floor ({found.ceiling})" if found.distance is not None else ""
    lines = [f"{workload}: bound by {found.bound}{away}. {found.summary}"]
    for finding in found.findings[:FINDINGS]:
        evidence = "; ".join(finding.evidence)
        remedies = ", ".join(finding.remedies)
        lines.append(
            f"- {finding.kind} ({finding.gain:.0%} of the time at stake): {evidence}. Remedies: {remedies}"
        )
    return "\n".join(lines)


def _round(one: RoundReport, rank: int) -> Part:
    lines = [f"Plan: {one.reason}", *([f"What to change: {one.what}"] if one.what else [])]
    if one.moves:
        lines.append(f"Moves: {', '.join(one.moves)}")
    lines += [f"Template {d.template}: {d.status}. {shortened(d.why)}".rstrip() for d in one.drafts]
    lines.append(f"Result after {counted(one.evaluations, 'evaluation')}: {shortened(one.verdict)}")
    return Part(f"Round {one.number}", "\n".join(lines), rank, f"{shortened(one.verdict, 200)}")


def _by_value(problem: Problem, state: State, best: Config) -> list[str]:
    """For each parameter of the best template: the best that was tried with each of its values."""
    tried = [
        t
        for t in sound_scores(problem, state)
        if t.config.candidate == best.candidate and t.score is not None
    ]
    lines = []
    for name, _ in best.items:
        found: dict[int, float] = {}
        for t in tried:
            assert t.score is not None
            found[t.config[name]] = max(found.get(t.config[name], t.score), t.score)
        if len(found) > 1:
            shown = ", ".join(f"{value}: {ratio(found[value]):.2f}×" for value in sorted(found))
            lines.append(f"- the best with each {name}: {shown}")
    return lines


def _failed(state: State, candidate: str) -> list[str]:
    """Configurations of a template that gave no time, and the first of them in its own words."""
    own = state.searched().of(("of", candidate))
    bad = [(o, r) for o in own if (r := next((r for r in o.results if not r.ok), None))]
    if not bad:
        return []
    counts = ", ".join(f"{n} {status}" for status, n in Counter(str(r.status) for _, r in bad).items())
    first, why = bad[0]
    words = shortened(why.detail.strip(), 300) or str(why.status)
    return [f"- of template {candidate} gave no time: {counts}; first {first.trial.config}: {words}"]
