"""What the command `fleet` does and shows; a run loads none of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tunesmith.base.errors import BadInput
from tunesmith.base.text import format_count
from tunesmith.cli import console

if TYPE_CHECKING:
    from tunesmith.plugins.fleet.fleets import FleetRun


def run_fleet(target: Path, out: Path | None, ray: str | None, as_json: bool) -> None:
    """Start or go on, and show what it has come to."""
    from tunesmith.plugins.fleet import fleets

    with console.show_progress(as_json) as listener:
        fleet = fleets.run_fleet(target, out, listener, ray or "")
    show_fleet(fleet, as_json)


def stop_fleet(target: Path, out: Path | None, ray: str | None, as_json: bool) -> None:
    for name, value in (("--out", out), ("--ray", ray)):
        if value is not None:
            fault = "--stop takes a fleet that is there, which has its folder"
            raise BadInput(fault, hint=f"leave out {name}")
    from tunesmith.plugins.fleet import fleets

    has_head, cells = fleets.stop_fleet(target)
    words = f"asked to stop: {format_count(cells, 'cell')} at work"
    lines = [words if has_head or cells else "nobody is at work in this fleet"]
    console.print_result(as_json, {"folder": str(target), "led": has_head, "at_work": cells}, lines)


def show_fleet(fleet: FleetRun, as_json: bool) -> None:
    from tunesmith.plugins.fleet import record

    if as_json:
        console.print_encoded({"folder": str(fleet.folder), "exit": fleet.exit_code, "fleet": fleet.result})
    else:
        grid = record.fleet_grid(fleet.result)
        console.print_table(grid.head, [[str(value) for value in row] for row in grid.rows])
        console.show_lines([f"{name:<16} {text}" for name, text in record.total_lines(fleet.result)])
        console.print_line(f"{'page':<16} {fleet.folder / record.HTML}")
    if fleet.exit_code:
        console.print_line(f"hint: go on with: {fleet.go_on}", stderr=True)
        raise typer.Exit(fleet.exit_code)


@console.reads_problems
def fleet(
    target: Annotated[
        Path, typer.Argument(metavar="PLAN|DIR", help="The plan, a TOML file; or the folder of a fleet.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The fleet's folder; by default named by its plan.")
    ] = None,
    stop: Annotated[
        bool, typer.Option("--stop", help="Ask the fleet in DIR to stop after the batches under way.")
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option("--ray", metavar="ADDRESS", help="Run on a Ray cluster: HOST:PORT, auto or local."),
    ] = None,
    as_json: console.AsJson = False,
) -> None:
    """Tune many problems on many devices under one budget of device hours; the same command goes on."""
    (stop_fleet if stop else run_fleet)(target, out, ray, as_json)
