"""Runs the program the way a user does: as a process, with its own folders."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fewer_calls import IN_A_PROCESS
from tunesmith.lab.process import ForkServer

FIXTURES = Path(__file__).parent / "fixtures"
EXAMPLES = Path(__file__).parent.parent / "examples"


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(folder: Path) -> dict[str, str]:
    """Temporary files and caches land in `folder`, so that a test can see what is left behind."""
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TUNESMITH_")}
    own = {"TMPDIR": str(temporary), "TUNESMITH_CACHE_DIR": str(folder / "user-cache")}
    own["TUNESMITH_LIBRARY_DIR"] = str(folder / "user-library")
    own |= {f"XDG_{what}_HOME": str(folder / f"user-{what.lower()}") for what in ("CONFIG", "DATA")}
    return {**clean, **own, "TUNESMITH_BUILDERS": "1"}  # fewer processes to start: runs here are short


def write_own_settings(folder: Path, text: str) -> None:
    """The file of the user whose folder this is."""
    own = folder / "user-config" / "tunesmith" / "tunesmith.toml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(text)


def start(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tunesmith", *map(str, arguments)]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@functools.cache
def loaded_program() -> ForkServer:
    """`loaded_tunesmith.py`; what depends on how a process starts uses `start`."""
    own = ("TUNESMITH_", "TMPDIR", "PYTEST_")  # of the test that happens to be the first
    clean = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    program = Path(__file__).with_name("loaded_tunesmith.py")
    return ForkServer([sys.executable, "-P", str(program), IN_A_PROCESS], clean)


class Begun:
    """A process of the program as `loaded_program` forks it, with its own folder."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        self._texts = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 closed by `end`
        self._arguments = [str(argument) for argument in arguments]
        with open(os.devnull) as nothing:
            streams = nothing.fileno(), self._texts[0].fileno(), self._texts[1].fileno()
            self._process = loaded_program().start(self._arguments, environment(folder), folder, streams)

    def poll(self) -> int | None:
        return self._process.poll()

    def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        self.end(timeout=60)

    def end(self, timeout: float) -> Ended:
        try:
            code: int | None = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            code = None
        self._process.close()
        words = []
        for file in self._texts:
            with file:
                file.seek(0)
                words.append(file.read().decode())
        assert code is not None, f"tunesmith {self._arguments} did not end in {timeout} s\n{words[1]}"
        return Ended(code, *words)


def tunesmith(folder: Path, *arguments: object, timeout: float = 300) -> Ended:
    ended = Begun(folder, *arguments).end(timeout)
    assert "Traceback (most recent call last)" not in ended.err, ended.err
    return ended


def expect_success(folder: Path, *arguments: object, timeout: float = 300) -> Ended:
    ended = tunesmith(folder, *arguments, timeout=timeout)
    assert ended.code == 0, ended.err
    return ended


def tunesmith_afresh(folder: Path, *arguments: object) -> Ended:
    """Loads the program in a process of its own, for tests that change what is loaded."""
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=120)
    return Ended(process.returncode, out, err)


def journal(run: Path) -> list[dict[str, Any]]:
    """The whole lines of a run's journal."""
    path = run / "journal.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def events_in(run: Path, kind: str) -> list[Any]:
    return [line["event"] for line in journal(run) if line["type"] == kind]


def report_in(run: Path) -> Any:
    return json.loads((run / "report.json").read_text())


def wait_for_events(
    run: Path, count: int, process: subprocess.Popen[str] | Begun, timeout: float = 120
) -> None:
    """Until the journal has that many events or the process is through."""
    end = time.monotonic() + timeout
    path = run / "journal.jsonl"
    while time.monotonic() < end and process.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.005)


# What a judge quotes of the values of cases, which are drawn for each run alone.
QUOTED = re.compile(
    r"(\] is|, expected|: off by|, allowed is|elements is|largest error|original's)"
    r" -?(?:[0-9.]+(?:e[-+][0-9]+)?|inf|nan)"
)


def facts(run: Path) -> list[tuple[str, Any]]:
    """A run's events without what depends on the clock, or is drawn for this run alone. Long texts that stand
    beside the journal are in them."""
    drawn = {"Started": {"salt"}, "Verified": {"seed", "cases", "replaced", "reach", "seen"}}
    drawn["Served"] = {"calls", "dispatch"}  # at sizes no larger than those that were drawn there

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            if value.get("digest") and value.get("text") == "":
                text = (run / "objects" / value["digest"]).read_text()
                value = {**value, "text": text, "digest": ""}
            return {k: timeless(v) for k, v in value.items() if k not in ("seconds", "busy", "waited")}
        if isinstance(value, str):
            return QUOTED.sub(r"\1 #", value)
        return [timeless(v) for v in value] if isinstance(value, list) else value

    return [
        (
            line["type"],
            timeless({k: v for k, v in line["event"].items() if k not in drawn.get(line["type"], ())}),
        )
        for line in journal(run)
    ]


def processes_in(folder: Path) -> list[str]:
    """Command lines of processes that have anything to do with the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            # What is forked shows the variables of its parent.
            surroundings = (entry / "environ").read_bytes() + os.readlink(entry / "cwd").encode()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder).encode() in surroundings and state != "Z" and "tunesmith" in command:
            found.append(command)
    return found


def wait_until_alone(folder: Path, timeout: float = 10) -> list[str]:
    """Processes still around the folder after a little patience: killing is asynchronous."""
    end = time.monotonic() + timeout
    while (left := processes_in(folder)) and time.monotonic() < end:
        time.sleep(0.05)
    return left
