"""Hosts of workers that share no folder with the test: the real one, and those that misbehave."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import tunesmith
from tunesmith.lab.device_tools import Spawn
from tunesmith.plugins.hosts.transport import RemoteWorkers, StartWorker
from tunesmith.run.protection import AUTO

SOURCES = Path(tunesmith.__file__).parents[1]


def command(folder: Path, *arguments: str, modules: Path | None = None) -> list[str]:
    """Python with another current folder, another folder for temporary files, and no variable of ours."""
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    paths = os.pathsep.join(str(path) for path in (modules, SOURCES) if path is not None)
    own = {"PATH": os.defpath, "TMPDIR": str(folder / "tmp"), "PYTHONPATH": paths}
    pairs = [f"{name}={value}" for name, value in own.items()]
    return ["env", "-i", "-C", str(folder), *pairs, sys.executable, *arguments]


def real(folder: Path) -> list[str]:
    return command(folder, "-m", "tunesmith", "worker")


def refusing(folder: Path) -> list[str]:
    """A real one, whose fake compiler refuses everything: all Python there begins with this."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(REFUSING)
    return command(folder, "-m", "tunesmith", "worker", modules=folder)


def scripted(folder: Path, text: str) -> list[str]:
    """A host of another kind, with `say`, `calls` and the names of `remote` at hand."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "host.py").write_text(PRELUDE + text)
    return command(folder, "host.py")


PRELUDE = """
import os, sys, time
from pathlib import Path
from tunesmith import __version__
from tunesmith.plugins.hosts.transport import *
from tunesmith.base.codec import encode_tagged, frame_parts, tag_of

def framed(call, message):
    return b"".join(call_parts(call, 0, frame_parts(message)))

def say(call, value):
    os.write(1, framed(call, encode_tagged(value)))

def greet(version=__version__, machine="m", **more):
    say(0, Greeting("host", version, "stub", machine, **more))

def idle():
    while os.read(0, 1 << 16):
        pass

def calls():  # what is asked of workers; the rest is answered
    while found := read_call(sys.stdin.buffer):
        call, worker, frame = found
        tag = tag_of(frame.json)
        if tag in ("StartWorker", "StopWorker", "KeepFile"):
            os.write(1, framed(call, DONE))
        elif tag != "Greeting":
            yield call, frame

"""

REFUSING = """
from tunesmith.backends import fake
from tunesmith.backends.port import BuildFailed

def build(*_unit):
    raise BuildFailed("no such compiler")

fake.FakeBackend.build = build
"""


def with_tools(folder: Path, backend: str) -> Iterator[Spawn]:
    """Workers of a host with a folder of its own before the others on its PATH; it leaves nothing."""
    path = f"PATH={folder / 'bin'}:{os.defpath}"
    command = [path if word.startswith("PATH=") else word for word in real(folder)]
    with closing(RemoteWorkers("there", command, print)) as made:
        yield lambda purpose: made.worker(StartWorker(backend, purpose, AUTO))
    assert list((folder / "tmp").iterdir()) == []


def install_tool(folder: Path, name: str, text: str) -> None:
    path = folder / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
