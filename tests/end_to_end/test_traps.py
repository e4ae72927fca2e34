"""Every command in a folder full of traps, which came from somebody: none is sprung, and nothing hangs."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.end_to_end import tiny
from tests.fleets import planned
from tests.opencl_here import has_opencl
from tests.running import environment, expect_success, tunesmith
from tunesmith.base.text import sha256_hex
from tunesmith.cli.app import app
from tunesmith.run.protection import NEEDED
from tunesmith.session import place
from tunesmith.session.place import WorkerSite

KEY = "sk-trap-0123456789abcdef0123"
SECONDS = 100
# Modules that something of ours imports, in a program of its own or in this one.
MODULES = (
    *("numpy", "scipy", "msgspec", "typer", "rich", "click", "pyopencl", "threadpoolctl", "ziglang", "ray"),
    *("jinja2", "markupsafe"),
    *(
        "torch",
        "mcp",
        "starlette",
        "uvicorn",
        "optuna",
        "anyio",
        "pydantic",
        "pycparser",
        "ml_dtypes",
        "cuda",
    ),
    *("sitecustomize", "usercustomize", "conftest"),
)
SPRUNG = """\
import os, socket

def attempt():
    sprung = [name for name, value in os.environ.items() if "sk-trap" in value]
    for path, mode in (({mark!r}, "a"), ({secret!r}, "r"), ({mark!r} + ".here", "a")):
        try:
            open(path, mode).close()
            sprung.append(path)
        except OSError:
            pass
    for port in ({port},):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            sprung.append("socket")
        except OSError:
            pass
    if sprung:
        raise RuntimeError("trap sprung: " + ", ".join(sprung))

attempt()
"""
MODULE = "open({mark!r}, 'a').write(__file__ + '\\n')\nraise ImportError('a trap')\n"
INPUTS = "\n\ndef make(n, rng):\n    attempt()\n    return {'x': rng.standard_normal(n).astype('float32')}\n"
REFERENCE = "\n\ndef scale(x):\n    attempt()\n    return 2.0 * x\n"
SETTINGS = """\
workers = "hosts.toml"
sandbox = "off"
model = "openai:x@http://127.0.0.1:{port}/v1"
prompts = "prompts"
library = true
record = "../recorded"
cache_dir = "../cached"
library_dir = "../library"
seed = 3
"""
HOSTS = '[[worker]]\nname = "x"\ncommand = ["sh", "-c", "echo hosts >> {mark}"]\n'
PLAN = """\
device_hours = 1
[[problem]]
path = "fake"
template = "template.fake"
[[device]]
name = "a"
backend = "fake"
[tune]
evals = 1
"""
ELSEWHERE = PLAN.replace('name = "a"\n', 'name = "a"\nworkers = "hosts.toml"\n')
RUN = "tunesmith-runs/tiny-1"
OPENCL_RUN = "tunesmith-runs/tiny-2"


def listed(command: Any, name: str = "") -> Iterator[str]:
    """All commands of the program, as it knows them itself."""
    below = getattr(command, "commands", {})
    for part in below:
        yield from listed(below[part], f"{name} {part}".strip())
    if name and (not below or command.invoke_without_command):
        yield name


@dataclass(frozen=True)
class Call:
    """`code`: None where it says nothing of traps. `serves`: it goes on until it is interrupted."""

    words: str
    code: int | None = 0
    is_long: bool = False
    serves: bool = False


FAKE = "--template fake/template.fake --backend fake"
CALLS: dict[str, list[Call]] = {
    "init": [Call("kernel.cl -o drafted", is_long=True)],
    "check": [Call("fake --backend fake"), Call(".", 2), Call("fifo", 2), Call("opencl", None, is_long=True)],
    "template": [Call("opencl", None, is_long=True), Call(RUN, is_long=True)],
    "explain": [Call("kernel.cl", is_long=True), Call("opencl", None, is_long=True)],
    "tune": [Call(f"fake {FAKE} --evals 1 --out made")],
    "retune": [Call(f"{RUN} --evals 1 --out again", is_long=True), Call("given/hosted", 2, is_long=True)],
    "resume": [
        Call(RUN, is_long=True),
        Call("given/hosted", 2),
        Call("given/mailbox", 2),
        Call("given/fleet", 2),
    ],
    "report": [Call(""), Call("tunesmith-runs/linked", 2)],
    "watch": [Call("", None, is_long=True, serves=True)],
    "verify": [Call(RUN, is_long=True), Call(f"{RUN} --rerun", None, is_long=True)],
    "export": [Call(f"{OPENCL_RUN} --to opencl -o exported", None, is_long=True)],
    "bench": [Call(OPENCL_RUN)],
    "diff": [Call(f"{RUN} {RUN}", is_long=True)],
    "compare": [
        Call(f"fake {FAKE[11:]} --evals 1 --repeats 1 --out compared", None, is_long=True),
        Call("--resume given/compared", 2),
    ],
    "fleet": [
        *(Call("plan.toml --out fleet", None, is_long=True), Call("fleetless", 2, is_long=True)),
        Call("given/fleet", 2),
    ],
    "profile": [
        Call("fake --backend fake --no-counters", None, is_long=True),
        Call("given/hosted --no-counters", None, is_long=True),
    ],
    "capture": [Call("-- true", None)],
    "extract": [Call(". --kernel scale -o taken", None)],
    "apply": [Call(f"{RUN} --repo .", 2), Call(f"{RUN} --undo", 2)],
    "devices": [Call("--backend fake", is_long=True)],
    "doctor": [Call("")],
    "mcp": [Call("", None)],
    "skill": [Call("--out skills", is_long=True)],
    "trust": [Call("", is_long=True)],
    "worker": [Call("", None, is_long=True)],
    "library": [Call("", is_long=True)],
    "library show": [Call("tiny", None, is_long=True)],
    "library export": [Call("tiny --out stored", None, is_long=True)],
    "library remove": [Call("tiny", None, is_long=True)],
    "library runs": [Call("--code fake", None, is_long=True)],
    "library add": [Call(RUN, None, is_long=True)],
    "library prune": [Call("--older-than 9", is_long=True)],
}


@dataclass
class Trapped:
    folder: Path
    mark: Path
    variables: dict[str, str]
    callers: list[str]


@pytest.fixture(scope="module")
def trapped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trapped]:
    """The user's home beside what they cloned."""
    top = tmp_path_factory.mktemp("traps")
    home, folder, mark = top / "home", top / "home" / "cloned", top / "home" / "mark"
    folder.mkdir(parents=True)
    (home / ".netrc").write_text(KEY)
    tiny.fake(folder / "fake")
    tiny.opencl(folder / "opencl")
    shutil.copy(folder / "opencl" / "kernel.cl", folder / "kernel.cl")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port, callers = listening.getsockname()[1], list[str]()
        threading.Thread(target=_count, args=(listening, callers), daemon=True).start()
        sprung = SPRUNG.format(mark=str(mark), secret=str(home / ".netrc"), port=port)
        for problem in ("fake", "opencl"):
            tiny.spoil(folder / problem / "problem.toml", '"tiny"\n', '"tiny"\ninputs = "inputs.py:make"\n')
            (folder / problem / "inputs.py").write_text(sprung + INPUTS)
            (folder / problem / "reference.py").write_text(sprung + REFERENCE)
        names = ["fake", "opencl"] if has_opencl() else ["fake"]
        for name in names:
            template = f"{name}/template.{name.replace('opencl', 'cl')}"
            words = "--no-library", "--evals", 1, "--backend", name, "--template", template
            expect_success(folder, "tune", name, *words)
        _begin_elsewhere(folder, mark, port)
        for name in MODULES:
            (folder / f"{name}.py").write_text(MODULE.format(mark=str(mark)))
        program = folder / "trap"
        program.write_text(f"#!/bin/sh\necho program >> {mark}\n")
        program.chmod(0o755)
        for name in ("git", "cc", "g++", "oclgrind", "compute-sanitizer"):
            os.link(program, folder / name)
        (folder / "tunesmith.toml").write_text(SETTINGS.format(port=port))
        (folder / "hosts.toml").write_text(HOSTS.format(mark=mark))
        (folder / "plan.toml").write_text(PLAN)
        (folder / "prompts").mkdir()
        (folder / "fifo").mkdir()
        os.mkfifo(folder / "fifo" / "problem.toml")
        (folder / "problem.toml").write_text(
            (folder / "opencl" / "problem.toml").read_text().replace("kernel.cl", "../.netrc")
        )
        runs = folder / "tunesmith-runs"
        (runs / "loop").symlink_to("loop")
        (runs / "linked").mkdir()
        (runs / "linked" / "journal.jsonl").symlink_to("/dev/zero")
        (runs / "piped").mkdir()
        os.mkfifo(runs / "piped" / "journal.jsonl")
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        for name in ("core.fsmonitor", "core.hooksPath", "diff.external", "filter.x.clean"):
            subprocess.run(["git", "config", name, str(program)], cwd=folder, check=True)
        variables = {**environment(folder), "HOME": str(home), "OPENAI_API_KEY": KEY, "MY_TOKEN": KEY}
        for name in ("TUNESMITH_LIBRARY_DIR", "TUNESMITH_CACHE_DIR"):
            variables[name] = variables[name].replace(str(folder), str(home))
        variables |= {f"XDG_{what}_HOME": str(home / what) for what in ("CONFIG", "DATA")}
        variables["PATH"] = f":{variables['PATH']}:"  # of which an empty entry is the current folder
        yield Trapped(folder, mark, variables, callers)


def _begin_elsewhere(folder: Path, mark: Path, port: int) -> None:
    """What somebody else began, and gives away: a model and a mailbox of their choice, hosts, a record of
    files to be put back."""
    tiny.fake(folder / "unwritten")
    (folder / "unwritten" / "template.fake").unlink()
    (folder / "hosts.toml").write_text(HOSTS.format(mark=mark))
    (folder / "elsewhere.toml").write_text(ELSEWHERE)
    words = ("unwritten", "--backend", "fake", "--model", "mailbox", "--no-wait", "--strategies", "template")
    done = tunesmith(folder, "compare", *words, "--repeats", "1", "--out", "given/compared")
    assert done.code in (0, 4), done.err
    planned(folder / "elsewhere.toml", folder / "given" / "fleet")
    (waiting,) = (folder / "given" / "compared" / "runs").glob("*/template-1")
    for name in ("hosted", "mailbox"):
        shutil.copytree(waiting, folder / "given" / name)
    hosted = f"openai:x@http://127.0.0.1:{port}/v1"
    for name, model in (("hosted", hosted), ("mailbox", f"mailbox:{mark}")):
        journal = folder / "given" / name / "journal.jsonl"
        first = journal.read_text().split("\n")[0]
        assert '"models":"mailbox"' in first
        journal.write_text(first.replace('"models":"mailbox"', f'"models":"{model}"') + "\n")
    plan = folder / "given" / "compared" / "compare.json"
    plan.write_text(plan.read_text().replace('"model":"mailbox"', f'"model":"{hosted}"'))
    shutil.rmtree(folder / "given" / "compared" / "runs")
    applied, secret = folder / RUN / "apply", folder.parent / ".netrc"
    applied.mkdir()
    (applied / "before-0").write_text("spoilt")
    files = [
        {"path": secret.name, "before": sha256_hex(b"spoilt"), "after": sha256_hex(KEY.encode()), "mode": 420}
    ]
    record = {
        "format": 1,
        "status": "applied",
        "repository": str(secret.parent),
        "patch": "p",
        "files": files,
    }
    (applied / "apply.json").write_text(json.dumps(record))


def _count(listening: socket.socket, callers: list[str]) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, address = listening.accept()
            callers.append(str(address))
            client.close()


def test_every_command_is_called() -> None:
    assert sorted(CALLS) == sorted(listed(typer.main.get_command(app)))


def _sandboxed(scratch: Path) -> bool:
    return not place.worker_protection(WorkerSite("fake", scratch)).missing(NEEDED)


@pytest.mark.timeout(300)  # the first makes the folder
@pytest.mark.parametrize(
    ("command", "call"),
    [
        pytest.param(command, call, id=f"{command} {call.words}", marks=[pytest.mark.long] * call.is_long)
        for command, calls in CALLS.items()
        for call in calls
    ],
)
def test_no_trap_is_sprung(trapped: Trapped, tmp_path: Path, command: str, call: Call) -> None:
    if not _sandboxed(tmp_path):
        pytest.skip("this machine has no sandbox")
    if OPENCL_RUN in call.words and not (trapped.folder / OPENCL_RUN).is_dir():
        pytest.skip("there is no OpenCL device")
    words = [sys.executable, "-m", "tunesmith", *command.split(), *call.words.split()]
    process = subprocess.Popen(
        words,
        cwd=trapped.folder,
        env=trapped.variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if call.serves:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.send_signal(signal.SIGINT)
    try:
        said, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()

    assert (trapped.folder.parent / ".netrc").read_text() == KEY, said
    assert "sprung" not in said
    assert KEY not in said
    assert "a trap" not in said
    assert not trapped.mark.exists(), f"{trapped.mark.read_text()}\n{said}"
    assert not trapped.callers, said
    assert "Traceback" not in said
    assert "a bug in" not in said
    if "given" in call.words and command in ("resume", "compare", "fleet"):
        assert "was not begun here" in said
    if call.code is not None:
        assert process.returncode == call.code, said


def test_the_traps_are_traps(trapped: Trapped) -> None:
    """Last: an interpreter, git and a shell spring them."""
    for words in (["git", "status"], [sys.executable, "-c", "import numpy"], ["sh", "-c", "cc"]):
        subprocess.run(words, cwd=trapped.folder, env=trapped.variables, capture_output=True, check=False)
        assert trapped.mark.exists(), words
        trapped.mark.unlink()
    assert stat.S_ISFIFO((trapped.folder / "fifo" / "problem.toml").stat().st_mode)
