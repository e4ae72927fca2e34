"""Whether steering pays: evaluations until a search is within 3 % of the best, with it and without.

    python -m benchmarks.steering RUNS_FOLDER [--seeds 30] [--search default] [--misled] [--out DIR]

RUNS_FOLDER holds, for examples of examples/cuda, NAME/journal.jsonl of a run with `--search exhaustive
--no-prune`, and NAME.profile.json. Loop and searcher are the real ones, times are looked up, and both arms
have the same seeds. DIR keeps what was counted, one line of JSON for each search; what is there already is
not run again. `--misled` counts as well what it costs if every condition of a template says the opposite.
The page is docs/benchmarks/steering.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.replayed import MemoryJournal, NoTexts, Profiles, Reached, RecordedLab, Run, Silence, read_run
from benchmarks.steering_page import page
from tunesmith import backends
from tunesmith.backends.port import NoCounting
from tunesmith.lab.profile import Profiler
from tunesmith.problem.template import configs_of
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Settings, Steered
from tunesmith.run.loop import Loop
from tunesmith.run.ports import RunLog
from tunesmith.run.stages import World
from tunesmith.run.state import fold_records
from tunesmith.run.talk import ModelDialogue
from tunesmith.search import load_searcher
from tunesmith.session import place
from tunesmith.session.place import temporary_scratch
from tunesmith.session.roles import planner_and_author
from tunesmith.session.runs import DEFAULT_EVALS, UNLIMITED
from tunesmith.space.expr import parse_expr

WITHIN = -math.log(1 - 0.03)
MISLED = ", every answer turned round"


@dataclass(frozen=True)
class Job:
    folder: Path
    search: str
    seed: int
    steer: bool
    misled: bool = False

    @property
    def key(self) -> tuple[str, str, int, bool]:
        return self.folder.name, self.label, self.seed, self.steer

    @property
    def label(self) -> str:
        return f"{self.search}{MISLED if self.misled else ''}"


@cache
def recorded(folder: Path) -> tuple[Run, Profiles]:
    return read_run(folder), {}


@contextmanager
def profiling(run: Run) -> Iterator[Profiler]:
    with temporary_scratch() as scratch:
        builders = place.make_builders(place.WorkerSite("cuda", scratch), run.device, 1, "nvrtc")
        try:
            reader = backends.instructions_reader("cuda")
            counting = NoCounting("a search does without")
            yield Profiler(run.problem, run.device, builders, None, counting, reader, ceilings=run.ceilings)
        finally:
            builders.close()


def work(job: Job) -> dict[str, Any]:
    run, known = recorded(job.folder)
    if job.misled:
        wrong = tuple((remedy, parse_expr(f"not ({expr.text})")) for remedy, expr in run.template.answers)
        run = replace(run, template=replace(run.template, answers=wrong))
    configs = configs_of(run.problem, run.template, run.device)
    evals = DEFAULT_EVALS if len(configs) > UNLIMITED else None
    recorded_with = run.state.settings
    settings = Settings(job.search, evals, seed=job.seed, ahead=recorded_with.ahead, steer=job.steer)
    with profiling(run) as profiler:
        lab = RecordedLab(run, profiler, known, WITHIN)
        journal = MemoryJournal(run, settings)
        templates = Templates(run.problem, run.device, run.template, NoTexts())
        talk = ModelDialogue(run.problem, templates, *planner_and_author(run.problem, templates))
        chosen = load_searcher(settings.search)
        world = World(run.problem, templates, lab, chosen, talk, heeds_words=False)
        loop = Loop(world, RunLog(journal, fold_records(journal.read()), Silence()))
        reached = ended(loop)
    moves = [r.event for r in journal.records if isinstance(r.event, Steered)]
    return {
        "example": run.name,
        "search": job.label,
        "seed": job.seed,
        "steer": job.steer,
        "evaluations": len(lab.asked),
        "reached": reached,
        "configurations": len(configs),
        "moves": [{"focus": str(m.focus) if m.focus else None, "reason": m.reason} for m in moves],
    }


def ended(loop: Loop) -> bool:
    try:
        loop.run()
    except Reached as why:
        return not why.args
    return False


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=Path, metavar="RUNS_FOLDER")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--search", nargs="+", default=["default"])
    parser.add_argument("--misled", action="store_true", help="also with every answer turned round")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="where what was counted is kept; RUNS_FOLDER/steering")
    parser.add_argument("--docs", type=Path, default=Path("docs/benchmarks"))
    given = parser.parse_args(arguments)
    out = given.out or given.runs / "steering"
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "searches.jsonl"
    rows = [json.loads(line) for line in kept.read_text("utf-8").splitlines()] if kept.exists() else []
    done = {(r["example"], r["search"], r["seed"], r["steer"]) for r in rows}
    folders = sorted(path.parent for path in given.runs.glob("*/journal.jsonl"))
    jobs = [
        job
        for misled in ((False, True) if given.misled else (False,))
        for search in given.search
        for seed in range(given.seeds)
        for folder in folders
        for steer in (False, True)
        if (job := Job(folder, search, seed, steer, misled)).key not in done
    ]
    with ProcessPoolExecutor(given.jobs, initializer=threadpool_limits, initargs=(1,)) as pool:
        for number, future in enumerate(as_completed([pool.submit(work, job) for job in jobs]), 1):
            rows.append(future.result())
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            sys.stderr.write(f"\r{number} of {len(jobs)} searches")
    device = read_run(folders[0]).device.name
    searches = " ".join(given.search)
    command = f"python -m benchmarks.steering RUNS_FOLDER --seeds {given.seeds} --search {searches}"
    command += " --misled" if given.misled else ""
    built = " ".join((backends.list_compilers("cuda") or (("an unknown compiler", ""),))[0])
    said = out / "commands.txt"  # of every call that the searches come from
    commands = said.read_text("utf-8").splitlines() if said.exists() else []
    commands = list(dict.fromkeys([*commands, command]))
    said.write_text("\n".join(commands) + "\n", encoding="utf-8")
    given.docs.mkdir(parents=True, exist_ok=True)
    text = page(rows, device, f"{datetime.date.today().isoformat()}, profiles built with {built}", commands)
    (given.docs / "steering.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
