"""Long work behind handles: a process each, which goes on while nobody waits, and can be ended."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

import tunesmith
from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.errors import BadInput, Interrupted, TunesmithError, WaitingForModel, bug_text
from tunesmith.base.interrupts import end_when_asked
from tunesmith.plugins.mcp.answers import (
    ArmAnswer,
    CheckAnswer,
    ComparedAnswer,
    JobAnswer,
    ProfileAnswer,
    RunAnswer,
    check_answer,
    foreign_lines,
    profile_answer,
    run_answer,
    sanitize_text,
)
from tunesmith.plugins.mcp.folders import check_models, check_run, open_requests
from tunesmith.plugins.studies.pages import RUNS
from tunesmith.plugins.studies.plan import schedule_runs
from tunesmith.plugins.studies.result import ComparisonCell, caveat_sentences
from tunesmith.plugins.studies.run import Compared, read_plan
from tunesmith.run.folder import PLAN, RunFolder, has_begun
from tunesmith.session.problems import readable_folders

# A comparison of strategies as it is answered: what its runs say together, and what keeps it waiting.


def check_comparison(folder: Path, permitted: Sequence[str]) -> str:
    """The models of one that somebody else may have planned, and of its runs, which lie in its folder."""
    if not (folder / PLAN).is_file():
        return ""  # whoever goes on with it says what is missing
    plan = read_plan(RunFolder(folder))
    check_models(plan.model, permitted)
    for item in schedule_runs(plan):
        path = folder / RUNS / item.place
        if has_begun(path):
            check_run(path, permitted)
    return plan.model


def compared_answer(found: Compared) -> ComparedAnswer:
    result = found.comparison
    arms = tuple(map(_arm_answer, result.cells))
    troubles = foreign_lines([f"{folder.name}: {error}" for folder, error in found.troubles])
    runs = tuple(str(found.folder / RUNS / run.planned.place) for run in result.runs)
    waiting = tuple(str(path) for path, error in found.troubles if isinstance(error, WaitingForModel))
    told = caveat_sentences(result)
    lines = [
        *map(_arm_line, arms),
        *told,
        *troubles,
        f"the whole report: {found.folder / 'compare.md'}",
        *(f"{path} waits for an answer" for path in waiting),
        *([f"next: {_next_step(found, waiting)}"] if troubles else []),
    ]
    told_lines = foreign_lines(told), troubles, runs, foreign_lines(lines)
    return ComparedAnswer(str(found.folder), arms, *told_lines, waiting)


def _arm_answer(cell: ComparisonCell) -> ArmAnswer:
    counts = cell.counted, cell.planned, cell.successes
    return ArmAnswer(sanitize_text(cell.problem), cell.arm, *counts, cell.mean, cell.least, cell.interval)


def _next_step(found: Compared, waiting: Sequence[str]) -> str:
    go_on = f"go on with compare, resume={found.folder}"
    if not waiting:
        return go_on
    return f"for each run that waits read its request with next_request, answer it with reply; then {go_on}"


def _arm_line(arm: ArmAnswer) -> str:
    head = f"{arm.strategy} at {arm.problem}: {arm.runs} of {arm.planned} runs count"
    if arm.mean is None:
        return head
    span = f" ({arm.interval[0]:.2f} to {arm.interval[1]:.2f})" if arm.interval is not None else ""
    worst = f", the worst {arm.worst:.2f}×" if arm.worst is not None else ""
    return f"{head}, {arm.successes} of them faster; mean {arm.mean:.2f}×{span}, verified{worst}"


# The process that does one piece of long work for the server: it is told what on its first line, says
# how it gets on in lines of JSON, and stops, as by Ctrl-C, when whoever started it closes its input or is
# gone.
Listener = Callable[[tunesmith.ProgressUpdate], None]


@dataclass(frozen=True)
class WorkOrder:
    """What to do. Paths are absolute, and were found to be in the folders."""

    kind: str
    folders: tuple[str, ...]
    target: str  # a problem, or a run
    template: str | None = None
    device: str | None = None
    model: str | None = None
    permitted: tuple[str, ...] = ()  # models
    out: str | None = None
    evals: int | None = None
    seconds: float | None = None
    rounds: int | None = None
    seed: int | None = None
    sanitize: bool = False
    config: str | None = None
    workloads: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()  # of a new comparison; none: `target` is one that goes on
    strategies: str = ""
    repeats: int = 3


@dataclass(frozen=True)
class WorkLine:
    """One line of what a worker says. The last has `ended`."""

    text: str = ""
    evaluations: int = 0
    best: float | None = None
    ended: str = ""  # the state of the job, which runs no more
    run: RunAnswer | None = None
    checked: CheckAnswer | None = None
    profile: ProfileAnswer | None = None
    error: str = ""
    hint: str = ""
    compared: ComparedAnswer | None = None


@dataclass
class Reporter:
    """Whoever listens. Who does not listen any more is not there any more: the work ends."""

    out: BinaryIO
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, line: WorkLine) -> None:
        with self._lock:
            try:
                self.out.write(encode_json(line) + b"\n")
                self.out.flush()
            except OSError as error:
                raise KeyboardInterrupt from error

    def update(self, update: tunesmith.ProgressUpdate) -> None:
        self.say(WorkLine(sanitize_text(update.text), update.evaluations, update.best))


def run_check_job(order: WorkOrder, listener: Listener) -> WorkLine:
    check = partial(tunesmith.check, order.target, template=order.template, device=order.device)
    return WorkLine(checked=check_answer(check(seed=order.seed, sanitize=order.sanitize, listener=listener)))


def run_tune_job(order: WorkOrder, listener: Listener) -> WorkLine:
    assert order.out is not None, "the server chooses the folder, so that it can name it"
    budget = tunesmith.Budget(evals=order.evals, seconds=order.seconds, rounds=order.rounds)
    place = partial(tunesmith.tune, order.target, out=order.out, runs=str(Path(order.out).parent), wait=False)
    given = partial(place, template=order.template, device=order.device, seed=order.seed)
    return WorkLine(run=run_with_requests(given(model=order.model or "", budget=budget, listener=listener)))


def run_resume_job(order: WorkOrder, listener: Listener) -> WorkLine:
    model = check_run(Path(order.target), order.permitted)
    run = tunesmith.resume(order.target, model=model, wait=False, listener=listener)
    return WorkLine(run=run_with_requests(run))


def run_profile_job(order: WorkOrder, listener: Listener) -> WorkLine:
    given = partial(tunesmith.profile, order.target, template=order.template, device=order.device)
    page = given(config=order.config, workloads=order.workloads, out=order.out, listener=listener)
    return WorkLine(profile=profile_answer(page))


def run_compare_job(order: WorkOrder, listener: Listener) -> WorkLine:
    if not order.problems:
        model = check_comparison(Path(order.target), order.permitted)
        found = tunesmith.resume_comparison(order.target, model=model, wait=False, listener=listener)
        return WorkLine(compared=compared_answer(found))
    assert order.out is not None, "the server chooses the folder, so that it can name it"
    check_comparison(Path(order.out), order.permitted)  # the same one may have been begun there
    budget = tunesmith.Budget(evals=order.evals, seconds=order.seconds, rounds=order.rounds)
    each = partial(tunesmith.compare, list(order.problems), budget=budget, seed=order.seed, wait=False)
    given = partial(each, strategies=order.strategies, repeats=order.repeats, device=order.device)
    return WorkLine(
        compared=compared_answer(given(model=order.model or "", out=order.out, listener=listener))
    )


def run_with_requests(run: tunesmith.Run) -> RunAnswer:
    return run_answer(run, [request.name for request in open_requests(run.folder)])


KINDS = {
    "check": run_check_job,
    "tune": run_tune_job,
    "resume": run_resume_job,
    "profile": run_profile_job,
    "compare": run_compare_job,
}


def execute_order(order: WorkOrder, reporter: Reporter) -> WorkLine:
    """Errors are lines like any other; a traceback is for nobody."""
    try:
        with readable_folders(map(Path, order.folders), only=True):
            done = KINDS[order.kind](order, reporter.update)
        return replace(done, ended=_end_state(done))
    except Interrupted as error:
        if order.kind == "compare":
            hint = f"go on with it with the tool compare: resume={error.where}"
            return WorkLine(ended="cancelled", error=sanitize_text(str(error)), hint=sanitize_text(hint))
        run = run_with_requests(tunesmith.load_run(error.where)) if error.where else None
        hint = "go on with it with the tool resume"
        return WorkLine(ended="cancelled", run=run, error=sanitize_text(str(error)), hint=hint)
    except KeyboardInterrupt:
        return WorkLine(ended="cancelled", error="interrupted", hint="call the tool again")
    except TunesmithError as error:
        return WorkLine(ended="failed", error=sanitize_text(str(error)), hint=sanitize_text(error.hint or ""))
    except MemoryError:
        return WorkLine(ended="failed", error="this machine ran out of memory", hint="choose smaller sizes")
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return WorkLine(ended="failed", error=sanitize_text(f"{name}{error.strerror or error}"))
    except Exception as error:
        return WorkLine(ended="failed", error=sanitize_text(f"a bug in Tunesmith: {bug_text(error)}"))


def _end_state(done: WorkLine) -> str:
    if done.compared is not None and done.compared.troubles:
        return "waiting" if done.compared.waiting else "stopped"
    return done.run.state if done.run is not None else "finished"


def _stop_when_closed(source: BinaryIO) -> None:
    """Interrupts the work when the input ends."""
    main = threading.main_thread().ident

    def watch() -> None:
        while source.read(1024):
            pass
        if main is not None:
            signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()


def run_job_worker() -> None:
    # What anybody else prints in this process goes where errors go.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    end_when_asked()
    source = os.fdopen(os.dup(0), "rb", buffering=0)
    first = b""
    while not first.endswith(b"\n"):
        if not (piece := source.read(1)):
            return
        first += piece
    reporter = Reporter(out)
    try:
        _stop_when_closed(source)
        done = execute_order(decode_json(first, WorkOrder), reporter)
        reporter.say(done)
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_code)


PATIENCE = 20.0  # seconds that work which was asked to end may take to clean up
_SAID = 12  # lines of progress that are kept
_KEPT = 64  # jobs that have ended


@dataclass
class Job:
    """One piece of work. Its process is told to end by closing its input."""

    handle: str
    order: WorkOrder
    process: subprocess.Popen[bytes]
    begun: float = field(default_factory=time.monotonic)
    said: deque[str] = field(default_factory=lambda: deque(maxlen=_SAID))
    lines: int = 0
    last: WorkLine = field(default_factory=WorkLine)  # the newest with figures
    ended: WorkLine | None = None
    seconds: float = 0.0
    is_stopped: bool = False

    @property
    def run(self) -> str:
        """The folder of its run, where it has one."""
        return self.order.out or "" if self.order.kind in ("tune", "compare") else self.order.target

    def listen(self) -> None:
        """To the end of its process; in a thread of its own."""
        assert self.process.stdout is not None
        for data in self.process.stdout:
            try:
                line = decode_json(data, WorkLine, "line of a worker")
            except Malformed:
                continue
            if line.ended:
                self._end(line)
                break
            self.last = line if line.evaluations or line.best is not None else self.last
            if line.text:
                self.said.append(line.text)
            self.lines += 1
        self.process.stdout.close()
        self.process.wait()
        self._close_input()
        if self.ended is None:
            died = f"the process of this work ended with {self.process.returncode} before it could say why"
            state = "cancelled" if self.is_stopped else "failed"
            self._end(WorkLine(ended=state, error=died, hint="go on with its run with the tool resume"))

    def _end(self, line: WorkLine) -> None:
        self.seconds = time.monotonic() - self.begun
        self.ended = line

    def stop(self) -> None:
        """As Ctrl-C would: a run keeps all that was measured and can be resumed."""
        self.is_stopped = True
        self._close_input()

    def _close_input(self) -> None:
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()

    def answer(self) -> JobAnswer:
        ended = self.ended or WorkLine()
        return JobAnswer(
            self.handle,
            self.order.kind,
            ended.ended or "running",
            round(self.seconds if self.ended else time.monotonic() - self.begun, 1),
            self.last.evaluations,
            self.last.best,
            tuple(self.said),
            ended.run,
            ended.checked,
            ended.profile,
            ended.error,
            ended.hint,
            ended.compared,
        )


def _empty_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="tunesmith-mcp-", ignore_cleanup_errors=True)


@dataclass
class Jobs:
    """Those of one server. One has the device at a time: measured side by side they would disturb each
    other."""

    environment: Mapping[str, str] | None = None  # of their processes; None: ours
    program: tuple[str, ...] = ("-m", "tunesmith.plugins.mcp.jobs")
    _jobs: dict[str, Job] = field(default_factory=dict, init=False)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1), init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    # Its processes are nowhere where somebody's settings or modules lie.
    _nowhere: tempfile.TemporaryDirectory[str] = field(default_factory=_empty_folder, init=False)

    @property
    def nowhere(self) -> str:
        return self._nowhere.name

    def start(self, order: WorkOrder) -> Job:
        with self._lock:
            for other in self._jobs.values():
                if other.ended is None:
                    fault = f"one piece of work has the device at a time, and {other.handle} is at work"
                    raise BadInput(fault, hint=f"wait for it: wait {other.handle}; or end it: cancel")
            process = subprocess.Popen(
                [sys.executable, "-P", *self.program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=self.nowhere,
                env=self.environment,
                start_new_session=True,
            )
            job = Job(f"{order.kind}-{next(self._numbers)}", order, process)
            assert process.stdin is not None
            process.stdin.write(encode_json(order) + b"\n")
            process.stdin.flush()
            self._jobs[job.handle] = job
            self._forget()
        threading.Thread(target=job.listen, daemon=True).start()
        return job

    def _forget(self) -> None:
        over = [handle for handle, job in self._jobs.items() if job.ended is not None]
        for handle in over[:-_KEPT]:
            del self._jobs[handle]

    def get(self, handle: str) -> Job:
        if handle not in self._jobs:
            known = ", ".join(self._jobs) or "none"
            hint = "look at a run by its folder: status with run; an unfinished one goes on with resume"
            fault = f"a handle is what tune and its like return; got {handle!r}, known: {known}"
            raise BadInput(fault, hint=hint)
        return self._jobs[handle]

    def of_run(self, folder: Path) -> Job | None:
        """The newest that is at work in this run."""
        own = [job for job in self._jobs.values() if job.ended is None and job.run == str(folder)]
        return own[-1] if own else None

    def close(self) -> None:
        """End all that is at work, and let it clean up."""
        at_work = [job for job in self._jobs.values() if job.ended is None]
        for job in at_work:
            job.stop()
        until = time.monotonic() + PATIENCE
        for job in at_work:
            try:
                job.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                job.process.terminate()
        self._nowhere.cleanup()


if __name__ == "__main__":
    run_job_worker()
