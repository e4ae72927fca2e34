"""How fast the machine's own processor runs, as the system tells it."""

from __future__ import annotations

import re
from pathlib import Path

from tunesmith.problem.device import Clock

SYSTEM = Path("/")
_CPUINFO = re.compile(r"^cpu MHz\s*:\s*([0-9]{1,6})\b", re.MULTILINE)
_LONGEST = 1 << 22  # characters of a file: thousands of processors


def processor_clocks(system: Path = SYSTEM) -> tuple[Clock, ...]:
    """Of the fastest core right now, and what cores are allowed; empty where the system does not say."""
    cores = sorted((system / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq"))
    now = [mhz for core in cores if (mhz := _mhz(core / "scaling_cur_freq"))]
    most = [mhz for core in cores if (mhz := _mhz(core / "scaling_max_freq"))]
    if not now:
        now = [int(mhz) for mhz in _CPUINFO.findall(_text(system / "proc/cpuinfo"))]
    return (Clock("processor", max(now), max(most) if most else None),) if now else ()


def _mhz(file: Path) -> int | None:
    """Of a file that counts kHz."""
    text = _text(file).strip()
    return int(text) // 1000 if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _text(file: Path) -> str:
    try:
        with open(file, encoding="ascii", errors="replace") as opened:
            return opened.read(_LONGEST)
    except OSError:
        return ""
