"""The commands that make runs and tell of them: tune, retune, resume, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.cli_options import (
    Backend,
    Cache,
    Counters,
    DeviceName,
    Evals,
    Out,
    ProblemFile,
    Prune,
    Record,
    RunFolder,
    SearchName,
    Seconds,
    Seed,
    Steer,
    TemplateFile,
    UseLibrary,
    UsePriors,
    Wait,
)
from tunesmith.console import (
    AsJson,
    handled,
    print_line,
    progress,
    resolved,
    show_report,
    show_result,
    show_several,
)
from tunesmith.core.errors import BadInput


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
    model: Annotated[
        str | None,
        typer.Option(
            help="Who plays the roles: openai:NAME[@URL], anthropic:NAME, mailbox[:DIR], "
            "recorded:DIR or expert; or planner=…,author=…."
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(help="template (searched), rewrite (kernels by roles) or single (one conversation)."),
    ] = None,
    linear: Annotated[
        bool | None,
        typer.Option("--linear/--no-linear", help="With rewrite: go on from the last kernel, not the best."),
    ] = None,
    wait: Wait = None,
    prompts: Annotated[str | None, typer.Option(help="Folder with prompts in place of ours.")] = None,
    record: Record = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Refactorings at most.")] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="That models may send and receive.")] = None,
    money: Annotated[float | None, typer.Option(min=0, help="Dollars that models may cost.")] = None,
    library: UseLibrary = None,
    from_library: Annotated[
        bool, typer.Option("--from-library", help="Begin from the template your library has of this kernel.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make templates of the kernel, search them on the device and deliver the verified winners."""
    with handled(as_json):
        from tunesmith import runs
        from tunesmith.problems import load_problem

        if prior_run and prior is False:
            raise BadInput(
                f"--no-prior ignores earlier runs, and --prior-run {prior_run[0]} names one to begin from",
                hint="leave out one of the two",
            )
        config = resolved(
            backend=backend,
            device=device,
            search=search,
            evals=evals,
            time=time,
            seed=seed,
            cache=cache,
            prune=prune,
            prior=prior,
            steer=steer,
            counters=counters,
            model=model,
            strategy=strategy,
            linear=linear,
            wait=wait,
            prompts=prompts,
            record=record,
            rounds=rounds,
            tokens=tokens,
            money=money,
            library=library,
        )
        loaded = load_problem(problem)
        if template is None and not from_library and not as_json:
            from tunesmith import retuning

            for line in retuning.offers(loaded[0], problem, config):
                print_line(line, stderr=True)
        with progress(as_json) as listener:
            finished = runs.start(*loaded, template, config, out, listener, prior_run or (), from_library)
        show_result(finished, as_json)


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
        from tunesmith import retuning

        config = resolved(
            backend=backend,
            device=device,
            search=search,
            evals=evals,
            time=time,
            seed=seed,
            cache=cache,
            prune=prune,
            prior=prior,
            steer=steer,
            counters=counters,
            library=library,
            model="",
        )
        with progress(as_json) as listener:
            finished = retuning.retune(
                target, config, listener, problem=problem, workloads=workloads, out=out
            )
        show_result(finished, as_json)


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
        from tunesmith import runs

        config = resolved(wait=wait, record=record)
        if not run or len(run) == 1:
            with progress(as_json) as listener:
                finished = runs.resume(run[0] if run else None, config, listener)
            show_result(finished, as_json)
            return
        with progress(as_json) as listener:
            ended = [(folder, runs.resume_one(folder, config, listener)) for folder in run]
        show_several(ended, as_json)


def report(
    run: RunFolder = None,
    format_: Annotated[str, typer.Option("--format", help="text, md or json.")] = "text",
    as_json: AsJson = False,
) -> None:
    """Show the report of a run, finished or not."""
    with handled(as_json):
        from tunesmith import runs

        if format_ not in ("text", "md", "json"):
            raise BadInput(f"unknown format {format_!r}; known are text, md, json", hint="try --format text")
        show_report(runs.report(run, resolved()), "json" if as_json else format_)
