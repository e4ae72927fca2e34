"""What `tunesmith watch` serves, by what it is called with."""

from __future__ import annotations

import atexit
import contextlib
import os
import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path

from tunesmith.errors import BadInput
from tunesmith.run.store import FLEET, PLAN, RunFolder, begun
from tunesmith.session.watching.found_runs import RunsBelow
from tunesmith.text import shown

NICENESS = 10  # a run has the processor before those who watch it
INSTALL = "pip install 'tunesmith[watch]'"


def watch(root: Path, run: Path | None, port: int, told: Callable[[str], None]) -> None:
    """Serve what is below the runs folder until Ctrl-C; a run that lies elsewhere, alone."""
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    try:
        from tunesmith.session.watching.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise BadInput(f"there is no {error.name} here, which serves the pages", hint=INSTALL) from error
    runs, first = served(root, run)
    try:
        serve(runs, first, port, told)
    except KeyboardInterrupt:
        return  # how a server ends


def served(root: Path, run: Path | None) -> tuple[RunsBelow, str]:
    """The runs, and which of them to begin with; empty: the index."""
    if run is None:
        return RunsBelow(root.resolve()), ""
    path = run.resolve()
    has_several = _has_several(path) and not begun(path)
    if not has_several:
        RunFolder.open(path)  # a fault in words where it is none
    below = root.resolve()
    if path.is_relative_to(below) and path != below:
        name, only = path.relative_to(below).as_posix(), ""
    else:
        within = path.parent.name == "runs" and _has_several(path.parents[1])
        below = path.parents[2] if within else path.parent
        name = only = path.relative_to(below).as_posix()
    return RunsBelow(below, only), "" if has_several else name


def _has_several(folder: Path) -> bool:
    """A comparison's, or a fleet's."""
    return (folder / PLAN).is_file() or (folder / FLEET).is_file()


def open_browser(address: str) -> None:
    """By a file that only this user can read: what a process is called with all users can. Where there is no
    browser, the address is on the screen."""
    folder = tempfile.TemporaryDirectory(prefix="tunesmith-watch-")
    atexit.register(folder.cleanup)
    page = Path(folder.name) / "open.html"
    page.write_text(f'<meta http-equiv="refresh" content="0; url={shown(address)}">', encoding="utf-8")
    webbrowser.open(page.as_uri())
