"""What hipcc defines of its own accord, where it is here."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from tunesmith.csource.predefined import Predefined, assumed, listed, sorted_out
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Kernel
from tunesmith.run.config import passed_on

ASSUMED_ARCHITECTURE = "gfx942"  # of the device that HIP kernels are read for
_SECONDS = 60


def predefined(kernel: Kernel, device: Device, names: Sequence[str]) -> tuple[Predefined, ...]:
    architecture = device.target or ASSUMED_ARCHITECTURE
    program = shutil.which("hipcc")
    if program is None:
        return (assumed("hip", why="there is no hipcc here"),)
    standard = tuple(flag for flag in kernel.flags if re.fullmatch(r"--?std=[\w+]+", flag))
    told = _told(program, standard, architecture)
    if not told:
        return (assumed("hip", why="hipcc does not tell"),)
    asked = [pair for pair in told if pair[0].partition("(")[0] in names]
    return (sorted_out(asked, " ".join(("hipcc,", *standard, architecture))),)


@lru_cache(maxsize=16)
def _told(program: str, standard: tuple[str, ...], architecture: str) -> tuple[tuple[str, str], ...]:
    options = ("-x", "hip", "--cuda-device-only", f"--offload-arch={architecture}", "-E", "-dM")
    with tempfile.TemporaryDirectory(prefix="tunesmith-hipcc-") as folder:
        (Path(folder) / "macros.hip").write_text("")
        try:
            done = subprocess.run(
                [program, *standard, *options, "macros.hip"],
                cwd=folder,
                env=passed_on(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return ()
    return listed(done.stdout.decode(errors="replace")) if done.returncode == 0 else ()
