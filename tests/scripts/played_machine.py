"""A machine that scripts are run on in tests: a PATH that holds exactly the programs given."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"
SH = str(shutil.which("sh"))


class Machine:
    """On the platform given, Linux on x86-64 at first, and used by root."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "bin"
        self.home = root / "project"
        self.bin.mkdir()
        self.home.mkdir()
        self.program("id", "echo 0").platform("Linux", "x86_64")

    def platform(self, system: str, chip: str) -> Machine:
        return self.program("uname", f"case $1 in -s) echo {system} ;; -m) echo {chip} ;; esac")

    def program(self, name: str, body: str = "exit 0") -> Machine:
        path = self.bin / name
        path.write_text(f"#!{SH}\n{body}\n")
        path.chmod(0o755)
        return self

    def python(self, name: str = "python3") -> Machine:
        return self.program(name, f'exec "{sys.executable}" "$@"')

    def real(self, *names: str) -> Machine:
        for name in names:
            self.program(name, f'exec "{shutil.which(name)}" "$@"')
        return self

    def preflight(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run("preflight.sh", **environment)

    def run(self, script: str, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self._sh(str(SCRIPTS / script), *args, **environment)

    def after(self, script: str, commands: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """The commands after the script is sourced, as setup.sh sources it."""
        return self._sh("-c", f'. "$0" && {commands}', str(SCRIPTS / script), **environment)

    def _sh(self, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SH, *args],
            cwd=self.home,
            env={"PATH": str(self.bin), "LC_ALL": os.environ.get("LC_ALL", "C"), **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )
