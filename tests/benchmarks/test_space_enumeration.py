"""The benchmark of space enumeration runs, and the space stays inside its limit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "space_enumeration.py"


def test_a_million_combinations_within_a_second() -> None:
    ended = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1,327,104" in ended.stdout or "1327104" in ended.stdout
