"""A kernel of a few lines under the cpu device's watch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tunesmith.backends.messages import Unit
from tunesmith.backends.port import LaunchCall, LaunchFailed, Pointer, Scalar
from tunesmith.plugins.cpu_device import CpuBackend, watch
from tunesmith.run.events import SanitizerFinding

HEAD = """__global__ void k(float *o, const float *x, int n) {
  __shared__ float s[64];
  int t = threadIdx.x;
"""  # the body's first line is the fourth
SHARED = 512  # bytes of dynamic shared memory


def watched(
    body: str, folder: Path, source: str = "", threads: int = 96, seeds: int = 1, language: str = "cuda"
) -> tuple[SanitizerFinding, ...]:
    """What is found in two blocks; `source`: all of it, instead of a body; `seeds`: orders of threads."""
    log = folder / "log"
    log.touch()
    backend = CpuBackend(str(log))
    device = next(one for one in backend.devices() if one.limits.warp == (32 if language == "cuda" else 64))
    unit = Unit("kernel.cu", source or f"{HEAD}{body}\n}}\n", language, (), ("k",))
    session = backend.open(device)
    executable = session.load(unit, backend.build(unit, device).data)
    out, x = session.allocate(256), session.allocate(256)
    session.write(x, 0, np.arange(64, dtype=np.float32).tobytes())
    args = (Pointer(out, 0, 256), Pointer(x, 0, 256), Scalar("int32", 64))
    ended = False
    for _ in range(seeds):
        session.write(out, 0, bytes(256))
        try:
            session.run([LaunchCall(executable, "k", (2, 1, 1), (threads, 1, 1), SHARED, args)])
        except LaunchFailed:
            ended = True
    assert log.read_text() or not ended, "what ends a launch is told"
    return watch.read_watch_log("watch", log.read_text())
