"""What a command does not need it does not import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.end_to_end import tiny
from tests.fewer_calls import IN_A_PROCESS
from tests.running import environment

MAX_OF_A_SIMPLE_RUN = 160
MAX_OF_HELP = 20
COUNT = """
import atexit, json, runpy, sys
from pathlib import Path
atexit.register(lambda: Path("loaded.json").write_text(json.dumps(sorted(sys.modules))))
sys.argv[0] = "tunesmith"
runpy.run_module("tunesmith", run_name="__main__")
"""


def loaded(folder: Path, *arguments: object, first: str = "") -> set[str]:
    command = [sys.executable, "-c", first + COUNT, *map(str, arguments)]
    ended = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 0, ended.stderr
    return set(json.loads((folder / "loaded.json").read_text()))


def own(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if name.split(".")[0] == "tunesmith")


def test_a_simple_run_loads_neither_the_expert_nor_what_other_devices_need(tmp_path: Path) -> None:
    problem = tiny.fake(tmp_path / "tiny")
    template = ("--template", problem / "template.fake")
    found = own(loaded(tmp_path, "tune", problem, *template, "--out", "run", first=IN_A_PROCESS))
    assert "tunesmith.run.loop" in found, "the run itself is counted"
    assert len(found) <= MAX_OF_A_SIMPLE_RUN, found
    for package in ("expert", "agents", "models", "backends.cuda", "backends.opencl", "backends.replay"):
        assert not [name for name in found if name.startswith(f"tunesmith.{package}")], package


def test_help_loads_little(tmp_path: Path) -> None:
    modules = loaded(tmp_path, "--help")
    assert len(own(modules)) <= MAX_OF_HELP, own(modules)
    assert not modules & {"numpy", "msgspec", "tree_sitter", "pyopencl"}
