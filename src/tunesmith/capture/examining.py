"""Whether programs can be captured here: a compiler, the driver, CUPTI, and the library inside a process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tunesmith.backends import port
from tunesmith.capture import building
from tunesmith.capture.collecting import folders_made, traces_in
from tunesmith.capture.watching import INJECTION, CaptureWish, settings_for
from tunesmith.errors import TunesmithError
from tunesmith.text import one_line

WHAT = "capturing programs"
_SECONDS = 60
_NO_DRIVER = 3
# The driver loads the library that watches when it is initialised: no kernel is needed for that.
_PROGRAM = f"""
import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    sys.exit({_NO_DRIVER})
sys.exit(0 if cuda.cuInit(0) == 0 else {_NO_DRIVER})
"""


def examine_capture() -> port.DoctorFinding:
    """A tiny program is watched, in a folder that goes again."""
    with tempfile.TemporaryDirectory(prefix="tunesmith-capture-") as scratch:
        folder = Path(scratch)
        folders_made(folder)
        try:
            library = building.build(folder)
        except TunesmithError as error:
            return port.DoctorFinding(WHAT, False, error.message, error.hint or "")
        return _tried(folder, library)


def _tried(folder: Path, library: Path) -> port.DoctorFinding:
    if other := os.environ.get(INJECTION):
        return port.DoctorFinding(WHAT, False, f"{INJECTION} is set: {other} watches programs here already")
    told = settings_for(folder, CaptureWish(), building.cupti_paths(sys.executable))
    environment = {**os.environ, **told, INJECTION: str(library)}
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-c", _PROGRAM], env=environment, capture_output=True, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return port.DoctorFinding(WHAT, False, f"a watched program does not end well: {one_line(str(error))}")
    if ended.returncode == _NO_DRIVER:
        return port.DoctorFinding(WHAT, False, "a C compiler is here, an NVIDIA driver with a device is not")
    traces, _ = traces_in(folder)
    if not traces:
        return port.DoctorFinding(WHAT, False, f"the driver does not load the library that {INJECTION} names")
    said = [one_line(note) for trace in traces for note in trace.notes]
    if any("libcupti" in note for note in said):
        fix = "pip install nvidia-cuda-cupti (of the driver's CUDA version)"
        return port.DoctorFinding(WHAT, False, "driver and compiler are here, CUPTI is not", fix)
    if said:
        return port.DoctorFinding(WHAT, False, said[0])
    return port.DoctorFinding(WHAT, True, "compiler, driver and CUPTI are here, and a program was watched")
