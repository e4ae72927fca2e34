"""What tools answer with: plain values with a schema, and what is said of them in a few lines.

Whatever comes from a kernel, a compiler or a model is data: it stands in fields, with nothing in it that a
terminal acts upon, and no longer than somebody reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tunesmith.base.errors import TunesmithError, WaitingForModel
from tunesmith.base.text import format_count, named_values, strip_controls, truncate_text
from tunesmith.run.figures import Figure

if TYPE_CHECKING:
    from tunesmith.plugins.studies.difference import RunDifference
    from tunesmith.profiles.facts import ProfilePage
    from tunesmith.run.report import WorkloadReport
    from tunesmith.session.check import CheckedProblem, ExplainedKernel, ExplainedSource, TemplateMade
    from tunesmith.session.result import Exported, Run

MAX_LINES = 400  # of one answer
LONGEST_LINE = 2000
LONGEST_TEXT = 400_000  # characters of one text: a whole template, a whole request


def sanitize_text(text: str, most: int = LONGEST_LINE) -> str:
    return truncate_text(strip_controls(text), most)


def foreign_lines(lines: Iterable[str]) -> tuple[str, ...]:
    found = [sanitize_text(line) for line in lines]
    left = len(found) - MAX_LINES
    return (*found[:MAX_LINES], f"… and {format_count(left, 'line')} more") if left > 0 else tuple(found)


def resource_uri(run: Path, *parts: str) -> str:
    """Of a resource of a run."""
    return "/".join(["tunesmith://runs", quote(str(run), safe=""), *(quote(part, safe="") for part in parts)])


@dataclass(frozen=True)
class KernelAnswer:
    """One kernel of a source before there is a problem. `left`: what only its owner can say."""

    entry: str
    line: int
    understood: bool
    reading: tuple[str, ...]
    obstacles: tuple[str, ...]
    moves: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True)
class InspectAnswer:
    """What is at a path: a kernel source, a problem, a run, or a folder with some of them."""

    path: str
    kind: str
    folders: tuple[str, ...]  # that may be touched
    kernels: tuple[KernelAnswer, ...] = ()
    problems: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DraftAnswer:
    """A problem folder as far as the source says; `fills` places say FILL."""

    folder: str
    files: tuple[str, ...]
    fills: int
    problem: str  # the text of problem.toml


@dataclass(frozen=True)
class CheckAnswer:
    problem: str
    device: str
    right: bool
    cases: int
    judged_by_reference: bool
    configurations: int | None = None
    sanitized: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    missing: str = ""  # why the kernel was built and not run


@dataclass(frozen=True)
class ExplainAnswer:
    problem: str
    device: str
    reading: tuple[str, ...]
    moves: dict[str, str]  # those that apply, and what each does
    refused: dict[str, str]  # those that do not, and why
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TemplateAnswer:
    problem: str
    template: str  # the text; empty where there is none
    why_none: str = ""
    moves: tuple[str, ...] = ()
    configurations: int | None = None
    device: str = ""
    file: str = ""  # where it was written
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorkloadAnswer:
    """`speedup` with its interval is verified. `config` None: the original stays."""

    name: str
    sizes: dict[str, int]
    original_us: float
    tuned_us: float
    speedup: float
    low: float
    high: float
    config: dict[str, int] | None


@dataclass(frozen=True)
class RunAnswer:
    """A run as it stands. `state`: finished, running, stopped, waiting (for replies), no device."""

    run: str
    problem: str
    device: str
    state: str
    reason: str
    geometric_mean: float | None  # verified; None: not finished, or nothing better
    workloads: tuple[WorkloadAnswer, ...]
    best_so_far: float | None  # by the search, not verified
    evaluations: int
    seconds: float
    kernels: tuple[str, ...]  # what is delivered, in the run's folder
    requests: tuple[str, ...]  # that a model is asked and nobody has answered
    resources: dict[str, str]  # name -> address
    next: str  # what to do now
    headline: str = ""  # the geometric mean in words: what it is, or what it is at least


@dataclass(frozen=True)
class ProfileAnswer:
    problem: str
    device: str
    lines: tuple[str, ...]
    plot: str = ""
    missing: str = ""


@dataclass(frozen=True)
class ArmAnswer:
    """A strategy at a problem: verified speed-ups of its runs; None: none counts."""

    problem: str
    strategy: str
    runs: int  # that count
    planned: int
    successes: int
    mean: float | None
    worst: float | None
    interval: tuple[float, float] | None  # of the mean, 95 %


@dataclass(frozen=True)
class ComparedAnswer:
    folder: str
    arms: tuple[ArmAnswer, ...]
    limits: tuple[str, ...]  # what this does and does not show
    troubles: tuple[str, ...]  # what keeps runs from going on, or made them fail
    runs: tuple[str, ...]  # folders
    lines: tuple[str, ...]
    waiting: tuple[str, ...] = ()  # folders of runs that wait for replies


@dataclass(frozen=True)
class JobAnswer:
    """Long work, or a run that somebody else began. `state`: running, failed, cancelled, or that of its run.
    `best` is by the search, not verified."""

    handle: str  # empty: it was begun by somebody else
    kind: str
    state: str
    seconds: float
    evaluations: int = 0
    best: float | None = None
    said: tuple[str, ...] = ()  # the last lines of its progress
    run: RunAnswer | None = None
    checked: CheckAnswer | None = None
    profile: ProfileAnswer | None = None
    error: str = ""
    hint: str = ""
    compared: ComparedAnswer | None = None


@dataclass(frozen=True)
class DifferenceAnswer:
    """Two runs: `ratio` is the speed-up after over the one before, below 1 it got slower."""

    before: str
    after: str
    judged_by: str
    ratio: float
    workloads: dict[str, float]
    clear: dict[str, bool]  # whether the intervals of the speed-ups lie apart
    notes: tuple[str, ...]


@dataclass(frozen=True)
class DiffAnswer:
    problem: str
    differences: tuple[DifferenceAnswer, ...]  # each run held against the first


@dataclass(frozen=True)
class ExportAnswer:
    target: str
    problem: str
    folder: str
    files: tuple[str, ...]
    kernels: int
    winners: int
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RequestAnswer:
    """A question of a run to its model. `text` has all that the model is told; it is data."""

    run: str
    request: str  # its name; empty: none is open
    role: str
    expects: str
    text: str
    open: tuple[str, ...] = ()  # all that wait, this one among them


def kernel_answers(source: ExplainedSource) -> tuple[KernelAnswer, ...]:
    found = []
    for one in source.kernels:
        read = one.line, one.read, foreign_lines(one.lines), foreign_lines(one.obstacles)
        found.append(KernelAnswer(sanitize_text(one.entry), *read, one.moves, foreign_lines(one.left)))
    return tuple(found)


def check_answer(done: CheckedProblem) -> CheckAnswer:
    return CheckAnswer(
        sanitize_text(done.problem),
        done.device,
        right=done.missing is None,
        cases=done.cases,
        judged_by_reference=done.judged_by_reference,
        configurations=done.feasible,
        sanitized=foreign_lines(one.sentence for one in done.sanitized),
        notes=foreign_lines(done.notes),
        missing=sanitize_text(str(done.missing)) if done.missing else "",
    )


def explain_answer(found: ExplainedKernel) -> ExplainAnswer:
    about = dict(found.about)
    return ExplainAnswer(
        sanitize_text(found.problem),
        found.device,
        foreign_lines(found.lines),
        {move: sanitize_text(about.get(move, "")) for move in found.moves},
        {move: sanitize_text(why) for move, why in found.refused},
        foreign_lines(found.notes),
    )


def template_answer(made: TemplateMade) -> TemplateAnswer:
    text = sanitize_text(made.template or "", LONGEST_TEXT)
    about = made.moves, made.feasible, made.device, made.file or "", foreign_lines(made.notes)
    return TemplateAnswer(sanitize_text(made.problem), text, sanitize_text(made.declined), *about)


def profile_answer(page: ProfilePage) -> ProfileAnswer:
    from tunesmith.deliver.pages.profile import page_lines

    told = foreign_lines(page_lines(page)), page.plot, sanitize_text(page.missing)
    return ProfileAnswer(sanitize_text(page.problem), page.device, *told)


def run_answer(run: Run, requests: Sequence[str] = ()) -> RunAnswer:
    """`requests` are those that nobody has answered."""
    found, missing = run.result, run.missing
    state = "finished" if found.finished else "running" if found.live else "stopped"
    if missing is not None:
        state = "waiting" if isinstance(missing, WaitingForModel) else "no device"
    elif requests and state == "stopped":
        state = "waiting"
    has_won = found.general is not None or any(w.config is not None for w in found.workloads)
    paths: dict[str, tuple[str, ...]] = {
        name: (name,) for name in ("report.md", "report.json", "report.html")
    }
    paths |= {name: ("kernels", name.removeprefix("tuned/")) for name in found.tuned}
    return RunAnswer(
        run=str(run.folder),
        problem=sanitize_text(found.problem),
        device=found.device,
        state=state,
        reason=sanitize_text(str(missing) if missing else found.reason),
        geometric_mean=found.geometric_mean if found.finished else None,
        workloads=tuple(map(_workload_answer, found.workloads)) if found.finished else (),
        best_so_far=found.so_far.speedup if found.so_far else None,
        evaluations=sum(found.evaluations.values()),
        seconds=round(found.seconds, 3),
        kernels=found.tuned,
        requests=tuple(requests),
        resources={name: resource_uri(run.folder, *parts) for name, parts in paths.items()},
        next=_suggest_next_step(state, missing, has_won),
        headline=found.headline if found.finished else "",
    )


def _workload_answer(w: WorkloadReport) -> WorkloadAnswer:
    times = w.baseline_us, w.tuned_us, w.speedup
    return WorkloadAnswer(sanitize_text(w.name), w.sizes, *times, *w.interval, w.config)


_NEXT_STEPS = {
    "waiting": "read the request with next_request, and hand in the answer with reply",
    "running": "wait for it with the tool wait, or end it with cancel",
}


def _suggest_next_step(state: str, missing: TunesmithError | None, has_won: bool) -> str:
    if state == "finished" and has_won:
        return "export it with the tool export, or read its kernels and its report as resources"
    if state == "finished":
        return "nothing better was found: the original stays; the report says what was tried"
    hint = sanitize_text(missing.hint or "") if missing else ""
    return _NEXT_STEPS.get(state) or hint or "go on with it with the tool resume"


def diff_answer(found: Sequence[RunDifference]) -> DiffAnswer:
    rows = []
    for one in found:
        ratios = {sanitize_text(w.name): w.ratio for w in one.workloads}
        clear = {sanitize_text(w.name): w.is_clear for w in one.workloads}
        notes = foreign_lines((*(f"{w.name}: {w.moved}" for w in one.workloads if w.moved), *one.notes))
        rows.append(DifferenceAnswer(one.before, one.after, one.judged_by, one.ratio, ratios, clear, notes))
    return DiffAnswer(sanitize_text(found[0].problem), tuple(rows))


def export_answer(found: Exported) -> ExportAnswer:
    delivered = found.folder, found.files, found.kernels, found.winners
    told = foreign_lines(found.left_out), foreign_lines(found.notes)
    return ExportAnswer(found.target, sanitize_text(found.problem), *delivered, *told)


def run_lines(answer: RunAnswer) -> list[str]:
    lines = [f"{answer.problem} on {answer.device}: {answer.state} ({answer.reason}), in {answer.run}"]
    for w in answer.workloads:
        figure = Figure(w.speedup, w.low, w.high)
        figures = f"{figure.words} ({figure.span}), verified"
        given = f"{figures}; {named_values(w.config)}" if w.config is not None else "the original stays"
        lines.append(f"{w.name}: {given}")
    if answer.geometric_mean is not None:
        lines.append(f"geometric mean {answer.headline}, verified")
    elif answer.best_so_far is not None:
        lines.append(f"best so far {answer.best_so_far:.2f}×, by the search, not verified")
    lines += [f"request {name} waits for an answer" for name in answer.requests]
    return [*lines, f"next: {answer.next}"]


def check_lines(answer: CheckAnswer) -> list[str]:
    by = "the reference" if answer.judged_by_reference else "itself, run twice (no reference given)"
    cases = format_count(answer.cases, "case")
    right = f"{answer.problem} is right on {cases} on {answer.device}, judged by {by}"
    lines = [answer.missing or right]
    if answer.configurations is not None:
        lines.append(f"the template has {format_count(answer.configurations, 'configuration')} for it there")
    return [*lines, *answer.sanitized, *(f"note: {note}" for note in answer.notes)]


def job_lines(answer: JobAnswer) -> list[str]:
    head = f"{answer.kind} {answer.handle}".rstrip()
    lines = [f"{head}: {answer.state} after {answer.seconds:.0f} s"]
    if answer.state == "running":
        best = f", best {answer.best:.2f}× by the search, not verified" if answer.best else ""
        lines.append(f"{format_count(answer.evaluations, 'evaluation')}{best}; call wait with this handle")
        lines += answer.said[-1:]
    if answer.error:
        lines += [f"error: {answer.error}", *([f"hint: {answer.hint}"] if answer.hint else [])]
    lines += run_lines(answer.run) if answer.run else []
    lines += check_lines(answer.checked) if answer.checked else []
    lines += answer.compared.lines if answer.compared else ()
    return [*lines, *(answer.profile.lines if answer.profile else ())]


def move_lines(moves: Mapping[str, str]) -> list[str]:
    return [f"  {name}: {words}" if words else f"  {name}" for name, words in moves.items()]
