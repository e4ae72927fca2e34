"""Problems one by one, each in a process of its own with a deadline: what fails there is a row, not an end.

A script calls itself with `--one NAME` for each; there it prints one line of JSON, its row.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from tunesmith.base.errors import TunesmithError

LANGUAGES = {".cu": "cuda", ".hip": "hip"}
EXAMPLES = evidence.ROOT / "examples"
ZOO = evidence.ROOT / "tests" / "fixtures" / "zoo"
LAST_WORDS = 400
_MARK = "ROW "
_ENDS_S = 5.0  # beyond the deadline, for the pipes of what was killed

Row = dict[str, Any]


def problems(zoo: Path | None) -> list[Path]:
    """The CUDA and HIP examples, and what of a folder of problems is in these languages."""
    folders = [EXAMPLES / "cuda", EXAMPLES / "hip", *([zoo] if zoo is not None else [])]
    found = [path.parent for folder in folders for path in sorted(folder.glob("*/problem.toml"))]
    return [folder for folder in found if any(list(folder.glob(f"kernel{end}")) for end in LANGUAGES)]


def shown(folder: Path) -> str:
    """By the last two names, such as cuda/rmsnorm."""
    return "/".join(folder.parts[-2:])


def own_command(module: str, folder: Path, *more: str) -> list[str]:
    return ["-m", module, "--one", str(folder), *more]


def tell(row: Row) -> None:
    """By the process of one problem."""
    print(_MARK + json.dumps(row), flush=True)


def tell_of(look: Callable[[], Row]) -> None:
    """The same, of what is looked at there; an error is a row too."""
    try:
        tell(look())
    except TunesmithError as error:
        tell({"fault": error.message})


def publish(out: Path, name: str, figures: dict[str, Any], page: Callable[[dict[str, Any]], str]) -> None:
    """The figures with where they come from, and the page of them, which is printed too."""
    written = evidence.write(out, name, figures)
    text = page(evidence.read(out, name) or {})
    written.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


def rows(
    commands: Mapping[str, Sequence[str]],
    *,
    seconds: float,
    within: float,
    jobs: int,
    show: Callable[[Row], None],
) -> list[Row]:
    """One for each command, in their order. `seconds` for one, `within` for all: what is not reached by then
    is a row that says so."""
    end = time.monotonic() + within

    def run(item: tuple[str, Sequence[str]]) -> Row:
        name, words = item
        left = min(seconds, end - time.monotonic())
        row = {"name": name, **(_row(words, left) if left > 0 else {"fault": "not begun: the time was over"})}
        show(row)
        return row

    with ThreadPoolExecutor(jobs) as threads:
        return list(threads.map(run, commands.items()))


def _row(words: Sequence[str], seconds: float) -> Row:
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=evidence.ROOT,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=_ENDS_S)
        return {"fault": f"not through within {seconds:.0f} s", "seconds": round(seconds, 1)}
    took = {"seconds": round(time.monotonic() - began, 1)}
    told = [line.removeprefix(_MARK) for line in out.splitlines() if line.startswith(_MARK)]
    if told:
        row: Row = json.loads(told[-1])
        return {**row, **took}
    said = " ".join(err.split())[-LAST_WORDS:]
    return {"fault": f"ended with {process.returncode}: {said or 'it says nothing'}", **took}
