"""Array jobs: what Slurm would take, and what it would run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleets import plan
from tunesmith.session.fleet.plans import FleetDevice, SlurmSettings, cells_of
from tunesmith.session.fleet.slurm import BESIDE, MOST_MINUTES, MOST_TASKS, ArrayJob, array_jobs, minutes_for

SBATCH = (sys.executable, str(Path(__file__).parent / "sbatch.py"))


def jobs(
    count: int = 3, fleet: Path = Path("/shared/fleet"), settings: SlurmSettings | None = None, gres: str = ""
) -> list[ArrayJob]:
    devices = [FleetDevice("h200", gres=gres), FleetDevice("a100")]
    cells = cells_of(plan((1.0,) * count, devices))
    shares = {cell.name: 600.0 for cell in cells[1:]}  # the first is finished
    return list(array_jobs(fleet, cells, shares, settings or SlurmSettings(), "tunesmith"))


def submitted(script: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SBATCH, str(script), *more], capture_output=True, text=True, timeout=60, check=False
    )


def test_each_kind_of_device_has_a_job_that_slurm_takes(tmp_path: Path) -> None:
    settings = SlurmSettings("gpu", "team", "high", "nvlink&a100", 8, 16)
    found = jobs(settings=settings, gres="gpu:h200:1")
    assert [(job.name, len(job.cells)) for job in found] == [("h200.sbatch", 2), ("a100.sbatch", 3)]
    text = found[0].text
    assert "#SBATCH --array=0-1%16\n" in text
    assert "#SBATCH --gres=gpu:h200:1\n" in text
    assert "cells=(2 4)\n" in text, "numbers of cells, without the finished one"
    assert f"#SBATCH --time={BESIDE + 30}\n" in text
    script = tmp_path / found[0].name
    script.write_text(text)
    done = submitted(script, "--test-only")
    assert (done.returncode, done.stdout) == (0, "Submitted batch job 77, 2 tasks\n"), done.stderr


def test_a_task_runs_its_own_cell_whatever_the_folder_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "it's $(a) 100% fleet; rm"
    (folder / "slurm").mkdir(parents=True)
    stand_in = tmp_path / "stand in"
    stand_in.write_text(f'#!/bin/sh\nprintf "%s|" "$@" >> "{tmp_path}/called"\necho >> "{tmp_path}/called"\n')
    stand_in.chmod(0o700)
    import shlex

    cells = cells_of(plan((1.0, 1.0)))
    shares = {cell.name: 1.0 for cell in cells}
    (job,) = array_jobs(folder, cells, shares, SlurmSettings(), shlex.quote(str(stand_in)))
    script = folder / "slurm" / job.name
    script.write_text(job.text)
    done = submitted(script)
    assert done.returncode == 0, done.stderr
    called = (tmp_path / "called").read_text().splitlines()
    assert called == [f"fleet|{folder}|--cell|{number}|" for number in (0, 1)]


def test_large_fleets_have_several_arrays(tmp_path: Path) -> None:
    found = [job for job in jobs(MOST_TASKS + 2) if job.name.startswith("h200")]
    assert [(job.name, len(job.cells)) for job in found] == [
        ("h200-1.sbatch", MOST_TASKS),
        ("h200-2.sbatch", 1),
    ]
    script = tmp_path / "job"
    script.write_text(found[0].text)
    assert submitted(script, "--test-only").returncode == 0


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("#!/bin/bash\n", "", "does not look like"),
        ("--array=0-1", "--array=0-9999", "Invalid job array"),
        ("--time=", "--time=soon", "unrecognized"),
        ("--requeue", "--requeued", "unrecognized"),
        ("cells=(", "cells=((", "no shell script"),
    ],
)
def test_the_stand_in_refuses_what_slurm_would(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = jobs()[0].text
    assert old in text
    script = tmp_path / "job"
    script.write_text(text.replace(old, new, 1))
    done = submitted(script, "--test-only")
    assert done.returncode
    assert says in done.stderr


def test_a_time_limit_suits_the_share() -> None:
    assert minutes_for(0.0) == BESIDE
    assert minutes_for(1e9) == MOST_MINUTES
