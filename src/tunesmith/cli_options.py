"""Options and arguments that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Backend = Annotated[
    str | None, typer.Option(help="cuda, opencl, fake or replay:FILE; by default the language's own.")
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
Wait = Annotated[
    bool | None, typer.Option("--wait/--no-wait", help="For replies to a mailbox; else stop, exit 4.")
]
Record = Annotated[str | None, typer.Option(help="Folder to keep what models reply.")]
Seed = Annotated[int | None, typer.Option(min=0, help="All randomness derives from it; 0 by default.")]
SearchName = Annotated[str | None, typer.Option(help="default, exhaustive, random, evolution or tpe.")]
Evals = Annotated[int | None, typer.Option(min=1, help="Configurations to try at most.")]
Seconds = Annotated[float | None, typer.Option(min=0, help="Seconds to search at most.")]
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
