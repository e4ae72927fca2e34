"""The command `export`: what a run delivered, into a program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tunesmith
from tunesmith.cli import console

TARGETS = "torch, cpp, cubin, cupy, cuda.core, opencl, sglang, vllm, patch, kernel-tuner"


def export(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="The run; by default the newest. Several: one for each device."),
    ] = None,
    to: Annotated[str, typer.Option("--to", help=f"One of {TARGETS}.")] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder that is empty or new.")] = None,
    as_json: console.AsJson = False,
) -> None:
    """Write what a run delivered in the form that a program takes."""
    found = tunesmith.export(runs or None, to=to, out=out)
    if as_json:
        console.print_encoded(found)
        return
    lines = [f"exported         {found.problem} for {found.target}, tuned on {', '.join(found.devices)}"]
    lines += [found.delivered.replace(": ", "        ", 1)]
    lines += [f"not delivered    {why}" for why in found.left_out]
    lines += [f"note             {note}" for note in found.notes]
    lines += [f"folder           {found.folder}, {len(found.files)} files"]
    start = next((name for name in ("README.md", "python/README.md", "tune.py") if name in found.files), "")
    lines += [f"start with       {found.folder}/{start}"] if start else []
    console.show_lines(lines)
