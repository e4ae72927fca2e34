"""Whether this user may read hardware counters, by what the driver and the system say of themselves."""

from __future__ import annotations

import re
from pathlib import Path

PARAMS = Path("/proc/driver/nvidia/params")
STATUS = Path("/proc/self/status")
# Either opens the counters that the driver keeps to administrators: CAP_SYS_ADMIN and CAP_PERFMON.
_CAPABILITIES = (21, 38)
LET_IN = "run as root, or have the administrator load the driver with NVreg_RestrictProfilingToAdminUsers=0"


def may_count(params: Path = PARAMS, status: Path = STATUS) -> tuple[bool | None, str]:
    """Whether, and why; None where nobody says. Nothing is run: only counting itself is proof."""
    kept = re.search(r"^RmProfilingAdminOnly:\s*(\d+)", _text(params), re.MULTILINE)
    if kept is None:
        return None, "the driver does not say who may read counters: tunesmith profile finds out"
    if kept[1] == "0":
        return True, "counters are open to everyone"
    held = re.search(r"^CapEff:\s*([0-9a-fA-F]+)", _text(status), re.MULTILINE)
    if held is not None and any(int(held[1], 16) >> bit & 1 for bit in _CAPABILITIES):
        return True, "counters are kept to administrators, and this user is one"
    return False, "counters are kept to administrators, and this user is none"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
