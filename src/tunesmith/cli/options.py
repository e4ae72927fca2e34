"""Options and arguments that several commands have, and what a shell may complete them with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer


def _names(module: str, constant: str, *more: str) -> Callable[[str], list[str]]:
    """Completes with the names in a constant of ours, which is loaded when a shell asks for them."""

    def complete(incomplete: str) -> list[str]:
        from importlib import import_module

        known = (*getattr(import_module(module), constant), *more)
        return [name for name in known if name.startswith(incomplete)]

    return complete


def _arms(incomplete: str) -> list[str]:
    """Of a list with commas the last one."""
    from tunesmith.deliver.comparing import ARMS

    head, comma, last = incomplete.rpartition(",")
    return [f"{head}{comma}{arm}" for arm in ARMS if arm.startswith(last)]


Backend = Annotated[
    str | None,
    typer.Option(
        help="cuda, opencl, fake or replay:FILE; by default the language's own.",
        autocompletion=_names("tunesmith.backends", "BACKENDS"),
    ),
]
DeviceName = Annotated[str | None, typer.Option("--device", help="Id or part of the name; see `devices`.")]
TemplateFile = Annotated[
    Path | None, typer.Option("--template", help="The template to search; by default the expert writes one.")
]
OneTemplate = Annotated[Path | None, typer.Option("--template", help="A template of the kernel.")]
ProblemFile = Annotated[
    Path, typer.Argument(metavar="PROBLEM", help="problem.toml, or the folder it lies in.")
]
RunFolder = Annotated[Path | None, typer.Argument(metavar="RUN", help="The run; by default the newest.")]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="Who plays the roles: openai:NAME[@URL], anthropic:NAME, mailbox[:DIR], "
        "recorded:DIR or expert; or planner=…,author=….",
    ),
]
Wait = Annotated[
    bool | None, typer.Option("--wait/--no-wait", help="For replies to a mailbox; else stop, exit 4.")
]
Prompts = Annotated[str | None, typer.Option(help="Folder with prompts in place of ours.")]
Record = Annotated[str | None, typer.Option(help="Folder to keep what models reply.")]
Seed = Annotated[int | None, typer.Option(min=0, help="All randomness derives from it; 0 by default.")]
SearchName = Annotated[
    str | None,
    typer.Option(
        help="default, exhaustive, random, evolution or tpe.",
        autocompletion=_names("tunesmith.search", "SEARCHERS"),
    ),
]
StrategyName = Annotated[
    str | None,
    typer.Option(
        help="template (searched), rewrite (kernels by roles) or single (one conversation).",
        autocompletion=_names("tunesmith.run.budget", "STRATEGIES"),
    ),
]
Arms = Annotated[
    str | None,
    typer.Option(
        help="Arms, separated by commas: template, rewrite, rewrite-linear, single, expert.",
        autocompletion=_arms,
    ),
]
Evals = Annotated[int | None, typer.Option(min=1, help="Configurations to try at most.")]
Seconds = Annotated[float | None, typer.Option(min=0, help="Seconds to search at most.")]
Rounds = Annotated[int | None, typer.Option(min=1, help="Refactorings at most.")]
Tokens = Annotated[int | None, typer.Option(min=1, help="That models may send and receive.")]
Money = Annotated[float | None, typer.Option(min=0, help="Dollars that models may cost.")]
Out = Annotated[Path | None, typer.Option(help="The run's folder.")]
Cache = Annotated[bool | None, typer.Option("--cache/--no-cache", help="Use timings of earlier runs.")]
Prune = Annotated[bool | None, typer.Option("--prune/--no-prune", help="Leave out what its build condemns.")]
Steer = Annotated[
    bool | None, typer.Option("--steer/--no-steer", help="Look first where the diagnosis points.")
]
Counters = Annotated[
    bool | None,
    typer.Option("--counters/--no-counters", help="Diagnose with hardware counters: takes seconds."),
]
UsePriors = Annotated[
    bool | None, typer.Option("--prior/--no-prior", help="Begin from what earlier runs found.")
]
UseLibrary = Annotated[
    bool | None, typer.Option("--library/--no-library", help="Keep winning templates in your library.")
]
