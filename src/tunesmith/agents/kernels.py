"""What is told of concrete kernels: the one gone on from, what each gave, and the rounds so far, in words."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.agents import material, measured
from tunesmith.agents.material import fenced, shortened
from tunesmith.agents.measured import WHOLE
from tunesmith.agents.parsing import MARK, Fault, read_file
from tunesmith.agents.prompting import Part
from tunesmith.core.candidates import Templates
from tunesmith.core.counted import counted
from tunesmith.core.dialogue import Reply
from tunesmith.core.history import ratio
from tunesmith.core.offers import Catalogue
from tunesmith.core.prior import in_view
from tunesmith.core.problem import Problem
from tunesmith.core.racing import sound_scores
from tunesmith.core.rounds import best_scores, leader
from tunesmith.core.scores import Yardstick
from tunesmith.core.space import Config
from tunesmith.core.spending import rounds_begun
from tunesmith.core.state import Candidate, State
from tunesmith.core.strategy import last_written
from tunesmith.core.template import Template
from tunesmith.core.told import RoundReport, told

BROKEN = 60_000  # characters of a kernel that was turned away; one that is right is shown whole
LONGEST_REASON = 6000  # of the words about the kernel that is gone on from
NO_HEADER = (
    f"the file has no header: it begins with `// {MARK}`, then `// [launch]` with `// grid = [...]` and "
    "`// block = [...]`, and closes with `// ///`"
)


def read_kernel(reply: Reply) -> str | Fault:
    """The one fenced file; whether it is right is for others to say."""
    text = read_file(reply)
    return Fault(NO_HEADER) if isinstance(text, str) and MARK not in text else text


def has_parameters(template: Template) -> str | None:
    """Why a file may not stay as it is, where kernels are concrete."""
    if template.is_concrete:
        return None
    names = ", ".join(param.name for param in template.space.params)
    return (
        f"it has parameters ({names}), and nobody searches here: choose one value of each, write them into "
        "the code, and leave out [params] and [default]"
    )


def base_of(problem: Problem, state: State) -> Candidate | None:
    """What the next round goes on from: the best that is right, in a chain what was written last; None: the
    original."""
    return last_written(state) if state.settings.linear else leader(problem, state)


def base_part(problem: Problem, state: State, templates: Templates, base: Candidate) -> Part:
    heading, text = f"Kernel {base.id}, which this goes on from", templates.text(base)
    if base.rejected is None:
        lines = [*measured_lines(problem, state, base.id), "", fenced(text)]
        return Part(heading, "\n".join(lines))
    why = shortened(base.rejected.reason, LONGEST_REASON)
    shown = fenced(shortened(text, BROKEN))
    return Part(heading, f"It is broken. In the words of whoever found out:\n\n{why}\n\n{shown}")


def told_parts(problem: Problem, state: State, moves: Catalogue) -> list[Part]:
    """What planner, author and a conversation are told alike, as where templates are written."""
    return [
        *material.kernel_parts(problem),
        material.problem_part(problem, state.device),
        material.reading_part(moves),
        material.device_part(state.device, state),
        measured.times_part(problem, state),
        diagnosis_part(problem, state),
    ]


def tested_part(problem: Problem, state: State) -> Part:
    return material.tested_part(problem, state)


def measured_lines(problem: Problem, state: State, candidate: str) -> list[str]:
    """Time and speed-up of a kernel at each workload; where it does not run, why."""
    own = state.searched().of(Config((), candidate))
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


def diagnosis_part(problem: Problem, state: State) -> Part:
    seen = in_view(problem, state)
    known = seen is not None and any(p.config == seen and p.diagnosis for p in state.profiled)
    whose = seen.label if seen is not None and known else "the original"
    return replace(measured.diagnosis_part(problem, state), heading=f"Diagnosis of {whose}")


def kernels_part(problem: Problem, state: State) -> Part:
    """What each goes on from, and what it reached."""
    scored = best_scores(sound_scores(problem, state))
    lines = []
    for c in state.candidates:
        gain = f"right, {ratio(scored[c.id]):.2f}×" if c.id in scored else "turned away"
        lines.append(f"- kernel {c.id} from {f'kernel {c.parent}' if c.parent else 'the original'}: {gain}")
    lines.append(f"- {best_line(problem, state)}")
    return Part("Kernels so far", "\n".join(lines), 1, lines[-1])


def best_line(problem: Problem, state: State) -> str:
    best = leader(problem, state)
    if best is None:
        return "the best that is right: the original"
    score = best_scores(sound_scores(problem, state))[best.id]
    return f"the best that is right: kernel {best.id}, {ratio(score):.2f}×"


def round_parts(problem: Problem, state: State) -> list[Part]:
    """A part for each round that is over, the older the sooner it is shortened."""
    rounds = told(problem, state)
    if state.under_way is not None and state.under_way.decision == "refactor":
        rounds = rounds[:-1]
    return [_round(one, rank=2 if place < len(rounds) - WHOLE else 1) for place, one in enumerate(rounds)]


def left_words(state: State) -> str:
    """Of the budget of rounds: one kernel each."""
    most = state.settings.rounds
    begun = f"{counted(rounds_begun(state), 'round')} begun"
    return begun if most is None else f"{begun}, {most} at most"


def _round(one: RoundReport, rank: int) -> Part:
    lines = [f"Plan: {one.reason}", *([f"What to change: {one.what}"] if one.what else [])]
    lines.append(f"From: {f'kernel {one.base}' if one.base else 'the original'}")
    lines += [
        f"Kernel {d.template}: turned away. {shortened(d.why)}" for d in one.drafts if d.status == "rejected"
    ]
    lines.append(f"Result: {shortened(one.verdict)}")
    return Part(f"Round {one.number}", "\n".join(lines), rank, shortened(one.verdict, 200))
