"""The command `fleet`, and what it shows; a run loads none of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tunesmith.cli import console
from tunesmith.errors import BadInput
from tunesmith.text import counted

if TYPE_CHECKING:
    from tunesmith.session.fleet.fleets import FleetRun


def _run(target: Path, out: Path | None, as_json: bool) -> None:
    """Start or go on, and show what it has come to."""
    from tunesmith.session.fleet.fleets import run_fleet

    with console.progress(as_json) as listener:
        found = run_fleet(target, out, listener)
    _show(found, as_json)


def _stop(target: Path, out: Path | None, as_json: bool) -> None:
    if out is not None:
        raise BadInput("--stop takes a fleet that is there, which has its folder", hint="leave out --out")
    from tunesmith.session.fleet.fleets import stop_fleet

    is_led, cells = stop_fleet(target)
    words = f"asked to stop: {counted(cells, 'cell')} at work"
    nobody = "nobody is at work in this fleet"
    lines = [words if is_led or cells else nobody]
    console.say(as_json, {"folder": str(target), "led": is_led, "at_work": cells}, lines)


def _show(found: FleetRun, as_json: bool) -> None:
    from tunesmith.deliver import fleet_page

    if as_json:
        console.print_encoded({"folder": str(found.folder), "exit": found.exit_code, "fleet": found.result})
    else:
        grid = fleet_page.fleet_grid(found.result)
        console.print_table(grid.head, [[str(value) for value in row] for row in grid.rows])
        console.show_lines([f"{name:<16} {text}" for name, text in fleet_page.total_lines(found.result)])
        console.print_line(f"{'page':<16} {found.folder / fleet_page.HTML}")
    if found.exit_code:
        console.print_line(f"hint: go on with: {found.go_on}", stderr=True)
        raise typer.Exit(found.exit_code)


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
    as_json: console.AsJson = False,
) -> None:
    """Tune many problems on many devices under one budget of device hours; the same command goes on."""
    (_stop if stop else _run)(target, out, as_json)
