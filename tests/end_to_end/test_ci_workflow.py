"""The workflow of docs/ci.md: its steps run as they are written, and fail where a kernel is slower."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end import tiny
from tests.frameworks import need
from tests.running import environment

PAGE = Path(__file__).parents[2] / "docs" / "ci.md"


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    text = re.search(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert text is not None
    found: dict[str, Any] = need("yaml").safe_load(text.group(1))
    return found


def scripts(workflow: dict[str, Any]) -> dict[str, str]:
    return {step["name"]: step["run"] for step in workflow["jobs"]["slower"]["steps"] if "run" in step}


def test_it_is_a_workflow(workflow: dict[str, Any]) -> None:
    assert workflow[True] == {"pull_request": {"paths": ["kernels/**"]}}, "YAML reads `on` as a truth"
    job = workflow["jobs"]["slower"]
    assert "self-hosted" in job["runs-on"]
    assert "github.repository" in job["if"], "no stranger's code runs on the machine"
    assert [step.get("name", step.get("uses", "").split("@")[0]) for step in job["steps"]] == [
        "actions/checkout",
        "actions/checkout",
        "Install",
        "Tune before and after",
        "Compare",
        "actions/upload-artifact",
    ]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("bash") is None, reason="GitHub runs steps with bash")
def test_its_steps_find_what_is_slower_and_nothing_else(workflow: dict[str, Any], tmp_path: Path) -> None:
    for side in ("before", "after"):
        for name in ("same", "slow"):
            tiny.fake(tmp_path / side / "kernels" / name)
    tiny.fake(tmp_path / "after" / "kernels" / "new")
    slow = tmp_path / "after" / "kernels" / "slow" / "template.fake"
    slow.write_text(slow.read_text().replace("100 * BLOCK", "150 * BLOCK"))
    tunesmith = tmp_path / "bin" / "tunesmith"
    tunesmith.parent.mkdir()
    tunesmith.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tunesmith "$@"\n')
    tunesmith.chmod(0o755)
    summary = tmp_path / "summary.md"
    env = environment(tmp_path) | workflow["jobs"]["slower"]["env"]
    env |= {"GITHUB_STEP_SUMMARY": str(summary), "PATH": f"{tunesmith.parent}:{os.environ['PATH']}"}
    env["SETTINGS"] = env["SETTINGS"].replace("--sandbox required", "--sandbox off")  # the tests' machine
    ended = {}
    for name in ("Tune before and after", "Compare"):
        script = scripts(workflow)[name]
        ended[name] = subprocess.run(
            ["bash", "-e", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=110
        )
    assert ended["Tune before and after"].returncode == 0, ended["Tune before and after"].stderr
    assert ended["Compare"].returncode == 6, ended["Compare"].stderr
    told = summary.read_text(encoding="utf-8")
    assert "No workload is below 0.97×" in told
    assert re.search(r"Below 0\.97×: only 0\.6\d+×", told)
    assert [path.parent.name for path in sorted(tmp_path.glob("runs/*/diff.html"))] == ["same", "slow"]
    kept = workflow["jobs"]["slower"]["steps"][-1]["with"]["path"].split()
    assert all(list(tmp_path.glob(pattern)) for pattern in kept), "what is uploaded is there"
