"""What the command `fleet` does and shows; a run loads none of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tunesmith.cli import console
from tunesmith.errors import BadInput
from tunesmith.text import counted

if TYPE_CHECKING:
    from tunesmith.session.fleet.fleets import FleetRun


def run(target: Path, out: Path | None, as_json: bool) -> None:
    """Start or go on, and show what it has come to."""
    from tunesmith.session.fleet.fleets import run_fleet

    with console.progress(as_json) as listener:
        found = run_fleet(target, out, listener)
    show_fleet(found, as_json)


def stop(target: Path, out: Path | None, as_json: bool) -> None:
    if out is not None:
        raise BadInput("--stop takes a fleet that is there, which has its folder", hint="leave out --out")
    from tunesmith.session.fleet.fleets import stop_fleet

    is_led, cells = stop_fleet(target)
    words = f"asked to stop: {counted(cells, 'cell')} at work"
    nobody = "nobody is at work in this fleet"
    lines = [words if is_led or cells else nobody]
    console.say(as_json, {"folder": str(target), "led": is_led, "at_work": cells}, lines)


def show_fleet(found: FleetRun, as_json: bool) -> None:
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
