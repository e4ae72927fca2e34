"""Options and arguments that several commands have, and what a shell may complete them with.

A command takes a group of options as `**named: Unpack[Group]`; None says that one was not given.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypedDict

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


def _switch(name: str, text: str) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(f"--{name}/--no-{name}", help=text)
    return found


_SEARCHERS, _STRATEGIES = (
    _names("tunesmith.search", "SEARCHERS"),
    _names("tunesmith.run.budget", "STRATEGIES"),
)
_WHO = (
    "Who plays the roles: openai:NAME[@URL], anthropic:NAME, mailbox[:DIR], recorded:DIR or expert; "
    "or planner=…,author=…."
)
_STRATEGY = "template (searched), rewrite (kernels by roles) or single (one conversation)."
_ARMS = "Arms, separated by commas: template, rewrite, rewrite-linear, single, expert."

Backend = Annotated[
    str | None,
    typer.Option(
        help="cuda, opencl, fake or replay:FILE; by default the language's own.",
        autocompletion=_names("tunesmith.backends", "BACKENDS"),
    ),
]
DeviceName = Annotated[str | None, typer.Option("--device", help="Id or part of the name; see `devices`.")]
OneTemplate = Annotated[Path | None, typer.Option("--template", help="A template of the kernel.")]
ProblemFile = Annotated[
    Path, typer.Argument(metavar="PROBLEM", help="problem.toml, or the folder it lies in.")
]
Wait = Annotated[bool | None, _switch("wait", "For replies to a mailbox; else stop, exit 4.")]
Prompts = Annotated[str | None, typer.Option(help="Folder with prompts in place of ours.")]
Record = Annotated[str | None, typer.Option(help="Folder to keep what models reply.")]
Seed = Annotated[int | None, typer.Option(min=0, help="All randomness derives from it; 0 by default.")]


class PlaceOptions(TypedDict):
    backend: Backend
    device: DeviceName


class SearchOptions(PlaceOptions):
    search: Annotated[
        str | None,
        typer.Option(help="default, exhaustive, random, evolution or tpe.", autocompletion=_SEARCHERS),
    ]
    evals: Annotated[int | None, typer.Option(min=1, help="Configurations to try at most.")]
    time: Annotated[float | None, typer.Option(min=0, help="Seconds to search at most.")]
    seed: Seed
    out: Annotated[Path | None, typer.Option(help="The run's folder.")]
    cache: Annotated[bool | None, _switch("cache", "Use timings of earlier runs.")]
    prune: Annotated[bool | None, _switch("prune", "Leave out what its build condemns.")]
    steer: Annotated[bool | None, _switch("steer", "Look first where the diagnosis points.")]
    counters: Annotated[bool | None, _switch("counters", "Diagnose with hardware counters: takes seconds.")]
    prior: Annotated[bool | None, _switch("prior", "Begin from what earlier runs found.")]
    library: Annotated[bool | None, _switch("library", "Keep winning templates in your library.")]


class TuneOptions(SearchOptions):
    """Beside those of a search: who writes what is searched."""

    model: Annotated[str | None, typer.Option("--model", help=_WHO)]
    strategy: Annotated[str | None, typer.Option(help=_STRATEGY, autocompletion=_STRATEGIES)]
    linear: Annotated[
        bool | None, _switch("linear", "With rewrite: go on from the last kernel, not the best.")
    ]
    wait: Wait
    prompts: Prompts
    record: Record
    rounds: Annotated[int | None, typer.Option(min=1, help="Refactorings at most.")]
    tokens: Annotated[int | None, typer.Option(min=1, help="That models may send and receive.")]
    money: Annotated[float | None, typer.Option(min=0, help="Dollars that models may cost.")]


class PlanOptions(TypedDict):
    """What a comparison is planned by: none of them can be given when one goes on."""

    strategies: Annotated[str | None, typer.Option(help=_ARMS, autocompletion=_arms)]
    repeats: Annotated[int | None, typer.Option(min=1, help="Of each arm; 3 by default.")]
    out: Annotated[Path | None, typer.Option(help="The comparison's folder.")]
    model: Annotated[str | None, typer.Option(help="As for `tune`; a folder has one below it for each run.")]
    evals: Annotated[int | None, typer.Option(min=1, help="Of each run; 400 by default.")]
    time: Annotated[float | None, typer.Option(min=0, help="Seconds of search, of each run.")]
    rounds: Annotated[int | None, typer.Option(min=1, help="Of each run; 5 by default.")]
    tokens: Annotated[int | None, typer.Option(min=1, help="Of each run.")]
    money: Annotated[float | None, typer.Option(min=0, help="Dollars, of each run.")]
    seed: Annotated[int | None, typer.Option(min=0, help="Of the first repeat; 0 by default.")]
    prompts: Prompts
    backend: Backend
    device: DeviceName
