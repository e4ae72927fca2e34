"""The process that does one piece of long work for the server: it is told what on its first line, says how it
gets on in lines of JSON, and stops, as by Ctrl-C, when whoever started it closes its input or is gone."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import tunesmith
from tunesmith.cli.mcp.answers import (
    CheckAnswer,
    ComparedAnswer,
    ProfileAnswer,
    RunAnswer,
    check_answer,
    foreign,
    profile_answer,
    run_answer,
)
from tunesmith.cli.mcp.comparing import check_comparison, compared_answer
from tunesmith.cli.mcp.mailbox import check_run, open_requests
from tunesmith.errors import Interrupted, TunesmithError, bug_text
from tunesmith.problem.codec import decode, encode
from tunesmith.session.interrupts import end_when_asked
from tunesmith.session.problems import readable_folders

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
                self.out.write(encode(line) + b"\n")
                self.out.flush()
            except OSError as error:
                raise KeyboardInterrupt from error

    def update(self, update: tunesmith.ProgressUpdate) -> None:
        self.say(WorkLine(foreign(update.text), update.evaluations, update.best))


def check(order: WorkOrder, listener: Listener) -> WorkLine:
    done = tunesmith.check(
        order.target,
        template=order.template,
        device=order.device,
        seed=order.seed,
        sanitize=order.sanitize,
        listener=listener,
    )
    return WorkLine(checked=check_answer(done))


def tune(order: WorkOrder, listener: Listener) -> WorkLine:
    assert order.out is not None, "the server chooses the folder, so that it can name it"
    budget = tunesmith.Budget(evals=order.evals, seconds=order.seconds, rounds=order.rounds)
    run = tunesmith.tune(
        order.target,
        template=order.template,
        device=order.device,
        model=order.model or "",
        budget=budget,
        seed=order.seed,
        out=order.out,
        runs=str(Path(order.out).parent),
        wait=False,
        listener=listener,
    )
    return WorkLine(run=_answer(run))


def resume(order: WorkOrder, listener: Listener) -> WorkLine:
    model = check_run(Path(order.target), order.permitted)
    return WorkLine(run=_answer(tunesmith.resume(order.target, model=model, wait=False, listener=listener)))


def profile(order: WorkOrder, listener: Listener) -> WorkLine:
    page = tunesmith.profile(
        order.target,
        template=order.template,
        config=order.config,
        workloads=order.workloads,
        device=order.device,
        out=order.out,
        listener=listener,
    )
    return WorkLine(profile=profile_answer(page))


def compare(order: WorkOrder, listener: Listener) -> WorkLine:
    if not order.problems:
        model = check_comparison(Path(order.target), order.permitted)
        found = tunesmith.resume_comparison(order.target, model=model, wait=False, listener=listener)
    else:
        assert order.out is not None, "the server chooses the folder, so that it can name it"
        check_comparison(Path(order.out), order.permitted)  # the same one may have been begun there
        found = tunesmith.compare(
            list(order.problems),
            strategies=order.strategies,
            repeats=order.repeats,
            device=order.device,
            model=order.model or "",
            budget=tunesmith.Budget(evals=order.evals, seconds=order.seconds, rounds=order.rounds),
            seed=order.seed,
            out=order.out,
            wait=False,
            listener=listener,
        )
    return WorkLine(compared=compared_answer(found))


def _answer(run: tunesmith.Run) -> RunAnswer:
    return run_answer(run, [request.name for request in open_requests(run.folder)])


KINDS = {"check": check, "tune": tune, "resume": resume, "profile": profile, "compare": compare}


def work(order: WorkOrder, reporter: Reporter) -> WorkLine:
    """Errors are lines like any other; a traceback is for nobody."""
    try:
        with readable_folders(map(Path, order.folders), only=True):
            done = KINDS[order.kind](order, reporter.update)
        return replace(done, ended=_state(done))
    except Interrupted as error:
        if order.kind == "compare":
            hint = f"go on with it with the tool compare: resume={error.where}"
            return WorkLine(ended="cancelled", error=foreign(str(error)), hint=foreign(hint))
        run = _answer(tunesmith.load_run(error.where)) if error.where else None
        hint = "go on with it with the tool resume"
        return WorkLine(ended="cancelled", run=run, error=foreign(str(error)), hint=hint)
    except KeyboardInterrupt:
        return WorkLine(ended="cancelled", error="interrupted", hint="call the tool again")
    except TunesmithError as error:
        return WorkLine(ended="failed", error=foreign(str(error)), hint=foreign(error.hint or ""))
    except MemoryError:
        error_text, hint = "this machine ran out of memory", "choose smaller sizes"
        return WorkLine(ended="failed", error=error_text, hint=hint)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return WorkLine(ended="failed", error=foreign(f"{name}{error.strerror or error}"))
    except Exception as error:
        return WorkLine(ended="failed", error=foreign(f"a bug in Tunesmith: {bug_text(error)}"))


def _state(done: WorkLine) -> str:
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


def main() -> None:
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
        done = work(decode(first, WorkOrder), reporter)
        reporter.say(done)
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_code)


if __name__ == "__main__":
    main()
