"""The command that compares strategies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.cli_options import Backend, DeviceName, Record, Wait
from tunesmith.console import AsJson, handled, progress, resolved, show_comparison
from tunesmith.core.errors import BadInput


def compare(
    problem: Annotated[
        list[Path] | None, typer.Argument(metavar="PROBLEM...", help="Problem files, or their folders.")
    ] = None,
    strategies: Annotated[
        str | None,
        typer.Option(help="Arms, separated by commas: template, rewrite, rewrite-linear, single, expert."),
    ] = None,
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
    prompts: Annotated[str | None, typer.Option(help="Folder with prompts in place of ours.")] = None,
    record: Record = None,
    as_json: AsJson = False,
) -> None:
    """Compare strategies on the same problems with the same budget, repeatedly."""
    with handled(as_json):
        from tunesmith import comparison

        fixed: dict[str, object] = {"model": model, "evals": evals, "time": time, "rounds": rounds}
        fixed |= {"tokens": tokens, "money": money, "seed": seed, "prompts": prompts}
        fixed |= {"backend": backend, "device": device}
        planned: dict[str, object] = {"PROBLEM": problem or None, "--strategies": strategies}
        planned |= {"--repeats": repeats, "--out": out}
        planned |= {f"--{name}": value for name, value in fixed.items()}
        given = [name for name, value in planned.items() if value is not None]
        config = resolved(**fixed, wait=wait, record=record)
        if resume is not None and given:
            raise BadInput(
                f"--resume goes on with a comparison as it was planned, so {given[0]} cannot be given",
                hint=comparison.go_on_command(resume, config),
            )
        if resume is None and not problem:
            go_on = comparison.go_on_command(Path("DIR"), config)
            hint = f"tunesmith compare PROBLEM..., or {go_on}"
            raise BadInput("no PROBLEM is named", hint=hint)
        with progress(as_json) as listener:
            if resume is not None:
                found = comparison.resume(resume, config, listener)
            else:
                arms = strategies if strategies is not None else comparison.USUAL
                found = comparison.start(problem or [], arms, repeats or 3, config, out, listener)
        show_comparison(found, as_json)
