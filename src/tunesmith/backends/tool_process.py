"""A worker that somebody else's tool starts and watches: a profiler, a sanitizer.

It gets its requests from a file and answers into one: descriptors may not survive under such a tool. Whatever
the tool does, it is bounded in time and in what it prints, and ends with all that it has started, also where
whoever waits for it is killed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tunesmith.backends.messages import REPLY_TYPES, EndedTool, Failed, Request
from tunesmith.base.codec import Malformed, decode_tagged, encode_tagged, frame_parts, read_frame
from tunesmith.base.text import strip_controls
from tunesmith.run.config import passed_on

MAX_OUTPUT = 16 << 20  # bytes
POLL = 0.05
ANSWER_SECONDS = 20.0
Asked = tuple[Request, tuple[bytes, ...]]


def answer_of(program: str, question: str, environment: Mapping[str, str] | None = None) -> str:
    """What a program prints; nothing where it does not run, or takes too long."""
    try:
        done = subprocess.run(
            [program, question],
            env=passed_on() if environment is None else environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace")


def version_of(program: str, pattern: str) -> str:
    """As it prints it, by a pattern with one group; empty where it says none."""
    found = re.search(pattern, answer_of(program, "--version"))
    return strip_controls(found[1]) if found else ""


def run_under(
    name: str,
    command: Sequence[str],
    worker: Sequence[str],
    asked: Sequence[Asked],
    environment: Mapping[str, str],
    folder: Path,
    log: Path,
    end: float,
    seconds: float,
    most_output: int = MAX_OUTPUT,
) -> EndedTool:
    """Until the clock shows `end`, `seconds` after the start. `command` is the tool's, with its options, and
    `name` what it is called in a sentence."""
    allowed = max(1.0, end - time.monotonic())
    request, reply, errors = (folder / file for file in ("request", "reply", "stderr"))
    with request.open("wb") as file:
        for message, blobs in asked:
            file.writelines(frame_parts(encode_tagged(message), blobs, allowed))
    # Tools unpack files into the home folder and keep locks in the temporary one, which another user may
    # hold; numbers must not come in the words of the user's language.
    private = {"HOME": str(folder), "TMPDIR": str(folder), "LC_ALL": "C"}
    with errors.open("wb") as sink:
        try:
            process = subprocess.Popen(
                [*command, *worker, str(request), str(reply)],
                cwd=folder,
                env={**environment, **private},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=sink,
                start_new_session=True,
            )
        except OSError as error:
            return EndedTool(1, "", "", fault=f"{name} does not start: {error.strerror}")
        fault = _wait_for_tool(name, process, (log, errors), end, seconds, most_output)
    texts = (text_of(log, most_output), text_of(errors, most_output))
    return EndedTool(process.returncode, *texts, *_read_refusal(reply), fault)


@contextmanager
def _ended_with_us(group: int) -> Iterator[None]:
    """A shell that reads a pipe of ours kills a group of processes when the pipe ends, which it does where we
    are killed."""
    try:
        guard = subprocess.Popen(
            ["/bin/sh", "-c", f"read _; kill -9 -{group}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        yield  # without a shell the deadline of the tool's own worker is left
        return
    with guard:
        try:
            yield
        finally:
            guard.kill()


def _wait_for_tool(
    name: str,
    process: subprocess.Popen[bytes],
    files: Sequence[Path],
    end: float,
    seconds: float,
    most_output: int,
) -> str:
    """Until it ends by itself; else why it was ended, with everything it has started."""
    fault = ""
    try:
        with _ended_with_us(process.pid):
            while not fault:
                try:
                    process.wait(timeout=POLL)
                    return ""
                except subprocess.TimeoutExpired:
                    if time.monotonic() > end:
                        fault = f"{name} took more than {seconds:g} s and was ended"
                    elif any(_file_size(file) > most_output for file in files):
                        fault = f"{name} printed more than {most_output >> 20} MiB and was ended"
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # nothing is left of it
        process.wait()
    return fault


def _read_refusal(file: Path) -> tuple[str, int]:
    """Why the process could not do what it was asked to, by its replies, and how many there are."""
    count = 0
    try:
        with open(file, "rb", opener=_own_file) as source:
            while (frame := read_frame(source.read)) is not None:
                reply = decode_tagged(frame.json, REPLY_TYPES)
                count += 1
                if isinstance(reply, Failed):
                    first = (reply.message.strip().splitlines() or ["no reason given"])[0]
                    return strip_controls(first)[:300], count
    except (OSError, Malformed):
        pass  # it did not come so far
    return "", count


def _own_file(path: str, flags: int) -> int:
    """The process that is watched may put links and pipes in place of its files: none is followed."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def text_of(file: Path, most: int = MAX_OUTPUT) -> str:
    try:
        with open(file, "rb", opener=_own_file) as source:
            return source.read(most).decode(errors="replace")
    except OSError:
        return ""


def _file_size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
