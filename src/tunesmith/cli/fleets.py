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


def run_fleet(target: Path, out: Path | None, ray: str | None, as_json: bool) -> None:
    """Start or go on, and show what it has come to."""
    from tunesmith.session.fleet import fleets

    with console.progress(as_json) as listener:
        fleet = fleets.run_fleet(target, out, listener, ray or "")
    show_fleet(fleet, as_json)


def stop_fleet(target: Path, out: Path | None, ray: str | None, as_json: bool) -> None:
    for name, value in (("--out", out), ("--ray", ray)):
        if value is not None:
            raise BadInput(
                "--stop takes a fleet that is there, which has its folder", hint=f"leave out {name}"
            )
    from tunesmith.session.fleet import fleets

    has_head, cells = fleets.stop_fleet(target)
    words = f"asked to stop: {counted(cells, 'cell')} at work"
    lines = [words if has_head or cells else "nobody is at work in this fleet"]
    console.say(as_json, {"folder": str(target), "led": has_head, "at_work": cells}, lines)


def show_fleet(fleet: FleetRun, as_json: bool) -> None:
    from tunesmith.deliver import fleet_page

    if as_json:
        console.print_encoded({"folder": str(fleet.folder), "exit": fleet.exit_code, "fleet": fleet.result})
    else:
        grid = fleet_page.fleet_grid(fleet.result)
        console.print_table(grid.head, [[str(value) for value in row] for row in grid.rows])
        console.show_lines([f"{name:<16} {text}" for name, text in fleet_page.total_lines(fleet.result)])
        console.print_line(f"{'page':<16} {fleet.folder / fleet_page.HTML}")
    if fleet.exit_code:
        console.print_line(f"hint: go on with: {fleet.go_on}", stderr=True)
        raise typer.Exit(fleet.exit_code)
