"""The examples of docs/python.md run, one after the other, as a reader would type them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.end_to_end import tiny
from tests.fewer_calls import IN_A_PROCESS
from tests.running import environment

PAGE = Path(__file__).parents[3] / "docs" / "python.md"


def test_examples(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 5
    tiny.fake(tmp_path / "scale")
    script = tmp_path / "examples.py"
    script.write_text("\n\n".join([IN_A_PROCESS, *blocks]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    assert "BLOCK=" in done.stdout
    assert "go on with: tunesmith resume" in done.stdout
