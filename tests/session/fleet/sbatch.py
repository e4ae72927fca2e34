"""A stand-in for `sbatch`: refuses what Slurm would, and runs the tasks of an array here, one after another.

python sbatch.py SCRIPT [--kill N]      kill each of the first N tasks once, after a while, and requeue it
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

KNOWN = {
    "job-name": r"[\w.-]+",
    "array": r"\d+-\d+(%\d+)?|\d+(%\d+)?",
    "time": r"\d+|\d+:\d\d:\d\d|\d+-\d+(:\d\d){0,2}",
    "cpus-per-task": r"[1-9]\d*",
    "ntasks": r"[1-9]\d*",
    "partition": r"[\w.,-]+",
    "account": r"[\w.-]+",
    "qos": r"[\w.-]+",
    "constraint": r"[\w.&|-]+",
    "gres": r"\w+(:[\w.-]+)?(:\d+)?",
    "requeue": "",
    "open-mode": "append|truncate",
    "signal": r"(B:)?[A-Z]+(@\d+)?",
    "output": r".+",
}
MOST = 1001  # MaxArraySize as Slurm is delivered


def refuse(why: str) -> None:
    sys.exit(f"sbatch: error: {why}")


def read(text: str) -> dict[str, str]:
    lines = text.splitlines()
    if not lines or not lines[0].startswith("#!"):
        refuse("This does not look like a batch script: it must start with #!")
    found: dict[str, str] = {}
    for line in lines[1:]:
        if line.strip() and not line.startswith("#"):
            break  # Slurm reads no further
        if line.startswith("#SBATCH"):
            for word in shlex.split(line.removeprefix("#SBATCH")):
                name, _, value = word.removeprefix("--").partition("=")
                if not word.startswith("--") or name not in KNOWN or not re.fullmatch(KNOWN[name], value):
                    refuse(f"unrecognized option or value: {word}")
                if name in found:
                    refuse(f"given twice: {name}")
                found[name] = value
    return found


def indices(array: str) -> range:
    first, _, last = array.partition("%")[0].partition("-")
    own = range(int(first), int(last or first) + 1)
    if not own or own[-1] >= MOST:
        refuse(f"Invalid job array specification: {array}")
    return own


def run_task(script: Path, options: dict[str, str], task: int, kill: bool) -> int:
    environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(task), "SLURM_JOB_ID": "77"}
    log = options.get("output", "/dev/null").replace("%A", "77").replace("%a", str(task)).replace("%%", "%")
    while True:
        with open(log, "ab") as out:
            process = subprocess.Popen(
                ["bash", str(script)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
            if not kill:
                return process.wait()
            time.sleep(float(os.environ.get("SBATCH_KILL_AFTER", "3")))
            os.killpg(process.pid, signal.SIGKILL)  # the node has died
            process.wait()
            kill = False


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("script", type=Path)
    parser.add_argument("--kill", type=int, default=0)
    parser.add_argument("--test-only", action="store_true")
    given = parser.parse_args()
    options = read(given.script.read_text())
    if "array" not in options or "time" not in options:
        refuse("an array and a time limit are needed")
    tasks = indices(options["array"])
    if subprocess.run(["bash", "-n", str(given.script)], check=False).returncode:
        refuse("the script is no shell script")
    print(f"Submitted batch job 77, {len(tasks)} tasks")
    if given.test_only:
        return
    codes = [run_task(given.script, options, task, task < given.kill) for task in tasks]
    sys.exit(max(codes, default=0))


if __name__ == "__main__":
    main()
