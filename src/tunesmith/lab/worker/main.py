"""The worker program: carries out requests in a process of its own, where a kernel may crash, hang or lie."""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence

from tunesmith.backends.messages import REQUEST_TYPES, Failed, Reply, Request
from tunesmith.base.codec import decode_tagged, encode_tagged, frame_parts, read_frame
from tunesmith.base.errors import bug_text
from tunesmith.lab.process import INTERPRETED, PROFILED, SANITIZED, SERVE, TOOLS, run_fork_server
from tunesmith.lab.worker import sandbox
from tunesmith.run.config import is_debugging
from tunesmith.run.protection import Protection

Handle = Callable[[Request, tuple[bytes, ...]], tuple[Reply, Sequence[bytes]]]
GRACE = 10.0  # beyond the lab's own deadline, should the lab be gone
PR_SET_PDEATHSIG = 1
# Of what a tool starts, by the purpose: why it keeps sockets.
SPEAKS = {
    PROFILED: "a profiler speaks over it with what it counts",
    SANITIZED: "a sanitizer speaks over it with what it watches",
}


def main() -> None:
    """`worker BACKEND [PURPOSE]` speaks on its descriptors, `worker BACKEND PURPOSE REQUESTS REPLIES` reads
    one file and writes the other: what a profiler starts may have no descriptors of its own.
    `worker --fork-server` forks workers, each of which comes here again."""
    if sys.argv[1:] == [SERVE]:
        importlib.import_module("tunesmith.lab.worker.requests")  # what every worker needs
        run_fork_server(main)
    if len(sys.argv) > 4:
        requests, replies = _open_request_files(sys.argv[3], sys.argv[4])
    else:
        requests, replies = _private_descriptors()
        _die_with_parent()
    handle = _for_tools(sys.argv[1]) if sys.argv[2:] == [TOOLS] else _in_sandbox(sys.argv[1])
    with os.fdopen(requests, "rb", buffering=1 << 16) as source, os.fdopen(replies, "wb") as sink:
        while (frame := read_frame(lambda n: source.read(n))) is not None:
            # An alarm that nobody catches ends the process even when a kernel never returns.
            signal.setitimer(signal.ITIMER_REAL, frame.deadline + GRACE)
            sandbox.limit_time(frame.deadline + GRACE)
            try:
                reply, blobs = handle(decode_tagged(frame.json, REQUEST_TYPES), frame.blobs)
            except Exception as error:
                text = traceback.format_exc() if is_debugging() else bug_text(error)
                reply, blobs = Failed("internal", text), ()
            signal.setitimer(signal.ITIMER_REAL, 0)
            for part in frame_parts(encode_tagged(reply), blobs):
                sink.write(part)
            sink.flush()
            if len(sys.argv) > 4 and isinstance(reply, Failed):
                break  # what follows builds upon it
    if len(sys.argv) > 4 and sys.argv[2] in (SANITIZED, INTERPRETED):
        sys.exit()  # a sanitizer has its say at the end; it has a deadline too
    # Native code that a kernel has damaged must not hang the exit.
    os._exit(0)


def _in_sandbox(spec: str) -> Handle:
    from tunesmith import backends
    from tunesmith.lab.worker.requests import RequestHandler

    try:
        protection = enter_sandbox(spec, network=SPEAKS.get(sys.argv[2], "") if len(sys.argv) > 4 else "")
    except sandbox.NotProtected as missing:
        raise SystemExit(str(missing)) from None
    bench = RequestHandler(backends.make_backend(spec))
    bench.protection = protection
    bench.compilers = lambda: backends.list_compilers(spec) or ()
    return bench.handle


def _for_tools(spec: str) -> Handle:
    """It runs no kernel: what a tool starts enters the sandbox, and the tool could not."""
    from tunesmith import backends
    from tunesmith.lab.device_tools import answer_tool_request

    kind = backends.find_backend_kind(spec)
    return lambda request, blobs: (answer_tool_request(kind, request, blobs), ())


def enter_sandbox(spec: str, readable: Sequence[str] = (), network: str = "") -> Protection:
    """The one way into a process that runs anything of a problem, a run or a template: before the backend is
    loaded, with all that it loads. `readable`: folders that it reads beside what the backend does."""
    from tunesmith import backends

    kind, file = backends.find_backend_kind(spec), spec.partition(":")[2]
    needed = [*map(str, kind.readable()), *([file] if kind.from_file else []), *readable]
    try:
        return sandbox.confine_process(sandbox.for_worker(os.environ, needed, kind.devices, network))
    except sandbox.NotProtected as missing:
        raise sandbox.NotProtected(f"--sandbox required, and not in force: {missing}") from None


def _open_request_files(requests: str, replies: str) -> tuple[int, int]:
    """Nobody listens here: what a kernel prints goes nowhere. A profiler may start us from a thread that
    ends, so we do not die with our parent; the alarm bounds our life."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    os.close(null)
    source = os.open(requests, os.O_RDONLY | os.O_CLOEXEC)
    return source, os.open(replies, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)


def _private_descriptors() -> tuple[int, int]:
    """Keep the protocol to ourselves: a kernel's printf lands on descriptor 1, which becomes stderr."""
    requests, replies = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return requests, replies


def _die_with_parent() -> None:
    """Ask the system to kill us when the lab dies, however it dies. Elsewhere end of input has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the lab's to handle


if __name__ == "__main__":
    main()
