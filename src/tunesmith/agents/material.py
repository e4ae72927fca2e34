"""What every role is told: the kernel, the problem, the device, and what was measured so far, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from tunesmith.agents.prompting import Part
from tunesmith.core.candidates import Templates
from tunesmith.core.device import Device, Resources
from tunesmith.core.history import ratio, score_at
from tunesmith.core.problem import Argument, Launch, Problem
from tunesmith.core.profile.findings import Diagnosis
from tunesmith.core.racing import sound_scores
from tunesmith.core.rounds import best_scores, leader
from tunesmith.core.space import Config
from tunesmith.core.state import Candidate, State
from tunesmith.core.steering_rounds import best_config, diagnoses
from tunesmith.core.told import RoundReport, told

WHOLE = 2  # of the latest rounds; older ones give way to a line each
FINDINGS = 6  # of a diagnosis
LONGEST_WHY = 1500  # characters of a compiler's or oracle's words


@dataclass(frozen=True)
class Catalogue:
    """The expert's moves by name: what each does, those that apply to this kernel, and why others do not."""

    about: Mapping[str, str]
    available: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]


def kernel_part(problem: Problem) -> Part:
    return Part(f"The kernel as it is ({problem.kernel.path})", fenced(problem.kernel.text))


def problem_part(problem: Problem) -> Part:
    kernel, accuracy = problem.kernel, problem.accuracy
    lines = [
        f"- language {kernel.language}; entry `{kernel.entry}`"
        + (f"; built with {' '.join(kernel.flags)}" if kernel.flags else ""),
        *(_argument(a) for a in problem.arguments),
        *(_launch(one) for one in problem.launches),
        *(f"- size `{rule.name}`: {rule.describe()}" for rule in problem.contract.sizes),
        *(f"- callers promise: {c.expr.text}" for c in problem.contract.require),
        *(_workload(w.name, w.as_dict(), w.weight, w.cache) for w in problem.workloads),
        f"- results are compared in float64 with rtol {accuracy.rtol:g}, atol {accuracy.atol:g}, and may err "
        "little more than the original does",
    ]
    return Part("The problem", "\n".join(lines))


def device_part(device: Device, state: State) -> Part:
    limits = device.limits
    shown = [f"{f.name} {v}" for f in fields(limits) if (v := getattr(limits, f.name)) not in (0, None)]
    ceilings = dict.fromkeys(p.diagnosis.ceiling for p in state.profiled if p.diagnosis)
    lines = [f"{device.name} ({device.kind}, {device.platform}); limits: {'; '.join(shown)}"]
    lines += [f"Measured ceiling: {ceiling}" for ceiling in ceilings if ceiling]
    if state.compiler:
        lines.append(f"Compiler: {state.compiler}")
    return Part("The device", "\n".join(lines))


def times_part(problem: Problem, state: State) -> Part:
    """What the original takes, and the best so far."""
    lines = []
    if state.baseline is not None:
        lines += [
            f"- {result.workload}: the original takes {result.timing.seconds * 1e6:.2f} µs"
            for result in state.baseline.outcome.results
            if result.timing
        ]
        lines += _resources("the original", state.baseline.outcome.resources)
    best = best_config(problem, state)
    if best is not None:
        scored = best_scores(sound_scores(problem, state))
        lines.append(
            f"- the best so far: template {best.candidate} at {best}, {ratio(scored[best.candidate]):.2f}×"
        )
        lines += _at_workloads(problem, state)
        lines += _resources(f"{best}", _built(state, best))
    return Part("Measured", "\n".join(lines))


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
        by = (
            f"by {c.drafted.author}"
            if c.drafted and c.drafted.author
            else f"moves {', '.join(c.moves) or 'none'}"
        )
        lines.append(
            f"- template {c.id or 'given'} from {c.parent or 'the original'}, {by}: {c.status}, {gain}"
        )
    best = leader(problem, state)
    lines.append(f"- the best correct one: {f'template {best.id}' if best else 'the original'}")
    return Part("Templates so far", "\n".join(lines), 1, lines[-1])


def moves_part(moves: Catalogue) -> Part:
    lines = [f"- {name}: {moves.about.get(name, 'see its name')}" for name in moves.available]
    lines += [f"- not here: {name}, because {why}" for name, why in moves.refused]
    short = f"Available: {', '.join(moves.available) or 'none'}"
    return Part("Moves that a program can apply, proved safe", "\n".join(lines), 2, short)


def base_part(templates: Templates, base: Candidate) -> Part:
    return Part(f"Template {base.id}, which this goes on from", fenced(templates.text(base)))


def fenced(text: str) -> str:
    longest = max((len(line) - len(line.lstrip("`")) for line in text.splitlines()), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def shortened(text: str, most: int = LONGEST_WHY) -> str:
    """Beginning and end, where the words of a compiler say most."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n… ({len(text) - most} characters left out)\n{text[-(most // 2) :]}"


def _argument(a: Argument) -> str:
    shape = f" [{', '.join(e.text for e in a.shape)}]" if a.shape else ""
    align = f", aligned to {a.align} bytes" if a.align else ""
    value = f" = {getattr(a.value, 'text', a.value)}" if a.value is not None else ""
    return f"- argument `{a.name}`: {a.type}{'*' if a.is_array else ''}{shape}, {a.role}{align}{value}"


def _launch(one: Launch) -> str:
    grid, block = (", ".join(e.text for e in axis) for axis in (one.grid, one.block))
    shared = f", shared {one.shared.text} bytes" if one.shared else ""
    args = ", ".join(one.args)
    return f"- launched today: `{one.entry}` with grid ({grid}), block ({block}){shared}; args {args}"


def _workload(name: str, sizes: Mapping[str, int], weight: float, cache: str) -> str:
    shown = ", ".join(f"{key} = {value}" for key, value in sizes.items())
    return f"- must be fast at `{name}`: {shown} (weight {weight:g}, {cache} cache)"


def _at_workloads(problem: Problem, state: State) -> list[str]:
    """The best at each workload by itself, which may be another configuration."""
    tried, lines = sound_scores(problem, state), []
    for place, workload in enumerate(problem.workloads):
        scored = [(found, t.config) for t in tried if (found := score_at(t, place)) is not None]
        if scored:
            score, config = max(scored, key=lambda pair: pair[0])
            where = f"template {config.candidate} at {config}"
            lines.append(f"- {workload.name}: {ratio(score):.2f}× at best, with {where}")
    return lines


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
    lines.append(f"Result after {one.evaluations} evaluations: {shortened(one.verdict)}")
    return Part(f"Round {one.number}", "\n".join(lines), rank, f"{shortened(one.verdict, 200)}")
