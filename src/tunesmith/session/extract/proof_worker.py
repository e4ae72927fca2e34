"""A process that makes captured launches again: what a kernel does to it ends nobody else."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tunesmith import backends
from tunesmith.backends import messages, port
from tunesmith.capture.folder import read_array, read_capture
from tunesmith.lab.worker import enter_sandbox
from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.problem.template import original
from tunesmith.run.config import resolve
from tunesmith.session.extract.flattening import Parts, in_parts
from tunesmith.session.extract.proving import ProvenLaunch, prove
from tunesmith.session.extract.seen import SeenSizes
from tunesmith.session.problems import load_problem
from tunesmith.session.workplace import isolated_command, worker_environment

SECONDS = 300.0


@dataclass(frozen=True)
class ProofReply:
    """`trouble`: why nothing was run; then there are no launches. `fault`: how what was run ended, where that
    was before a result."""

    launches: tuple[ProvenLaunch, ...] = ()
    trouble: str = ""
    fault: str = ""

    @property
    def holds(self) -> bool:
        """Whether kernel and problem are what was captured, at one launch at least and at none otherwise."""
        verdicts = {one.verdict for one in self.launches}
        return not self.fault and "differs" not in verdicts and bool(verdicts & {"same", "within"})


@dataclass(frozen=True)
class ProofParts:
    """`parts`: of structs, their fields; `sizes`: of launches."""

    parts: Parts
    sizes: SeenSizes


def proof_of(
    folder: Path,
    capture: Path,
    kernel: str,
    parts: Parts = (),
    sizes: SeenSizes = (),
    seconds: float = SECONDS,
) -> ProofReply:
    """By another process; `kernel` is the mangled name that was captured."""
    module, spec = "tunesmith.session.extract.proof_worker", "cuda"
    command = isolated_command(module, spec, folder.resolve(), capture.resolve(), kernel)
    told = encode(ProofParts(parts, sizes))
    with tempfile.TemporaryDirectory(prefix="tunesmith-proof-") as scratch:
        own = worker_environment(spec, Path(scratch), resolve({}).sandbox)
        try:
            done = subprocess.run(
                command, input=told, capture_output=True, timeout=seconds, env=own, cwd=scratch
            )
        except subprocess.TimeoutExpired:
            return ProofReply(fault=f"its launches did not end within {seconds:.0f} s")
    try:
        return decode(done.stdout, ProofReply, "proof")
    except Malformed:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        return ProofReply(fault=f"the process that makes captured launches again ended: {last[0]}")


def proved_here(
    folder: Path, capture_folder: Path, kernel: str, spec: str, parts: Parts = (), sizes: SeenSizes = ()
) -> ProofReply:
    """In this process, on the first device of a backend."""
    capture = in_parts(read_capture(capture_folder), kernel, parts)
    if not any(one.kernel == kernel for one in capture.kept):
        words = "the capture kept no memory of it: capture again with --keep and its name"
        return ProofReply(trouble=words)
    problem = load_problem(folder).definition
    backend = backends.backend(spec)
    try:
        devices = backend.devices()
        if not devices:
            return ProofReply(trouble="there is no device here")
        variant = original(problem, dict(problem.workloads[0].sizes))
        compiler = problem.kernel.compiler or ""
        given = (variant.path, variant.source, variant.language, variant.flags, variant.entries)
        unit = messages.Unit(*given, variant.headers, compiler)
        binary = backend.build(unit, devices[0])
        session = backend.open(devices[0])
    except (port.BuildFailed, port.Unsupported, port.DeviceLost) as error:
        return ProofReply(trouble=str(error))
    executable = session.load(unit, binary.data)
    seen = {number: dict(own) for number, own in sizes}
    stored = (capture, kernel, lambda digest: read_array(capture_folder, digest))
    return ProofReply(prove(session, executable, problem, *stored, seen))


def main() -> None:
    spec, folder, capture, kernel = sys.argv[1:5]
    told = decode(sys.stdin.buffer.read(), ProofParts, "parts")
    enter_sandbox(spec, (folder, capture))
    reply = proved_here(Path(folder), Path(capture), kernel, spec, told.parts, told.sizes)
    sys.stdout.buffer.write(encode(reply))


if __name__ == "__main__":
    main()
