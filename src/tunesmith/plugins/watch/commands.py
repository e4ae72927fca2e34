"""The command `watch`: runs in a browser, live."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.base.errors import BadInput
from tunesmith.cli import console

INSTALL = "pip install 'tunesmith[watch]'"


def watch(
    run: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="A run or a comparison; by default all runs here.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of this machine; 0: any that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--open", help="Open the address in a browser.")] = False,
    as_json: console.AsJson = False,
) -> None:
    """Follow runs in a browser, live: what the device does, and buttons to stop, finish or give a hint."""
    try:
        from tunesmith.plugins.watch import server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise BadInput(f"there is no {error.name} here, which serves the pages", hint=INSTALL) from error
    from tunesmith.run.config import resolve_config

    def told(address: str) -> None:
        console.print_result(as_json, {"address": address}, [address])
        console.print_note("who has this address may stop the runs: keep it to yourself. Ctrl-C ends it")
        if browser:
            server.open_browser(address)

    server.watch_runs(Path(resolve_config({}).runs), run, port, told)
