"""The other way to run a fleet: array jobs of Slurm, one task a cell, which need the fleet's folder and
nothing else. Pure: a script is text."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith.session.fleet.plans import FleetCell, FleetDevice, SlurmSettings

MOST_TASKS = 1000  # of one array: what Slurm takes unless it is set up otherwise
HELD = 3.0  # times its device-seconds that a run holds its node: builds, and what comes after the search
BESIDE = 20  # minutes of a task for its start and its verification
MOST_MINUTES = 30 * 24 * 60
GRACE = 120  # seconds before a time limit at which a task is asked to end
FOLDER = "slurm"


@dataclass(frozen=True)
class ArrayJob:
    name: str  # of the script
    text: str
    cells: tuple[str, ...]


def array_jobs(
    fleet: Path,
    cells: Sequence[FleetCell],
    shares: Mapping[str, float],
    settings: SlurmSettings,
    command: str,
) -> Iterator[ArrayJob]:
    """Each kind of device has jobs of its own. `shares`: device-seconds that each cell's run has still to
    come; a cell that is not named has no task."""
    for device in dict.fromkeys(cell.device for cell in cells):
        own = [cell for cell in cells if cell.device == device and cell.name in shares]
        for part, start in enumerate(range(0, len(own), MOST_TASKS), 1):
            some = own[start : start + MOST_TASKS]
            number = f"-{part}" if len(own) > MOST_TASKS else ""
            minutes = settings.minutes or max(minutes_for(shares[cell.name]) for cell in some)
            text = script(fleet, device, some, minutes, settings, command)
            yield ArrayJob(f"{device.name}{number}.sbatch", text, tuple(cell.name for cell in some))


def minutes_for(share: float) -> int:
    return min(MOST_MINUTES, BESIDE + math.ceil(HELD * share / 60))


def script(
    fleet: Path,
    device: FleetDevice,
    cells: Sequence[FleetCell],
    minutes: int,
    settings: SlurmSettings,
    command: str,
) -> str:
    """Names in it are checked when the plan is read, or quoted; cells are numbers."""
    most = f"%{settings.tasks}" if settings.tasks else ""
    named = {
        "partition": settings.partition,
        "account": settings.account,
        "qos": settings.qos,
        "constraint": settings.constraint,
        "gres": device.gres,
    }
    wanted = [f"#SBATCH --{key}={value}" for key, value in named.items() if value]
    log = f"{fleet / FOLDER}".replace("%", "%%") + f"/{device.name}-%A_%a.log"
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name=tunesmith-{device.name}",
        f"#SBATCH --array=0-{len(cells) - 1}{most}",
        f"#SBATCH --time={minutes}",
        f"#SBATCH --cpus-per-task={settings.cpus}",
        *wanted,
        "#SBATCH --ntasks=1",
        "#SBATCH --requeue",
        "#SBATCH --open-mode=append",
        f"#SBATCH --signal=B:TERM@{GRACE}",
        f'#SBATCH --output="{log}"',
        "",
        "# A cell each. A task that is killed goes on where it was when it is requeued.",
        f"cells=({' '.join(str(cell.number) for cell in cells)})",
        f'exec {command} fleet {shlex.quote(str(fleet))} --cell "${{cells[$SLURM_ARRAY_TASK_ID]}}"',
        "",
    ]
    return "\n".join(lines)
