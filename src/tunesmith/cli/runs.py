"""The commands that make runs and tell of them: tune, retune, resume, report, compare, diff."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.cli.console import (
    AsJson,
    handled,
    print_encoded,
    print_line,
    print_table,
    progress,
    show_comparison,
    show_lines,
    show_report,
    show_result,
    show_several,
)
from tunesmith.cli.options import (
    Arms,
    Backend,
    Cache,
    Counters,
    DeviceName,
    Evals,
    ModelName,
    Money,
    Out,
    ProblemFile,
    Prompts,
    Prune,
    Record,
    Rounds,
    RunFolder,
    SearchName,
    Seconds,
    Seed,
    Steer,
    StrategyName,
    TemplateFile,
    Tokens,
    UseLibrary,
    UsePriors,
    Wait,
)
from tunesmith.errors import BadInput

FORMS = ("text", "md", "json")
SLOWER = 6  # exit code of `diff --fail-below`


def tune(
    problem: ProblemFile,
    template: TemplateFile = None,
    backend: Backend = None,
    device: DeviceName = None,
    search: SearchName = None,
    evals: Evals = None,
    time: Seconds = None,
    seed: Seed = None,
    out: Out = None,
    cache: Cache = None,
    prune: Prune = None,
    steer: Steer = None,
    counters: Counters = None,
    prior: UsePriors = None,
    prior_run: Annotated[
        list[Path] | None, typer.Option(help="Begin from this run; several may be named.")
    ] = None,
    model: ModelName = None,
    strategy: StrategyName = None,
    linear: Annotated[
        bool | None,
        typer.Option("--linear/--no-linear", help="With rewrite: go on from the last kernel, not the best."),
    ] = None,
    wait: Wait = None,
    prompts: Prompts = None,
    record: Record = None,
    rounds: Rounds = None,
    tokens: Tokens = None,
    money: Money = None,
    library: UseLibrary = None,
    from_library: Annotated[
        bool, typer.Option("--from-library", help="Begin from the template your library has of this kernel.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make templates of the kernel, search them on the device and deliver the verified winners."""
    with handled(as_json):
        from tunesmith import api

        searching = api.OtherSettings(backend=backend, search=search, seed=seed, cache=cache, prune=prune)
        steering = api.OtherSettings(steer=steer, counters=counters, prior=prior, library=library)
        talking = api.OtherSettings(
            strategy=strategy, linear=linear, prompts=prompts, wait=wait, record=record
        )
        with progress(as_json) as listener:
            run = api.tune(
                problem,
                template=template,
                device=device,
                budget=api.Budget(evals, time, rounds, tokens, money),
                model=model,
                listener=listener,
                out=out,
                prior_runs=prior_run or (),
                from_library=from_library,
                **(searching | steering | talking),
            )
        show_result(run, as_json)


def retune(
    target: Annotated[
        str,
        typer.Argument(metavar="RUN|TEMPLATE", help="A run's folder, a template file, or a library's name."),
    ],
    problem: Annotated[
        Path | None,
        typer.Option(help="The template's problem; by default as the run or the library keeps it."),
    ] = None,
    workloads: Annotated[
        Path | None, typer.Option(help="TOML with [workloads.NAME] tables, in place of the problem's.")
    ] = None,
    backend: Backend = None,
    device: DeviceName = None,
    search: SearchName = None,
    evals: Evals = None,
    time: Seconds = None,
    seed: Seed = None,
    out: Out = None,
    cache: Cache = None,
    prune: Prune = None,
    steer: Steer = None,
    counters: Counters = None,
    prior: UsePriors = None,
    library: UseLibrary = None,
    as_json: AsJson = False,
) -> None:
    """Search a kept template again, with no model: another device, another driver, other sizes."""
    with handled(as_json):
        from tunesmith import api

        searching = api.OtherSettings(backend=backend, search=search, seed=seed, cache=cache, prune=prune)
        steering = api.OtherSettings(steer=steer, counters=counters, prior=prior, library=library)
        with progress(as_json) as listener:
            run = api.retune(
                target,
                problem=problem,
                workloads=workloads,
                device=device,
                budget=api.Budget(evals, time),
                listener=listener,
                out=out,
                **(searching | steering),
            )
        show_result(run, as_json)


def resume(
    run: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN...", help="The runs; by default the newest.")
    ] = None,
    wait: Wait = None,
    record: Record = None,
    as_json: AsJson = False,
) -> None:
    """Go on with runs that were interrupted, exactly where they were."""
    with handled(as_json):
        from tunesmith import api

        if run is None or len(run) < 2:
            with progress(as_json) as listener:
                one = api.resume(run[0] if run else None, listener=listener, wait=wait, record=record)
            show_result(one, as_json)
            return
        with progress(as_json) as listener:
            ended = api.resume_all(run, listener=listener, wait=wait, record=record)
        show_several(list(zip(run, ended, strict=True)), as_json)


def report(
    run: RunFolder = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            help="text, md or json.",
            autocompletion=lambda incomplete: [f for f in FORMS if f.startswith(incomplete)],
        ),
    ] = "text",
    as_json: AsJson = False,
) -> None:
    """Show the report of a run, finished or not."""
    with handled(as_json):
        from tunesmith import api

        if format_ not in FORMS:
            raise BadInput(f"unknown format {format_!r}; known are text, md, json", hint="try --format text")
        show_report(api.load_run(run), "json" if as_json else format_)


def diff(
    before: Annotated[Path, typer.Argument(metavar="RUN", help="The run to hold the other against.")],
    after: Annotated[Path, typer.Argument(metavar="RUN", help="The newer run; also a report.json.")],
    fail_below: Annotated[
        float | None,
        typer.Option(min=0, help="Exit 6 where a workload's ratio is below this, e.g. 0.98."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare what two runs of a problem deliver, workload by workload; for CI."""
    with handled(as_json):
        from tunesmith import api
        from tunesmith.cli.tables import difference_lines, difference_table

        found = api.diff(before, after)
        slower = found.below(fail_below) if fail_below is not None else ()
        if as_json:
            print_encoded({"difference": found, "below": [w.name for w in slower], "fail_below": fail_below})
        else:
            print_table(difference_table(found))
            show_lines(difference_lines(found))
        if slower:
            names = ", ".join(f"{w.name} {w.ratio:.3f}×" for w in slower)
            print_line(f"error: below {fail_below}×: {names}", stderr=True)
            raise typer.Exit(SLOWER)


def compare(
    problem: Annotated[
        list[Path] | None, typer.Argument(metavar="PROBLEM...", help="Problem files, or their folders.")
    ] = None,
    strategies: Arms = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Of each arm; 3 by default.")] = None,
    model: Annotated[
        str | None, typer.Option(help="As for `tune`; a folder has one below it for each run.")
    ] = None,
    evals: Annotated[int | None, typer.Option(min=1, help="Of each run; 400 by default.")] = None,
    time: Annotated[float | None, typer.Option(min=0, help="Seconds of search, of each run.")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Of each run; 5 by default.")] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="Of each run.")] = None,
    money: Annotated[float | None, typer.Option(min=0, help="Dollars, of each run.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the first repeat; 0 by default.")] = None,
    backend: Backend = None,
    device: DeviceName = None,
    out: Annotated[Path | None, typer.Option(help="The comparison's folder.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the comparison in this folder.")] = None,
    wait: Wait = None,
    prompts: Prompts = None,
    record: Record = None,
    as_json: AsJson = False,
) -> None:
    """Compare strategies on the same problems with the same budget, repeatedly."""
    with handled(as_json):
        from tunesmith import api
        from tunesmith.session.comparison import resume_command

        waits = api.settings(wait=wait).wait
        planned: dict[str, object] = {"PROBLEM": problem or None, "--strategies": strategies}
        planned |= {
            "--repeats": repeats,
            "--out": out,
            "--model": model,
            "--evals": evals,
            "--time": time,
            "--rounds": rounds,
        }
        planned |= {"--tokens": tokens, "--money": money, "--seed": seed, "--prompts": prompts}
        planned |= {"--backend": backend, "--device": device}
        given = [name for name, value in planned.items() if value is not None]
        if resume is not None and given:
            raise BadInput(
                f"--resume goes on with a comparison as it was planned, so {given[0]} cannot be given",
                hint=resume_command(resume, waits),
            )
        if resume is None and not problem:
            go_on = resume_command(Path("DIR"), waits)
            hint = f"tunesmith compare PROBLEM..., or {go_on}"
            raise BadInput("no PROBLEM is named", hint=hint)
        with progress(as_json) as listener:
            if resume is not None:
                found = api.resume_comparison(resume, listener=listener, wait=wait, record=record)
            else:
                others = api.OtherSettings(
                    seed=seed, backend=backend, prompts=prompts, wait=wait, record=record
                )
                found = api.compare(
                    problem or [],
                    strategies=strategies,
                    repeats=repeats or 3,
                    device=device,
                    budget=api.Budget(evals, time, rounds, tokens, money),
                    model=model,
                    listener=listener,
                    out=out,
                    **others,
                )
        show_comparison(found, as_json)
