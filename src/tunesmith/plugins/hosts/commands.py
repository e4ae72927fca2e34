"""The command `worker`, the other end of `--workers`: hidden, for nobody types it."""

from __future__ import annotations

import typer

from tunesmith.cli import console

worker_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@worker_app.command(hidden=True)
def worker() -> None:
    """The other end of a command of `--workers`: speaks on its standard streams with a lab elsewhere."""
    from tunesmith.plugins.hosts import transport

    console.print_note(f"tunesmith worker: {transport.serve_standard_streams()}")
